"""World maps: each country is coloured by a number, in the Equal Earth projection."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from auditor.reports.charts import theme
from auditor.reports.number_format import format_number, format_signed, pluralize
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


CENTRAL_MERIDIAN_DEGREES = 11
"""Longitude of the middle of the map, so that its edge is in the Bering Strait."""
EQUATOR_SHARE = 0.253
"""Distance of the equator from the upper edge of a map, as a share of its width."""
EARTH_WIDTH = 5.2
"""Width of the map's land in the projection at scale 1."""
_COEFFICIENTS = (1.340264, -0.081106, 0.000893, 0.003796)
"""A1 to A4 of Šavrič, Patterson and Jenny (2018), doi:10.1080/13658816.2018.1504949."""
_SINE_FACTOR = math.sqrt(3) / 2


def build_projection(width_px: float) -> dict[str, object]:
    """Specify the projection of a map of some width for Vega-Lite."""
    return {
        "type": "equalEarth",
        "rotate": [-CENTRAL_MERIDIAN_DEGREES, 0, 0],
        # Without added points along straight lines: the shapes have enough, and looking for them takes time.
        "precision": 0,
        "scale": width_px / EARTH_WIDTH,
        "translate": [width_px / 2, round(width_px * EQUATOR_SHARE)],
    }


def project(longitude: float, latitude: float) -> tuple[float, float]:
    """Point of a longitude and latitude in degrees at scale 1, from the middle of the map: to the right, and down."""
    rotated = (longitude - CENTRAL_MERIDIAN_DEGREES + 180) % 360 - 180
    angle = math.asin(_SINE_FACTOR * math.sin(math.radians(latitude)))
    a1, a2, a3, a4 = _COEFFICIENTS
    square = angle**2
    slope = a1 + 3 * a2 * square + square**3 * (7 * a3 + 9 * a4 * square)
    x = math.radians(rotated) * math.cos(angle) / (_SINE_FACTOR * slope)
    y = angle * (a1 + a2 * square + square**3 * (a3 + a4 * square))
    return x, -y


SMALL_MAP_WIDTH_PX = 520
"""Width of a map that stands in a grid beside others."""
LARGE_MAP_WIDTH_PX = 760
DIFFERENCE_BOUNDS = (-0.7, -0.5, -0.3, -0.1, 0.1, 0.3, 0.5, 0.7)
"""Differences at which the colour changes."""
ERROR_STEPS = (0.05, 0.1, 0.2, 0.3, 0.4)
"""Distances between the mean absolute errors at which the colour changes; a map has the smallest that covers it."""
ROUNDING_ERROR = 1e-9
HEIGHT_SHARE = 0.453
"""Height of the map as a share of its width; it is cut at 57° south."""
DOT_RADIUS_SHARE = 0.0062
"""Radius of a dot, as a share of the map's width."""
MIN_DOT_DISTANCE = 3
"""Degrees between two dots."""
LEGEND_HEIGHT_PX, LEGEND_FONT_SIZE_PX = 62, 13.5
BAND_WIDTH_PX, BAND_HEIGHT_PX = 40, 11


@dataclass(frozen=True, slots=True)
class CountryEstimate:
    """A number for one country, with its 95% confidence interval.

    Attributes:
        country: name of a country in any spelling that `auditor.surveys.countries` knows.
        n: number of cells that the estimate is from.
    """

    country: str
    value: float
    ci_low: float | None = None
    ci_high: float | None = None
    n: int | None = None


@dataclass(frozen=True, slots=True)
class WorldMap:
    """A map and what is missing on it.

    Attributes:
        spec: None if no country could be placed.
        unplaced: names that are not on the map, in the order given, such as regions or user-defined groups.
    """

    spec: theme.VegaLiteSpec | None
    unplaced: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _ColorScale:
    """Colours of a map.

    Attributes:
        bounds: numbers at which the colour changes, one less than colours.
        titles: what the lowest and the highest colours mean.
    """

    bounds: Sequence[float]
    colors: Sequence[str]
    titles: tuple[str, str]
    is_signed: bool

    def format(self, value: float, digits: int = 2) -> str:
        """Format a number of the scale."""
        return format_signed(value, digits) if self.is_signed else format_number(value, digits)

    def color(self, value: float) -> str:
        """Colour of a number; one on a bound has the stronger of two colours."""
        size = abs(value) if self.is_signed else value
        upper_bounds = [bound for bound in self.bounds if bound > 0]
        step = sum(size >= bound for bound in upper_bounds)
        middle = len(self.colors) - len(upper_bounds) - 1
        return self.colors[middle - step if value < 0 and self.is_signed else middle + step]


_DIFFERENCE_SCALE = _ColorScale(
    DIFFERENCE_BOUNDS, theme.DIFFERENCE_COLORS, ("← Stricter than people", "More permissive →"), True
)


def difference_map(estimates: Sequence[CountryEstimate], width_px: int = SMALL_MAP_WIDTH_PX) -> WorldMap:
    """Map a model's signed difference from people by country: negative is stricter, positive more permissive."""
    return _world_map(estimates, width_px, _DIFFERENCE_SCALE)


def error_map(estimates: Sequence[CountryEstimate], width_px: int = LARGE_MAP_WIDTH_PX) -> WorldMap:
    """Map the mean absolute error by country: the stronger the colour, the further from people."""
    titles = ("Mean absolute error (lower is better)", "")
    scale = _ColorScale(error_bounds([estimate.value for estimate in estimates]), theme.ERROR_COLORS, titles, False)
    return _world_map(estimates, width_px, scale)


def error_bounds(errors: Sequence[float]) -> list[float]:
    """Errors at which the colour changes: multiples of a step, such that the colours cover all errors."""
    low, high = max(min(errors, default=0.0), 0.0), max(errors, default=0.0)
    n_bounds = len(theme.ERROR_COLORS) - 1
    for step in ERROR_STEPS:
        first = int(low / step + ROUNDING_ERROR) + 1
        bounds = [round(step * (first + i), 2) for i in range(n_bounds)]
        if high <= bounds[-1] + step or step == ERROR_STEPS[-1]:
            break
    return bounds


def _world_map(estimates: Sequence[CountryEstimate], width_px: int, scale: _ColorScale) -> WorldMap:
    """Colour the countries; of two names for one country, the second is not placed."""
    rows: dict[str, dict[str, object]] = {}
    unplaced = []
    for estimate in estimates:
        code = country_code(estimate.country)
        if code is None or code in rows or code not in shape_codes() | load_places().keys():
            unplaced.append(estimate.country)
            continue
        rows[code] = {
            "code": code,
            "country": theme.clean_text(estimate.country),
            "value": estimate.value,
            "text": _describe(estimate, scale),
            "color": scale.color(estimate.value),
        }
    if not rows:
        return WorldMap(None, tuple(unplaced))
    return WorldMap(_build_map_spec(rows, width_px, scale), tuple(unplaced))


def _build_map_spec(rows: Mapping[str, Mapping[str, object]], width_px: int, scale: _ColorScale) -> theme.VegaLiteSpec:
    """Specify a map of the countries; `rows` has the data of each by its code."""
    height = round(width_px * HEIGHT_SHARE)
    dots = place_dots([code for code in rows if code in SMALL_COUNTRIES or code not in shape_codes()], MIN_DOT_DISTANCE)
    dot_rows = [{**rows[code], "longitude": x, "latitude": y} for code, (x, y) in dots.items()]
    shape_rows = [row for code, row in rows.items() if code not in dots]
    lookup = {"data": {"values": list(shape_rows)}, "key": "code", "fields": ["country", "value", "text", "color"]}
    return theme.build_spec(
        [
            _land_layer(),
            {
                "transform": [{"lookup": "id", "from": lookup}, {"filter": "isValid(datum.value)"}],
                "mark": {"type": "geoshape", "stroke": theme.MUTED, "strokeWidth": 0.5, "clip": False, "aria": True},
                "encoding": _country_encoding(),
            },
            *([_dot_layer(dot_rows, width_px)] if dot_rows else []),
            *_legend_layers(scale, width_px, height),
        ],
        width=width_px,
        height=height,
        padding=(0, 0, 0, LEGEND_HEIGHT_PX),
        data={"name": WORLD_DATASET, "format": {"type": "topojson", "feature": "countries"}},
        projection=build_projection(width_px),
    )


def _describe(estimate: CountryEstimate, scale: _ColorScale) -> str:
    """Text alternative of a country: name, number, interval and number of cells."""
    details = []
    if estimate.ci_low is not None and estimate.ci_high is not None:
        details.append(f"95% CI {scale.format(estimate.ci_low)} to {scale.format(estimate.ci_high)}")
    if estimate.n is not None:
        details.append(pluralize(estimate.n, "cell"))
    suffix = f" ({', '.join(details)})" if details else ""
    return f"{theme.clean_text(estimate.country)}: {scale.format(estimate.value)}{suffix}"


def _land_layer() -> dict[str, object]:
    """All land in one neutral shape; where it remains visible, there are no data."""
    return {
        "transform": [{"filter": f"datum.id === '{LAND_ID}'"}],
        "mark": {
            "type": "geoshape",
            "fill": theme.PAPER,
            "stroke": theme.RULE,
            "strokeWidth": 0.7,
            "clip": False,
            "aria": False,
        },
    }


def _dot_layer(rows: Sequence[Mapping[str, object]], width_px: int) -> dict[str, object]:
    """Dots for countries without a shape, or with one that is too small to see."""
    size = 4 * (DOT_RADIUS_SHARE * width_px) ** 2
    return {
        "data": {"values": list(rows)},
        "mark": {
            "type": "circle",
            "size": size,
            "stroke": theme.MUTED,
            "strokeWidth": 0.5,
            "opacity": 1,
            "clip": False,
        },
        "encoding": {
            **{channel: {"field": channel, "type": "quantitative"} for channel in ("longitude", "latitude")},
            **_country_encoding(),
        },
    }


def _country_encoding() -> dict[str, object]:
    """Encoding of a country's colour and text alternative."""
    return {
        "fill": {"field": "color", "type": "nominal", "scale": None},
        "description": {"field": "text", "type": "nominal"},
    }


def _legend_layers(scale: _ColorScale, width_px: int, map_height: int) -> list[dict[str, object]]:
    """Bands of colour with the bounds between them, their meaning above, and the colour of missing data."""
    band_width = len(scale.colors) * BAND_WIDTH_PX
    left = (width_px - band_width) / 2 + BAND_WIDTH_PX
    title_y, band_y, label_y = map_height + 12, map_height + 24, map_height + 48
    bands = [
        theme.Swatch(left + i * BAND_WIDTH_PX, band_y, BAND_WIDTH_PX, BAND_HEIGHT_PX, color)
        for i, color in enumerate(scale.colors)
    ]
    bands.append(theme.Swatch(left - 2.4 * BAND_WIDTH_PX, band_y, BAND_WIDTH_PX, BAND_HEIGHT_PX, theme.PAPER))
    digits = 1 if all(round(bound, 1) == bound for bound in scale.bounds) else 2
    labels = [
        theme.LegendText(scale.format(bound, digits), left + (i + 1) * BAND_WIDTH_PX, label_y)
        for i, bound in enumerate(scale.bounds)
    ]
    labels.append(theme.LegendText("No data", left - 1.9 * BAND_WIDTH_PX, label_y))
    low_title, high_title = scale.titles
    font: dict[str, object] = {"fontSize": LEGEND_FONT_SIZE_PX}
    return [
        theme.swatch_layer(bands, stroke=theme.MUTED, strokeWidth=0.5),
        theme.text_layer(labels, align="center", **font),
        theme.text_layer([theme.LegendText(low_title, left, title_y)], align="left", **font),
        theme.text_layer([theme.LegendText(high_title, left + band_width, title_y)], align="right", **font),
    ]
