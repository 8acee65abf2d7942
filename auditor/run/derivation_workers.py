"""Processes that read the recorded answers of a large audit side by side, and check its records meanwhile.

Where the system can, they are copies of one process that has imported the program. Starting them takes a second or two:
small audits are read in one process.
"""

from __future__ import annotations

import asyncio
import gc
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_all_start_methods, get_context
from typing import TYPE_CHECKING, Literal

from auditor.domain.audit_records import Audit
from auditor.storage import audits
from auditor.storage.database import Database, open_database
from auditor.storage.derived_rows import RowDifference, find_unknown_values, open_scratch_database
from auditor.storage.ledger import count_answers

if TYPE_CHECKING:
    from auditor.config import AuditConfig
    from auditor.reports.data.verification import AuditVerification

MIN_ANSWERS = 20_000
"""Recorded answers of a database from which on several processes are faster than one."""
MAX_WORKERS = 8
"""Each worker needs some 300 MB of memory."""
MAX_FOLDER_OF_SOCKET = 60
"""Longest path of the folder of temporary files: that of a socket has at most 103 bytes, of which 32 come after it."""
MODULES_OF_WORKERS = (
    *("auditor.__main__", "auditor.agents.cell_scoring", "auditor.run.rederivation"),
    "auditor.reports.data.verification",
)
"""What workers use, and the program's own start, which each of them imports again."""


def count_workers(db: Database) -> int:
    """Number of processes that read the answers of a database; 1 if there are too few answers, or one core."""
    n_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(n_cores, MAX_WORKERS) if count_answers(db) >= MIN_ANSWERS else 1


@contextmanager
def start_verification(
    db: Database, audit: Audit
) -> Iterator[tuple[Sequence[RowDifference], Callable[[], AuditVerification]]]:
    """Begin `verify_audit`, of a large database in a process.

    Yields:
        The audit's rows with unknown values, and a function that waits for the outcome. It raises AuditorError if the
        database cannot be read.
    """
    if count_workers(db) == 1:
        unknown = find_unknown_values(db, audit.id)
        yield unknown, lambda: _verify(db, audit.name, unknown)
        return
    with _start_workers(1, _give_way) as pool:
        pool.submit(os.getpid)  # the process starts meanwhile
        unknown = find_unknown_values(db, audit.id)
        yield unknown, pool.submit(_verify_at, _url_of(db), audit.name, unknown).result


def _select_start_method() -> Literal["forkserver", "spawn"]:
    """How processes are started; the server of copies needs a socket below the folder of temporary files."""
    has_server = "forkserver" in get_all_start_methods() and len(tempfile.gettempdir()) <= MAX_FOLDER_OF_SOCKET
    return "forkserver" if has_server else "spawn"


def _give_way() -> None:
    """Let the processes that derive results go first: what follows them, in one process, then leaves a core free."""
    if hasattr(os, "nice"):
        os.nice(2)


def _start_workers(n_workers: int, initializer: Callable[[], None] | None = None) -> ProcessPoolExecutor:
    """Start processes: of a server that has imported what they need, so that it is imported once, or else anew.

    They are not forked from this process, whose open databases and threads a copy must not use.

    Args:
        n_workers: number of processes.
        initializer: is called in each of them first.
    """
    context = get_context(_select_start_method())
    if context.get_start_method() == "forkserver":
        context.set_forkserver_preload(list(MODULES_OF_WORKERS))
    return ProcessPoolExecutor(n_workers, mp_context=context, initializer=initializer)


def _verify(db: Database, audit_name: str, unknown: Sequence[RowDifference]) -> AuditVerification:
    from auditor.reports.data.verification import verify_audit  # loads numpy

    return verify_audit(db, audit_name, unknown=unknown)


def _verify_at(url: str, audit_name: str, unknown: Sequence[RowDifference]) -> AuditVerification:
    with open_database(url, create=False) as db, collect_garbage_rarely():
        return _verify(db, audit_name, unknown)


def read_cells(db: Database, copy: Database, audit_name: str, n_workers: int, config: AuditConfig) -> set[str]:
    """Derive an audit's traces and verdicts in several processes, and store them in the copy.

    Args:
        db, copy: as in `derived_rows.open_copy`.
        audit_name: of the audit.
        n_workers: number of processes.
        config: of the audit.

    Returns:
        Keys of calls of which nothing is recorded.

    Raises:
        AuditorError: they cannot be derived.
    """
    with _start_workers(n_workers) as pool:
        slices = [
            pool.submit(_read_slice, _url_of(db), _url_of(copy), audit_name, number, n_workers)
            for number in range(n_workers)
        ]
        from auditor.agents.recorded_cells import has_only_cells  # loads numpy

        if not has_only_cells(config):
            from auditor.agents.graph import build_graph

            build_graph()  # loads meanwhile what the graph needs (1 s)
        return set[str]().union(*(part.result() for part in slices))


def _read_slice(url: str, copy_url: str, audit_name: str, number: int, n_slices: int) -> set[str]:
    """Derive the n-th part of the cells; returns the keys of calls of which nothing is recorded."""
    from auditor.agents.recorded_cells import read_recorded_slice  # loads numpy
    from auditor.run.rederivation import prepare_derivation

    with open_database(url, create=False) as db, open_scratch_database(copy_url) as copy:
        context, client = prepare_derivation(db, copy, audits.get_audit(db, audit_name))
        with collect_garbage_rarely():
            asyncio.run(read_recorded_slice(context, number, n_slices))
        context.raise_if_stopped()
        return client.unasked


@contextmanager
def collect_garbage_rarely() -> Iterator[None]:
    """Let Python look for unreachable objects 100 times less often: it takes a fifth of the time of a derivation."""
    first, *others = gc.get_threshold()
    gc.set_threshold(100 * first, *others)
    try:
        yield
    finally:
        gc.set_threshold(first, *others)


def _url_of(db: Database) -> str:
    """URL of an open database, with its password."""
    return db.engine.url.render_as_string(hide_password=False)
