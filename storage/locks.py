"""One run of an audit at a time, and who it is. A lock of a process that died is free by itself."""

from __future__ import annotations

import os
import platform
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout
from sqlalchemy import Connection, Engine, text

from auditor.errors import StorageError
from auditor.storage.engine import RUN_LOCK_CLASS, describe_process
from auditor.storage.sqlite_file import PRIVATE_MODE, create_private


class LockHeldError(Exception):
    """Somebody else holds the lock; `who` says who, where it is known."""

    def __init__(self, holder: str) -> None:
        super().__init__(holder)
        self.holder = holder


# --- beside a file ----------------------------------------------------------------------------------------------


@contextmanager
def hold_file_lock(database: Path, audit_name: str) -> Iterator[None]:
    """Hold an audit by a lock beside the database's file, with a note of who holds it."""
    note = _holder_file(database, audit_name)
    lock = FileLock(str(note.with_suffix(".lock")), timeout=0, mode=PRIVATE_MODE)
    try:
        lock.acquire()
    except Timeout:
        raise LockHeldError(note.read_text(encoding="utf-8") if note.exists() else "another process") from None
    except OSError as error:
        raise _lock_error(lock.lock_file, error) from None
    try:
        _write_holder(note)
        yield
    finally:
        note.unlink(missing_ok=True)
        lock.release()


def _write_holder(holder_file: Path) -> None:
    try:
        create_private(holder_file)
        holder_file.write_text(describe_process(), encoding="utf-8")
    except OSError as error:
        raise _lock_error(str(holder_file), error) from None


def _lock_error(file: str, error: OSError) -> StorageError:
    how_to_fix = "A run needs a folder that it may write to, and room there: copy the database to one."
    return StorageError(f"{file}: cannot be written: {error.strerror}.", how_to_fix)


def find_file_lock_holder(database: Path, audit_name: str) -> str | None:
    """Who holds an audit, by the note beside its lock; the lock itself is left alone."""
    try:
        who = _holder_file(database, audit_name).read_text(encoding="utf-8")
    except OSError:
        return None
    found = re.fullmatch(r"process (\d+) on (.*)", who, re.DOTALL)
    if found is None or (found[2] == platform.node()[:40] and not _is_alive(int(found[1]))):
        return None
    return who


def _holder_file(database: Path, audit_name: str) -> Path:
    return database.with_name(f"{database.name}.{audit_name}.holder")


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


# --- on a server ------------------------------------------------------------------------------------------------

HOLDER_QUERY = text(
    "SELECT s.application_name FROM pg_locks l JOIN pg_stat_activity s ON s.pid = l.pid"
    " WHERE l.locktype = 'advisory' AND l.classid = :kind AND l.objid = CAST(:audit AS bigint) AND l.objsubid = 2"
    " AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND l.granted"
)


@contextmanager
def hold_server_lock(engine: Engine, audit_name: str) -> Iterator[None]:
    """Hold an audit by an advisory lock, which ends with the connection that took it."""
    with engine.connect().execution_options(auditor_reads=True, isolation_level="AUTOCOMMIT") as connection:
        take = text("SELECT pg_try_advisory_lock(:kind, :audit)")
        if not connection.execute(take, {"kind": RUN_LOCK_CLASS, "audit": _lock_id(audit_name)}).scalar_one():
            raise LockHeldError(find_server_lock_holder(connection, audit_name) or "another process")
        try:
            yield
        finally:
            connection.invalidate()  # the connection's end is the lock's, also where the server has gone meanwhile


def find_server_lock_holder(connection: Connection, audit_name: str) -> str | None:
    """Who holds an audit, as its connection calls itself."""
    given = {"kind": RUN_LOCK_CLASS, "audit": _lock_id(audit_name) % 2**32}
    return connection.execute(HOLDER_QUERY, given).scalars().first()


def _lock_id(audit_name: str) -> int:
    """A signed 32-bit number for a name, as advisory locks want it."""
    return zlib.crc32(audit_name.encode()) - 2**31
