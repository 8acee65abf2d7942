"""The units over which a report's intervals are computed."""

from __future__ import annotations

from collections.abc import Sequence

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
