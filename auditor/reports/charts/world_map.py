"""World maps: each country is coloured by a number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from auditor.reports.charts.theme import VegaLiteSpec

SMALL_MAP_WIDTH_PX = 520
"""Width of a map that stands in a grid beside others."""
LARGE_MAP_WIDTH_PX = 860


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

    spec: VegaLiteSpec | None
    unplaced: tuple[str, ...]


def difference_map(estimates: Sequence[CountryEstimate], width_px: int = SMALL_MAP_WIDTH_PX) -> WorldMap:
    """Map a model's signed difference from people by country: negative is stricter, positive more permissive."""
    raise NotImplementedError


def error_map(estimates: Sequence[CountryEstimate], width_px: int = LARGE_MAP_WIDTH_PX) -> WorldMap:
    """Map the mean absolute error by country: the stronger the colour, the further from people."""
    raise NotImplementedError
