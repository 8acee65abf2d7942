"""A model whose calls fail in one way is stopped for that purpose; the requests that arrive are counted."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from auditor.config import ModelSection
from auditor.domain import Answer, Attempt, Call, Message, Outcome, Purpose
from auditor.models.failure_streaks import MAX_UNPROVEN_CALLS, FailureNotices, FailureStreak
from auditor.models.gateway import Gateway
from tests.support.fake_server import FakeServer, Reply, Request, completion, error
from tests.support.gateway_calls import ask, model_section, open_gateway
from tests.test_error_messages import GROQ_TOO_LARGE

REASON = "5 consecutive calls failed with the same error"


def section(server: FakeServer, name: str = "m") -> ModelSection:
    return model_section(server, f"openai/{name}", name=name, concurrency=100)


def call(sample: int, name: str = "m", purpose: Purpose = Purpose.DIRECT) -> Call:
    return Call(name, f"openai/{name}", (Message("user", f"question {sample}"),), purpose, sample=sample)


async def ask_at_once(gateway: Gateway, *calls: Call) -> list[Answer]:
    return list(await asyncio.gather(*(gateway.complete(c) for c in calls)))


async def test_of_100_calls_in_flight_at_most_20_are_sent_and_the_other_models_go_on(server: FakeServer) -> None:
    def script(request: Request) -> Reply:
        reply = completion("hi") if request.body["model"] == "good" else error(400, f"bad value '{request.number}'")
        return replace(reply, delay_s=0.05)

    server.script = script
    notices = list[str]()
    calls = [call(sample, name) for sample in range(100) for name in ("m", "good")]
    async with open_gateway(section(server), section(server, "good"), notify=notices.append) as gateway:
        answers = await ask_at_once(gateway, *calls)
    by_model = {name: [a for c, a in zip(calls, answers, strict=True) if c.name == name] for name in ("m", "good")}
    assert {a.outcome for a in by_model["good"]} == {Outcome.OK}
    assert {a.outcome for a in by_model["m"]} == {Outcome.CLIENT_ERROR}
    n_sent = sum(request.body["model"] == "m" for request in server.requests)
    assert 5 <= n_sent <= 20
    unsent = [a for a in by_model["m"] if not a.attempts]
    assert len(unsent) == 100 - n_sent
    assert all(REASON in (a.error or "") and "bad value" in (a.error or "") for a in unsent)
    first_failure, notice = notices
    assert first_failure.startswith("'m' failed (direct, HTTP 400): bad value")
    assert "'m' gets no more calls for 'direct'" in notice


async def ask_in_turn(server: FakeServer, *replies: Reply, purpose: Purpose = Purpose.DIRECT) -> int:
    """The number of requests after calls that get these replies in turn, one call at a time."""
    server.script = lambda request: replies[min(request.number, len(replies) - 1)]
    await ask(section(server), *(call(sample, purpose=purpose) for sample in range(len(replies))), max_attempts=1)
    return len(server.requests)


BAD, OTHER, OK = error(400, "bad value"), error(400, "another cause"), completion("hi")


@pytest.mark.parametrize(
    ("replies", "n_sent"),
    [
        ([BAD] * 9, 5),
        ([error(400, f"bad value {n}, id req_{n}abcde") for n in range(9)], 5),
        ([error(500, "oops")] * 9, 5), ([Reply(drop=True)] * 9, 5), ([OK, *[BAD] * 9], 6),
        ([BAD, BAD, BAD, BAD, OK, BAD, BAD, BAD, BAD], 9), ([BAD, BAD, BAD, BAD, OTHER, BAD, BAD, BAD, BAD], 9),
        ([error(400, "bad value"), error(422, "bad value")] * 5, 10),
        ([error(400, "Content Exists Risk")] * 9, 9), ([completion(None, refusal="No.")] * 9, 9),
        ([error(400, "This model's maximum context length is 8 tokens.")] * 9, 9),
        ([error(413, GROQ_TOO_LARGE)] * 9, 9), ([error(413, "Not this one")] * 9, 9),
        ([error(400, GROQ_TOO_LARGE)] * 9, 9),
        ([OK] + [error(403, "Your account has been flagged for unusual activity")] * 8, 2),
        ([error(429, "slow down", headers={"retry-after": "0"})] * 9, 9),
        ([BAD, error(429, "slow down"), BAD, error(400, "Content Exists Risk"), BAD, BAD, BAD, BAD], 7),
    ],
)  # fmt: skip
async def test_five_equal_failures_in_a_row_stop_the_model(
    server: FakeServer, replies: list[Reply], n_sent: int
) -> None:
    assert await ask_in_turn(server, *replies) == n_sent


async def test_retries_of_calls_in_flight_end_when_the_model_is_stopped(server: FakeServer) -> None:
    server.script = lambda _: error(500, "oops")
    await ask(section(server), *map(call, range(100)), at_once=True, max_attempts=4)
    assert len(server.requests) <= 4 * 20


async def test_another_purpose_and_another_run_go_on(server: FakeServer) -> None:
    server.script = lambda request: error(400, "bad") if "question" in request.text else completion("hi")
    for n_runs in (1, 2):
        async with open_gateway(section(server)) as gateway:
            for sample in range(9):
                await gateway.complete(call(sample))
            review = replace(call(0, purpose=Purpose.REVIEW), messages=(Message("user", "hi"),))
            assert (await gateway.complete(review)).outcome is Outcome.OK
        assert len(server.requests) == n_runs * 6


async def test_after_a_failure_at_most_20_calls_are_sent_though_the_model_answered_before(server: FakeServer) -> None:
    server.script = lambda request: replace(OK if request.number == 0 else BAD, delay_s=0.05)
    async with open_gateway(section(server), max_attempts=1) as gateway:
        for sample in (0, 1):
            await gateway.complete(call(sample))
        answers = await ask_at_once(gateway, *(call(sample) for sample in range(2, 102)))
    assert {a.outcome for a in answers} == {Outcome.CLIENT_ERROR}
    assert len(server.requests) - 2 <= 20


async def test_a_success_lifts_the_limit_that_a_failure_has_set() -> None:
    streak = FailureStreak("m", Purpose.DIRECT)
    success, failure = Answer("k", Outcome.OK), Answer("k", Outcome.CLIENT_ERROR, error="bad value")
    n_in_flight, release = 0, asyncio.Event()

    async def occupy_slot() -> None:
        nonlocal n_in_flight
        await streak.begin_call()
        n_in_flight += 1
        await release.wait()
        streak.end_call()

    streak.record(success)
    streak.record(failure)
    tasks = [asyncio.create_task(occupy_slot()) for _ in range(40)]
    await asyncio.sleep(0.01)
    assert n_in_flight == MAX_UNPROVEN_CALLS
    streak.record(success)
    await asyncio.sleep(0.01)
    assert n_in_flight == 40
    release.set()
    await asyncio.gather(*tasks)


async def test_a_call_that_waits_for_the_first_answer_can_be_cancelled(server: FakeServer) -> None:
    is_cancelled = threading.Event()
    server.script = lambda _: replace(completion("hi"), after=is_cancelled)
    async with open_gateway(section(server)) as gateway:
        tasks = [asyncio.create_task(gateway.complete(call(sample))) for sample in range(40)]
        await asyncio.sleep(0.1)
        tasks[30].cancel()
        is_cancelled.set()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(answers.pop(30), asyncio.CancelledError)
    assert {a.outcome for a in answers if isinstance(a, Answer)} == {Outcome.OK}
    assert len(answers) == 39


CALL = Call("m", "openai/m", (Message("user", "hi"),), Purpose.REVIEW)


def failed(error: str | None, status: int | None = 400, outcome: Outcome = Outcome.CLIENT_ERROR) -> Answer:
    attempts = () if status is None else (Attempt(1, datetime.now(UTC), 0.1, outcome, status, error),)
    return Answer("key", outcome, error=error, attempts=attempts)


def notices_of(*answers: Answer) -> list[str]:
    texts = list[str]()
    notices = FailureNotices(texts.append)
    for answer in answers:
        notices.record(CALL, answer)
    return texts


def test_the_first_failure_of_each_kind_is_shown_with_its_fix() -> None:
    assert notices_of(failed("Model Not Exist"), failed("odd"), failed("odd"), failed("odd", 422)) == [
        "'m' failed (review, HTTP 400): Model Not Exist. "
        "How to fix: Check the model's name in `model`, and that the account may use it.",
        "'m' failed (review, HTTP 400): odd.",
        "'m' failed (review, HTTP 422): odd.",
    ]


def test_failures_that_differ_in_numbers_and_names_only_are_counted_at_powers_of_ten() -> None:
    texts = notices_of(*(failed(f"no '{n}' at {n}") for n in range(120)))
    assert texts == [
        "'m' failed (review, HTTP 400): no '0' at 0.",
        "10 calls so far: 'm' failed (review, HTTP 400): no '9' at 9.",
        "100 calls so far: 'm' failed (review, HTTP 400): no '99' at 99.",
    ]


def test_answers_are_not_failures_and_calls_without_a_response_name_their_outcome() -> None:
    assert notices_of(Answer("key", Outcome.OK), Answer("key", Outcome.REFUSED)) == []
    assert notices_of(failed(None, None, Outcome.TIMEOUT)) == ["'m' failed (review, timeout): no message."]
