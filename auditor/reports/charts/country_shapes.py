"""Shapes of countries and places for dots, by ISO 3166-1 alpha-3 code.

The shapes are `data/countries-110m.json`, Natural Earth at 1:110m (`data/countries-110m.LICENSE`), and
`data/country-paths.json` has them as Vega projects and draws them; places are those of `auditor.surveys`.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from auditor.surveys.countries import DATA_FOLDER, country_code

SHAPES_FILE = Path(__file__).parent / "data" / "countries-110m.json"
PATHS_FILE = SHAPES_FILE.with_name("country-paths.json")
PATHS_WIDTH_PX = 760
"""Width of the map whose paths are stored."""
LAND_ID = "land"
WORLD_DATASET = "world"
"""Name of the topology in specifications."""
MAX_DOT_AREA_KM2 = 25_000
"""Countries with smaller shapes have a dot, since their shapes can hardly be seen."""
SMALL_COUNTRIES = frozenset(
    {
        *("BHS", "BLZ", "BRN", "CYP", "DJI", "GMB", "ISR", "JAM", "KWT", "LBN", "LUX"),
        *("MNE", "PRI", "PSE", "QAT", "RWA", "SLV", "SVN", "SWZ", "TLS", "TTO", "XKX"),
    }
)
"""Countries with a shape smaller than that and with a place."""
_ANTARCTICA = "ATA"
_MAX_SPREAD_STEPS = 50


@cache
def load_topology() -> Mapping[str, Any]:
    """TopoJSON with an object `countries`: shapes with alpha-3 codes as ids, and all land as one shape, `LAND_ID`.

    Antarctica is left out. Northern Cyprus and Somaliland, which have no code, are part of the land only.
    """
    topology = json.loads(SHAPES_FILE.read_text(encoding="utf-8"))
    countries: list[Any] = []
    polygons: list[Any] = []
    for shape in topology["objects"]["countries"]["geometries"]:
        code = country_code(shape.get("id") or shape["properties"]["name"])
        if code == _ANTARCTICA:
            continue
        polygons += [shape["arcs"]] if shape["type"] == "Polygon" else shape["arcs"]
        if code is not None:
            countries.append({"type": shape["type"], "id": code, "arcs": shape["arcs"]})
    land = {"type": "MultiPolygon", "id": LAND_ID, "arcs": polygons}
    objects = {"countries": {"type": "GeometryCollection", "geometries": [land, *countries]}}
    return {key: topology[key] for key in ("type", "transform", "arcs")} | {"objects": objects}


@cache
def load_paths() -> Mapping[str, str]:
    """SVG paths by country code, and of all land by `LAND_ID`, in the projection of a map of `PATHS_WIDTH_PX`."""
    paths: dict[str, str] = json.loads(PATHS_FILE.read_text(encoding="utf-8"))
    return paths


@cache
def shape_codes() -> frozenset[str]:
    """Codes of the countries that have a shape."""
    return frozenset(load_paths()) - {LAND_ID}


@cache
def load_places() -> Mapping[str, tuple[float, float]]:
    """Longitude and latitude in degrees by country code."""
    with (DATA_FOLDER / "places.csv").open(encoding="utf-8", newline="") as file:
        return {row["code"]: (float(row["longitude"]), float(row["latitude"])) for row in csv.DictReader(file)}


def place_dots(codes: list[str], min_distance: float) -> dict[str, tuple[float, float]]:
    """Longitude and latitude of a dot for each country, moved apart where dots would hide each other.

    Args:
        codes: countries that have a place.
        min_distance: between two dots, in degrees.
    """
    positions = np.array([load_places()[code] for code in codes], dtype=float).reshape(-1, 2)
    for _ in range(_MAX_SPREAD_STEPS):
        offsets = positions[:, None, :] - positions[None, :, :]
        distances = np.maximum(np.sqrt((offsets**2).sum(axis=2)), 1e-9)
        overlaps = np.clip(min_distance - distances, 0, None)
        np.fill_diagonal(overlaps, 0)
        if overlaps.max(initial=0) < min_distance / 50:
            break
        positions += (offsets / distances[:, :, None] * overlaps[:, :, None]).sum(axis=1) / 2
    return {code: (round(x, 2), round(y, 2)) for code, (x, y) in zip(codes, positions.tolist(), strict=True)}
