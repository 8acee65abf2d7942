"""Conflicts counted by cell: each cell has the kind and the state of its largest difference."""

from __future__ import annotations

from collections import defaultdict

import pytest

from auditor.domain import Conflict, ConflictState
from auditor.reports.data.report_schema import Report
from auditor.storage import results
from auditor.storage.audits import Audit
from auditor.storage.database import Database


def test_a_cell_has_the_kind_and_the_state_of_its_largest_difference(
    population: tuple[Database, Audit], report: Report
) -> None:
    by_cell = defaultdict[tuple[str, str], list[Conflict]](list)
    for conflict in results.load_conflicts(population[0], population[1].id):
        if conflict.kind.is_voted:
            by_cell[conflict.cell].append(conflict)
    counts = report.conflicts.by_cell
    assert counts is not None
    assert counts.cells == len(by_cell)
    assert counts.pairs == sum(map(len, by_cell.values())) > counts.cells
    largest = [max(conflicts, key=lambda conflict: abs(conflict.difference or 0)) for conflicts in by_cell.values()]
    assert counts.settled == sum(conflict.state is ConflictState.MAJORITY for conflict in largest)
    assert counts.settled_share == pytest.approx(counts.settled / counts.cells)
    for kind, n_cells in counts.kinds.items():
        assert n_cells == sum(conflict.kind.value == kind for conflict in largest)
    assert sum(counts.kinds.values()) == counts.cells
    assert sum(counts.kind_shares.values()) == pytest.approx(1)
    assert sum(counts.pair_kind_shares.values()) == pytest.approx(1)
