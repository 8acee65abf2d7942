"""Opening a database: one engine, one writer thread, and the pragmas that make SQLite keep its promises."""

from __future__ import annotations

import os
import platform
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from sqlalchemy import Connection, Engine, Insert, Table, create_engine, event, inspect, select
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError
from sqlmodel import SQLModel

from auditor.errors import StorageError, UsageError
from auditor.storage import tables
from auditor.storage.writer import Job, T, Writer, unusable

DEFAULT_URL = "sqlite:///auditor.db"
STORAGE_VARIABLE = "AUDITOR_STORAGE"
BACKENDS = {"sqlite": "sqlite:///FILE", "postgresql": "postgresql+psycopg://USER@HOST/NAME"}
PRAGMAS = ("busy_timeout=30000", "journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "temp_store=MEMORY")


class Database:
    """An open database. Reads go through `read`, writes through `write`, which returns when they are durable."""

    def __init__(self, url: str, engine: Engine) -> None:
        self.url = url
        self.engine = engine
        self.writer = Writer(engine)

    @property
    def path(self) -> Path | None:
        """The file, for SQLite; None for a server."""
        return sqlite_path(self.url)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A connection for queries.

        Raises:
            StorageError: the database cannot be read, as when its file is damaged.
        """
        try:
            with self.engine.connect().execution_options(auditor_reads=True) as connection:
                yield connection
        except DBAPIError as error:
            raise unusable(self.engine, error) from error

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


def database_url(given: str | None = None, configured: str | None = None) -> str:
    """Where audits are: as given, else AUDITOR_STORAGE, else as configured, else `auditor.db` in this folder."""
    return given or os.environ.get(STORAGE_VARIABLE) or configured or DEFAULT_URL


def sqlite_path(url: str) -> Path | None:
    """The file behind a SQLite URL; None for another engine.

    Raises:
        UsageError: not a database URL, an engine that is not supported, or a database in memory, which would not
            survive.
    """
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise UsageError(f"'{url}' is not a database URL.", "Give one like sqlite:///auditor.db") from None
    if (backend := parsed.get_backend_name()) not in BACKENDS:
        raise UsageError(f"auditor keeps no audits in '{backend}'.", f"Use {' or '.join(BACKENDS.values())}.")
    if backend != "sqlite":
        return None
    if parsed.database in (None, "", ":memory:"):
        raise UsageError(f"'{url}' names no file.", "Give one like sqlite:///auditor.db") from None
    return Path(str(parsed.database))


def open_database(url: str = DEFAULT_URL, *, create: bool = True) -> Database:
    """Open a database, and make it when there is none.

    Args:
        url: such as `sqlite:///auditor.db` (relative to the working folder).
        create: when False, a database that does not exist is an error.

    Raises:
        UsageError: not a database URL.
        StorageError: no such database, not one of ours, written by a newer version, or not to be opened.
    """
    path = sqlite_path(url)
    if path is not None and not create and not path.exists():
        raise StorageError(
            f"there is no database at {path}.", "Name it with --storage, or make one with `auditor run`."
        )
    if path is not None and not path.parent.is_dir():
        raise StorageError(f"the folder {path.parent} of the database does not exist.", "Make it first.")
    try:
        engine = create_engine(url)
    except (NoSuchModuleError, ImportError):
        raise UsageError(
            f"the driver that '{make_url(url).drivername}' names is not installed.",
            "For PostgreSQL: pip install 'psycopg[binary]', and postgresql+psycopg:// in the URL.",
        ) from None
    if path is not None:
        event.listen(engine, "connect", _set_pragmas)
        event.listen(engine, "begin", _begin)
    try:
        _create_or_check(engine, url)
    except DBAPIError as error:
        engine.dispose()
        raise StorageError(f"{path or url}: cannot be opened as a database: {error.orig}.") from None
    return Database(url, engine)


def _set_pragmas(connection: sqlite3.Connection, _: Any) -> None:
    connection.isolation_level = None  # transactions are begun by us, see _begin
    for pragma in PRAGMAS:
        connection.execute(f"PRAGMA {pragma}")


def _begin(connection: Connection) -> None:
    """Begin as a writer at once where a write may follow: a reader that turns writer is refused without waiting."""
    writes = connection.get_execution_options().get("auditor_reads") is None
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _create_or_check(engine: Engine, url: str) -> None:
    with engine.connect().execution_options(auditor_reads=True) as connection:
        names = inspect(connection).get_table_names()
        if "meta" in names:
            _check_version(connection, url)
            return
    if names:
        raise StorageError(f"{url}: a database, but not one of auditor's.", "Name another with --storage.")
    with engine.begin() as connection:
        SQLModel.metadata.create_all(connection)
        insert_new(connection, tables.MetaRow, [{"key": "schema_version", "value": str(tables.SCHEMA_VERSION)}])


def _check_version(connection: Connection, url: str) -> None:
    meta = table_of(tables.MetaRow)
    row = connection.execute(select(meta.c.value).where(meta.c.key == "schema_version")).scalar_one_or_none()
    if row is None or int(row) > tables.SCHEMA_VERSION:
        raise StorageError(
            f"{url}: written by a newer version of auditor (schema {row}, known here: {tables.SCHEMA_VERSION}).",
            "Update auditor.",
        )


# --- writing rows -----------------------------------------------------------------------------------------------


def table_of(row: type[SQLModel]) -> Table:
    """The Core table behind a row class."""
    table = row.__table__  # type: ignore[attr-defined]
    assert isinstance(table, Table)
    return table


def insert_new(connection: Connection, row: type[SQLModel], values: list[dict[str, Any]]) -> int:
    """Insert rows; one whose key is there already is left as it is. Returns how many are new."""
    return connection.execute(_insert(connection, row).on_conflict_do_nothing(), values).rowcount if values else 0


def upsert(connection: Connection, row: type[SQLModel], values: list[dict[str, Any]]) -> None:
    """Insert rows; one whose key is there already is replaced."""
    if not values:
        return
    table = table_of(row)
    keys = [column.name for column in table.primary_key]
    statement = _insert(connection, row)
    replaced = {name: statement.excluded[name] for name in values[0] if name not in keys}
    connection.execute(statement.on_conflict_do_update(index_elements=keys, set_=replaced), values)


def _insert(connection: Connection, row: type[SQLModel]) -> Any:
    # On first use: a dialect imports every driver it knows.
    if connection.dialect.name == "postgresql":
        from sqlalchemy.dialects.postgresql import insert
    else:
        from sqlalchemy.dialects.sqlite import insert  # type: ignore[assignment]
    statement: Insert = insert(table_of(row))
    return statement


# --- one run at a time ------------------------------------------------------------------------------------------


@contextmanager
def run_lock(database: Database, audit: str) -> Iterator[None]:
    """Hold an audit for one run; a lock of a process that died is free by itself.

    Raises:
        StorageError: another process runs this audit; the message names it.
    """
    path = database.path
    if path is None:
        yield  # a server has sessions of its own
        return
    lock_path = path.with_name(f"{path.name}.{audit}.lock")
    lock = FileLock(str(lock_path), timeout=0)
    holder = lock_path.with_suffix(".holder")
    try:
        lock.acquire()
    except Timeout:
        who = holder.read_text(encoding="utf-8") if holder.exists() else "another process"
        raise StorageError(f"audit '{audit}' is being run by {who}.", "Wait for it, or stop it first.") from None
    try:
        holder.write_text(f"process {os.getpid()} on {platform.node()}", encoding="utf-8")
        yield
    finally:
        holder.unlink(missing_ok=True)
        lock.release()
