"""Several keys for one model: they share the load, and one that is at its limit, or has no credit, rests alone."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from auditor.domain import Answer, Call, Message, Outcome, Purpose
from auditor.errors import ModelSetupError
from tests.support.fake_server import FakeServer, Reply, Request, completion, error
from tests.support.gateway_calls import ask as ask_gateway, model_section

KEYS = {"FIRST_KEY": "sk-first-0123456789", "SECOND_KEY": "sk-second-0123456789"}
N_CALLS = 24


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, key in KEYS.items():
        monkeypatch.setenv(name, key)


def key_of(request: Request) -> str:
    """Name of the variable whose key a request has."""
    return next(name for name, key in KEYS.items() if request.headers["Authorization"] == f"Bearer {key}")


async def ask(server: FakeServer, notices: list[str] | None = None, **settings: Any) -> list[Answer]:
    """The answers to several calls at once."""
    references = [f"os.environ/{name}" for name in KEYS]
    section = model_section(server, "openai/m", **{"api_key": references, "concurrency": 6} | settings)
    calls = [
        Call("m", section.model, (Message("user", f"Question {number}?"),), Purpose.DIRECT, server=section.api_base)
        for number in range(N_CALLS)
    ]
    notify = (notices if notices is not None else []).append
    return await ask_gateway(section, *calls, at_once=True, notify=notify, max_attempts=2)


def assert_all_answered(answers: list[Answer]) -> None:
    assert [answer.outcome for answer in answers] == [Outcome.OK] * N_CALLS


async def test_the_keys_share_the_load(server: FakeServer) -> None:
    server.script = lambda _: completion("SCORE = 0.5")
    assert_all_answered(await ask(server))
    n_requests = Counter(map(key_of, server.requests))
    assert sum(n_requests.values()) == N_CALLS
    assert min(n_requests[name] for name in KEYS) >= N_CALLS // 4


async def test_the_keys_share_the_load_of_calls_one_at_a_time(server: FakeServer) -> None:
    server.script = lambda _: completion("SCORE = 0.5")
    assert_all_answered(await ask(server, concurrency=1))
    assert set(Counter(map(key_of, server.requests)).values()) == {N_CALLS // 2}


async def test_concurrency_holds_for_all_keys_together(server: FakeServer) -> None:
    server.script = lambda _: Reply(**{**vars(completion("SCORE = 0.5")), "delay_s": 0.1})
    open_at: list[float] = []
    assert_all_answered(await ask(server, concurrency=2))
    times = sorted(request.at for request in server.requests)
    open_at = [sum(start <= at < start + 0.1 for start in times) for at in times]
    assert max(open_at) <= 2


@pytest.mark.parametrize("retry_after", ["3600", None])
async def test_a_key_at_its_limit_rests_alone(server: FakeServer, retry_after: str | None) -> None:
    headers = {"retry-after": retry_after} if retry_after else {}

    def script(request: Request) -> Reply:
        if key_of(request) == "FIRST_KEY":
            return error(429, "Too many requests", headers=headers)
        return completion("SCORE = 0.5")

    server.script = script
    assert_all_answered(await ask(server))
    n_requests = Counter(map(key_of, server.requests))
    assert n_requests["SECOND_KEY"] == N_CALLS
    # The requests that were in flight, and later probes.
    assert n_requests["FIRST_KEY"] <= N_CALLS // 2


async def test_all_keys_at_their_limits_wait(server: FakeServer) -> None:
    n_refused = 0

    def script(_: Request) -> Reply:
        nonlocal n_refused
        n_refused += 1
        return error(429, "Too many requests", headers={"retry-after": "1"}) if n_refused <= 4 else completion("0.5")

    server.script = script
    assert_all_answered(await ask(server, concurrency=2))


@pytest.mark.parametrize(("status", "code"), [(429, "insufficient_quota"), (402, "no_credit")])
async def test_a_key_without_credit_is_left_and_named(server: FakeServer, status: int, code: str) -> None:
    def script(request: Request) -> Reply:
        if key_of(request) == "FIRST_KEY":
            return error(status, "You exceeded your current quota, please check your plan.", code=code)
        return completion("SCORE = 0.5")

    server.script = script
    notices: list[str] = []
    assert_all_answered(await ask(server, notices))
    assert [notice for notice in notices if "goes on without the key in FIRST_KEY" in notice] == notices
    assert len(notices) == 1


async def test_without_credit_for_any_key_the_model_cannot_be_used(server: FakeServer) -> None:
    server.script = lambda _: error(429, "You exceeded your current quota, please check your plan.", code="x")
    with pytest.raises(ModelSetupError):
        await ask(server)


async def test_wrong_keys_stop_the_run_before_anything_else_is_sent(server: FakeServer) -> None:
    server.script = lambda _: error(401, "Incorrect API key provided")
    with pytest.raises(ModelSetupError) as caught:
        await ask(server)
    assert "FIRST_KEY" in (caught.value.how_to_fix or "")
    assert Counter(map(key_of, server.requests)) == dict.fromkeys(KEYS, 1)


@pytest.mark.parametrize("wrong_key", KEYS)
@pytest.mark.parametrize("status", [401, 403])
async def test_a_wrong_key_is_left_and_named_whichever_is_tried_first(
    server: FakeServer, wrong_key: str, status: int
) -> None:
    def script(request: Request) -> Reply:
        is_wrong = key_of(request) == wrong_key
        return error(status, "Incorrect API key provided") if is_wrong else completion("SCORE = 0.5")

    server.script = script
    notices: list[str] = []
    assert_all_answered(await ask(server, notices))
    assert [f"goes on without the key in {wrong_key}" in notice for notice in notices] == [True]


async def test_a_key_that_is_withdrawn_in_a_run_is_left(server: FakeServer) -> None:
    n_answered = 0

    def script(request: Request) -> Reply:
        nonlocal n_answered
        if key_of(request) == "FIRST_KEY" and n_answered >= 4:
            return error(401, "This key was withdrawn")
        n_answered += 1
        return completion("SCORE = 0.5")

    server.script = script
    assert_all_answered(await ask(server))
