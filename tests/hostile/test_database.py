"""Commands with a database that is deleted, moved or read-only, with a full disk, or with values it cannot store."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from auditor.domain import Decision, RatingAction
from auditor.errors import StorageError
from auditor.reports.data.verification import verify_audit
from auditor.run import run_audit
from auditor.storage import audits, rating_log, review_queue
from auditor.storage.conflict_status import QueueFilter
from auditor.storage.database import Database, open_database
from auditor.storage.rating_log import RatingChange
from auditor.storage.sqlite_file import copy_database
from tests.e2e.test_run import CALLS, JAPAN, config_file, stored
from tests.support.audit_configs import THREE_SAMPLES, config
from tests.support.cli_runner import CommandOutput, auditor, succeed
from tests.support.fake_server import FakeServer, Reply, Request, answer
from tests.support.known import known
from tests.support.stored_rows import decide


def url(path: Path) -> str:
    return f"sqlite:///{path}"


def error_line(command: CommandOutput, code: int) -> str:
    """Check the exit code and return the one line of stderr that explains the failure."""
    assert command.returncode == code, command.stderr
    assert "Traceback" not in command.stderr
    lines = [line for line in command.stderr.splitlines() if line.startswith("auditor: ")]
    assert len(lines) == 1, command.stderr
    return lines[0]


# --- databases that are deleted or moved during a run ----------------------------------------------------------------

UNDER_WAY = 3 * 12
"""Maximum number of calls not recorded yet: for each of three models 8 in flight and 4 that wait for the disk."""


def with_event(request_number: int, event: Callable[[], object]) -> Callable[[Request], Reply]:
    """Script with normal answers that calls `event` before it answers the request of this number."""

    def script(request: Request) -> Reply:
        if request.number == request_number:
            event()
        return answer(request)

    return script


def run(server: FakeServer, folder: Path, **changes: Any) -> CommandOutput:
    """Run the test audit with its database in `audits.db` of a folder."""
    return auditor("run", config_file(folder, config(server.url, **changes)), "--storage", url(folder / "audits.db"))


def test_a_deleted_database_stops_the_run_at_the_next_write(server: FakeServer, tmp_path: Path) -> None:
    path = tmp_path / "audits.db"
    server.script = with_event(20, path.unlink)
    line = error_line(run(server, tmp_path), 1)
    assert f"the database audits.db was deleted or moved while it was in use: its data were at {path}." in line
    assert "run the same command again" in line
    assert len(server.requests) <= 20 + UNDER_WAY
    assert not path.exists()  # no new, empty database was created
    server.script = answer
    assert run(server, tmp_path).returncode == 0


def test_a_moved_database_stops_the_run_which_names_the_path_and_can_resume(server: FakeServer, tmp_path: Path) -> None:
    path, moved = tmp_path / "audits.db", tmp_path / "elsewhere.db"
    server.script = with_event(60, lambda: path.rename(moved))
    line = error_line(run(server, tmp_path, probes=THREE_SAMPLES), 1)
    assert f"its data were at {path} and are now at {moved}." in line
    assert f"Move it back to {path}, then run the same command again." in line
    assert not path.exists()
    requests_before = len(server.requests)
    assert requests_before < 3 * CALLS
    with closing(sqlite3.connect(moved)) as connection:  # all data are in the main file, not in a log
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        answers = connection.execute("SELECT count(*) FROM answer").fetchone()[0]
    assert 60 - UNDER_WAY <= answers <= requests_before
    moved.rename(path)
    server.script = answer
    assert run(server, tmp_path, probes=THREE_SAMPLES).returncode == 0
    assert len(server.requests) == requests_before + 3 * CALLS - answers
    with open_database(url(path)) as db:
        assert verify_audit(db, "scripted").is_consistent


def test_a_replaced_database_is_not_written_to(server: FakeServer, finished: Path, tmp_path: Path) -> None:
    path, before = tmp_path / "audits.db", stored(url(finished))
    server.script = with_event(20, lambda: finished.replace(path))
    line = error_line(run(server, tmp_path), 1)
    assert f"was replaced by another file while it was in use: its data were at {path}." in line
    assert stored(url(path)) == before
    with open_database(url(path)) as db:
        assert verify_audit(db, "scripted").is_consistent


def test_a_folder_that_is_moved_is_noticed(server: FakeServer, tmp_path: Path) -> None:
    folder, moved = tmp_path / "audits", tmp_path / "old"
    folder.mkdir()
    file = config_file(tmp_path, config(server.url))
    server.script = with_event(20, lambda: folder.rename(moved))
    line = error_line(auditor("run", file, "--storage", url(folder / "audits.db")), 1)
    assert f"its data were at {folder / 'audits.db'} and are now at {moved / 'audits.db'}" in line
    moved.rename(folder)
    server.script = answer
    assert auditor("run", file, "--storage", url(folder / "audits.db")).returncode == 0


def test_a_rating_in_a_deleted_database_is_an_error(finished: Path, tmp_path: Path) -> None:
    with open_database(url(finished)) as db:
        audit = audits.get_audit(db, "scripted")
        key, _ = next(iter(review_queue.ConflictQueue(db, audit.id, "ada").keys(QueueFilter())))
        shutil.move(finished, tmp_path / "elsewhere.db")
        with pytest.raises(StorageError, match=r"not saved: the database audits\.db was deleted or moved"):
            decide(db, audit, key, Decision.LEFT)


# --- read-only databases ---------------------------------------------------------------------------------------------


@contextmanager
def mounted(folder: Path, *mounts: list[str | Path]) -> Iterator[None]:
    """Mount a folder by these commands until the block ends; skip the test if mounting is not permitted."""
    with contextlib.ExitStack() as stack:
        for command in mounts:
            try:
                subprocess.run(command, check=True, capture_output=True)
            except (OSError, subprocess.CalledProcessError) as error:
                pytest.skip(f"nothing can be mounted here, which takes root and CAP_SYS_ADMIN: {error}")
            if command is mounts[0]:
                stack.callback(lambda: subprocess.run(["umount", "-l", folder], check=True))
        yield


def read_only(folder: Path) -> contextlib.AbstractContextManager[None]:
    """Mount the folder read-only, which root cannot write to either."""
    return mounted(folder, ["mount", "--bind", folder, folder], ["mount", "-o", "remount,ro,bind", folder])


@pytest.fixture(scope="module")
def audit_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Path of the database of a finished audit. Tests must not change it."""
    path = tmp_path_factory.mktemp("made") / "audits.db"
    with FakeServer() as server:
        run_audit(config(server.url), storage=url(path))
    return path


@pytest.fixture
def finished(audit_database: Path, tmp_path: Path) -> Path:
    """A copy of that database in its own folder, whose name has a space."""
    path = tmp_path / "an archive" / "audits.db"
    path.parent.mkdir()
    copy_database(audit_database, path)
    open_database(url(path)).close()  # a copy has no write-ahead log until it is opened
    return path


def reading_commands(path: Path, out: Path) -> list[tuple[str | Path, ...]]:
    """Commands that only read the database; files that they write are in `out`."""
    storage_option = ("--storage", url(path))
    return [
        ("status", *storage_option),
        ("status", "scripted", *storage_option),
        ("report", "scripted", "-o", out / "report.html", *storage_option),
        ("verify", "scripted", *storage_option),
        ("doctor", "scripted", *storage_option),
        ("export", "tables", "scripted", "-f", "jsonl", "-o", out / "tables", *storage_option),
        ("export", "ratings", "scripted", "-o", out / "ratings.csv", *storage_option),
        ("export", "paper", "scripted", "-o", out / "paper", *storage_option),
        ("export", "backup", "-o", out / "copy.db", *storage_option),
    ]


@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
def test_a_database_on_a_read_only_file_system_can_be_read(finished: Path, tmp_path: Path, mode: str) -> None:
    results_before = stored(url(finished))
    with closing(sqlite3.connect(finished)) as connection:
        assert connection.execute(f"PRAGMA journal_mode={mode}").fetchone() == (mode.lower(),)
    with read_only(finished.parent):
        before = sorted(finished.parent.iterdir())
        commands = reading_commands(finished, tmp_path)
        for command in commands if mode == "WAL" else [*commands[1:3], commands[-1]]:
            completed = auditor(*command)
            assert (completed.returncode, "Traceback" in completed.stderr) == (0, False), (command, completed.stderr)
        assert sorted(finished.parent.iterdir()) == before
        assert stored(url(finished)) == results_before
    assert stored(url(tmp_path / "copy.db")) == results_before
    assert "scripted" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_writes_to_a_read_only_database_are_one_line_errors(server: FakeServer, finished: Path, tmp_path: Path) -> None:
    file = config_file(tmp_path, config(server.url, name="another"))
    requests_before = len(server.requests)
    with read_only(finished.parent):
        line = error_line(auditor("run", file, "--storage", url(finished)), 1)
        assert "another.lock: cannot be written: Read-only file system." in line
        line = error_line(auditor("run", file, "--storage", url(finished.with_name("new.db"))), 1)
        assert "new.db: cannot be created: Read-only file system." in line
        with open_database(url(finished), create=False) as db, pytest.raises(StorageError, match=r"readonly.* Copy it"):
            db.write(lambda connection: connection.exec_driver_sql("DELETE FROM trace"))
    assert len(server.requests) == requests_before


def leave_log(path: Path, folder: Path, *, index: bool) -> Path:
    """Copy a database as left by a process that was killed after a write: its deleted verdicts are only in the log.

    Args:
        index: whether the log's index (`-shm`) is copied too; without it a read-only log cannot be read.
    """
    folder.mkdir()
    with open_database(url(path)) as db:
        db.write(lambda connection: connection.exec_driver_sql("DELETE FROM verdict"))
        for suffix in ("", "-wal", "-shm") if index else ("", "-wal"):
            shutil.copy(f"{path}{suffix}", folder / f"{path.name}{suffix}")
    return folder / path.name


def test_an_unreadable_log_on_a_read_only_file_system_is_an_error(finished: Path, tmp_path: Path) -> None:
    path = leave_log(finished, tmp_path / "left", index=False)
    out = tmp_path / "out"
    out.mkdir()
    with read_only(path.parent):
        for command in (c for c in reading_commands(path, out) if c[0] != "doctor"):  # prints a table of checks instead
            line = error_line(auditor(*command), 1)
            assert "audits.db-wal has changes that are not yet in the database" in line
            assert "Copy all files" in line
    assert list(out.iterdir()) == []
    assert stored(url(path))["verdicts"] == []


def test_a_readable_log_on_a_read_only_file_system_is_used(finished: Path, tmp_path: Path) -> None:
    results_before = stored(url(finished))
    path = leave_log(finished, tmp_path / "left", index=True)
    assert results_before["verdicts"]
    with read_only(path.parent):
        assert stored(url(path)) == results_before | {"verdicts": []}


def test_a_log_that_appears_while_a_read_only_database_is_open_is_noticed(finished: Path, tmp_path: Path) -> None:
    """Another user, who has write access, begins a run."""
    mounted = tmp_path / "mounted"
    shutil.copytree(finished.parent, mounted)
    with read_only(mounted):
        db = open_database(url(mounted / finished.name), create=False)
    with db:
        (mounted / f"{finished.name}-wal").write_bytes(b"x")
        with pytest.raises(StorageError, match="has changes that are not yet in the database"):
            audits.load_audits(db)


# --- file permissions of databases -----------------------------------------------------------------------------------


@pytest.mark.parametrize("umask", [0o000, 0o277])
def test_all_files_of_a_new_database_are_private_to_their_owner(server: FakeServer, tmp_path: Path, umask: int) -> None:
    file = config_file(tmp_path, config(server.url, survey=JAPAN))
    folder = tmp_path / "audits"
    folder.mkdir()
    path = folder / "audits.db"
    mode_by_name: dict[str, int] = {}

    def record_modes() -> None:
        files = [file for file in folder.rglob("*") if file.is_file()]
        mode_by_name.update({file.name: stat.S_IMODE(file.stat().st_mode) for file in files})

    server.script = with_event(15, record_modes)
    previous_umask = os.umask(umask)
    try:
        succeed("run", file, "--storage", url(path))
        succeed("export", "backup", "-o", folder / "copy.db", "--storage", url(path))
    finally:
        os.umask(previous_umask)
    record_modes()
    assert mode_by_name == dict.fromkeys(mode_by_name, 0o600)
    names = {f"audits.db{log}" for log in ("", "-wal", "-shm")}
    assert names | {"copy.db", "scripted.lock", "scripted.holder"} <= mode_by_name.keys()


def test_doctor_warns_of_a_database_that_others_can_read(finished: Path) -> None:
    assert privacy_check(finished) is None
    finished.chmod(0o644)
    warning = known(privacy_check(finished))
    assert (warning["state"], warning["found"]) == ("warn", "other users of this machine can read audits.db")
    assert warning["mend"] == f"chmod go-rwx '{finished}'"
    finished.chmod(0o600)
    assert privacy_check(finished) is None


def privacy_check(path: Path) -> dict[str, str] | None:
    """The check `privacy` of `auditor doctor`, or None if it is not listed."""
    doctor_command = auditor("doctor", "--json", "--storage", url(path))
    checks: list[dict[str, str]] = json.loads(doctor_command.stdout)
    return next((check for check in checks if check["name"] == "privacy"), None)


# --- full disks ------------------------------------------------------------------------------------------------------


def full_disk(folder: Path, size: int) -> contextlib.AbstractContextManager[None]:
    """Mount a disk of `size` bytes as the folder."""
    folder.mkdir()
    return mounted(folder, ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder])


EXPORTS = {
    "report": ("report", "scripted", "--format", "html", "-o", "{}/report.html"),
    "ratings": ("export", "ratings", "scripted", "-o", "{}/ratings.csv"),
    "tables": ("export", "tables", "scripted", "-f", "jsonl", "-o", "{}/tables"),
    "parquet": ("export", "tables", "scripted", "-f", "parquet", "-o", "{}/tables"),
    "paper": ("export", "paper", "scripted", "-o", "{}/paper"),
    "plots": ("export", "plots", "scripted", "-o", "{}/plots"),
    "inspect": ("export", "inspect", "scripted", "-o", "{}/logs"),
    "backup": ("export", "backup", "-o", "{}/copy.db"),
    "init": ("init", "--force", "{}/audit.toml"),
}


@pytest.mark.parametrize("name", EXPORTS)
def test_a_full_disk_keeps_earlier_files_and_is_reported_in_one_line(finished: Path, tmp_path: Path, name: str) -> None:
    disk = tmp_path / "disk"
    storage = () if name == "init" else ("--storage", url(finished))
    arguments = [word.format(disk) for word in EXPORTS[name]]
    if name == "ratings":
        with open_database(url(finished)) as db:
            audit = audits.get_audit(db, "scripted")
            add_long_note(db, audit)
    with full_disk(disk, 2**24):
        first_export = auditor(*arguments, *storage)
        assert first_export.returncode == 0, first_export.stderr
        before = read_files(disk)
        assert before
        if name == "backup":
            (disk / "copy.db").unlink()  # a copy never replaces another
            before = {}
        filler = disk / "filler"
        with contextlib.suppress(OSError), filler.open("wb") as file:
            while True:
                file.write(bytes(2**16))
                file.flush()
        line = error_line(auditor(*arguments, *storage), 1)
        assert str(disk) in line
        assert "No space left on device" in line or "disk is full" in line
        assert "Free space" in line
        filler.unlink()
        assert read_files(disk) == before


def read_files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def add_long_note(db: Database, audit: audits.Audit) -> None:
    """Add a rating with a note of 20 kB, so that the export of ratings needs space."""
    key, _ = next(iter(review_queue.ConflictQueue(db, audit.id, "ada").keys(QueueFilter())))
    rating_log.append_rating(db, audit.id, key, "ada", RatingChange(RatingAction.NOTE, note="long " * 2**12))


@pytest.mark.parametrize("arguments", [("report", "scripted", "--format", "json"), ("status",)])
def test_a_full_disk_behind_standard_output_is_reported_in_one_line(finished: Path, arguments: tuple[str, ...]) -> None:
    program = [sys.executable, "-m", "auditor", *arguments, "--storage", url(finished)]
    with Path("/dev/full").open("w") as full_device:
        process = subprocess.run(program, stdout=full_device, stderr=subprocess.PIPE, text=True, check=False)
    assert process.returncode == 1
    assert process.stderr.splitlines()[-1].startswith("auditor: standard output: cannot be written: No space left")
    assert "Traceback" not in process.stderr
    assert "Exception ignored" not in process.stderr


# --- answers that no database can store ------------------------------------------------------------------------------


ODD_FIELDS: tuple[dict[str, object], ...] = (
    {"usage": {"prompt_tokens": 10**30, "completion_tokens": 20, "total_tokens": 10**30}},
    {"usage": {"prompt_tokens": 2**63, "completion_tokens": 2**64, "total_tokens": 2**65}},
    {"model": "gpt-\ud800", "padding": "x" * 2**17},
    {"model": "gpt-\0", "system_fingerprint": "\udfff"},
)


def test_answers_that_no_database_can_store_do_not_stop_the_run(server: FakeServer, tmp_path: Path) -> None:
    odd_fields = dict(zip(range(10, 26, 4), ODD_FIELDS, strict=True))

    def script(request: Request) -> Reply:
        reply = answer(request)
        return replace(reply, body=reply.body | odd_fields.get(request.number, {}))

    server.script = script
    run_command = run(server, tmp_path, judges=[])
    assert "Traceback" not in run_command.stderr
    assert run_command.returncode == 0, run_command.stderr
    assert len(server.requests) >= CALLS / 3  # without judges
    verify_command = auditor("verify", "scripted", "--storage", url(tmp_path / "audits.db"))
    assert verify_command.returncode == 0, verify_command.stderr
