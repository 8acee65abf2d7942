"""Departures of audits from what a paper describes, in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from auditor.reports.data.replication import Departure
from auditor.reports.number_format import format_count


def describe_departure(departure: Departure, *audits: str) -> Departure:
    """The departure of audits, with its description in words."""
    published = f", published {departure.published}" if departure.published else ""
    description = f"{departure.subject}: {departure.measured}{published}"
    return departure.model_copy(update={"description": description, "audits": list(audits)})


def merge_departures(departures: Iterable[Departure]) -> list[Departure]:
    """One departure for each id, with the audits that have it, and the values of each if they differ."""
    by_id: dict[str, list[Departure]] = {}
    for departure in departures:
        by_id.setdefault(departure.id, []).append(departure)
    return [_merge(same) for same in by_id.values()]


def _merge(departures: Sequence[Departure]) -> Departure:
    """Merge departures of one id."""
    first, audits = departures[0], list(dict.fromkeys(name for entry in departures for name in entry.audits))
    values = dict.fromkeys((entry.measured, entry.published) for entry in departures)
    if len(values) == 1:
        return first.model_copy(update={"audits": audits})
    audits_by_value = {
        value: list(
            dict.fromkeys(
                name for entry in departures if (entry.measured, entry.published) == value for name in entry.audits
            )
        )
        for value in values
    }
    published = {value[1] for value in values}
    texts = [
        f"{', '.join(names)} {measured}" + (f" (published {value})" if value and len(published) > 1 else "")
        for (measured, value), names in audits_by_value.items()
    ]
    same = f", published {first.published}" if len(published) == 1 and first.published else ""
    return first.model_copy(update={"description": f"{first.subject}: {'; '.join(texts)}{same}", "audits": audits})


def format_setting(value: Any) -> str:
    """A setting's value as text."""
    if isinstance(value, list):
        return ", ".join(map(format_setting, value))
    if isinstance(value, int) and not isinstance(value, bool):
        return format_count(value)
    return f"{value:g}" if isinstance(value, float) else str(value)
