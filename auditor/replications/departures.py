"""Departures of audits from what a paper describes, in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from auditor.reports.data.replication import Departure
from auditor.reports.number_format import format_count

MAX_LISTED = 8


def describe_departure(departure: Departure, *audits: str) -> Departure:
    """The departure of audits, with its description in words."""
    description = f"{departure.subject}: {departure.measured}{_describe_published(departure.published)}"
    return departure.model_copy(update={"description": description, "audits": list(audits)})


def _describe_published(published: str) -> str:
    """The published value, after ours; empty if there is none."""
    return f" (published: {published})" if published else ""


def merge_departures(departures: Iterable[Departure]) -> list[Departure]:
    """One departure for each id, with the audits that have it, and the values of each if they differ."""
    by_id: dict[str, list[Departure]] = {}
    for departure in departures:
        by_id.setdefault(departure.id, []).append(departure)
    return [_merge(same) for same in by_id.values()]


def _merge(departures: Sequence[Departure]) -> Departure:
    """Merge departures of one id; values that differ stand with their audits, and a common published one at the end."""
    audits_by_value: dict[tuple[str, str], dict[str, None]] = {}
    for entry in departures:
        audits_by_value.setdefault((entry.measured, entry.published), {}).update(dict.fromkeys(entry.audits))
    first, audits = departures[0], list(dict.fromkeys(name for entry in departures for name in entry.audits))
    if len(audits_by_value) == 1:
        return first.model_copy(update={"audits": audits})
    is_common = len({published for _, published in audits_by_value}) == 1
    texts = [
        f"{', '.join(names)} {measured}{'' if is_common else _describe_published(published)}"
        for (measured, published), names in audits_by_value.items()
    ]
    end = _describe_published(first.published) if is_common else ""
    return first.model_copy(update={"description": f"{first.subject}: {'; '.join(texts)}{end}", "audits": audits})


def format_setting(value: Any) -> str:
    """A setting's value as text; a long list is cut."""
    if isinstance(value, list):
        more = f" and {len(value) - MAX_LISTED} more" if len(value) > MAX_LISTED else ""
        return ", ".join(map(format_setting, value[:MAX_LISTED])) + more
    if isinstance(value, int) and not isinstance(value, bool):
        return format_count(value)
    return f"{value:g}" if isinstance(value, float) else str(value)
