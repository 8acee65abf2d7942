"""Draw figures as a page does, and read the SVG."""

from __future__ import annotations

import re
from collections.abc import Mapping
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from auditor.reports.charts.world_map import CountryEstimate
from auditor.reports.document import Figure
from auditor.reports.render.figures import render_page_svgs

COUNTRIES = ("Germany", "Japan", "Kosovo", "Hong Kong", "Singapore", "United States")


def resolve_shared(definitions: str, svg: str) -> Element:
    """A figure with the shared shapes put back."""
    path_by_id = dict(re.findall(r'<path id="([^"]*)" d="([^"]*)"', definitions))
    markup = re.sub(r'<use href="#([^"]*)"', lambda match: f'<path d="{path_by_id[match[1]]}"', svg)
    return ElementTree.fromstring(markup.replace("</use>", "</path>"))


def render_page_svg(spec: Mapping[str, object], *, title: str, description: str, id_prefix: str) -> str:
    """Draw the only figure of a page, with its shared shapes put back."""
    definitions, [svg] = render_page_svgs([Figure("", spec, title, description)], id_prefix)
    return ElementTree.tostring(resolve_shared(definitions, svg), encoding="unicode")


def draw(spec: Mapping[str, object]) -> Element:
    """Draw one figure."""
    return ElementTree.fromstring(render_page_svg(spec, title="Title", description="Description", id_prefix="f"))


def texts_of(svg: Element) -> list[str]:
    """The texts that a figure shows."""
    return [element.text or "" for element in svg.iter("text")]


def tooltips_of(svg: Element) -> list[str]:
    """The tooltips of a figure's marks."""
    return ["".join(title.itertext()) for title in svg.iter("title") if "id" not in title.attrib]


def country_estimates() -> list[CountryEstimate]:
    """A difference for each of some countries, with its interval and n."""
    return [CountryEstimate(name, i / 5 - 0.5, i / 5 - 0.6, i / 5 - 0.4, 19) for i, name in enumerate(COUNTRIES)]
