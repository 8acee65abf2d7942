"""A database that cannot be used for a time: what is waited for, tried again, looked up and refused."""

from __future__ import annotations

import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, insert, select, text

from auditor.errors import StorageError, UnavailableError
from auditor.storage.call_records import TextVector
from auditor.storage.database import Database, find_runner, open_database, run_lock
from auditor.storage.engine import describe_process
from auditor.storage.row_classes import table_of
from tests.support.known import known
from tests.support.patience import PATIENCE_S
from tests.support.postgres_server import Cut, Postgres, PostgresProxy, running_or_skip

OWN_LOCK = text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND objid <> 0")


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    """A PostgreSQL server that these tests may stop."""
    with running_or_skip(keeps_commits=True) as postgres:
        yield postgres


@pytest.fixture
def proxy(server: Postgres) -> Iterator[PostgresProxy]:
    with PostgresProxy(server.process.port) as proxy:
        yield proxy


def insert_row(name: str) -> Any:
    row = {"revision": "r", "text": name, "values": b""}

    def job(connection: Any) -> str:
        connection.execute(insert(table_of(TextVector)), [row])
        return name

    return job


def stored_names(db: Database) -> list[str]:
    with db.read() as connection:
        return sorted(connection.execute(select(table_of(TextVector).c.text)).scalars())


@contextmanager
def waiting_run(url: str, limit_s: float = 60, notify: Callable[[str], None] = lambda _: None) -> Iterator[Database]:
    """A database in which the audit `a` runs, which waits in outages."""
    with open_database(url) as db, run_lock(db, "a"), db.outages.wait_for_database(limit_s, notify):
        yield db


def end_sessions(server: Postgres) -> None:
    """End all sessions of the program on the server, as an administrator may."""
    query = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'process %'"
    with server.connect() as connection:
        connection.execute(query)


@contextmanager
def stopped(server: Postgres) -> Iterator[None]:
    """Stop the server, and start it again in the end."""
    server.process.stop(signal.SIGINT)
    try:
        yield
    finally:
        server.process.start()


def restart_later(server: Postgres, stop_signal: signal.Signals) -> threading.Thread:
    """Stop the server now, and start it again after a second."""
    server.process.stop(stop_signal)

    def start() -> None:
        time.sleep(1)
        server.process.start()

    thread = threading.Thread(target=start)
    thread.start()
    return thread


@pytest.mark.parametrize("stop_signal", [signal.SIGINT, signal.SIGQUIT])
def test_writes_and_reads_of_a_run_wait_for_a_server_that_restarts(
    server: Postgres, stop_signal: signal.Signals
) -> None:
    notices: list[str] = []
    with waiting_run(server.schema(), notify=notices.append) as db:
        db.write(insert_row("before"))
        with db.read() as connection:
            count = select(func.count()).select_from(table_of(TextVector))
            assert connection.execute(count).scalar_one() == 1
            starting = restart_later(server, stop_signal)
            assert connection.execute(count).scalar_one() == 1  # in the middle of a block of queries
        assert db.write(insert_row("after")) == "after"
        starting.join()
        assert stored_names(db) == ["after", "before"]
        assert find_runner(db, "a") == describe_process()
    assert notices[:2] == [
        "The connection to the database postgres was lost. Reconnecting for up to 60 s.",
        "The database postgres can be used again.",
    ]


def test_without_a_run_an_outage_is_an_error_at_once(server: Postgres) -> None:
    with open_database(server.schema()) as db:
        with stopped(server):
            for use in (lambda: db.write(insert_row("a")), lambda: stored_names(db)):
                with pytest.raises(StorageError) as refused:
                    use()
                assert refused.value.how_to_fix.startswith("Check that its server is running and can be reached")
        db.write(insert_row("a"))
        assert stored_names(db) == ["a"]


def test_rows_that_were_read_before_a_connection_was_lost_are_kept(server: Postgres) -> None:
    with open_database(server.schema()) as db:
        with db.read() as connection:
            count = connection.execute(select(func.count()).select_from(table_of(TextVector))).scalar_one()
            end_sessions(server)
        assert count == 0
        assert stored_names(db) == []


def test_a_run_waits_no_longer_than_it_may(server: Postgres) -> None:
    with waiting_run(server.schema(), limit_s=1) as db:
        with stopped(server):
            futures = [db.writer.submit(insert_row(str(number))) for number in range(20)]
            with pytest.raises(UnavailableError, match=r"The run waited 1 s for it\."):
                futures[0].result()
            assert all(isinstance(future.exception(), UnavailableError) for future in futures)
        db.write(insert_row("after"))
        assert stored_names(db) == ["after"]
        assert find_runner(db, "a") == describe_process()


@pytest.mark.parametrize("cut", [Cut.BEFORE_COMMIT, Cut.AFTER_COMMIT])
def test_an_unconfirmed_commit_is_looked_up_before_it_is_written_again(
    cut: Cut, server: Postgres, proxy: PostgresProxy
) -> None:
    with waiting_run(proxy.url(server.schema())) as db:
        runs: list[int] = []

        def job(connection: Any) -> str:
            runs.append(1)
            connection.execute(text("CREATE TABLE IF NOT EXISTS plain (name text)"))  # no unique key
            connection.execute(text("INSERT INTO plain VALUES ('row')"))
            return f"run {len(runs)}"

        proxy.cut = cut
        result = db.write(job)
        with db.read() as connection:
            assert connection.execute(text("SELECT count(*) FROM plain")).scalar_one() == 1
        assert (result, len(runs)) == (("run 1", 1) if cut is Cut.AFTER_COMMIT else ("run 2", 2))
        assert find_runner(db, "a") == describe_process()


def test_a_session_that_the_server_still_keeps_is_ended(
    server: Postgres, proxy: PostgresProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("auditor.storage.writer.MAX_SESSION_END_S", 600)  # its end is seen at once
    with waiting_run(proxy.url(server.schema())) as db:
        db.write(insert_row("before"))
        proxy.cut_silently()
        db.write(insert_row("after"))
        assert stored_names(db) == ["after", "before"]
        with db.read() as connection:
            assert connection.execute(OWN_LOCK).scalar_one() == 1


def test_a_run_ends_if_another_one_took_its_lock_meanwhile(server: Postgres) -> None:
    url = server.schema()
    with waiting_run(url) as db, open_database(url) as other:
        end_sessions(server)
        with run_lock(other, "a"):
            with pytest.raises(UnavailableError, match="audit 'a' is now being run by process"):
                db.write(insert_row("lost"))
            assert stored_names(other) == []
        while find_runner(other, "a"):  # the server ends a session some moments after its connection is closed
            time.sleep(0.01)
        db.write(insert_row("later"))


def test_a_second_lock_of_one_database_is_refused(server: Postgres) -> None:
    refused = pytest.raises(StorageError, match="is already being run by process")
    with open_database(server.schema()) as db, run_lock(db, "a"), run_lock(db, "b"), refused, run_lock(db, "a"):
        pass


def test_an_end_of_the_run_ends_its_waits(server: Postgres) -> None:
    waiting = threading.Event()
    with open_database(server.schema()) as db, run_lock(db, "a"), stopped(server):
        with db.outages.wait_for_database(600, lambda _: waiting.set()):
            future = db.writer.submit(insert_row("a"))
            assert waiting.wait(PATIENCE_S)
            assert not future.done()
        with pytest.raises(StorageError):
            future.result(timeout=PATIENCE_S)


# --- SQLite ------------------------------------------------------------------------------------------------------


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let SQLite wait 0.1 s for a lock, and not 30 s."""
    monkeypatch.setattr("auditor.storage.engine.PRAGMAS", ("busy_timeout=100", "journal_mode=WAL"))


@contextmanager
def held_lock(path: Path, release: threading.Event | None = None) -> Iterator[threading.Event]:
    """Hold the write lock of a file until the block ends or an event, as another program that writes slowly."""
    is_held, release = threading.Event(), release or threading.Event()

    def hold() -> None:
        connection = sqlite3.connect(path, isolation_level=None, timeout=30)
        connection.execute("BEGIN IMMEDIATE")
        is_held.set()
        release.wait(PATIENCE_S)
        connection.execute("COMMIT")
        connection.close()

    thread = threading.Thread(target=hold)
    thread.start()
    assert is_held.wait(PATIENCE_S)
    try:
        yield release
    finally:
        release.set()
        thread.join()


def test_a_run_waits_for_a_file_that_another_program_has_locked(impatient: None, file_storage: str) -> None:
    notices: list[str] = []
    with open_database(file_storage) as db, held_lock(known(db.path)) as release:

        def notify(notice: str) -> None:
            notices.append(notice)
            release.set()

        with db.outages.wait_for_database(60, notify):
            futures = [db.writer.submit(insert_row(str(number))) for number in range(3)]
            assert [future.result() for future in futures] == ["0", "1", "2"]
        assert stored_names(db) == ["0", "1", "2"]
    assert notices == [
        f"Another program has locked the database {db.path}. Waiting for up to 60 s until it can be written to.",
        f"The database {db.path} can be used again.",
    ]


def test_a_locked_file_is_explained(impatient: None, file_storage: str) -> None:
    with open_database(file_storage) as db, held_lock(known(db.path)):
        with pytest.raises(StorageError, match="is locked by another program: database is locked") as refused:
            db.write(insert_row("a"))
        assert refused.value.how_to_fix.startswith("Wait until the program that writes to it has ended")


def test_a_new_file_that_stays_locked_is_explained(
    impatient: None, file_storage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("auditor.storage.engine.BUSY_TIMEOUT_S", 0.1)
    with held_lock(tmp_path / "audits.db"), pytest.raises(StorageError, match="is locked by another program"):
        open_database(file_storage)
