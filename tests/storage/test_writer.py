"""The one thread that writes: groups of a bounded size, few statements, and nobody told before it is durable."""

from __future__ import annotations

import asyncio
import os
import random
import threading
import zlib
from collections.abc import Iterator
from concurrent.futures import Future
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, event, insert, select

from auditor.domain import Answer, Attempt, Call, Message, Outcome, Purpose, ResponseBody
from auditor.errors import StorageError
from auditor.storage import hash_chain, ledger
from auditor.storage.database import Database, open_database, table_of
from auditor.storage.tables import AnswerRow, AttemptRow, DispatchRow, PayloadRow, VectorRow
from auditor.storage.writer import MAX_JOBS_PER_TRANSACTION
from tests.storage.test_database import make


@pytest.fixture
def db(storage: str) -> Iterator[Database]:
    with open_database(storage) as opened:
        yield opened


@pytest.fixture
def file(file_storage: str) -> Iterator[Database]:
    with open_database(file_storage) as opened:
        yield opened


def note(db: Database, text: str) -> Any:
    """A job that adds a row."""
    row = {"revision": "r", "text": text, "values": b""}
    return lambda connection: connection.execute(insert(table_of(VectorRow)), [row])


def held(db: Database) -> tuple[threading.Event, Future[Any]]:
    """A writer that is busy until the event is set."""
    gate, busy = threading.Event(), threading.Event()

    def wait(connection: Connection) -> None:
        busy.set()
        gate.wait(60)

    future = db.writer.submit(wait)
    assert busy.wait(60)
    return gate, future


def counted(db: Database, name: str) -> list[Any]:
    """What the engine does from now on, as it grows."""
    found: list[Any] = []

    @event.listens_for(db.engine, name)
    def note(*args: Any) -> None:
        found.append(args)

    return found


def asked(i: int) -> Call:
    return Call("m", "openai/m", (Message("user", f"question {i}"),), Purpose.DIRECT, sample=i)


def answered(call: Call) -> Answer:
    body = ResponseBody(call.key, call.key.encode(), 64)
    attempt = Attempt(1, datetime.now(UTC), 0.1, Outcome.OK, 200, body=body)
    return Answer(call.key, Outcome.OK, text="so", cost_usd=0, prompt_tokens=7, attempts=(attempt,))


def test_what_waits_goes_in_groups_of_at_most_200(db: Database) -> None:
    commits = counted(db, "commit")
    gate, first = held(db)
    waiting = [db.writer.submit(note(db, f"k{i}")) for i in range(2 * MAX_JOBS_PER_TRANSACTION + 1)]
    assert not any(f.done() for f in waiting)
    gate.set()
    for future in [first, *waiting]:
        future.result(timeout=60)
    assert len(commits) == 1 + 3


def test_a_lone_job_waits_for_no_other(db: Database) -> None:
    commits = counted(db, "commit")
    for i in range(3):
        db.write(note(db, f"k{i}"))
        assert len(commits) == i + 1


async def test_a_group_of_calls_is_a_few_statements_and_one_wake_up(
    file: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one for each call, the writer would let the interpreter go and wait for it hundreds of times."""
    audit = make(file)
    calls = [asked(i) for i in range(100)]
    loop = asyncio.get_running_loop()
    woken: list[Any] = []
    wake = loop.call_soon_threadsafe

    def noted(*args: Any, **more: Any) -> asyncio.Handle:
        woken.append(args)
        return wake(*args, **more)

    monkeypatch.setattr(loop, "call_soon_threadsafe", noted)
    statements = counted(file, "before_cursor_execute")
    out = [ledger.record_dispatch(file, "run", audit.id, call) for call in calls]
    back = [ledger.record_answer(file, call, answered(call), run_id="run") for call in calls]
    for step in (out, back):
        gate, _ = held(file)
        tasks = [asyncio.create_task(one) for one in step]
        await asyncio.sleep(0)
        del statements[:], woken[:]
        gate.set()
        await asyncio.gather(*tasks)
        assert len(woken) == 1
        assert len(statements) <= 9
        assert not any(isinstance(parameters, list) for _, _, _, parameters, _, _ in statements)
    with file.read() as connection:
        rows = {t: len(connection.execute(select(table_of(t))).all()) for t in (AnswerRow, AttemptRow, PayloadRow)}
        assert set(rows.values()) == {100}
        assert connection.execute(select(table_of(DispatchRow))).all() == []
    checked = hash_chain.verify_chain(file)
    assert (checked.n_links, checked.breaks) == (100, [])


async def test_the_same_answer_twice_in_a_group_is_recorded_once(db: Database) -> None:
    call = asked(0)
    gate, _ = held(db)
    tasks = [asyncio.create_task(ledger.record_answer(db, call, answered(call))) for _ in range(2)]
    await asyncio.sleep(0)
    gate.set()
    await asyncio.gather(*tasks)
    await ledger.record_answer(db, call, answered(call))
    checked = hash_chain.verify_chain(db)
    assert (checked.n_links, checked.breaks, ledger.count_attempts(db)) == (1, [], 3)


async def test_who_stops_waiting_undoes_nothing(db: Database) -> None:
    gate, _ = held(db)
    task = asyncio.create_task(db.writer.write(note(db, "kept")))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    gate.set()
    db.write(lambda connection: None)
    with db.read() as connection:
        assert connection.execute(select(table_of(VectorRow).c.text)).scalars().all() == ["kept"]


def test_a_loop_that_is_gone_stops_nobody_else(db: Database) -> None:
    async def leave() -> threading.Event:
        gate, _ = held(db)
        task = asyncio.ensure_future(db.writer.write(note(db, "kept")))
        await asyncio.sleep(0)
        task.cancel()
        return gate

    gate = asyncio.run(leave())
    gate.set()
    assert db.writer.submit(lambda connection: 7).result(timeout=60) == 7


async def test_a_job_that_raises_tells_whoever_waits(db: Database) -> None:
    with pytest.raises(ZeroDivisionError):
        await db.writer.write(lambda connection: 1 / 0)
    assert await db.writer.write(lambda connection: 7) == 7


async def test_a_file_that_is_gone_fails_all_that_is_queued_and_names_the_answers(file: Database) -> None:
    assert file.path is not None
    await ledger.record_answer(file, asked(99), answered(asked(99)))
    calls = [asked(i) for i in range(7)]
    gate, busy = held(file)
    tasks = [asyncio.create_task(ledger.record_answer(file, call, answered(call))) for call in calls]
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


def test_a_file_that_is_in_its_place_costs_one_look_a_commit(file: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[Path] = []
    look = Path.stat

    def counted_stat(path: Path, **options: bool) -> os.stat_result:
        looks.append(path)
        return look(path, **options)

    monkeypatch.setattr(Path, "stat", counted_stat)
    gate, first = held(file)
    waiting = [file.writer.submit(note(file, f"k{i}")) for i in range(MAX_JOBS_PER_TRANSACTION)]
    gate.set()
    for future in [first, *waiting]:
        future.result(timeout=60)
    assert looks == [file.path] * 2


@pytest.mark.parametrize("size", [0, 1, 63, 64, 255, 256, 511, 512, 4096, 65_536])
def test_a_body_is_packed_in_a_window_of_its_size(size: int) -> None:
    for data in (random.Random(size).randbytes(size), (b'{"model": "m", "content": "words"}' * 2000)[:size]):
        assert zlib.decompress(ledger.compress_payload(data)) == data
        assert len(ledger.compress_payload(data)) <= 1.1 * len(zlib.compress(data, 1)) + 16
