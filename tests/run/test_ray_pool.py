"""The Ray worker pool with workers in this process, and worker deaths that are too rare to test on a cluster.

tests/e2e/test_ray.py uses a real cluster.
"""

from __future__ import annotations

import asyncio
import platform
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from importlib import metadata
from typing import Any

import pytest

from auditor.config import AuditConfig
from auditor.domain import Answer, Call, Message, Outcome, Purpose
from auditor.errors import AuditorError, ModelSetupError
from auditor.run import describe_environment, fingerprint, load_planned_survey
from auditor.run.ray_cluster import WorkerDied
from auditor.run.ray_pool import MAX_CONSECUTIVE_DEATHS, RayDispatcher, WorkerSlot
from auditor.run.ray_worker import WorkerActor, WorkerConfig, WorkerRequest
from auditor.storage import audits, ledger
from auditor.storage.database import Database, open_database
from tests.support.audit_configs import KEY, KEY_VARIABLE, config
from tests.support.fake_server import FakeServer, answer, completion


class LocalWorker:
    """A worker in this process; after `terminate` its calls raise WorkerDied, though it may go on in the background."""

    def __init__(self) -> None:
        self.worker = WorkerActor()
        self.is_terminated = asyncio.Event()

    async def call_method(self, method: str, *args: object) -> Any:
        method_task = asyncio.ensure_future(getattr(self.worker, method)(*args))
        death_task = asyncio.ensure_future(self.is_terminated.wait())
        await asyncio.wait([method_task, death_task], return_when=asyncio.FIRST_COMPLETED)
        death_task.cancel()
        if self.is_terminated.is_set():
            raise WorkerDied
        return method_task.result()

    def terminate(self) -> None:
        self.is_terminated.set()


@pytest.fixture
def db(storage: str) -> Iterator[Database]:
    with open_database(storage) as database:
        yield database


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, KEY)


def make_worker_config(db: Database, audit: AuditConfig, **changes: Any) -> WorkerConfig:
    survey = load_planned_survey(audit)
    audit_columns = {"config": audit.model_dump_json(), "config_hash": fingerprint(audit), "survey": survey}
    saved = audits.save_audit(db, name=audit.name, environment=describe_environment(), **audit_columns)  # type: ignore[arg-type]
    worker_config = WorkerConfig(audit, ("model-a",), (), db.url, saved.id, metadata.version("auditor"))
    return replace(worker_config, **changes)


def call(audit: AuditConfig, sample: int = 0) -> Call:
    model = audit.models[0]
    messages = (Message("user", "Is it right?"),)
    return Call(model.name, model.model, messages, Purpose.DIRECT, sample, {"seed": sample}, server=model.api_base)


@asynccontextmanager
async def local_dispatcher(
    worker_config: WorkerConfig,
    workers: list[LocalWorker],
    n_slots: int = 1,
    note: Callable[[str], None] = lambda _: None,
) -> AsyncIterator[RayDispatcher]:
    def start_worker() -> Any:
        workers.append(LocalWorker())
        return workers[-1]

    def create_slots(_: str | None, changed: Callable[[], None]) -> list[WorkerSlot]:
        return [WorkerSlot(start_worker, worker_config, changed) for _ in range(n_slots)]

    dispatcher = RayDispatcher(lambda _: None, create_slots, note)
    try:
        yield dispatcher
    finally:
        await dispatcher.close()
        for worker in workers:
            await worker.worker.stop()


async def wait_until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - what is waited for happens in another thread
            await asyncio.sleep(0.01)


async def test_a_missing_key_is_named_with_its_host(
    server: FakeServer, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(KEY_VARIABLE)
    async with local_dispatcher(make_worker_config(db, config(server.url)), []) as dispatcher:
        with pytest.raises(AuditorError, match=KEY_VARIABLE) as caught:
            await dispatcher.wait_for_first_worker()
    assert caught.value.message.startswith(f"on the host {platform.node()}: model 'model-a'")
    assert server.requests == []


async def test_a_host_whose_owner_does_not_trust_a_server_sends_it_no_key(
    server: FakeServer, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AUDITOR_TRUST")
    async with local_dispatcher(make_worker_config(db, config(server.url)), []) as dispatcher:
        with pytest.raises(AuditorError, match="which you have not allowed"):
            await dispatcher.wait_for_first_worker()


async def test_another_version_of_the_program_is_refused(server: FakeServer, db: Database) -> None:
    worker_config = make_worker_config(db, config(server.url), version="0.0.1")
    async with local_dispatcher(worker_config, []) as dispatcher:
        with pytest.raises(AuditorError, match=r"not 0\.0\.1"):
            await dispatcher.wait_for_first_worker()


async def test_a_reply_is_recorded_and_returned_without_its_body(server: FakeServer, db: Database) -> None:
    audit = config(server.url)
    sent_call = call(audit)
    async with local_dispatcher(make_worker_config(db, audit), []) as dispatcher:
        reply = await dispatcher.send(sent_call, 1, 60.0)
    assert reply.answer.outcome is Outcome.OK
    assert [attempt.body for attempt in reply.answer.attempts] == [None]
    assert ledger.load_answers(db, [sent_call.key]) == {sent_call.key: replace(reply.answer, attempts=())}
    assert ledger.count_attempts(db) == 1


async def test_a_worker_redacts_the_keys_of_other_workers_models(
    server: FakeServer, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    audit = config(server.url)
    monkeypatch.setenv("ANOTHER_KEY", "key-of-another-model")
    server.script = lambda _: completion("it is key-of-another-model")
    async with local_dispatcher(
        make_worker_config(db, audit, secret_variables=("ANOTHER_KEY", "NOT_SET_HERE")), []
    ) as dispatcher:
        reply = await dispatcher.send(call(audit), 1, 60.0)
    assert reply.answer.text == "it is [key removed]"
    assert ledger.load_answers(db, [reply.answer.key])[reply.answer.key].text == "it is [key removed]"


async def test_when_a_worker_dies_another_takes_its_calls_and_lost_calls_are_counted(
    server: FakeServer, db: Database
) -> None:
    audit, workers = config(server.url), list[LocalWorker]()
    server.script = lambda request: replace(answer(request), delay_s=60.0 if request.number == 0 else 0.0)
    worker_config, notes = make_worker_config(db, audit), list[str]()
    async with local_dispatcher(worker_config, workers, note=notes.append) as dispatcher:
        send_task = asyncio.create_task(dispatcher.send(call(audit), 1, 60.0))
        await wait_until(lambda: len(server.requests) == 1)
        workers[0].terminate()
        assert (await send_task).answer.outcome is Outcome.OK
    assert (len(workers), len(server.requests)) == (2, 2)
    [note] = notes
    assert note.startswith(f"The worker on {platform.node()} died; its 1 open call goes to another worker. Ray's logs")
    from auditor.storage.costs import count_unreturned_calls

    assert [unreturned.calls for unreturned in count_unreturned_calls(db, worker_config.audit_id)] == [1]


async def test_a_resent_call_returns_the_answer_recorded_by_an_abandoned_worker(
    server: FakeServer, db: Database
) -> None:
    audit = config(server.url)
    recorded_call = call(audit)
    worker = WorkerActor()
    assert await worker.start(make_worker_config(db, audit)) == platform.node()
    await ledger.record_answer(db, recorded_call, Answer(recorded_call.key, Outcome.OK, text="as recorded"))
    await worker.accept_requests([WorkerRequest(1, recorded_call, 1, 60.0, is_resend=True)])
    [(number, reply)] = await worker.collect_replies()
    await worker.stop()
    assert not isinstance(reply, AuditorError)
    assert (number, reply.answer.text, server.requests) == (1, "as recorded", [])


async def test_workers_that_die_one_after_another_end_the_run(
    server: FakeServer, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers: list[LocalWorker] = []

    async def die(self: WorkerActor, worker_config: WorkerConfig) -> str:
        workers[-1].terminate()
        return "here"

    monkeypatch.setattr(WorkerActor, "start", die)
    notes: list[str] = []
    async with local_dispatcher(make_worker_config(db, config(server.url)), workers, note=notes.append) as dispatcher:
        with pytest.raises(ModelSetupError, match="died one after another"):
            await dispatcher.wait_for_first_worker()
    assert len(workers) == MAX_CONSECUTIVE_DEATHS
    assert [note.split(".")[0] for note in notes] == ["A worker died before it began"] * MAX_CONSECUTIVE_DEATHS


async def test_calls_are_spread_over_the_least_busy_workers(server: FakeServer, db: Database) -> None:
    audit, workers = config(server.url), list[LocalWorker]()
    server.script = lambda request: replace(answer(request), delay_s=0.2)
    async with local_dispatcher(make_worker_config(db, audit), workers, n_slots=2) as dispatcher:
        await dispatcher.wait_for_first_worker()
        await wait_until(lambda: len(workers) == 2)
        await asyncio.gather(*(dispatcher.send(call(audit, sample), 1, 60.0) for sample in range(10)))
    assert len(server.requests) == 10


async def test_an_exception_in_a_worker_is_reported_and_ends_the_run(
    server: FakeServer, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    audit = config(server.url)

    async def fails(*_: object) -> None:
        raise ZeroDivisionError

    async with local_dispatcher(make_worker_config(db, audit), []) as dispatcher:
        await dispatcher.wait_for_first_worker()
        monkeypatch.setattr(ledger, "record_dispatch", fails)
        with pytest.raises(AuditorError, match="failed with ZeroDivisionError at fails"):
            await dispatcher.send(call(audit), 1, 60.0)
