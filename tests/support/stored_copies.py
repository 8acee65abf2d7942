"""Rows that many tests store alike: written once per process, then copied into each database."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Hashable
from contextlib import closing

from auditor.storage.database import Database

_MAX_PAGES = 2000

_copies: dict[Hashable, sqlite3.Connection] = {}


def fill_once(db: Database, key: Hashable, fill: Callable[[], object]) -> None:
    """Call `fill`, which writes to `db`; an empty SQLite database gets a copy of what the first call with `key` wrote.

    The copied rows keep their times of creation.
    """
    if db.path is None:
        fill()
        return
    with closing(sqlite3.connect(db.path)) as connection:
        if not _is_empty(connection):
            fill()
        elif key in _copies:
            _copies[key].backup(connection)
        else:
            fill()
            if connection.execute("PRAGMA page_count").fetchone()[0] <= _MAX_PAGES:
                copy = sqlite3.connect(":memory:", check_same_thread=False)
                connection.backup(copy)
                _copies[key] = copy


def _is_empty(connection: sqlite3.Connection) -> bool:
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return not any(
        connection.execute(f'SELECT EXISTS (SELECT 1 FROM "{table}")').fetchone()[0]
        for table in tables
        if table != "auditor_version"
    )
