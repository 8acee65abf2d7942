"""The Ray worker pool with workers in this process, and worker deaths that are too rare to test on a cluster.

tests/e2e/test_ray.py uses a real cluster.
"""

from __future__ import annotations

import asyncio
import math
import platform
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

import pytest

from auditor.config import AuditConfig, LimitsSection, Price
from auditor.domain import (
    Answer,
    AnswerForm,
    Attempt,
    Call,
    Capability,
    Cell,
    LogprobMeasure,
    Message,
    Outcome,
    Purpose,
    ResponseBody,
)
from auditor.errors import AuditorError, ModelSetupError
from auditor.models.dispatch import REPLIES_ADAPTER, REQUESTS_ADAPTER, LocalDispatcher, WorkerReply, WorkerRequest
from auditor.models.gateway import Gateway
from auditor.models.provider_request import ProviderReply
from auditor.run.ray_cluster import WorkerDied
from auditor.run.ray_pool import MAX_CONSECUTIVE_DEATHS, RayDispatcher, WorkerSlot
from auditor.run.ray_worker import MAX_WAITING_REPLIES, WorkerActor, WorkerConfig
from tests.models.test_gateway_wire_formats import RESPONSE_CASES
from tests.support.audit_configs import KEY, KEY_VARIABLE, config
from tests.support.fake_server import FakeServer, Reply, answer, completion, error
from tests.support.known import known
from tests.support.patience import PATIENCE_S

HOSTILE_TEXT = "a\x00b\ud800c\u202e[/INST]\x1b[31m"
EXTRA_SCRIPTS = {
    "an error in nasty words": lambda request: error(500, HOSTILE_TEXT),
    "a key echoed": lambda request: error(401, f"no such key {KEY}"),
    "too many requests": lambda request: error(429, "slow down", headers={"retry-after": "7"}),
    "bytes that are no text": lambda request: Reply(raw=bytes(range(256))),
}


class LocalWorker:
    """A worker in this process; after `kill` its calls raise WorkerDied, and later calls reach another.

    Attributes:
        actors: the actors that were started, one after another; the last one is alive.
    """

    def __init__(self, worker_config: Any) -> None:
        self.worker_config = worker_config
        self.actors = list[WorkerActor]()
        self._start()

    def _start(self) -> None:
        self.actors.append(WorkerActor(self.worker_config))
        self.is_dead = asyncio.Event()

    async def call_method(self, method: str, *args: object) -> Any:
        is_dead = self.is_dead
        method_task = asyncio.ensure_future(getattr(self.actors[-1], method)(*args))
        death_task = asyncio.ensure_future(is_dead.wait())
        await asyncio.wait([method_task, death_task], return_when=asyncio.FIRST_COMPLETED)
        death_task.cancel()
        if is_dead.is_set():
            raise WorkerDied
        return method_task.result()

    def kill(self) -> None:
        """End the worker; it may go on in the background. Another one is started in its place."""
        self.is_dead.set()
        self._start()

    restart = kill

    def terminate(self) -> None:
        self.is_dead.set()


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
        workers.append(LocalWorker(worker_config))
        return workers[-1]

    def create_slots(_: str | None, changed: Callable[[], None]) -> list[WorkerSlot]:
        return [WorkerSlot(start_worker, changed) for _ in range(n_slots)]

    dispatcher = RayDispatcher(lambda _: None, create_slots, note)
    try:
        yield dispatcher
    finally:
        await dispatcher.close()
        for worker in workers:
            for actor in worker.actors:
                await actor.stop()


def worker_request(audit: AuditConfig, sample: int) -> WorkerRequest:
    return WorkerRequest(sample, call(audit, sample), 1, 60.0, Capability())


def without_timing(reply: ProviderReply) -> ProviderReply:
    [attempt] = reply.answer.attempts
    untimed_attempt = replace(attempt, started_at=datetime.fromtimestamp(0, UTC), latency_s=0.0)
    return replace(reply, answer=replace(reply.answer, attempts=(untimed_attempt,)))


async def wait_until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - what is waited for happens in another thread
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("unset", "changes", "message"),
    [
        (KEY_VARIABLE, {}, rf"^on the host {re.escape(platform.node())}: model 'model-a'.*{KEY_VARIABLE}"),
        ("AUDITOR_TRUST", {}, "which you have not allowed"),
        ("", {"version": "0.0.1"}, r"not 0\.0\.1"),
    ],
    ids=["a missing key, named with its host", "a server that its owner does not trust", "another version"],
)
async def test_a_host_that_cannot_work_sends_nothing_and_says_why(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch, unset: str, changes: dict[str, str], message: str
) -> None:
    monkeypatch.delenv(unset, raising=False)
    async with local_dispatcher(make_worker_config(config(server.url), **changes), []) as dispatcher:
        with pytest.raises(AuditorError, match=message):
            await dispatcher.wait_for_first_worker()
    assert server.requests == []


async def test_a_reply_travels_with_its_body_and_its_capability(server: FakeServer) -> None:
    audit, capability = config(server.url), Capability(dropped_params=("seed",))
    async with local_dispatcher(make_worker_config(audit), []) as dispatcher:
        reply = await dispatcher.send(call(audit), 1, 60.0, capability)
    assert reply.answer.outcome is Outcome.OK
    assert reply.answer.capability == capability.id
    [attempt] = reply.answer.attempts
    assert b"choices" in known(attempt.body).data


async def test_a_worker_redacts_the_keys_of_other_models(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    audit = config(server.url)
    monkeypatch.setenv("ANOTHER_KEY", "key-of-another-model")
    server.script = lambda _: completion("it is key-of-another-model")
    worker_config = make_worker_config(audit, secret_variables=("ANOTHER_KEY", "NOT_SET_HERE"))
    async with local_dispatcher(worker_config, []) as dispatcher:
        reply = await dispatcher.send(call(audit), 1, 60.0)
    assert reply.answer.text == "it is [key removed]"


async def test_a_request_whose_worker_died_is_retried_by_another_and_counts_as_perhaps_paid(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("auditor.models.retries.INITIAL_BACKOFF_S", 0.0)
    audit, workers, notes = config(server.url), list[LocalWorker](), list[str]()
    models = [audit.models[0].model_copy(update={"price": Price(input=1.0, output=1.0)})]
    server.script = lambda request: replace(answer(request), delay_s=60.0 if request.number == 0 else 0.0)
    async with local_dispatcher(make_worker_config(audit), workers, note=notes.append) as dispatcher:
        gateway = Gateway(models, LimitsSection(max_attempts=3), dispatcher=dispatcher)
        call_task = asyncio.create_task(gateway.complete(call(audit)))
        await wait_until(lambda: len(server.requests) == 1)
        workers[0].kill()
        retried_answer = await call_task
    assert ([len(worker.actors) for worker in workers], len(server.requests)) == ([2], 2)
    assert retried_answer.outcome is Outcome.OK
    lost_attempt, _ = retried_answer.attempts
    assert (lost_attempt.outcome, lost_attempt.error) == (Outcome.SERVER_ERROR, "the process that sent it died")
    assert lost_attempt.estimated
    assert lost_attempt.cost_usd
    [note] = notes
    assert note.startswith(f"The worker on {platform.node()} died; its 1 open call is sent again.")


async def test_a_request_never_received_is_sent_by_another(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    audit, workers, passed_samples = config(server.url), list[LocalWorker](), list[int]()
    accept_requests = WorkerActor.accept_requests

    async def hang_at_first(self: WorkerActor, requests: bytes) -> None:
        passed_samples.extend(request.call.sample for request in REQUESTS_ADAPTER.validate_json(requests))
        if len(workers[0].actors) == 1:
            await asyncio.sleep(60)
        await accept_requests(self, requests)

    monkeypatch.setattr(WorkerActor, "accept_requests", hang_at_first)
    async with local_dispatcher(make_worker_config(audit), workers) as dispatcher:
        passed_task = asyncio.create_task(dispatcher.send(call(audit, 0), 1, 60.0))
        await wait_until(lambda: passed_samples == [0])
        queued_task = asyncio.create_task(dispatcher.send(call(audit, 1), 1, 60.0))  # behind the message in flight
        await asyncio.sleep(0)
        workers[0].kill()
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
        if len(workers[0].actors) == 1:
            workers[0].kill()
            await asyncio.sleep(60)
        return ProviderReply(Answer(computed_call.key, Outcome.OK, text="[]"), None)

    monkeypatch.setattr(LocalDispatcher, "send", compute)
    async with local_dispatcher(make_worker_config(audit), workers) as dispatcher:
        reply = await dispatcher.send(replace(call(audit), measure=LogprobMeasure.CONTINUATION), 1, None)
    assert (reply.failure, len(workers[0].actors)) == (None, 2)


async def test_workers_that_die_in_a_row_end_the_run(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    workers: list[LocalWorker] = []

    async def die(self: WorkerActor) -> None:
        workers[0].kill()

    monkeypatch.setattr(WorkerActor, "open", die)
    notes: list[str] = []
    async with local_dispatcher(make_worker_config(config(server.url)), workers, note=notes.append) as dispatcher:
        with pytest.raises(ModelSetupError, match="died one after another"):
            await dispatcher.wait_for_first_worker()
    assert len(workers[0].actors) == MAX_CONSECUTIVE_DEATHS + 1
    expected = f"The worker on {platform.node()} died before it sent anything"
    assert [note.split(".")[0] for note in notes] == [expected] * MAX_CONSECUTIVE_DEATHS


async def test_20_replies_are_collected_at_once(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("auditor.run.ray_worker.MAX_COLLECT_DELAY_S", 60.0)
    audit, n_requests = config(server.url), MAX_WAITING_REPLIES + 1
    actor = WorkerActor(make_worker_config(audit))
    assert await actor.open() is None
    server.script = lambda request: replace(answer(request), delay_s=600.0 if request.number == 0 else 0.0)
    requests = [worker_request(audit, sample) for sample in range(n_requests)]
    await actor.accept_requests(REQUESTS_ADAPTER.dump_json(requests))
    replies, errors = await asyncio.wait_for(actor.collect_replies(), PATIENCE_S)
    assert (len(REPLIES_ADAPTER.validate_json(replies)), errors) == (MAX_WAITING_REPLIES, [])
    await actor.stop()


async def test_a_reply_waits_at_most_50_ms_for_others(server: FakeServer) -> None:
    audit = config(server.url)
    actor = WorkerActor(make_worker_config(audit))
    assert await actor.open() is None
    server.script = lambda request: replace(answer(request), delay_s=60.0 if request.number else 0.0)
    await actor.accept_requests(REQUESTS_ADAPTER.dump_json([worker_request(audit, sample) for sample in (0, 1)]))
    replies, _ = await asyncio.wait_for(actor.collect_replies(), PATIENCE_S)
    assert len(REPLIES_ADAPTER.validate_json(replies)) == 1
    await actor.stop()


async def test_a_worker_that_hangs_is_restarted(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("auditor.run.ray_pool.WORKER_GRACE_PERIOD_S", 0.1)
    audit, workers = config(server.url), list[LocalWorker]()
    send = LocalDispatcher.send

    async def hang_at_first(self: LocalDispatcher, *args: Any) -> ProviderReply:
        if len(workers[0].actors) == 1:
            await asyncio.sleep(60)
        return await send(self, *args)

    monkeypatch.setattr(LocalDispatcher, "send", hang_at_first)
    async with local_dispatcher(make_worker_config(audit), workers) as dispatcher:
        lost_reply = await dispatcher.send(call(audit), 1, 0.1)
        monkeypatch.setattr("auditor.run.ray_pool.WORKER_GRACE_PERIOD_S", 60.0)
        reply = await dispatcher.send(call(audit), 2, 60.0)
    assert known(lost_reply.failure).is_retryable
    assert (reply.failure, len(workers[0].actors)) == (None, 2)


async def test_without_any_worker_the_user_is_notified(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("auditor.run.ray_pool.NO_WORKER_NOTICE_S", 0.05)
    notes, audit = list[str](), config(server.url)
    name_host = WorkerActor.name_host

    async def start_slowly(self: WorkerActor) -> str:
        await wait_until(lambda: bool(notes))
        await asyncio.sleep(0.1)  # the other calls have waited as long
        return await name_host(self)

    monkeypatch.setattr(WorkerActor, "name_host", start_slowly)
    async with local_dispatcher(make_worker_config(audit), [], note=notes.append) as dispatcher:
        replies = await asyncio.gather(*(dispatcher.send(call(audit, sample), 1, 60.0) for sample in range(3)))
    assert [reply.failure for reply in replies] == [None] * 3
    assert [note.split(".")[0] for note in notes] == ["No worker has been available for 0 s"]


def test_requests_and_replies_survive_serialization() -> None:
    sent_call = Call(
        "m", "openai/x", (Message("system", "é\x00"), Message("user", "\U0001f600")), Purpose.LOGPROB, 3,
        {"temperature": 0.0, "stop": ["a", None], "deep": {"seed": 2**53}}, "MoralJudgement", 9, "http://x",
        LogprobMeasure.ECHO, ("a", " b"), Cell("DE", "divorce"),
    )  # fmt: skip
    request = WorkerRequest(7, sent_call, 2, 0.5, Capability(AnswerForm.TOOL, ("minLength",), ("seed",)))
    [decoded_request] = REQUESTS_ADAPTER.validate_json(REQUESTS_ADAPTER.dump_json([request]))
    assert decoded_request == request
    assert decoded_request.call.key == sent_call.key
    body = ResponseBody("0" * 64, bytes(range(256)), 256)
    attempt = Attempt(1, datetime.now(UTC), math.pi, Outcome.OK, 200, None, None, body)
    sent_answer = Answer(sent_call.key, Outcome.OK, text=" \x00 ", cost_usd=0.1 + 0.2, attempts=(attempt,))
    replies = [WorkerReply(1, ProviderReply(sent_answer, None))]
    assert REPLIES_ADAPTER.validate_json(REPLIES_ADAPTER.dump_json(replies)) == replies


async def test_a_workers_replies_equal_the_local_replies(server: FakeServer) -> None:
    scripts = {name: case.reply for name, case in RESPONSE_CASES.items()} | EXTRA_SCRIPTS
    audit = config(server.url)
    local = LocalDispatcher(audit.models)
    async with local_dispatcher(make_worker_config(audit), []) as dispatcher:
        for number, (name, server.script) in enumerate(scripts.items()):
            sent_call = replace(call(audit, number), schema="MoralJudgement", max_words=20)
            local_reply, reply = await local.send(sent_call, 2, 60.0), await dispatcher.send(sent_call, 2, 60.0)
            assert without_timing(reply) == without_timing(local_reply), name
            assert KEY not in repr(reply), name
    assert len(server.requests) == 2 * len(scripts)


async def test_calls_are_spread_over_the_least_busy_workers(server: FakeServer) -> None:
    audit, workers = config(server.url), list[LocalWorker]()
    server.script = lambda request: replace(answer(request), delay_s=0.2)
    async with local_dispatcher(make_worker_config(audit), workers, n_slots=2) as dispatcher:
        await dispatcher.wait_for_first_worker()
        await wait_until(lambda: len(workers) == 2)
        await asyncio.gather(*(dispatcher.send(call(audit, sample), 1, 60.0) for sample in range(10)))
    assert len(server.requests) == 10


async def test_an_exception_in_a_worker_ends_the_run(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    audit = config(server.url)

    async def fails(*_: object) -> ProviderReply:
        raise ZeroDivisionError

    async with local_dispatcher(make_worker_config(audit), []) as dispatcher:
        await dispatcher.wait_for_first_worker()
        monkeypatch.setattr(LocalDispatcher, "send", fails)
        with pytest.raises(AuditorError, match="failed with ZeroDivisionError at fails"):
            await dispatcher.send(call(audit), 1, 60.0)
