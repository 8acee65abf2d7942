"""Locks that allow one run of an audit at a time, and the name of the process that holds one.

The lock of a process that died is released by the operating system or the server.
"""

from __future__ import annotations

import errno
import os
import platform
import re
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import sqlalchemy as sa

from auditor.errors import StorageError
from auditor.storage.engine import RUN_LOCK_CLASS, describe_process
from auditor.storage.sqlite_file import PRIVATE_MODE, create_private_folder, read_unlinked, replace_private


class LockHeldError(Exception):
    """Another process holds the lock; `holder` is its description, or "another process"."""

    def __init__(self, holder: str) -> None:
        super().__init__(holder)
        self.holder = holder


# --- SQLite -----------------------------------------------------------------------------------------------------


@contextmanager
def hold_file_lock(database: Path, audit_name: str) -> Iterator[None]:
    """Hold an audit's lock, a file in a hidden folder beside the database, with a description of this process.

    The lock's file stays when the lock is released: another process may have opened it.

    Raises:
        LockHeldError: another process holds it.
        StorageError: the folder cannot be written to, or is a link.
    """
    from filelock import FileLock, Timeout  # on first use: commands that only read take no lock

    holder_file = _holder_file(database, audit_name)
    lock = FileLock(str(holder_file.with_suffix(".lock")), timeout=0, mode=PRIVATE_MODE)
    try:
        create_private_folder(holder_file.parent)
        _refuse_linked_lock(Path(lock.lock_file))
        lock.acquire()
    except Timeout:
        raise LockHeldError(_read_holder(holder_file) or "another process") from None
    except OSError as error:
        raise _lock_error(lock.lock_file, error) from None
    try:
        _write_holder(holder_file)
        yield
    finally:
        holder_file.unlink(missing_ok=True)
        lock.release()


def _refuse_linked_lock(path: Path) -> None:
    """Raise OSError if a lock's file is a link or has a second name: taking the lock would empty another file."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return
    if stat.S_ISLNK(status.st_mode) or status.st_nlink > 1:
        raise OSError(errno.ELOOP, "it is a link", str(path))


def _write_holder(holder_file: Path) -> None:
    """Write the description of this process to a file.

    Raises:
        StorageError: the file cannot be written.
    """
    try:
        replace_private(holder_file, describe_process())
    except OSError as error:
        raise _lock_error(str(holder_file), error) from None


def _lock_error(file: str, error: OSError) -> StorageError:
    """Build the error for a lock's file that cannot be written, or is a link."""
    if error.errno == errno.ELOOP:
        return StorageError(f"{file}: is a link, which is not followed.", "Delete the link, if it is safe.")
    if error.errno in (errno.EACCES, errno.EPERM) and (of_another_user := _find_of_another_user(Path(file))):
        return StorageError(
            f"{of_another_user}: belongs to another user, whose command created it to lock the audit.",
            "Delete it while no command of that user runs. The database does not need it.",
        )
    how_to_fix = "Copy the database to a writable folder with free space, and name it with --storage."
    return StorageError(f"{file}: cannot be written: {error.strerror}.", how_to_fix)


def _find_of_another_user(file: Path) -> Path | None:
    """The hidden folder that a lock's file lies in, or the file, if another user owns it; None if none does."""
    user_id = getattr(os, "geteuid", lambda: None)()  # there are no such ids on Windows
    for path in (file.parent, file):
        with suppress(OSError):
            if user_id is not None and path.lstat().st_uid != user_id:
                return path
    return None


def find_file_lock_holder(database: Path, audit_name: str) -> str | None:
    """Description of the process that holds an audit's lock; None if there is none, or it has died.

    Reads the file beside the lock and does not touch the lock.
    """
    holder_file = _holder_file(database, audit_name)
    holder = None if holder_file.parent.is_symlink() else _read_holder(holder_file)
    if holder is None:
        return None
    match = re.fullmatch(r"process (\d+) on (.*)", holder, re.DOTALL)
    if match is None or (match[2] == platform.node()[:40] and not _is_alive(int(match[1]))):
        return None
    return holder


def _read_holder(holder_file: Path) -> str | None:
    """The description of a process in a file; None if there is no such file, or it is a link."""
    try:
        return read_unlinked(holder_file)
    except OSError:
        return None


def _holder_file(database: Path, audit_name: str) -> Path:
    """The file that describes who holds an audit's lock, which lies beside it."""
    return database.with_name(f".{database.name}.locks") / f"{audit_name}.holder"


def _is_alive(pid: int) -> bool:
    """Whether a process with this id exists on this machine."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it exists, but belongs to another user
        return True
    return True


# --- PostgreSQL -------------------------------------------------------------------------------------------------

HOLDER_QUERY = sa.text(
    "SELECT s.application_name FROM pg_locks l JOIN pg_stat_activity s ON s.pid = l.pid"
    " WHERE l.locktype = 'advisory' AND l.classid = :kind AND l.objid = CAST(:audit AS bigint) AND l.objsubid = 2"
    " AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND l.granted"
)


def acquire_server_lock(connection: sa.Connection, audit_name: str) -> None:
    """Take an audit's advisory lock, which ends with the connection.

    Raises:
        LockHeldError: another connection holds it.
    """
    lock_query = sa.text("SELECT pg_try_advisory_lock(:kind, :audit)")
    while not connection.execute(lock_query, {"kind": RUN_LOCK_CLASS, "audit": _lock_id(audit_name)}).scalar_one():
        if holder := find_server_lock_holder(connection, audit_name):  # None: it ended since the query before
            raise LockHeldError(holder)
        connection.rollback()  # in a transaction, pg_stat_activity does not change


def find_server_lock_holder(connection: sa.Connection, audit_name: str) -> str | None:
    """Application name of the connection that holds an audit's advisory lock; None if none does."""
    # pg_locks shows the id as an unsigned number.
    parameters = {"kind": RUN_LOCK_CLASS, "audit": _lock_id(audit_name) % 2**32}
    return connection.execute(HOLDER_QUERY, parameters).scalars().first()


def _lock_id(audit_name: str) -> int:
    """Signed 32-bit id of an audit's advisory lock: the CRC-32 of its name, minus 2**31."""
    return zlib.crc32(audit_name.encode()) - 2**31
