"""A world map of tiles: one square a country, where it lies among the others, so that small countries are seen too."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from markupsafe import Markup
from scipy.optimize import linear_sum_assignment

from auditor.reports.measurement_schema import GroupErrorRow
from auditor.reports.pages.number_format import format_number
from auditor.reports.report_schema import Report
from auditor.surveys.countries import DATA_FOLDER, country_code
from auditor.text_safety import escape_invisible

TILE_SIZE, TILE_GAP = 30, 3
DEGREES_PER_TILE = 11.0
"""Of longitude that a tile stands for where there is room."""
SHADE_BOUNDS = (0.1, 0.2, 0.3, 0.4)
"""Bounds between the shades, in units of mean error."""
LATITUDE_STRETCH = 1.3
"""Rows are nearer together than degrees of latitude, since most countries lie in the north."""


class CountryTile(NamedTuple):
    """A country's place on the grid, row and column from the upper left."""

    country: str
    code: str
    row: int
    column: int


@cache
def _load_coordinates() -> Mapping[str, tuple[float, float]]:
    with (DATA_FOLDER / "places.csv").open(encoding="utf-8", newline="") as file:
        return {r["code"]: (float(r["latitude"]), float(r["longitude"])) for r in csv.DictReader(file)}


def layout_tiles(countries: Sequence[str]) -> tuple[list[CountryTile], list[str]]:
    """Countries on a grid, each as near as can be to where it lies, no two on one square.

    The sum of squared distances is the smallest there is (an assignment problem: Kuhn, Naval Research Logistics 2,
    1955), so that the layout depends on nothing but the set of countries.

    Returns:
        The tiles, and the countries that have no place, such as regions or groups of one's own.
    """
    codes = {name: country_code(name) or "" for name in sorted(set(countries))}
    known = {name: code for name, code in codes.items() if code in _load_coordinates()}
    lost = [name for name in dict.fromkeys(countries) if name not in known]
    if not known:
        return [], lost
    where = np.array([_load_coordinates()[code] for code in known.values()])
    wanted = np.stack([-where[:, 0] * LATITUDE_STRETCH / DEGREES_PER_TILE, where[:, 1] / DEGREES_PER_TILE], axis=1)
    low, high = np.floor(wanted.min(axis=0)) - 3, np.ceil(wanted.max(axis=0)) + 3
    grid = np.array([(r, c) for r in np.arange(low[0], high[0] + 1) for c in np.arange(low[1], high[1] + 1)])
    apart = ((wanted[:, None, :] - grid[None, :, :]) ** 2).sum(axis=2)
    _, chosen = linear_sum_assignment(apart)
    spots = grid[chosen]
    first = spots.min(axis=0)
    return [
        CountryTile(name, code, int(spot[0] - first[0]), int(spot[1] - first[1]))
        for (name, code), spot in zip(known.items(), spots, strict=True)
    ], lost


def mean_error_by_country(rows: Sequence[GroupErrorRow]) -> dict[str, float]:
    """Mean over models of the mean error in each country, of those that have one."""
    found: dict[str, list[float]] = {}
    for row in rows:
        if row.mae.value is not None:
            found.setdefault(row.name, []).append(row.mae.value)
    return {name: float(np.mean(values)) for name, values in found.items()}


def draw_error_map(mean_errors: Mapping[str, float], title: str, description: str) -> Markup:
    """The map as SVG; the stronger a tile, the further from people. Empty where no country has a place."""
    laid, _ = layout_tiles(list(mean_errors))
    if not laid:
        return Markup("")
    width = (max(t.column for t in laid) + 1) * (TILE_SIZE + TILE_GAP)
    height = (max(t.row for t in laid) + 1) * (TILE_SIZE + TILE_GAP)
    parts = [_draw_tile(tile, mean_errors[tile.country]) for tile in laid]
    return Markup('<svg class="map" viewBox="0 0 {} {}" role="img"><title>{}</title><desc>{}</desc>{}</svg>').format(
        width, height, escape_invisible(title), escape_invisible(description), Markup("").join(parts)
    )


class WorldMap:
    """The map of a report, with what the page says beside it."""

    def __init__(self, report: Report) -> None:
        values = mean_error_by_country(report.countries)
        self.unplaced_countries = layout_tiles(list(values))[1]
        self.n_columns = len({(row.model, row.method) for row in report.countries if row.mae.value is not None})
        title = "Mean error by country"
        self.svg = draw_error_map(
            values, title, "A square for each country; the stronger its colour, the further from its people."
        )
        self.legend = list(zip((0.0, *SHADE_BOUNDS), (*SHADE_BOUNDS, None), strict=True))


def shade_level(value: float) -> int:
    """0 for the smallest errors to 4 for the largest."""
    return sum(value >= step for step in SHADE_BOUNDS)


def _draw_tile(tile: CountryTile, mean_error: float) -> Markup:
    x, y, middle = tile.column * (TILE_SIZE + TILE_GAP), tile.row * (TILE_SIZE + TILE_GAP), TILE_SIZE // 2
    return Markup(
        '<g class="t{}"><title>{}: {}</title><rect x="{}" y="{}" width="{}" height="{}" rx="3"/>'
        '<text class="middle" x="{}" y="{}">{}</text></g>'
    ).format(
        shade_level(mean_error),
        escape_invisible(tile.country),
        format_number(mean_error),
        x,
        y,
        TILE_SIZE,
        TILE_SIZE,
        x + middle,
        y + middle + 4,
        tile.code,
    )
