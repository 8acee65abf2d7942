"""Stored paths and projected points are those that Vega draws."""

from __future__ import annotations

import json
import os
import re
from typing import Any
from xml.etree import ElementTree

import pytest

from auditor.reports.charts.theme import build_spec
from auditor.reports.charts.world_map import (
    LAND_ID,
    PATHS_FILE,
    PATHS_WIDTH_PX,
    WORLD_DATASET,
    CountryEstimate,
    build_projection,
    difference_map,
    load_paths,
    project,
)
from auditor.reports.render.compact_svg import shorten_path
from auditor.reports.render.figures import export_svg


def draw_shapes() -> dict[str, str]:
    """The path that Vega draws for each shape, by its id."""
    encoding = {"description": {"field": "id", "type": "nominal"}}
    layer = {"mark": {"type": "geoshape", "clip": False}, "encoding": encoding}
    spec = build_spec(
        [layer],
        width=PATHS_WIDTH_PX,
        height=PATHS_WIDTH_PX / 2,
        padding=(0, 0, 0, 0),
        data={"name": WORLD_DATASET, "format": {"type": "topojson", "feature": "countries"}},
        projection=build_projection(PATHS_WIDTH_PX),
    )
    svg = ElementTree.fromstring(export_svg(spec))
    paths = svg.iter("{http://www.w3.org/2000/svg}path")
    return {path.attrib["aria-label"]: shorten_path(path.attrib["d"]) for path in paths if "aria-label" in path.attrib}


def test_stored_paths_are_those_that_vega_draws() -> None:
    """To store them again after a change of the shapes or the projection: `AUDITOR_GOLDEN=write pytest` this file."""
    paths = draw_shapes()
    if os.environ.get("AUDITOR_GOLDEN") == "write":
        lines = [f"{json.dumps(code)}:{json.dumps(paths[code])}" for code in sorted(paths)]
        PATHS_FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        load_paths.cache_clear()
    assert load_paths() == paths
    assert len(paths) == 175
    assert len(paths[LAND_ID]) > 40_000


@pytest.mark.parametrize("country", ["Singapore", "Luxembourg", "Trinidad and Tobago", "Hong Kong"])
def test_projected_points_are_those_that_vega_draws(country: str) -> None:
    spec: Any = difference_map([CountryEstimate(country, 0.2)]).spec
    [row] = next(layer["data"]["values"] for layer in spec["layer"] if "longitude" in layer.get("encoding", {}))
    drawn = re.findall(rf'aria-label="{country}[^"]*"[^>]*translate\(([-\d.]+),([-\d.]+)\)', export_svg(spec).decode())
    projection = spec["projection"]
    point = [
        start + projection["scale"] * part
        for start, part in zip(projection["translate"], project(row["longitude"], row["latitude"]), strict=True)
    ]
    assert [float(part) for part in drawn[0]] == pytest.approx(point, abs=0.01)
