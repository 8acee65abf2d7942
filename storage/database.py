"""Open, upgrade and lock a database. A database has one engine and one writer thread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError

from auditor.errors import StorageError, UsageError
from auditor.storage import locks, schema
from auditor.storage.database_errors import Outages, ReadConnection, database_error, open_error
from auditor.storage.engine import make_engine, read_only_options, redact_url
from auditor.storage.schema import SchemaState
from auditor.storage.sqlite_file import (
    WatchedFile,
    create_database_file,
    is_read_only,
    refuse_links,
    refuse_network_filesystem,
)
from auditor.storage.writer import Job, T, Writer

DEFAULT_URL = "sqlite:///auditor.db"
STORAGE_VARIABLE = "AUDITOR_STORAGE"
BACKENDS = {"sqlite": "sqlite:///FILE", "postgresql": "postgresql+psycopg://USER@HOST/NAME"}


class Database:
    """An open database. `read` gives a connection for queries; `write` runs a job and returns when it is durable."""

    def __init__(
        self,
        path: Path | None,
        engine: sa.Engine,
        upgraded: schema.SchemaUpgrade | None = None,
        *,
        is_new: bool = False,
    ) -> None:
        self.path = path
        """The file of a SQLite database; None for a server."""
        self.engine = engine
        file = None if path is None else WatchedFile(path)
        if file is not None:  # if the file is gone, SQLite would create a new, empty database at its path
            sa.event.listen(engine, "do_connect", lambda *_: file.require_unmoved())
        self.outages = Outages(engine)
        """Whether failures of the database are waited for."""
        self.writer = Writer(engine, self.outages, file)
        self.upgraded = upgraded
        """The upgrade that was made when it was opened; None if there was none."""
        self.is_new = is_new
        """Whether its tables were created when it was opened."""
        self._read_only_options = read_only_options(engine)

    @property
    def url(self) -> str:
        """The database's URL without its password."""
        return redact_url(self.engine.url.render_as_string(hide_password=False))

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """Open a connection for queries.

        Raises:
            StorageError: the database cannot be read, for example because its file is damaged.
        """
        try:
            with ReadConnection(self.engine, self.outages, self._read_only_options) as connection:
                yield connection
        except DBAPIError as error:
            raise database_error(self.engine, error) from error

    def write(self, job: Job[T]) -> T:
        """Run a job in the writer thread and return its result once it is durable."""
        return self.writer.submit(job).result()

    def close(self) -> None:
        """Commit all queued jobs and close all connections."""
        self.writer.close()
        self.engine.dispose()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def parse_sqlite_path(url: str) -> Path | None:
    """Path of the file that a SQLite URL names; None for PostgreSQL.

    Raises:
        UsageError: not a database URL, a backend that is not supported, or a database that may be in memory, which
            would be lost at the end of the process.
    """
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):  # ValueError: the port is not a number
        raise UsageError(
            f"'{redact_url(url)}' is not a database URL.", "Use a URL like sqlite:///auditor.db."
        ) from None
    if (backend := parsed.get_backend_name()) not in BACKENDS:
        raise UsageError(f"'{backend}' databases are not supported.", f"Use {' or '.join(BACKENDS.values())}.")
    if backend != "sqlite":
        return None
    if parsed.database in (None, "", ":memory:") or str(parsed.database).startswith("file:"):
        raise UsageError(f"'{url}' does not name a file.", "Use a URL like sqlite:///auditor.db.") from None
    return Path(str(parsed.database))


def open_database(url: str = DEFAULT_URL, *, create: bool = True) -> Database:
    """Open a database.

    Args:
        url: such as `sqlite:///auditor.db` (relative to the working folder).
        create: whether to create a database that does not exist, and to upgrade a SQLite file of an older version
            after copying it. A server's database is only upgraded by `auditor doctor --upgrade`, since others use it.
            A file at the last revision before the squash gets the number of the present one in any case.

    Raises:
        UsageError: not a database URL.
        StorageError: the database does not exist, is not auditor's, has an older or newer schema, lies on a network
            file system, or cannot be opened.
    """
    path = parse_sqlite_path(url)
    if path is not None:
        _check_location(url, path, create)
        if create:
            create_database_file(path)
    engine = make_engine(url)
    is_new = False
    try:
        try:
            is_new, upgraded = _prepare_tables(engine, url, path, create)
        except OperationalError:
            if path is None or not is_read_only(path):
                raise
            engine.dispose()
            engine = make_engine(url, immutable=True)
            _, upgraded = _prepare_tables(engine, url, path, create=False)
    except DBAPIError as error:
        engine.dispose()
        raise open_error(engine, error) from None
    except StorageError:
        engine.dispose()
        raise
    return Database(path, engine, upgraded, is_new=is_new)


def upgrade_database(url: str) -> schema.SchemaUpgrade | None:
    """Upgrade a database to the current schema; None if it has it already. Creates the tables of an empty server.

    Raises:
        UsageError, StorageError: as `open_database`.
    """
    path = parse_sqlite_path(url)
    if path is not None:
        _check_location(url, path, create=False)
    engine = make_engine(url)
    try:
        detected = schema.detect_schema(engine)
        if detected.state in (SchemaState.OLDER, SchemaState.UNNUMBERED):
            return schema.upgrade_schema(url, path)
        if detected.state is SchemaState.EMPTY and path is None:  # the server's owner creates the tables for all users
            schema.create_tables(engine)
        elif detected.state is not SchemaState.CURRENT:
            raise schema.incompatible_schema_error(url, detected)
        return None
    except DBAPIError as error:
        raise database_error(engine, error) from None
    finally:
        engine.dispose()


def _check_location(url: str, path: Path, create: bool) -> None:
    """Raise StorageError if a SQLite file is missing, empty or a link, or its folder is missing or on a network."""
    refuse_links(path)
    if not create and not path.exists():
        raise StorageError(
            f"there is no database at {path}.",
            "Name a database with --storage, or the audit by its configuration's path. `auditor run` creates one.",
        )
    if not path.parent.is_dir():
        raise StorageError(
            f"the folder {path.parent} of the database does not exist.",
            "Create it, or name another database with --storage.",
        )
    if not create and path.is_file() and not path.stat().st_size:  # opening it would make it a database
        raise schema.incompatible_schema_error(url, schema.DetectedSchema(SchemaState.EMPTY, None))
    refuse_network_filesystem(path)


def _prepare_tables(
    engine: sa.Engine, url: str, path: Path | None, create: bool
) -> tuple[bool, schema.SchemaUpgrade | None]:
    """Check the schema; with `create`, create missing tables and upgrade an older file.

    Returns:
        Whether the tables were created, and the upgrade, if any.
    """
    detected = schema.detect_schema(engine)
    if detected.state is SchemaState.CURRENT:
        return False, None
    if detected.state is SchemaState.UNNUMBERED:
        return False, None if path is None or is_read_only(path) else schema.upgrade_schema(url, path)
    if create and detected.state is SchemaState.EMPTY:
        schema.create_tables(engine)
        return True, None
    if create and detected.state is SchemaState.OLDER and path is not None:
        return False, schema.upgrade_schema(url, path)
    raise schema.incompatible_schema_error(url, detected)


# --- one run at a time ------------------------------------------------------------------------------------------


@contextmanager
def run_lock(database: Database, audit_name: str) -> Iterator[None]:
    """Lock an audit for one run. The lock of a process that died is released automatically.

    Raises:
        StorageError: another process runs this audit; the message names it.
    """
    path = database.path
    try:
        with (
            database.writer.connection.hold_lock(audit_name) if path is None else locks.hold_file_lock(path, audit_name)
        ):
            yield
    except locks.LockHeldError as error:
        raise StorageError(
            f"audit '{audit_name}' is already being run by {error.holder}.", "Wait until it ends, or stop it first."
        ) from None
    except DBAPIError as error:
        raise database_error(database.engine, error) from error


def require_not_running(database: Database, audit_name: str) -> None:
    """Raise StorageError if a process runs an audit now: its answers and results are not of one moment then.

    A description of a process is left behind by one that was killed, maybe in another container: the lock decides. In a
    place where nothing can be written, it cannot be tried.
    """
    is_fixed = database.path is not None and is_read_only(database.path)
    if not is_fixed and find_runner(database, audit_name) is not None:
        with run_lock(database, audit_name):
            pass


def find_runner(database: Database, audit_name: str) -> str | None:
    """Process that runs an audit now, as `process 42 on host`; None if there is none, or it is not known."""
    if database.path is None:
        with database.read() as connection:
            return locks.find_server_lock_holder(connection, audit_name)
    return locks.find_file_lock_holder(database.path, audit_name)
