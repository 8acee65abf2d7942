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
from auditor.storage.backup import copy_database, unused_path
from auditor.storage.engine import REDACTED, make_engine, read_only_options, redact_url
from auditor.storage.tables import REVISION, VERSION_TABLE

VERSION_TABLE_DEFINITION = Table(
    VERSION_TABLE,
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name=f"{VERSION_TABLE}_pkc"),
)
"""As alembic makes it."""


class SchemaState(Enum):
    """How the tables of a database stand to this program's."""

    EMPTY = "empty"
    CURRENT = "today"
    OLDER = "older"
    NEWER = "newer"
    UNRELEASED = "unreleased"
    FOREIGN = "foreign"


class DetectedSchema(NamedTuple):
    """What is there; `revision` is None where none is noted."""

    state: SchemaState
    revision: str | None


class SchemaUpgrade(NamedTuple):
    """An upgrade that was made; `copy` is the database as it was before, None on a server."""

    from_revision: str
    to_revision: str
    backup: Path | None

    def __str__(self) -> str:
        kept = f"; as it was it is kept in {self.backup}" if self.backup else ""
        return f"The database was upgraded from revision {self.from_revision} to {self.to_revision}{kept}."


def detect_schema(engine: Engine) -> DetectedSchema:
    """What tables there are; only reads."""
    with engine.connect().execution_options(**read_only_options(engine)) as connection:
        return _detect_schema(connection)


def _detect_schema(connection: Connection) -> DetectedSchema:
    names = inspect(connection).get_table_names()
    if VERSION_TABLE not in names:
        unreleased = {"meta", "audit", "answer"} <= set(names)
        return DetectedSchema(
            SchemaState.UNRELEASED if unreleased else SchemaState.FOREIGN if names else SchemaState.EMPTY, None
        )
    revision = connection.execute(select(VERSION_TABLE_DEFINITION.c.version_num)).scalar_one_or_none()
    if revision == REVISION:
        return DetectedSchema(SchemaState.CURRENT, revision)
    is_older = revision is not None and revision < REVISION
    return DetectedSchema(SchemaState.OLDER if is_older else SchemaState.NEWER, revision)


def incompatible_schema_error(url: str, detected: DetectedSchema) -> StorageError:
    """What is wrong with a database that is not today's, and how to mend it."""
    where = redact_url(url)
    if detected.state is SchemaState.EMPTY:
        return EmptyStorageError(f"{where}: holds no audits yet.", "Make one with `auditor run`.")
    given = "" if REDACTED in where else f" --storage {where}"
    known = f"revision {detected.revision}, known here: {REVISION}"
    told = {
        SchemaState.OLDER: (
            f"{where}: made by an older version of auditor ({known}).",
            f"Upgrade it, which keeps all that is in it: auditor doctor --upgrade{given}",
        ),
        SchemaState.NEWER: (f"{where}: written by a newer version of auditor ({known}).", "Update auditor."),
        SchemaState.UNRELEASED: (
            f"{where}: made by a version of auditor from before the first release.",
            "Name another with --storage; that version still reads it.",
        ),
        SchemaState.FOREIGN: (f"{where}: a database, but not one of auditor's.", "Name another with --storage."),
    }
    return StorageError(*told[detected.state])


def create_tables(engine: Engine) -> None:
    """Make today's tables in an empty database; another process may be at the same."""
    with engine.begin() as connection:
        if _detect_schema(connection).state is SchemaState.EMPTY:
            SQLModel.metadata.create_all(connection)
            VERSION_TABLE_DEFINITION.create(connection)
            connection.execute(insert(VERSION_TABLE_DEFINITION), [{"version_num": REVISION}])


def upgrade_schema(
    url: str, path: Path | None, *, to: str = REVISION, versions: tuple[Path, ...] = ()
) -> SchemaUpgrade | None:
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
            before = _detect_schema(connection).revision
            if before is None or before >= to:
                return None
            copy = None
            if path is not None:
                copy = unused_path(path.with_name(f"{path.name}.bak-{before}"))
                copy_database(path, copy)
            migrations.upgrade(connection, to, versions)
            if path is not None:
                _check_references(connection, url)
        return SchemaUpgrade(before, to, copy)
    finally:
        engine.dispose()


def _check_references(connection: Connection, url: str) -> None:
    broken = connection.execute(text("PRAGMA foreign_key_check")).first()
    if broken is not None:
        raise StorageError(
            f"{redact_url(url)}: rows of '{broken[0]}' refer to rows of '{broken[2]}' that are not there.",
            "Nothing was changed; the copy beside it is as it was too.",
        )
