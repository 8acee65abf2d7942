"""Figures become compact SVG: few attributes, short paths, and one drawing of many figures."""

from __future__ import annotations

import random
import re
from typing import Any
from xml.etree import ElementTree

import pytest

from auditor.reports.charts.scatter_plots import ScorePair, scatter_plot
from auditor.reports.charts.theme import build_spec
from auditor.reports.charts.world_map import LARGE_MAP_WIDTH_PX, SMALL_MAP_WIDTH_PX, CountryEstimate, error_map
from auditor.reports.render.compact_svg import (
    MIN_MARKER_RUN,
    compact_view,
    draw_map_layers,
    format_coordinate,
    group_specs,
    is_map,
    join_specs,
    round_coordinates,
    shorten_path,
    without_map_layers,
)
from auditor.reports.render.figures import export_svg
from tests.support.drawn_figures import DrawnMark, draw, find_marks


def compact(content: str, definitions: str = "") -> str:
    """Compact a view with some content."""
    root = ElementTree.fromstring(
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'
        f'<g class="view" transform="translate(0,70)">{content}</g><defs>{definitions}</defs></svg>'
    )
    by_id = {element.attrib["id"]: element for element in root[1]}
    markup = ElementTree.tostring(compact_view(root[0], by_id, "f"), encoding="unicode")
    markup = markup.replace(" />", "/>")
    return "" if markup == '<g fill="none"/>' else markup.removeprefix('<g fill="none">').removesuffix("</g>")


def test_only_listed_attributes_are_taken_over() -> None:
    line = (
        '<line x2="3.14159" stroke="red" class="x" onclick="alert(1)" style="fill:red" xlink:href="http://a" href="b"/>'
    )
    assert compact(line) == '<line x2="3.1" stroke="red"/>'


def test_invisible_elements_are_left_out() -> None:
    assert compact('<path d="M0,0h9v9Z"/><path d="M0,0" fill="red" display="none"/><text opacity="0">a</text>') == ""
    assert compact('<text> </text><image href="a.png"/><a href="x"/><script/><g class="empty"/>') == ""


def test_groups_without_a_purpose_are_dissolved() -> None:
    inner = '<rect width="1" height="1" fill="red"/>'
    assert compact(f'<g class="a"><g transform="translate(0,0)">{inner}</g></g>') == inner
    assert compact(f'<g transform="translate(1,0)">{inner}</g>') == f'<g transform="translate(1,0)">{inner}</g>'


def test_the_text_alternative_of_a_mark_is_its_tooltip() -> None:
    path = '<path d="M0,0h1" fill="red" role="graphics-symbol" aria-roledescription="point" aria-label="a &lt;b&gt;"/>'
    assert compact(path) == '<path d="M0,0h1" fill="red"><title>a &lt;b&gt;</title></path>'
    assert "title" not in compact('<g aria-label="container"><path d="M0,0h1" fill="red"/></g>')


def test_attributes_that_all_children_have_move_to_the_group() -> None:
    marks = (
        '<g class="m"><rect x="1" fill="red" opacity="0.5"/><rect x="2" fill="red" opacity="0.5"/></g><g><line/></g>'
    )
    expected = '<g fill="red"><rect x="1" opacity="0.5"/><rect x="2" opacity="0.5"/></g><line/>'
    assert compact(marks) == expected


def test_long_runs_of_equal_symbols_are_markers_of_a_line() -> None:
    def symbols(n: int, attributes: str = "") -> str:
        paths = (f'<path transform="translate({i}.26,{i})" d="M2,0h3" fill="red"{attributes}/>' for i in range(n))
        return f"<g>{''.join(paths)}</g>"

    drawn = compact(symbols(MIN_MARKER_RUN))
    assert drawn.count("<marker") == 1
    assert '<path d="M2,0h3" fill="red"/></marker>' in drawn
    assert 'd="M0.3 0 1.3 1 2.3 2 ' in drawn
    assert 'marker-start="url(#f-m1)" marker-mid="url(#f-m1)" marker-end="url(#f-m1)"' in drawn
    assert "marker" not in compact(symbols(MIN_MARKER_RUN - 1))
    assert "marker" not in compact(symbols(MIN_MARKER_RUN, ' aria-label="a"'))


def test_texts_have_their_size_in_place_of_a_font() -> None:
    text = '<text font-size="0px" font-family="11" text-anchor="start">a</text>'
    assert compact(text) == '<text font-size="11">a</text>'
    assert compact(text.replace("0px", "14px")) == '<text font-size="14">a</text>'


def test_definitions_are_copied_with_new_ids() -> None:
    definition = '<clipPath id="clip80"><rect width="9.99" height="1"/></clipPath>'
    drawn = compact('<g clip-path="url(#clip80)"><rect fill="red" width="1"/></g>', definition)
    assert drawn.startswith('<clipPath id="f-d1"><rect width="10" height="1"/></clipPath>')
    assert 'clip-path="url(#f-d1)"' in drawn


PIXELS: dict[str, Any] = {"field": "x", "type": "quantitative", "scale": None}
FIXED_LAYER: dict[str, Any] = {"data": {"values": [{"x": 1}]}, "mark": "text", "encoding": {"x": PIXELS}}
SCALED_LAYER: dict[str, Any] = {"mark": "point", "encoding": {"x": {"field": "x", "type": "quantitative"}}}


def spec(*layers: dict[str, Any], **properties: Any) -> dict[str, Any]:
    return build_spec(layers, width=20, height=10, padding=(1, 2, 3, 4), **properties)


def test_texts_have_size_0_and_their_size_as_font() -> None:
    layer = {**FIXED_LAYER, "mark": {"type": "text", "fontSize": 13.5}, "data": {"values": [{"x": 1, "fontSize": 3}]}}
    joined: Any = join_specs([spec(layer)])
    [view] = joined["vconcat"]
    assert view["layer"][0]["mark"] == {"type": "text", "fontSize": 0, "font": "13.5"}
    assert view["layer"][0]["data"] == layer["data"]
    axis = joined["config"]["axis"]
    assert (axis["labelFontSize"], axis["labelFont"], axis["titleFontSize"], axis["titleFont"]) == (0, "11", 0, "12")


def test_the_joined_specification_has_the_views_and_no_space() -> None:
    joined: Any = join_specs([spec(SCALED_LAYER), spec(FIXED_LAYER)])
    assert [view["layer"] for view in joined["vconcat"]] == [[SCALED_LAYER], [FIXED_LAYER]]
    assert (joined["padding"], joined["spacing"], joined["autosize"]) == (0, 0, "none")
    assert all("padding" not in view and "config" not in view for view in joined["vconcat"])


def test_specifications_with_another_configuration_are_drawn_apart() -> None:
    plain, other = spec(SCALED_LAYER), {**spec(SCALED_LAYER), "config": {"font": "serif"}}
    assert group_specs([plain, other, plain]) == [[plain, plain], [other]]


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


def points_of(path: str) -> list[tuple[float, float]]:
    """The absolute points of a path of M, L, l and Z commands."""
    points: list[tuple[float, float]] = []
    for command, numbers in re.findall(r"([MLlZ])([^MLlZ]*)", path):
        values = [float(number) for number in re.findall(r"-?\d*\.?\d+", numbers)]
        for x, y in zip(values[::2], values[1::2], strict=True):
            points.append((points[-1][0] + x, points[-1][1] + y) if command == "l" else (x, y))
    return points


@pytest.mark.parametrize(
    ("value", "text"), [(0.04, "0"), (-0.04, "0"), (1.0, "1"), (-1.25, "-1.2"), (1234.56, "1234.6"), (1e-9, "0")]
)
def test_a_coordinate_has_at_most_one_decimal(value: float, text: str) -> None:
    assert format_coordinate(value) == text


def test_all_numbers_of_an_attribute_are_rounded() -> None:
    assert round_coordinates("translate(0.500001,-3.14159) rotate(90)") == "translate(0.5,-3.1) rotate(90)"
    assert round_coordinates("1.5e-7") == "0"


def test_a_line_is_relative_and_ends_where_it_ended() -> None:
    assert shorten_path("M10.04,20L10.54,19.5L10.54,19.51L12,20Z") == "M10 20l.5-.5 1.5 .5Z"


def test_rounding_errors_do_not_add_up() -> None:
    generator = random.Random(1)
    points = [(generator.uniform(-50, 50), generator.uniform(-50, 50)) for _ in range(2000)]
    path = "M" + "L".join(f"{x:.3f},{y:.3f}" for x, y in points)
    shortened = points_of(shorten_path(path))
    assert len(shortened) == len(points)
    for (x, y), (short_x, short_y) in zip(points, shortened, strict=True):
        assert (short_x, short_y) == pytest.approx((x, y), abs=0.0511)


def test_rings_that_shrink_to_a_point_are_left_out() -> None:
    assert shorten_path("M1,1L1.01,1.02L1,1ZM2,2L3,2L3,3Z") == "M2 2l1 0 0 1Z"
    assert shorten_path("M1,1L1.01,1.02Z") == ""


def test_a_path_with_curves_is_only_rounded() -> None:
    assert shorten_path("M2.26,0A2.26,2.26,0,1,1,-2.26,0") == "M2.3,0A2.3,2.3,0,1,1,-2.3,0"
    assert shorten_path("M0,0h5.55v5Z") == "M0,0h5.5v5Z"
