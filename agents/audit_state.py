"""State of the graph: ids and counts, never texts. Answers are kept in the ledger, not in the state."""

from __future__ import annotations

from typing import TypedDict


class Batch(TypedDict):
    """A range of positions, [start, stop), in a list of the audit: of cells, questions or pairs of items."""

    start: int
    stop: int


def split_into_batches(n: int, size: int, start: int = 0) -> list[Batch]:
    """Split the positions from `start` up to `n`, exclusive, into batches of at most `size`."""
    return [Batch(start=first, stop=min(first + size, n)) for first in range(start, n, size)]


class AuditState(TypedDict, total=False):
    """State of one audit's graph.

    Keys:
        config_hash: hash of the configuration at the start of the run.
        cells: number of cells in the audit.
        measures: how log-probabilities are obtained, by model name (None: not available); empty without the probe.
        conflicts, open: number of conflicts, and of those left to a person.
    """

    config_hash: str
    cells: int
    measures: dict[str, str | None]
    conflicts: int
    open: int


class BranchResult(TypedDict):
    """What a branch returns that runs beside others: nothing, since all results are stored."""
