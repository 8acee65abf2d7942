"""Draw several Vega-Lite specifications in one conversion, and take the drawing apart.

A conversion costs more than the figures in it. Layers that are equal in several figures, such as the land of maps and
their legends, are drawn once; maps of several sizes are drawn in the size of the first, and scaled afterwards.
vl-convert lays out each text to measure it, which takes a tenth of a millisecond a character and is of no use for
figures with a fixed layout: texts have size 0 in the conversion, and their size in place of their font.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from xml.etree.ElementTree import Element

SVG_NAMESPACE = "{http://www.w3.org/2000/svg}"
_TOP_LEVEL_KEYS = frozenset(("$schema", "autosize", "background", "config", "datasets", "padding"))
_CHANNELS = ("x", "y", "color", "fill", "stroke", "opacity", "fillOpacity", "size", "shape")
_CHANNELS_WITHOUT_SCALE = frozenset(("x2", "y2", "text", "description"))
_FONT_KEYS = {"fontSize": "font", "labelFontSize": "labelFont", "titleFontSize": "titleFont"}
_VIEW_PATTERN = re.compile(r"(?:^| )concat_(\d+)_group$")
_LAYER_PATTERN = re.compile(r"(?:^| )concat_(\d+)_layer_(\d+)_marks$")

Spec = Mapping[str, Any]
LayerIndex = tuple[int, int]
"""Index of a specification, and of a layer in it."""


def group_specs(specs: Sequence[Spec]) -> list[list[int]]:
    """Indices of the specifications that can be drawn in one conversion."""
    kinds = [_projection_kind(spec) for spec in specs]
    first_kind = next((kind for kind in kinds if kind is not None), None)
    groups: dict[str, list[int]] = {}
    for i, (spec, kind) in enumerate(zip(specs, kinds, strict=True)):
        groups.setdefault(json.dumps([kind or first_kind, spec["config"]]), []).append(i)
    return list(groups.values())


def _projection_kind(spec: Spec) -> dict[str, Any] | None:
    """What maps of one drawing must have in common; their size may differ, since `split_views` restores it."""
    projection = spec.get("projection")
    return projection and {key: value for key, value in projection.items() if key not in ("scale", "translate")}


def join_specs(specs: Sequence[Spec]) -> dict[str, object]:
    """Put specifications below each other in one, without repeated layers; nothing else changes in how they are drawn.

    Raises:
        ValueError: two specifications have different data of one name.
    """
    datasets: dict[str, object] = {}
    for spec in specs:
        for name, values in spec.get("datasets", {}).items():
            if datasets.setdefault(name, values) != values:
                raise ValueError(f"Two figures have different data of the name {name!r}.")
    repeated_layers = find_repeated_layers(specs)
    views = []
    for i, spec in enumerate(specs):
        layers = [_without_data(layer) if (i, k) in repeated_layers else layer for k, layer in enumerate(spec["layer"])]
        view = {key: value for key, value in spec.items() if key not in _TOP_LEVEL_KEYS}
        views.append(view | {"layer": [_without_font_sizes(layer) for layer in layers]})
    return {
        "vconcat": views,
        "datasets": datasets,
        "config": _without_font_sizes(specs[0]["config"]),
        "background": None,
        "autosize": "none",
        "padding": 0,
        "spacing": 0,
        "bounds": "flush",
        "resolve": {"scale": dict.fromkeys(_CHANNELS, "independent")},
    }


def split_views(root: Element, specs: Sequence[Spec]) -> list[Element]:
    """The drawing of each specification in the SVG of the joined one, with the layers that it shares with others."""
    views: dict[int, Element] = {}
    layers: dict[LayerIndex, Element] = {}
    for group in root.iter(f"{SVG_NAMESPACE}g"):
        css_class = group.get("class", "")
        if match := _VIEW_PATTERN.search(css_class):
            views[int(match[1])] = group[0]
        elif match := _LAYER_PATTERN.search(css_class):
            layers[int(match[1]), int(match[2])] = group
    for index, first_index in find_repeated_layers(specs).items():
        layers[index].extend(layers[first_index])
    drawn_projection: Spec = next((spec["projection"] for spec in specs if "projection" in spec), {})
    for (i, k), layer in layers.items():
        if specs[i].get("projection", drawn_projection) != drawn_projection:
            _resize_map_layer(layer, specs[i]["layer"][k], specs[i]["projection"], drawn_projection)
    return [views[i] for i in range(len(specs))]


def _resize_map_layer(group: Element, layer: Spec, projection: Spec, drawn_projection: Spec) -> None:
    """Move and scale what a layer shows at longitudes and latitudes: Vega-Lite gives all maps the first projection."""
    factor = projection["scale"] / drawn_projection["scale"]
    x, y = (
        target - factor * drawn
        for target, drawn in zip(projection["translate"], drawn_projection["translate"], strict=True)
    )
    if _is_shape(layer):
        group.set("transform", f"translate({x},{y}) scale({factor:.6g})")
        group[:] = [_copy_with_stroke(shape, 1 / factor) for shape in group]
    elif "longitude" in layer.get("encoding", {}):
        for symbol in group:
            symbol_x, symbol_y = map(float, re.findall(r"[-\d.e]+", symbol.get("transform", "translate(0,0)")[10:]))
            symbol.set("transform", f"translate({x + factor * symbol_x},{y + factor * symbol_y})")


def _copy_with_stroke(shape: Element, factor: float) -> Element:
    """Copy a shape that several layers may share, with its stroke multiplied by a factor."""
    copied = Element(shape.tag, shape.attrib)
    if (width := shape.get("stroke-width")) is not None:
        copied.set("stroke-width", f"{factor * float(width):.3g}")
    return copied


def find_repeated_layers(specs: Sequence[Spec]) -> dict[LayerIndex, LayerIndex]:
    """Layers that are drawn exactly as a layer of an earlier specification, with that layer."""
    first_indices: dict[str, LayerIndex] = {}
    repeated: dict[LayerIndex, LayerIndex] = {}
    for index, key in _iterate_layer_keys(specs):
        if key in first_indices:
            repeated[index] = first_indices[key]
        else:
            first_indices[key] = index
    return repeated


def _iterate_layer_keys(specs: Sequence[Spec]) -> Iterator[tuple[LayerIndex, str]]:
    """All that determines the drawing of a layer, for the layers that do not depend on other layers' scales."""
    for i, spec in enumerate(specs):
        whole_frame = [spec.get(key) for key in ("width", "height", "projection", "transform")]
        map_frame = [_projection_kind(spec), spec.get("transform")]
        for k, layer in enumerate(spec["layer"]):
            encoding: Mapping[str, Any] = layer.get("encoding", {})
            if all(name in _CHANNELS_WITHOUT_SCALE or item.get("scale", "") is None for name, item in encoding.items()):
                frame = map_frame if _is_shape(layer) else whole_frame
                yield (i, k), json.dumps([frame, spec.get("data") if "data" not in layer else None, layer])


def _is_shape(layer: Spec) -> bool:
    """Whether a layer draws shapes of a map."""
    return isinstance(layer["mark"], Mapping) and layer["mark"]["type"] == "geoshape"


def _without_data(layer: Mapping[str, Any]) -> dict[str, object]:
    """A layer that draws nothing."""
    return {key: value for key, value in layer.items() if key != "transform"} | {"data": {"values": []}}


def _without_font_sizes(value: Any) -> Any:
    """Set all font sizes in a part of a specification to 0, and the fonts to the sizes; data are left as they are."""
    if isinstance(value, Mapping):
        fonts = {_FONT_KEYS[key]: str(size) for key, size in value.items() if key in _FONT_KEYS}
        return {
            key: 0 if key in _FONT_KEYS else item if key == "data" else _without_font_sizes(item)
            for key, item in value.items()
        } | fonts
    return [_without_font_sizes(item) for item in value] if isinstance(value, list) else value


def font_size(text: Element) -> str:
    """Font size in pixels of a text that was drawn by `join_specs`."""
    size = text.get("font-size", "").removesuffix("px")
    return text.get("font-family", "") if size == "0" else size
