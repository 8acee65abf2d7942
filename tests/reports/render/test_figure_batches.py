"""Specifications are joined without repeated layers and without texts to measure."""

from __future__ import annotations

from typing import Any

import pytest

from auditor.reports.charts.theme import build_spec
from auditor.reports.render.figure_batches import find_repeated_layers, group_specs, join_specs

PIXELS: dict[str, Any] = {"field": "x", "type": "quantitative", "scale": None}
FIXED_LAYER: dict[str, Any] = {"data": {"values": [{"x": 1}]}, "mark": "text", "encoding": {"x": PIXELS}}
SCALED_LAYER: dict[str, Any] = {"mark": "point", "encoding": {"x": {"field": "x", "type": "quantitative"}}}


def spec(*layers: dict[str, Any], **properties: Any) -> dict[str, Any]:
    return build_spec(layers, width=20, height=10, padding=(1, 2, 3, 4), **properties)


def test_a_layer_at_fixed_positions_is_drawn_once() -> None:
    specs = [spec(FIXED_LAYER), spec(SCALED_LAYER, FIXED_LAYER), spec(FIXED_LAYER)]
    assert find_repeated_layers(specs) == {(1, 1): (0, 0), (2, 0): (0, 0)}
    joined: Any = join_specs(specs)
    rows = [layer["data"]["values"] for view in joined["vconcat"] for layer in view["layer"] if "data" in layer]
    assert rows == [[{"x": 1}], [], []]


def test_layers_that_may_differ_are_drawn_each() -> None:
    other_data = {**FIXED_LAYER, "data": {"values": [{"x": 2}]}}
    other_size = {**spec(FIXED_LAYER), "width": 30}
    assert find_repeated_layers([spec(SCALED_LAYER), spec(SCALED_LAYER)]) == {}
    assert find_repeated_layers([spec(FIXED_LAYER), spec(other_data), other_size]) == {}
    inherited = {"mark": "text", "encoding": {"x": PIXELS}}
    specs = [spec(inherited, data={"values": [{"x": i}]}) for i in range(2)]
    assert find_repeated_layers(specs) == {}


def test_texts_have_size_0_and_their_size_as_font() -> None:
    layer = {**FIXED_LAYER, "mark": {"type": "text", "fontSize": 13.5}, "data": {"values": [{"x": 1, "fontSize": 3}]}}
    joined: Any = join_specs([spec(layer)])
    [view] = joined["vconcat"]
    assert view["layer"][0]["mark"] == {"type": "text", "fontSize": 0, "font": "13.5"}
    assert view["layer"][0]["data"] == layer["data"]
    axis = joined["config"]["axis"]
    assert (axis["labelFontSize"], axis["labelFont"], axis["titleFontSize"], axis["titleFont"]) == (0, "11", 0, "12")


def test_the_joined_specification_has_each_data_set_once_and_no_space() -> None:
    world = {"type": "Topology"}
    joined: Any = join_specs(
        [spec(SCALED_LAYER, datasets={"world": world}), spec(SCALED_LAYER, datasets={"world": world})]
    )
    assert joined["datasets"] == {"world": world}
    assert (joined["padding"], joined["spacing"], joined["autosize"]) == (0, 0, "none")
    assert all("padding" not in view and "config" not in view for view in joined["vconcat"])


def test_data_sets_of_one_name_must_be_equal() -> None:
    with pytest.raises(ValueError, match="world"):
        join_specs([spec(SCALED_LAYER, datasets={"world": 1}), spec(SCALED_LAYER, datasets={"world": 2})])


def test_maps_of_other_projections_are_drawn_apart_and_of_other_sizes_together() -> None:
    small, large, turned = (
        {"projection": {"scale": scale, "rotate": [turn]}} for scale, turn in ((1, 0), (2, 0), (1, 9))
    )
    properties: list[dict[str, Any]] = [small, {}, large, turned, small]
    assert group_specs([spec(SCALED_LAYER, **more) for more in properties]) == [[0, 1, 2, 4], [3]]
