"""The units over which a report's intervals are computed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from auditor.domain import Cell

Units = dict[str, Sequence[str]]
"""For each kind of unit, such as `country`, the unit of each observation."""


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
