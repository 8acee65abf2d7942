from __future__ import annotations

import asyncio
import json
import socket
import sqlite3
import time
from collections.abc import Callable
from dataclasses import fields, replace
from datetime import UTC, datetime
from functools import partial
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, insert, select, text
from sqlalchemy.exc import DatabaseError

from auditor.domain import (
    Answer,
    AnswerKind,
    Attempt,
    Call,
    Cell,
    Grouping,
    Message,
    Outcome,
    Phrasing,
    Purpose,
    Region,
    Survey,
    SurveyCell,
    Task,
    TaskItem,
    TopicQuestion,
    Trace,
)
from auditor.errors import EmptyStorageError, StorageError, UsageError
from auditor.storage import audits, ledger, results
from auditor.storage.call_records import TextVector
from auditor.storage.database import Database, open_database, run_lock
from auditor.storage.records import save_records
from auditor.storage.row_classes import table_of
from auditor.storage.schema import REVISION, VERSION_TABLE_DEFINITION
from tests.support.forked_commands import CONTEXT
from tests.support.patience import PATIENCE_S
from tests.support.stored_rows import count_attempts

CELL = Cell("NO", "divorce")
CELLS = (SurveyCell(CELL, 0.5), SurveyCell(Cell("NA", "x"), None))
SURVEY = Survey("s", "t", "src", "{topic}?", ("never", "always"), CELLS)


def save_sample_audit(db: Database, config_hash: str = "h", name: str = "a") -> audits.Audit:
    return audits.save_audit(db, name=name, config="{}", config_hash=config_hash, survey=SURVEY, environment={})


def test_an_unreachable_server_is_a_one_sentence_error() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound, but not listening
        url = f"postgresql+psycopg://u@127.0.0.1:{unused.getsockname()[1]}/d?sslmode=disable"
        with pytest.raises(StorageError, match="TCP/IP connections\\. ") as caught, open_database(url):
            pass
    assert "?." not in str(caught.value)


def test_sqlite_pragmas_are_set(file_storage: str) -> None:
    expected = {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}
    with open_database(file_storage) as db, db.read() as connection:
        assert {n: connection.execute(text(f"PRAGMA {n}")).scalar_one() for n in expected} == expected


def test_invalid_databases_and_urls_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="no database"):
        open_database(f"sqlite:///{tmp_path}/none.db", create=False)
    (tmp_path / "x.db").write_text("hello, this is a text file of some length, and not a database at all" * 20)
    with pytest.raises(StorageError, match="cannot be opened"):
        open_database(f"sqlite:///{tmp_path}/x.db")
    with pytest.raises(StorageError, match="folder"):
        open_database(f"sqlite:///{tmp_path}/no/x.db")
    for url in ("nonsense", "sqlite://", "oracle9://x"):
        with pytest.raises(UsageError):
            open_database(url)


def test_an_empty_file_that_is_only_read_stays_as_it_is(tmp_path: Path) -> None:
    (file := tmp_path / "empty.db").touch()
    with pytest.raises(EmptyStorageError):
        open_database(f"sqlite:///{file}", create=False)
    assert not file.stat().st_size


def test_a_database_of_a_newer_version_is_refused(db: Database, storage: str) -> None:
    db.write(lambda c: c.execute(VERSION_TABLE_DEFINITION.update().values(version_num="9999")))
    for create in (True, False):
        with pytest.raises(StorageError, match=f"newer version of auditor .revision 9999, known here: {REVISION}"):
            open_database(storage, create=create)


@pytest.mark.parametrize("revisions", [[], [REVISION, "0001"]])
def test_a_database_without_one_revision_is_refused(db: Database, storage: str, revisions: list[str]) -> None:
    def store_revisions(connection: Connection) -> None:
        connection.execute(VERSION_TABLE_DEFINITION.delete())
        for revision in revisions:
            connection.execute(VERSION_TABLE_DEFINITION.insert().values(version_num=revision))

    db.write(store_revisions)
    for create in (True, False):
        with pytest.raises(StorageError, match="must have one row, the revision, and has none or several"):
            open_database(storage, create=create)


def test_an_audit_comes_back_as_it_was(db: Database) -> None:
    audit = save_sample_audit(db)
    assert audits.load_audit_survey(db, audit) == SURVEY
    assert audits.get_audit(db, "a") == audit
    with pytest.raises(StorageError, match="Did you mean 'a'"):
        audits.get_audit(db, "aa")


def test_a_changed_config_drops_derived_rows_and_keeps_answers(db: Database) -> None:
    audit = save_sample_audit(db)
    call = Call("m", "openai/x", (Message("user", "hi"),), Purpose.DIRECT)
    asyncio.run(ledger.record_answer(db, call, Answer(call.key, Outcome.OK, "yes")))
    save_records(db, audit.id, [Trace("m", CELL, 0, Outcome.OK, 0.5, "t", call.key)])
    save_sample_audit(db)
    assert len(results.load_traces(db, audit.id)) == 1
    save_sample_audit(db, config_hash="other")
    assert results.load_traces(db, audit.id) == []
    assert set(ledger.load_answers(db, [call.key, "nothing"])) == {call.key}


def test_an_answer_is_recorded_once_and_attempts_always(db: Database) -> None:
    call = Call("m", "openai/x", (Message("user", "hi"),), Purpose.DIRECT, params={"seed": 1})
    attempt = Attempt(1, datetime.now(UTC), 0.1, Outcome.OK)
    for words in ("first", "second"):
        asyncio.run(ledger.record_answer(db, call, Answer(call.key, Outcome.OK, words, attempts=(attempt,))))
    assert ledger.load_answers(db, [call.key])[call.key].text == "first"
    assert count_attempts(db) == 2


def test_failures_are_not_loaded_as_answers(db: Database) -> None:
    call = Call("m", "openai/x", (Message("user", "hi"),), Purpose.DIRECT)
    for outcome in Outcome:
        if not outcome.is_answer:
            asyncio.run(ledger.record_answer(db, call, Answer(call.key, outcome)))
    assert ledger.load_answers(db, [call.key]) == {}


def test_a_failed_job_does_not_fail_others(db: Database) -> None:
    vector = table_of(TextVector)

    def add(text: str) -> Callable[[Connection], object]:
        return lambda connection: connection.execute(insert(vector), [{"revision": "r", "text": text, "values": b""}])

    futures_before = [db.writer.submit(add(f"k{i}")) for i in range(20)]
    failing = db.writer.submit(lambda c: c.execute(text("INSERT INTO nowhere VALUES (1)")))
    future_after = db.writer.submit(add("last"))
    for future in [*futures_before, future_after]:
        future.result(timeout=PATIENCE_S)
    with pytest.raises(Exception, match="nowhere"):
        failing.result(timeout=PATIENCE_S)
    with db.read() as connection:
        assert len(connection.execute(select(vector)).all()) == 21


def hold_run_lock(url: str, held: Event) -> None:
    """Hold the lock of the audit `a` until the process is killed."""
    with open_database(url) as db, run_lock(db, "a"):
        held.set()
        time.sleep(600)


def test_one_run_at_a_time(db: Database, storage: str) -> None:
    held = CONTEXT.Event()
    holder = CONTEXT.Process(target=hold_run_lock, args=(storage, held))
    holder.start()
    assert held.wait(PATIENCE_S)
    with pytest.raises(StorageError, match=f"process {holder.pid}"), run_lock(db, "a"):
        pass
    with run_lock(db, "another"):
        pass
    holder.kill()
    _wait_for_lock(db, "a")  # the lock of a dead process is free as soon as the server notices its end


def _wait_for_lock(db: Database, audit_name: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            with run_lock(db, audit_name):
                return
        except StorageError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def read_names(url: str, names: Queue[list[str]]) -> None:
    """Send the names of the audits of a database."""
    with open_database(url) as db:
        names.put([audit.name for audit in audits.load_audits(db)])


def test_a_read_sees_what_another_process_wrote(db: Database, storage: str) -> None:
    save_sample_audit(db)
    names = CONTEXT.Queue()
    CONTEXT.Process(target=read_names, args=(storage, names)).start()
    assert names.get(timeout=PATIENCE_S) == ["a"]


def fields_at_default(*records: Any) -> list[str]:
    """Fields of records that have their default, so that a comparison would not show that they were lost."""
    return [
        f"{type(record).__name__}.{field.name}"
        for record in records
        for field in fields(record)
        if getattr(record, field.name) in (field.default, {})
    ]


def test_donors_of_an_earlier_audit_are_added_without_a_new_start(db: Database) -> None:
    """Version 0.2 did not store the rest of the survey's file; an audit that goes on gets it and keeps its results."""
    save = partial(audits.save_audit, db, name="b", config="{}", config_hash="h", environment={})
    audits.set_stage(db, save(survey=SURVEY).id, "finished")
    donors = {Cell("SE", "divorce"): 0.25}
    resumed = save(survey=replace(SURVEY, donors=donors))
    assert resumed.stage == "finished"
    assert audits.load_audit_survey(db, resumed).donors == donors
    assert save(survey=replace(SURVEY, donors={Cell("SE", "divorce"): 0.3})).stage == "plan"


def test_a_survey_is_loaded_as_saved_and_older_ones_have_defaults(db: Database) -> None:
    item = TaskItem("x", "Which?", "Of two.", ("this", "that"), "this")
    task = Task("items.csv", AnswerKind.SCORE, "digest", (0.0, 9.0), True, 0.5, {item.id: item}, ("ann",))
    cell = SurveyCell(CELL, 0.5, 100, 0.1, nonresponse=0.2, acceptable=0.5, not_a_moral_issue=0.3, unacceptable=0.2)
    detailed_survey = replace(
        SURVEY, cells=(cell, *SURVEY.cells[1:]), words={"divorce": ("split",)}, task=task,
        grouping=Grouping("own.csv", "Own", (Region("north", ("NO",)), Region("a south", ("NA",)))),
        native={"NO": ("de", "fr")},
        phrasings={"en": Phrasing("{topic} {country}?", ("bad", "good"), {"divorce": "parting"})},
        topic_families={"family": ("divorce",)}, n_unplanned=7, question="How bad is it?",
        topic_questions={"divorce": TopicQuestion("Is {topic} bad?", ("bad", "good"))},
        donors={Cell("SE", "divorce"): 0.25}, zones={"NO": "protestant Europe"},
        wordings={"en": ("Is {topic} {never} or {always} in {country}?",)}, file="my.csv",
    )  # fmt: skip
    audit = audits.save_audit(db, name="b", config="{}", config_hash="h", survey=detailed_survey, environment={})
    assert audits.load_audit_survey(db, audit) == detailed_survey
    assert fields_at_default(detailed_survey, cell, task, item) == []
    survey_json = json.loads(audit.survey)
    later = "grouping native phrasings topic_families n_unplanned question topic_questions donors zones wordings file"
    for key in later.split():
        del survey_json[key]
    bare_survey = audits.load_audit_survey(db, replace(audit, survey=json.dumps(survey_json)))
    assert (bare_survey.grouping, bare_survey.native, bare_survey.phrasings) == (None, {}, {})
    assert (bare_survey.topic_families, bare_survey.n_unplanned, bare_survey.question) == ({}, 0, None)
    assert (bare_survey.zones, bare_survey.wordings) == (None, {})


def test_a_damaged_file_is_a_storage_error_on_writing(db: Database) -> None:
    def damaged(_: Connection) -> None:
        raise DatabaseError("INSERT", {}, sqlite3.DatabaseError("database disk image is malformed"))

    with pytest.raises(StorageError, match="malformed"):
        db.write(damaged)
