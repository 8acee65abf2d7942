"""The report's counts of conflicts equal those of the stored rows."""

from __future__ import annotations

from collections import Counter

import pytest

from auditor.domain import Outcome
from auditor.reports.data import conflicts as module
from auditor.reports.data.build import build_report
from auditor.reports.data.report_schema import Report
from auditor.storage import results
from auditor.storage.audits import Audit
from auditor.storage.database import Database
from tests.support.synthetic_audit import populate


def test_counts_add_up(population: tuple[Database, Audit], report: Report) -> None:
    conflicts = results.load_conflicts(population[0], population[1].id)
    part = report.conflicts
    assert part.total == len(conflicts) == sum(part.states.values()) == sum(k.total for k in part.kinds)
    assert {k.kind: k.total for k in part.kinds if k.total} == Counter(conflict.kind.value for conflict in conflicts)
    assert {(p.left, p.right): p.total for p in part.pairs} == Counter(
        (conflict.left, conflict.right) for conflict in conflicts
    )
    assert all(p.total == sum(p.kinds.values()) for p in part.pairs)


def test_deciding_ratings_settle_conflicts(report: Report) -> None:
    # Seven ratings: five that settle, one skip, and one on scores that have changed since.
    assert report.conflicts.states["person"] == 5
    decided = {row.decision for row in report.conflicts.largest if row.state == "person"}
    assert decided == {"left", "right", "both", "neither", "score"}


def test_conflicts_are_sorted_by_size(report: Report) -> None:
    sizes = [abs(row.difference or 0.0) for row in report.conflicts.largest]
    assert sizes == sorted(sizes, reverse=True)
    assert report.conflicts.not_listed == 0


def test_only_the_largest_are_listed(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_LISTED_CONFLICTS", 3)
    monkeypatch.setattr(module, "MAX_REASONING_CHARS", 20)
    populate(db)
    part = build_report(db, "population").conflicts
    assert (len(part.largest), part.not_listed) == (3, part.total - 3)
    assert all(row.left.shortened and len(row.left.reasoning or "") == 20 for row in part.largest)


def test_the_quoted_reasoning_is_of_the_sample_nearest_to_the_score(
    population: tuple[Database, Audit], report: Report
) -> None:
    traces = results.load_traces(population[0], population[1].id)
    for row in report.conflicts.largest:
        for side in (row.left, row.right):
            cell_traces = [
                trace for trace in traces if (trace.model, *trace.cell) == (side.model, row.country, row.topic)
            ]
            scored = [trace for trace in cell_traces if trace.outcome is Outcome.OK and trace.score is not None]
            nearest = min(abs((t.score or 0.0) - (side.score or 0.0)) for t in scored)
            quoted_traces = [t for t in scored if t.text == side.reasoning]
            assert min(abs((trace.score or 0.0) - (side.score or 0.0)) for trace in quoted_traces) == nearest
