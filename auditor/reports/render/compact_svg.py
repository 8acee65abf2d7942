"""Reduce Vega's SVG to what a page needs: several figures in one conversion, and maps from stored paths."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import count, pairwise
from typing import Any
from xml.etree.ElementTree import Element, SubElement

from auditor.reports.charts.world_map import (
    EARTH_WIDTH,
    EQUATOR_SHARE,
    LAND_ID,
    PATHS_WIDTH_PX,
    WORLD_DATASET,
    load_paths,
    project,
)

_DECIMAL_PATTERN = re.compile(r"(?<!scale\()(?<!\d)-?\d*\.\d+(?:e-?\d+)?")
_LINES_PATTERN = re.compile(r"(?:M[-\d.e]+,[-\d.e]+(?:L[-\d.e]+,[-\d.e]+)*Z?)+")
_SUBPATH_PATTERN = re.compile(r"M[^M]+")
_POINT_PATTERN = re.compile(r"([-\d.e]+),([-\d.e]+)")


def format_coordinate(value: float) -> str:
    """Format a coordinate in pixels with at most one decimal."""
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def round_coordinates(text: str) -> str:
    """Round all numbers of an attribute to one decimal, but for a scale."""
    return _DECIMAL_PATTERN.sub(lambda match: format_coordinate(float(match[0])), text)


@lru_cache(maxsize=1000)
def shorten_path(path: str) -> str:
    """Round a path to one decimal, and write its lines relative to the point before, without points that coincide.

    Results are cached, since figures repeat long paths. A path with curves is only rounded.
    """
    if not _LINES_PATTERN.fullmatch(path):
        return round_coordinates(path)
    return "".join(map(_shorten_line, _SUBPATH_PATTERN.findall(path)))


def _shorten_line(subpath: str) -> str:
    """Shorten a path that starts with its only M; empty if all of its points coincide."""
    # In tenths of a pixel, so that rounding errors do not add up.
    points = [(round(float(x) * 10), round(float(y) * 10)) for x, y in _POINT_PATTERN.findall(subpath)]
    steps = [
        _join_numbers(x - previous_x, y - previous_y)
        for (previous_x, previous_y), (x, y) in pairwise(points)
        if (x, y) != (previous_x, previous_y)
    ]
    if not steps:
        return ""
    lines = "".join(step if step.startswith("-") else f" {step}" for step in steps).lstrip(" ")
    return f"M{_join_numbers(*points[0])}l{lines}{'Z' if subpath.endswith('Z') else ''}"


def _join_numbers(x_tenths: int, y_tenths: int) -> str:
    """Write two numbers as SVG allows: without a leading zero, and without a space before a minus sign."""
    x_text, y_text = _format_tenths(x_tenths), _format_tenths(y_tenths)
    return x_text + ("" if y_text.startswith("-") else " ") + y_text


@lru_cache(maxsize=10_000)
def _format_tenths(tenths: int) -> str:
    """Format a number of tenths without zeros that are not needed."""
    text = f"{tenths / 10:.1f}".removesuffix(".0")
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


SVG_NAMESPACE = "{http://www.w3.org/2000/svg}"
_TOP_LEVEL_KEYS = frozenset(("$schema", "autosize", "background", "config", "padding"))
_CHANNELS = ("x", "y", "color", "fill", "stroke", "opacity", "fillOpacity", "size", "shape")
_FONT_KEYS = {"fontSize": "font", "labelFontSize": "labelFont", "titleFontSize": "titleFont"}
_VIEW_PATTERN = re.compile(r"(?:^| )concat_(\d+)_group$")

Spec = Mapping[str, Any]


def group_specs(specs: Sequence[Spec]) -> list[list[Spec]]:
    """Group the specifications that can be drawn in one conversion: those with the same configuration."""
    groups: dict[str, list[Spec]] = {}
    for spec in specs:
        groups.setdefault(json.dumps(spec["config"]), []).append(spec)
    return list(groups.values())


def join_specs(specs: Sequence[Spec]) -> dict[str, object]:
    """Put specifications below each other in one; nothing else changes in how they are drawn."""
    views = [{key: value for key, value in spec.items() if key not in _TOP_LEVEL_KEYS} for spec in specs]
    return {
        "vconcat": [_without_font_sizes(view) for view in views],
        "config": _without_font_sizes(specs[0]["config"]),
        "background": None,
        "autosize": "none",
        "padding": 0,
        "spacing": 0,
        "bounds": "flush",
        "resolve": {"scale": dict.fromkeys(_CHANNELS, "independent")},
    }


def split_views(root: Element) -> list[Element]:
    """The drawing of each specification in the SVG of the joined one."""
    views: dict[int, Element] = {}
    for group in root.iter(f"{SVG_NAMESPACE}g"):
        if match := _VIEW_PATTERN.search(group.get("class", "")):
            views[int(match[1])] = group[0]
    return [views[i] for i in range(len(views))]


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


def is_map(spec: Spec) -> bool:
    """Whether a specification is that of a map."""
    return bool(spec.get("data", {}).get("name") == WORLD_DATASET)


def without_map_layers(spec: Spec) -> Spec:
    """The specification without its projection and the layers that `draw_map_layers` draws."""
    if not is_map(spec):
        return spec
    others = {key: value for key, value in spec.items() if key not in ("data", "projection")}
    return others | {"layer": [layer for layer in spec["layer"] if not _is_map_layer(layer)]}


def draw_map_layers(spec: Spec) -> list[Element]:
    """Draw the land, the countries with data and the dots of a map; nothing of other specifications."""
    if not is_map(spec):
        return []
    layers = [layer for layer in spec["layer"] if _is_map_layer(layer)]
    return [(_draw_shapes if _is_shape_layer(layer) else _draw_dots)(layer, spec["projection"]) for layer in layers]


def _is_map_layer(layer: Spec) -> bool:
    """Whether a layer is placed by longitudes and latitudes."""
    return _is_shape_layer(layer) or "longitude" in layer.get("encoding", {})


def _is_shape_layer(layer: Spec) -> bool:
    """Whether a layer draws shapes."""
    return bool(layer["mark"]["type"] == "geoshape")


def _draw_shapes(layer: Spec, projection: Spec) -> Element:
    """The shapes of the countries that a layer has data of, or all land."""
    mark, paths = layer["mark"], load_paths()
    factor = projection["scale"] / (PATHS_WIDTH_PX / EARTH_WIDTH)
    origin = PATHS_WIDTH_PX / 2, round(PATHS_WIDTH_PX * EQUATOR_SHARE)
    x, y = (to - factor * start for to, start in zip(projection["translate"], origin, strict=True))
    group = Element("g", {"stroke": mark["stroke"], "stroke-width": f"{mark['strokeWidth'] / factor:.3g}"})
    if factor != 1:
        group.set("transform", f"translate({format_coordinate(x)},{format_coordinate(y)}) scale({factor:.6g})")
    if "fill" in mark:
        SubElement(group, "path", {"d": paths[LAND_ID], "fill": mark["fill"]})
    else:
        rows = list(_iterate_joined_rows(layer))
        _add_marks(group, rows, (("path", {"d": paths[row["code"]]}) for row in rows))
    return group


def _draw_dots(layer: Spec, projection: Spec) -> Element:
    """A dot for each row of a layer."""
    mark, rows = layer["mark"], layer["data"]["values"]
    radius = format_coordinate(math.sqrt(mark["size"]) / 2)
    group = Element("g", {"stroke": mark["stroke"], "stroke-width": f"{mark['strokeWidth']:.3g}"})
    points = [
        [to + projection["scale"] * part for to, part in zip(projection["translate"], point, strict=True)]
        for point in (project(row["longitude"], row["latitude"]) for row in rows)
    ]
    circles = ({"cx": format_coordinate(x), "cy": format_coordinate(y), "r": radius} for x, y in points)
    _add_marks(group, rows, (("circle", circle) for circle in circles))
    return group


def _iterate_joined_rows(layer: Spec) -> Iterator[Spec]:
    """The rows of data that a layer joins to shapes."""
    for transform in layer["transform"]:
        if "lookup" in transform:
            yield from transform["from"]["data"]["values"]


def _add_marks(group: Element, rows: Iterable[Spec], marks: Iterable[tuple[str, dict[str, str]]]) -> None:
    """Add a mark for each row, with its colour, and its text as the tooltip."""
    for row, (tag, attributes) in zip(rows, marks, strict=True):
        SubElement(SubElement(group, tag, attributes | {"fill": row["color"]}), "title").text = row["text"]


MIN_MARKER_RUN = 20
"""Number of equal symbols in sequence from which on they are drawn as the markers of one line."""
_DRAWN_TAGS = frozenset(("g", "path", "rect", "line", "circle", "text", "tspan"))
_INHERITED_ATTRIBUTES = (
    "fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "stroke-linecap",
    "text-anchor", "font-size", "font-weight", "font-style",
)  # fmt: skip
_COORDINATES = frozenset(("transform", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "height"))
_ATTRIBUTES = frozenset((*_INHERITED_ATTRIBUTES, *_COORDINATES, "d", "opacity", "clip-path"))
_MARKER_ATTRIBUTES = ("marker-start", "marker-mid", "marker-end")
_DEFAULT_VALUES = {"opacity": "1", "fill-opacity": "1", "text-anchor": "start", "font-weight": "normal"}
_TRANSLATE_PATTERN = re.compile(r"translate\([-\d.e]+,[-\d.e]+\)")
_REFERENCE_PATTERN = re.compile(r"url\(#([^)]+)\)")


def compact_view(view: Element, definitions: Mapping[str, Element], id_prefix: str) -> Element:
    """Copy a group of Vega's SVG without what is invisible or only for scripts, with coordinates to one decimal.

    Args:
        view: a group that was drawn by `figure_batches.join_specs`; it is not changed.
        definitions: elements of the drawing's `<defs>` by id.
        id_prefix: ids in the copy start with it.
    """
    compacted = _Compactor(id_prefix).compact(view, "g")
    compacted.attrib = {"fill": "none"}  # as in the root group of Vega's drawing
    _number_ids(compacted, definitions, id_prefix)
    return compacted


class _Compactor:
    """Copies elements; counts the markers of one figure."""

    def __init__(self, id_prefix: str) -> None:
        """Start with no markers."""
        self._marker_ids = (f"{id_prefix}-m{i}" for i in count(1))

    def compact(self, element: Element, tag: str) -> Element:
        """Copy an element of Vega's SVG; `tag` is its tag without the namespace."""
        compacted = Element(tag, _compact_attributes(element, tag))
        for run in _split_runs(element):
            symbol = self.compact(run[0], run[0].tag.removeprefix(SVG_NAMESPACE))
            if len(run) >= MIN_MARKER_RUN:
                compacted.extend(self._draw_markers(symbol, run))
            elif symbol.tag == "g" and not (len(symbol) and symbol.attrib):
                compacted.extend(list(symbol))
            else:
                compacted.append(symbol)
                compacted.extend(self.compact(other, symbol.tag) for other in run[1:])
        if element.text and element.text.strip():
            compacted.text = element.text
        if tag != "g" and (tooltip := element.get("aria-label")):
            title = Element("title")
            title.text = tooltip
            compacted.insert(0, title)
        _move_common_attributes(compacted)
        return compacted

    def _draw_markers(self, symbol: Element, run: Sequence[Element]) -> list[Element]:
        """A marker with the shape of equal symbols, and an invisible line through their positions that has it.

        A marker is drawn at each position, so that symbols that overlap add up as before.
        """
        marker_id = next(self._marker_ids)
        marker = Element("marker", {"id": marker_id, "overflow": "visible", "markerUnits": "userSpaceOnUse"})
        SubElement(marker, "path", {name: value for name, value in symbol.items() if name != "transform"})
        positions = " ".join(map(_position, run))
        line = {"d": f"M{positions}", "fill": "none", "stroke": "none"}
        return [marker, Element("path", line | dict.fromkeys(_MARKER_ATTRIBUTES, f"url(#{marker_id})"))]


def _split_runs(parent: Element) -> list[list[Element]]:
    """Split the visible children of an element into runs of symbols that differ only in their position.

    Any other child is a run of its own, and so is a symbol with a tooltip.
    """
    runs: list[list[Element]] = []
    previous: dict[str, str] | None = None
    for child in _iterate_visible(parent):
        attributes: dict[str, str] | None = None
        if child.tag == f"{SVG_NAMESPACE}path" and "aria-label" not in child.attrib:
            attributes = dict(child.attrib)
            if not _TRANSLATE_PATTERN.fullmatch(attributes.pop("transform", "")):
                attributes = None
        if attributes is not None and attributes == previous:
            runs[-1].append(child)
        else:
            runs.append([child])
        previous = attributes
    return runs


def _iterate_visible(parent: Element) -> Iterator[Element]:
    """Children of an element of Vega's SVG that draw something."""
    for child in parent:
        tag, attributes = child.tag.removeprefix(SVG_NAMESPACE), child.attrib
        if tag not in _DRAWN_TAGS or attributes.get("display") == "none" or attributes.get("opacity") == "0":
            continue
        is_unpainted = attributes.get("fill", "none") == "none" and attributes.get("stroke", "none") == "none"
        if (tag == "path" and is_unpainted) or (tag == "text" and not "".join(child.itertext()).strip()):
            continue
        yield child


def _position(symbol: Element) -> str:
    """The point to which a symbol is moved, as SVG writes it in a path."""
    x, y = symbol.attrib["transform"].removeprefix("translate(").removesuffix(")").split(",")
    return f"{format_coordinate(float(x))} {format_coordinate(float(y))}"


def _compact_attributes(element: Element, tag: str) -> dict[str, str]:
    """The attributes of an element that a page needs; those with their default value are left out."""
    attributes: dict[str, str] = {}
    for name, value in element.attrib.items():
        if name == "d":
            attributes[name] = shorten_path(value)
        elif name in _COORDINATES:
            attributes[name] = round_coordinates(value)
        elif name in _ATTRIBUTES and value != _DEFAULT_VALUES.get(name):
            attributes[name] = value
    if attributes.get("transform") == "translate(0,0)":
        del attributes["transform"]
    if tag == "text":
        attributes["font-size"] = font_size(element)
    if attributes.get("stroke", "none") == "none" or attributes.get("stroke-width") == "0":
        attributes = {name: value for name, value in attributes.items() if not name.startswith("stroke-")}
    return attributes


def _move_common_attributes(group: Element) -> None:
    """Move attributes that all children of a group have in common to the group, whose children inherit them."""
    children = [child for child in group if child.tag not in ("title", "marker")]
    if len(children) < 2:
        return
    for name in _INHERITED_ATTRIBUTES:
        value = children[0].get(name)
        if value is None or name in group.attrib or any(child.get(name) != value for child in children):
            continue
        group.set(name, value)
        for child in children:
            del child.attrib[name]


def _number_ids(group: Element, definitions: Mapping[str, Element], id_prefix: str) -> None:
    """Copy the definitions that a group refers to, such as clip paths, into it, with ids of its own.

    Vega counts its ids on from drawing to drawing.
    """
    new_ids: dict[str, str] = {}
    for element in list(group.iter()):
        for name, value in element.attrib.items():
            for old_id in definitions.keys() & _REFERENCE_PATTERN.findall(value):
                new_ids.setdefault(old_id, f"{id_prefix}-d{len(new_ids) + 1}")
                element.set(name, value.replace(f"#{old_id})", f"#{new_ids[old_id]})"))
    for old_id, new_id in new_ids.items():
        definition = _copy_definition(definitions[old_id])
        definition.set("id", new_id)
        group.insert(0, definition)


def _copy_definition(element: Element) -> Element:
    """Copy a definition, without the namespace in its tags."""
    attributes = {name: round_coordinates(value) for name, value in element.items()}
    copied = Element(element.tag.removeprefix(SVG_NAMESPACE), attributes)
    copied.extend(map(_copy_definition, element))
    return copied
