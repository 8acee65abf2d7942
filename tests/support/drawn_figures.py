"""Draw figures as a page does, and read the SVG."""

from __future__ import annotations

from collections.abc import Mapping
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from auditor.reports.charts.world_map import CountryEstimate
from auditor.reports.render.figures import render_page_svg

COUNTRIES = ("Germany", "Japan", "Kosovo", "Hong Kong", "Singapore", "United States")


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
