"""Tile map of the world: one square for each country near its true position, so that small countries are visible."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from markupsafe import Markup
from scipy.optimize import linear_sum_assignment

from auditor.reports.data.measurement_schema import GroupErrorRow
from auditor.reports.data.report_schema import Report
from auditor.reports.number_format import format_number
from auditor.surveys.countries import DATA_FOLDER, country_code
from auditor.text_safety import escape_invisible

TILE_SIZE, TILE_GAP = 30, 3
DEGREES_PER_TILE = 11.0
"""Degrees of longitude for each column of tiles, where there is room."""
SHADE_BOUNDS = (0.1, 0.2, 0.3, 0.4)
"""Mean errors at which the shade of a tile changes."""
LATITUDE_STRETCH = 1.3
"""Factor by which latitudes are stretched: most countries lie in the north, where rows would be crowded."""


class CountryTile(NamedTuple):
    """A country's position on the grid; row and column count from the upper left, from 0."""

    country: str
    code: str
    row: int
    column: int


@cache
def _load_coordinates() -> Mapping[str, tuple[float, float]]:
    """Latitude and longitude in degrees by country code."""
    with (DATA_FOLDER / "places.csv").open(encoding="utf-8", newline="") as file:
        return {row["code"]: (float(row["latitude"]), float(row["longitude"])) for row in csv.DictReader(file)}


def layout_tiles(countries: Sequence[str]) -> tuple[list[CountryTile], list[str]]:
    """Assign each country its own square of a grid, as near as possible to its coordinates.

    Minimizes the sum of squared distances (an assignment problem: Kuhn, Naval Research Logistics 2, 1955), so that the
    layout depends only on the set of countries.

    Returns:
        The tiles, and the names without coordinates, such as regions or user-defined groups.
    """
    codes = {name: country_code(name) or "" for name in sorted(set(countries))}
    placed_codes = {name: code for name, code in codes.items() if code in _load_coordinates()}
    unplaced = [name for name in dict.fromkeys(countries) if name not in placed_codes]
    if not placed_codes:
        return [], unplaced
    coordinates = np.array([_load_coordinates()[code] for code in placed_codes.values()])
    ideal_positions = np.stack(
        [-coordinates[:, 0] * LATITUDE_STRETCH / DEGREES_PER_TILE, coordinates[:, 1] / DEGREES_PER_TILE], axis=1
    )
    grid_low, grid_high = np.floor(ideal_positions.min(axis=0)) - 3, np.ceil(ideal_positions.max(axis=0)) + 3
    grid = np.array(
        [(r, c) for r in np.arange(grid_low[0], grid_high[0] + 1) for c in np.arange(grid_low[1], grid_high[1] + 1)]
    )
    squared_distances = ((ideal_positions[:, None, :] - grid[None, :, :]) ** 2).sum(axis=2)
    _, grid_indices = linear_sum_assignment(squared_distances)
    positions = grid[grid_indices]
    corner = positions.min(axis=0)
    return [
        CountryTile(name, code, int(position[0] - corner[0]), int(position[1] - corner[1]))
        for (name, code), position in zip(placed_codes.items(), positions, strict=True)
    ], unplaced


def mean_error_by_country(rows: Sequence[GroupErrorRow]) -> dict[str, float]:
    """Mean over models of the MAE in each country; countries without any MAE are left out."""
    errors_by_country: dict[str, list[float]] = {}
    for row in rows:
        if row.mae.value is not None:
            errors_by_country.setdefault(row.name, []).append(row.mae.value)
    return {name: float(np.mean(errors)) for name, errors in errors_by_country.items()}


def draw_error_map(mean_errors: Mapping[str, float], title: str, description: str) -> Markup:
    """Draw the map as SVG; a stronger colour is a larger error. Empty if no country has coordinates.

    Args:
        mean_errors: mean error by country.
    """
    tiles, _ = layout_tiles(list(mean_errors))
    if not tiles:
        return Markup("")
    width = (max(tile.column for tile in tiles) + 1) * (TILE_SIZE + TILE_GAP)
    height = (max(tile.row for tile in tiles) + 1) * (TILE_SIZE + TILE_GAP)
    elements = [_draw_tile(tile, mean_errors[tile.country]) for tile in tiles]
    return Markup('<svg class="map" viewBox="0 0 {} {}" role="img"><title>{}</title><desc>{}</desc>{}</svg>').format(
        width, height, escape_invisible(title), escape_invisible(description), Markup("").join(elements)
    )


class WorldMap:
    """The tile map of a report's mean errors, with its legend.

    Attributes:
        unplaced_countries: countries without coordinates.
        n_columns: number of series of scores that the errors are averaged over.
        svg: the map; empty if no country has coordinates.
        legend: lower and upper error of each shade; None for the last upper one.
    """

    def __init__(self, report: Report) -> None:
        """Draw the map of a report's mean errors by country."""
        mean_errors = mean_error_by_country(report.countries)
        self.unplaced_countries = layout_tiles(list(mean_errors))[1]
        self.n_columns = len({(row.model, row.method) for row in report.countries if row.mae.value is not None})
        title = "Mean error by country"
        self.svg = draw_error_map(
            mean_errors, title, "A square for each country; the stronger its colour, the further from its people."
        )
        self.legend = list(zip((0.0, *SHADE_BOUNDS), (*SHADE_BOUNDS, None), strict=True))


def shade_level(value: float) -> int:
    """Index of the shade of an error, from 0 (smallest) to 4 (largest)."""
    return sum(value >= bound for bound in SHADE_BOUNDS)


def _draw_tile(tile: CountryTile, mean_error: float) -> Markup:
    """Draw a country's square, shaded by its mean error, with its code in it and a tooltip with its name and error."""
    x, y, half_size = tile.column * (TILE_SIZE + TILE_GAP), tile.row * (TILE_SIZE + TILE_GAP), TILE_SIZE // 2
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
        x + half_size,
        y + half_size + 4,
        tile.code,
    )
