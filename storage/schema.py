"""All tables of the database; detect, create and upgrade them.

Times are ISO 8601 in UTC; unknown numbers are NULL, never 0. The table `answer` is the ledger: it is shared by all
audits of a database, and its key covers all that determines an answer. Most other tables belong to one audit each and
are derived from the ledger. `rating` and `label` are append-only. The records of a probe are in the module that its
`parts` name.

The revision is read with plain SQL; alembic takes half a second to load and is needed for an upgrade only.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import MetaData, Table
from sqlalchemy.sql.ddl import DDLElement

from auditor.config.installed_probes import list_built_in_names, load_built_in
from auditor.domain import (
    AlteredTraceVerdict,
    CellScore,
    Claim,
    Conflict,
    Contest,
    Guess,
    Rating,
    Restatement,
    SentencePairScore,
    SurveyCell,
    TaskItem,
    Trace,
    Verdict,
)
from auditor.domain.audit_records import Audit, DesignAnswer, ExcludedContent, Exclusion, PlannedRun, Registration
from auditor.domain.labels import DrawnUnit, LabelDraw, LabelEntry
from auditor.domain.records import RowPolicy, table_declaration
from auditor.errors import EmptyStorageError, StorageError
from auditor.probe_interface import ProbeResult
from auditor.storage import migrations
from auditor.storage.call_records import (
    ChainLink,
    Dispatch,
    LimitChange,
    NotedCall,
    Payload,
    ProviderBatch,
    StoredAnswer,
    StoredAttempt,
    StoredCapability,
    TextVector,
)
from auditor.storage.engine import REDACTED, make_engine, read_only_options, redact_url
from auditor.storage.migrations import FIRST_REVISION, LAST_SQUASHED_REVISION, UPGRADING_COMMIT, find_latest_revision
from auditor.storage.row_classes import METADATA, table_of
from auditor.storage.sqlite_file import copy_database, find_unused_path

SCHEMA_VERSION = find_latest_revision()
"""Number of the latest revision in `migrations/versions`; each revision adds one."""
REVISION = f"{SCHEMA_VERSION:04}"
VERSION_TABLE = "auditor_version"
"""Table that holds the database's revision; its presence marks a database of auditor."""

RECORDS: Sequence[type] = (
    StoredAnswer,
    StoredAttempt,
    Payload,
    LimitChange,
    StoredCapability,
    Dispatch,
    ProviderBatch,
    ChainLink,
    Exclusion,
    ExcludedContent,
    Registration,
    LabelDraw,
    DrawnUnit,
    LabelEntry,
    Audit,
    SurveyCell,
    TaskItem,
    Trace,
    CellScore,
    SentencePairScore,
    Verdict,
    Guess,
    Restatement,
    AlteredTraceVerdict,
    Contest,
    PlannedRun,
    DesignAnswer,
    Claim,
    Conflict,
    Rating,
    ProbeResult,
    NotedCall,
    TextVector,
)
"""Classes of records with a table, in the order in which exports list the tables."""


@functools.cache
def list_record_classes(policy: RowPolicy | None = None) -> tuple[type, ...]:
    """Classes of all records with a table, those of built-in probes last; only those with a policy, if it is named."""
    probes = map(load_built_in, list_built_in_names())
    record_classes = (*RECORDS, *(record_class for probe in probes for record_class in probe.list_records()))
    return tuple(
        record_class for record_class in record_classes if policy in (None, table_declaration(record_class).policy)
    )


def load_metadata() -> MetaData:
    """The metadata of all tables."""
    for record_class in list_record_classes():
        table_of(record_class)
    return METADATA


@functools.cache
def load_tables() -> Mapping[str, Table]:
    """All tables by their names, in the order of `list_record_classes`; cached, as each link of the chain looks."""
    return {table.name: table for table in map(table_of, list_record_classes())}


VERSION_TABLE_DEFINITION = sa.Table(
    VERSION_TABLE,
    sa.MetaData(),
    sa.Column("version_num", sa.String(32), nullable=False),
    sa.PrimaryKeyConstraint("version_num", name=f"{VERSION_TABLE}_pkc"),
)
"""Table of the revision, as alembic creates it."""


class SchemaState(Enum):
    """State of a database's tables compared with this program's schema.

    UNNUMBERED tables are the current ones, under the number of the last revision before the squash; OUTDATED ones are
    older still, so that only an earlier version upgrades them; FOREIGN tables are another program's. DAMAGED ones have
    no revision, or several.
    """

    EMPTY = "empty"
    CURRENT = "today"
    UNNUMBERED = "unnumbered"
    OLDER = "older"
    OUTDATED = "outdated"
    NEWER = "newer"
    FOREIGN = "foreign"
    DAMAGED = "damaged"


class DetectedSchema(NamedTuple):
    """State and revision of a database's tables; the revision is None if none is stored."""

    state: SchemaState
    revision: str | None


class SchemaUpgrade(NamedTuple):
    """An upgrade that was made; `backup` is a copy of the database before it, None on a server and of a new number."""

    from_revision: str
    to_revision: str
    backup: Path | None

    def __str__(self) -> str:
        backup_note = f"; a copy of the old database is in {self.backup}" if self.backup else ""
        return f"The database was upgraded from revision {self.from_revision} to {self.to_revision}{backup_note}."


def detect_schema(engine: sa.Engine) -> DetectedSchema:
    """Detect the state of a database's tables; only reads."""
    with engine.connect().execution_options(**read_only_options(engine)) as connection:
        return _detect_schema(connection)


def _detect_schema(connection: sa.Connection) -> DetectedSchema:
    """Detect the state of the tables on an open connection; see `detect_schema`."""
    table_names = sa.inspect(connection).get_table_names()
    if VERSION_TABLE not in table_names:
        return DetectedSchema(SchemaState.FOREIGN if table_names else SchemaState.EMPTY, None)
    revisions = connection.execute(sa.select(VERSION_TABLE_DEFINITION.c.version_num)).scalars().all()
    if len(revisions) != 1:
        return DetectedSchema(SchemaState.DAMAGED, None)
    [revision] = revisions
    if revision == REVISION:
        state = SchemaState.CURRENT
    elif revision > REVISION:
        state = SchemaState.NEWER
    elif has_current_tables(revision):
        state = SchemaState.UNNUMBERED
    else:
        state = SchemaState.OLDER if revision >= LAST_SQUASHED_REVISION else SchemaState.OUTDATED
    return DetectedSchema(state, revision)


def has_current_tables(revision: str) -> bool:
    """Whether a revision has the tables of this version."""
    return revision == REVISION or (revision, REVISION) == (LAST_SQUASHED_REVISION, FIRST_REVISION)


def incompatible_schema_error(url: str, detected: DetectedSchema) -> StorageError:
    """Build the error for a database whose schema is not the current one, with how to fix it."""
    location = redact_url(url)
    if detected.state is SchemaState.EMPTY:
        return EmptyStorageError(f"{location}: contains no audits yet.", "Create one with `auditor run`.")
    storage_option = "" if REDACTED in location else f" --storage {location}"
    revisions = f"revision {detected.revision}, known here: {REVISION}"
    message_by_state = {
        SchemaState.OLDER: (
            f"{location}: created by an older version of auditor ({revisions}).",
            f"Upgrade it without loss of data: auditor doctor --upgrade{storage_option}",
        ),
        SchemaState.OUTDATED: (
            f"{location}: created by auditor 0.2 or older ({revisions}), which this version cannot upgrade.",
            "Upgrade it once with the last version that can, without loss of data, in a virtual environment of its "
            f"own: pip install 'auditor @ git+ADDRESS@{UPGRADING_COMMIT}', with the address of auditor's repository; "
            f"then auditor doctor --upgrade{storage_option}. Then use this version again.",
        ),
        SchemaState.NEWER: (f"{location}: written by a newer version of auditor ({revisions}).", "Update auditor."),
        SchemaState.DAMAGED: (
            f"{location}: the table {VERSION_TABLE} must have one row, the revision, and has none or several.",
            "An upgrade or a copy was not finished: restore a copy, such as FILE.bak-REVISION beside it.",
        ),
        SchemaState.FOREIGN: (f"{location}: this database was not created by auditor.", "Name another with --storage."),
    }
    return StorageError(*message_by_state[detected.state])


def create_tables(engine: sa.Engine) -> None:
    """Create the current tables in an empty database; safe if another process does the same."""
    with engine.begin() as connection:
        if _detect_schema(connection).state is SchemaState.EMPTY:
            for statement in _list_definitions(engine.url.drivername, len(load_metadata().tables)):
                connection.exec_driver_sql(statement)
            connection.execute(sa.insert(VERSION_TABLE_DEFINITION), [{"version_num": REVISION}])


@functools.cache
def _list_definitions(driver: str, n_tables: int) -> list[str]:
    """The statements that create all tables. Cached, since it takes longer to compile than to execute them.

    Args:
        driver: of the database.
        n_tables: number of tables that are known now.
    """
    statements: list[str] = []

    def add(definition: DDLElement, *_: Any, **__: Any) -> None:
        statements.append(str(definition.compile(dialect=engine.dialect)))

    engine = sa.create_mock_engine(f"{driver}://", add)
    for metadata in (load_metadata(), VERSION_TABLE_DEFINITION.metadata):
        metadata.create_all(engine, checkfirst=False)
    return statements


def upgrade_schema(
    url: str, path: Path | None, *, to: str = REVISION, versions: tuple[Path, ...] = ()
) -> SchemaUpgrade | None:
    """Upgrade an older database to a revision in one transaction, which keeps others from writing.

    A SQLite file is copied first, unless only the number of its revision changes. Copies of a server's database are
    left to its own tools.

    Args:
        url: of the database.
        path: of its file; None on a server.
        to: revision to upgrade to.
        versions: further folders with revisions.

    Returns:
        The upgrade; None if the database has this revision or a later one, or none at all.

    Raises:
        StorageError: the upgrade would break references between tables, or the copy failed.
    """
    engine = make_engine(url, foreign_keys=False)
    try:
        with engine.begin() as connection:
            from_revision = _detect_schema(connection).revision
            if from_revision is None or from_revision >= to:
                return None
            if from_revision == LAST_SQUASHED_REVISION:
                connection.execute(VERSION_TABLE_DEFINITION.update().values(version_num=FIRST_REVISION))
            if to == FIRST_REVISION:
                return SchemaUpgrade(from_revision, to, None)
            backup = None
            if path is not None:
                backup = find_unused_path(path.with_name(f"{path.name}.bak-{from_revision}"))
                copy_database(path, backup)
            migrations.upgrade(connection, to, versions)
            if path is not None:
                _check_references(connection, url)
        return SchemaUpgrade(from_revision, to, backup)
    finally:
        engine.dispose()


def _check_references(connection: sa.Connection, url: str) -> None:
    """Raise StorageError if a row of a SQLite database refers to a row that does not exist."""
    violation = connection.execute(sa.text("PRAGMA foreign_key_check")).first()
    if violation is not None:
        raise StorageError(
            f"{redact_url(url)}: rows of '{violation[0]}' refer to rows of '{violation[2]}' that do not exist.",
            "Nothing was changed; the backup is unchanged too.",
        )
