"""Answers that a person declares invalid leave all figures, stay planned and lost, and come back when it is undone."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from auditor.domain import Cell, Outcome
from auditor.domain.audit_records import AnswerSelection, Exclusion
from auditor.errors import UsageError
from auditor.imports.recorded_audits import import_traces, import_verdicts
from auditor.reports.data.verification import verify_audit
from auditor.reports.output import render_report
from auditor.run import open_audit, run_audit
from auditor.run.audit_changes import exclude_answers, undo_exclusion
from auditor.storage import audits, results
from auditor.storage.database import open_database
from auditor.storage.exclusions import load_exclusions
from auditor.storage.row_classes import table_of
from tests.support.audit_configs import config
from tests.support.cli_runner import run
from tests.support.fake_server import FakeServer

REASON = "The server ran with a wrong system prompt."
JAPAN = AnswerSelection(model="model-a", country="Japan")


def audit(server: FakeServer) -> Any:
    return config(server.url, 3, judges="peers", probes={"direct": {"samples": 2}})


@pytest.fixture(scope="module")
def server() -> Iterator[FakeServer]:
    with FakeServer() as running:
        yield running


@pytest.fixture(scope="module")
def finished(server: FakeServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("finished") / "audits.db"
    run_audit(audit(server), storage=f"sqlite:///{path}")
    return path


@pytest.fixture
def storage(finished: Path, tmp_path: Path) -> str:
    """URL of a copy of that database."""
    return f"sqlite:///{shutil.copy(finished, tmp_path)}"


def load(storage: str, name: str = "scripted") -> dict[str, Any]:
    """All that an exclusion may change."""
    with open_database(storage, create=False) as db:
        audit_id = audits.get_audit(db, name).id
        return {
            "traces": results.load_traces(db, audit_id), "verdicts": results.load_verdicts(db, audit_id),
            "scores": results.load_scores(db, audit_id), "conflicts": results.load_conflicts(db, audit_id),
        }  # fmt: skip


def is_about(record: Any, selection: AnswerSelection = JAPAN) -> bool:
    return (record.model, record.cell.country) == (selection.model, selection.country)


def report_json(storage: str) -> str:
    text = render_report(open_audit("scripted", storage=storage).report(), "json")
    return re.sub(r'"[^"]*_at": "[^"]*"', "", text)


def test_excluded_answers_leave_all_figures_and_come_back(server: FakeServer, storage: str) -> None:
    before, report_before = load(storage), report_json(storage)
    n_requests = len(server.requests)
    assert any(is_about(verdict) for verdict in before["verdicts"])
    exclusion = exclude_answers("scripted", JAPAN, REASON, storage=storage)
    assert exclusion.n_answers == 6

    after = load(storage)
    excluded = [trace for trace in after["traces"] if is_about(trace)]
    assert {(trace.outcome, trace.score, trace.text) for trace in excluded} == {(Outcome.EXCLUDED, None, None)}
    assert not any(is_about(verdict) for verdict in after["verdicts"])
    assert all(score.score is None and score.n_ok == 0 for score in after["scores"] if is_about(score))
    sides = {
        (side, conflict.cell.country) for conflict in after["conflicts"] for side in (conflict.left, conflict.right)
    }
    assert ("model-a", "Japan") not in sides
    assert sides
    untouched = [[x for x in records["traces"] if not is_about(x)] for records in (before, after)]
    assert untouched[0] == untouched[1]

    report = open_audit("scripted", storage=storage).report()
    [total] = [row for row in report.coverage.total if row.stage == "direct"]
    assert (total.planned, total.losses) == (54, {"excluded": 6})
    [row] = [row for row in report.alignment if row.model == "model-a"]
    assert (row.n, row.lost_samples.lost, row.lost_samples.planned) == (6, 6, 18)
    assert row.worst_case is not None
    text = " ".join(render_report(report, "text", is_brief=True).split())
    assert "6 answers (model-a, Japan) were declared invalid on" in text
    assert REASON in text
    check = open_audit("scripted", storage=storage).check(min_coverage=0.95)
    assert not check

    undo_exclusion("scripted", exclusion.id, storage=storage)
    assert load(storage) == before
    assert report_json(storage) == report_before
    assert len(server.requests) == n_requests


def test_a_later_run_keeps_answers_excluded_and_asks_nothing(server: FakeServer, storage: str) -> None:
    before, n_requests = load(storage), len(server.requests)
    exclusion = exclude_answers("scripted", JAPAN, REASON, storage=storage)
    after = load(storage)
    run_audit(audit(server), storage=storage)
    assert load(storage) == after
    # The derived rows of another configuration are computed again from the ledger.
    changed = audit(server).model_copy(
        update={"conflicts": audit(server).conflicts.model_copy(update={"threshold": 0.5})}
    )
    run_audit(changed, storage=storage)
    assert [trace for trace in load(storage)["traces"] if is_about(trace)] == [
        trace for trace in after["traces"] if is_about(trace)
    ]
    run_audit(audit(server), storage=storage)
    undo_exclusion("scripted", exclusion.id, storage=storage)
    run_audit(audit(server), storage=storage)
    assert load(storage) == before
    assert len(server.requests) == n_requests


def test_the_declaration_and_its_undo_are_in_the_chain(storage: str) -> None:
    exclusion = exclude_answers("scripted", AnswerSelection(topic="divorce", sample=1), REASON, storage=storage)
    with open_database(storage, create=False) as db:
        first = verify_audit(db, "scripted")
        assert first.is_consistent
        assert exclusion.n_answers == 9
    undo_exclusion("scripted", exclusion.id, "It was right after all.", storage=storage)
    table = table_of(Exclusion)
    with open_database(storage, create=False) as db:
        second = verify_audit(db, "scripted")
        assert second.is_consistent
        assert second.records.n_by_kind["exclusion"] == first.records.n_by_kind["exclusion"] + 1
        assert load_exclusions(db, audits.get_audit(db, "scripted").id) == []
        db.write(lambda connection: connection.execute(update(table).values(reason="Another.")))
        assert [problem.record_kind for problem in verify_audit(db, "scripted").records.breaks] == ["exclusion"] * 2


def test_overlapping_exclusions_are_undone_one_by_one(storage: str) -> None:
    before = load(storage)
    first = exclude_answers("scripted", JAPAN, REASON, storage=storage)
    second = exclude_answers("scripted", AnswerSelection(country="Japan"), REASON, storage=storage)
    undo_exclusion("scripted", second.id, storage=storage)
    outcomes = {(trace.model, trace.outcome) for trace in load(storage)["traces"] if trace.cell.country == "Japan"}
    assert outcomes == {("model-a", Outcome.EXCLUDED), ("model-b", Outcome.OK), ("model-c", Outcome.OK)}
    undo_exclusion("scripted", first.id, storage=storage)
    assert load(storage) == before


def test_what_cannot_be_excluded_or_undone_is_refused(storage: str) -> None:
    before = load(storage)
    for selection, reason, message in (
        (AnswerSelection(), REASON, "no answers are selected"),
        (JAPAN, " ", "the reason is empty"),
        (AnswerSelection(model="model-z"), REASON, "no recorded answer matches"),
        (AnswerSelection(country="Jpan"), REASON, "no recorded answer matches .* Did you mean 'Japan'"),
    ):
        with pytest.raises(UsageError, match=message):
            exclude_answers("scripted", selection, reason, storage=storage)
    with pytest.raises(UsageError, match="no exclusion 7 in force"):
        undo_exclusion("scripted", 7, storage=storage)
    assert load(storage) == before


def test_answers_of_an_imported_audit_are_excluded_with_their_verdicts(tmp_path: Path, storage: str) -> None:
    traces, verdicts = tmp_path / "traces.csv", tmp_path / "verdicts.csv"
    traces.write_text(
        "model,country,topic,sample,text,score\n"
        "a,Japan,divorce,0,Fine.,0.5\na,Japan,divorce,1,Bad.,-0.5\na,Germany,divorce,0,Fine.,0.7\n"
    )
    verdicts.write_text("judge,model,country,topic,verdict,sample\nj,a,Japan,divorce,VALID,1\n")
    for _ in range(2):
        import_traces(traces, survey="wvs7-sample", audit="imported", storage=storage)
        import_verdicts(verdicts, audit="imported", storage=storage)
    before = load(storage, "imported")
    selection = AnswerSelection(country="Japan", sample=1)
    exclusion = exclude_answers("imported", selection, REASON, storage=storage)
    after = load(storage, "imported")
    scores = {score.cell: (score.score, score.n_ok, score.n_planned) for score in after["scores"]}
    assert scores == {Cell("Japan", "divorce"): (0.5, 1, 2), Cell("Germany", "divorce"): (0.7, 1, 1)}
    assert after["verdicts"] == []
    undo_exclusion("imported", exclusion.id, storage=storage)
    assert load(storage, "imported") == before


def test_the_command_excludes_lists_and_undoes(storage: str) -> None:
    place = ["--storage", storage]
    assert "no reason is given" in run(["exclude", "scripted", "--model", "model-a", *place]).stderr
    excluded = run(["exclude", "scripted", "--model", "model-a", "--sample", "2", "--reason", REASON, *place])
    assert excluded.returncode == 0
    assert "Excluded: 9 answers" in excluded.stderr
    assert "--undo 1" in excluded.stderr
    assert REASON in run(["exclude", "scripted", "--list", "--json", *place]).stdout
    assert "9" in run(["exclude", "scripted", "--list", *place]).stdout
    assert run(["exclude", "scripted", "--undo", "1", *place]).returncode == 0
    assert "No answers of 'scripted' are excluded" in run(["exclude", "scripted", "--list", *place]).stderr
