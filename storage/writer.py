"""The writer thread: it commits jobs in groups, and resolves a job's future once the job is durable."""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, NamedTuple, TypeGuard, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DatabaseError, DataError, DBAPIError, OperationalError

from auditor.errors import NotAllowedError, StorageError, UnstorableError
from auditor.failpoints import failpoint
from auditor.storage.sqlite_file import WatchedFile

T = TypeVar("T")
Job = Callable[[Connection], T]

MAX_JOBS_PER_TRANSACTION = 200


class GroupedJob(ABC):
    """A job that runs together with the others of its class in a transaction, which is faster than one by one."""

    @property
    def label(self) -> str | None:
        """Description of the answer that is lost if the job fails; None if the job records none."""
        return None

    def __call__(self, connection: Connection) -> None:
        """Run this job alone."""
        self.run_group(connection, [self])

    @classmethod
    @abstractmethod
    def run_group(cls, connection: Connection, jobs: Sequence[Any]) -> None:
        """Run all jobs, with the same effect as one after another."""


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
    those on its connection. If the connection to a server breaks, all jobs of the group fail.

    After each commit, the writer checks that the database's file is still at its path. If not, the jobs just committed
    and all queued jobs fail: SQLite would go on writing to a file that cannot be opened again.
    """

    def __init__(self, engine: Engine, file: WatchedFile | None = None) -> None:
        """Create the thread, which the first job starts.

        Args:
            engine: of the database.
            file: the database's file, for SQLite.
        """
        self._engine = engine
        self._file = file
        self._jobs: queue.SimpleQueue[_QueuedJob | None] = queue.SimpleQueue()
        self._closed = False
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
        while (first := self._jobs.get()) is not None:
            group = [first]
            while len(group) < MAX_JOBS_PER_TRANSACTION and not self._jobs.empty():
                queued_job = self._jobs.get()
                if queued_job is None:
                    self._commit(group)
                    return
                group.append(queued_job)
            self._commit(group)

    def _commit(self, group: list[_QueuedJob]) -> None:
        """Run a group of jobs in one transaction and resolve their futures; after an error, run each job by itself."""
        try:
            with self._engine.begin() as connection:
                results = _run_jobs(connection, [queued_job.job for queued_job in group])
                failpoint("before_commit")
            failpoint("after_commit")
        except BaseException as error:  # noqa: BLE001 - the thread must outlive any job; the error goes to its owner
            if self._fail_if_file_moved(group):
                return
            if len(group) == 1 or _is_disconnected(error):
                reported = _as_storage_error(self._engine, error)
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


INSUFFICIENT_PRIVILEGE = "42501"
"""PostgreSQL's SQLSTATE for an action that the role may not do."""
UNSTORABLE_SQLSTATES = ("22", "54")
"""PostgreSQL's SQLSTATE classes for values that it cannot store: data exceptions, and limits of a row or an index."""
UNSTORABLE_MESSAGES = ("binding parameter", "cannot adapt type")
"""Fragments of the SQLite and PostgreSQL drivers' messages about a value of an unknown type."""


def _run_jobs(connection: Connection, jobs: Sequence[Job[Any]]) -> list[Any]:
    """Run the single jobs in their order, then the grouped ones by class; return the results in order of `jobs`."""
    results = [None if isinstance(job, GroupedJob) else job(connection) for job in jobs]
    jobs_by_class: dict[type[GroupedJob], list[GroupedJob]] = {}
    for job in jobs:
        if isinstance(job, GroupedJob):
            jobs_by_class.setdefault(type(job), []).append(job)
    for job_class, grouped_jobs in jobs_by_class.items():
        job_class.run_group(connection, grouped_jobs)
    return results


def _as_storage_error(engine: Engine, error: BaseException) -> BaseException:
    """Convert an error of a job to the one that its caller gets."""
    if reason := _unstorable_reason(error):
        how_to_fix = "Correct it in its source, then run the same command again."
        return UnstorableError(f"the database {_database_name(engine)} cannot store a value: {reason}.", how_to_fix)
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


def _is_disconnected(error: BaseException) -> bool:
    """Whether the connection to a server broke. It is then unknown what was committed, so no job is run again."""
    return isinstance(error, DBAPIError) and error.connection_invalidated


def _sqlstate(error: DBAPIError) -> str | None:
    return getattr(error.orig, "sqlstate", None)


def database_error(engine: Engine, error: DBAPIError) -> StorageError:
    """Build the error for a database that cannot be read or written to any more, with how to fix it."""
    driver_message = " ".join(str(error.orig).split())
    name = _database_name(engine)
    if _sqlstate(error) == INSUFFICIENT_PRIVILEGE:
        how_to_fix = "Ask its owner for the reviewer or runner role (docs/team.md)."
        return NotAllowedError(
            f"the user '{engine.url.username}' may not do this in the database {name}: {driver_message}.", how_to_fix
        )
    if "malformed" in driver_message or "not a database" in driver_message:
        how_to_fix = "Make a copy, then recover what is left with: sqlite3 FILE .recover"
    elif "readonly" in driver_message:
        how_to_fix = "Copy it, and all files whose names begin with its name, to a writable folder."
    elif "full" in driver_message or "I/O" in driver_message:
        how_to_fix = "Free space on the disk, then run the same command again. Recorded answers are kept."
    elif engine.dialect.name == "postgresql" and isinstance(error, OperationalError):
        how_to_fix = "Check that its server is running and can be reached, then try again. What was saved is kept."
    else:
        how_to_fix = "Correct the cause, then run the same command again. Recorded answers are kept."
    return StorageError(f"the database {name} cannot be used: {driver_message}.", how_to_fix)


def _database_name(engine: Engine) -> str:
    return engine.url.database or engine.url.render_as_string()
