"""Requests sent from several processes: replies equal those of one process, and none is lost."""

from __future__ import annotations

import asyncio
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from auditor.config import Limits, ModelSection
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
from auditor.errors import AuditorError
from auditor.models import multiprocess_dispatch
from auditor.models.dispatch import LocalDispatcher
from auditor.models.gateway import Gateway
from auditor.models.helper_process import (
    CONFIG_ADAPTER,
    REPLY_ADAPTER,
    REQUEST_ADAPTER,
    HelperConfig,
    HelperReply,
    HelperRequest,
    frame_message,
)
from auditor.models.multiprocess_dispatch import MultiprocessDispatcher, max_helpers
from auditor.models.provider_request import ProviderReply
from auditor.redaction import register_secrets
from auditor.run import run_audit
from tests.e2e.test_run import exported, stored
from tests.models.test_gateway_wire_formats import RESPONSE_CASES
from tests.support.audit_configs import KEY, KEY_VARIABLE, config
from tests.support.fake_server import FakeServer, answer, completion, error
from tests.support.fake_server import Reply as Sent

HOSTILE_TEXT = "a\x00b\ud800c\u202e[/INST]\x1b[31m"
EXTRA_SCRIPTS = {
    "an error in nasty words": lambda request: error(500, HOSTILE_TEXT),
    "a key echoed": lambda request: error(401, f"no such key {KEY}"),
    "too many requests": lambda request: error(429, "slow down", headers={"retry-after": "7"}),
    "bytes that are no text": lambda request: Sent(raw=bytes(range(256))),
}


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, KEY)


def section(server: FakeServer) -> ModelSection:
    return ModelSection(name="m", model="openai/x", api_base=server.url, api_key=f"os.environ/{KEY_VARIABLE}")


def make_call(sample: int = 0) -> Call:
    return Call("m", "openai/x", (Message("user", "hi"),), Purpose.DIRECT, sample=sample, params={"seed": sample})


@asynccontextmanager
async def ready_dispatcher(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch, helpers: int = 1
) -> AsyncIterator[MultiprocessDispatcher]:
    """A dispatcher whose helper processes are ready."""
    start_helpers_immediately(monkeypatch)
    dispatcher = MultiprocessDispatcher([section(server)], helpers)
    script, server.script = server.script, answer
    try:
        await dispatcher.send(make_call(), 1, 60.0)
        while not all(helper.is_ready for helper in dispatcher._helpers):
            assert not any(task.done() for task in dispatcher._helper_tasks)
            await asyncio.sleep(0.01)
        server.script = script
        server.requests.clear()
        yield dispatcher
    finally:
        await dispatcher.close()


def start_helpers_immediately(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start helpers at the first request."""
    monkeypatch.setattr(multiprocess_dispatch, "LOAD_CHECK_INTERVAL_S", 0.0)
    monkeypatch.setattr(multiprocess_dispatch, "BUSY_CPU_SHARE", 0.0)


def without_timing(reply: ProviderReply) -> ProviderReply:
    [attempt] = reply.answer.attempts
    untimed_attempt = replace(
        attempt,
        started_at=attempt.started_at.replace(year=2000, month=1, day=1, hour=0, minute=0, second=0, microsecond=0),
        latency_s=0.0,
    )
    return replace(reply, answer=replace(reply.answer, attempts=(untimed_attempt,)))


async def test_a_helpers_reply_equals_the_local_reply(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    scripts = {name: case.reply for name, case in RESPONSE_CASES.items()} | EXTRA_SCRIPTS
    local_dispatcher = LocalDispatcher([section(server)])
    async with ready_dispatcher(server, monkeypatch) as dispatcher:
        for number, (name, server.script) in enumerate(scripts.items()):
            call = replace(make_call(number), schema="MoralJudgement", max_words=20)
            local_reply, helper_reply = await local_dispatcher.send(call, 2, 60.0), await dispatcher.send(call, 2, 60.0)
            assert without_timing(helper_reply) == without_timing(local_reply), name
            assert KEY not in repr(helper_reply), name
    assert len(server.requests) == 2 * len(scripts)


async def test_a_helper_removes_the_keys_of_other_models_too(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    register_secrets("key-of-another-model")
    async with ready_dispatcher(server, monkeypatch) as dispatcher:
        server.script = lambda request: completion("it is key-of-another-model")
        reply = await dispatcher.send(make_call(1), 1, 60.0)
    assert reply.answer.text == "it is [key removed]"


async def test_a_helper_obeys_the_time_limit(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    async with ready_dispatcher(server, monkeypatch) as dispatcher:
        server.script = lambda request: replace(answer(request), delay_s=600)
        reply = await dispatcher.send(make_call(1), 1, 0.2)
    assert reply.answer.outcome is Outcome.TIMEOUT


def test_requests_and_replies_survive_serialization() -> None:
    call = Call(
        "m", "openai/x", (Message("system", "é\x00"), Message("user", "\U0001f600")), Purpose.LOGPROB, 3,
        {"temperature": 0.0, "stop": ["a", None], "deep": {"seed": 2**53}}, "MoralJudgement", 9, "http://x",
        LogprobMeasure.ECHO, ("a", " b"), Cell("DE", "divorce"),
    )  # fmt: skip
    helper_request = HelperRequest(7, call, 2, 0.5, Capability(AnswerForm.TOOL, ("minLength",), ("seed",)))
    [decoded_request] = [REQUEST_ADAPTER.validate_json(REQUEST_ADAPTER.dump_json(helper_request))]
    assert decoded_request == helper_request
    assert decoded_request.call.key == call.key
    body = ResponseBody("0" * 64, bytes(range(256)), 256)
    attempt = Attempt(1, datetime.now(UTC), math.pi, Outcome.OK, 200, None, None, body)
    sent_answer = Answer(call.key, Outcome.OK, text=" \x00 ", cost_usd=0.1 + 0.2, attempts=(attempt,))
    for reply in (ProviderReply(sent_answer, None), None):
        assert REPLY_ADAPTER.validate_json(REPLY_ADAPTER.dump_json(HelperReply(1, reply))) == HelperReply(1, reply)


async def test_the_calls_of_a_helper_that_died_are_retried(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    async with ready_dispatcher(server, monkeypatch) as dispatcher:
        monkeypatch.setattr("auditor.models.limiter.INITIAL_BACKOFF_S", 0.0)
        gateway = Gateway([section(server)], Limits(max_attempts=3), dispatcher=dispatcher)
        assert (await gateway.complete(make_call(1))).outcome is Outcome.OK
        server.script = lambda request: replace(answer(request), delay_s=600)
        requests_before = len(server.requests)
        call_tasks = [asyncio.create_task(gateway.complete(make_call(i))) for i in (2, 3)]
        while len(server.requests) < requests_before + 2:  # noqa: ASYNC110 - the server is in another thread
            await asyncio.sleep(0.01)
        server.script = answer
        os.kill(find_helper(os.getpid()), signal.SIGKILL)
        answers = await asyncio.gather(*call_tasks)
    for retried_answer in answers:
        assert retried_answer.outcome is Outcome.OK
        assert [a.outcome for a in retried_answer.attempts] == [Outcome.SERVER_ERROR, Outcome.OK]
        assert retried_answer.attempts[0].error == "the process that sent it died"


def find_helper(parent: int) -> int:
    """Process id of the helper that `parent` started."""
    for folder in Path("/proc").iterdir():
        with suppress(OSError):  # others end meanwhile
            command_line = (folder / "cmdline").read_bytes().split(b"\0")
            if b"auditor.models.helper_process" in command_line and f" {parent} " in (folder / "stat").read_text():
                return int(folder.name)
    raise AssertionError("no process helps")


async def test_a_helper_that_hangs_is_given_up(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multiprocess_dispatch, "HELPER_GRACE_PERIOD_S", 0.5)
    async with ready_dispatcher(server, monkeypatch) as dispatcher:
        os.kill(find_helper(os.getpid()), signal.SIGSTOP)
        reply = await dispatcher.send(make_call(1), 1, 0.1)
        assert reply.failure is not None
        assert reply.failure.is_retryable
        await asyncio.gather(*dispatcher._helper_tasks)
        assert (await dispatcher.send(make_call(1), 2, 60.0)).answer.outcome is Outcome.OK


async def test_an_exception_in_a_helper_ends_the_run_and_is_not_retried(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ready_dispatcher(server, monkeypatch) as dispatcher:
        call = replace(make_call(1), name="other")  # a model that the helper does not know
        dispatcher._remote_models["other"] = section(server)
        with pytest.raises(AuditorError, match="failed with KeyError at send, line"):
            await dispatcher.send(call, 1, 60.0)


async def test_large_answers_do_not_delay_closing(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    async with ready_dispatcher(server, monkeypatch) as dispatcher:
        server.script = lambda request: completion("x" * 200_000)
        send_tasks = [asyncio.create_task(dispatcher.send(make_call(i), 1, 60.0)) for i in range(8)]
        while len(server.requests) < 8:  # noqa: ASYNC110 - the server is in another thread
            await asyncio.sleep(0.01)
        began = time.monotonic()
        for task in send_tasks:
            task.cancel()
        await asyncio.gather(*send_tasks, return_exceptions=True)
        await dispatcher.close()
        assert time.monotonic() - began < multiprocess_dispatch.HELPER_GRACE_PERIOD_S


async def test_a_run_continues_without_a_helper_that_cannot_start(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    start_helpers_immediately(monkeypatch)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    dispatcher = MultiprocessDispatcher([section(server)], 1)
    try:
        await dispatcher.send(make_call(), 1, 60.0)
        await asyncio.gather(*dispatcher._helper_tasks)
        assert (await dispatcher.send(make_call(1), 1, 60.0)).answer.outcome is Outcome.OK
    finally:
        await dispatcher.close()
    assert "the remaining processes send its requests" in caplog.text


def test_a_helper_ends_with_its_parent_and_ignores_signals() -> None:
    command = [sys.executable, "-m", "auditor.models.helper_process"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(frame_message(CONFIG_ADAPTER.dump_json(HelperConfig((), ()))))
        process.stdin.flush()
        assert process.stdout.read(4) == bytes(4)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            process.send_signal(number)
        process.stdin.close()
        assert process.wait(120) == 0


@pytest.fixture
def storage_urls(tmp_path: Path) -> tuple[str, str]:
    return f"sqlite:///{tmp_path}/one.db", f"sqlite:///{tmp_path}/several.db"


def test_an_audit_with_several_processes_equals_that_with_one(
    server: FakeServer, storage_urls: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_helpers_immediately(monkeypatch)
    helper_call_keys = []
    original_helper_send = multiprocess_dispatch.HelperProcess.send

    async def record_and_send(
        self: multiprocess_dispatch.HelperProcess,
        call: Call,
        number: int,
        limit_s: float | None,
        capability: Capability,
    ) -> ProviderReply | None:
        helper_call_keys.append(call.key)
        return await original_helper_send(self, call, number, limit_s, capability)

    async def send_when_helpers_are_ready(
        self: MultiprocessDispatcher, call: Call, number: int, limit_s: float | None, capability: Capability
    ) -> ProviderReply:
        while self._helper_tasks and not any(h.is_ready for h in self._helpers):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        return await original_dispatcher_send(self, call, number, limit_s, capability)

    original_dispatcher_send = MultiprocessDispatcher.send
    monkeypatch.setattr(multiprocess_dispatch.HelperProcess, "send", record_and_send)
    monkeypatch.setattr(MultiprocessDispatcher, "send", send_when_helpers_are_ready)
    for storage, processes in zip(storage_urls, (1, 3), strict=True):
        run_audit(config(server.url, run={"processes": processes}), storage=storage)
        assert bool(helper_call_keys) == (processes > 1)
    from_one_process, from_several_processes = (stored(storage) for storage in storage_urls)
    assert from_one_process == from_several_processes
    from_one_process, from_several_processes = (
        exported(storage, tmp_path / str(i)) for i, storage in enumerate(storage_urls)
    )
    assert from_one_process == from_several_processes


async def test_helpers_start_when_the_event_loop_is_saturated(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(multiprocess_dispatch, "LOAD_CHECK_INTERVAL_S", 0.5)
    dispatcher = MultiprocessDispatcher([section(server)], 1)
    try:
        await asyncio.sleep(0.6)
        await dispatcher.send(make_call(1), 1, 60.0)
        assert not dispatcher._helper_tasks
        monkeypatch.setattr(
            multiprocess_dispatch, "BUSY_CPU_SHARE", 0.05
        )  # a busy loop reaches this share on a loaded machine too
        busy_until = time.monotonic() + 0.6
        while time.monotonic() < busy_until:
            pass
        await dispatcher.send(make_call(2), 1, 60.0)
        assert len(dispatcher._helper_tasks) == 1
    finally:
        await dispatcher.close()


@pytest.mark.parametrize(("cores", "expected"), [(None, 0), (1, 0), (2, 1), (4, 3), (16, 4)])
def test_there_are_fewer_helpers_than_cores(cores: int | None, expected: int) -> None:
    assert max_helpers(cores) == expected
