"""Opening a database: one engine, one writer thread, and the pragmas that make SQLite keep its promises."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Column, Connection, Engine, Insert, Table, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError
from sqlmodel import SQLModel

from auditor.errors import StorageError, UnstorableError, UsageError
from auditor.storage import locks, schema
from auditor.storage.engine import make_engine, read_only_options, redact_url
from auditor.storage.filesystems import refuse_network_filesystem
from auditor.storage.schema import SchemaState
from auditor.storage.sqlite_file import WatchedFile, create_database_file, is_read_only
from auditor.storage.writer import Job, T, Writer, database_error

DEFAULT_URL = "sqlite:///auditor.db"
STORAGE_VARIABLE = "AUDITOR_STORAGE"
HOW_TO_FIX_OPEN = "Look at the name given with --storage, and whether this user may open it."
BACKENDS = {"sqlite": "sqlite:///FILE", "postgresql": "postgresql+psycopg://USER@HOST/NAME"}


class Database:
    """An open database. Reads go through `read`, writes through `write`, which returns when they are durable."""

    def __init__(self, path: Path | None, engine: Engine, upgraded: schema.SchemaUpgrade | None = None) -> None:
        self.path = path
        """The file, for SQLite; None for a server."""
        self.engine = engine
        file = None if path is None else WatchedFile(path)
        if file is not None:  # to a path that is empty SQLite would make a new database
            event.listen(engine, "do_connect", lambda *_: file.require_unmoved())
        self.writer = Writer(engine, file)
        self.upgraded = upgraded
        """What was changed in it when it was opened."""
        self._read_only_options = read_only_options(engine)

    @property
    def url(self) -> str:
        """As it may be shown, without a password."""
        return redact_url(self.engine.url.render_as_string(hide_password=False))

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A connection for queries.

        Raises:
            StorageError: the database cannot be read, as when its file is damaged.
        """
        try:
            with self.engine.connect().execution_options(**self._read_only_options) as connection:
                yield connection
        except DBAPIError as error:
            raise database_error(self.engine, error) from error

    def write(self, job: Job[T]) -> T:
        """Run a job in the writer and wait until it is durable."""
        return self.writer.submit(job).result()

    def close(self) -> None:
        """Commit what is queued and let go of the file."""
        self.writer.close()
        self.engine.dispose()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def database_url(option: str | None = None, configured: str | None = None) -> str:
    """Where audits are: as given, else AUDITOR_STORAGE, else as configured, else `auditor.db` in this folder."""
    return option or os.environ.get(STORAGE_VARIABLE) or configured or DEFAULT_URL


def sqlite_path(url: str) -> Path | None:
    """The file behind a SQLite URL; None for another engine.

    Raises:
        UsageError: not a database URL, an engine that is not supported, or a database in memory, which would not
            survive.
    """
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):  # a port that is no number is the latter
        raise UsageError(f"'{redact_url(url)}' is not a database URL.", "Give one like sqlite:///auditor.db") from None
    if (backend := parsed.get_backend_name()) not in BACKENDS:
        raise UsageError(f"auditor keeps no audits in '{backend}'.", f"Use {' or '.join(BACKENDS.values())}.")
    if backend != "sqlite":
        return None
    if parsed.database in (None, "", ":memory:"):
        raise UsageError(f"'{url}' names no file.", "Give one like sqlite:///auditor.db") from None
    return Path(str(parsed.database))


def open_database(url: str = DEFAULT_URL, *, create: bool = True) -> Database:
    """Open a database.

    Args:
        url: such as `sqlite:///auditor.db` (relative to the working folder).
        create: whether to make one that is not there, and to upgrade a file of an older program, of which a copy is
            kept. A server's is upgraded by `auditor doctor --upgrade` alone, since others use it too.

    Raises:
        UsageError: not a database URL.
        StorageError: no such database, not one of ours, of an older or newer version, on a network file system, or not
            to be opened.
    """
    path = sqlite_path(url)
    if path is not None:
        _check_location(path, create)
        if create:
            create_database_file(path)
    engine = make_engine(url)
    try:
        try:
            upgraded = _prepare_tables(engine, url, path, create)
        except OperationalError:
            if path is None or not is_read_only(path):
                raise
            engine.dispose()
            engine = make_engine(url, immutable=True)
            upgraded = _prepare_tables(engine, url, path, create=False)
    except DBAPIError as error:
        engine.dispose()
        said = " ".join(str(error.orig).split()).rstrip(".?")
        raise StorageError(
            f"{path or redact_url(url)}: cannot be opened as a database: {said}.", HOW_TO_FIX_OPEN
        ) from None
    except StorageError:
        engine.dispose()
        raise
    return Database(path, engine, upgraded)


def upgrade_database(url: str) -> schema.SchemaUpgrade | None:
    """Bring an older database up to today's tables; None where it is so already.

    Raises:
        UsageError, StorageError: as `open_database`.
    """
    path = sqlite_path(url)
    if path is not None:
        _check_location(path, create=False)
    engine = make_engine(url)
    try:
        found = schema.detect_schema(engine)
        if found.state is SchemaState.OLDER:
            return schema.upgrade_schema(url, path)
        if (
            found.state is SchemaState.EMPTY and path is None
        ):  # a server's owner makes the tables, for the others to use
            schema.create_tables(engine)
        elif found.state is not SchemaState.CURRENT:
            raise schema.incompatible_schema_error(url, found)
        return None
    except DBAPIError as error:
        raise database_error(engine, error) from None
    finally:
        engine.dispose()


def _check_location(path: Path, create: bool) -> None:
    if not create and not path.exists():
        raise StorageError(
            f"there is no database at {path}.", "Name it with --storage, or make one with `auditor run`."
        )
    if not path.parent.is_dir():
        raise StorageError(f"the folder {path.parent} of the database does not exist.", "Make it first.")
    refuse_network_filesystem(path)


def _prepare_tables(engine: Engine, url: str, path: Path | None, create: bool) -> schema.SchemaUpgrade | None:
    found = schema.detect_schema(engine)
    if found.state is SchemaState.CURRENT:
        return None
    if create and found.state is SchemaState.EMPTY:
        schema.create_tables(engine)
        return None
    if create and found.state is SchemaState.OLDER and path is not None:
        return schema.upgrade_schema(url, path)
    raise schema.incompatible_schema_error(url, found)


# --- writing rows -----------------------------------------------------------------------------------------------


def table_of(row_class: type[SQLModel]) -> Table:
    """The Core table behind a row class."""
    table = row_class.__table__  # type: ignore[attr-defined]
    assert isinstance(table, Table)
    return table


def coerce_values(row_class: type[SQLModel], values: Mapping[str, Any]) -> dict[str, Any]:
    """Convert values to their columns' types, so that they equal what is read back: a float column holds no int 0.

    Raises:
        UnstorableError: a value that its column cannot hold, such as a number that is not finite.
    """
    columns = table_of(row_class).c
    return {name: v if v is None else _coerce_value(columns[name], v) for name, v in values.items()}


def make_storable(row_class: type[SQLModel], values: Mapping[str, Any]) -> dict[str, Any]:
    """Convert values like `as_stored`, but replace what no database can hold: a number by None, a text by escapes."""
    columns = table_of(row_class).c
    return {name: _coerce_or_replace(columns[name], value) for name, value in values.items()}


def _coerce_or_replace(column: Column[Any], value: Any) -> Any:
    if isinstance(value, str):
        value = value.encode("utf-8", "backslashreplace").decode("utf-8")
    try:
        value = None if value is None else _coerce_value(column, value)
    except UnstorableError:
        return None
    is_too_large = isinstance(value, int) and not -(2**31) <= value < 2**31  # PostgreSQL's INTEGER; SQLite's has 64 bit
    return None if is_too_large else value


def _coerce_value(column: Column[Any], value: Any) -> Any:
    kind = column.type.python_type
    try:
        value = kind(value)
    except (TypeError, ValueError, OverflowError):
        raise _unstorable_value_error(column) from None
    if kind is float:
        if not math.isfinite(value):
            raise _unstorable_value_error(column)
        return value + 0.0  # SQLite stores -0.0 as 0.0
    return value.replace("\0", "\\x00") if kind is str else value  # as `tables.ServerText` does


def _unstorable_value_error(column: Column[Any]) -> UnstorableError:
    message = f"the value of '{column.name}' is not one that the table '{column.table.name}' can hold."
    return UnstorableError(message, "Correct it where it comes from, then give the same command again.")


def insert_new(connection: Connection, row_class: type[SQLModel], values: list[dict[str, Any]]) -> None:
    """Insert rows; one whose key is there already is left as it is."""
    if values:
        connection.execute(_insert_statement(connection, row_class).on_conflict_do_nothing(), values)


def upsert(connection: Connection, row_class: type[SQLModel], values: list[dict[str, Any]]) -> None:
    """Insert rows; one whose key is there already is replaced."""
    if not values:
        return
    table = table_of(row_class)
    keys = [column.name for column in table.primary_key]
    statement = _insert_statement(connection, row_class)
    replaced = {name: statement.excluded[name] for name in values[0] if name not in keys}
    connection.execute(statement.on_conflict_do_update(index_elements=keys, set_=replaced), values)


def _insert_statement(connection: Connection, row_class: type[SQLModel]) -> Any:
    # On first use: a dialect imports every driver it knows.
    if connection.dialect.name == "postgresql":
        from sqlalchemy.dialects.postgresql import insert
    else:
        from sqlalchemy.dialects.sqlite import insert  # type: ignore[assignment]
    statement: Insert = insert(table_of(row_class))
    return statement


# --- one run at a time ------------------------------------------------------------------------------------------


@contextmanager
def run_lock(database: Database, audit_name: str) -> Iterator[None]:
    """Hold an audit for one run; a lock of a process that died is free by itself.

    Raises:
        StorageError: another process runs this audit; the message names it.
    """
    path = database.path
    try:
        with (
            locks.hold_server_lock(database.engine, audit_name)
            if path is None
            else locks.hold_file_lock(path, audit_name)
        ):
            yield
    except locks.LockHeldError as held:
        raise StorageError(
            f"audit '{audit_name}' is being run by {held.holder}.", "Wait for it, or stop it first."
        ) from None


def find_runner(database: Database, audit_name: str) -> str | None:
    """Who runs an audit now, as `process 42 on host`; None where nobody does, or nothing is known."""
    if database.path is None:
        with database.read() as connection:
            return locks.find_server_lock_holder(connection, audit_name)
    return locks.find_file_lock_holder(database.path, audit_name)
