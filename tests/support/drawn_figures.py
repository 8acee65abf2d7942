"""Draw figures as a page does, and read the SVG."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
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
    return ElementTree.fromstring(render_page_svg(spec, title="Title", description="Description", id_prefix="f"))


def texts_of(svg: Element) -> list[str]:
    return [element.text or "" for element in svg.iter("text")]


def tooltips_of(svg: Element) -> list[str]:
    return ["".join(title.itertext()) for title in svg.iter("title") if "id" not in title.attrib]


@dataclass(frozen=True)
class DrawnMark:
    """A path, rectangle or circle in the figure's coordinates.

    Attributes:
        title: its tooltip; empty without one.
        box: least x and y, and largest x and y of its points, in pixels.
        stroke_width: in pixels; 0 where none is set.
    """

    title: str
    box: tuple[float, float, float, float]
    stroke_width: float


def find_marks(svg: Element) -> list[DrawnMark]:
    return list(_iterate_marks(svg, (0.0, 0.0, 1.0), 0.0))


def _iterate_marks(element: Element, place: tuple[float, float, float], stroke_width: float) -> Iterator[DrawnMark]:
    """Yield the marks in an element, whose coordinates are multiplied and then moved by the parts of `place`."""
    x, y, factor = place
    transform = element.get("transform", "")
    if match := re.match(r"translate\(([-\d.]+),([-\d.]+)\)", transform):
        x, y = x + factor * float(match[1]), y + factor * float(match[2])
    if match := re.search(r"scale\(([-\d.]+)\)", transform):
        factor *= float(match[1])
    stroke_width = float(element.get("stroke-width", stroke_width))
    if points := _points_of(element):
        xs, ys = [x + factor * point[0] for point in points], [y + factor * point[1] for point in points]
        title = "".join(text for child in element.iter("title") for text in child.itertext())
        yield DrawnMark(title, (min(xs), min(ys), max(xs), max(ys)), factor * stroke_width)
    for child in element:
        yield from _iterate_marks(child, (x, y, factor), stroke_width)


def _points_of(element: Element) -> list[tuple[float, float]]:
    """Corners of a rectangle or around a circle; points of a path's lines, and starting points of its curves."""
    if element.tag == "circle":
        x, y, radius = (float(element.attrib[name]) for name in ("cx", "cy", "r"))
        return [(x - radius, y - radius), (x + radius, y + radius)]
    if element.tag == "rect":
        left, top, width, height = (float(element.get(name, 0)) for name in ("x", "y", "width", "height"))
        return [(left, top), (left + width, top + height)]
    points = []
    for subpath in re.findall(r"M[^M]+", element.get("d", "")):
        start, _, lines = subpath.removesuffix("Z").partition("l")
        numbers = [float(number) for number in re.findall(r"-?\d*\.?\d+", start)]
        steps = [float(number) for number in re.findall(r"-?\d*\.?\d+", lines)]
        point = numbers[0], numbers[1]
        points.append(point)
        for step_x, step_y in zip(steps[::2], steps[1::2], strict=True):
            point = point[0] + step_x, point[1] + step_y
            points.append(point)
    return points


def country_estimates() -> list[CountryEstimate]:
    """A difference for each of some countries, with its interval and n."""
    return [CountryEstimate(name, i / 5 - 0.5, i / 5 - 0.6, i / 5 - 0.4, 19) for i, name in enumerate(COUNTRIES)]
