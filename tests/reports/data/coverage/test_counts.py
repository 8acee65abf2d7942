"""A model version that changes is detected, within a run and between runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import select
from typer.testing import CliRunner

from auditor.cli.app import build_app
from auditor.reports.data.audit_status import load_audit_status
from auditor.reports.data.build import build_report
from auditor.reports.data.coverage.counts import (
    ModelVersionRow,
    build_model_version_rows,
    find_models_with_version_changes,
)
from auditor.reports.sections.provenance import build_provenance_section
from auditor.run import run_audit
from auditor.storage import audits, ledger
from auditor.storage.call_records import StoredAnswer
from auditor.storage.costs import AnswerVersion, CallCounts, CallSums
from auditor.storage.database import open_database
from auditor.storage.row_classes import table_of
from tests.reports.sections.node_text import text_of
from tests.support.audit_configs import KEY_VARIABLE, THREE_SAMPLES, config
from tests.support.fake_server import FakeServer, Reply, Request, answer, error

ONE_TOPIC = {"source": "wvs7-sample", "countries": ["Germany", "Japan", "Nigeria"], "topics": ["divorce"]}


def make_row(
    served: str | None, fingerprint: str | None = None, altered: str | None = "", name: str = "m"
) -> ModelVersionRow:
    return ModelVersionRow(
        version=AnswerVersion(name, served, fingerprint, altered), answers=2, first_at="1", last_at="2"
    )


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([make_row("a")], []),
        ([make_row("a"), make_row("a", altered="seed")], []),
        ([make_row("a"), make_row(None)], []),
        ([make_row("a"), make_row("b")], ["m"]),
        ([make_row("a", "fp1"), make_row("a", "fp2")], ["m"]),
        ([make_row("a"), make_row("b", name="n")], []),
    ],
)
def test_models_with_version_changes_are_found(rows: list[ModelVersionRow], expected: list[str]) -> None:
    assert find_models_with_version_changes(rows) == expected


def test_versions_of_a_model_are_in_the_order_of_their_first_answers() -> None:
    def count(served: str, first: int, last: int, name: str = "m") -> CallCounts:
        first_at, last_at = (f"2026-01-0{day}T00:00:00Z" for day in (first, last))
        version = AnswerVersion(name, served)
        return CallCounts(version, "direct", 0.0, CallSums(answers=2), first_at=first_at, last_at=last_at)

    rows = build_model_version_rows(
        [count("a", 3, 4), count("b", 2, 6), count("b", 1, 5), count("c", 1, 9, name="n"), count("d", 2, 2)]
    )
    assert [(row.version.served_model, row.answers, row.first_at[8:10], row.last_at[8:10]) for row in rows] == [
        ("b", 4, "01", "06"), ("d", 2, "02", "02"), ("a", 2, "03", "04"), ("c", 2, "01", "09"),
    ]  # fmt: skip


def answer_with_changing_model(request: Request) -> Reply:
    """Answer; every seventh response names another model."""
    reply = answer(request)
    return replace(reply, body=reply.body | {"model": "other"}) if request.number % 7 == 6 else reply


def test_a_served_model_that_changes_is_flagged_in_status_and_report(server: FakeServer, storage: str) -> None:
    server.script = answer_with_changing_model
    audit = config(server.url, models=1, survey=ONE_TOPIC, judges=[], probes=THREE_SAMPLES)
    run_audit(audit, storage=storage)
    assert len(server.requests) == 9
    with open_database(storage) as db:
        status = load_audit_status(db, audits.get_audit(db, "scripted"))
        report = build_report(db, "scripted")
    assert status["drift"] == ["model-a"]
    assert {(s["served_model"], s["answers"]) for s in status["served"]} == {("scripted-1", 8), ("other", 1)}
    assert [r.model_dump() for r in report.served] == status["served"]
    assert "The version of model-a changed" in text_of(build_provenance_section(report))
    status_run = CliRunner().invoke(build_app(), ["status", "scripted", "--storage", storage])
    assert "the provider changed the version of model-a" in status_run.stderr


def test_a_served_model_that_changes_between_runs_is_flagged(server: FakeServer, storage: str) -> None:
    small: dict[str, Any] = {"models": 1, "survey": ONE_TOPIC, "judges": []}
    run_audit(config(server.url, **small, probes={"direct": {"samples": 1}}), storage=storage)
    with open_database(storage) as db:
        assert load_audit_status(db, audits.get_audit(db, "scripted"))["drift"] == []
    server.script = lambda r: replace(answer(r), body=answer(r).body | {"system_fingerprint": "fp_2"})
    run_audit(config(server.url, **small, probes={"direct": {"samples": 2}}), storage=storage)
    with open_database(storage) as db:
        assert load_audit_status(db, audits.get_audit(db, "scripted"))["drift"] == ["model-a"]


def test_response_bodies_are_stored_by_digest_and_limit_changes_have_a_reason(server: FakeServer, storage: str) -> None:
    server.script = lambda r: error(429, "slow", headers={"retry-after": "0"}) if r.number == 3 else answer(r)
    run_audit(config(server.url, models=1, survey=ONE_TOPIC, judges=[], probes=THREE_SAMPLES), storage=storage)
    with open_database(storage) as db:
        status = load_audit_status(db, audits.get_audit(db, "scripted"))
        with db.read() as connection:
            digests = connection.execute(select(table_of(StoredAnswer))).mappings().all()
        bodies = [ledger.load_payload(db, row["payload"]) for row in digests]
    assert len(bodies) == 9
    assert all(b'"scripted-1"' in (body or b"") for body in bodies)
    [change] = [c for c in status["limits"] if c["why"] == "too many requests (429)"]
    assert (change["before"], change["after"]) == (8, 6)
    assert change["account"] == f"openai at 127.0.0.1 by {KEY_VARIABLE} for model-a"
