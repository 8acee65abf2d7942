"""Early stopping of samples in a cell and of cells: the decisions do not depend on concurrency."""

from __future__ import annotations

import statistics
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from auditor.config import AuditConfig
from auditor.domain import Outcome, Trace, Verdict
from auditor.reports.data.audit_status import load_audit_status
from auditor.reports.data.verification import verify_audit
from auditor.reports.output import render_report
from auditor.run import AuditHandle, load_planned_survey, run_audit
from auditor.storage import audits, results
from auditor.storage.database import open_database
from auditor.storage.overview import load_overviews
from tests.support.audit_configs import config
from tests.support.fake_server import FakeServer, Reply, Request, answer, error
from tests.support.known import known


def stored(handle: AuditHandle) -> tuple[list[Trace], list[Verdict], dict[str, Any]]:
    with open_database(handle.storage, create=False) as db:
        audit = audits.get_audit(db, handle.name)
        assert load_overviews(db)[0].progress == 1
        return results.load_traces(db, audit.id), results.load_verdicts(db, audit.id), load_audit_status(db, audit)


def with_unequal_concurrency(audit: AuditConfig) -> AuditConfig:
    """The audit with another concurrency for each model, which changes the order of answers."""
    models = [m.model_copy(update={"concurrency": 1 + i}) for i, m in enumerate(audit.models)]
    return audit.model_copy(update={"models": models})


def read_share(traces: list[Trace], letter: str) -> float:
    """Share of a model's traces that have a score."""
    usable_flags = [t.outcome is Outcome.OK for t in traces if t.model == f"model-{letter}"]
    return sum(usable_flags) / len(usable_flags)


def fail_sometimes(request: Request) -> Reply:
    """Reply with an error to 15% of direct questions."""
    if request.is_direct_question and request.draw("mood") < 0.15:
        return error(400, "no")
    return answer(request)


def test_a_cell_is_sampled_until_its_samples_agree(server: FakeServer, tmp_path: Path) -> None:
    server.script = fail_sometimes
    probe = {"samples": 5, "min_samples": 2, "tolerance": 0.06}
    audit = config(server.url, 2, probes={"direct": probe})
    handle = run_audit(audit, storage=f"sqlite:///{tmp_path / 'one.db'}")
    traces, verdicts, status = stored(handle)
    traces_by_cell: dict[object, list[Trace]] = {}
    for t in traces:
        traces_by_cell.setdefault((t.model, t.cell), []).append(t)
    assert len(traces_by_cell) == 18
    for cell_traces in traces_by_cell.values():
        assert [t.sample for t in cell_traces] == list(range(len(cell_traces)))
        cell_scores = [t.score for t in cell_traces if t.score is not None]
        spread = statistics.stdev(cell_scores) / len(cell_scores) ** 0.5 if len(cell_scores) > 1 else 9
        assert len(cell_traces) == 5 or spread <= 0.06
    assert {len(taken) for taken in traces_by_cell.values()} >= {2, 5}
    assert status["traces"] == status["traces_planned"] == len(traces)
    assert status["verdicts"] == status["verdicts_planned"] == len(verdicts)
    assert max(v.sample for v in verdicts) == 1
    report = handle.report()
    direct, review = report.coverage.total
    assert (direct.planned, direct.missing) == (len(traces), 0)
    assert direct.ok == sum(t.outcome is Outcome.OK for t in traces)
    assert (review.planned, review.ok, review.missing) == (len(verdicts), len(verdicts), 0)
    with open_database(handle.storage) as db:
        verification = verify_audit(db, handle.name)
    n_planned = sum(balance.planned for balance in verification.balances if balance.stage == "direct")
    assert (verification.is_consistent, n_planned) == (True, len(traces))
    direct_row, review_row = report.savings
    assert (direct_row.made, direct_row.full) == (len(traces), 90)
    n_of_all = round(sum(90 / 2 * read_share(traces, m) for m in "ab"))
    assert (review_row.made, review_row.full) == (len(verdicts), n_of_all)
    unjudged_config = with_unequal_concurrency(audit).model_copy(update={"judges": []})
    second_results = stored(run_audit(unjudged_config, storage=f"sqlite:///{tmp_path / 'two.db'}"))
    assert [(t.model, t.cell, t.sample, t.score) for t in second_results[0]] == [
        (t.model, t.cell, t.sample, t.score) for t in traces
    ]


def test_no_more_cells_are_asked_once_the_interval_of_r_is_narrow(
    server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("auditor.metrics.people.savings.FIRST_INTERIM_LOOK", 12)
    survey = {"source": "wvs7-sample", "topics": ["homosexuality", "divorce", "abortion"]}
    direct = {"samples": 1, "target_width": 1.2}
    audit = config(server.url, 2, survey=survey, judges=[], probes={"direct": direct})
    handle = run_audit(audit, storage=f"sqlite:///{tmp_path / 'one.db'}")
    traces, _, status = stored(handle)
    report = handle.report()
    cells = {t.cell for t in traces}
    assert 12 <= len(cells) < (n_survey_cells := len(load_planned_survey(audit).scores))
    assert report.audit.survey.asked == len(cells) == len([c for c in report.audit.cells if c.survey is not None])
    [saved] = report.savings
    assert (saved.stage, saved.made, saved.full) == ("direct", len(traces), 2 * n_survey_cells)
    markdown = render_report(report, "markdown")
    assert f"{len(traces)} answers were requested (" in markdown
    assert f"Without this setting, it would be {2 * n_survey_cells}." in markdown
    assert all(row.n_dropped == row.n_without_survey for row in report.alignment)
    assert [(part.by, part.cells, part.left_out) for part in report.tiers][:1] == [("MAE", len(cells), {})]
    assert len(traces) == 2 * len(cells) == status["traces_planned"]
    counts = Counter(cell.topic for cell in cells)
    assert max(counts.values()) - min(counts.values()) <= 2
    for row in report.alignment:
        assert known(row.fisher_ci_high) - known(row.fisher_ci_low) <= 1.2
    assert [(r.planned, r.missing) for r in report.coverage.total] == [(len(traces), 0)]
    requests_before = len(server.requests)
    second_traces = stored(run_audit(with_unequal_concurrency(audit), storage=f"sqlite:///{tmp_path / 'two.db'}"))[0]
    assert {(t.model, t.cell, t.score) for t in second_traces} == {(t.model, t.cell, t.score) for t in traces}
    new_requests = len(server.requests) - requests_before
    run_audit(audit, storage=handle.storage)
    assert len(server.requests) - requests_before == new_requests


def test_a_resumed_run_after_failures_keeps_no_failed_traces(
    server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("auditor.metrics.people.savings.FIRST_INTERIM_LOOK", 6)
    survey = {"source": "wvs7-sample", "topics": ["homosexuality", "divorce", "abortion"]}
    probe = {"samples": 3, "min_samples": 2, "tolerance": 0.05, "target_width": 1.6}
    audit = config(server.url, 2, survey=survey, judges=[], probes={"direct": probe})
    unbroken_traces = stored(run_audit(audit, storage=f"sqlite:///{tmp_path / 'one.db'}"))[0]
    server.script = lambda r: error(400, "no") if r.body["model"].endswith("-b") else answer(r)
    second_storage = f"sqlite:///{tmp_path / 'two.db'}"
    first_traces = stored(run_audit(audit, storage=second_storage))[0]
    assert {(t.model, t.cell, t.sample) for t in first_traces} - {(t.model, t.cell, t.sample) for t in unbroken_traces}
    assert {t.outcome for t in first_traces} == {Outcome.OK, Outcome.CLIENT_ERROR}
    server.script = answer
    resumed_traces = stored(run_audit(audit, storage=second_storage))[0]
    assert [(t.model, t.cell, t.sample, t.score) for t in resumed_traces] == [
        (t.model, t.cell, t.sample, t.score) for t in unbroken_traces
    ]


def test_a_tolerance_that_saves_no_samples_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"min_samples \(3\) is not below samples \(3\)"):
        config("http://localhost", probes={"direct": {"samples": 3, "tolerance": 0.1}})
