"""Draw the layers of a map for a page from stored paths.

Vega would take a tenth of a second to read the shapes of all countries and to project them. Files have the shapes, and
are drawn by Vega.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from xml.etree.ElementTree import Element, SubElement

from auditor.reports.charts.country_shapes import LAND_ID, PATHS_WIDTH_PX, WORLD_DATASET, load_paths
from auditor.reports.charts.equal_earth import EARTH_WIDTH, EQUATOR_SHARE, project
from auditor.reports.render.svg_paths import format_coordinate

Spec = Mapping[str, Any]


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
