"""Groups of figures that a preset names once, such as a share as the mean over sets and pooled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

GROUPS_KEY = "figure_groups"


def expand_groups(paper: Mapping[str, Any]) -> dict[str, Any]:
    """Replace each reference to a group, such as `{ group = "agreement", audit = "SummEval" }`, by its figures.

    The audit of a reference is that of the figures, its departures are added to theirs, and any other value is put in
    the place of its name in braces.

    Args:
        paper: as a preset's file has it; the figures of its tables are changed.

    Returns:
        The paper without its groups.

    Raises:
        ValueError: there is no such group.
    """
    groups = paper.get(GROUPS_KEY, {})
    for figures in _iterate_figures(paper["tables"]):
        for column, entry in figures.items():
            if isinstance(entry, Mapping):
                figures[column] = _expand(groups, **entry)
    return {key: value for key, value in paper.items() if key != GROUPS_KEY}


def _iterate_figures(tables: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the figures by column of all tables, their forms and their rows."""
    for table in tables:
        yield table.get("figures", {})
        yield from table.get("forms", {}).values()
        yield from (row.get("figures", {}) for row in table["rows"])


def _expand(
    groups: Mapping[str, Any], group: str, audit: str, departures: Sequence[str] = (), **values: object
) -> list[dict[str, Any]]:
    """The figures of a group for one audit."""
    if group not in groups:
        raise ValueError(f"there is no group of figures '{group}'")
    return [
        {
            **source,
            "model_figure": source["model_figure"].format_map(values),
            "audit": audit,
            "departures": [*source.get("departures", ()), *departures],
        }
        for source in groups[group]
    ]
