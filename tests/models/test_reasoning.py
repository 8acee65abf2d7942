"""Reasoning on the wire, room for it, and what becomes of an answer that was cut off."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio

from auditor.domain import Answer, Call, Capability, LogprobMeasure, Message, Outcome, Purpose, ReasoningSettings
from auditor.models import litellm_client
from auditor.models.batches.provider import PreparedRequest, prepare_request
from auditor.models.endpoint import Endpoint
from auditor.models.provider_request import send_request
from auditor.models.reasoning import (
    THINKING_FORMS,
    is_cut_off_thinking,
    output_limit,
    sent_output_limit,
    starts_thinking,
    strip_thinking,
    thinking_room,
    was_cut_by_lower_limit,
)
from auditor.models.transport import SERVER_STUB
from tests.support.hang_limit import hang_limit

LOCAL = "http://127.0.0.1:9/v1"
KEY = "sk-0123456789abcdef"


@pytest_asyncio.fixture(autouse=True)
async def http_clients(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION_NAME"):
        monkeypatch.setenv(name, "us-east-1")
    litellm_client.open_http_clients()
    yield
    await litellm_client.close_http_clients()


def call(model: str, reasoning: ReasoningSettings | None = None, **fields: Any) -> Call:
    fields = {"params": {"max_tokens": 400}, **fields}
    return Call("m", model, (Message("user", "?"),), Purpose.DIRECT, reasoning=reasoning, **fields)


async def body_of(request_call: Call, capability: Capability = Capability(), base_url: str | None = None) -> Any:  # noqa: B008
    """The body that goes out for a call, without its messages and model."""
    endpoint = Endpoint(request_call.model, base_url, None, api_key=KEY)
    prepared = await prepare_request(endpoint, request_call, 5.0, capability)
    assert isinstance(prepared, PreparedRequest), prepared.answer.error
    body = json.loads(prepared.body)
    contents = [message.get("content", message.get("parts")) for message in body.get("messages", body.get("contents"))]
    assert contents in (["?"], [[{"text": "?"}]], [[{"type": "text", "text": "?"}]]), "not the messages of the call"
    return {name: value for name, value in body.items() if name not in ("messages", "contents", "model")}


# --- what goes out ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "base_url", "reasoning", "fields"),
    [
        ("openai/gpt-5", None, ("low", None), {"reasoning_effort": "low", "max_completion_tokens": 1424}),
        ("openai/gpt-5", None, ("low", 2000), {"reasoning_effort": "low", "max_completion_tokens": 2400}),
        ("openai/gpt-4o", None, ("low", None), {"reasoning_effort": "low", "max_tokens": 1424}),
        ("openai/any", LOCAL, ("none", None), {"reasoning_effort": "none", "max_tokens": 400}),
        ("azure/my-deployment", LOCAL, ("high", None), {"reasoning_effort": "high", "max_tokens": 4496}),
        ("xai/grok-4", None, ("low", None), {"reasoning_effort": "low", "max_tokens": 1424}),
        ("groq/openai/gpt-oss-20b", None, ("low", 500), {"reasoning_effort": "low", "max_tokens": 900}),
        ("mistral/mistral-large-latest", None, ("high", None), {"reasoning_effort": "high", "max_tokens": 4496}),
        ("mistral/magistral-medium-latest", None, ("low", None), {"reasoning_effort": "low", "max_tokens": 1424}),
        ("lm_studio/any", LOCAL, ("low", None), {"reasoning_effort": "low", "max_tokens": 1424}),
        ("hosted_vllm/any", LOCAL, ("low", None), {"reasoning_effort": "low", "max_tokens": 1424}),
        ("hosted_vllm/any", LOCAL, ("none", None),
         {"reasoning_effort": "none", "chat_template_kwargs": {"enable_thinking": False}, "max_tokens": 400}),
        ("deepseek/deepseek-chat", None, ("high", None),
         {"thinking": {"type": "enabled"}, "max_tokens": 4496, "reasoning_effort": "high"}),
        ("ollama_chat/qwen3", LOCAL, ("low", None), {"think": True, "options": {"num_predict": 1424}}),
        ("openrouter/any/model", None, ("low", None), {"reasoning": {"effort": "low"}, "max_tokens": 1424}),
        ("openrouter/any/model", None, ("low", 2000), {"reasoning": {"max_tokens": 2000}, "max_tokens": 2400}),
        ("anthropic/claude-sonnet-4-5", None, ("high", None),
         {"thinking": {"type": "enabled", "budget_tokens": 4096}, "max_tokens": 4496}),
        ("anthropic/claude-sonnet-4-5", None, (None, 2000),
         {"thinking": {"type": "enabled", "budget_tokens": 2000}, "max_tokens": 2400}),
        ("anthropic/claude-opus-4-7", None, ("high", 2000),
         {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}, "max_tokens": 2400}),
        ("bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0", None, ("low", 2000),
         {"inferenceConfig": {"maxTokens": 2400},
          "additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 2000}}}),
        ("gemini/gemini-2.5-flash", None, ("low", 2000),
         {"generationConfig": {"max_output_tokens": 2400,
                               "thinkingConfig": {"includeThoughts": True, "thinkingBudget": 2000}}}),
        ("gemini/gemini-3-pro-preview", None, ("low", 2000),
         {"generationConfig": {"max_output_tokens": 2400,
                               "thinkingConfig": {"includeThoughts": True, "thinkingLevel": "low"}}}),
    ],
)  # fmt: skip
async def test_each_provider_gets_the_setting_in_its_own_form(
    model: str, base_url: str | None, reasoning: tuple[str | None, int | None], fields: dict[str, Any]
) -> None:
    body = await body_of(call(model, ReasoningSettings(*reasoning)), base_url=base_url)
    assert {name: body.get(name) for name in fields} == fields
    reasoning_names = {"reasoning_effort", "reasoning", "thinking", "think", "output_config", "chat_template_kwargs"}
    assert reasoning_names & body.keys() <= fields.keys()


@pytest.mark.parametrize("model", ["openai/gpt-5", "anthropic/claude-sonnet-4-5", "openrouter/any/model"])
async def test_without_a_setting_nothing_is_added(model: str) -> None:
    body = await body_of(call(model))
    assert {"reasoning_effort", "reasoning", "thinking", "extra_body"} & body.keys() == set()
    assert sent_output_limit(json.dumps(body)) == 400


async def test_a_dropped_setting_is_left_out_and_the_room_stays() -> None:
    settings = ReasoningSettings("low", 2000)
    dropped = Capability(dropped_params=("reasoning_effort", "thinking"))
    assert await body_of(call("openai/any", settings), dropped, LOCAL) == {"max_tokens": 2400}
    assert await body_of(call("anthropic/claude-sonnet-4-5", settings), dropped) == {"max_tokens": 2400}


async def test_the_config_s_own_parameters_take_precedence() -> None:
    params = {"max_tokens": 400, "extra_body": {"reasoning_effort": "high", "top_k": 5}}
    body = await body_of(call("openai/any-model", ReasoningSettings("low"), params=params), base_url=LOCAL)
    assert (body["top_k"], body["max_tokens"]) == (5, 1424)


async def test_an_unknown_effort_is_refused_by_litellm_before_anything_is_sent() -> None:
    refused = call("anthropic/claude-sonnet-4-5", ReasoningSettings("odd"))
    reply = await prepare_request(Endpoint(refused.model, None, None, api_key=KEY), refused, 5.0)
    assert not isinstance(reply, PreparedRequest)
    assert "reasoning" in (reply.answer.error or "")


# --- room ---------------------------------------------------------------------------------------------------------


def test_the_room_is_that_of_the_config_else_that_of_the_effort_or_the_capability() -> None:
    capability = Capability(thinking_tokens=4096)
    for settings, expected in (((), 4096), (("low",), 4096), (("max",), 16384), (("none",), 4096), (("low", 50), 50)):
        asked = call("openai/a", ReasoningSettings(*settings) if settings else None)
        assert thinking_room(asked, capability) == expected
        assert output_limit(asked, capability) == 400 + expected


def test_a_measurement_of_one_token_has_no_room() -> None:
    measured = call("openai/a", ReasoningSettings("high", 9), measure=LogprobMeasure.CHOICE, params={"max_tokens": 1})
    assert output_limit(measured, Capability(thinking_tokens=4096)) == 1


def test_a_call_without_a_limit_has_none_with_room_either() -> None:
    assert output_limit(call("openai/a", params={}), Capability(thinking_tokens=4096)) is None


# --- answers that were cut off ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "limit"),
    [
        ('{"max_tokens":400}', 400), ('{"max_completion_tokens":400,"seed":5000}', 400),
        ('{"generationConfig":{"max_output_tokens":400}}', 400),
        ('{"generationConfig":{"maxOutputTokens":400,"seed":9999}}', 400),
        ('{"inferenceConfig":{"maxTokens":400}}', 400), ('{"options":{"num_predict":400}}', 400),
        ('{"thinking":{"budget_tokens":9999},"max_tokens":400}', 400),
        ('{"seed":1}', None), ("[]", None), ("not JSON", None), (None, None),
    ],
)  # fmt: skip
def test_the_limit_is_found_under_every_name(sent: str | None, limit: int | None) -> None:
    assert sent_output_limit(sent) == limit


@pytest.mark.parametrize(
    ("sent", "outcome", "room", "is_worth_it"),
    [
        ('{"max_tokens":400}', Outcome.TRUNCATED, 4096, True),
        ('{"max_tokens":400}', Outcome.TRUNCATED, 0, False),
        *((sent, Outcome.TRUNCATED, 4096, False) for sent in ('{"max_tokens":4496}', '{"max_tokens":16784}', None)),
        ('{"max_tokens":400}', Outcome.OK, 4096, False),
    ],
)
def test_only_a_higher_limit_makes_a_truncated_answer_worth_asking_again(
    sent: str | None, outcome: Outcome, room: int, is_worth_it: bool
) -> None:
    answer = Answer("key", outcome, sent=sent)
    assert was_cut_by_lower_limit(answer, call("openai/a"), Capability(thinking_tokens=room)) is is_worth_it


def test_an_answer_is_cut_off_thinking_if_nothing_but_thinking_arrived() -> None:
    assert is_cut_off_thinking(Answer("key", Outcome.TRUNCATED))
    assert is_cut_off_thinking(Answer("key", Outcome.TRUNCATED, "<think>secret"))
    assert not is_cut_off_thinking(Answer("key", Outcome.TRUNCATED, "<think>secret</think>The norms"))
    assert not is_cut_off_thinking(Answer("key", Outcome.OK, "<think>secret"))


# --- what comes back ----------------------------------------------------------------------------------------------


def chat(message: dict[str, Any], reason: str = "stop", **usage: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": reason}
    usage = {"prompt_tokens": 10, "completion_tokens": 400, "total_tokens": 410, **usage}
    return {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}


def claude(*parts: dict[str, Any], reason: str = "end_turn", **usage: Any) -> dict[str, Any]:
    usage = {"input_tokens": 10, "output_tokens": 400, **usage}
    message = {"id": "x", "type": "message", "role": "assistant", "model": "m", "stop_sequence": None}
    return {**message, "content": list(parts), "stop_reason": reason, "usage": usage}


def gemini(*parts: dict[str, Any], reason: str = "STOP") -> dict[str, Any]:
    """A response of Gemini's; without parts it has no content at all, as when thinking used up the tokens."""
    content = {"content": {"role": "model", "parts": list(parts)}} if parts else {}
    usage = {"promptTokenCount": 10, "thoughtsTokenCount": 390, "totalTokenCount": 404}
    if parts:
        usage["candidatesTokenCount"] = 4
    return {"candidates": [{**content, "finishReason": reason, "index": 0}], "usageMetadata": usage}


def converse(*parts: dict[str, Any], reason: str = "end_turn", **fields: Any) -> dict[str, Any]:
    usage = {"inputTokens": 10, "outputTokens": 400, "totalTokens": 410}
    message = {"output": {"message": {"role": "assistant", "content": list(parts)}}}
    return {**message, "stopReason": reason, "usage": usage, "metrics": {"latencyMs": 1}, **fields}


def ollama(content: str, reason: str = "stop") -> dict[str, Any]:
    message = {"role": "assistant", "content": content, "thinking": "secret"}
    fields = {"model": "m", "created_at": "2026-01-01T00:00:00Z", "done": True, "done_reason": reason}
    return {**fields, "message": message, "prompt_eval_count": 10, "eval_count": 400}


DETAILS: dict[str, Any] = {"completion_tokens_details": {"reasoning_tokens": 390}}
THINKING = {"type": "thinking", "thinking": "secret", "signature": "s"}
MISTRAL_THINKING = {"type": "thinking", "thinking": [{"type": "text", "text": "secret"}]}
TEXT = {"type": "text", "text": "SCORE = 1"}
CLAUDE_ON_BEDROCK = "bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0"


@pytest.mark.parametrize(
    ("model", "body", "reasoning_tokens"),
    [
        ("openai/o3", chat({"content": "SCORE = 1"}, **DETAILS), 390),
        ("deepseek/deepseek-reasoner", chat({"content": "SCORE = 1", "reasoning_content": "secret"}, **DETAILS), 390),
        ("openrouter/any/model", chat({"content": "SCORE = 1", "reasoning": "secret"}, **DETAILS), 390),
        ("hosted_vllm/any", chat({"content": "SCORE = 1", "reasoning": "secret"}), None),
        ("openai/sglang", chat({"content": "SCORE = 1", "reasoning_content": "secret"}, reasoning_tokens=390), 390),
        ("mistral/magistral-medium-latest", chat({"content": [MISTRAL_THINKING, TEXT]}), None),
        ("anthropic/claude-sonnet-4-5", claude(THINKING, TEXT), None),
        ("anthropic/claude-opus-4-7", claude(THINKING, TEXT, output_tokens_details={"thinking_tokens": 390}), 390),
        (CLAUDE_ON_BEDROCK,
         converse({"reasoningContent": {"reasoningText": {"text": "secret"}}}, {"text": "SCORE = 1"}), None),
        (CLAUDE_ON_BEDROCK,
         converse({"text": "SCORE = 1"},
                  additionalModelResponseFields={"usage": {"output_tokens_details": {"thinking_tokens": 390}}}), 390),
        ("gemini/gemini-2.5-flash", gemini({"text": "secret", "thought": True}, {"text": "SCORE = 1"}), 390),
        ("ollama_chat/qwen3", ollama("SCORE = 1"), None),
    ],
)  # fmt: skip
async def test_thinking_stays_out_of_the_text_and_its_tokens_are_counted(
    model: str, body: dict[str, Any], reasoning_tokens: int | None
) -> None:
    answer = await answer_to(call(model), body)
    assert (answer.outcome, answer.text, answer.reasoning_tokens) == (Outcome.OK, "SCORE = 1", reasoning_tokens)


@pytest.mark.parametrize(
    ("model", "body"),
    [
        ("openai/o3", chat({"content": ""}, "length", **DETAILS)),
        ("openai/o3", chat({"content": None}, "length")),
        ("hosted_vllm/any", chat({"content": None, "reasoning": "secret"}, "length")),
        ("hosted_vllm/any", chat({"content": "<think>secret"}, "length")),
        ("openrouter/any/model", chat({"content": "", "reasoning": "secret"}, "length", **DETAILS)),
        ("mistral/magistral-medium-latest", chat({"content": [MISTRAL_THINKING]}, "length")),
        ("anthropic/claude-sonnet-4-5", claude(THINKING, reason="max_tokens")),
        ("anthropic/claude-sonnet-4-5", claude(reason="max_tokens")),
        (CLAUDE_ON_BEDROCK, converse({"reasoningContent": {"reasoningText": {"text": "s"}}}, reason="max_tokens")),
        ("gemini/gemini-2.5-flash", gemini(reason="MAX_TOKENS")),
        ("gemini/gemini-2.5-flash", gemini({"text": "secret", "thought": True}, reason="MAX_TOKENS")),
        ("ollama_chat/qwen3", ollama("", "length")),
    ],
)
async def test_an_answer_that_was_used_up_by_thinking_is_recognized_and_not_retried(
    model: str, body: dict[str, Any]
) -> None:
    answer = await answer_to(call(model), body)
    assert is_cut_off_thinking(answer)
    assert answer.completion_tokens


async def test_the_tokens_of_the_room_do_not_make_a_complete_answer_a_truncated_one() -> None:
    body = chat({"content": "SCORE = 1"}, completion_tokens=900)
    del body["choices"][0]["finish_reason"]
    assert (await answer_to(call("openai/any"), body)).outcome is Outcome.TRUNCATED
    with_room = Capability(thinking_tokens=4096)
    assert (await answer_to(call("openai/any"), body, with_room)).outcome is Outcome.OK


async def test_what_the_config_asks_for_is_not_altered_and_what_discovery_changes_is() -> None:
    body = chat({"content": "SCORE = 1"})
    asked = call("openai/any", ReasoningSettings("low", 2000))
    assert (await answer_to(asked, body)).altered == ""
    dropped = Capability(dropped_params=("reasoning_effort",))
    assert (await answer_to(asked, body, dropped)).altered == "reasoning_effort"
    widened = await answer_to(call("openai/any"), body, Capability(thinking_tokens=4096))
    assert widened.altered == "max_tokens=4496"
    assert sent_output_limit(widened.sent) == 4496


async def test_the_limit_stays_readable_in_what_is_recorded_of_a_long_request() -> None:
    structured = call("gemini/gemini-2.5-flash", schema="MoralJudgement", max_words=120)
    answer = await answer_to(structured, gemini({"text": "{}"}))
    assert sent_output_limit(answer.sent) == 400
    assert "sha256:" in (answer.sent or "")


async def answer_to(request_call: Call, body: dict[str, Any], capability: Capability = Capability()) -> Answer:  # noqa: B008
    """The answer to a call whose response has this body; the call is not retried."""
    token = SERVER_STUB.set(lambda request, sent: httpx.Response(200, json=body))
    base_url = LOCAL if request_call.model.split("/")[0] in ("hosted_vllm", "ollama_chat") else None
    endpoint = Endpoint(request_call.model, base_url, None, api_key=KEY)
    try:
        reply = await send_request(endpoint, request_call, attempt_number=1, timeout_s=60.0, capability=capability)
    finally:
        SERVER_STUB.reset(token)
    assert reply.failure is None
    return reply.answer


@pytest.mark.parametrize(
    ("text", "visible_text"),
    [
        ("<think>secret</think>SCORE = 0.1", "SCORE = 0.1"), ("<think>\n\n</think>\n\nSCORE = 0.1\n", "SCORE = 0.1"),
        ("secret</think>\nSCORE = 0.1", "SCORE = 0.1"), ("SCORE = 0.1\n<think>secret", "SCORE = 0.1"),
        *((text, "") for text in ("<think>secret", "<|channel|>analysis<|message|>secret", "<|channel>thought\nsecret",
                                  "<unused94>thought\nsecret", "[THINK]", "analysisWe need secret", "◁think▷secret",
                                  "<|think|>secret")),
        ("<THINKING>secret</THINKING> SCORE = 0.1", "SCORE = 0.1"),
        ("<thought>secret</thought>SCORE = 0.1", "SCORE = 0.1"),
        ("<seed:think>secret</seed:think>SCORE = 0.1", "SCORE = 0.1"),
        ("<reasoning>secret</reasoning>SCORE = 0.1", "SCORE = 0.1"),
        ("<reason>secret</reason>SCORE = 0.1", "SCORE = 0.1"),
        ("<mm:think>secret</mm:think>SCORE = 0.1", "SCORE = 0.1"),
        ("secret</longcat_think>SCORE = 0.1", "SCORE = 0.1"), ("<think >secret</think >SCORE = 0.1", "SCORE = 0.1"),
        ("<reflection>secret</reflection>SCORE = 0.1", "SCORE = 0.1"),
        ("<scratchpad>secret</scratchpad>SCORE = 0.1", "SCORE = 0.1"),
        ("secret</antThinking>SCORE = 0.1", "SCORE = 0.1"),
        ("[THINK]secret[/THINK]SCORE = 0.1", "SCORE = 0.1"), ("secret[/THINK]SCORE = 0.1", "SCORE = 0.1"),
        ("◁think▷secret◁/think▷SCORE = 0.1", "SCORE = 0.1"),
        ("<think>one <think>two</think> three</think>SCORE = 0.1", "SCORE = 0.1"),
        ("<think>a</think>first <think>b</think>second", "first second"),
    ],
)  # fmt: skip
def test_thinking_is_removed(text: str, visible_text: str) -> None:
    assert strip_thinking(text) == visible_text


HARMONY = "<|start|>assistant<|channel|>final<|message|>"


@pytest.mark.parametrize(
    "text",
    [
        f"<|channel|>analysis<|message|>secret SCORE = 0.9<|end|>{HARMONY}SCORE = 0.1",
        f"<|channel|>analysis<|message|>secret{HARMONY}SCORE = 0.1<|return|>",
        f"<|start|>assistant<|channel|>analysis<|message|>secret<|end|>{HARMONY}SCORE = 0.1<|end|>",
        f"analysis<|message|>secret<|end|>{HARMONY}SCORE = 0.1",
        f"secret<|end|>{HARMONY}SCORE = 0.1",
        "<|channel|>analysis<|message|>a<|end|><|channel|>analysis<|message|>b<|channel|>final<|message|>SCORE = 0.1",
        "<|channel|>final <|constrain|>json<|message|>SCORE = 0.1",
        "<|channel|>analysis<|message|>secret<|end|>SCORE = 0.1",
        "<|channel|>analysis<|message|>secret<|end|><|start|>assistant<|channel|>commentary to=functions.A "
        "<|constrain|>json<|message|>SCORE = 0.1<|call|>",
        "analysisWe need secret.assistantfinalSCORE = 0.1",
        "Here is my thought process:\nsecret\nHere is my response:\nSCORE = 0.1",
        "<|channel>thought\nsecret<channel|>SCORE = 0.1<turn|>",
        "<|channel>thought\n<channel|>SCORE = 0.1",
        "secret<channel|>SCORE = 0.1",
        "<unused94>thought\nsecret<unused95>SCORE = 0.1",
        "<|START_THINKING|>secret<|END_THINKING|><|START_RESPONSE|>SCORE = 0.1<|END_RESPONSE|>",
        "<|begin_of_thought|>secret<|end_of_thought|>\n<|begin_of_solution|>SCORE = 0.1<|end_of_solution|>",
        "<|inner_prefix|>secret<|inner_suffix|>SCORE = 0.1",
        "secret<|think:end|>SCORE = 0.1",
        "<|think|>secret SCORE = 0.9<|end|><|begin|>assistant<|content|>SCORE = 0.1<|end|>",
        "secret SCORE = 0.9<|end|><|begin|>assistant<|content|>SCORE = 0.1",
        "<|begin|>assistant<|content|>SCORE = 0.1<|flush|>",
        "Here are my reasoning steps:\nSCORE = 0.9\n[BEGIN FINAL RESPONSE]\nSCORE = 0.1\n[END FINAL RESPONSE]\n<|end|>",
        "secret\n[BEGIN FINAL RESPONSE]SCORE = 0.1",
        '<details style="color:gray;" open> <summary> Thinking... </summary>\nSCORE = 0.9\n</details>SCORE = 0.1',
        "<think>`</think>` secret</think>SCORE = 0.1",
        "SCORE = 0.1<think>secret",
        "SCORE = 0.1\n<|channel|>analysis<|message|>secret",
        "SCORE = 0.1<|im_end|>",
        "<|im_start|>assistant\nSCORE = 0.1<|im_end|>\n<|endoftext|>",
        "SCORE = 0.1</s>",
        "SCORE = 0.1<｜end▁of▁sentence｜>",
        "<answer>SCORE = 0.1</answer>",
        "<think>secret</think><answer>SCORE = 0.1</answer>",
        "SCORE = 0.1<|im_end|>\n<|im_start|>user\nsecret question<|im_end|>\n<|im_start|>assistant\nSCORE = 0.9",
        "SCORE = 0.1<end_of_turn>\n<start_of_turn>user\nsecret",
        '<details type="reasoning" done="true">\n<summary>Thought</summary>\n> 0.9?\n</details>\nSCORE = 0.1',
    ],
)
def test_thinking_and_chat_tokens_of_other_models_are_removed(text: str) -> None:
    assert strip_thinking(text) == "SCORE = 0.1"


@pytest.mark.parametrize(
    ("text", "visible_text"),
    [
        ("<|think|>Hm.</think>SCORE = 0.1", "SCORE = 0.1"),
        ("<thinking>Hm.</think>\nSCORE = 0.1", "SCORE = 0.1"),
        ("[THINK]Hm.</think>SCORE = 0.1", "SCORE = 0.1"),
        ("<reasoning>Or <think>so</think>, perhaps SCORE = 0.9", ""),  # the outer one was cut off
        ("<think>Does `</thinking>` end it? SCORE = 0.9", ""),
        ("<think>I must close my steps with </reasoning> before it.\nSCORE = 0.9\nThat is too high", ""),
    ],
)
def test_thinking_may_end_in_another_form_than_it_began(text: str, visible_text: str) -> None:
    assert strip_thinking(text) == visible_text


def test_each_form_has_a_source_and_is_known_by_its_first_token() -> None:
    assert all(form.source for form in THINKING_FORMS)
    tokens = ("<|channel|>", "<|channel>", "<unused94>", "<think", " <think>", "[THINK]", "◁think▷", "<seed:think>")
    assert all(map(starts_thinking, (*tokens, "<details")))
    assert not any(map(starts_thinking, ("A", "", " The", "<", "thought")))


@pytest.mark.parametrize(
    "text",
    [" I think 1 < 2. ", "[1] a list", '{"norms": "a <b> c"}', "", "thinking",
     "The tag `<think>` begins it.\nSCORE = 0.1", "The tags `<think>` and `</think>` enclose it.\nSCORE = 0.1",
     'It ends with "</think>".\nSCORE = 0.1', "Some write <think> before it.\nSCORE = 0.1",
     "As in `<think>this</think>`, they weigh it.\nSCORE = 0.1", "“<|channel|>” is a token.\nSCORE = 0.1",
     "Here are my reasoning steps:\nThey weigh it.\nSCORE = 0.1", "“[BEGIN FINAL RESPONSE]” is no tag.\nSCORE = 0.1",
     "<details><summary>Norms</summary>They weigh it.</details>\nSCORE = 0.1"],
)  # fmt: skip
def test_a_text_without_such_tags_or_with_quoted_ones_is_unchanged(text: str) -> None:
    assert strip_thinking(text) == text


@pytest.mark.parametrize(
    "part",
    [*("<think>", "</think>", "<", "[", "<think>a</think>", "<thinking></think>", "[THINK]", "`</think>` <think> "),
     *("<|channel|>", "<|channel|>analysis", "<|channel|>final", "<|im_end|>", "</s>\n", "<|a|>", "analysis",
       "`<think></think>`")],
)  # fmt: skip
def test_half_a_megabyte_takes_linear_time(part: str) -> None:
    with hang_limit():
        strip_thinking(part * (500_000 // len(part)))
