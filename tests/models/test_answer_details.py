"""The request and response as transferred are recorded with each answer, and differ visibly from what was requested."""

from __future__ import annotations

import json
from typing import Any

import pytest

from auditor.domain import Answer, Call, Message, Outcome, Purpose
from auditor.models.answer_details import add_exchange_details, list_altered_params, redact_response_body, sent_form
from auditor.models.transport import MAX_RECORDED_BYTES, HttpExchange
from auditor.redaction import register_secrets
from tests.models.test_gateway import call
from tests.models.test_gateway_provider_families import ask_family
from tests.support.audit_configs import KEY
from tests.support.fake_server import FakeServer, Reply, completion
from tests.support.gateway_calls import ask, model_section

REQUESTED_PARAMS: dict[str, object] = {"temperature": 0.0, "max_tokens": 50, "seed": 3}


# Requested parameters, bodies that litellm makes of them for Anthropic, Gemini, Cohere and OpenAI, and the difference.
SENT_PARAMS: list[tuple[dict[str, object], dict[str, object], str]] = [
    (REQUESTED_PARAMS, REQUESTED_PARAMS, ""),
    (REQUESTED_PARAMS, {"temperature": 0, "max_completion_tokens": 50, "seed": 3}, ""),
    (REQUESTED_PARAMS, {"generationConfig": {"temperature": 0.0, "maxOutputTokens": 50, "seed": 3}}, ""),
    (REQUESTED_PARAMS, {"inferenceConfig": {"maxTokens": 50}}, "seed, temperature"),
    (REQUESTED_PARAMS, {**REQUESTED_PARAMS, "temperature": 0.01}, "temperature=0.01"),
    (REQUESTED_PARAMS, {**REQUESTED_PARAMS, "max_tokens": 50, "response_format": {"seed": 4}}, ""),
    ({"stop": ["X"]}, {"stop_sequences": ["X"]}, ""),
    ({"stop": "X"}, {"generationConfig": {"stop_sequences": ["X"]}}, ""),
    ({"stop": "X"}, {"stop_sequences": ["Y"]}, "stop=['Y']"),
    ({"top_p": 0.9, "top_k": 5}, {"p": 0.9, "k": 5}, ""),
    ({"top_p": 0.9}, {"p": 0.5}, "top_p=0.5"),
    ({"user": "u"}, {"metadata": {"user_id": "u"}}, ""),
    ({"reasoning_effort": "low"}, {"thinking": {"type": "enabled", "budget_tokens": 1024}}, ""),
    ({"reasoning_effort": "low"}, {"reasoning": {"effort": "low"}}, ""),
    ({"reasoning_effort": "low"}, {"reasoning_effort": "high"}, "reasoning_effort=high"),
    ({"reasoning_effort": "low"}, {"temperature": 1}, "reasoning_effort"),
]


@pytest.mark.parametrize(("requested", "sent", "expected"), SENT_PARAMS)
def test_parameters_sent_differently_than_requested_are_listed_under_whatever_name_they_are_sent(
    requested: dict[str, object], sent: dict[str, object], expected: str
) -> None:
    assert list_altered_params(requested, sent) == expected


def test_a_missing_response_format_is_listed() -> None:
    assert list_altered_params({}, {"response_format": {}}, is_structured=True) == ""
    assert list_altered_params({}, {"temperature": 1}, is_structured=True) == "response_format"


async def test_a_dropped_seed_is_recorded_and_temperature_0_is_sent(server: FakeServer) -> None:
    [recorded_answer, _] = await ask_family(server, "anthropic/claude-sonnet-4-5", lambda _: Reply(status=400))
    assert recorded_answer.altered == "seed"
    assert json.loads(recorded_answer.sent or "")["temperature"] == 0.0
    assert "seed" not in server.requests[0].body
    assert recorded_answer.served_model == "claude-served"
    [recorded_answer, _] = await ask_family(server, "gemini/gemini-2.5-flash", lambda _: Reply(status=400))
    assert (recorded_answer.altered, recorded_answer.served_model) == ("", "gemini-served")


async def test_the_served_model_and_fingerprint_are_recorded_as_sent(server: FakeServer) -> None:
    server.script = lambda _: Reply(body=completion("hello").body | {"model": "other", "system_fingerprint": "fp_1"})
    [served_answer] = await ask(model_section(server), call())
    assert (served_answer.served_model, served_answer.fingerprint, served_answer.altered) == ("other", "fp_1", "")
    server.script = lambda _: Reply(body={k: v for k, v in completion("hello").body.items() if k != "model"})
    [served_answer] = await ask(model_section(server), call())
    assert (served_answer.outcome, served_answer.served_model, served_answer.fingerprint) == (Outcome.OK, None, None)


async def test_bodies_are_recorded_as_received_with_keys_removed(server: FakeServer) -> None:
    page = f"<html>no entry for {KEY}</html>".encode()
    server.script = lambda r: completion("hello") if r.number == 0 else Reply(502, raw=page)
    first, second = await ask(model_section(server), call(0), call(1), max_attempts=2)
    body = first.attempts[0].body
    assert body is not None
    assert json.loads(body.data) == completion("hello").body
    bodies = [a.body for a in second.attempts if a.body]
    assert [a.http_status for a in second.attempts] == [502, 502]
    assert [b.data for b in bodies] == [page.replace(KEY.encode(), b"[key removed]")] * 2
    assert bodies[0].size == len(page)


def test_a_truncated_body_holds_no_part_of_a_key() -> None:
    wire = HttpExchange()
    wire.body_start = bytearray()
    for chunk in (b"x" * (MAX_RECORDED_BYTES - 5), KEY.encode(), b"y" * 1000):
        wire.receive_chunk(chunk)
    register_secrets(KEY)
    redacted_body = redact_response_body(wire)
    assert redacted_body is not None
    assert redacted_body.size == MAX_RECORDED_BYTES - 5 + len(KEY) + 1000
    assert redacted_body.data.rstrip(b"x") == b""
    assert redact_response_body(HttpExchange()) is None


@pytest.mark.parametrize("sent", [b"", b"{", b"[1]", b"[" * 100_000])
def test_unreadable_bodies_leave_the_details_unknown(sent: bytes) -> None:
    wire = HttpExchange()
    wire.request_body, wire.body_start = sent, bytearray(sent)
    wire.response_size = len(sent)
    call = Call("m", "openai/x", (Message("user", "hi"),), Purpose.DIRECT, params=REQUESTED_PARAMS)
    recorded_answer = add_exchange_details(Answer("k", Outcome.OK, served_model="litellm's"), call, wire)
    assert (recorded_answer.sent, recorded_answer.altered, recorded_answer.served_model) == (None, None, "litellm's")


SCHEMA = {"type": "object", "properties": {"score": {"type": "number"}}}
FORM_BODIES: dict[str, tuple[dict[str, Any], str]] = {
    "OpenAI": ({"response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA}}}, "json_schema"),
    "OpenAI's JSON mode": ({"response_format": {"type": "json_object"}}, "json_object"),
    "a schema beside JSON mode, as Fireworks takes it": ({"response_format": {"type": "json_object", "schema": SCHEMA}},
                                                         "json_schema"),
    "a text format": ({"response_format": {"type": "text"}}, "text"),
    "Gemini": ({"generationConfig": {"response_mime_type": "application/json", "responseSchema": SCHEMA}},
               "json_schema"),
    "Gemini's JSON mode": ({"generationConfig": {"responseMimeType": "application/json"}}, "json_object"),
    "Ollama": ({"format": SCHEMA}, "json_schema"),
    "Ollama's JSON mode": ({"format": "json"}, "json_object"),
    "Anthropic": ({"output_config": {"effort": "low", "format": {"type": "json_schema", "schema": SCHEMA}}},
                  "json_schema"),
    "Anthropic's effort alone": ({"output_config": {"effort": "low"}}, "text"),
    "Anthropic's tool": ({"tools": [{"name": "json_tool_call", "input_schema": SCHEMA}]}, "tool"),
    "Bedrock": ({"outputConfig": {"textFormat": {"structure": {"jsonSchema": {"schema": json.dumps(SCHEMA)}}}}},
                "json_schema"),
    "Bedrock's tool": ({"toolConfig": {"tools": [{"toolSpec": {"inputSchema": {"json": SCHEMA}}}]}}, "tool"),
    "TGI's tool": ({"tools": [{"type": "function"}], "tool_choice": {"function": {"name": "a"}}}, "tool"),
    "nothing": ({"messages": [{"role": "user", "content": "Answer as json_schema"}], "temperature": 1}, "text"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORM_BODIES)
def test_the_form_is_read_from_the_body_that_was_sent(name: str) -> None:
    body, form = FORM_BODIES[name]
    assert sent_form(body) == form


async def test_parts_of_an_address_are_no_altered_parameters(server: FakeServer) -> None:
    [answer] = await ask(model_section(server, "azure/x"), call(api_version="2024-10-21"))
    assert answer.altered == ""


@pytest.mark.parametrize(
    ("model", "extra_body", "altered"),
    [
        ("openai/x", {"chat_template_kwargs": {"enable_thinking": False}, "top_k": 5}, ""),
        ("openai/x", {"seed": 9}, ""),
        ("gemini/gemini-2.5-flash", {"generationConfig": {"topK": 5}}, ""),
    ],
)
async def test_headers_and_fields_of_an_extra_body_are_no_altered_parameters(
    server: FakeServer, model: str, extra_body: dict[str, Any], altered: str
) -> None:
    params = {"max_tokens": 50, "extra_headers": {"X-Team": "blue"}, "extra_body": extra_body}
    section = model_section(server, model, params=params)
    [answer] = await ask(section, Call("m", model, (Message("user", "hi"),), Purpose.DIRECT, params=params))
    request = server.requests[0]
    assert {name.lower(): text for name, text in request.headers.items()}["x-team"] == "blue"
    group = "generationConfig"
    sent, added = (request.body[group], extra_body[group]) if group in extra_body else (request.body, extra_body)
    assert added.items() <= sent.items()
    assert answer.altered == altered
