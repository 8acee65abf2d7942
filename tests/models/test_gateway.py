"""The gateway against a server that fails in many ways; the requests that arrive are counted."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from auditor.config import LimitsSection, ModelSection
from auditor.config.providers import PROVIDERS
from auditor.domain import Answer, Call, Message, Outcome, Purpose
from auditor.error_messages import how_to_fix
from auditor.errors import ConfigError, ModelSetupError, RunInterrupted
from auditor.models import litellm_client
from auditor.models.dispatch import REPLIES_ADAPTER, LocalDispatcher, WorkerReply
from auditor.models.gateway import Gateway
from auditor.models.provider_request import ProviderReply as Answered
from auditor.storage import ledger
from auditor.storage.database import open_database
from tests.support.audit_configs import KEY, KEY_VARIABLE
from tests.support.fake_server import NEVER, FakeServer, Reply, Request, answer, completion, error
from tests.support.gateway_calls import ask, model_section, open_gateway
from tests.support.hang_limit import hang_limit
from tests.support.patience import PATIENCE_S
from tests.support.refusals import end_repeated_refusals
from tests.support.stored_rows import count_attempts

both_ways = pytest.mark.usefixtures("litellm_way")
"""Marks tests of what litellm could do otherwise: they run by its public function, too."""


def call(sample: int = 0, **params: Any) -> Call:
    call_params = {"temperature": 0.5, "max_tokens": 50, "seed": 3, **params}
    return Call("m", "openai/x", (Message("user", "hi"),), Purpose.DIRECT, sample=sample, params=call_params)


@both_ways
async def test_an_answer_has_the_providers_usage_and_model(server: FakeServer) -> None:
    [ok_answer] = await ask(model_section(server, price={"input": 1.0, "output": 2.0}), call())
    assert ok_answer.outcome is Outcome.OK
    assert (ok_answer.prompt_tokens, ok_answer.completion_tokens, ok_answer.served_model) == (100, 20, "scripted-1")
    assert ok_answer.cost_usd == pytest.approx(100e-6 + 2 * 20e-6)
    assert [a.outcome for a in ok_answer.attempts] == [Outcome.OK]
    body = server.requests[0].body
    assert (body["temperature"], body["max_tokens"], body["seed"]) == (0.5, 50, 3)
    assert server.requests[0].headers["Authorization"] == f"Bearer {KEY}"


@both_ways
@pytest.mark.parametrize(
    ("usage", "cached_tokens", "usd"),
    [
        ({"prompt_tokens_details": {"cached_tokens": 64}}, 64, 36e-6 + 64 * 0.1e-6 + 2 * 20e-6),
        ({"prompt_tokens_details": {"cached_tokens": 0}}, 0, 100e-6 + 2 * 20e-6),
        ({"prompt_cache_hit_tokens": 40, "prompt_cache_miss_tokens": 60}, 40, 60e-6 + 40 * 0.1e-6 + 2 * 20e-6),
        ({"prompt_tokens_details": {"cached_tokens": 900}}, 900, 100e-6 + 2 * 20e-6),
        ({}, None, 100e-6 + 2 * 20e-6),
    ],
)
async def test_cached_tokens_are_charged_at_their_own_price(
    server: FakeServer, usage: dict[str, object], cached_tokens: int | None, usd: float
) -> None:
    reply = completion("hello")
    server.script = lambda _: Reply(body=reply.body | {"usage": reply.body["usage"] | usage})
    [priced_answer] = await ask(model_section(server, price={"input": 1.0, "output": 2.0, "cached_input": 0.1}), call())
    assert priced_answer.cached_tokens == cached_tokens
    assert priced_answer.cost_usd == pytest.approx(usd)
    [full_price_answer] = await ask(model_section(server, price={"input": 1.0, "output": 2.0}), call())
    assert full_price_answer.cost_usd == pytest.approx(100e-6 + 2 * 20e-6)


async def test_tokens_that_are_written_to_a_cache_have_the_configured_price(server: FakeServer) -> None:
    body = completion("hello").body
    body["usage"]["prompt_tokens_details"] = {"cached_tokens": 0, "cache_write_tokens": 60}
    server.script = lambda _: Reply(body=body)
    for cache_write, usd in ((None, 140e-6), (1.25, 140e-6 + 60 * 0.25e-6), (0.0, 140e-6)):
        price = {"input": 1.0, "output": 2.0, "cache_write": cache_write}
        [answer] = await ask(model_section(server, price=price), call())
        assert answer.cost_usd == pytest.approx(usd)


MINI = litellm_client.listed_token_price("gpt-5-mini")
MINI_PRIORITY = litellm_client.listed_token_price("gpt-5-mini", "priority")
MINI_FLEX = litellm_client.listed_token_price("gpt-5-mini", "flex")
COUNTS = {"promptTokenCount": 100, "candidatesTokenCount": 20}


@both_ways
@pytest.mark.parametrize(
    ("requested", "served", "price"),
    [
        (None, {"service_tier": "default"}, MINI),
        (None, {}, MINI),
        (None, {"service_tier": None}, MINI),
        (None, {"service_tier": "priority"}, MINI_PRIORITY),  # the default of the account's project
        ("flex", {"service_tier": "flex"}, MINI_FLEX),
        ("flex", {}, MINI_FLEX),
        ("priority", {"service_tier": "default"}, MINI),  # at the limit of that tier
        (None, {"service_tier": "scale"}, None),  # paid for in advance
        (None, {"usage": {"service_tier": "priority"}}, MINI_PRIORITY),  # as Anthropic writes it
        (None, {"serviceTier": {"type": "priority"}}, MINI_PRIORITY),  # as Bedrock does
        (None, {"usageMetadata": COUNTS | {"trafficType": "ON_DEMAND_PRIORITY"}}, MINI_PRIORITY),  # as Google does
        ("flex", {"usageMetadata": COUNTS | {"trafficType": "ON_DEMAND_FLEX"}}, MINI_FLEX),
        ("flex", {"usageMetadata": COUNTS | {"trafficType": "ON_DEMAND"}}, MINI),
        (None, {"usageMetadata": COUNTS | {"trafficType": "PROVISIONED_THROUGHPUT"}}, None),  # paid for in advance
    ],
)
async def test_a_listed_price_is_that_of_the_tier_in_which_the_provider_processed_the_request(
    server: FakeServer, requested: str | None, served: dict[str, Any], price: litellm_client.TokenPrice | None
) -> None:
    body = completion("hello").body
    usage = body["usage"] | served.get("usage", {})
    server.script = lambda _: Reply(body=body | served | {"usage": usage})
    params = {"service_tier": requested} if requested else {}
    [answer] = await ask(model_section(server, base_model="gpt-5-mini", params=params), call())
    assert answer.cost_usd == (None if price is None else pytest.approx(price.request_cost(100, 20, 0)))


@pytest.mark.parametrize(
    ("model", "usage", "factor"),
    [
        ("claude-opus-4-6", {"inference_geo": "us", "service_tier": "standard"}, 1.1),  # the workspace's default
        ("claude-opus-4-6", {"inference_geo": "global"}, 1.0),
        ("claude-sonnet-4-5", {"inference_geo": "not_available"}, 1.0),
        ("claude-opus-4-6", {"inference_geo": "eu"}, None),
        ("claude-opus-4-6", {"inference_geo": "us", "service_tier": "priority"}, None),
    ],
)
async def test_a_listed_price_of_anthropic_is_that_of_the_place_of_inference(
    server: FakeServer, model: str, usage: dict[str, str], factor: float | None
) -> None:
    body = completion("hello").body
    server.script = lambda _: Reply(body=body | {"usage": body["usage"] | usage})
    [answer] = await ask(model_section(server, base_model=model), call())
    price = litellm_client.listed_token_price(model)
    assert price is not None
    assert answer.cost_usd == (None if factor is None else pytest.approx(factor * price.request_cost(100, 20, 0)))


@pytest.mark.parametrize(
    "usage",
    [
        {"cache_creation_input_tokens": 80, "cache_creation": {"ephemeral_1h_input_tokens": 60}},  # as Anthropic says
        {
            "prompt_tokens_details": {
                "cache_write_tokens": 80,
                "cache_creation_token_details": {"ephemeral_1h_input_tokens": 60},  # as litellm's proxy does
            }
        },
        {
            "cacheWriteInputTokens": 80,
            "cacheDetails": [{"ttl": "5m", "inputTokens": 20}, {"ttl": "1h", "inputTokens": 60}],
        },  # as Bedrock does
    ],
)
async def test_tokens_written_to_a_cache_for_an_hour_are_charged_as_such(
    server: FakeServer, usage: dict[str, Any]
) -> None:
    body = completion("hello").body
    server.script = lambda _: Reply(body=body | {"usage": body["usage"] | usage})
    [answer] = await ask(model_section(server, base_model="claude-opus-4-6"), call())
    price = litellm_client.listed_token_price("claude-opus-4-6")
    assert price is not None
    assert answer.cost_usd == pytest.approx(price.request_cost(100, 20, 0, 80, 60))


async def test_a_configured_price_is_that_of_all_tiers(server: FakeServer) -> None:
    server.script = lambda _: Reply(body=completion("hello").body | {"service_tier": "priority"})
    [answer] = await ask(model_section(server, price={"input": 1.0, "output": 2.0}), call())
    assert answer.cost_usd == pytest.approx(140e-6)


async def test_what_was_reserved_for_a_request_at_an_unknown_cost_counts_as_spent(server: FakeServer) -> None:
    server.script = lambda _: Reply(body=completion("hello").body | {"service_tier": "scale"})
    async with open_gateway(model_section(server, base_model="gpt-5-mini"), budget_usd=1) as gateway:
        assert (await gateway.complete(call())).cost_usd is None
        assert gateway.budget.spent_usd > 0


def count_open_descriptors() -> int:
    descriptor_folder = Path("/proc/self/fd")
    if not descriptor_folder.is_dir():
        pytest.skip("this system does not list a process's descriptors in /proc")
    return len(list(descriptor_folder.iterdir()))


@both_ways
async def test_a_run_reuses_one_http_client(server: FakeServer) -> None:
    async with open_gateway(model_section(server, timeout_s=600), deadline_s=300) as gateway:
        await gateway.complete(call())
        before = count_open_descriptors()
        for i in range(1, 30):
            assert (await gateway.complete(call(i))).outcome is Outcome.OK
        assert count_open_descriptors() <= before + 2


@both_ways
async def test_an_unknown_price_is_unknown_and_missing_usage_is_charged_by_estimate(server: FakeServer) -> None:
    [unpriced] = await ask(model_section(server), call())
    assert unpriced.cost_usd is None
    server.script = lambda _: completion("hello", usage=False)
    [uncounted] = await ask(model_section(server, price={"input": 1, "output": 1}), call())
    assert (uncounted.prompt_tokens, uncounted.completion_tokens) == (None, None)
    assert uncounted.cost_usd == pytest.approx(1e-6 + 50e-6)  # "hi" is a token at most, and max_tokens is 50
    [unknown] = await ask(model_section(server), call())
    assert unknown.cost_usd is None


@both_ways
@pytest.mark.parametrize(
    ("reply", "outcome", "requests"),
    [
        (lambda _: error(500, "oops"), Outcome.SERVER_ERROR, 3),
        (lambda _: error(503, "busy"), Outcome.SERVER_ERROR, 3),
        (lambda _: error(400, "bad"), Outcome.CLIENT_ERROR, 1),
        (lambda _: error(422, "bad"), Outcome.CLIENT_ERROR, 1),
        (lambda _: error(403, "Your model requires moderation and your input was flagged"), Outcome.REFUSED, 1),
        (lambda _: completion("half an ans", finish="length"), Outcome.TRUNCATED, 1),
        (lambda _: completion(None, finish="content_filter"), Outcome.REFUSED, 1),
        (lambda _: completion(None, refusal="I can not."), Outcome.REFUSED, 1),
        (lambda _: completion(""), Outcome.SERVER_ERROR, 3),
        (lambda _: Reply(body={"id": "1", "choices": []}), Outcome.SERVER_ERROR, 3),
        (lambda _: Reply(raw=b"<html>gateway</html>"), Outcome.SERVER_ERROR, 3),
        (lambda _: Reply(raw=b'{"choices": [{"mess'), Outcome.SERVER_ERROR, 3),
        (lambda r: Reply(drop=True) if r.number else answer(r), Outcome.SERVER_ERROR, 3),
        (lambda r: Reply(after=NEVER) if r.number else answer(r), Outcome.TIMEOUT, 3),
    ],
)
async def test_each_failure_has_its_outcome_and_is_retried_only_by_the_gateway(
    server: FakeServer, reply: Callable[[Request], Reply], outcome: Outcome, requests: int
) -> None:
    await ask(model_section(server), call(0))  # the first request includes slow set-up
    server.requests.clear()
    server.script = lambda r: answer(r) if r.number == 0 else reply(r)
    model = model_section(server, timeout_s=2 if outcome is Outcome.TIMEOUT else 60)
    _, failed_answer = await ask(model, call(0), call(1))
    assert failed_answer.outcome is outcome, failed_answer
    assert [a.number for a in failed_answer.attempts] == list(range(1, requests + 1))
    assert len(server.requests) == requests + 1
    assert KEY not in repr(failed_answer)


@pytest.mark.parametrize("headers", [{}, {"retry-after": "0"}])
async def test_a_refused_call_is_repeated_until_its_time_is_over(server: FakeServer, headers: dict[str, str]) -> None:
    server.script = lambda _: error(429, "slow", headers=headers)
    with end_repeated_refusals(5):
        [refused_answer] = await ask(model_section(server), call(1), deadline_s=600)
    assert [attempt.outcome for attempt in refused_answer.attempts] == [Outcome.RATE_LIMITED] * 5
    assert refused_answer.outcome is Outcome.RATE_LIMITED
    assert "the provider refused it until limits.deadline_s = 600 s was over" in (refused_answer.error or "")
    assert len(server.requests) == 5


@both_ways
async def test_with_one_attempt_a_refused_call_is_not_repeated(server: FakeServer) -> None:
    server.script = lambda r: error(429, "slow") if r.number else answer(r)
    _, refused_answer = await ask(model_section(server), call(0), call(1), max_attempts=1)
    assert (refused_answer.outcome, refused_answer.error) == (Outcome.RATE_LIMITED, "slow")
    assert len(server.requests) == 2


@both_ways
@pytest.mark.parametrize("header", [{"retry-after": "0.3"}, {"retry-after-ms": "300"}])
async def test_retry_after_is_obeyed(server: FakeServer, header: dict[str, str]) -> None:
    server.script = lambda r: error(429, "slow", headers=header) if r.number == 0 else answer(r)
    [retried_answer] = await ask(model_section(server), call())
    assert retried_answer.outcome is Outcome.OK
    assert server.requests[1].at - server.requests[0].at >= 0.3
    assert retried_answer.attempts[0].retry_after_s == 0.3


async def test_a_quota_that_is_spent_while_requests_wait_after_a_429_costs_one_request(server: FakeServer) -> None:
    spent = error(429, "You exceeded your current quota", code="insufficient_quota", headers={"retry-after": "1"})
    async with open_gateway(model_section(server, concurrency=20)) as gateway:
        assert (await gateway.complete(call(0))).outcome is Outcome.OK
        refused = error(429, "slow", headers={"retry-after": "1"})
        server.script = lambda r: replace(refused, delay_s=0.3) if r.number <= 20 else spent
        answers = await asyncio.gather(*(gateway.complete(call(i)) for i in range(1, 61)))
    assert {a.outcome for a in answers} == {Outcome.CLIENT_ERROR}
    assert len(server.requests) == 1 + 20 + 1


async def test_the_deadline_covers_all_attempts_of_a_call(server: FakeServer) -> None:
    server.script = lambda r: answer(r) if r.number == 0 else error(503, "busy", headers={"retry-after": "3600"})
    async with asyncio.timeout(PATIENCE_S):
        _, late_answer = await ask(model_section(server), call(0), call(1), deadline_s=30)
    assert (late_answer.outcome, len(late_answer.attempts)) == (Outcome.SERVER_ERROR, 1)


@both_ways
@pytest.mark.parametrize(
    ("reply", "words"),
    [(error(401, f"no: {KEY}"), "Check the key in os.environ/"), (error(404, f"no: {KEY}"), "Check the model's name"),
     (error(429, "You exceeded your current quota", code="insufficient_quota"), "quota")],
)  # fmt: skip
async def test_an_unusable_model_stops_the_run_before_money_is_spent(
    server: FakeServer, reply: Reply, words: str
) -> None:
    server.script = lambda _: reply
    with pytest.raises(ModelSetupError, match=words) as caught:
        await ask(model_section(server), call())
    assert KEY not in str(caught.value)
    assert len(server.requests) == 1


async def test_an_unreachable_server_fails_at_once() -> None:
    unreachable = ModelSection(name="m", model="openai/x", api_base="http://127.0.0.1:9/v1")
    with pytest.raises(ModelSetupError, match="Check that the server runs"):
        await ask(unreachable, call(), max_attempts=6)


async def test_a_key_revoked_in_the_middle_blocks_the_model_and_no_request_follows(server: FakeServer) -> None:
    server.script = lambda r: answer(r) if r.number == 0 else error(401, "revoked")
    answers = await ask(model_section(server), *(call(i) for i in range(5)))
    assert [a.outcome for a in answers] == [Outcome.OK] + [Outcome.CLIENT_ERROR] * 4
    assert len(server.requests) == 2


async def test_a_call_waiting_for_a_slot_reserves_no_budget(server: FakeServer) -> None:
    """Five calls cost 20 USD each; two run at once and reserve 100 USD, so a budget of 170 USD is enough for all."""
    model = model_section(server, concurrency=2, price={"input": 0.0, "output": 1e6})
    async with open_gateway(model, budget_usd=170.0) as gateway:
        answers = await asyncio.gather(*(gateway.complete(call(i)) for i in range(5)))
    assert [(a.outcome, a.cost_usd) for a in answers] == [(Outcome.OK, 20.0)] * 5


async def test_the_budget_is_reserved_before_a_call_goes_out(server: FakeServer) -> None:
    model = model_section(server, price={"input": 0.0, "output": 1e6})  # a dollar a token, 20 tokens an answer
    answers = await ask(model, *(call(i) for i in range(4)), budget_usd=75.0)  # 50 tokens are reserved
    assert [a.outcome for a in answers] == [Outcome.OK, Outcome.OK, Outcome.OVER_BUDGET, Outcome.OVER_BUDGET]
    assert len(server.requests) == 2


async def test_a_call_waits_for_requests_in_flight_that_leave_no_room_in_the_budget(server: FakeServer) -> None:
    """Five calls cost 20 USD each, and 50 are reserved for each: all are within 130 USD, but not at once."""
    server.script = lambda r: replace(answer(r), delay_s=0.2 if r.number else 0.0)
    model = model_section(server, concurrency=5, price={"input": 0.0, "output": 1e6})
    async with open_gateway(model, budget_usd=130.0) as gateway:
        answers = await asyncio.gather(*(gateway.complete(call(i)) for i in range(5)))
        assert gateway.budget.spent_usd == 100.0
    assert [a.outcome for a in answers] == [Outcome.OK] * 5


async def test_a_call_that_is_cancelled_while_it_waits_for_a_slot_releases_its_part_of_the_budget(
    server: FakeServer,
) -> None:
    """Calls cost 20 USD, and 50 are reserved for each: the last waits for room, then for the end of a pause."""
    refusal = replace(error(429, "slow", headers={"retry-after": "60"}), delay_s=0.5)
    server.script = lambda r: replace(answer(r), after=NEVER) if r.number == 1 else refusal if r.number else answer(r)
    model = model_section(server, concurrency=3, price={"input": 0.0, "output": 1e6})
    is_refused = asyncio.Event()
    async with open_gateway(model, budget_usd=160.0, on_limit_change=lambda *_: is_refused.set()) as gateway:
        await gateway.complete(call(0))
        tasks = [asyncio.create_task(gateway.complete(call(i))) for i in (1, 2, 3)]
        async with asyncio.timeout(PATIENCE_S):
            await is_refused.wait()
            while gateway.budget.has_room(41.0):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            tasks[2].cancel()
            await asyncio.wait([tasks[2]])
        assert gateway.budget.has_room(90.0)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def test_calls_that_waited_for_room_in_the_budget_are_sent_together(server: FakeServer) -> None:
    """Eight calls cost 20 USD each, and 50 are reserved for each: after four at once, 230 USD leave room for two."""
    n_in_flight = []

    class CountingDispatcher(LocalDispatcher):
        """Sends requests, and records how many are in flight with each."""

        async def send(self, *args: Any) -> Answered:
            open_requests.append(1)
            n_in_flight.append(len(open_requests))
            await asyncio.sleep(0.1)
            try:
                return await super().send(*args)
            finally:
                open_requests.pop()

    open_requests: list[int] = []
    model = model_section(server, concurrency=8, price={"input": 0.0, "output": 1e6})
    async with open_gateway(model, budget_usd=230.0, dispatcher=CountingDispatcher([model])) as gateway:
        answers = await asyncio.gather(*(gateway.complete(call(i)) for i in range(8)))
        assert gateway.budget.spent_usd == 160.0
    assert [a.outcome for a in answers] == [Outcome.OK] * 8
    assert (max(n_in_flight), n_in_flight[6] >= 2) == (4, True)


def test_a_missing_key_is_an_error_before_anything_else(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_VARIABLE)
    with pytest.raises(ConfigError, match=KEY_VARIABLE):
        Gateway([model_section(server)], LimitsSection())


SURROGATE = "a\0b\ud800c"


@both_ways
async def test_characters_that_cannot_be_stored_are_escaped(server: FakeServer) -> None:
    server.script = lambda _: Reply(raw=json.dumps(completion(SURROGATE).body).encode())
    [escaped_answer] = await ask(model_section(server), call())
    assert escaped_answer.text == "a\\x00b\\ud800c"


def all_strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple):
        for element in value:
            yield from all_strings(element)
    elif is_dataclass(value) and not isinstance(value, type):
        for field_spec in fields(value):
            yield from all_strings(getattr(value, field_spec.name))


@both_ways
@pytest.mark.parametrize("size", [10, 100_000])
@pytest.mark.parametrize(
    "reply",
    [Reply(body=completion("hello", finish=SURROGATE).body | {"model": SURROGATE, "system_fingerprint": SURROGATE}),
     completion(SURROGATE, refusal=SURROGATE), error(400, SURROGATE), Reply(body={"error": {"message": SURROGATE}})],
    ids=["names", "texts", "an error", "an error with status 200"],
)  # fmt: skip
async def test_every_string_of_a_provider_can_be_stored(
    server: FakeServer, storage: str, reply: Reply, size: int
) -> None:
    server.script = lambda _: replace(reply, body=reply.body | {"filler": "x" * size})
    recorded_call = call()
    [escaped_answer] = await ask(model_section(server), recorded_call, max_attempts=1)
    assert any("\\ud800" in text for text in all_strings(escaped_answer))
    for text in all_strings(escaped_answer):
        assert "\0" not in text
        text.encode()
    if reply.body.get("model") == SURROGATE:
        assert (escaped_answer.served_model, escaped_answer.fingerprint) == ("a\\x00b\\ud800c", "a\\x00b\\ud800c")
    replies = [WorkerReply(1, Answered(escaped_answer, None))]
    assert REPLIES_ADAPTER.validate_json(REPLIES_ADAPTER.dump_json(replies)) == replies
    with open_database(storage) as db:
        await ledger.record_answer(db, recorded_call, escaped_answer)
        assert count_attempts(db) == 1


async def answers_after_throttling(
    server: FakeServer, seconds: str, calls: int, status: int = 429, **limits: Any
) -> list[Answer]:
    """Answer one call, then throttle `calls` further ones."""
    async with open_gateway(model_section(server), **{"max_attempts": 3} | limits) as gateway:
        assert (await gateway.complete(call(999))).outcome is Outcome.OK
        server.requests.clear()
        server.script = lambda _: error(status, "slow", headers={"retry-after": seconds})
        return [await gateway.complete(call(i)) for i in range(calls)]


@pytest.mark.parametrize("seconds", ["86400", "9" * 400, "Fri, 31 Dec 9999 23:59:59 GMT"])
@pytest.mark.parametrize(("status", "outcome"), [(429, Outcome.RATE_LIMITED), (503, Outcome.SERVER_ERROR)])
async def test_an_excessive_retry_after_is_not_waited_out(
    server: FakeServer, seconds: str, status: int, outcome: Outcome
) -> None:
    async with asyncio.timeout(PATIENCE_S):
        [throttled_answer] = await answers_after_throttling(server, seconds, 1, status)
    assert (throttled_answer.outcome, len(server.requests), len(throttled_answer.attempts)) == (outcome, 1, 1)
    requested_wait = "24 h" if seconds == "86400" else "11,574 days"
    expected_error = f"the provider asks to wait {requested_wait}, longer than limits.max_retry_wait_s = 120 s"
    assert expected_error in (throttled_answer.error or "")
    assert expected_error in (throttled_answer.attempts[0].error or "")


async def test_calls_pause_at_most_the_maximum_wait_and_an_insisting_provider_is_suspended(server: FakeServer) -> None:
    async with asyncio.timeout(PATIENCE_S):
        throttled_answers = await answers_after_throttling(server, "86400", 5, max_retry_wait_s=0.5)
    assert {a.outcome for a in throttled_answers} == {Outcome.RATE_LIMITED}
    assert [len(a.attempts) for a in throttled_answers] == [1, 1, 0, 0, 0]
    assert len(server.requests) == 2
    assert "no request was sent: the provider asks to wait 24 h" in (throttled_answers[-1].error or "")


async def test_a_single_excessive_retry_after_costs_one_call(server: FakeServer) -> None:
    refusal = error(429, "slow", headers={"retry-after": "86400"})
    server.script = lambda r: refusal if r.number in (1, 3) else answer(r)
    answers = await ask(model_section(server), *map(call, range(6)), max_attempts=1, max_retry_wait_s=0.2)
    assert [a.outcome for a in answers] == [Outcome.OK, Outcome.RATE_LIMITED] * 2 + [Outcome.OK] * 2
    assert len(server.requests) == 6


async def test_the_error_names_the_deadline_that_leaves_no_time_for_a_wait(server: FakeServer) -> None:
    [throttled_answer] = await answers_after_throttling(server, "60", 1, deadline_s=30)
    assert (throttled_answer.outcome, len(server.requests)) == (Outcome.RATE_LIMITED, 1)
    expected = "the provider asks to wait 60 s, and limits.deadline_s = 30 s is too short for it"
    assert expected in (throttled_answer.error or "")


async def test_no_wait_follows_the_last_attempt(server: FakeServer) -> None:
    with hang_limit():  # less than the wait
        [throttled_answer] = await answers_after_throttling(server, "110", 1, max_attempts=1)
    assert (throttled_answer.outcome, len(throttled_answer.attempts)) == (Outcome.RATE_LIMITED, 1)


@pytest.mark.parametrize(("status", "seconds"), [(429, "7"), (503, "7"), (429, "86400")])
async def test_a_long_wait_is_announced_once_with_its_end(server: FakeServer, status: int, seconds: str) -> None:
    stop, notes, has_notice = threading.Event(), list[str](), asyncio.Event()

    def note(text: str) -> None:
        if "failed" not in text:
            notes.append(text)
            has_notice.set()

    settings: dict[str, Any] = {"max_attempts": 2, "deadline_s": 600, "notify": note, "stop_event": stop}
    async with open_gateway(model_section(server), **settings) as gateway:
        assert (await gateway.complete(call(999))).outcome is Outcome.OK
        server.script = lambda _: error(status, "slow", headers={"retry-after": seconds})
        call_tasks = [asyncio.create_task(gateway.complete(call(i))) for i in range(40)]
        async with asyncio.timeout(PATIENCE_S):
            await has_notice.wait()
            await asyncio.sleep(0.2)
            stop.set()
            await asyncio.gather(*call_tasks, return_exceptions=True)
    [text] = notes
    capped = ", limited by limits.max_retry_wait_s to 120 s" if seconds == "86400" else ""
    duration_text = "24 h" if seconds == "86400" else "7 s"
    notice_match = re.fullmatch(r"Waiting until (\d\d:\d\d:\d\d): (.*) asks for a pause of (.*)\.", text)
    assert notice_match, text
    assert notice_match[2] == f"openai at 127.0.0.1 by {KEY_VARIABLE} for m"
    assert notice_match[3] == f"{duration_text}{capped}"


async def test_an_error_that_stops_the_run_holds_the_attempts_made(server: FakeServer) -> None:
    server.script = lambda r: error(503, "busy") if r.number < 2 else error(401, "no")
    with pytest.raises(ModelSetupError) as caught:
        await ask(model_section(server), call())
    recorded_answer = caught.value.answer
    assert recorded_answer is not None
    assert [(a.number, a.http_status) for a in recorded_answer.attempts] == [(1, 503), (2, 503), (3, 401)]
    assert recorded_answer.key == call().key


async def test_calls_that_waited_for_the_first_answer_are_sent_together(server: FakeServer) -> None:
    all_in_flight = threading.Event()

    def script(request: Request) -> Reply:
        if request.number == 5:
            all_in_flight.set()
        return replace(answer(request), after=all_in_flight if request.number else None)

    server.script = script
    answers = await ask(model_section(server), *map(call, range(6)), at_once=True, max_attempts=1, deadline_s=120)
    assert {a.outcome for a in answers} == {Outcome.OK}


@pytest.mark.parametrize("provider", sorted(row.prefix for row in PROVIDERS if row.builds_directly))
async def test_building_a_request_does_not_block_on_the_network(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    litellm_client.open_http_clients()

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a server was asked while the event loop stood still")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    request = litellm_client.complete_chat(
        model=f"{provider}/m", messages=[{"role": "user", "content": "hi"}], api_key=KEY, max_retries=0, num_retries=0,
        timeout=5, **({"api_base": "https://m.example", "api_version": "2024-10-21"} if provider == "azure" else {}),
    )  # fmt: skip
    sending = asyncio.ensure_future(request)
    await asyncio.sleep(0)  # run until its first await
    assert not sending.done() or "stood still" not in str(sending.exception())
    sending.cancel()
    await asyncio.gather(sending, return_exceptions=True)
    await litellm_client.close_http_clients()


async def count_interrupted_calls(server: FakeServer, n: int, reply: Callable[[], Reply], **changes: Any) -> int:
    """Stop a run while n calls wait, and count those that raise RunInterrupted."""
    stop, release = threading.Event(), threading.Event()
    model = model_section(server, **changes)
    async with open_gateway(model, max_attempts=2, deadline_s=600, stop_event=stop) as gateway:
        assert (await gateway.complete(call(n))).outcome is Outcome.OK
        server.script = lambda request: replace(reply(), after=release)
        call_tasks = [asyncio.create_task(gateway.complete(call(i))) for i in range(n)]
        while len(server.requests) < 2 and changes.get("rpm") != 1:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        stop.set()
        release.set()
        async with asyncio.timeout(PATIENCE_S):
            answers_or_errors = await asyncio.gather(*call_tasks, return_exceptions=True)
    assert all(isinstance(outcome, Answer | RunInterrupted) for outcome in answers_or_errors)
    return sum(isinstance(outcome, RunInterrupted) for outcome in answers_or_errors)


async def test_a_stopped_run_sends_no_call_that_waits_for_a_slot(server: FakeServer) -> None:
    n_interrupted = await count_interrupted_calls(server, 12, lambda: completion("SCORE = 0.1"), concurrency=3)
    assert n_interrupted == 12 - 3
    assert len(server.requests) == 1 + 3


async def test_a_stopped_run_ends_the_waits_for_a_429_or_a_rate_limit(server: FakeServer) -> None:
    headers = {"retry-after": "3600"}
    assert await count_interrupted_calls(server, 6, lambda: error(429, "slow", headers=headers), concurrency=2) == 4
    server.script = answer
    server.requests.clear()
    assert await count_interrupted_calls(server, 3, lambda: completion("x"), rpm=1) == 3


@both_ways
async def test_a_request_that_the_deadline_cuts_off_names_it(server: FakeServer) -> None:
    server.script = lambda request: replace(answer(request), after=NEVER)
    [by_deadline] = await ask(model_section(server, timeout_s=600), call(), deadline_s=0.3)
    [by_timeout] = await ask(model_section(server, timeout_s=0.3), call(), max_attempts=1)
    assert (by_deadline.outcome, by_timeout.outcome) == (Outcome.TIMEOUT, Outcome.TIMEOUT)
    assert by_deadline.error == "no answer came before limits.deadline_s = 0.3 s was over"
    assert by_deadline.attempts[-1].error == by_deadline.error
    assert "limits.deadline_s" in how_to_fix(None, by_deadline.error)
    assert "deadline" not in (by_timeout.error or "")
    assert "timeout_s" in how_to_fix(None, by_timeout.error)


async def test_a_retry_past_the_deadline_is_not_sent(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("auditor.models.retries.INITIAL_BACKOFF_S", 0.0)
    async with open_gateway(model_section(server, concurrency=1), max_attempts=5, deadline_s=0.6) as gateway:
        assert (await gateway.complete(call(0))).outcome is Outcome.OK
        server.script = lambda r: error(500, "no") if r.number == 1 else replace(answer(r), after=NEVER)
        first, second = await asyncio.gather(*(gateway.complete(call(i)) for i in (1, 2)))
    assert [a.outcome for a in first.attempts] == [Outcome.SERVER_ERROR]
    assert (first.outcome, second.outcome) == (Outcome.SERVER_ERROR, Outcome.TIMEOUT)
    assert len(server.requests) == 3


async def test_calls_waiting_while_a_key_is_revoked_are_not_sent(server: FakeServer) -> None:
    async with open_gateway(model_section(server, concurrency=1), max_attempts=2) as gateway:
        assert (await gateway.complete(call(0))).outcome is Outcome.OK
        server.script = lambda request: error(401, "revoked")
        blocked_answers = await asyncio.gather(*(gateway.complete(call(i)) for i in range(1, 9)))
    assert {a.outcome for a in blocked_answers} == {Outcome.CLIENT_ERROR}
    assert len(server.requests) == 2


@both_ways
@pytest.mark.parametrize("model", ["hosted_vllm/x", "openai/x", "mistral/x"])
async def test_a_server_is_asked_to_continue_a_last_message_of_the_assistant(server: FakeServer, model: str) -> None:
    continued = replace(call(), model=model, messages=(Message("user", "hi"), Message("assistant", "SCORE =")))
    [reply] = await ask(model_section(server, model, capabilities={"prefill": True}), continued)
    assert reply.outcome is Outcome.OK
    body = server.requests[0].body
    is_marked = model.startswith("mistral")
    mark = {"prefix": True} if is_marked else {}
    assert body["messages"][-1] == {"role": "assistant", "content": "SCORE ="} | mark
    switches = (body.get("add_generation_prompt"), body.get("continue_final_message"))
    assert switches == ((None, None) if is_marked else (False, True))
    assert continued.key != call().key
