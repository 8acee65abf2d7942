"""Which tables a database has: none yet, today's, those of an older program, or of a newer one.

The version is read with plain SQL; alembic, which takes half a second to load, is there for an upgrade only.
"""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import (
    Column,
    Connection,
    Engine,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    insert,
    inspect,
    select,
    text,
)
from sqlmodel import SQLModel

from auditor.errors import EmptyStorageError, StorageError
from auditor.storage.backup import copy_database, free_name
from auditor.storage.engine import HIDDEN, make_engine, reading, shown
from auditor.storage.tables import REVISION, VERSION_TABLE

VERSION = Table(
    VERSION_TABLE,
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name=f"{VERSION_TABLE}_pkc"),
)
"""As alembic makes it."""


class State(Enum):
    """How the tables of a database stand to this program's."""

    EMPTY = "empty"
    TODAY = "today"
    OLDER = "older"
    NEWER = "newer"
    UNRELEASED = "unreleased"
    FOREIGN = "foreign"


class Found(NamedTuple):
    """What is there; `revision` is None where none is noted."""

    state: State
    revision: str | None


class Upgrade(NamedTuple):
    """An upgrade that was made; `copy` is the database as it was before, None on a server."""

    before: str
    after: str
    copy: Path | None

    def __str__(self) -> str:
        kept = f"; as it was it is kept in {self.copy}" if self.copy else ""
        return f"The database was upgraded from revision {self.before} to {self.after}{kept}."


def look(engine: Engine) -> Found:
    """What tables there are; only reads."""
    with engine.connect().execution_options(**reading(engine)) as connection:
        return _look(connection)


def _look(connection: Connection) -> Found:
    names = inspect(connection).get_table_names()
    if VERSION_TABLE not in names:
        unreleased = {"meta", "audit", "answer"} <= set(names)
        return Found(State.UNRELEASED if unreleased else State.FOREIGN if names else State.EMPTY, None)
    revision = connection.execute(select(VERSION.c.version_num)).scalar_one_or_none()
    if revision == REVISION:
        return Found(State.TODAY, revision)
    is_older = revision is not None and revision < REVISION
    return Found(State.OLDER if is_older else State.NEWER, revision)


def refuse(url: str, found: Found) -> StorageError:
    """What is wrong with a database that is not today's, and how to mend it."""
    where = shown(url)
    if found.state is State.EMPTY:
        return EmptyStorageError(f"{where}: holds no audits yet.", "Make one with `auditor run`.")
    given = "" if HIDDEN in where else f" --storage {where}"
    known = f"revision {found.revision}, known here: {REVISION}"
    told = {
        State.OLDER: (
            f"{where}: made by an older version of auditor ({known}).",
            f"Upgrade it, which keeps all that is in it: auditor doctor --upgrade{given}",
        ),
        State.NEWER: (f"{where}: written by a newer version of auditor ({known}).", "Update auditor."),
        State.UNRELEASED: (
            f"{where}: made by a version of auditor from before the first release.",
            "Name another with --storage; that version still reads it.",
        ),
        State.FOREIGN: (f"{where}: a database, but not one of auditor's.", "Name another with --storage."),
    }
    return StorageError(*told[found.state])


def create(engine: Engine) -> None:
    """Make today's tables in an empty database; another process may be at the same."""
    with engine.begin() as connection:
        if _look(connection).state is State.EMPTY:
            SQLModel.metadata.create_all(connection)
            VERSION.create(connection)
            connection.execute(insert(VERSION), [{"version_num": REVISION}])


def upgrade(url: str, path: Path | None, *, to: str = REVISION, versions: tuple[Path, ...] = ()) -> Upgrade | None:
    """Bring an older database up to today's tables, all at once or not at all; a file is copied first.

    Nobody else writes meanwhile. A server's own tools keep its copies.

    Args:
        url: of the database.
        path: of its file; None on a server.
        to: the revision wanted.
        versions: further folders of revisions.

    Returns:
        What was done; None where nothing was to do.

    Raises:
        StorageError: the upgrade would break references between tables, or the copy cannot be made.
    """
    from auditor.storage import migrations

    engine = make_engine(url, foreign_keys=False)
    try:
        with engine.begin() as connection:
            before = _look(connection).revision
            if before is None or before >= to:
                return None
            copy = None
            if path is not None:
                copy = free_name(path.with_name(f"{path.name}.bak-{before}"))
                copy_database(path, copy)
            migrations.upgrade(connection, to, versions)
            if path is not None:
                _check_references(connection, url)
        return Upgrade(before, to, copy)
    finally:
        engine.dispose()


def _check_references(connection: Connection, url: str) -> None:
    broken = connection.execute(text("PRAGMA foreign_key_check")).first()
    if broken is not None:
        raise StorageError(
            f"{shown(url)}: rows of '{broken[0]}' refer to rows of '{broken[2]}' that are not there.",
            "Nothing was changed; the copy beside it is as it was too.",
        )
