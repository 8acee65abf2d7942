"""What only a server has: passwords, encryption, connections that break."""

from __future__ import annotations

import asyncio
import threading

import pytest
from sqlalchemy import Connection, insert, text

from auditor.domain import Answer, Call, Message, Outcome, Purpose, Trace
from auditor.errors import StorageError, UsageError
from auditor.run import AuditHandle
from auditor.storage import audits, engine, ledger, results
from auditor.storage.database import Database, open_database, table_of, upgrade_database
from auditor.storage.engine import _connect_args, make_engine, redact_url
from auditor.storage.tables import RatingRow
from tests.storage.test_database import CELL, SURVEY
from tests.support.postgres_server import PASSWORD, Postgres


def record(db: Database) -> None:
    call = Call("m", "openai/x", (Message("user", "hi"),), Purpose.DIRECT)
    asyncio.run(ledger.record_answer(db, call, Answer(call.key, Outcome.OK, "yes")))


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
