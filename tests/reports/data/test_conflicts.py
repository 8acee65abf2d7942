"""The report’s counts of conflicts equal those of the stored rows; cases of one cell count as one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binomtest

from auditor.domain import AnswerKind, Cell, CellScore, Conflict, ConflictKind, ConflictState, Outcome, Task, TaskItem
from auditor.reports.data import conflicts as module
from auditor.reports.data.conflicts import build_conflicts_report, compute_third_quartile, share_by_cell
from auditor.reports.data.report_schema import Report
from auditor.reports.data.report_source import load_source
from auditor.reports.output import render_report
from auditor.reports.sections.conflicts import describe_conflicts
from auditor.storage import results
from auditor.storage.audits import Audit
from auditor.storage.database import Database
from auditor.tasks import survey_from_task
from tests.reports.conftest import save_rows
from tests.support.known import known
from tests.support.report_changes import change
from tests.support.synthetic_audit import populate


def test_deciding_ratings_settle_conflicts(report: Report) -> None:
    # Seven ratings: five that settle, one skip, and one on scores that have changed since.
    assert report.conflicts.states["person"] == 5
    decided = {row.decision for row in report.conflicts.largest if row.state == "person"}
    assert decided == {"left", "right", "both", "neither", "score"}


def test_only_the_largest_are_listed(population: tuple[Database, Audit], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_LISTED_CONFLICTS", 3)
    monkeypatch.setattr(module, "MAX_REASONING_CHARS", 20)
    part = build_conflicts_report(population[0], load_source(population[0], population[1].name))
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


def test_conflicts_of_a_cell_count_as_one_case() -> None:
    cells = [Cell(f"c{i % 6}", f"t{i % 5}") for i in range(30)]
    is_hit = [i % 2 == 0 for i in range(30)]
    share = share_by_cell(cells * 10, is_hit * 10)
    exact = binomtest(15, 30).proportion_ci(0.95, "exact")
    assert (share.value, share.n) == (0.5, 300)
    assert (share.cells_ci_low, share.cells_ci_high) == pytest.approx((exact.low, exact.high))


def test_cases_of_a_task_are_over_items() -> None:
    cells = [Cell("", f"item {i}") for i in range(12)]
    assert share_by_cell(cells, [i < 6 for i in range(12)]).resampled == ("item",)
    assert share_by_cell([], []).reason == "nothing to count"


def test_conflicts_within_sampling_noise_are_reported(db: Database, report: Report) -> None:
    audit = populate(db)
    rows = results.load_conflicts(db, audit.id)
    marked = [
        Conflict(
            c.cell, c.left, c.right, c.score_left, c.score_right, c.kind, c.state, c.seats, within_noise=i % 2 == 0
        )
        for i, c in enumerate(rows)
    ]
    results.replace_conflicts(db, audit.id, marked)
    conflicts = build_conflicts_report(db, load_source(db, audit.name))
    assert conflicts.within_noise.value == pytest.approx(0.5, abs=0.05)
    majority = sum(c.state is ConflictState.MAJORITY for c in marked if c.kind is not ConflictKind("logic"))
    assert conflicts.settled.value == pytest.approx(majority / len(marked))
    assert "differ by no more than that noise" in render_report(change(report, conflicts=conflicts), "markdown")


def test_the_third_quartile_of_a_task_is_of_the_scores_of_its_answers(db: Database) -> None:
    items = {name: TaskItem(name, "How good is it?") for name in "pqr"}
    survey = survey_from_task(Task("items.csv", AnswerKind.SCORE, "", range=(0, 10), items=items))
    scores = {"alder": (0.0, 0.2, -0.4), "birch": (0.1, 0.6, 0.4)}
    rows = [
        CellScore(model, item.cell, "direct", score)
        for model, model_scores in scores.items()
        for item, score in zip(items.values(), model_scores, strict=True)
    ]
    quartile = compute_third_quartile(save_rows(db, survey, rows))
    assert quartile.value == pytest.approx(np.quantile([0.1, 0.4, 0.8], 0.75))
    assert quartile.n == 3


def test_without_judges_the_settled_shares_are_missing(db: Database, report: Report) -> None:
    audit = populate(db)
    source = load_source(db, audit.name)
    source = replace(source, config=change(known(source.config), judges=[]))
    conflicts = build_conflicts_report(db, source)
    assert (conflicts.settled.value, conflicts.settled.reason) == (None, "the audit has no judges")
    assert known(conflicts.by_cell).cells
    assert known(conflicts.by_cell).settled_share is None
    assert "The judges alone settle" not in " ".join(describe_conflicts(change(report, conflicts=conflicts)))
