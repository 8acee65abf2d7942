"""Cost of each request, with or without usable token counts, and the budget that limits it."""

from __future__ import annotations

import math
import socket
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest

from auditor.agents.call_runner import CallRecorder, RecordingClient
from auditor.config import LimitsSection, ModelSection, Price
from auditor.domain import Answer, Call, LogprobMeasure, Message, Outcome, Purpose
from auditor.errors import ConfigError
from auditor.models.budget import (
    DEFAULT_MAX_OUTPUT_TOKENS,
    Budget,
    RequestCharge,
    charge_estimate,
    charge_usage,
    require_prices,
)
from auditor.models.dispatch import LocalDispatcher
from auditor.models.litellm_client import (
    BATCH_TIER,
    ListedPrice,
    TokenPrice,
    listed_token_price,
    served_token_price,
    token_price,
)
from auditor.models.response_body import TokenUsage
from auditor.run.model_access import sum_spending
from auditor.storage import costs, ledger
from auditor.storage.database import Database
from tests.models.test_finish_reasons import anthropic, cohere, gemini, openai
from tests.storage.test_database import save_sample_audit
from tests.support.audit_configs import config
from tests.support.closing import closing
from tests.support.fake_server import NEVER, FakeServer, Reply, answer, completion, error
from tests.support.gateway_calls import ask as ask_gateway, model_section, open_gateway
from tests.support.known import known

PRICE = TokenPrice(1.0, 2.0, 0.5)
DOLLARS = {"input": 1e6, "output": 2e6}
"""Price of a million tokens in USD: one dollar per input token, two per output token."""
ESTIMATE = 2 + 2 * 50
"""Estimated cost of `call` at `PRICE`: two tokens for eight characters, and at most 50 tokens of output."""


def call(sample: int = 0, model: str = "openai/x", **params: Any) -> Call:
    return Call("m", model, (Message("user", "hi there"),), Purpose.DIRECT, sample, {"max_tokens": 50, **params})


def section(server: FakeServer, model: str = "openai/x", **settings: Any) -> ModelSection:
    return model_section(server, model, **{"price": DOLLARS, "timeout_s": 60} | settings)


async def ask(server: FakeServer, *calls: Call, timeout_s: float = 60.0, **limits: Any) -> list[Answer]:
    model = section(server, calls[0].model, timeout_s=timeout_s)
    return await ask_gateway(model, *calls, **{"max_attempts": 2} | limits)


UNUSABLE_USAGE: dict[str, Any] = {
    "absent": None, "zero": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
    "no completion": {"prompt_tokens": 10, "completion_tokens": 0, "total_tokens": 10}, "half": {"prompt_tokens": 10},
    "negative": {"prompt_tokens": -10, "completion_tokens": -5, "total_tokens": -15},
    "a fraction": {"prompt_tokens": 1.5, "completion_tokens": 2.5, "total_tokens": 4},
    "a word": {"prompt_tokens": "ten", "completion_tokens": 5},
    "a truth": {"prompt_tokens": True, "completion_tokens": 5}, "a list": [],
    "more than ten million": {"prompt_tokens": 10**7 + 1, "completion_tokens": 5},
    "a hundred times the estimate": {"prompt_tokens": 5196, "completion_tokens": 5},
    "10^30": {"prompt_tokens": 10**30, "completion_tokens": 5},
}  # fmt: skip


@pytest.mark.parametrize("usage", UNUSABLE_USAGE)
async def test_implausible_token_counts_are_charged_by_estimate(server: FakeServer, usage: str) -> None:
    server.script = lambda _: Reply(body=openai("stop", "hello", UNUSABLE_USAGE[usage]))
    [estimated] = await ask(server, call())
    assert (estimated.outcome, estimated.text, len(server.requests)) == (Outcome.OK, "hello", 1)
    assert (estimated.prompt_tokens, estimated.completion_tokens, estimated.cost_usd) == (None, None, ESTIMATE)
    [attempt] = estimated.attempts
    assert (attempt.prompt_tokens, attempt.cost_usd, attempt.estimated) == (None, ESTIMATE, True)


async def test_token_counts_up_to_a_hundred_times_the_estimate_are_accepted(server: FakeServer) -> None:
    server.script = lambda _: Reply(body=openai("stop", "hello", {"prompt_tokens": 5195, "completion_tokens": 5}))
    [counted_answer] = await ask(server, call())
    assert (counted_answer.prompt_tokens, counted_answer.cost_usd) == (5195, 5195 + 10)
    assert not counted_answer.attempts[0].estimated


@pytest.mark.parametrize("model", ["anthropic/x", "gemini/x", "bedrock/converse/x", "groq/x", "ollama_chat/x"])
async def test_an_answer_without_token_counts_is_charged_by_estimate_and_not_retried(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "an example")
    monkeypatch.setenv("AWS_REGION_NAME", "us-east-1")
    message = {"role": "assistant", "content": [{"text": "hello"}]}
    body: dict[str, Any] = {
        "anthropic/x": anthropic("end_turn", "hello"),
        "gemini/x": gemini("STOP", "hello"),
        "bedrock/converse/x": {"output": {"message": message}, "stopReason": "end_turn", "metrics": {"latencyMs": 1}},
        "groq/x": openai("stop", "hello"),
        "ollama_chat/x": {"model": "x", "message": {"role": "assistant", "content": "hello"}, "done": True},
    }[model]
    server.script = lambda _: Reply(body={k: v for k, v in body.items() if not k.startswith("usage")})
    [uncounted_answer] = await ask(server, call(model=model))
    assert (uncounted_answer.outcome, uncounted_answer.text) == (Outcome.OK, "hello")
    assert (uncounted_answer.cost_usd, len(server.requests)) == (ESTIMATE, 1)


COHERE_TOKENS = {"cached_tokens": 448, "tokens": {"input_tokens": 506, "output_tokens": 4}}
COHERE_USAGE = COHERE_TOKENS | {"billed_units": {"input_tokens": 11, "output_tokens": 3}}
"""Of a recorded reply. The tokens of Cohere's own prompt are not billed (docs.cohere.com/reference/chat)."""
CACHED_PROMPT = {"prompt_tokens": 100, "completion_tokens": 5, "cached_tokens": 60}
TOTAL_WITH_THOUGHTS = {"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 145}
"""As Gemini sends it by OpenAI's protocol (github.com/Clarifai/clarifai-python/pull/978)."""
TOTAL_WITH_CACHED = {
    "prompt_tokens": 40, "completion_tokens": 5, "total_tokens": 105, "prompt_tokens_details": {"cached_tokens": 60},
}  # fmt: skip
TOTAL_WITH_WRITTEN = {**TOTAL_WITH_CACHED, "total_tokens": 125, "cache_creation_input_tokens": 20}
TOTAL_WITH_ALL = {**TOTAL_WITH_WRITTEN, "total_tokens": 134, "completion_tokens_details": {"reasoning_tokens": 9}}
THOUGHTS_AS_CACHED = {
    "prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 145, "prompt_tokens_details": {"cached_tokens": 40},
    "completion_tokens_details": {"reasoning_tokens": 40},
}  # fmt: skip
WRITTEN_PROMPT = {"prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": {"cache_write_tokens": 80}}
WRITTEN_INPUT = {"input_tokens": 20, "cache_creation_input_tokens": 80, "output_tokens": 5}


BILLED: dict[str, tuple[str, dict[str, Any], tuple[int, int, int | None], float]] = {
    "Cohere's billed units": ("cohere_chat/x", COHERE_USAGE, (11, 3, None), 11 + 6),
    "Cohere's counts without billed ones": ("cohere_chat/x", COHERE_TOKENS, (506, 4, None), 506 + 8),
    "Moonshot's cached tokens": ("moonshot/x", CACHED_PROMPT, (100, 5, 60), 40 + 30 + 10),
    "thoughts in the total alone": ("openai/x", TOTAL_WITH_THOUGHTS, (100, 45, None), 100 + 90),
    "cached tokens in the total": ("openai/x", TOTAL_WITH_CACHED, (40, 5, 60), 40 + 10),
    "cached and written tokens in the total": ("openai/x", TOTAL_WITH_WRITTEN, (40, 5, 60), 40 + 5 + 10),
    "cached and written tokens and thoughts in the total": ("openai/x", TOTAL_WITH_ALL, (40, 14, 60), 40 + 5 + 28),
    "as many thoughts as cached tokens": ("openai/x", THOUGHTS_AS_CACHED, (100, 45, 40), 60 + 20 + 90),
    "OpenAI's cache writes": ("openai/x", WRITTEN_PROMPT, (100, 5, None), 100 + 20 + 10),
    "Anthropic's cache writes": ("anthropic/x", WRITTEN_INPUT, (100, 5, 0), 100 + 20 + 10),
}


@pytest.mark.parametrize("kind", BILLED)
async def test_what_the_provider_bills_is_charged(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    model, usage, tokens, usd = BILLED[kind]
    forms = {"cohere_chat/x": cohere("COMPLETE"), "anthropic/x": anthropic("end_turn", "hello")}
    body = forms.get(model, openai("stop", "hello")) | {"usage": usage}
    monkeypatch.setattr("auditor.models.endpoint.token_price", lambda _: PRICE._replace(cache_write_fee_usd=0.25))
    server.script = lambda _: Reply(body=body)
    [billed] = await ask(server, call(model=model))
    assert (billed.prompt_tokens, billed.completion_tokens, billed.cached_tokens) == tokens
    assert (billed.cost_usd, billed.attempts[0].estimated) == (usd, False)


@pytest.mark.parametrize(
    ("reply", "usd", "estimated"),
    [
        (lambda: completion(""), 100 + 40, False), (lambda: completion("", usage=False), ESTIMATE, True),
        (lambda: Reply(body={"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 0}}), 7, False),
        (lambda: Reply(raw=b"<html>gateway</html>"), ESTIMATE, True),
        (lambda: Reply(after=NEVER), ESTIMATE, True), (lambda: Reply(drop=True), ESTIMATE, True),
        (lambda: error(500, "no"), 0, False), (lambda: error(400, "no"), 0, False),
        (lambda: error(429, "slow", headers={"retry-after": "0"}), 0, False),
    ],
    ids=["empty", "empty, uncounted", "no choices", "no JSON", "no answer in time", "dropped", "500", "400", "429"],
)  # fmt: skip
async def test_every_request_is_charged_by_its_outcome(
    server: FakeServer, reply: Any, usd: float, estimated: bool
) -> None:
    server.script = lambda r: answer(r) if r.number == 0 else reply()
    limits: dict[str, Any] = {"deadline_s": 5.0} if reply().status == 429 else {}  # a call is refused until then
    _, failed = await ask(server, call(0), call(1), timeout_s=3 if reply().after is NEVER else 60, **limits)
    assert failed.outcome is not Outcome.OK
    assert {(a.cost_usd, a.estimated) for a in failed.attempts} == {(usd, estimated)}
    assert failed.cost_usd == usd * len(failed.attempts)


async def test_a_call_costs_what_all_its_attempts_cost(server: FakeServer) -> None:
    replies = {0: completion(""), 1: error(503, "busy"), 2: completion("hello")}
    server.script = lambda r: replies[r.number]
    [retried_answer] = await ask(server, call(), max_attempts=3)
    assert [a.cost_usd for a in retried_answer.attempts] == [140, 0, 140]
    assert [a.completion_tokens for a in retried_answer.attempts] == [20, None, 20]
    assert retried_answer.cost_usd == 280


async def test_an_unaccepted_connection_costs_nothing() -> None:
    with ExitStack() as sockets:
        server = sockets.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(8):  # once its queue is full, the system accepts no connection
            client = sockets.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(server.getsockname())
        silent_url = f"http://127.0.0.1:{server.getsockname()[1]}/v1"
        model = {"name": "m", "model": "openai/x", "api_base": silent_url, "price": DOLLARS}
        async with closing(LocalDispatcher([ModelSection.model_validate(model)])) as dispatcher:
            await dispatcher.send(call(), 1, 3.0)  # the first request includes slow set-up
            reply = await dispatcher.send(call(), 2, 3.0)
    assert (reply.answer.outcome, reply.unreachable, reply.answer.cost_usd) == (Outcome.TIMEOUT, True, 0.0)
    assert reply.answer.attempts[0].estimated is False


async def test_a_refused_connection_costs_nothing() -> None:
    refusing = {"name": "m", "model": "openai/x", "api_base": "http://127.0.0.1:9/v1", "price": DOLLARS}
    async with closing(LocalDispatcher([ModelSection.model_validate(refusing)])) as dispatcher:
        reply = await dispatcher.send(call(), 1, 60.0)
    assert (reply.answer.attempts[0].cost_usd, reply.answer.attempts[0].estimated) == (0.0, False)


@pytest.mark.parametrize("usage", ["absent", "negative"])
async def test_the_budget_stops_a_run_whose_provider_reports_no_usable_token_counts(
    server: FakeServer, usage: str
) -> None:
    server.script = lambda _: Reply(body=openai("stop", "hello", UNUSABLE_USAGE[usage]))
    answers = await ask(server, *(call(i) for i in range(4)), budget_usd=2.5 * ESTIMATE)
    assert [a.outcome for a in answers] == [Outcome.OK] * 2 + [Outcome.OVER_BUDGET] * 2


async def run(server: FakeServer, db: Database, audit_id: int, *calls: Call, **limits: Any) -> list[Answer]:
    """Complete calls as a new run whose budget is reduced by the cost of earlier runs."""
    spent_usd = costs.sum_spending(db, audit_id).usd
    async with open_gateway(section(server), spent_usd=spent_usd, **limits) as gateway:
        client = RecordingClient(gateway, CallRecorder(db, audit_id, f"run {len(server.requests)}"))
        return [await client.complete(c) for c in calls]


async def test_all_attempts_are_charged_and_count_against_the_next_runs_budget(
    server: FakeServer, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("auditor.models.retries.INITIAL_BACKOFF_S", 0.0)
    audit = save_sample_audit(db)
    server.script = lambda _: completion("")  # a reasoning model that says nothing of its reasoning
    empty_answers = await run(server, db, audit.id, *(call(i) for i in range(3)), max_attempts=6)
    assert len(server.requests) == 18
    assert [a.cost_usd for a in empty_answers] == [6 * 140.0] * 3
    assert costs.sum_audit_cost(db, audit.id) == (18 * 140.0, 0)
    [row] = costs.count_calls(db, audit.id)
    assert (row.sums.calls, row.sums.answers, row.sums.attempts, row.cost_usd) == (3, 0, 18, 6 * 140.0)
    assert (row.sums.prompt_tokens, row.sums.completion_tokens, row.sums.estimated_attempts) == (1800, 360, 0)
    [over_budget_answer] = await run(server, db, audit.id, call(3), budget_usd=18 * 140.0 + 50)
    assert (over_budget_answer.outcome, len(server.requests)) == (Outcome.OVER_BUDGET, 18)


async def test_requests_in_a_tier_without_a_price_count_against_the_next_runs_budget(
    server: FakeServer, db: Database
) -> None:
    """Their cost is unknown; by the usual price of the model, it is at least this much."""
    audit = save_sample_audit(db)
    reply = completion("hello")  # 100 and 20 tokens
    server.script = lambda _: Reply(body=reply.body | {"service_tier": "interplanetary"})
    model = model_section(server, base_model="gpt-4o")
    async with open_gateway(model) as gateway:
        answer = await RecordingClient(gateway, CallRecorder(db, audit.id, "run")).complete(call(0))
    audit_config = config(server.url).model_copy(update={"models": [model]})
    assert (answer.outcome, answer.cost_usd) == (Outcome.OK, None)
    assert sum_spending(db, audit.id, audit_config).usd == pytest.approx(100 * 2.5e-6 + 20 * 10e-6)


async def test_requests_without_a_price_and_without_token_counts_count_against_the_next_runs_budget(
    server: FakeServer, db: Database
) -> None:
    """Nothing was known of what they cost: they counted as free."""
    audit = save_sample_audit(db)
    server.script = lambda _: Reply(body=openai("stop", "hello", {}) | {"service_tier": "interplanetary"})
    model = model_section(server, base_model="gpt-4o")
    async with open_gateway(model) as gateway:
        answer = await RecordingClient(gateway, CallRecorder(db, audit.id, "run")).complete(call(0))
    audit_config = config(server.url).model_copy(update={"models": [model]})
    assert (answer.cost_usd, answer.prompt_tokens, answer.completion_tokens) == (None, None, None)
    spent_usd = sum_spending(db, audit.id, audit_config).usd
    assert spent_usd == pytest.approx(2 * 2.5e-6 + 50 * 10e-6, rel=0.5)  # two tokens and the limit of 50
    assert sum_spending(db, audit.id, config(server.url)).usd == 0  # without a price there is no estimate


async def test_answers_that_another_audit_paid_for_do_not_count_against_the_budget(
    server: FakeServer, db: Database
) -> None:
    server.script = lambda _: completion("hello")
    paid, reusing = save_sample_audit(db, name="paid"), save_sample_audit(db, name="reusing")
    await run(server, db, paid.id, *(call(i) for i in range(5)))
    costs.record_calls(db, reusing.id, [("m", "direct", call(i).key) for i in range(6)])
    assert costs.sum_audit_cost(db, reusing.id).usd == 5 * 140
    [new_answer] = await run(server, db, reusing.id, call(5), budget_usd=2 * 140.0)
    assert new_answer.outcome is Outcome.OK
    assert costs.sum_spending(db, reusing.id) == (140, 0)
    assert costs.sum_spending(db, paid.id) == (5 * 140, 0)


async def test_requests_in_flight_when_a_run_was_killed_count_against_the_budget(
    server: FakeServer, db: Database
) -> None:
    audit = save_sample_audit(db)
    server.script = lambda _: completion("hello")
    await run(server, db, audit.id, call(0))
    for sample in (1, 2):
        await ledger.record_dispatch(db, "killed", audit.id, call(sample))
    assert costs.sum_spending(db, audit.id) == (3 * 140, 2 * 140)
    answers = await run(server, db, audit.id, call(1), call(2), budget_usd=4.9 * 140)
    assert [answer.outcome for answer in answers] == [Outcome.OK, Outcome.OVER_BUDGET]
    await ledger.record_dispatch(db, "killed", audit.id, replace(call(3), purpose=Purpose.REVIEW))
    assert costs.sum_spending(db, audit.id) == (5 * 140, 3 * 140)
    # Calls are recorded before they wait for their turn: no more were sent than the model's concurrency.
    assert costs.sum_spending(db, audit.id, {"m": 2, "other": 1}) == (4 * 140, 2 * 140)
    await ledger.record_dispatch(db, "killed again", audit.id, call(4))
    assert costs.sum_spending(db, audit.id, {"m": 2}) == (5 * 140, 3 * 140)


async def test_estimated_costs_are_counted_separately_and_an_unknown_price_stays_unknown(
    server: FakeServer, db: Database
) -> None:
    audit = save_sample_audit(db)
    server.script = lambda r: completion("hello", usage=r.number > 0)
    await run(server, db, audit.id, call(0), call(1))
    rows = costs.count_calls(db, audit.id)
    assert sum(r.estimated_usd * r.sums.calls for r in rows) == ESTIMATE
    assert sum(r.sums.estimated_attempts for r in rows) == 1
    assert costs.sum_audit_cost(db, audit.id).usd == ESTIMATE + 140
    async with open_gateway(section(server, price=None)) as gateway:
        await RecordingClient(gateway, CallRecorder(db, audit.id, "unpriced")).complete(call(2))
    assert costs.sum_audit_cost(db, audit.id) == (ESTIMATE + 140, 1)


async def test_the_answer_in_the_ledger_has_the_cost_of_all_attempts(server: FakeServer, db: Database) -> None:
    audit = save_sample_audit(db)
    server.script = lambda r: completion("" if r.number == 0 else "hello")
    await run(server, db, audit.id, call(), max_attempts=3)
    assert ledger.load_answers(db, [call().key])[call().key].cost_usd == 280


def test_without_max_tokens_the_models_largest_answer_is_estimated() -> None:
    listed_call = Call("m", "openai/gpt-4.1", (Message("user", "hi there"),), Purpose.DIRECT)
    assert charge_estimate(listed_call, PRICE) == RequestCharge(None, None, 2 + 2 * 32_768, True)
    unlisted_call = replace(listed_call, model="openai/unheard-of")
    assert charge_estimate(unlisted_call, PRICE).usd == 2 + 2 * DEFAULT_MAX_OUTPUT_TOKENS
    assert charge_estimate(replace(listed_call, params={"max_completion_tokens": 9}), PRICE).usd == 2 + 2 * 9
    assert charge_estimate(listed_call, None) == RequestCharge(None, None, None, False)


def test_each_prompt_of_a_measurement_is_charged() -> None:
    ends = (" right", " wrong")
    echo_call = Call(
        "m", "openai/x", (Message("user", "It is"),), Purpose.LOGPROB, params={"max_tokens": 1},
        measure=LogprobMeasure.ECHO, continuations=ends,
    )  # fmt: skip
    assert charge_estimate(echo_call, PRICE).usd == math.ceil(22 / 4) + 2
    assert charge_usage(echo_call, PRICE, TokenUsage(8, None), 0, has_text=True) == RequestCharge(8, 0, 8.0, False)


BUDGET = LimitsSection(budget_usd=1.0)
DEPLOYMENT = ModelSection(name="d", model="azure/our-deployment", api_base="https://ours.openai.azure.com")
SERVER = ModelSection(name="s", model="openai/local", api_base="http://localhost:8000/v1")


def test_the_listed_price_of_the_base_model_holds_for_a_deployment_of_any_name() -> None:
    assert token_price(DEPLOYMENT) is None
    with_base_model = DEPLOYMENT.model_copy(update={"base_model": "azure/gpt-4o"})
    assert token_price(with_base_model) == listed_token_price("azure/gpt-4o") is not None
    require_prices([with_base_model], BUDGET)


@pytest.mark.parametrize(
    "model", ["perplexity/sonar", "openai/gpt-4o-search-preview", "perplexity/pplx-7b-online", "dashscope/qwen-turbo"]
)
def test_a_listed_price_that_is_not_all_there_is_to_pay_is_unknown(model: str) -> None:
    assert listed_token_price(model) is None
    with pytest.raises(ConfigError, match="the price of 's' is unknown"):
        require_prices([ModelSection(name="s", model=model)], BUDGET)


@pytest.mark.parametrize(
    ("model", "listed"),
    [("deepseek/deepseek-v4-flash", True), ("openrouter/deepseek/deepseek-v4-flash", False), ("openai/gpt-4o", True),
     ("github/gpt-4o", False), ("gpt-4o", True), ("vertex_ai/gemini-2.5-flash", True),
     ("cohere_chat/command-a-03-2025", True), ("mistral/mistral-small-latest", True),
     ("bedrock/eu.anthropic.claude-sonnet-4-5-20250929-v1:0", True)],
)  # fmt: skip
def test_the_price_of_another_provider_with_a_model_of_that_name_is_not_taken(model: str, listed: bool) -> None:
    assert (listed_token_price(model) is not None) == listed


def test_a_batch_has_its_price_in_each_tier_and_that_of_the_place_of_inference() -> None:
    """A batch in the United States was charged as one at the listed price."""
    model = "claude-opus-4-6"
    half, listed = known(listed_token_price(model)).scaled_by(0.5), ListedPrice(model, BATCH_TIER)
    assert served_token_price(half, listed, "batch") == served_token_price(half, listed, "standard") == half
    assert served_token_price(half, listed, "batch", "us") == half.scaled_by(1.1)


ARN = "arn:aws:bedrock:eu-central-1:123456789012"
SONNET = "eu.anthropic.claude-sonnet-4-5-20250929-v1:0"


@pytest.mark.parametrize("name", [f"converse/{SONNET}", f"invoke/{SONNET}", f"{ARN}:inference-profile/{SONNET}"])
def test_a_model_of_bedrock_costs_the_same_by_each_of_its_names(name: str) -> None:
    assert listed_token_price(f"bedrock/{name}") == listed_token_price(f"bedrock/{SONNET}") is not None


@pytest.mark.parametrize("kind", ["application-inference-profile", "provisioned-model", "imported-model"])
def test_a_resource_of_an_account_has_no_listed_price(kind: str) -> None:
    assert listed_token_price(f"bedrock/converse/{ARN}:{kind}/{SONNET}") is None


def test_the_fee_for_prompt_tokens_that_are_written_to_a_cache_is_listed_charged_and_reserved() -> None:
    price, without_fee = known(listed_token_price("openai/gpt-5.6")), known(listed_token_price("openai/gpt-4.1"))
    assert price.cache_write_fee_usd == pytest.approx(price.prompt_usd / 4)
    assert price.scaled_by(0.5).request_cost(1000, 0, 0, 800) == pytest.approx(price.prompt_usd * (1000 + 200) / 2)
    assert without_fee.cache_write_fee_usd == 0
    prices = (price, price._replace(cache_write_fee_usd=0.0))
    reserved_usd, usd_without_fee = (Budget(1.0).estimate_max_cost(call(), each) for each in prices)
    assert reserved_usd - usd_without_fee == pytest.approx(8 / 3 * price.prompt_usd / 4)


def test_the_listed_price_is_that_of_the_tier_and_unknown_with_a_fee() -> None:
    usual = ModelSection(name="g", model="openai/gpt-5")
    settings: list[dict[str, Any]] = [
        {}, {"service_tier": "flex"}, {"extra_body": {"service_tier": "priority"}}, {"web_search_options": {}},
        {"service_tier": "unheard-of"}, {"service_tier": "default"},
    ]  # fmt: skip
    sections = [usual.model_copy(update={"params": params}) for params in settings]
    price, flex_price, priority_price, searching_price, fast_price, default_price = map(token_price, sections)
    assert price is not None
    assert price == default_price
    assert flex_price is None or flex_price.prompt_usd < price.prompt_usd
    assert priority_price is None or priority_price.prompt_usd > price.prompt_usd
    assert searching_price is fast_price is None
    declared = {"price": Price(input=1e6, output=2e6)}
    assert token_price(sections[3].model_copy(update=declared)) == TokenPrice(1.0, 2.0, 1.0)


def test_the_configs_price_comes_before_that_of_the_base_model() -> None:
    priced = DEPLOYMENT.model_copy(update={"base_model": "azure/gpt-4o", "price": Price(input=1e6, output=2e6)})
    assert token_price(priced) == TokenPrice(1.0, 2.0, 1.0)


def test_the_base_model_says_the_family_unless_the_config_does() -> None:
    with_base_model = DEPLOYMENT.model_copy(update={"base_model": "azure/gpt-4o"})
    assert (DEPLOYMENT.resolved_family, with_base_model.resolved_family) == ("our-deployment", "openai")
    assert with_base_model.model_copy(update={"family": "ours"}).resolved_family == "ours"


def test_the_listed_limit_of_the_base_model_bounds_a_call_without_one() -> None:
    call = Call("d", "azure/our-deployment", (Message("user", "hi there"),), Purpose.DIRECT)
    with_base_model = replace(call, base_model="openai/gpt-4.1")
    assert charge_estimate(with_base_model, TokenPrice(0.0, 1.0, 0.0)).usd == 32_768
    assert with_base_model.key == call.key


@pytest.mark.parametrize(
    ("models", "advice"),
    [
        ([SERVER], "For 's', add price = { input = …, output = … } in US dollars per million tokens"),
        ([DEPLOYMENT], "For 'd', add the model behind the Azure deployment, such as base_model = \"azure/gpt-4o\"."),
        ([DEPLOYMENT], 'base_model = "azure/gpt-4o". Or add price = { input'),
        ([DEPLOYMENT, SERVER], "For 's', add price"),
        ([DEPLOYMENT.model_copy(update={"base_model": "azure/gpt-unheard"})],
         "Correct base_model of 'd': 'azure/gpt-unheard' has no listed price. Or add price"),
    ],
)  # fmt: skip
def test_a_budget_without_a_price_names_the_key_to_add(models: list[ModelSection], advice: str) -> None:
    with pytest.raises(ConfigError) as refused:
        require_prices(models, BUDGET)
    assert advice in refused.value.how_to_fix
    assert refused.value.how_to_fix.endswith("Or remove the budget.")


def test_without_a_budget_no_price_is_needed() -> None:
    require_prices([DEPLOYMENT, SERVER], LimitsSection())


def test_tokens_that_are_written_to_a_cache_for_an_hour_have_the_price_of_an_hour() -> None:
    """They were charged as those that are written for five minutes, at 1.25 times the prompt's price instead of 2."""
    price = known(listed_token_price("anthropic/claude-opus-4-6"))
    assert price.request_cost(1000, 0, 0, 800, 800) == pytest.approx(price.prompt_usd * (1000 + 800))
    assert price.request_cost(1000, 0, 0, 800, 300) == pytest.approx(price.prompt_usd * (1000 + 500 / 4 + 300))
    short, hour = (
        Budget(1.0).estimate_max_cost(call(cache_control={"type": "ephemeral"} | ttl), price)
        for ttl in ({}, {"ttl": "1h"})
    )
    assert hour - short == pytest.approx(8 / 3 * price.prompt_usd * 3 / 4)


def test_a_configured_price_of_writing_to_a_cache_is_that_of_an_hour_too() -> None:
    settings = {"input": 1.0, "output": 2.0, "cache_write": 1.5}
    price = known(token_price(ModelSection(name="m", model="anthropic/x", price=Price(**settings))))
    assert price.request_cost(1000, 0, 0, 800, 800) == pytest.approx(1000e-6 + 400e-6)
