"""Specifications are joined without texts to measure, and the drawing is taken apart."""

from __future__ import annotations

from typing import Any

from auditor.reports.charts.theme import build_spec
from auditor.reports.render.compact_svg import group_specs, join_specs

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
