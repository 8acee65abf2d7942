"""Successful responses that litellm cannot read are read all the same: they were paid for, and are not asked again."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from auditor.config.providers import provider_of
from auditor.domain import Answer, Call, LogprobMeasure, Message, Outcome, Purpose
from auditor.models.dispatch import LocalDispatcher
from auditor.models.provider_request import ProviderReply
from auditor.models.response_reader import read_response
from tests.support.closing import closing
from tests.support.fake_server import FakeServer, Reply
from tests.support.gateway_calls import model_section

USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
JUDGEMENT = json.dumps({"norms": "a", "reasoning": "b", "score": 0.5})


def chat(message: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A chat completion's body with this message; `changes` are of its choice."""
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}, **changes}
    return {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": USAGE}


async def send_once(server: FakeServer, model: str, body: dict[str, Any], **changes: Any) -> ProviderReply:
    """The reply to one request at a server that always sends this body."""
    server.script = lambda _: Reply(body=body)
    section = model_section(server, model, api_base=server.url, price={"input": 1.0, "output": 1.0})
    call = Call("m", model, (Message("user", "hi"),), Purpose.DIRECT, params={"max_tokens": 40})
    async with closing(LocalDispatcher([section])) as dispatcher:
        return await dispatcher.send(replace(call, **changes), 1, 30.0)


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
    top = [{"token": "A", "logprob": -0.1}, {"token": "B", "logprob": -2.5}]
    body = chat(odd | {"content": "A"}, logprobs={"content": [{"token": "A", "logprob": -0.1, "top_logprobs": top}]})
    params = {"logprobs": True, "top_logprobs": 20, "max_tokens": 1}
    answer = await ask(server, "openai/x", body, purpose=Purpose.LOGPROB, measure=LogprobMeasure.CHOICE, params=params)
    assert (answer.outcome, json.loads(answer.text or "")) == (Outcome.OK, [["A", -0.1], ["B", -2.5]])


@pytest.mark.parametrize("model", ["groq/x", "openai/x", "hosted_vllm/x"])
async def test_an_object_in_place_of_the_text_and_a_refusal_among_its_parts_are_read(
    server: FakeServer, model: str
) -> None:
    body = chat({"content": json.loads(JUDGEMENT)})
    answer = await ask(server, model, body, schema="MoralJudgement", max_words=50)
    assert (answer.outcome, json.loads(answer.text or "")) == (Outcome.OK, json.loads(JUDGEMENT))
    assert (answer.prompt_tokens, answer.completion_tokens) == (7, 3)
    refusal = {"type": "refusal", "refusal": "I cannot help."}
    answer = await ask(server, model, chat({"content": [refusal]}))
    assert (answer.outcome, answer.text) == (Outcome.REFUSED, "I cannot help.")
    answer = await ask(server, model, chat({"content": [{"type": "text", "text": "Well."}, refusal]}))
    assert (answer.outcome, answer.text) == (Outcome.REFUSED, "Well.")


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
        response = read_response(body, provider_of("gemini"))
        assert response is None or response.choices


def test_a_body_of_another_format_is_not_read() -> None:
    assert read_response({"choices": {"0": {}}}, provider_of("openai")) is None
    assert read_response({"output": {"message": {}}}, provider_of("openai")) is None
    assert read_response({"choices": [{"message": {"content": 5}}]}, provider_of("openai")) is None
    assert read_response({"candidates": [{"finishReason": "STOP"}]}, provider_of("anthropic")) is None
    assert read_response({}, provider_of("openai")) is None


# --- OpenAI's Responses API ---------------------------------------------------------------------------------------

THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": []}


def responses_body(*output: dict[str, Any], status: str = "completed", **changes: Any) -> dict[str, Any]:
    """A body of the Responses API with this output, whose tokens are many more than the request's limit of 40."""
    usage = {
        "input_tokens": 7, "input_tokens_details": {"cached_tokens": 4}, "output_tokens": 900,
        "output_tokens_details": {"reasoning_tokens": 800}, "total_tokens": 907,
    }  # fmt: skip
    body = {"id": "resp_1", "object": "response", "created_at": 1, "status": status, "error": None, "model": "m-2026"}
    defaults = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "temperature": 1.0, "top_p": 1.0}
    return body | defaults | {"incomplete_details": None, "output": list(output), "usage": usage, **changes}


def output_message(*parts: dict[str, Any] | str, **changes: Any) -> dict[str, Any]:
    """A message of the output with these parts, or texts."""
    content = [
        {"type": "output_text", "text": part, "annotations": []} if isinstance(part, str) else part for part in parts
    ]
    return {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": content, **changes}


REFUSAL = {"type": "refusal", "refusal": "I cannot help with that."}
CUT_OFF: dict[str, Any] = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
RESPONSES_BODIES: dict[str, tuple[dict[str, Any], Outcome, str | None, str]] = {
    "a whole answer, whatever its tokens": (responses_body(THOUGHT, output_message("hi")), Outcome.OK, "hi",
                                            "completed"),
    "a text in two parts": (responses_body(output_message("h", "i")), Outcome.OK, "hi", "completed"),
    "a remark before the final answer": (responses_body(output_message("Let me see.", phase="commentary"),
                                                        output_message("hi", phase="final_answer")), Outcome.OK, "hi",
                                         "completed"),
    "a refusal": (responses_body(THOUGHT, output_message(REFUSAL)), Outcome.REFUSED, "I cannot help with that.",
                  "completed"),
    "a refusal after a text": (responses_body(output_message("Well.", REFUSAL)), Outcome.REFUSED, "Well.", "completed"),
    "cut off": (responses_body(output_message("h"), **CUT_OFF), Outcome.TRUNCATED, "h", "max_output_tokens"),
    "cut off while it thought": (responses_body(THOUGHT, **CUT_OFF), Outcome.TRUNCATED, None, "max_output_tokens"),
    "a message that is cut off": (responses_body(output_message("h", status="incomplete")), Outcome.TRUNCATED, "h",
                                  "incomplete"),
    "filtered": (responses_body(status="incomplete", incomplete_details={"reason": "content_filter"}), Outcome.REFUSED,
                 None, "content_filter"),
    "cancelled": (responses_body(output_message("hi"), status="cancelled"), Outcome.SERVER_ERROR, None, "cancelled"),
    "in progress": (responses_body(output_message("h"), status="in_progress"), Outcome.SERVER_ERROR, None,
                    "in_progress"),
    "failed": (responses_body(output_message("hi"), status="failed"), Outcome.SERVER_ERROR, None, "failed"),
    "nothing": (responses_body(), Outcome.SERVER_ERROR, None, "completed"),
}  # fmt: skip


@pytest.mark.parametrize("name", RESPONSES_BODIES)
async def test_how_a_response_ended_is_read_from_its_status_and_its_parts(server: FakeServer, name: str) -> None:
    body, outcome, text, finish_reason = RESPONSES_BODIES[name]
    answer = (await send_once(server, "openai/gpt-5-pro", body)).answer
    assert server.requests[-1].path == "/v1/responses"
    assert (answer.outcome, answer.text, answer.finish_reason) == (outcome, text, finish_reason)
    assert (answer.prompt_tokens, answer.completion_tokens, answer.reasoning_tokens) == (7, 900, 800)
    assert answer.served_model == "m-2026"
    assert ("tokens ran out" in (answer.error or "")) == (name == "cut off while it thought")


async def test_a_response_that_failed_has_the_words_of_its_error(server: FakeServer) -> None:
    failure = {"code": "server_error", "message": "The model failed."}
    reply = await send_once(server, "openai/gpt-5-pro", responses_body(status="failed", error=failure))
    assert reply.answer.outcome is Outcome.SERVER_ERROR
    assert "The model failed." in (reply.answer.error or "")


async def test_a_tool_that_a_response_calls_is_the_structured_answer(server: FakeServer) -> None:
    call = {"type": "function_call", "id": "f", "call_id": "c", "name": "ReasonedJudgement", "arguments": JUDGEMENT}
    body = responses_body(THOUGHT, call)
    answer = await ask(server, "openai/gpt-5-pro", body, schema="ReasonedJudgement", max_words=9)
    assert (answer.outcome, answer.text) == (Outcome.OK, JUDGEMENT)
