"""The writer's connection. On a server it holds the locks of runs, and looks interrupted commits up."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DataError, DBAPIError

from auditor.errors import UnavailableError
from auditor.failpoints import failpoint
from auditor.storage import locks
from auditor.storage.database_errors import is_disconnected
from auditor.storage.engine import TRANSACTION_ID, describe_process
from auditor.storage.outages import Outages

T = TypeVar("T")

STATUS_POLL_INTERVAL_S = 0.1
MAX_SESSION_END_S = 10.0
"""How long is waited for the end of this process's own earlier session on the server."""
SESSION_QUERY = text("SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()")
END_SESSION = text(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = :pid AND backend_start = :backend_start"
)
STATUS_QUERY = text("SELECT txid_status(CAST(:transaction_id AS bigint))")


class _UnconfirmedCommit(NamedTuple):
    """A transaction whose commit was sent to the server: its id there, and the result of its work."""

    transaction_id: int
    result: Any


class WriterConnection:
    """Runs the writer's transactions, one at a time.

    Without locks, each transaction takes a connection from the pool. With locks, all use the connection that holds
    them: a server releases a lock when its connection ends, so nothing is written after another process may have taken
    it. A new connection takes the locks again before anything else.
    """

    def __init__(self, engine: Engine, outages: Outages) -> None:
        """Prepare for the first transaction, which connects.

        Args:
            engine: of the database.
            outages: decides whether a failure is waited for.
        """
        self._engine, self._outages = engine, outages
        self._guard = threading.Lock()
        self._connection: Connection | None = None
        self._locked_audits: list[str] = []
        self._session: dict[str, Any] | None = None

    def run_transaction(self, work: Callable[[Connection], T]) -> T:
        """Run work in a transaction and return its result once it is durable.

        Work is run again if the transaction failed for a reason that passes with time. If the connection ended during
        the commit, the server is asked first whether it was committed.

        Raises:
            DBAPIError: the transaction failed.
            UnavailableError: the database could not be used for too long, or another process took a lock meanwhile.
        """
        unconfirmed: _UnconfirmedCommit | None = None

        def run_once() -> T:
            """Run the transaction, unless the one before was committed."""
            nonlocal unconfirmed
            connection = self._open()
            if unconfirmed is not None and _was_committed(connection, unconfirmed.transaction_id):
                result: T = unconfirmed.result
                return result
            unconfirmed = None
            with connection.begin():
                result = work(connection)
                failpoint("before_commit")
                if (transaction_id := connection.info.get(TRANSACTION_ID)) is not None:
                    unconfirmed = _UnconfirmedCommit(transaction_id, result)
            failpoint("after_commit")
            return result

        with self._guard:
            try:
                return self._outages.retry(run_once, self._reset)
            finally:
                if not self._locked_audits:
                    self._close()

    @contextmanager
    def hold_lock(self, audit_name: str) -> Iterator[None]:
        """Hold an audit's lock on the server. It is released together with the last one that is held.

        Raises:
            LockHeldError: another connection holds it, or this one does already.
        """
        with self._guard:
            if audit_name in self._locked_audits:
                raise locks.LockHeldError(describe_process())
            connection = self._open()
            try:
                with _reading(connection):
                    locks.acquire_server_lock(connection, audit_name)
                    self._session = dict(connection.execute(SESSION_QUERY).mappings().one())
            except BaseException:
                if not self._locked_audits:
                    self._close()
                raise
            self._locked_audits.append(audit_name)
        try:
            yield
        finally:
            with self._guard:
                self._locked_audits.remove(audit_name)
                if not self._locked_audits:
                    self._drop()

    def _open(self) -> Connection:
        """The open connection, or a new one that holds the same locks."""
        if self._connection is None:
            connection = self._engine.connect()
            try:
                self._take_locks_again(connection)
            except BaseException:
                connection.invalidate()
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def _take_locks_again(self, connection: Connection) -> None:
        """Take the locks of the connection before.

        That connection's session is ended first: the server keeps it and its locks if it did not notice the failure.

        Raises:
            UnavailableError: another process has taken a lock meanwhile.
        """
        if not self._locked_audits:
            return
        with _reading(connection):
            deadline = time.monotonic() + MAX_SESSION_END_S
            while connection.execute(END_SESSION, self._session).first() and time.monotonic() < deadline:
                connection.rollback()  # in a transaction, pg_stat_activity does not change
                time.sleep(STATUS_POLL_INTERVAL_S)
            for audit_name in self._locked_audits:
                try:
                    locks.acquire_server_lock(connection, audit_name)
                except locks.LockHeldError as error:
                    raise UnavailableError(
                        f"the connection to the database was lost, and audit '{audit_name}' is now being run by "
                        f"{error.holder}.",
                        "Wait until it ends, or stop it first. What was saved is kept.",
                    ) from None
            self._session = dict(connection.execute(SESSION_QUERY).mappings().one())

    def _reset(self, error: DBAPIError) -> None:
        """Leave the failed transaction; the connection and its locks are kept, unless they are lost."""
        if is_disconnected(error):
            self._drop()
        elif self._connection is not None:  # if it failed at its beginning, SQLAlchemy has no transaction to roll back
            self._connection.connection.rollback()
            if not self._locked_audits:
                self._close()

    def _drop(self) -> None:
        """End the connection to the server."""
        if self._connection is not None:
            self._connection.invalidate()
            self._close()

    def _close(self) -> None:
        """Return the connection to the pool."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


@contextmanager
def _reading(connection: Connection) -> Iterator[None]:
    """Use a connection without the lock of all writers. Locks of runs that are taken meanwhile stay."""
    connection.execution_options(auditor_reads=True)
    try:
        yield
    finally:
        with suppress(DBAPIError):
            connection.rollback()
        connection.execution_options(auditor_reads=None)


def _was_committed(connection: Connection, transaction_id: int) -> bool:
    """Whether an earlier session's transaction was committed; waits until it is decided."""
    with _reading(connection):
        while True:
            try:
                status = connection.execute(STATUS_QUERY, {"transaction_id": transaction_id}).scalar_one()
            except DataError:  # the id is in the future: the server lost the transaction when it crashed
                return False
            if status != "in progress":
                return bool(status == "committed")
            connection.rollback()
            time.sleep(STATUS_POLL_INTERVAL_S)
