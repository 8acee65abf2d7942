"""PostgreSQL servers: passwords, encryption, broken connections."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Connection, insert, select, text
from sqlalchemy.exc import IntegrityError

from auditor.domain import Answer, Call, Message, Outcome, Purpose, Rating, Trace
from auditor.errors import StorageError, UsageError
from auditor.run import AuditHandle
from auditor.storage import audits, engine, ledger, migrations, results, schema
from auditor.storage.call_records import ChainLink, Payload
from auditor.storage.database import Database, open_database, upgrade_database
from auditor.storage.engine import _connect_args, make_engine, redact_url
from auditor.storage.records import save_records
from auditor.storage.row_classes import insert_exact, table_of
from tests.storage.test_database import CELL, SURVEY
from tests.storage.test_schema import NEXT
from tests.support.patience import PATIENCE_S
from tests.support.postgres_server import PASSWORD, Postgres


def record_answer(db: Database) -> None:
    call = Call("m", "openai/x", (Message("user", "hi"),), Purpose.DIRECT)
    asyncio.run(ledger.record_answer(db, call, Answer(call.key, Outcome.OK, "yes")))


def test_a_read_connection_cannot_write_even_as_the_owner(postgres: Postgres) -> None:
    with open_database(postgres.schema()) as db, pytest.raises(Exception, match="read-only"), db.read() as connection:
        connection.execute(insert(table_of(Rating)).values(audit_id=1))


def test_a_password_is_shown_nowhere(postgres: Postgres) -> None:
    url = postgres.schema()
    url_with_wrong_password = url.replace(PASSWORD, "wrong-canary")
    for bad_url, message in (
        (url_with_wrong_password, "password authentication failed"),
        (url.replace("127.0.0.1", "no.such.host.invalid"), "cannot be opened"),
        (url.replace("+psycopg", "+nonsense"), "not installed"),
        (url.replace("postgresql", "oracle9"), "databases are not supported"),
    ):
        with pytest.raises((StorageError, UsageError), match=message) as refused:
            open_database(bad_url)
        assert "canary" not in str(refused.value)
    with pytest.raises(StorageError) as empty:
        open_database(url, create=False)
    with open_database(url) as db:
        database_url = db.url
        with pytest.raises(StorageError) as absent:
            audits.get_audit(db, "none")
    for text_ in (str(empty.value), str(absent.value), database_url, repr(AuditHandle("a", url))):
        assert "canary" not in text_
    assert "canary" not in redact_url(f"postgresql://h/d?password={PASSWORD}&sslpassword={PASSWORD}")
    assert "canary" not in redact_url(f"no url://u:{PASSWORD}@h")


def test_remote_servers_require_encryption(monkeypatch: pytest.MonkeyPatch) -> None:
    def sslmode(url: str) -> object:
        db_engine = make_engine(url)
        ssl_argument = _connect_args(db_engine.url).get("sslmode")
        db_engine.dispose()
        return ssl_argument

    assert sslmode("postgresql+psycopg://u@db.example.org/x") == "require"
    assert sslmode("postgresql+psycopg://u@db.example.org/x?sslmode=verify-full") is None  # as the URL says
    for local in ("127.0.0.1", "localhost", "", "/run/postgresql"):
        assert sslmode(f"postgresql+psycopg://u@/x?host={local}" if local else "postgresql+psycopg:///x") is None
    monkeypatch.setenv("PGHOST", "db.example.org")
    assert sslmode("postgresql+psycopg:///x") == "require"


def test_a_server_is_upgraded_only_on_request(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    url, upgraded_to = postgres.schema(), list[str]()
    open_database(url).close()
    monkeypatch.setattr(schema, "REVISION", NEXT)
    monkeypatch.setattr(schema.upgrade_schema, "__kwdefaults__", {"to": NEXT, "versions": ()})
    monkeypatch.setattr(migrations, "upgrade", lambda connection, to, versions: upgraded_to.append(to))
    for create in (True, False):
        with pytest.raises(StorageError, match="older version") as refused:
            open_database(url, create=create)
        assert refused.value.how_to_fix.endswith("auditor doctor --upgrade")  # no URL, since it would lack its password
        assert PASSWORD not in str(refused.value)
    assert upgraded_to == []
    upgrade_database(url)
    assert upgraded_to == [NEXT]


def test_null_characters_are_stored_escaped_on_a_server(postgres: Postgres) -> None:
    with open_database(postgres.schema()) as db:
        audit = audits.save_audit(db, name="a", config="{}", config_hash="h", survey=SURVEY, environment={})
        save_records(db, audit.id, [Trace("m", CELL, 0, Outcome.OK, 0.5, "a\0b \U0001f600 \u202e", "k")])
        assert [trace.text for trace in results.load_traces(db, audit.id)] == ["a\\x00b \U0001f600 \u202e"]


def test_rows_that_a_server_copies_are_read_back_as_they_were(postgres: Postgres) -> None:
    texts = ["tab\tnewline\nreturn\r", "\\N", "\\.", "quote \" and '", "ü 漢", "", "100%s %(key)s"]
    payload = bytes(range(256))
    rows = [{"digest": f"{number} {text}", "data": text.encode() + payload} for number, text in enumerate(texts)]
    links = [{"kind": text, "row": "r", "digest": "d", "content": None, "audit_id": 1} for text in texts]
    with open_database(postgres.schema()) as db:
        db.write(lambda connection: connection.execute(insert(table_of(Payload)), rows[1:]))
        db.write(lambda connection: insert_exact(connection, Payload, rows[:1]))
        db.write(lambda connection: insert_exact(connection, ChainLink, links))
        with db.read() as connection:
            c = table_of(ChainLink).c
            assert list(map(dict, connection.execute(select(table_of(Payload))).mappings())) == [*rows[1:], rows[0]]
            stored = connection.execute(select(c.kind, c.row, c.digest, c.content, c.audit_id).order_by(c.id))
            assert list(map(dict, stored.mappings())) == links


def test_records_that_are_replaced_on_a_server_are_read_back_as_they_were(postgres: Postgres) -> None:
    texts = [
        "tab\tnewline\nreturn\r",
        "\\N",
        "\\",
        "quote \" and '",
        "ü 漢 \U0001f600",
        "",
        "100%s :b",
        None,
    ]
    scores = [0.1 + 0.2, -1.0, 1e-300, 5e-324, 0.0, None, None, 2 / 3]
    outcomes = [Outcome.UNPARSED if score is None else Outcome.OK for score in scores]
    fields = list(zip(outcomes, scores, texts, strict=True))
    traces = [Trace("m", CELL, sample, *values, "k") for sample, values in enumerate(fields)]
    others = [Trace("m", CELL, sample, *values, "k2") for sample, values in enumerate(reversed(fields))]
    with open_database(postgres.schema()) as db:
        audit = audits.save_audit(db, name="a", config="{}", config_hash="h", survey=SURVEY, environment={})
        for replaced, stored in ((others, others), (traces, traces), ([*others, *traces], traces)):
            save_records(db, audit.id, replaced)
            assert sorted(results.load_traces(db, audit.id), key=lambda trace: trace.sample) == stored
        save_records(db, audit.id, [replace(trace, text="a\0b\\u0000") for trace in traces])
        assert {trace.text for trace in results.load_traces(db, audit.id)} == {"a\\x00b\\u0000"}
        save_records(db, audit.id, [replace(trace, outcome=Outcome.REFUSED, score=None, text=None) for trace in traces])
        assert {(trace.score, trace.text) for trace in results.load_traces(db, audit.id)} == {(None, None)}


def test_a_key_that_exists_fails_as_in_any_insertion(postgres: Postgres) -> None:
    rows = [{"digest": digest, "data": b""} for digest in ("a", "b")]
    with open_database(postgres.schema()) as db:
        db.write(lambda connection: connection.execute(insert(table_of(Payload)), rows))
        with pytest.raises(IntegrityError):
            db.write(lambda connection: connection.execute(insert(table_of(Payload)), rows))


def test_a_server_soon_notices_that_a_host_is_lost(postgres: Postgres) -> None:
    query = "SELECT current_setting('tcp_keepalives_idle'), current_setting('tcp_user_timeout')"
    with make_engine(postgres.schema()).connect() as connection:
        assert tuple(connection.exec_driver_sql(query).one()) == ("10", "20000")


def test_a_broken_connection_fails_the_whole_group_and_writes_nothing_twice(postgres: Postgres) -> None:
    insert_row = text("INSERT INTO vector (revision, text, values) VALUES ('r', :text, '')")
    terminate_backend = text("SELECT pg_terminate_backend(pg_backend_pid())")
    started, released = threading.Event(), threading.Event()

    def wait(_: Connection) -> None:
        started.set()
        released.wait(PATIENCE_S)

    with open_database(postgres.schema()) as db:
        blocking_job = db.writer.submit(wait)
        started.wait(PATIENCE_S)
        group = [db.writer.submit(lambda c, i=i: c.execute(insert_row, {"text": str(i)})) for i in range(3)]  # type: ignore[misc]
        group.append(db.writer.submit(lambda c: c.execute(terminate_backend)))
        released.set()
        blocking_job.result(60)
        for future in group:
            with pytest.raises(StorageError, match="What was saved is kept"):
                future.result(60)
        db.write(lambda c: c.execute(insert_row, {"text": "later"}))
        with db.read() as connection:
            assert connection.execute(text("SELECT text FROM vector")).scalars().all() == ["later"]


def test_waiting_for_a_lock_times_out(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_database(postgres.schema()) as db, db.engine.connect() as sleeper, sleeper.begin():
        monkeypatch.setattr(engine, "LOCK_TIMEOUT", "50ms")
        with pytest.raises(StorageError, match="lock timeout"):
            record_answer(db)


def test_connections_that_open_a_new_file_at_once_wait_for_each_other(tmp_path: Path) -> None:
    def open_file(path: Path, barrier: threading.Barrier) -> None:
        file_engine = make_engine(f"sqlite:///{path}")
        barrier.wait()
        with file_engine.connect():
            pass
        file_engine.dispose()

    with ThreadPoolExecutor(4) as pool:
        for number in range(50):  # one file in ten failed when SQLite refused to wait
            path, barrier = tmp_path / f"{number}.db", threading.Barrier(4)
            path.touch()
            list(pool.map(open_file, [path] * 4, [barrier] * 4))
