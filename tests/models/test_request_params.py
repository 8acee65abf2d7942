"""The budget holds for every parameter that a config may have, however the server counts tokens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from auditor.config import LimitsSection, ModelSection
from auditor.domain import Call, Capability, Message, Outcome, Purpose, ReasoningSettings
from auditor.errors import ConfigError
from auditor.models.request_params import check_params, max_output_tokens
from tests.support.audit_configs import KEY_VARIABLE
from tests.support.cli_runner import fail, succeed
from tests.support.fake_server import FakeServer, Reply, Request, completion
from tests.support.gateway_calls import ask, open_gateway

PROMPT_TOKENS, CONCURRENCY, BUDGET_USD = 10, 5, 0.05
OUTPUT_USD = 100 / 1e6
"""Price of an output token in US dollars."""

Usage = dict[str, Any]
COUNTS: dict[str, Callable[[int, int], Usage]] = {
    "reasoning within the completion": lambda text, thinking: {
        "completion_tokens": text + thinking, "total_tokens": PROMPT_TOKENS + text + thinking,
        "completion_tokens_details": {"reasoning_tokens": thinking},
    },
    "reasoning beside the completion, in the total": lambda text, thinking: {
        "completion_tokens": text, "total_tokens": PROMPT_TOKENS + text + thinking,
        "completion_tokens_details": {"reasoning_tokens": thinking},
    },
    "reasoning beside the completion, without a total": lambda text, thinking: {
        "completion_tokens": text, "completion_tokens_details": {"reasoning_tokens": thinking},
    },
    "reasoning among the counts themselves": lambda text, thinking: {
        "completion_tokens": text, "total_tokens": PROMPT_TOKENS + text + thinking, "reasoning_tokens": thinking,
    },
    "as floats": lambda text, thinking: {
        "completion_tokens": float(text + thinking), "total_tokens": float(PROMPT_TOKENS + text + thinking),
    },
}  # fmt: skip
"""How servers count tokens, as a function of the tokens of the text and of hidden reasoning."""
PARAMS: dict[str, tuple[dict[str, Any], int]] = {
    "none": ({}, 50),
    "max_tokens": ({"max_tokens": 60}, 60),
    "max_completion_tokens": ({"max_completion_tokens": 80}, 80),
    "a limit in extra_body": ({"extra_body": {"max_new_tokens": 90}}, 90),
    "a nested limit": ({"extra_body": {"options": {"num_predict": 70}}}, 70),
    "a budget of thinking": ({"extra_body": {"thinking": {"type": "enabled", "budget_tokens": 40}}}, 90),
    "OpenRouter's budget": ({"extra_body": {"reasoning": {"max_tokens": 40}}}, 90),
    "one answer": ({"n": 1}, 50),
}
"""Parameters, and the tokens that an answer and its reasoning may have with them."""


def call(sample: int = 0, **params: Any) -> Call:
    return Call("m", "openai/x", (Message("user", "hi there"),), Purpose.DIRECT, sample, {"max_tokens": 50, **params})


def section(server_url: str, params: dict[str, Any], model: str = "openai/x") -> ModelSection:
    price = {"input": 0, "output": OUTPUT_USD * 1e6}
    keys = {"name": "m", "model": model, "api_base": server_url, "api_key": f"os.environ/{KEY_VARIABLE}"}
    return ModelSection.model_validate({**keys, "price": price, "params": params, "concurrency": CONCURRENCY})


async def spend(
    server: FakeServer, params: dict[str, Any], n_calls: int = 40, **settings: Any
) -> tuple[float, list[Outcome], list[str]]:
    """What calls cost with a budget, their outcomes, and the notices about limits that were exceeded."""
    notices: list[str] = []
    settings = {"budget_usd": BUDGET_USD, "notify": notices.append} | settings
    async with open_gateway(section(server.url, params), **settings) as gateway:
        answers = await asyncio.gather(*(gateway.complete(call(i, **params)) for i in range(n_calls)))
        excess_notices = [notice for notice in notices if "exceeds its limit" in notice]
        return gateway.budget.spent_usd, [answer.outcome for answer in answers], excess_notices


def metered(usage: Usage) -> Callable[[Request], Reply]:
    """A script whose answers have this usage."""
    body = completion("fine", usage=False).body | {"usage": {"prompt_tokens": PROMPT_TOKENS, **usage}}
    return lambda _: Reply(body=body, delay_s=0.01)


@pytest.mark.parametrize("counting", COUNTS)
@pytest.mark.parametrize("name", PARAMS)
async def test_the_budget_holds_for_each_parameter_and_way_of_counting(
    server: FakeServer, name: str, counting: str
) -> None:
    """Answers as long as their limits allow never cost more than the budget, and all of their tokens are charged."""
    params, allowed = PARAMS[name]
    text, thinking = allowed // 3, allowed - allowed // 3
    server.script = metered(COUNTS[counting](text, thinking))
    spent_usd, outcomes, notices = await spend(server, params)
    assert spent_usd == pytest.approx(outcomes.count(Outcome.OK) * allowed * OUTPUT_USD)
    assert BUDGET_USD - allowed * OUTPUT_USD < spent_usd <= BUDGET_USD
    assert (outcomes.count(Outcome.OVER_BUDGET) > 0, notices) == (True, [])


@pytest.mark.parametrize("counting", COUNTS)
async def test_a_server_that_exceeds_its_limit_costs_at_most_the_excess_of_answers_in_flight(
    server: FakeServer, counting: str
) -> None:
    tokens = 130
    server.script = metered(COUNTS[counting](30, tokens - 30))
    spent_usd, outcomes, notices = await spend(server, {})
    assert len(server.requests) == outcomes.count(Outcome.OK)
    assert spent_usd == pytest.approx(len(server.requests) * tokens * OUTPUT_USD)
    # The first call is sent alone, so its excess is known before the others are sent.
    assert spent_usd <= BUDGET_USD
    assert notices == [
        "'m' exceeds its limit: an answer with 130 tokens, where at most 50 were allowed, cost $0.008 more than was "
        "reserved. From now on, this excess is reserved for each request to it too."
    ]


def exceeds_its_limit_later(request: Request) -> Reply:
    """Keep to the limit in the first answer, and exceed it by 450 tokens in all others."""
    return metered(COUNTS["as floats"](20, 480 if request.number else 30))(request)


async def test_answers_in_flight_at_the_first_excess_may_exceed_the_budget_and_no_others(server: FakeServer) -> None:
    server.script = exceeds_its_limit_later
    spent_usd, _, notices = await spend(server, {})
    excess_usd = 450 * OUTPUT_USD
    assert BUDGET_USD < spent_usd <= BUDGET_USD + CONCURRENCY * excess_usd
    assert (len(server.requests), len(notices)) == (1 + CONCURRENCY, 1)


async def test_a_resumed_run_reserves_what_a_request_of_an_earlier_run_has_cost(server: FakeServer) -> None:
    """Else each run could exceed the budget by the answers in flight at its first excess."""
    server.script = exceeds_its_limit_later
    largest_usd = 500 * OUTPUT_USD
    spent_usd, _, _ = await spend(server, {}, budget_usd=2.5 * largest_usd, largest_usd={"m": largest_usd})
    assert 0 < spent_usd <= 2.5 * largest_usd


@pytest.mark.parametrize(
    ("usage", "charged"),
    [
        ({"completion_tokens": 20, "total_tokens": 130, "completion_tokens_details": {"reasoning_tokens": 100}}, 120),
        ({"completion_tokens": 120, "total_tokens": 130, "completion_tokens_details": {"reasoning_tokens": 100}}, 120),
        ({"completion_tokens": 20, "completion_tokens_details": {"reasoning_tokens": 100}}, 120),
        ({"completion_tokens": 120, "completion_tokens_details": {"reasoning_tokens": 100}}, 120),
        ({"completion_tokens": 20, "total_tokens": 30, "completion_tokens_details": {"reasoning_tokens": 100}}, 20),
        ({"completion_tokens": 20, "total_tokens": 130}, 120),
        ({"completion_tokens": 20, "total_tokens": 30, "completion_tokens_details": {"reasoning_tokens": 0}}, 20),
    ],
)
@pytest.mark.parametrize("model", ["openai/x", "hosted_vllm/x", "xai/grok-3-mini"])
async def test_reasoning_outside_the_completion_is_charged_only_if_the_counts_show_it(
    server: FakeServer, usage: Usage, charged: int, model: str
) -> None:
    server.script = metered(usage)
    call = Call("m", model, (Message("user", "hi"),), Purpose.DIRECT, 0, {"max_tokens": 50})
    [answer] = await ask(section(server.url, {}, model), call)
    assert (answer.completion_tokens, answer.attempts[0].estimated) == (charged, False)
    assert answer.cost_usd == pytest.approx(charged * OUTPUT_USD)


# --- refused parameters -----------------------------------------------------------------------------------------

REFUSED: dict[str, dict[str, Any]] = {
    "n": {"n": 50}, "n, as a truth value": {"n": True}, "best_of": {"best_of": 4},
    "extra_body.n": {"extra_body": {"n": 50}},
    "generation_config.candidateCount": {"generation_config": {"candidateCount": 2}},
    "num_return_sequences": {"num_return_sequences": 2}, "extra_body.model": {"extra_body": {"model": "a-dearer-one"}},
    "extra_body.messages": {"extra_body": {"messages": []}}, "extra_body.stream": {"extra_body": {"stream": True}},
    "extra_body.models": {"extra_body": {"models": ["a-dearer-one"]}}, "max_tokens": {"max_tokens": -1},
    "max_completion_tokens": {"max_completion_tokens": "many"},
    "extra_body.num_predict": {"extra_body": {"num_predict": 0}}, "web_search_options": {"web_search_options": {}},
    "extra_body.plugins": {"extra_body": {"plugins": [{"id": "web"}]}},
    "service_tier": {"service_tier": "priority"}, "serviceTier": {"serviceTier": {"type": "priority"}},
    "service_tier, of a new name": {"service_tier": "ultrafast"}, "service_tier, as a list": {"service_tier": ["flex"]},
    "extra_body.speed": {"extra_body": {"speed": "fast"}}, "inference_geo": {"inference_geo": "us"},
    "performanceConfig": {"performanceConfig": {"latency": "optimized"}},
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_parameter_that_the_budget_cannot_hold_for_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"model 'm'.*{name.partition(',')[0]}"):
        check_params([section("http://h/v1", REFUSED[name])], LimitsSection(budget_usd=1.0))


async def test_no_request_is_sent_for_a_refused_parameter(server: FakeServer) -> None:
    with pytest.raises(ConfigError, match="the parameter 'n' is not allowed") as refused:
        await spend(server, {"n": 50})
    assert "`samples`" in (refused.value.how_to_fix or "")
    assert server.requests == []


UNSENT: dict[str, Any] = {
    "user": "ada", "organization": "org-1", "callbacks": ["print"], "success_callback": ["print"],
    "default_headers": {"X-A": "b"}, "drop_params": True,
}  # fmt: skip


@pytest.mark.parametrize("name", UNSENT)
async def test_a_parameter_that_would_not_be_sent_is_refused(server: FakeServer, name: str) -> None:
    with pytest.raises(ConfigError, match=rf"parameter '{name}'"):
        await spend(server, {"top_k": 5, name: UNSENT[name]})
    assert server.requests == []


async def test_parameters_that_are_sent_are_not_refused(server: FakeServer) -> None:
    params = {
        "top_k": 5, "repetition_penalty": 1.1,
        "extra_body": {"guided_json": {}, "provider": {"order": ["a"]}},
        "extra_headers": {"X-Plain": "a"}, "stop": ["END"], "reasoning_effort": "low", "logit_bias": {"5": 1},
        "service_tier": "flex",
    }  # fmt: skip
    spent_usd, _, _ = await spend(server, params, 1, budget_usd=1.0)
    assert (len(server.requests), spent_usd > 0) == (1, True)
    assert server.requests[0].body["provider"] == {"order": ["a"]}


@pytest.mark.parametrize(
    ("params", "reasoning", "expected"),
    [
        ({}, None, None),
        ({"max_tokens": 100}, None, 100),
        ({"max_tokens": 100, "max_completion_tokens": 900}, None, 900),
        ({"max_tokens": 100}, ReasoningSettings(None, 2000), 2100),
        ({"max_tokens": 100, "reasoning_effort": "high"}, None, 100 + 4096),
        ({"max_tokens": 100, "thinking": {"type": "enabled", "budget_tokens": 3000}}, None, 3100),
        ({"max_tokens": 100, "generationConfig": {"thinkingConfig": {"thinkingBudget": 64}}}, None, 164),
        ({"max_tokens": 100, "extra_body": {"reasoning": {"max_tokens": 5000}}}, None, 5100),
    ],
)
def test_the_length_that_is_reserved(
    params: dict[str, Any], reasoning: ReasoningSettings | None, expected: int | None
) -> None:
    asked = Call("m", "openai/x", (Message("user", "hi"),), Purpose.DIRECT, 0, params, reasoning=reasoning)
    assert max_output_tokens(asked, Capability()) == expected


def test_the_estimate_refuses_and_counts_as_the_run(tmp_path: Any) -> None:
    text = """
name = "a"
survey = {{ source = "pew2013-sample", countries = ["Germany"], topics = ["getting a divorce"] }}
judges = []
embedding = {{ model = "none" }}
[[models]]
name = "good"
model = "openai/meter"
api_base = "http://127.0.0.1:9/v1"
price = {{ input = 0, output = 10 }}
params = {{ {params} }}
"""
    file = tmp_path / "audit.toml"
    file.write_text(text.format(params="n = 50"))
    fail("estimate", file, code=2, message="the parameter 'n' is not allowed")
    for params in ('user = "ada"', 'organization = "o"', 'top_k = 5, callbacks = ["print"]'):
        file.write_text(text.format(params=params))
        for command in (("estimate", file), ("run", file, "--dry-run")):
            fail(*command, code=2, message="would not be sent to this provider")
    costs = set()
    for params in ("max_completion_tokens = 400", "max_completion_tokens = 9000"):
        file.write_text(text.format(params=params))
        costs.add(succeed("estimate", file, "--json").stdout)
    assert len(costs) == 2
