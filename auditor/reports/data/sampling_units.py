"""The units over which a report's intervals are computed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from auditor.domain import Cell
from auditor.metrics.jackknife import UnitLabels

Units = dict[str, Sequence[str]]
"""For each kind of unit, such as `country`, the unit of each observation."""
MIN_ZONES = 6
"""Fewest cultural zones by which countries are clustered; with fewer, intervals take countries as independent."""


def cluster_countries(
    countries: Sequence[str], zone_by_country: Mapping[str, str], included: NDArray[np.bool_]
) -> UnitLabels:
    """Cluster countries by cultural zone if the included cells are in at least six zones, else by country.

    A country in no zone is a zone of its own and does not count towards the six.

    Args:
        countries: of each cell.
        included: whether a figure uses the cell, shape (cells,).

    Returns:
        Labels of all cells, shape (cells,).
    """
    names = np.array(countries, dtype=np.str_)
    included_countries = {str(country) for country in np.unique(names[included])}
    zones = {zone_by_country[country] for country in included_countries if country in zone_by_country}
    if len(zones) < MIN_ZONES:
        return UnitLabels(names)
    # A country may have the name of a zone.
    labels = [f"zone {zone_by_country[name]}" if name in zone_by_country else name for name in countries]
    return UnitLabels(np.array(labels, dtype=np.str_), "zone")


def sampling_units(countries: Sequence[str], topics: Sequence[str]) -> Units:
    """The units of observations in cells: countries and topics, or the items of a task.

    Args:
        countries, topics: of the cell of each observation; the countries are empty for a task.
    """
    if any(countries):
        return {"country": countries, "topic": topics}
    return {"item": topics}


def cell_units(cells: Iterable[Cell]) -> Units:
    """The units of observations that are in these cells, in their order."""
    places = [(cell.country, cell.topic) for cell in cells]
    return sampling_units([country for country, _ in places], [topic for _, topic in places])
