"""Copy a SQLite database while other processes use it.

A copy of the file alone would lack the writes that are still in the write-ahead log.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from auditor.atomic_files import open_replacement
from auditor.errors import StorageError, UsageError
from auditor.storage.sqlite_file import PRIVATE_MODE, connect_immutable, create_private, is_read_only


def copy_database(source: Path, target: Path) -> None:
    """Copy a database with SQLite's backup API. The target appears only once the copy has passed an integrity check.

    Raises:
        StorageError: the target exists, the copy could not be written, or the integrity check failed.
    """
    if target.exists():
        raise StorageError(f"{target} exists already.", "Name another file.")
    try:
        with open_replacement(target, PRIVATE_MODE) as temporary_file:
            create_private(temporary_file)
            with (
                closing(_connect_read_only(source)) as source_connection,
                closing(sqlite3.connect(temporary_file)) as copy_connection,
            ):
                source_connection.backup(copy_connection)
                copy_connection.execute("PRAGMA journal_mode=DELETE")  # no write-ahead log: the copy is a single file
                check_messages = [row[0] for row in copy_connection.execute("PRAGMA integrity_check")]
            if check_messages != ["ok"]:
                raise StorageError(
                    f"the copy of {source} is incomplete: {check_messages[0]}.",
                    "The database is damaged. Recover what is left with: sqlite3 FILE .recover",
                )
    except UsageError as error:
        raise StorageError(f"{source} cannot be copied: {error.message}", error.how_to_fix) from None
    except sqlite3.Error as error:
        raise StorageError(
            f"{source} cannot be copied to {target}: {error}.", "Free space on the disk, or name another file."
        ) from None


def _connect_read_only(path: Path) -> sqlite3.Connection:
    """Open a database for reading, also in a folder where SQLite cannot create its log files."""
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=30)
    try:
        connection.execute("PRAGMA schema_version")
    except sqlite3.OperationalError:
        connection.close()
        if not is_read_only(path):
            raise
        return connect_immutable(path)
    return connection


def find_unused_path(path: Path) -> Path:
    """Return the path if no file exists there, else the first free one of `NAME-2`, `NAME-3`, …"""
    candidates = (path.with_name(f"{path.name}-{number}") for number in range(2, 10_000))
    return path if not path.exists() else next(candidate for candidate in candidates if not candidate.exists())
