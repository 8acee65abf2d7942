"""Conflicts between models counted by cell, in which several pairs of models may conflict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from auditor.domain import Cell, Conflict, ConflictKind, ConflictSides, ConflictState, Method
from auditor.reports.data.conflicts.schema import ConflictCellsReport
from auditor.reports.data.report_source import ReportSource


def count_conflict_cells(source: ReportSource, conflicts: Sequence[Conflict]) -> ConflictCellsReport | None:
    """Count the cells in conflict by the kind and the state of their largest difference.

    Args:
        conflicts: between models, on which judges vote; the first of equal differences stands for its cell.

    Returns:
        None for imported scores, among which no conflicts were sought, and for a task.
    """
    if source.config is None or source.survey.task is not None:
        return None
    largest: dict[Cell, Conflict] = {}
    for conflict in conflicts:
        other = largest.get(conflict.cell)
        if other is None or abs(conflict.difference or 0.0) > abs(other.difference or 0.0):
            largest[conflict.cell] = conflict
    is_direct = [method == Method.DIRECT for method, _ in source.columns]
    n_scores = (~np.isnan(source.score_matrix[is_direct])).sum(axis=0)
    settled = sum(conflict.state is ConflictState.MAJORITY for conflict in largest.values())
    kinds = _count_kinds(largest.values())
    return ConflictCellsReport(
        cells=len(largest),
        compared=int((n_scores >= 2).sum()),
        kinds=kinds,
        kind_shares=_to_shares(kinds),
        settled=settled,
        settled_share=settled / len(largest) if largest else None,
        pairs=len(conflicts),
        pair_kind_shares=_to_shares(_count_kinds(conflicts)),
    )


def _count_kinds(conflicts: Iterable[Conflict]) -> dict[str, int]:
    """Number of conflicts by kind, in the order of the kinds; 0 for kinds of scores that none has."""
    counts = Counter(conflict.kind for conflict in conflicts)
    return {kind.value: counts[kind] for kind in ConflictKind if kind.spec.sides is ConflictSides.SCORES}


def _to_shares(counts: Mapping[str, int]) -> dict[str, float]:
    """Counts as shares of their sum; empty if it is 0."""
    total = sum(counts.values())
    return {name: count / total for name, count in counts.items()} if total else {}
