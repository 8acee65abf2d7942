"""A server that restarts in mid-run, and a file that another program locks: the run waits and asks nothing twice."""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from auditor.agents.run_context import SilentProgress
from auditor.errors import StorageError
from auditor.reports.data.verification import verify_audit
from auditor.run import run_audit
from auditor.storage.database import open_database, run_lock
from tests.e2e.test_killed import CALLS, small
from tests.e2e.test_run import config_file, question, stored
from tests.storage.test_database_errors_outages import end_sessions, held_lock, restart_later
from tests.support.browser_review import wait_until
from tests.support.fake_server import FakeServer, Reply, Request, answer
from tests.support.forked_commands import start
from tests.support.patience import PATIENCE_S
from tests.support.postgres_server import Postgres, running_or_skip
from tests.support.stored_rows import count_attempts

LOCKED = "Another program has locked the database"


class Notices(SilentProgress):
    """Keeps the notices of a run, and sets an event for each."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.events: list[threading.Event] = []

    def on_notice(self, text: str) -> None:
        self.texts.append(text)
        if LOCKED in text:
            for event in self.events:
                event.set()


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server that these tests may stop."""
    with running_or_skip(keeps_commits=True) as server:
        yield server


def test_a_run_goes_on_when_its_server_restarts(server: FakeServer, postgres: Postgres, storage: str) -> None:
    run_audit(small(server), storage=storage)
    server.requests.clear()
    starting: list[threading.Thread] = []
    restarts = [(10, signal.SIGINT), (25, signal.SIGQUIT)]  # after how many requests, and how

    def restart(request: Request) -> Reply:
        if restarts and len(server.requests) >= restarts[0][0] and not any(thread.is_alive() for thread in starting):
            starting.append(restart_later(postgres, restarts.pop(0)[1]))
        return answer(request)

    server.script = restart
    url, notices = postgres.schema(), Notices()
    run_audit(small(server), storage=url, progress=notices)
    for thread in starting:
        thread.join()
    assert len(starting) == 2
    assert stored(url) == stored(storage)
    assert set(Counter(question(request) for request in server.requests).values()) == {1}
    with open_database(url) as db:
        assert count_attempts(db) == len(server.requests) == CALLS
        assert verify_audit(db, "scripted").is_consistent
    assert notices.texts.count("The connection to the database postgres was lost. Reconnecting for up to 120 s.") >= 2
    assert notices.texts.count("The database postgres can be used again.") >= 2


def test_a_run_ends_if_another_one_began_while_its_server_restarted(server: FakeServer, postgres: Postgres) -> None:
    url, taken, release = postgres.schema(), threading.Event(), threading.Event()

    def take_the_lock() -> None:
        with open_database(url) as other:
            while not taken.is_set():
                end_sessions(postgres)
                with suppress(StorageError), run_lock(other, "scripted"):  # the run may have been quicker
                    taken.set()
                    release.wait(PATIENCE_S)

    thread = threading.Thread(target=take_the_lock)

    def script(request: Request) -> Reply:
        if len(server.requests) >= 20 and not taken.is_set():
            if thread.ident is None:
                thread.start()
            assert taken.wait(PATIENCE_S)
        return answer(request)

    server.script = script
    with pytest.raises(StorageError, match="audit 'scripted' is now being run by process"):
        run_audit(small(server), storage=url)
    release.set()
    thread.join()
    server.script = answer
    run_audit(small(server), storage=url)
    with open_database(url) as db:
        assert verify_audit(db, "scripted").is_consistent


def test_a_run_waits_for_a_program_that_locks_its_file(
    server: FakeServer, storage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before its first request, and in mid-run."""
    monkeypatch.setattr("auditor.storage.engine.PRAGMAS", ("busy_timeout=100", "journal_mode=WAL"))
    open_database(storage).close()
    notices = Notices()
    with ExitStack() as locks:

        def hold() -> None:
            """Hold the lock until the run says that it waits."""
            notices.events.append(threading.Event())
            locks.enter_context(held_lock(tmp_path / "audits.db", notices.events[-1]))

        def script(request: Request) -> Reply:
            if len(server.requests) >= 20 and len(notices.events) == 1:
                hold()
            return answer(request)

        server.script = script
        hold()
        run_audit(small(server), storage=storage, progress=notices)
    assert len(server.requests) == CALLS
    assert sum(LOCKED in text for text in notices.texts) == len(notices.events) == 2


def test_a_second_signal_ends_a_run_without_its_server(server: FakeServer, postgres: Postgres, tmp_path: Path) -> None:
    stopped = threading.Event()

    def script(request: Request) -> Reply:
        if len(server.requests) >= 20 and not stopped.is_set():
            postgres.process.stop(signal.SIGINT)
            stopped.set()
        return answer(request)

    server.script = script
    run = start("run", config_file(tmp_path, small(server)), "--storage", postgres.schema())
    try:
        assert stopped.wait(PATIENCE_S)
        time.sleep(2)  # the run waits by now, or soon
        run.send_signal(signal.SIGINT)
        assert wait_until(lambda: run.has_written("Stopping:"))
        run.send_signal(signal.SIGINT)
        _, stderr = run.communicate(timeout=PATIENCE_S)
    finally:
        run.kill()
        postgres.process.start()
    assert run.returncode == 130, stderr
    assert "the run was stopped at once" in stderr
