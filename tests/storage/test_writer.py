"""The writer thread: groups of bounded size, few statements, and results only after the commit."""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import threading
import time
import zlib
from collections.abc import Coroutine, Iterator, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, event, insert, select

from auditor.domain import Answer, Attempt, Call, Message, Outcome, Purpose, ResponseBody
from auditor.errors import StorageError
from auditor.storage import hash_chain, ledger, writer
from auditor.storage.call_records import Dispatch, Payload, StoredAnswer, StoredAttempt, TextVector
from auditor.storage.database import Database, open_database
from auditor.storage.row_classes import table_of
from auditor.storage.writer import MAX_JOBS_PER_TRANSACTION
from tests.storage.test_database import save_sample_audit
from tests.support.patience import PATIENCE_S
from tests.support.postgres_server import Postgres
from tests.support.stored_rows import count_attempts


@pytest.fixture
def file(file_storage: str) -> Iterator[Database]:
    with open_database(file_storage) as opened:
        yield opened


def insert_row(db: Database, text: str) -> Any:
    row = {"revision": "r", "text": text, "values": b""}
    return lambda connection: connection.execute(insert(table_of(TextVector)), [row])


def block_writer(db: Database) -> tuple[threading.Event, Future[Any]]:
    """Block the writer until the returned event is set; also returns the future of the blocking job."""
    release, started = threading.Event(), threading.Event()

    def wait(connection: Connection) -> None:
        started.set()
        release.wait(PATIENCE_S)

    future = db.writer.submit(wait)
    assert started.wait(PATIENCE_S)
    return release, future


async def write_in_one_group(db: Database, *writes: Coroutine[Any, Any, Any]) -> list[Any]:
    """The results of writes that wait for the writer together."""
    gate, _ = block_writer(db)
    tasks = [asyncio.create_task(write) for write in writes]
    await asyncio.sleep(0)
    gate.set()
    return await asyncio.gather(*tasks)


def record_events(db: Database, name: str) -> list[Any]:
    """The arguments of every later SQLAlchemy event `name` of the engine; the list grows."""
    events: list[Any] = []

    @event.listens_for(db.engine, name)
    def record_event(*args: Any) -> None:
        events.append(args)

    return events


def make_call(i: int) -> Call:
    return Call("m", "openai/m", (Message("user", f"question {i}"),), Purpose.DIRECT, sample=i)


def make_answer(call: Call) -> Answer:
    body = ResponseBody(hashlib.sha256(call.key.encode()).hexdigest(), call.key.encode(), 64)
    attempt = Attempt(1, datetime.now(UTC), 0.1, Outcome.OK, 200, body=body)
    return Answer(call.key, Outcome.OK, text="so", cost_usd=0, prompt_tokens=7, attempts=(attempt,))


def test_queued_jobs_are_committed_in_groups_of_at_most_200(db: Database) -> None:
    commits = record_events(db, "commit")
    gate, first = block_writer(db)
    waiting = [db.writer.submit(insert_row(db, f"k{i}")) for i in range(2 * MAX_JOBS_PER_TRANSACTION + 1)]
    assert not any(f.done() for f in waiting)
    gate.set()
    for future in [first, *waiting]:
        future.result(timeout=PATIENCE_S)
    assert len(commits) == 1 + 3


def test_a_single_job_is_committed_at_once(db: Database) -> None:
    commits = record_events(db, "commit")
    for i in range(3):
        db.write(insert_row(db, f"k{i}"))
        assert len(commits) == i + 1


async def test_a_group_of_calls_is_a_few_statements_and_one_wake_up(
    file: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one statement per call the writer would release and reacquire the interpreter lock hundreds of times."""
    audit = save_sample_audit(file)
    calls = [make_call(i) for i in range(100)]
    loop = asyncio.get_running_loop()
    wake_ups: list[Any] = []
    wake = loop.call_soon_threadsafe

    def record_wake_up(*args: Any, **more: Any) -> asyncio.Handle:
        wake_ups.append(args)
        return wake(*args, **more)

    monkeypatch.setattr(loop, "call_soon_threadsafe", record_wake_up)
    statements = record_events(file, "before_cursor_execute")
    dispatches = [ledger.record_dispatch(file, "run", audit.id, call) for call in calls]
    recordings = [ledger.record_answer(file, call, make_answer(call), run_id="run") for call in calls]
    for step in (dispatches, recordings):
        gate, _ = block_writer(file)
        tasks = [asyncio.create_task(recording) for recording in step]
        await asyncio.sleep(0)
        del statements[:], wake_ups[:]
        gate.set()
        await asyncio.gather(*tasks)
        assert len(wake_ups) == 1
        assert len(statements) <= 11
        assert not any(isinstance(parameters, list) for _, _, _, parameters, _, _ in statements)
    with file.read() as connection:
        rows = {t: len(connection.execute(select(table_of(t))).all()) for t in (StoredAnswer, StoredAttempt, Payload)}
        assert set(rows.values()) == {100}
        assert connection.execute(select(table_of(Dispatch))).all() == []
    verification = hash_chain.verify_chain(file)
    assert (verification.n_by_kind["attempt"], verification.n_by_kind["answer"]) == (100, 100)
    assert verification.breaks == []


async def test_the_rows_of_a_group_of_answers_are_copied_to_a_server(postgres: Postgres) -> None:
    calls = [make_call(i) for i in range(3)]
    with open_database(postgres.schema()) as db:
        not_copied = record_events(db, "do_executemany")
        await write_in_one_group(db, *(ledger.record_answer(db, call, make_answer(call)) for call in calls))
        assert not_copied == []
        verification = hash_chain.verify_chain(db)
        assert (verification.n_links, verification.breaks) == (6, [])


async def test_the_same_answer_twice_in_a_group_is_recorded_once(db: Database) -> None:
    call = make_call(0)
    await write_in_one_group(db, *(ledger.record_answer(db, call, make_answer(call)) for _ in range(2)))
    await ledger.record_answer(db, call, make_answer(call))
    verification = hash_chain.verify_chain(db)
    assert (verification.n_by_kind["answer"], verification.breaks, count_attempts(db)) == (1, [], 3)


async def test_cancelling_the_caller_keeps_its_write(db: Database) -> None:
    gate, _ = block_writer(db)
    task = asyncio.create_task(db.writer.write(insert_row(db, "kept")))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    gate.set()
    db.write(lambda connection: None)
    with db.read() as connection:
        assert connection.execute(select(table_of(TextVector).c.text)).scalars().all() == ["kept"]


class Answered(writer.GroupedJob):
    """Stands for an answer that is recorded; `groups` has the number of them in each transaction."""

    def __init__(self, groups: list[int]) -> None:
        self.groups = groups

    @classmethod
    def run_group(cls, connection: Connection, jobs: Sequence[Any]) -> Sequence[Any]:
        jobs[0].groups.append(len(jobs))
        return jobs


def collect_answers(db: Database, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Submit ten answers while the writer may wait for more; return the number of them in each transaction."""
    groups: list[int] = []
    all_queued = threading.Event()
    monkeypatch.setattr(writer, "COMMIT_INTERVAL_S", 3600.0)
    monkeypatch.setattr(time, "sleep", lambda seconds: all_queued.wait(PATIENCE_S))
    futures = [db.writer.submit(Answered(groups)) for _ in range(10)]
    all_queued.set()
    for future in futures:
        future.result(60)
    db.writer.submit(lambda connection: None).result(60)  # waits for no answers
    return groups


def test_answers_of_a_server_are_collected_between_transactions(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_database(postgres.schema()) as db:
        db.writer.submit(lambda connection: None).result(60)
        assert collect_answers(db, monkeypatch) == [10]


def test_answers_are_collected_after_a_transaction_with_several_jobs(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, _ = block_writer(db)
    futures = [db.writer.submit(lambda connection: None) for _ in range(2)]
    gate.set()
    for future in futures:
        future.result(60)
    assert collect_answers(db, monkeypatch) == [10]


def test_a_single_answer_after_another_does_not_wait(file: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    groups: list[int] = []
    waits: list[float] = []
    monkeypatch.setattr(writer, "COMMIT_INTERVAL_S", 3600.0)
    file.writer.submit(lambda connection: None).result(60)
    monkeypatch.setattr(time, "sleep", waits.append)
    for _ in range(3):
        file.writer.submit(Answered(groups)).result(60)
    assert (groups, waits) == ([1, 1, 1], [])


def test_a_closed_event_loop_does_not_block_others(db: Database) -> None:
    async def cancel_waiting_task() -> threading.Event:
        gate, _ = block_writer(db)
        task = asyncio.ensure_future(db.writer.write(insert_row(db, "kept")))
        await asyncio.sleep(0)
        task.cancel()
        return gate

    gate = asyncio.run(cancel_waiting_task())
    gate.set()
    assert db.writer.submit(lambda connection: 7).result(timeout=PATIENCE_S) == 7


async def test_a_job_that_raises_passes_the_error_to_its_caller(db: Database) -> None:
    with pytest.raises(ZeroDivisionError):
        await db.writer.write(lambda connection: 1 / 0)
    assert await db.writer.write(lambda connection: 7) == 7


async def test_a_moved_file_fails_all_queued_jobs_and_names_the_answers(file: Database) -> None:
    assert file.path is not None
    await ledger.record_answer(file, make_call(99), make_answer(make_call(99)))
    calls = [make_call(i) for i in range(7)]
    gate, busy = block_writer(file)
    tasks = [asyncio.create_task(ledger.record_answer(file, call, make_answer(call))) for call in calls]
    await asyncio.sleep(0)
    file.path.rename(file.path.with_name("moved.db"))
    gate.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    errors = [error for error in [*results, busy.exception(60)] if isinstance(error, StorageError)]
    assert len(errors) == 1 + len(calls)
    labels = [f"openai/m direct {call.key[:12]}" for call in calls]
    assert f"These answers may not be on disk: {', '.join(labels[:5])} and 2 more." in errors[0].message
    with pytest.raises(StorageError, match="was deleted or moved"):
        await file.writer.write(lambda connection: None)
    file.path.with_name("moved.db").rename(file.path)
    await file.writer.write(lambda connection: None)


def test_checking_the_file_costs_one_stat_per_commit(file: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    stat_paths: list[Path] = []
    original_stat = Path.stat

    def counted_stat(path: Path, **options: bool) -> os.stat_result:
        stat_paths.append(path)
        return original_stat(path, **options)

    monkeypatch.setattr(Path, "stat", counted_stat)
    gate, first = block_writer(file)
    waiting = [file.writer.submit(insert_row(file, f"k{i}")) for i in range(MAX_JOBS_PER_TRANSACTION)]
    gate.set()
    for future in [first, *waiting]:
        future.result(timeout=PATIENCE_S)
    assert stat_paths == [file.path] * 2


@pytest.mark.parametrize("size", [0, 1, 63, 64, 255, 256, 511, 512, 4096, 65_536])
def test_payloads_are_compressed_with_a_window_of_their_size(size: int) -> None:
    for data in (random.Random(size).randbytes(size), (b'{"model": "m", "content": "words"}' * 2000)[:size]):
        assert zlib.decompress(ledger.compress_payload(data)) == data
        assert len(ledger.compress_payload(data)) <= 1.1 * len(zlib.compress(data, 1)) + 16
