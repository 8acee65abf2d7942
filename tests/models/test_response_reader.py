"""Successful responses that litellm cannot read are read all the same: they were paid for, and are not asked again."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.config import ModelSection
from auditor.domain import Answer, Call, LogprobMeasure, Message, Outcome, Purpose
from auditor.models.dispatch import LocalDispatcher
from auditor.models.provider_request import ProviderReply
from auditor.models.response_reader import read_response
from tests.support.audit_configs import KEY_VARIABLE
from tests.support.fake_server import FakeServer, Reply

USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
JUDGEMENT = json.dumps({"norms": "a", "reasoning": "b", "score": 0.5})


def chat(message: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A chat completion's body with this message; `changes` are of its choice."""
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}, **changes}
    return {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": USAGE}


async def send_once(server: FakeServer, model: str, body: dict[str, Any], **changes: Any) -> ProviderReply:
    """The reply to one request at a server that always sends this body."""
    server.script = lambda _: Reply(body=body)
    section = ModelSection.model_validate(
        {"name": "m", "model": model, "api_base": server.url, "api_key": f"os.environ/{KEY_VARIABLE}"}
        | {"price": {"input": 1.0, "output": 1.0}}
    )
    dispatcher = LocalDispatcher([section])
    call = Call("m", model, (Message("user", "hi"),), Purpose.DIRECT, params={"max_tokens": 40})
    try:
        return await dispatcher.send(replace(call, **changes), 1, 30.0)
    finally:
        await dispatcher.close()


async def ask(server: FakeServer, model: str, body: dict[str, Any], **changes: Any) -> Answer:
    """The answer to one request; the reply is no failure, so that the gateway would not send it again."""
    reply = await send_once(server, model, body, **changes)
    assert reply.failure is None
    return reply.answer


ODD_BODIES = {
    "no service tier": chat({"content": "hi"}) | {"x_groq": {"id": "req_1"}},
    "a time with a fraction": chat({"content": "hi"}) | {"created": 1.5},
    "a time in words": chat({"content": "hi"}) | {"created": "now"},
    "reasoning as an object": chat({"content": "hi", "reasoning_content": {"a": 1}}),
    "annotations as a text": chat({"content": "hi", "annotations": "x"}),
    "half of the log-probabilities": chat({"content": "hi"}, logprobs={"content": [{"token": "a"}]}),
}


@pytest.mark.parametrize("name", ODD_BODIES)
@pytest.mark.parametrize("model", ["groq/x", "openai/x", "hosted_vllm/x"])
async def test_a_body_that_litellm_cannot_read_is_read_with_its_usage(
    server: FakeServer, model: str, name: str
) -> None:
    answer = await ask(server, model, ODD_BODIES[name])
    assert (answer.outcome, answer.text, answer.finish_reason) == (Outcome.OK, "hi", "stop")
    assert (answer.prompt_tokens, answer.completion_tokens) == (7, 3)
    assert answer.cost_usd == pytest.approx(10e-6)
    assert len(server.requests) == len(answer.attempts) == 1


async def test_tool_arguments_refusals_and_log_probabilities_are_read_without_litellm(server: FakeServer) -> None:
    odd: dict[str, Any] = {"annotations": "x"}
    tool = {
        "content": None,
        "tool_calls": [{"function": {"name": "MoralJudgement", "arguments": json.loads(JUDGEMENT)}}],
    }
    answer = await ask(server, "openai/x", chat(odd | tool), schema="MoralJudgement", max_words=50)
    assert (answer.outcome, json.loads(answer.text or "")) == (Outcome.OK, json.loads(JUDGEMENT))
    answer = await ask(server, "openai/x", chat(odd | {"content": None, "refusal": "No."}))
    assert (answer.outcome, answer.text) == (Outcome.REFUSED, "No.")
    answer = await ask(server, "openai/x", chat(odd | {"content": "half of it"}, finish_reason="length"))
    assert answer.outcome is Outcome.TRUNCATED
    top = [{"token": "A", "logprob": -0.1}, {"token": "B", "logprob": -2}]
    body = chat(odd | {"content": "A"}, logprobs={"content": [{"token": "A", "logprob": -0.1, "top_logprobs": top}]})
    params = {"logprobs": True, "top_logprobs": 20, "max_tokens": 1}
    answer = await ask(server, "openai/x", body, purpose=Purpose.LOGPROB, measure=LogprobMeasure.CHOICE, params=params)
    assert (answer.outcome, json.loads(answer.text or "")) == (Outcome.OK, [["A", -0.1], ["B", -2.0]])


THOUGHTS = {"promptTokenCount": 5, "thoughtsTokenCount": 40, "totalTokenCount": 45}


@pytest.mark.parametrize("usage", [THOUGHTS, {"promptTokenCount": 5, "totalTokenCount": 45}])
@pytest.mark.parametrize("schema", [None, "MoralJudgement"])
@pytest.mark.parametrize(
    "candidates",
    [
        [{"finishReason": "MAX_TOKENS", "index": 0}],
        [{"content": {"role": "model"}, "finishReason": "MAX_TOKENS"}],
        [{"content": {}, "finishReason": "MAX_TOKENS"}],
        [{"content": None, "finishReason": "MAX_TOKENS"}],
        [{"content": {"parts": None}, "finishReason": "MAX_TOKENS"}],
        [{"content": {"parts": [{"text": "hm", "thought": True}]}, "finishReason": "MAX_TOKENS"}],
    ],
)
async def test_gemini_that_thinks_until_the_limit_is_asked_once_and_charged(
    server: FakeServer, candidates: list[Any], schema: str | None, usage: dict[str, int]
) -> None:
    body = {"candidates": candidates, "usageMetadata": usage, "modelVersion": "gemini-2.5-flash"}
    answer = await ask(server, "gemini/gemini-2.5-flash", body, schema=schema, max_words=50 if schema else None)
    assert (answer.outcome, answer.text, answer.finish_reason) == (Outcome.TRUNCATED, None, "MAX_TOKENS")
    assert (answer.prompt_tokens, answer.completion_tokens) == (5, 40)
    assert answer.cost_usd == pytest.approx(45e-6)
    assert len(server.requests) == 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["message", "content", "parts", "text", "logprobs", "usage", "x"]), inner)
    ),
    max_leaves=8,
)


@given(JSON, JSON, JSON)
def test_any_json_is_read_or_left(choices: Any, candidates: Any, usage: Any) -> None:
    for body in ({"choices": choices, "usage": usage}, {"candidates": candidates, "usageMetadata": usage}):
        response = read_response(body)
        assert response is None or response.choices


def test_a_body_of_another_format_is_not_read() -> None:
    assert read_response({"choices": {"0": {}}}) is None
    assert read_response({"output": {"message": {}}}) is None
    assert read_response({"choices": [{"message": {"content": 5}}]}) is None
    assert read_response({}) is None
