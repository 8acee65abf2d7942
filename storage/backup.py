"""A whole copy of a SQLite database while others use it; of the file alone, a copy would lack what is not yet in it."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from auditor.errors import StorageError
from auditor.storage.sqlite_file import connect_immutable, create_private, is_read_only


def copy_database(source: Path, target: Path) -> None:
    """Copy a database by SQLite's own backup, check the copy, and only then give it its name.

    Raises:
        StorageError: the target is there already, or the copy could not be made or is not whole.
    """
    if target.exists():
        raise StorageError(f"{target} exists already.", "Name another file.")
    part = target.with_name(f"{target.name}.part")
    try:
        part.unlink(missing_ok=True)
        create_private(part)
        with closing(_connect_read_only(source)) as old, closing(sqlite3.connect(part)) as new:
            old.backup(new)
            new.execute("PRAGMA journal_mode=DELETE")  # one file, and nothing beside it
            found = [row[0] for row in new.execute("PRAGMA integrity_check")]
        if found != ["ok"]:
            raise StorageError(
                f"the copy of {source} is not whole: {found[0]}.",
                "The database itself is damaged; save what can be saved with: sqlite3 FILE .recover",
            )
        _flush_to_disk(part)
        os.replace(part, target)
    except (sqlite3.Error, OSError) as error:
        raise StorageError(f"{source} cannot be copied to {target}: {error}.", "Make room, or name another.") from None
    finally:
        part.unlink(missing_ok=True)


def _connect_read_only(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=30)
    try:
        connection.execute("PRAGMA schema_version")
    except sqlite3.OperationalError:
        connection.close()
        if not is_read_only(path):
            raise
        return connect_immutable(path)
    return connection


def _flush_to_disk(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def unused_path(path: Path) -> Path:
    """The path, or the first of `NAME-2`, `NAME-3`, … that is not taken."""
    names = (path.with_name(f"{path.name}-{number}") for number in range(2, 10_000))
    return path if not path.exists() else next(name for name in names if not name.exists())
