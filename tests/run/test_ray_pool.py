"""The Ray worker pool with workers in this process, and worker deaths that are too rare to test on a cluster.

tests/e2e/test_ray.py uses a real cluster.
"""

from __future__ import annotations

import asyncio
import platform
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from importlib import metadata
from typing import Any

import pytest

from auditor.config import AuditConfig, Limits, Price
from auditor.domain import Answer, Call, Capability, LogprobMeasure, Message, Outcome, Purpose
from auditor.errors import AuditorError, ModelSetupError
from auditor.models.dispatch import LocalDispatcher
from auditor.models.gateway import Gateway
from auditor.models.provider_request import ProviderReply
from auditor.run.ray_cluster import WorkerDied
from auditor.run.ray_pool import MAX_CONSECUTIVE_DEATHS, RayDispatcher, WorkerSlot
from auditor.run.ray_worker import WorkerActor, WorkerConfig, WorkerRequest
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


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, KEY)


def make_worker_config(audit: AuditConfig, **changes: Any) -> WorkerConfig:
    return replace(WorkerConfig(audit, ("model-a",), (), metadata.version("auditor")), **changes)


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


async def test_a_missing_key_is_named_with_its_host(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_VARIABLE)
    async with local_dispatcher(make_worker_config(config(server.url)), []) as dispatcher:
        with pytest.raises(AuditorError, match=KEY_VARIABLE) as caught:
            await dispatcher.wait_for_first_worker()
    assert caught.value.message.startswith(f"on the host {platform.node()}: model 'model-a'")
    assert server.requests == []


async def test_a_host_whose_owner_does_not_trust_a_server_sends_it_no_key(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AUDITOR_TRUST")
    async with local_dispatcher(make_worker_config(config(server.url)), []) as dispatcher:
        with pytest.raises(AuditorError, match="which you have not allowed"):
            await dispatcher.wait_for_first_worker()


async def test_another_version_of_the_program_is_refused(server: FakeServer) -> None:
    worker_config = make_worker_config(config(server.url), version="0.0.1")
    async with local_dispatcher(worker_config, []) as dispatcher:
        with pytest.raises(AuditorError, match=r"not 0\.0\.1"):
            await dispatcher.wait_for_first_worker()


async def test_a_reply_travels_with_its_body_and_its_capability(server: FakeServer) -> None:
    audit, capability = config(server.url), Capability(dropped_params=("seed",))
    async with local_dispatcher(make_worker_config(audit), []) as dispatcher:
        reply = await dispatcher.send(call(audit), 1, 60.0, capability)
    assert reply.answer.outcome is Outcome.OK
    assert reply.answer.capability == capability.id
    [attempt] = reply.answer.attempts
    assert attempt.body is not None
    assert b"choices" in attempt.body.data


async def test_a_worker_redacts_the_keys_of_other_workers_models(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    audit = config(server.url)
    monkeypatch.setenv("ANOTHER_KEY", "key-of-another-model")
    server.script = lambda _: completion("it is key-of-another-model")
    async with local_dispatcher(
        make_worker_config(audit, secret_variables=("ANOTHER_KEY", "NOT_SET_HERE")), []
    ) as dispatcher:
        reply = await dispatcher.send(call(audit), 1, 60.0)
    assert reply.answer.text == "it is [key removed]"


async def test_a_request_whose_worker_died_is_retried_by_another_and_counts_as_perhaps_paid(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("auditor.models.limiter.INITIAL_BACKOFF_S", 0.0)
    audit, workers, notes = config(server.url), list[LocalWorker](), list[str]()
    models = [audit.models[0].model_copy(update={"price": Price(input=1.0, output=1.0)})]
    server.script = lambda request: replace(answer(request), delay_s=60.0 if request.number == 0 else 0.0)
    async with local_dispatcher(make_worker_config(audit), workers, note=notes.append) as dispatcher:
        gateway = Gateway(models, Limits(max_attempts=3), dispatcher=dispatcher)
        call_task = asyncio.create_task(gateway.complete(call(audit)))
        await wait_until(lambda: len(server.requests) == 1)
        workers[0].terminate()
        retried_answer = await call_task
    assert (len(workers), len(server.requests)) == (2, 2)
    assert retried_answer.outcome is Outcome.OK
    lost_attempt, _ = retried_answer.attempts
    assert (lost_attempt.outcome, lost_attempt.error) == (Outcome.SERVER_ERROR, "the process that sent it died")
    assert lost_attempt.estimated
    assert lost_attempt.cost_usd
    [note] = notes
    assert note.startswith(f"The worker on {platform.node()} died; its 1 open call is sent again by another worker.")


async def test_a_request_that_its_worker_never_received_is_sent_by_another(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    audit, workers, passed_samples = config(server.url), list[LocalWorker](), list[int]()
    accept_requests = WorkerActor.accept_requests

    async def hang_at_first(self: WorkerActor, requests: Sequence[WorkerRequest]) -> None:
        passed_samples.extend(request.call.sample for request in requests)
        if len(workers) == 1:
            await asyncio.sleep(60)
        await accept_requests(self, requests)

    monkeypatch.setattr(WorkerActor, "accept_requests", hang_at_first)
    async with local_dispatcher(make_worker_config(audit), workers) as dispatcher:
        passed_task = asyncio.create_task(dispatcher.send(call(audit, 0), 1, 60.0))
        await wait_until(lambda: passed_samples == [0])
        queued_task = asyncio.create_task(dispatcher.send(call(audit, 1), 1, 60.0))  # behind the message in flight
        await asyncio.sleep(0)
        workers[0].terminate()
        passed_reply, queued_reply = await passed_task, await queued_task
    assert passed_reply.failure is not None
    assert (queued_reply.failure, queued_reply.answer.outcome) == (None, Outcome.OK)
    assert (passed_samples, len(server.requests)) == ([0, 1], 1)


async def test_log_probabilities_that_a_dead_worker_was_to_compute_are_computed_by_another(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    audit, workers = config(server.url), list[LocalWorker]()

    async def compute(
        _: LocalDispatcher, computed_call: Call, attempt_number: int, timeout_s: float | None, capability: Capability
    ) -> ProviderReply:
        if len(workers) == 1:
            workers[0].terminate()
            await asyncio.sleep(60)
        return ProviderReply(Answer(computed_call.key, Outcome.OK, text="[]"), None)

    monkeypatch.setattr(LocalDispatcher, "send", compute)
    async with local_dispatcher(make_worker_config(audit), workers) as dispatcher:
        reply = await dispatcher.send(replace(call(audit), measure=LogprobMeasure.CONTINUATION), 1, None)
    assert (reply.failure, len(workers)) == (None, 2)


async def test_workers_that_die_one_after_another_end_the_run(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers: list[LocalWorker] = []

    async def die(self: WorkerActor, worker_config: WorkerConfig) -> str:
        workers[-1].terminate()
        return "here"

    monkeypatch.setattr(WorkerActor, "start", die)
    notes: list[str] = []
    async with local_dispatcher(make_worker_config(config(server.url)), workers, note=notes.append) as dispatcher:
        with pytest.raises(ModelSetupError, match="died one after another"):
            await dispatcher.wait_for_first_worker()
    assert len(workers) == MAX_CONSECUTIVE_DEATHS
    assert [note.split(".")[0] for note in notes] == ["A worker died before it started"] * MAX_CONSECUTIVE_DEATHS


async def test_calls_are_spread_over_the_least_busy_workers(server: FakeServer) -> None:
    audit, workers = config(server.url), list[LocalWorker]()
    server.script = lambda request: replace(answer(request), delay_s=0.2)
    async with local_dispatcher(make_worker_config(audit), workers, n_slots=2) as dispatcher:
        await dispatcher.wait_for_first_worker()
        await wait_until(lambda: len(workers) == 2)
        await asyncio.gather(*(dispatcher.send(call(audit, sample), 1, 60.0) for sample in range(10)))
    assert len(server.requests) == 10


async def test_an_exception_in_a_worker_is_reported_and_ends_the_run(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    audit = config(server.url)

    async def fails(*_: object) -> ProviderReply:
        raise ZeroDivisionError

    async with local_dispatcher(make_worker_config(audit), []) as dispatcher:
        await dispatcher.wait_for_first_worker()
        monkeypatch.setattr(LocalDispatcher, "send", fails)
        with pytest.raises(AuditorError, match="failed with ZeroDivisionError at fails"):
            await dispatcher.send(call(audit), 1, 60.0)
