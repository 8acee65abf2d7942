"""What the graph remembers: ids and counts, never texts. The ledger is what makes work durable."""

from __future__ import annotations

from typing import TypedDict


class CellBatch(TypedDict):
    """Some cells, by their position in the audit's list of cells: [start, stop)."""

    start: int
    stop: int


class AuditState(TypedDict, total=False):
    """State of one audit's graph.

    Keys:
        config_hash: of the configuration that the run began with.
        cells: number of cells in the audit.
        reached: cells that models were asked about so far; all, once nothing more is to be asked.
        measures: what each model's log-probabilities are read from, by name; empty where they are not asked for.
        conflicts, open: conflicts found, and those that are left for a person.
    """

    config_hash: str
    cells: int
    reached: int
    measures: dict[str, str | None]
    conflicts: int
    open: int
