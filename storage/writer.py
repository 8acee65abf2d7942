"""One thread that writes: jobs are committed in groups, and a job is done only once it is durable."""

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
    """A job that is done together with the others of its kind in a transaction, which costs less than one by one."""

    @property
    def label(self) -> str | None:
        """What is lost if the job is, in words; None where that is nothing that was paid for."""
        return None

    def __call__(self, connection: Connection) -> None:
        """Do it alone."""
        self.run_group(connection, [self])

    @classmethod
    @abstractmethod
    def run_group(cls, connection: Connection, jobs: Sequence[Any]) -> None:
        """Do all of them, as if one after another."""


class _QueuedJob(NamedTuple):
    """A job, and who waits for it: a thread, or a task of an event loop."""

    job: Job[Any]
    future: Future[Any] | asyncio.Future[Any]


class _FinishedJob(NamedTuple):
    """What a job that was queued came to."""

    future: Future[Any] | asyncio.Future[Any]
    result: Any = None
    error: BaseException | None = None

    def resolve(self) -> None:
        """Resolve the future, unless whoever waited gave up."""
        if self.future.done():
            return
        if self.error is None:
            self.future.set_result(self.result)
        else:
            self.future.set_exception(self.error)


class Writer:
    """Runs jobs one after another on one connection, at most 200 to a transaction.

    Whatever is queued when a transaction begins joins it, so groups grow with the load and a lone job never waits.
    A job's future is resolved after its commit: whoever awaits it may rely on the disk. When a job raises, its group is
    rolled back and run again with each job in a transaction of its own, so a job may run twice and must do nothing
    but work on its connection. When the connection itself breaks, all of the group are told.

    After each commit the file is looked for at its path. Where it is gone, all that was just committed and all that is
    queued fails: SQLite would go on writing to a file that nobody can open again.
    """

    def __init__(self, engine: Engine, file: WatchedFile | None = None) -> None:
        """Start the thread.

        Args:
            file: the database's, for SQLite.
        """
        self._engine = engine
        self._file = file
        self._jobs: queue.SimpleQueue[_QueuedJob | None] = queue.SimpleQueue()
        self._closed = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="auditor-writer", daemon=True)
        self._thread.start()

    def submit(self, job: Job[T]) -> Future[T]:
        """Queue a job; its future holds what the job returned, or what it raised."""
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()  # who stops waiting for a job does not undo it
        self._put(_QueuedJob(job, future))
        return future

    async def write(self, job: Job[T]) -> T:
        """Queue a job and wait until it is durable; who stops waiting does not undo it."""
        waiting: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._put(_QueuedJob(job, waiting))
        return await waiting

    def _put(self, queued_job: _QueuedJob) -> None:
        with self._lock:
            if self._closed:
                raise RuntimeError("the database is closed")
            self._jobs.put(queued_job)

    def close(self) -> None:
        """Commit what is queued, then stop."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._jobs.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (first := self._jobs.get()) is not None:
            group = [first]
            while len(group) < MAX_JOBS_PER_TRANSACTION and not self._jobs.empty():
                item = self._jobs.get()
                if item is None:
                    self._commit(group)
                    return
                group.append(item)
            self._commit(group)

    def _commit(self, group: list[_QueuedJob]) -> None:
        try:
            with self._engine.begin() as connection:
                results = _run_jobs(connection, [item.job for item in group])
                failpoint("before_commit")
            failpoint("after_commit")
        except BaseException as error:  # noqa: BLE001 - the thread must outlive any job; the error goes to its owner
            if self._fail_if_file_moved(group):
                return
            if len(group) == 1 or _is_disconnected(error):
                reported = _as_storage_error(self._engine, error)
                _resolve_futures(_FinishedJob(item.future, error=reported) for item in group)
                return
            for item in group:
                self._commit([item])
            return
        if not self._fail_if_file_moved(group):
            _resolve_futures(_FinishedJob(item.future, result) for item, result in zip(group, results, strict=True))

    def _fail_if_file_moved(self, group: list[_QueuedJob]) -> bool:
        """Fail a group and all that is queued if the database's file is gone from its path; returns whether it is."""
        if self._file is None or (error := self._file.moved_error()) is None:
            return False
        self._truncate_log()
        group = group + self._take_queued()
        labels = [item.job.label for item in group if isinstance(item.job, GroupedJob)]
        error = self._file.moved_error([label for label in labels if label is not None]) or error
        _resolve_futures(_FinishedJob(item.future, error=error) for item in group)
        return True

    def _truncate_log(self) -> None:
        """Move the write-ahead log's content into the file, wherever that is now, as far as nobody reads it.

        On closing, SQLite does so only for a file in its place. Left beside the path, the log would be applied to
        whatever database is put there next.
        """
        with suppress(DBAPIError, sqlite3.Error, StorageError):
            connection = self._engine.raw_connection()
            try:
                connection.cursor().execute("PRAGMA busy_timeout=1000")
                connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")
            finally:
                connection.close()

    def _take_queued(self) -> list[_QueuedJob]:
        taken = []
        while not self._jobs.empty():
            if (item := self._jobs.get()) is None:  # the end, for `_run` to see
                self._jobs.put(None)
                break
            taken.append(item)
        return taken


def _resolve_futures(finished_jobs: Iterable[_FinishedJob]) -> None:
    """Tell all who wait, each event loop in one go: waking it for every job would hand the interpreter to and fro."""
    by_loop: dict[asyncio.AbstractEventLoop, list[_FinishedJob]] = {}
    for one in finished_jobs:
        if isinstance(one.future, Future):
            one.resolve()
        else:
            by_loop.setdefault(one.future.get_loop(), []).append(one)
    for loop, theirs in by_loop.items():
        with suppress(RuntimeError):  # a loop that is closed: nobody waits any more
            loop.call_soon_threadsafe(_resolve_all, theirs)


def _resolve_all(finished_jobs: list[_FinishedJob]) -> None:
    for one in finished_jobs:
        one.resolve()


INSUFFICIENT_PRIVILEGE = "42501"
"""PostgreSQL's code for what a role may not do."""
UNSTORABLE_SQLSTATES = ("22", "54")
"""PostgreSQL's classes of codes for values that it cannot hold: data exceptions, and limits of a row or an index."""
UNSTORABLE_MESSAGES = ("binding parameter", "cannot adapt type")
"""What SQLite's and PostgreSQL's drivers say of a value of a type that they do not know."""


def _run_jobs(connection: Connection, jobs: Sequence[Job[Any]]) -> list[Any]:
    """What each job returns: the others in their order, then those that are done together."""
    results = [None if isinstance(job, GroupedJob) else job(connection) for job in jobs]
    kinds: dict[type[GroupedJob], list[GroupedJob]] = {}
    for job in jobs:
        if isinstance(job, GroupedJob):
            kinds.setdefault(type(job), []).append(job)
    for kind, joined in kinds.items():
        kind.run_group(connection, joined)
    return results


def _as_storage_error(engine: Engine, error: BaseException) -> BaseException:
    """The error as whoever submitted the job gets it."""
    if reason := _unstorable_reason(error):
        how_to_fix = "Correct it where it comes from, then give the same command again."
        return UnstorableError(f"the database {_database_name(engine)} cannot hold a value: {reason}.", how_to_fix)
    return database_error(engine, error) if _is_database_failure(error) else error


def _unstorable_reason(error: BaseException) -> str | None:
    """Why a row's own values are refused, where the next row may be stored; None for any other error."""
    if isinstance(error, UnicodeEncodeError):
        return f"a text has U+{ord(error.object[error.start]):04X}, which is not a Unicode character"
    if isinstance(error, OverflowError):
        return "a whole number needs more than 64 bits"
    if not isinstance(error, DBAPIError):
        return None
    reason = str(error.orig).strip().partition("\n")[0].rstrip(".")
    is_refused = isinstance(error, DataError) or (_sqlstate(error) or "").startswith(UNSTORABLE_SQLSTATES)
    return reason if is_refused or any(words in reason for words in UNSTORABLE_MESSAGES) else None


def _is_database_failure(error: BaseException) -> TypeGuard[DBAPIError]:
    """Whether the database itself failed or refused, and not what was asked of it; a damaged file is the bare class."""
    is_refused = isinstance(error, DBAPIError) and _sqlstate(error) == INSUFFICIENT_PRIVILEGE
    return is_refused or isinstance(error, OperationalError) or type(error) is DatabaseError


def _is_disconnected(error: BaseException) -> bool:
    """Whether the connection to a server broke: what was written then is not known, so nothing is written again."""
    return isinstance(error, DBAPIError) and error.connection_invalidated


def _sqlstate(error: DBAPIError) -> str | None:
    return getattr(error.orig, "sqlstate", None)


def database_error(engine: Engine, error: DBAPIError) -> StorageError:
    """What a database says when it can be read or written no more, and how to go on."""
    said = " ".join(str(error.orig).split())
    where = _database_name(engine)
    if _sqlstate(error) == INSUFFICIENT_PRIVILEGE:
        mend = "Ask its owner for the role of a reviewer or a runner: docs/team.md."
        return NotAllowedError(
            f"the user '{engine.url.username}' may not do this in the database {where}: {said}.", mend
        )
    if "malformed" in said or "not a database" in said:
        mend = "Keep a copy, and save what can be saved with: sqlite3 FILE .recover"
    elif "readonly" in said:
        mend = "Copy it, with all files whose names begin like its own, to a folder that you may write to."
    elif "full" in said or "I/O" in said:
        mend = "Make room on the disk, then give the same command again: nothing recorded is lost."
    else:
        mend = "Give the same command again when that is mended: nothing recorded is lost."
    return StorageError(f"the database {where} cannot be used: {said}.", mend)


def _database_name(engine: Engine) -> str:
    return engine.url.database or engine.url.render_as_string()
