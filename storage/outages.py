"""Waiting for a database that cannot be used for a time: its server restarts, or another program has locked it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from sqlalchemy import Connection, CursorResult, Engine
from sqlalchemy.exc import DBAPIError

from auditor.errors import StorageError, UnavailableError
from auditor.storage.database_errors import database_error, database_name, is_disconnected, is_locked

T = TypeVar("T")

MIN_OUTAGE_WAIT_S = 60.0
"""A run waits at least this long for its database."""
RETRY_INTERVAL_S = 0.5


class Outages:
    """Decides for all threads of a process whether a failed operation on the database is tried again.

    Without `wait_for_database` none is: the user sees the error at once.
    """

    def __init__(self, engine: Engine) -> None:
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


class ReadConnection(Connection):
    """A connection for queries. During a run, a statement is executed again if the database fails for a time.

    A statement after such a failure sees the database as it is then, not as the statements before it saw it.
    """

    def __init__(self, engine: Engine, outages: Outages, options: dict[str, Any]) -> None:
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

    def execute(self, *args: Any, **options: Any) -> CursorResult[Any]:
        """Execute a statement; see `Connection.execute`."""
        execute = super().execute

        def execute_once() -> CursorResult[Any]:
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
