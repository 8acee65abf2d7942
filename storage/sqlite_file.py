"""The file of a SQLite database: who may read it, whether it is still in its place, and what lies beside it."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from auditor.errors import StorageError

PRIVATE_MODE = 0o600
LOG_SUFFIXES = ("-wal", "-journal", "-shm")
"""What SQLite adds to a file's name for what is not in the file yet, and for an index of it."""
OPEN_FILES_FOLDER = Path("/proc/self/fd")
"""This process's open files on Linux, by which the new name of one that was moved can be found."""
MAX_LISTED_ANSWERS = 5


def create_database_file(path: Path) -> None:
    """Create a file by `create_private` for SQLite, whose own files beside it get the same permissions.

    Raises:
        StorageError: the folder cannot be written to.
    """
    try:
        create_private(path)
    except OSError as error:
        how_to_fix = "Name another place with --storage, or make this folder writable."
        raise StorageError(f"{path}: cannot be created: {error.strerror}.", how_to_fix) from None


def create_private(path: Path) -> None:
    """Create an empty file that only its owner may read, unless there is a file of this name.

    Raises:
        OSError: the folder cannot be written to.
    """
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, PRIVATE_MODE)
    except FileExistsError:
        return
    os.close(handle)
    path.chmod(PRIVATE_MODE)  # a process's umask may have taken the owner's permissions too


def list_permissions(path: Path) -> Iterator[tuple[Path, int]]:
    """The permissions of a database's files, of those that exist."""
    graph = path.with_name(f"{path.stem}.graph.db")
    for file in (path, graph):
        for suffix in ("", *LOG_SUFFIXES):
            with suppress(OSError):
                name = file.with_name(f"{file.name}{suffix}")
                yield name, stat.S_IMODE(name.stat().st_mode)


# --- a file that may only be read ---------------------------------------------------------------------------------


def is_read_only(path: Path) -> bool:
    """Whether a database that exists, or its folder, in which SQLite needs files of its own, may not be written to."""
    return path.is_file() and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))


def connect_immutable(path: Path) -> sqlite3.Connection:
    """Open a database that SQLite cannot open in the usual way, since nothing can be written beside it.

    Raises:
        StorageError: a log beside it holds writes that would be missing.
    """
    refuse_unread_log(path)
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True, check_same_thread=False)


def refuse_unread_log(path: Path) -> None:
    """Raise StorageError where a log with content lies beside a database that is read without it."""
    for suffix in LOG_SUFFIXES[:2]:
        log = path.with_name(f"{path.name}{suffix}")
        if log.exists() and log.stat().st_size > 0:
            message = f"{path} cannot be read: {log.name} beside it holds writes that are not in it yet, and the folder"
            how_to_fix = f"Copy all files {path.name}* to a folder that you may write to, and name the copy."
            raise StorageError(f"{message} {path.parent} is read-only.", how_to_fix)


# --- a file that is not where it was ------------------------------------------------------------------------------


class WatchedFile:
    """An open database's file, to notice that it was deleted, moved or replaced: SQLite itself goes on silently."""

    def __init__(self, path: Path) -> None:
        """Remember which file is at the path now."""
        self.path = path.absolute()
        self._identity = _file_identity(self.path.stat())

    def require_unmoved(self) -> None:
        """Raise StorageError unless the same file is still at its path; one `stat`."""
        if (error := self.moved_error()) is not None:
            raise error

    def moved_error(self, unsaved: Sequence[str] = ()) -> StorageError | None:
        """The error to report where the file is no longer at its path, else None.

        Args:
            unsaved: answers that may be lost with it, in words.
        """
        try:
            if _file_identity(self.path.stat()) == self._identity:
                return None
            event = "was replaced by another file"
        except OSError:
            event = "was deleted or moved"
        now_at = self._find_new_path()
        place = f"its data were at {self.path} and are now at {now_at}" if now_at else f"its data were at {self.path}"
        message = f"the database {self.path.name} {event} while it was in use: {place}."
        if now_at:
            how_to_fix = f"Move it back to {self.path}, then give the same command again."
        else:
            how_to_fix = "Put it back, or a copy of it, then give the same command again: what it lacks is asked again."
        return StorageError(message + _unsaved_warning(unsaved), how_to_fix)

    def _find_new_path(self) -> str | None:
        """Where a file that was moved is now; None where it was deleted, or the system does not tell."""
        try:
            handles = list(OPEN_FILES_FOLDER.iterdir())
        except OSError:
            return None
        for handle in handles:
            try:
                if _file_identity(handle.stat()) == self._identity:
                    target = os.readlink(handle)
                    return target if os.path.exists(target) else None
            except OSError:  # closed meanwhile
                continue
        return None


def _file_identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _unsaved_warning(unsaved: Sequence[str]) -> str:
    if not unsaved:
        return ""
    shown = ", ".join(unsaved[:MAX_LISTED_ANSWERS])
    more = f" and {len(unsaved) - MAX_LISTED_ANSWERS} more" if len(unsaved) > MAX_LISTED_ANSWERS else ""
    return f" These answers may not be on disk: {shown}{more}."
