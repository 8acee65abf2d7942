"""The writer thread, which commits jobs in groups, and its connection, which holds the locks of runs."""

from __future__ import annotations

import asyncio
import math
import queue
import sqlite3
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, TypeVar

import sqlalchemy as sa
from sqlalchemy.exc import DataError, DBAPIError

from auditor.errors import StorageError, UnavailableError
from auditor.failpoints import failpoint
from auditor.storage import locks
from auditor.storage.database_errors import Outages, as_storage_error, is_disconnected, is_locked
from auditor.storage.engine import TRANSACTION_ID, describe_process
from auditor.storage.sqlite_file import WatchedFile

T = TypeVar("T")

STATUS_POLL_INTERVAL_S = 0.1
MAX_SESSION_END_S = 10.0
"""How long is waited for the end of this process's own earlier session on the server."""
SESSION_QUERY = sa.text("SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()")
END_SESSION = sa.text(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = :pid AND backend_start = :backend_start"
)
STATUS_QUERY = sa.text("SELECT txid_status(CAST(:transaction_id AS bigint))")


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

    def __init__(self, engine: sa.Engine, outages: Outages) -> None:
        """Prepare for the first transaction, which connects.

        Args:
            engine: of the database.
            outages: decides whether a failure is waited for.
        """
        self._engine, self._outages = engine, outages
        self._guard = threading.Lock()
        self._connection: sa.Connection | None = None
        self._locked_audits: list[str] = []
        self._session: dict[str, Any] | None = None

    def run_transaction(self, work: Callable[[sa.Connection], T]) -> T:
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

    def _open(self) -> sa.Connection:
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

    def _take_locks_again(self, connection: sa.Connection) -> None:
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
def _reading(connection: sa.Connection) -> Iterator[None]:
    """Use a connection without the lock of all writers. Locks of runs that are taken meanwhile stay."""
    connection.execution_options(auditor_reads=True)
    try:
        yield
    finally:
        with suppress(DBAPIError):
            connection.rollback()
        connection.execution_options(auditor_reads=None)


def _was_committed(connection: sa.Connection, transaction_id: int) -> bool:
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


Job = Callable[[sa.Connection], T]

MAX_JOBS_PER_TRANSACTION = 200
COMMIT_INTERVAL_S = 0.025
"""Seconds from one transaction to the next one with answers, which are collected meanwhile.

The 20 messages of a transaction to a server and back take as much CPU time as the rows of ten answers; a transaction of
SQLite, whose answers lie in pages of their own, as much as those of two. With SQLite, the writer waits only if the
transaction before had several jobs: otherwise a run that sends one call at a time would be slower.
"""


class GroupedJob(ABC):
    """A job that runs together with the others of its class in a transaction, which is faster than one by one."""

    @property
    def label(self) -> str | None:
        """Description of the answer that is lost if the job fails; None if the job records none."""
        return None

    def __call__(self, connection: sa.Connection) -> Any:
        """Run this job alone, and return its result."""
        [result] = self.run_group(connection, [self])
        return result

    @classmethod
    @abstractmethod
    def run_group(cls, connection: sa.Connection, jobs: Sequence[Any]) -> Sequence[Any]:
        """Run all jobs, with the same effect as one after another; return their results in order."""


class _QueuedJob(NamedTuple):
    """A job, and the future of the thread or of the asyncio task that waits for it."""

    job: Job[Any]
    future: Future[Any] | asyncio.Future[Any]


class _FinishedJob(NamedTuple):
    """The result or the error of a job, and its future."""

    future: Future[Any] | asyncio.Future[Any]
    result: Any = None
    error: BaseException | None = None

    def resolve(self) -> None:
        """Resolve the future, unless it was cancelled."""
        if self.future.done():
            return
        if self.error is None:
            self.future.set_result(self.result)
        else:
            self.future.set_exception(self.error)


class Writer:
    """Runs jobs one after another in one thread, at most 200 in a transaction.

    A transaction takes all jobs that are queued when it begins, so groups grow with the load and a single job does not
    wait. A job's future is resolved after the commit, when the job is durable. If a job raises, its group is rolled
    back and each job is run again in a transaction of its own. A job may thus run twice, and must have no effects but
    those on its connection. If the database cannot be used, all jobs of the group fail.

    After each commit, the writer checks that the database's file is still at its path. If not, the jobs just committed
    and all queued jobs fail: SQLite would go on writing to a file that cannot be opened again.
    """

    def __init__(self, engine: sa.Engine, outages: Outages, file: WatchedFile | None = None) -> None:
        """Create the thread, which the first job starts.

        Args:
            engine: of the database.
            outages: decides whether a failure of the database is waited for.
            file: the database's file, for SQLite.
        """
        self._engine = engine
        self.connection = WriterConnection(engine, outages)
        self._file = file
        self._jobs: queue.SimpleQueue[_QueuedJob | None] = queue.SimpleQueue()
        self._closed = False
        self._last_start_s = -math.inf
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="auditor-writer", daemon=True)

    def submit(self, job: Job[T]) -> Future[T]:
        """Queue a job; its future holds what the job returned, or what it raised."""
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()  # the job runs even if its caller stops waiting
        self._put(_QueuedJob(job, future))
        return future

    async def write(self, job: Job[T]) -> T:
        """Queue a job and wait until it is durable; the job runs even if its caller stops waiting."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._put(_QueuedJob(job, future))
        return await future

    def _put(self, queued_job: _QueuedJob) -> None:
        """Queue a job.

        Raises:
            RuntimeError: the writer was closed.
        """
        with self._lock:
            if self._closed:
                raise RuntimeError("the database is closed")
            self._jobs.put(queued_job)
            if self._thread.ident is None:
                self._thread.start()

    def close(self) -> None:
        """Commit all queued jobs, then stop the thread."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._jobs.put(None)
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        """Run the thread: commit groups of queued jobs until the None that `close` puts at the end of the queue."""
        expects_others = True
        while (first := self._jobs.get()) is not None:
            wait_s = self._last_start_s + COMMIT_INTERVAL_S - time.monotonic()
            has_room = self._jobs.qsize() < MAX_JOBS_PER_TRANSACTION
            if wait_s > 0 and has_room and expects_others and isinstance(first.job, GroupedJob):
                time.sleep(wait_s)
            self._last_start_s = time.monotonic()
            group = [first]
            while len(group) < MAX_JOBS_PER_TRANSACTION and not self._jobs.empty():
                queued_job = self._jobs.get()
                if queued_job is None:
                    self._commit(group)
                    return
                group.append(queued_job)
            expects_others = len(group) > 1 or self._engine.dialect.name != "sqlite"
            self._commit(group)

    def _commit(self, group: list[_QueuedJob]) -> None:
        """Run a group of jobs in one transaction and resolve their futures; after an error, run each job by itself."""
        try:
            results = self.connection.run_transaction(
                lambda connection: _run_jobs(connection, [queued_job.job for queued_job in group])
            )
        except BaseException as error:  # noqa: BLE001 - the thread must outlive any job; the error goes to its owner
            if self._fail_if_file_moved(group):
                return
            is_unavailable = isinstance(error, UnavailableError) or is_disconnected(error) or is_locked(error)
            if len(group) == 1 or is_unavailable:
                reported = as_storage_error(self._engine, error)
                _resolve_futures(_FinishedJob(queued_job.future, error=reported) for queued_job in group)
                return
            for queued_job in group:
                self._commit([queued_job])
            return
        if not self._fail_if_file_moved(group):
            _resolve_futures(
                _FinishedJob(queued_job.future, result) for queued_job, result in zip(group, results, strict=True)
            )

    def _fail_if_file_moved(self, group: list[_QueuedJob]) -> bool:
        """Fail a group and all queued jobs if the database's file is not at its path; return whether this is so."""
        if self._file is None or (error := self._file.moved_error()) is None:
            return False
        self._truncate_log()
        group = group + self._take_queued()
        labels = [queued_job.job.label for queued_job in group if isinstance(queued_job.job, GroupedJob)]
        error = self._file.moved_error([label for label in labels if label is not None]) or error
        _resolve_futures(_FinishedJob(queued_job.future, error=error) for queued_job in group)
        return True

    def _truncate_log(self) -> None:
        """Move the write-ahead log's content into the file, wherever the file is now, as far as no reader blocks it.

        On closing, SQLite does so only for a file that is at its path. A log that is left at the old path would be
        applied to the next database that is put there.
        """
        with suppress(DBAPIError, sqlite3.Error, StorageError):
            connection = self._engine.raw_connection()
            try:
                connection.cursor().execute("PRAGMA busy_timeout=1000")
                connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")
            finally:
                connection.close()

    def _take_queued(self) -> list[_QueuedJob]:
        """Remove all jobs from the queue and return them."""
        queued_jobs = []
        while not self._jobs.empty():
            if (queued_job := self._jobs.get()) is None:  # marks the end of the queue, which `_run` must see
                self._jobs.put(None)
                break
            queued_jobs.append(queued_job)
        return queued_jobs


def _resolve_futures(finished_jobs: Iterable[_FinishedJob]) -> None:
    """Resolve the futures of jobs, those of an event loop in one callback.

    A callback per job would switch between the two threads for each of them.
    """
    by_loop: dict[asyncio.AbstractEventLoop, list[_FinishedJob]] = {}
    for finished_job in finished_jobs:
        if isinstance(finished_job.future, Future):
            finished_job.resolve()
        else:
            by_loop.setdefault(finished_job.future.get_loop(), []).append(finished_job)
    for loop, finished_in_loop in by_loop.items():
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_resolve_all, finished_in_loop)


def _resolve_all(finished_jobs: list[_FinishedJob]) -> None:
    """Resolve the futures of jobs; runs in the thread of their event loop."""
    for finished_job in finished_jobs:
        finished_job.resolve()


def _run_jobs(connection: sa.Connection, jobs: Sequence[Job[Any]]) -> list[Any]:
    """Run the single jobs in their order, then the grouped ones by class; return the results in order of `jobs`."""
    results = [None if isinstance(job, GroupedJob) else job(connection) for job in jobs]
    positions_by_class: dict[type[GroupedJob], list[int]] = {}
    for position, job in enumerate(jobs):
        if isinstance(job, GroupedJob):
            positions_by_class.setdefault(type(job), []).append(position)
    for job_class, positions in positions_by_class.items():
        group_results = job_class.run_group(connection, [jobs[position] for position in positions])
        for position, result in zip(positions, group_results, strict=True):
            results[position] = result
    return results
