"""Errors of database drivers and what they mean, and waiting for a database that cannot be used for a time."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeGuard, TypeVar

import sqlalchemy as sa
from sqlalchemy.exc import DatabaseError, DataError, DBAPIError, OperationalError, SQLAlchemyError

from auditor.errors import NotAllowedError, StorageError, UnavailableError, UnstorableError
from auditor.storage.engine import redact_url

DatabaseLibraryError = SQLAlchemyError
"""What the database library raises, also where another program such as MLflow uses it."""
INSUFFICIENT_PRIVILEGE = "42501"
"""PostgreSQL's SQLSTATE for an action that the role may not do."""
LOCK_NOT_AVAILABLE = "55P03"
"""PostgreSQL's SQLSTATE for a lock that was not obtained within `lock_timeout`."""
CONNECTION_SQLSTATES = ("08", "57P01", "57P02", "57P03", "57P05")
"""Beginnings of PostgreSQL's SQLSTATEs for a connection that ended: broken, or ended by the server."""
UNSTORABLE_SQLSTATES = ("22", "54")
"""PostgreSQL's SQLSTATE classes for values that it cannot store: data exceptions, and limits of a row or an index."""
UNSTORABLE_MESSAGES = ("binding parameter", "cannot adapt type")
"""Fragments of the SQLite and PostgreSQL drivers' messages about a value of an unknown type."""
DISK_MESSAGES = ("full", "I/O", "No space left")
"""Fragments of messages about a disk that cannot be written to."""
PRIMARY_CODE_MASK = 0xFF
"""The bits of SQLite's extended result codes that hold the primary one."""


def as_storage_error(engine: sa.Engine, error: BaseException) -> BaseException:
    """Convert an error of a job to the one that its caller gets."""
    if reason := _unstorable_reason(error):
        how_to_fix = "Correct it in its source, then run the same command again."
        return UnstorableError(f"the database {database_name(engine)} cannot store a value: {reason}.", how_to_fix)
    return database_error(engine, error) if _is_database_failure(error) else error


def _unstorable_reason(error: BaseException) -> str | None:
    """Why the values of a row cannot be stored, though other rows can; None for any other error."""
    if isinstance(error, UnicodeEncodeError):
        return f"a string contains U+{ord(error.object[error.start]):04X}, which is not a Unicode character"
    if isinstance(error, OverflowError):
        return "a whole number is larger than 64 bits"
    if not isinstance(error, DBAPIError):
        return None
    reason = str(error.orig).strip().partition("\n")[0].rstrip(".")
    is_refused = isinstance(error, DataError) or (_sqlstate(error) or "").startswith(UNSTORABLE_SQLSTATES)
    return reason if is_refused or any(fragment in reason for fragment in UNSTORABLE_MESSAGES) else None


def _is_database_failure(error: BaseException) -> TypeGuard[DBAPIError]:
    """Whether the database failed or refused access, as opposed to an error in the statement.

    A damaged file raises `DatabaseError` itself, not one of its subclasses.
    """
    is_refused = isinstance(error, DBAPIError) and _sqlstate(error) == INSUFFICIENT_PRIVILEGE
    return is_refused or isinstance(error, OperationalError) or type(error) is DatabaseError


def is_disconnected(error: BaseException) -> bool:
    """Whether a server could not be connected to, or the connection to it ended. It may be unknown what was committed.

    Without a SQLSTATE, psycopg's OperationalError did not come from the server.
    """
    if not isinstance(error, DBAPIError) or isinstance(error.orig, sqlite3.Error):
        return False
    if error.connection_invalidated:
        return True
    sqlstate = _sqlstate(error)
    return isinstance(error, OperationalError) and (sqlstate is None or sqlstate.startswith(CONNECTION_SQLSTATES))


def is_locked(error: BaseException) -> bool:
    """Whether another program kept its lock on the database for longer than one statement waits for it."""
    if not isinstance(error, DBAPIError):
        return False
    if isinstance(error.orig, sqlite3.Error):
        return getattr(error.orig, "sqlite_errorcode", 0) & PRIMARY_CODE_MASK == sqlite3.SQLITE_BUSY
    return _sqlstate(error) == LOCK_NOT_AVAILABLE


def _sqlstate(error: DBAPIError) -> str | None:
    return getattr(error.orig, "sqlstate", None)


def describe_driver_error(error: DBAPIError) -> str:
    """The driver's message on one line, without a full stop."""
    return " ".join(str(error.orig).split()).rstrip(".?")


def database_error(engine: sa.Engine, error: DBAPIError) -> StorageError:
    """Build the error for a database that cannot be read or written to any more, with how to fix it."""
    driver_message = describe_driver_error(error)
    name = database_name(engine)
    if _sqlstate(error) == INSUFFICIENT_PRIVILEGE:
        how_to_fix = "Ask its owner for the reviewer or runner role (docs/team.md)."
        return NotAllowedError(
            f"the user '{engine.url.username}' may not do this in the database {name}: {driver_message}.", how_to_fix
        )
    if is_locked(error):
        how_to_fix = "Wait until the program that writes to it has ended, or end it. Then run the same command again."
        return StorageError(f"the database {name} is locked by another program: {driver_message}.", how_to_fix)
    if "malformed" in driver_message or "not a database" in driver_message:
        how_to_fix = "Make a copy, then recover what is left with: sqlite3 FILE .recover"
    elif "readonly" in driver_message:
        how_to_fix = "Copy it, and all files whose names begin with its name, to a writable folder."
    elif any(fragment in driver_message for fragment in DISK_MESSAGES):
        how_to_fix = "Free space on the disk, then run the same command again. Recorded answers are kept."
    elif is_disconnected(error):
        how_to_fix = "Check that its server is running and can be reached, then try again. What was saved is kept."
    else:
        how_to_fix = "Correct the cause, then run the same command again. Recorded answers are kept."
    return StorageError(f"the database {name} cannot be used: {driver_message}.", how_to_fix)


def open_error(engine: sa.Engine, error: DBAPIError) -> StorageError:
    """Build the error for a database that cannot be opened, with how to fix it."""
    if is_locked(error):
        return database_error(engine, error)
    file = engine.url.database if engine.dialect.name == "sqlite" else None
    location = file or redact_url(engine.url.render_as_string(hide_password=False))
    running = "" if file else "that its server is running, "
    how_to_fix = f"Check the name in --storage, {running}and that this user may open it."
    return StorageError(f"{location}: cannot be opened as a database: {describe_driver_error(error)}.", how_to_fix)


def database_name(engine: sa.Engine) -> str:
    """Name of a database for messages: the path of its file, or its name on the server."""
    return engine.url.database or engine.url.render_as_string()


T = TypeVar("T")

MIN_OUTAGE_WAIT_S = 60.0
"""A run waits at least this long for its database."""
RETRY_INTERVAL_S = 0.5


class Outages:
    """Decides for all threads of a process whether a failed operation on the database is tried again.

    Without `wait_for_database` none is: the user sees the error at once.
    """

    def __init__(self, engine: sa.Engine) -> None:
        """Create the policy for an engine's connections; it starts without waits."""
        self._engine = engine
        self._max_wait_s = 0.0
        self._notify: Callable[[str], None] = lambda text: None
        self._stopped = threading.Event()
        self._stopped.set()
        self._lock = threading.Lock()
        self._is_over = False
        self._is_announced = False

    @contextmanager
    def wait_for_database(self, max_wait_s: float, notify: Callable[[str], None]) -> Iterator[None]:
        """Try again inside this context, until the database has been unusable for a time.

        Args:
            max_wait_s: how long an operation is tried again after it first failed.
            notify: is told what is waited for, and when that is over; called from any thread.
        """
        self._max_wait_s, self._notify, self._is_over = max_wait_s, notify, False
        self._stopped.clear()
        try:
            yield
        finally:
            self.stop_waiting()

    def stop_waiting(self) -> None:
        """End all waits; from now on operations that fail are not tried again."""
        self._stopped.set()

    def retry(self, operation: Callable[[], T], reset: Callable[[DBAPIError], None] = lambda error: None) -> T:
        """Run an operation until it succeeds, and return its result.

        Args:
            operation: is run again after an error that passes with time.
            reset: is called with each error.

        Raises:
            DBAPIError: the error does not pass with time, or is not waited for.
            UnavailableError: it was waited for in vain.
        """
        first_failure_at: float | None = None
        while True:
            try:
                result = operation()
            except DBAPIError as error:
                first_failure_at = first_failure_at or time.monotonic()
                reset(error)
                self._wait_or_raise(error, first_failure_at)
            else:
                if first_failure_at is not None:
                    self._announce_end()
                return result

    def _wait_or_raise(self, error: DBAPIError, first_failure_at: float) -> None:
        """Return when an operation is to be tried again that first failed at a time, by `time.monotonic`."""
        if self._stopped.is_set() or not (is_disconnected(error) or is_locked(error)):
            raise error
        if self._is_over or time.monotonic() - first_failure_at >= self._max_wait_s:
            self._is_over = True  # later operations are tried once each
            raise self._unavailable_error(error) from error
        self._announce(error)
        if self._stopped.wait(RETRY_INTERVAL_S):
            raise error

    def _announce(self, error: DBAPIError) -> None:
        """Tell the user what is waited for, once for all threads."""
        with self._lock:
            if self._is_announced:
                return
            self._is_announced = True
        name, wait = database_name(self._engine), f"for up to {self._max_wait_s:.0f} s"
        if is_locked(error):
            self._send_notice(
                f"Another program has locked the database {name}. Waiting {wait} until it can be written to."
            )
        else:
            self._send_notice(f"The connection to the database {name} was lost. Reconnecting {wait}.")

    def _announce_end(self) -> None:
        """Tell the user, once for all threads, that the database can be used again."""
        with self._lock:
            was_announced, self._is_announced = self._is_announced, False
        self._is_over = False
        if was_announced:
            self._send_notice(f"The database {database_name(self._engine)} can be used again.")

    def _send_notice(self, notice: str) -> None:
        """Give the user a notice."""
        with suppress(Exception):  # an answer that waits to be stored outlives any error of a user's own reporter
            self._notify(notice)

    def _unavailable_error(self, error: DBAPIError) -> StorageError:
        reported = database_error(self._engine, error)
        message = f"{reported.message} The run waited {self._max_wait_s:.0f} s for it."
        return UnavailableError(message, reported.how_to_fix)


class ReadConnection(sa.Connection):
    """A connection for queries. During a run, a statement is executed again if the database fails for a time.

    A statement after such a failure sees the database as it is then, not as the statements before it saw it.
    """

    def __init__(self, engine: sa.Engine, outages: Outages, options: dict[str, Any]) -> None:
        """Connect, as soon as the database can be used.

        Args:
            engine: of the database.
            outages: decides whether a failure is waited for.
            options: execution options of the connection.
        """
        self._outages, self._options = outages, options
        connect = super().__init__
        outages.retry(lambda: connect(engine))
        self.execution_options(**options)

    def execute(self, *args: Any, **options: Any) -> sa.CursorResult[Any]:
        """Execute a statement; see `Connection.execute`."""
        execute = super().execute

        def execute_once() -> sa.CursorResult[Any]:
            """Connect again if the connection was lost, and execute the statement."""
            if self.invalidated:
                self.execution_options(**self._options)
            return execute(*args, **options)

        return self._outages.retry(execute_once, self._discard)

    def close(self) -> None:
        """Close the connection; if it was lost after the last row was read, there is nothing to end."""
        try:
            super().close()
        except DBAPIError as error:
            if not is_disconnected(error):
                raise
            super().close()

    def _discard(self, error: DBAPIError) -> None:
        """End the connection in which a statement failed, if another one may be used instead."""
        if is_disconnected(error) or is_locked(error):
            self.invalidate(error)
            self.rollback()
