"""Finish reasons of all providers, read from the response, and the outcome that each gives an answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from auditor.domain import Answer, Call, Message, Outcome, Purpose
from auditor.models.finish_reasons import (
    FinishCategory,
    classify_finish_reason,
    opentelemetry_finish_reason,
    worst_category,
)
from auditor.models.reasoning import sent_output_limit
from tests.support.fake_server import FakeServer, Reply
from tests.support.gateway_calls import ask as ask_gateway, model_section

SCORE = json.dumps({"norms": "a", "reasoning": "b", "score": -0.5})
TOKENS = {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}
AWS = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "an example", "AWS_REGION_NAME": "us-east-1"}


def openai(reason: str | None, text: str | None = SCORE, usage: Any = TOKENS, **fields: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": text, **fields.pop("message", {})}
    choice = {"index": 0, "finish_reason": reason, "message": message, **fields}
    return {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}


def anthropic(reason: str, text: str = SCORE) -> dict[str, Any]:
    head = {"id": "1", "type": "message", "role": "assistant", "model": "m", "stop_reason": reason}
    content = [{"type": "text", "text": text}] if text else []
    return {**head, "content": content, "usage": {"input_tokens": 9, "output_tokens": 5}}


def gemini(reason: str, text: str | None = SCORE, **usage: int) -> dict[str, Any]:
    content: dict[str, Any] = {"role": "model"} | ({"parts": [{"text": text}]} if text else {})
    counts = usage or {"promptTokenCount": 9, "candidatesTokenCount": 5, "totalTokenCount": 14}
    candidate = {"index": 0, "finishReason": reason, "content": content}
    return {"candidates": [candidate], "usageMetadata": counts, "modelVersion": "m"}


def cohere(reason: str) -> dict[str, Any]:
    tokens = {"input_tokens": 9, "output_tokens": 5}
    message = {"role": "assistant", "content": [{"type": "text", "text": SCORE}]}
    return {"id": "1", "message": message, "finish_reason": reason, "usage": {"billed_units": tokens, "tokens": tokens}}


def converse(reason: str) -> dict[str, Any]:
    usage = {"inputTokens": 9, "outputTokens": 5, "totalTokens": 14}
    message = {"role": "assistant", "content": [{"text": SCORE}]}
    return {"output": {"message": message}, "stopReason": reason, "usage": usage, "metrics": {"latencyMs": 1}}


async def ask(
    server: FakeServer, body: dict[str, Any], model: str = "openai/x", max_attempts: int = 6, **fields: Any
) -> Answer:
    server.script = lambda _: Reply(body=body)
    fields = {"purpose": Purpose.DIRECT, "schema": "MoralJudgement"} | fields
    call = Call("m", model, (Message("user", "hi"),), params={"max_tokens": 50}, max_words=9, **fields)
    [answer] = await ask_gateway(model_section(server, model), call, max_attempts=max_attempts, deadline_s=60)
    return answer


@pytest.mark.parametrize(
    ("reason", "category"),
    [
        ("stop", FinishCategory.COMPLETE), ("STOP", FinishCategory.COMPLETE), ("end_turn", FinishCategory.COMPLETE),
        ("COMPLETE", FinishCategory.COMPLETE), ("eos_token", FinishCategory.COMPLETE), (None, FinishCategory.COMPLETE),
        ("<|eot_id|>", FinishCategory.COMPLETE), ("</s>", FinishCategory.COMPLETE),
        ("", FinishCategory.COMPLETE), ("length", FinishCategory.TRUNCATED), ("MAX_TOKENS", FinishCategory.TRUNCATED),
        ("Model_Length", FinishCategory.TRUNCATED),
        ("pause_turn", FinishCategory.TRUNCATED), ("model_context_window_exceeded", FinishCategory.TRUNCATED),
        ("ERROR_LIMIT", FinishCategory.TRUNCATED), ("content_filter", FinishCategory.REFUSED),
        ("SAFETY", FinishCategory.REFUSED), ("RECITATION", FinishCategory.REFUSED),
        ("refusal", FinishCategory.REFUSED), ("guardrail_intervened", FinishCategory.REFUSED),
        ("sensitive", FinishCategory.REFUSED), ("ERROR_TOXIC", FinishCategory.REFUSED),
        ("content_filter: PROHIBITED_CONTENT", FinishCategory.REFUSED), (": x", FinishCategory.UNKNOWN),
        ("ERROR", FinishCategory.FAILED), ("network_error", FinishCategory.FAILED),
        ("insufficient_system_resource", FinishCategory.FAILED), ("abort", FinishCategory.FAILED),
        ("MALFORMED_FUNCTION_CALL", FinishCategory.MALFORMED), ("tool_use", FinishCategory.TOOL_CALL),
        ("FINISH_REASON_UNSPECIFIED", FinishCategory.UNKNOWN), ("a new one", FinishCategory.UNKNOWN),
    ],
)  # fmt: skip
def test_finish_reasons_are_case_insensitive(reason: str | None, category: FinishCategory) -> None:
    assert classify_finish_reason(reason) is category
    assert classify_finish_reason(reason and reason.swapcase()) is category


def test_every_reason_of_litellm_is_known_and_classified_at_least_as_severely() -> None:
    from litellm.litellm_core_utils.core_helpers import _FINISH_REASON_MAP

    severe_categories = {"length": FinishCategory.TRUNCATED, "content_filter": FinishCategory.REFUSED}
    for reason, mapped in _FINISH_REASON_MAP.items():
        if reason != "FINISH_REASON_UNSPECIFIED":
            assert classify_finish_reason(reason) is not FinishCategory.UNKNOWN, reason
        assert classify_finish_reason(reason) is severe_categories.get(mapped, classify_finish_reason(reason)), reason


def test_the_worse_of_two_reasons_counts() -> None:
    assert worst_category("weird", "stop") is FinishCategory.UNKNOWN
    assert worst_category("stop", "length") is FinishCategory.TRUNCATED
    assert worst_category("length", "content_filter") is FinishCategory.REFUSED


def test_reasons_have_opentelemetrys_names() -> None:
    names = {"END_TURN": "stop", "MAX_TOKENS": "length", "weird": "weird", None: None}
    assert {reason: opentelemetry_finish_reason(reason) for reason in names} == names


FINISH_CASES: list[tuple[str, dict[str, Any], Outcome, str]] = [
    ("openai/x", openai("model_length"), Outcome.TRUNCATED, "model_length"),
    ("openai/x", openai("MAX_TOKENS"), Outcome.TRUNCATED, "MAX_TOKENS"),
    ("mistral/x", openai("model_length"), Outcome.TRUNCATED, "model_length"),
    ("openrouter/x", openai("stop", native_finish_reason="MAX_TOKENS"), Outcome.TRUNCATED, "MAX_TOKENS"),
    ("openrouter/x", openai("length", native_finish_reason="STOP"), Outcome.TRUNCATED, "length"),
    ("openai/x", openai("stop", error=None), Outcome.OK, "stop"),
    ("openai/x", openai("sensitive"), Outcome.REFUSED, "sensitive"),
    ("openai/x", openai("content_filter: RECITATION", None), Outcome.REFUSED, "content_filter: RECITATION"),
    ("openai/x", openai("MALFORMED_RESPONSE"), Outcome.UNPARSED, "MALFORMED_RESPONSE"),
    ("anthropic/x", anthropic("pause_turn"), Outcome.TRUNCATED, "pause_turn"),
    ("anthropic/x", anthropic("model_context_window_exceeded"), Outcome.TRUNCATED, "model_context_window_exceeded"),
    ("anthropic/x", anthropic("refusal"), Outcome.REFUSED, "refusal"),
    ("anthropic/x", anthropic("end_turn"), Outcome.OK, "end_turn"),
    ("gemini/x", gemini("MAX_TOKENS"), Outcome.TRUNCATED, "MAX_TOKENS"),
    ("gemini/x", gemini("SPII"), Outcome.REFUSED, "SPII"),
    ("gemini/x", gemini("STOP"), Outcome.OK, "STOP"),
    ("cohere_chat/x", cohere("MAX_TOKENS"), Outcome.TRUNCATED, "MAX_TOKENS"),
    ("cohere_chat/x", cohere("ERROR_TOXIC"), Outcome.REFUSED, "ERROR_TOXIC"),
    ("cohere_chat/x", cohere("COMPLETE"), Outcome.OK, "COMPLETE"),
    ("bedrock/converse/x", converse("end_turn"), Outcome.OK, "end_turn"),
    ("bedrock/converse/x", converse("max_tokens"), Outcome.TRUNCATED, "max_tokens"),
    ("bedrock/converse/x", converse("model_context_window_exceeded"), Outcome.TRUNCATED,
     "model_context_window_exceeded"),
    ("bedrock/converse/x", converse("guardrail_intervened"), Outcome.REFUSED, "guardrail_intervened"),
    ("bedrock/converse/x", converse("malformed_model_output"), Outcome.UNPARSED, "malformed_model_output"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("model", "body", "outcome", "reason"), FINISH_CASES, ids=[f"{w[0]}-{w[3]}" for w in FINISH_CASES]
)
async def test_a_cut_off_or_filtered_answer_never_counts_as_complete(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch, model: str, body: dict[str, Any], outcome: Outcome, reason: str
) -> None:
    for name, value in AWS.items():
        monkeypatch.setenv(name, value)
    answer = await ask(server, body, model)
    assert (answer.outcome, answer.finish_reason, len(server.requests)) == (outcome, reason, 1)


@pytest.mark.parametrize(
    "body",
    [
        openai("error"),
        openai("error", native_finish_reason="stop"),
        openai(None, error={"code": 502, "message": "Provider disconnected"}),
        openai("stop", error={"code": 502, "message": "Provider disconnected"}),
    ],
    ids=["as the reason", "as OpenRouter's, beside its provider's", "in the choice", "in the choice, beside a reason"],
)
async def test_a_failure_with_status_200_is_retried_and_its_text_is_dropped(
    server: FakeServer, body: dict[str, Any]
) -> None:
    answer = await ask(server, body, max_attempts=2)
    assert (answer.outcome, answer.text, len(server.requests)) == (Outcome.SERVER_ERROR, None, 2)
    assert "finish reason 'error'" in (answer.error or "")


@pytest.mark.parametrize(
    ("text", "schema", "purpose", "outcome"),
    [
        (SCORE, "MoralJudgement", Purpose.DIRECT, Outcome.OK),
        (SCORE[:-2], "MoralJudgement", Purpose.DIRECT, Outcome.UNPARSED),
        (f"So: {SCORE} and so", "MoralJudgement", Purpose.DIRECT, Outcome.UNPARSED),
        ("Step 1. So.\nSCORE = 0.5", None, Purpose.DIRECT, Outcome.OK),  # the score parser decides
        ("It is right to", None, Purpose.declare("moral"), Outcome.UNPARSED),
    ],
)
async def test_an_answer_with_an_unknown_reason_counts_only_where_it_parses_in_full(
    server: FakeServer, text: str, schema: str | None, purpose: Purpose, outcome: Outcome
) -> None:
    answer = await ask(server, openai("brand_new", text), schema=schema, purpose=purpose)
    assert (answer.outcome, answer.finish_reason, answer.text) == (outcome, "brand_new", text)
    assert outcome is Outcome.OK or "'brand_new' is not documented" in (answer.error or "")


async def test_an_answer_without_a_reason_is_complete_unless_it_used_max_tokens(server: FakeServer) -> None:
    answer = await ask(server, openai(None))
    assert (answer.outcome, answer.finish_reason) == (Outcome.OK, None)
    assert (await ask(server, openai(None, usage=FULL_USAGE))).outcome is Outcome.TRUNCATED


FULL_USAGE = {"prompt_tokens": 9, "completion_tokens": 50, "total_tokens": 59}
REASONING_USAGE = {**FULL_USAGE, "completion_tokens_details": {"reasoning_tokens": 50}}
GEMINI_USAGE = {"promptTokenCount": 9, "thoughtsTokenCount": 50, "totalTokenCount": 59}
HIDDEN_REASONING: dict[str, tuple[str, dict[str, Any]]] = {
    "finish length": ("openai/x", openai("length", None, FULL_USAGE)),
    "all tokens are reasoning": ("openai/x", openai("stop", "", REASONING_USAGE)),
    "reasoning alone": ("openai/x", openai("stop", None, message={"reasoning_content": "Let me think"})),
    "anthropic": ("anthropic/x", anthropic("max_tokens", "")),
    "gemini without parts": ("gemini/x", gemini("MAX_TOKENS", None, **GEMINI_USAGE)),
    "gemini without candidates": ("gemini/x", {"usageMetadata": GEMINI_USAGE}),
}


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
@pytest.mark.parametrize("answer_text", ["SCORE = 0.5", '{"norms": "a", "reasoning": "b", "score": 0.5}'])
async def test_an_answer_in_the_field_for_reasoning_did_not_run_out_of_tokens(
    server: FakeServer, answer_text: str, field: str
) -> None:
    answer = await ask(server, openai("stop", None, message={field: answer_text}))
    assert (answer.outcome, answer.text) == (Outcome.UNPARSED, None)
    assert "only in the server's field for reasoning" in (answer.error or "")


@pytest.mark.parametrize("name", HIDDEN_REASONING)
async def test_an_answer_used_up_by_hidden_reasoning_is_truncated_and_asked_again_only_with_more_room(
    server: FakeServer, name: str
) -> None:
    model, body = HIDDEN_REASONING[name]
    answer = await ask(server, body, model)
    assert (answer.outcome, answer.text) == (Outcome.TRUNCATED, None)
    assert "set reasoning.max_tokens" in (answer.error or "")
    limits = [sent_output_limit(json.dumps(request.body)) for request in server.requests]
    assert limits == [50, 50 + 4096, 50 + 16384]
