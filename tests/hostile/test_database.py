"""Databases that vanish, that may only be read, or that hold what nobody expects, as whoever gives a command meets them."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from auditor.reports.verification import verify
from auditor.run import run_audit
from auditor.storage.database import open_database
from tests.audits import config
from tests.commands import Done, auditor
from tests.e2e.test_run import CALLS, config_file, stored
from tests.fake_server import FakeServer, Reply, Request, answer


def url(path: Path) -> str:
    return f"sqlite:///{path}"


def one_line(done: Done, code: int) -> str:
    """The one line in which a command says why it failed."""
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("auditor: ")]
    assert len(lines) == 1, done.stderr
    return lines[0]


# --- a database that is deleted or moved while a run goes on ------------------------------------------------------


def with_event(number: int, event: Callable[[], object]) -> Callable[[Request], Reply]:
    """The usual answers; before the one of this number something happens on the machine."""

    def script(request: Request) -> Reply:
        if request.number == number:
            event()
        return answer(request)

    return script


def run(server: FakeServer, folder: Path) -> Done:
    return auditor("run", config_file(folder, config(server.url)), "--storage", url(folder / "audits.db"))


def test_a_deleted_database_stops_the_run_at_the_next_write(server: FakeServer, tmp_path: Path) -> None:
    path = tmp_path / "audits.db"
    server.script = with_event(20, path.unlink)
    line = one_line(run(server, tmp_path), 1)
    assert f"the database audits.db was deleted or moved while it was in use: its data were at {path}." in line
    assert "give the same command again" in line
    assert len(server.requests) <= 20 + 3 * 8  # what was in flight
    assert not path.exists()  # no new, empty one in its place
    server.script = answer
    assert run(server, tmp_path).returncode == 0


def test_a_moved_database_stops_the_run_which_says_where_it_is_and_goes_on_there(
    server: FakeServer, tmp_path: Path
) -> None:
    path, moved = tmp_path / "audits.db", tmp_path / "elsewhere.db"
    server.script = with_event(20, lambda: path.rename(moved))
    line = one_line(run(server, tmp_path), 1)
    assert f"its data were at {path} and are now at {moved}." in line
    assert f"Move it back to {path}, then give the same command again." in line
    assert not path.exists()
    before = len(server.requests)
    assert before < CALLS
    with closing(sqlite3.connect(moved)) as connection:  # what was written is in the one file, and nothing beside it
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        answers = connection.execute("SELECT count(*) FROM answer").fetchone()[0]
    assert 15 <= answers <= before
    moved.rename(path)
    server.script = answer
    assert run(server, tmp_path).returncode == 0
    assert len(server.requests) == before + CALLS - answers
    with open_database(url(path)) as db:
        assert verify(db, "scripted").holds


def test_a_replaced_database_is_left_alone(server: FakeServer, tmp_path: Path) -> None:
    path, other = tmp_path / "audits.db", tmp_path / "other.db"
    run_audit(config(server.url), storage=url(other))
    before, first = stored(url(other)), len(server.requests)
    server.script = with_event(first + 20, lambda: other.replace(path))
    line = one_line(run(server, tmp_path), 1)
    assert f"was replaced by another file while it was in use: its data were at {path}." in line
    assert stored(url(path)) == before
    with open_database(url(path)) as db:
        assert verify(db, "scripted").holds


def test_a_folder_that_is_moved_is_noticed(server: FakeServer, tmp_path: Path) -> None:
    folder, moved = tmp_path / "audits", tmp_path / "old"
    folder.mkdir()
    file = config_file(tmp_path, config(server.url))
    server.script = with_event(20, lambda: folder.rename(moved))
    line = one_line(auditor("run", file, "--storage", url(folder / "audits.db")), 1)
    assert f"its data were at {folder / 'audits.db'} and are now at {moved / 'audits.db'}" in line
    moved.rename(folder)
    server.script = answer
    assert auditor("run", file, "--storage", url(folder / "audits.db")).returncode == 0


def test_a_deleted_file_of_the_graph_stops_the_run(server: FakeServer, tmp_path: Path) -> None:
    graph = tmp_path / "audits.graph.db"
    server.script = with_event(20, graph.unlink)
    line = one_line(run(server, tmp_path), 1)
    assert f"the database audits.graph.db was deleted or moved while it was in use: its data were at {graph}" in line
    server.script = answer
    assert run(server, tmp_path).returncode == 0
    assert len(server.requests) == CALLS  # all answers were in the database itself


def test_a_rating_into_a_deleted_database_is_not_taken_for_saved(server: FakeServer, tmp_path: Path) -> None:
    from auditor.domain import Act, Decision
    from auditor.errors import StorageError
    from auditor.storage import audits, rating_log, reviews
    from auditor.storage.standing import QueueFilter

    path = tmp_path / "audits.db"
    run_audit(config(server.url), storage=url(path))
    with open_database(url(path)) as db:
        audit = audits.get(db, "scripted")
        key, _ = next(iter(reviews.Queue(db, audit.id, "ada").keys(QueueFilter())))
        shutil.move(path, tmp_path / "elsewhere.db")
        with pytest.raises(StorageError, match="not saved: the database audits.db was deleted or moved"):
            rating_log.append(db, audit.id, key, "ada", rating_log.Saying(Act.DECIDE, decision=Decision.LEFT))


# --- answers that no database can hold ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "odd",
    [
        {"usage": {"prompt_tokens": 10**30, "completion_tokens": 20, "total_tokens": 10**30}},
        {"usage": {"prompt_tokens": 2**63, "completion_tokens": 2**64, "total_tokens": 2**65}},
        {"model": "gpt-\ud800", "padding": "x" * 2**17},
        {"model": "gpt-\0", "system_fingerprint": "\udfff"},
    ],
)
def test_an_answer_that_no_database_can_hold_ends_nothing(
    server: FakeServer, tmp_path: Path, odd: dict[str, object]
) -> None:
    def script(request: Request) -> Reply:
        reply = answer(request)
        return replace(reply, body=reply.body | odd) if request.number == 20 else reply

    server.script = script
    done = run(server, tmp_path)
    assert "Traceback" not in done.stderr
    assert done.returncode == 0, done.stderr
    assert len(server.requests) >= CALLS - 2  # a call that failed is no trace for its judges
    with open_database(url(tmp_path / "audits.db")) as db:
        assert verify(db, "scripted").holds
    again = auditor("verify", "scripted", "--storage", url(tmp_path / "audits.db"))
    assert again.returncode == 0, again.stderr
