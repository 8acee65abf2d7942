"""The rating log is append-only; current decisions and the undo and redo stacks are derived from it."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from sqlalchemy import text

from auditor.domain import Decision, RatingAction
from auditor.errors import StorageError
from auditor.storage import hash_chain, rating_log, results, review_queue
from auditor.storage.audits import Audit
from auditor.storage.conflict_status import ConflictKey, ConflictStatus, QueueFilter
from auditor.storage.database import Database, open_database
from auditor.storage.engine import make_engine
from auditor.storage.rating_log import RatingChange, undo_redo_stacks
from tests.support.review_audit import save_review_audit
from tests.support.stored_rows import decide


@pytest.fixture
def audit(db: Database) -> Audit:
    return save_review_audit(db, conflicts=4)


def keys_of(db: Database, audit: Audit) -> list[ConflictKey]:
    return [key for key, _ in review_queue.ConflictQueue(db, audit.id, "ada").keys(QueueFilter())]


def conflict_status(db: Database, audit: Audit, key: ConflictKey) -> ConflictStatus:
    return review_queue.ConflictQueue(db, audit.id, "ada").rows([key])[0].status


def test_a_decision_is_on_the_disk_when_append_returns(db: Database, audit: Audit) -> None:
    key = keys_of(db, audit)[0]
    decide(db, audit, key, Decision.LEFT)

    second_engine = make_engine(db.engine.url.render_as_string(hide_password=False))
    with second_engine.connect() as connection:
        rows = connection.execute(text("select rater, decision, act from rating")).all()
    second_engine.dispose()
    assert rows == [("ada", "left", "decide")]


def test_a_note_that_no_database_can_hold_is_refused_and_the_next_is_saved(db: Database, audit: Audit) -> None:
    key = keys_of(db, audit)[0]
    with pytest.raises(StorageError, match=r"not saved: .* U\+D83D, which is not a Unicode character"):
        rating_log.append_rating(db, audit.id, key, "ada", RatingChange(RatingAction.NOTE, note="half \ud83d"))
    rating_log.append_rating(db, audit.id, key, "ada", RatingChange(RatingAction.NOTE, note="whole \U0001f600"))
    assert [entry.rating.note for entry in rating_log.load_entries(db, audit.id)] == ["whole \U0001f600"]


def test_undo_and_redo_append_and_restore(db: Database, audit: Audit) -> None:
    key, other, *_ = keys_of(db, audit)
    decide(db, audit, key, Decision.LEFT)
    decide(db, audit, other, Decision.BOTH)
    rating_log.append_rating(db, audit.id, key, "ada", RatingChange(RatingAction.NOTE, note="odd"))
    decide(db, audit, key, Decision.RIGHT)

    states = []
    while (entry := rating_log.undo(db, audit.id, "ada")) is not None:
        states.append((entry.key == key, entry.rating.decision, entry.rating.note))
    assert states == [
        (True, Decision.LEFT, "odd"), (True, Decision.LEFT, ""), (False, Decision.SKIP, ""), (True, Decision.SKIP, ""),
    ]  # fmt: skip
    assert conflict_status(db, audit, key) is ConflictStatus.OPEN

    while rating_log.redo(db, audit.id, "ada"):
        pass
    last = rating_log.load_entries(db, audit.id, key=key)[-1].rating
    assert (last.decision, last.note, last.act) == (Decision.RIGHT, "odd", RatingAction.REDO)
    ids = [e.id for e in rating_log.load_entries(db, audit.id)]
    assert ids == sorted(ids)
    assert len(ids) == 4 + 4 + 4


def test_undo_affects_only_the_raters_own_decisions(db: Database, audit: Audit) -> None:
    key = keys_of(db, audit)[0]
    decide(db, audit, key, Decision.LEFT, "ada")
    decide(db, audit, key, Decision.LEFT, "grace")
    assert rating_log.undo(db, audit.id, "ada")
    assert rating_log.undo(db, audit.id, "ada") is None
    ratings = [entry.rating for entry in rating_log.load_entries(db, audit.id)]
    assert [rating.rater for rating in ratings if rating.act is RatingAction.UNDO] == ["ada"]
    assert conflict_status(db, audit, key) is ConflictStatus.PERSON


def test_a_new_decision_clears_the_redo_stack(db: Database, audit: Audit) -> None:
    key = keys_of(db, audit)[0]
    decide(db, audit, key, Decision.LEFT)
    rating_log.undo(db, audit.id, "ada")
    decide(db, audit, key, Decision.BOTH)
    assert rating_log.redo(db, audit.id, "ada") is None


@given(st.lists(st.sampled_from(["do", "undo", "redo"]), max_size=40))
def test_undo_and_redo_equal_a_two_stack_model(acts: list[str]) -> None:
    """The stacks derived from the log equal those of an in-memory editor."""
    log: list[tuple[int, RatingAction, int | None]] = []
    undo_stack: list[int] = []
    redo_stack: list[int] = []
    for number, act in enumerate(acts):
        if act == "do":
            log.append((number, RatingAction.DECIDE, None))
            undo_stack.append(number)
            redo_stack = []
        elif act == "undo" and undo_stack:
            redo_stack.append(undo_stack.pop())
            log.append((number, RatingAction.UNDO, redo_stack[-1]))
        elif act == "redo" and redo_stack:
            undo_stack.append(redo_stack.pop())
            log.append((number, RatingAction.REDO, undo_stack[-1]))
        log.append((100 + number, RatingAction.REVEAL, None))
        assert undo_redo_stacks(log) == (undo_stack, redo_stack)


def test_a_decision_holds_only_while_the_scores_are_unchanged(db: Database, audit: Audit) -> None:
    key = keys_of(db, audit)[0]
    decide(db, audit, key, Decision.LEFT)
    assert conflict_status(db, audit, key) is ConflictStatus.PERSON

    before = results.load_conflicts(db, audit.id)
    table = "update conflict set score_left = score_left - 0.01 where country = :c and topic = :t"
    db.write(lambda connection: connection.execute(text(table), {"c": key.country, "t": key.topic}))
    assert conflict_status(db, audit, key) is ConflictStatus.OPEN

    results.replace_conflicts(db, audit.id, before)
    assert conflict_status(db, audit, key) is ConflictStatus.PERSON


def test_a_locked_database_is_an_error_and_nothing_is_stored(tmp_path: Path) -> None:
    path = tmp_path / "audits.db"
    with open_database(f"sqlite:///{path}") as db:
        audit = save_review_audit(db, conflicts=1)
        key = keys_of(db, audit)[0]
        db.write(lambda connection: connection.exec_driver_sql("PRAGMA busy_timeout=50"))
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageError, match="locked"):
            decide(db, audit, key, Decision.LEFT)
        holder.execute("ROLLBACK")
        holder.close()
        assert rating_log.load_entries(db, audit.id) == []
        decide(db, audit, key, Decision.LEFT)


DECIDE = """
import sys, time
from auditor.domain import Decision, RatingAction
from auditor.storage import audits, rating_log, review_queue
from auditor.storage.database import open_database
from auditor.storage.conflict_status import QueueFilter

with open_database(sys.argv[1], create=False) as db:
    audit = audits.get_audit(db, "moral")
    keys = [key for key, _ in review_queue.ConflictQueue(db, audit.id, sys.argv[2]).keys(QueueFilter())]
    print("ready", flush=True)
    sys.stdin.readline()
    for i in range(100):
        if i == 50:
            sys.stdin.readline()
        change = rating_log.RatingChange(RatingAction.DECIDE, decision=Decision.LEFT, note=str(i))
        print(rating_log.append_rating(db, audit.id, keys[i % len(keys)], sys.argv[2], change).id, flush=True)
        time.sleep(0.003)  # a person takes longer: without it the first process is done before the other gets a turn
"""


def start_deciding_process(url: str, rater: str) -> tuple[subprocess.Popen[str], Iterator[str]]:
    """Start a process that decides 100 times; returns it and its stdout by line."""
    command = [sys.executable, "-c", DECIDE, url, rater]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, process.stdout


def continue_deciding(process: subprocess.Popen[str]) -> None:
    """Let the process make its next 50 decisions."""
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def test_two_processes_that_decide_at_once_lose_nothing(storage: str) -> None:
    with open_database(storage) as db:
        audit = save_review_audit(db)
    raters = ("ada", "grace")
    processes = [start_deciding_process(storage, rater) for rater in raters]
    assert [next(printed_lines) for _, printed_lines in processes] == ["ready\n"] * 2
    for process, _ in processes:
        continue_deciding(process)
    ids_by_process = [[int(next(printed_lines))] for _, printed_lines in processes]
    for process, _ in processes:
        continue_deciding(process)  # neither reaches its second half before both have started
    for ids, (process, printed_lines) in zip(ids_by_process, processes, strict=True):
        ids.extend(map(int, printed_lines))
        assert process.wait() == 0

    with open_database(storage) as db:
        stored = {rater: rating_log.load_entries(db, audit.id, rater=rater) for rater in raters}
        records = hash_chain.verify_chain(db)
    assert (records.n_by_kind["rating"], records.breaks) == (200, [])
    for rater, ids in zip(raters, ids_by_process, strict=True):
        assert [e.id for e in stored[rater]] == ids
        assert [e.rating.note for e in stored[rater]] == [str(i) for i in range(100)]
