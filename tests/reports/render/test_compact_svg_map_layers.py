"""Maps of a page are those that Vega draws in files, at every size."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import pytest

from auditor.reports.charts.scatter_plots import ScorePair, scatter_plot
from auditor.reports.charts.world_map import LARGE_MAP_WIDTH_PX, SMALL_MAP_WIDTH_PX, CountryEstimate, error_map
from auditor.reports.render.compact_svg import draw_map_layers, is_map, without_map_layers
from auditor.reports.render.figures import export_svg
from tests.support.drawn_figures import DrawnMark, draw, find_marks

SVG = "{http://www.w3.org/2000/svg}"
COUNTRIES = ("Germany", "Japan", "Russia", "Fiji", "United States", "Singapore", "Luxembourg", "Kosovo")


def map_spec(width_px: int) -> Any:
    return error_map([CountryEstimate(name, 0.05 * i) for i, name in enumerate(COUNTRIES)], width_px).spec


def find_vega_marks(spec: Any) -> dict[str, DrawnMark]:
    """The countries in the file of a map, by their tooltips: paths in absolute coordinates, and symbols at a place."""
    marks = {}
    for path in ElementTree.fromstring(export_svg(spec)).iter(f"{SVG}path"):
        if (title := path.get("aria-label")) is None:
            continue
        place = tuple(map(float, re.findall(r"-?[\d.]+", path.get("transform", "translate(0,0)"))))
        if arc := re.search(r"A([\d.]+),", path.attrib["d"]):  # a circle around its place
            points = [(-float(arc[1]), -float(arc[1])), (float(arc[1]), float(arc[1]))]
        else:
            points = [(float(x), float(y)) for x, y in re.findall(r"(-?[\d.]+),(-?[\d.]+)", path.attrib["d"])]
        xs, ys = ([start + point[i] for point in points] for i, start in enumerate(place))
        marks[title] = DrawnMark(title, (min(xs), min(ys), max(xs), max(ys)), float(path.attrib["stroke-width"]))
    return marks


@pytest.mark.parametrize("width_px", [SMALL_MAP_WIDTH_PX, LARGE_MAP_WIDTH_PX, 333])
def test_countries_have_the_place_and_the_stroke_that_vega_gives_them(width_px: int) -> None:
    spec = map_spec(width_px)
    expected = find_vega_marks(spec)
    marks = {mark.title: mark for mark in find_marks(draw(spec)) if mark.title}
    assert marks.keys() == expected.keys()
    assert len(marks) == len(COUNTRIES)
    for title, mark in marks.items():
        assert mark.stroke_width == pytest.approx(expected[title].stroke_width, rel=0.01)
        assert mark.box == pytest.approx(expected[title].box, abs=0.25)


def test_without_the_layers_of_a_map_its_legend_is_left() -> None:
    spec = map_spec(SMALL_MAP_WIDTH_PX)
    legend = without_map_layers(spec)
    assert len(draw_map_layers(spec)) == len(spec["layer"]) - len(legend["layer"]) == 3
    assert not {"projection", "data"} & legend.keys()
    assert {layer["mark"]["type"] for layer in legend["layer"]} == {"rect", "text"}


def test_other_plots_are_left_as_they_are() -> None:
    spec = scatter_plot([ScorePair(0.1, 0.2)])
    assert not is_map(spec)
    assert without_map_layers(spec) is spec
    assert draw_map_layers(spec) == []
