"""Verification reports lost, duplicated and changed records."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from auditor import run_audit
from auditor.domain import Call, Cell, Decision, Message, Outcome, Purpose, Rating
from auditor.reports.data.verification import verify_audit
from auditor.run import resume_after_review
from auditor.storage import audits, hash_chain, ledger, results
from auditor.storage.database import Database, open_database
from auditor.storage.records import save_records
from tests.support.audit_configs import FOUR_CELLS, config
from tests.support.fake_server import FakeServer, answer, error
from tests.support.stored_rows import add_rating

LAST_ANSWER = "(SELECT max(id) FROM link WHERE kind = 'answer')"


@pytest.fixture(scope="module")
def finished_audit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database file of a finished audit with about 10% failed requests and one human decision."""
    path = tmp_path_factory.mktemp("whole") / "audits.db"
    with FakeServer(lambda r: error(500, "no") if r.number > 0 and r.draw() < 0.1 else answer(r)) as server:
        run_audit(config(server.url, survey=FOUR_CELLS, limits={"max_attempts": 1}), storage=f"sqlite:///{path}")
    with open_database(f"sqlite:///{path}") as db:
        audit = audits.get_audit(db, "scripted")
        first = results.load_conflicts(db, audit.id)[0]
        sides = (first.left, first.right, first.score_left, first.score_right)
        add_rating(db, audit.id, Rating(first.cell, *sides, "ada", Decision.BOTH, datetime(2026, 1, 1, tzinfo=UTC)))
    resume_after_review("scripted", storage=f"sqlite:///{path}")
    return path


@pytest.fixture
def db(finished_audit: Path, tmp_path: Path) -> Iterator[Database]:
    (tmp_path / "copy.db").write_bytes(finished_audit.read_bytes())
    with open_database(f"sqlite:///{tmp_path / 'copy.db'}") as opened:
        yield opened


def execute(db: Database, statement: str) -> None:
    db.write(lambda connection: connection.exec_driver_sql(statement))


def test_a_finished_audit_is_consistent(db: Database) -> None:
    verification = verify_audit(db, "scripted")
    assert verification.is_consistent
    assert {balance.stage for balance in verification.balances} == {"direct", "review"}
    assert all(
        balance.planned == balance.done + balance.failed + balance.cancelled + balance.pending
        for balance in verification.balances
    )
    assert sum(balance.failed for balance in verification.balances) > 0
    with db.read() as connection:
        answers = connection.exec_driver_sql("SELECT count(*) FROM answer").scalar_one()
    assert verification.records.n_by_kind["answer"] == answers
    assert verification.records.n_by_kind["rating"] == 1
    assert hash_chain.contains_head(db, verification.records.head)
    assert not hash_chain.contains_head(db, "ab" * 32)


@pytest.mark.parametrize(
    ("change", "kind", "problem"),
    [
        ("UPDATE answer SET text = text || ' ' WHERE rowid = 5", "answer", "is not as it was written"),
        ("UPDATE answer SET cost_usd = 0 WHERE rowid = 5", "answer", "is not as it was written"),
        ("DELETE FROM answer WHERE rowid = 5", "answer", "is gone"),
        ("UPDATE payload SET data = X'00' WHERE rowid = 2", "payload", "is not as it was written"),
        ("DELETE FROM payload WHERE rowid = 2", "payload", "is gone"),
        ("INSERT INTO payload VALUES ('ab', X'00')", "payload", "past the chain"),
        ("UPDATE rating SET decision = 'left'", "rating", "is not as it was written"),
        ("DELETE FROM rating", "rating", "is gone"),
        ("DELETE FROM link WHERE id = (SELECT max(id) FROM link WHERE kind = 'answer')", "answer", "past the chain"),
        (f"UPDATE link SET digest = 'x' WHERE id = {LAST_ANSWER}", "answer", "is not as it was written"),
    ],
)
def test_changed_records_are_reported(db: Database, change: str, kind: str, problem: str) -> None:
    execute(db, change)
    verification = verify_audit(db, "scripted")
    assert not verification.is_consistent
    assert any(
        chain_break.record_kind == kind and problem in chain_break.problem
        for chain_break in verification.records.breaks
    )


def test_a_lost_trace_is_pending_and_its_verdicts_are_strays(db: Database) -> None:
    before = {balance.stage: balance for balance in verify_audit(db, "scripted").balances if balance.model == "model-a"}
    execute(
        db, "DELETE FROM trace WHERE rowid = (SELECT min(rowid) FROM trace WHERE model = 'model-a' AND outcome = 'ok')"
    )
    verification = verify_audit(db, "scripted")
    after = {balance.stage: balance for balance in verification.balances if balance.model == "model-a"}
    assert not verification.is_consistent
    assert after["direct"].pending == before["direct"].pending + 1
    assert after["review"].stray == 2


def test_an_unplanned_trace_is_a_stray(db: Database) -> None:
    audit = audits.get_audit(db, "scripted")
    stray = replace(results.load_traces(db, audit.id)[0], cell=Cell("Atlantis", "divorce"), outcome=Outcome.REFUSED)
    save_records(db, audit.id, [stray])
    verification = verify_audit(db, "scripted")
    assert not verification.is_consistent
    assert sum(balance.stray for balance in verification.balances) == 1


def test_a_score_without_an_answer_is_unfounded(db: Database) -> None:
    execute(db, "UPDATE trace SET key = 'nobody' WHERE rowid = (SELECT min(rowid) FROM trace WHERE outcome = 'ok')")
    verification = verify_audit(db, "scripted")
    assert (verification.unfounded, verification.is_consistent) == (1, False)


def test_calls_that_did_not_return_are_in_the_chain_from_the_next_run_on(db: Database) -> None:
    """Until then they are named as not checked: a run may be waiting for them."""
    audit = audits.get_audit(db, "scripted")
    call = Call("model-a", "openai/model-a", (Message("user", "hi"),), Purpose.DIRECT)
    asyncio.run(ledger.record_dispatch(db, "killed", audit.id, call))
    verification = verify_audit(db, "scripted")
    assert (verification.uncovered, verification.records.breaks) == ({"dispatch": 1}, [])
    audits.save_audit(  # what a run of an unchanged configuration does first
        db, name=audit.name, config=audit.config, config_hash=audit.config_hash,
        survey=audits.load_audit_survey(db, audit), environment={},
    )  # fmt: skip
    assert verify_audit(db, "scripted").uncovered == {}
    execute(db, "UPDATE dispatch SET purpose = 'review'")
    assert [b.problem for b in verify_audit(db, "scripted").records.breaks] == ["is not as it was written"]
    execute(db, "DELETE FROM dispatch")
    assert [(b.record_kind, b.problem) for b in verify_audit(db, "scripted").records.breaks] == [
        ("dispatch", "is gone")
    ]
