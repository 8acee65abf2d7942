"""What only a server has: roles, passwords, encryption."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import Connection, insert, text

from auditor.domain import Answer, Call, Decision, Message, Outcome, Purpose, Rating, RatingAction, Trace
from auditor.errors import EmptyStorageError, NotAllowedError, StorageError, UsageError
from auditor.reports.audit_status import load_audit_status
from auditor.run import AuditHandle, resume_after_review
from auditor.run.storage_upgrade import upgrade_storage
from auditor.storage import audits, engine, hash_chain, ledger, rating_log, results, review_queue
from auditor.storage.conflict_status import QueueFilter
from auditor.storage.database import Database, open_database, run_lock, table_of, upgrade_database
from auditor.storage.engine import _connect_args, make_engine, redact_url
from auditor.storage.roles import roles_sql
from auditor.storage.tables import RatingRow
from tests.storage.test_database import CELL, SURVEY
from tests.support.postgres_server import PASSWORD, Postgres
from tests.support.review_audit import review_case

PEOPLE = {"ro": "auditor_reader", "ada": "auditor_reviewer", "robot": "auditor_runner"}


@pytest.fixture(scope="module")
def team(postgres: Postgres) -> Iterator[Callable[[str], Database]]:
    """Opens one database as one of three people, each with one role."""
    name = postgres.database()
    with pytest.raises(EmptyStorageError):
        open_database(postgres.url(name), create=False)
    assert upgrade_storage(postgres.url(name)) is None  # makes the tables
    with open_database(postgres.url(name)) as db:
        review_case(db, conflicts=4)
    with postgres.connect(name) as connection:
        for _ in range(2):  # again after each upgrade
            connection.execute(roles_sql())
        for person, role in PEOPLE.items():
            connection.execute(f"CREATE ROLE {person} LOGIN PASSWORD '{PASSWORD}' IN ROLE {role}")
    opened: list[Database] = []

    def as_person(person: str) -> Database:
        opened.append(open_database(postgres.url(name, person), create=False))
        return opened[-1]

    yield as_person
    for db in opened:
        db.close()


def decide(db: Database) -> None:
    audit = audits.get_audit(db, "moral")
    key, _ = review_queue.ConflictQueue(db, audit.id, "ada").keys(QueueFilter())[0]
    rating_log.append_rating(
        db, audit.id, key, "ada", rating_log.RatingChange(RatingAction.DECIDE, decision=Decision.LEFT)
    )


def record(db: Database) -> None:
    call = Call("m", "openai/x", (Message("user", "hi"),), Purpose.DIRECT)
    asyncio.run(ledger.record_answer(db, call, Answer(call.key, Outcome.OK, "yes")))


def run(db: Database) -> None:
    with run_lock(db, "theirs"):
        record(db)
        audit = audits.save_audit(db, name="theirs", config="{}", config_hash="h", survey=SURVEY, environment={})
        results.save_traces(db, audit.id, [Trace("m", CELL, 0, Outcome.OK, 0.5, "t", "k")])
        audits.save_audit(db, name="theirs", config="{}", config_hash="h2", survey=SURVEY, environment={})
        audits.set_stage(db, audit.id, "elicit")


def rate(db: Database) -> None:
    decided = Rating(CELL, "a", "b", 0.1, 0.9, "robot", Decision.LEFT, datetime.now(UTC))
    results.add_rating(db, audits.get_audit(db, "moral").id, decided)


def change(statement: str) -> Callable[[Database], Any]:
    return lambda db: db.write(lambda connection: connection.execute(text(statement)))


NOBODY_MAY = [
    change("UPDATE rating SET decision = 'right'"),
    change("DELETE FROM link"),
    change("UPDATE answer SET text = 'other'"),
    change("DELETE FROM attempt"),
    change("DELETE FROM audit"),
    change("UPDATE auditor_version SET version_num = '9999'"),
    change("DROP TABLE trace"),
    change("CREATE TABLE own (a int)"),
    change("TRUNCATE verdict"),
]


@pytest.mark.parametrize(
    ("person", "may", "may_not"),
    [
        ("ro", [], [decide, record, run, rate]),
        ("ada", [decide], [record, run]),
        ("robot", [record, run], [decide, rate]),
    ],
)
def test_each_role_may_do_its_work_and_no_more(
    team: Callable[[str], Database],
    person: str,
    may: list[Callable[[Database], None]],
    may_not: list[Callable[[Database], None]],
) -> None:
    db = team(person)
    for work in may:
        work(db)
    for work in [*may_not, *NOBODY_MAY]:
        with pytest.raises(NotAllowedError) as refused:
            work(db)
        assert "docs/team.md" in refused.value.how_to_fix
    assert audits.load_audits(db)[0].name == "moral"
    assert hash_chain.verify_chain(db).breaks == []


def test_a_reviewer_settles_the_last_conflict_and_a_runner_ends_the_audit(
    postgres: Postgres, team: Callable[[str], Database]
) -> None:
    def stage() -> tuple[str, int]:
        return audits.get_audit(ada, "moral").stage, load_audit_status(ada, audits.get_audit(ada, "moral"))["open"]

    ada, robot = team("ada"), team("robot")
    audit = audits.get_audit(ada, "moral")
    audits.set_stage(robot, audit.id, audits.AWAITING_HUMAN)
    for key, _ in review_queue.ConflictQueue(ada, audit.id, "ada").keys(QueueFilter()):
        rating_log.append_rating(
            ada, audit.id, key, "ada", rating_log.RatingChange(RatingAction.DECIDE, decision=Decision.LEFT)
        )
    url = ada.engine.url.render_as_string(hide_password=False)
    assert resume_after_review("moral", storage=url) == 0
    assert stage() == (audits.AWAITING_HUMAN, 0)  # saved, and no error: a reviewer may not end an audit
    assert resume_after_review("moral", storage=robot.engine.url.render_as_string(hide_password=False)) == 0
    assert stage() == (audits.FINISHED, 0)


def test_a_reader_s_connection_writes_nothing_even_as_the_owner(postgres: Postgres) -> None:
    with open_database(postgres.schema()) as db, pytest.raises(Exception, match="read-only"), db.read() as connection:
        connection.execute(insert(table_of(RatingRow)).values(audit_id=1))


def test_a_password_is_shown_nowhere(postgres: Postgres) -> None:
    url = postgres.schema()
    wrong = url.replace(PASSWORD, "wrong-canary")
    for bad, told in (
        (wrong, "password authentication failed"),
        (url.replace("127.0.0.1", "no.such.host.invalid"), "cannot be opened"),
        (url.replace("+psycopg", "+nonsense"), "not installed"),
        (url.replace("postgresql", "oracle9"), "keeps no audits"),
    ):
        with pytest.raises((StorageError, UsageError), match=told) as refused:
            open_database(bad)
        assert "canary" not in str(refused.value)
    with pytest.raises(StorageError) as empty:
        open_database(url, create=False)
    with open_database(url) as db:
        told_url = db.url
        with pytest.raises(StorageError) as absent:
            audits.get_audit(db, "none")
    for text_ in (str(empty.value), str(absent.value), told_url, repr(AuditHandle("a", url))):
        assert "canary" not in text_
    assert "canary" not in redact_url(f"postgresql://h/d?password={PASSWORD}&sslpassword={PASSWORD}")
    assert "canary" not in redact_url(f"no url://u:{PASSWORD}@h")


def test_other_machines_are_reached_by_encryption_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def mode(url: str) -> object:
        made = make_engine(url)
        found = _connect_args(made.url).get("sslmode")
        made.dispose()
        return found

    assert mode("postgresql+psycopg://u@db.example.org/x") == "require"
    assert mode("postgresql+psycopg://u@db.example.org/x?sslmode=verify-full") is None  # as the URL says
    for local in ("127.0.0.1", "localhost", "", "/run/postgresql"):
        assert mode(f"postgresql+psycopg://u@/x?host={local}" if local else "postgresql+psycopg:///x") is None
    monkeypatch.setenv("PGHOST", "db.example.org")
    assert mode("postgresql+psycopg:///x") == "require"


def test_a_server_is_upgraded_by_its_owner_only_when_told(postgres: Postgres) -> None:
    url = postgres.schema()
    with open_database(url) as db:
        db.write(lambda c: c.execute(text("UPDATE auditor_version SET version_num = '0000'")))
    for create in (True, False):
        with pytest.raises(StorageError, match="older version") as refused:
            open_database(url, create=create)
        assert refused.value.how_to_fix.endswith("auditor doctor --upgrade")  # no URL to copy without its password
        assert PASSWORD not in str(refused.value)
    with pytest.raises(Exception, match="0000"):  # there is no such revision to go on from
        upgrade_database(url)


def test_what_no_text_on_a_server_may_hold_is_kept_visible(postgres: Postgres) -> None:
    with open_database(postgres.schema()) as db:
        audit = audits.save_audit(db, name="a", config="{}", config_hash="h", survey=SURVEY, environment={})
        results.save_traces(db, audit.id, [Trace("m", CELL, 0, Outcome.OK, 0.5, "a\0b \U0001f600 \u202e", "k")])
        assert [t.text for t in results.load_traces(db, audit.id)] == ["a\\x00b \U0001f600 \u202e"]


def test_a_broken_connection_is_told_to_all_and_nothing_is_written_twice(postgres: Postgres) -> None:
    add = text("INSERT INTO vector (revision, text, values) VALUES ('r', :text, '')")
    cut = text("SELECT pg_terminate_backend(pg_backend_pid())")
    begun, held = threading.Event(), threading.Event()

    def wait(_: Connection) -> None:
        begun.set()
        held.wait(60)

    with open_database(postgres.schema()) as db:
        first = db.writer.submit(wait)
        begun.wait(60)
        group = [db.writer.submit(lambda c, i=i: c.execute(add, {"text": str(i)})) for i in range(3)]  # type: ignore[misc]
        group.append(db.writer.submit(lambda c: c.execute(cut)))
        held.set()
        first.result(60)
        for future in group:
            with pytest.raises(StorageError, match="Give the same command again"):
                future.result(60)
        db.write(lambda c: c.execute(add, {"text": "later"}))
        with db.read() as connection:
            assert connection.execute(text("SELECT text FROM vector")).scalars().all() == ["later"]


def test_who_waits_for_a_turn_gives_up_in_the_end(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_database(postgres.schema()) as db, db.engine.connect() as sleeper, sleeper.begin():
        monkeypatch.setattr(engine, "LOCK_TIMEOUT", "50ms")
        with pytest.raises(StorageError, match="lock timeout"):
            record(db)
