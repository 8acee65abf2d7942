"""Providers with their own litellm handlers have the same limits and errors as those of OpenAI's protocol."""

from __future__ import annotations

import codecs
import contextlib
import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from auditor.config import ModelSection
from auditor.config.providers import provider_of
from auditor.domain import Answer, Call, LogprobMeasure, Message, Outcome, Purpose
from auditor.errors import ModelSetupError
from auditor.models import litellm_client
from auditor.models.batches.provider import BatchCallResponse, parse_batch_answer
from auditor.models.endpoint import Endpoint
from auditor.models.logprobs import measure_params
from auditor.models.transport import MAX_RESPONSE_BYTES
from tests.support.audit_configs import KEY, KEY_VARIABLE
from tests.support.fake_server import NEVER, FakeServer, Reply, Request, completion
from tests.support.gateway_calls import ask, model_section
from tests.support.google_machine import google_machine
from tests.support.hang_limit import hang_limit

AWS = {"AWS_ACCESS_KEY_ID": "AKIATEST", "AWS_SECRET_ACCESS_KEY": KEY, "AWS_REGION_NAME": "eu-central-1"}


def anthropic(text: str) -> Reply:
    body = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-served", "stop_sequence": None}
    usage = {"input_tokens": 7, "output_tokens": 3}
    return Reply(body=body | {"content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "usage": usage})


def gemini(text: str) -> Reply:
    candidate = {"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 7, "candidatesTokenCount": 3, "totalTokenCount": 10}
    return Reply(body={"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-served"})


def converse(text: str) -> Reply:
    usage = {"inputTokens": 7, "outputTokens": 3, "totalTokens": 10}
    message = {"role": "assistant", "content": [{"text": text}]}
    return Reply(body={"output": {"message": message}, "stopReason": "end_turn", "usage": usage})


FAMILIES: dict[str, Callable[[str], Reply]] = {
    "openai/x": completion, "anthropic/claude-sonnet-4-5": anthropic, "gemini/gemini-2.5-flash": gemini,
    "deepseek/deepseek-chat": completion, "bedrock/anthropic.claude-3-haiku-20240307-v1:0": converse,
    "vertex_ai/gemini-2.5-flash": gemini,
}  # fmt: skip


BOTH_CLIENTS = ("openai/x", "anthropic/claude-sonnet-4-5")
"""Of OpenAI's library and of litellm: the guard of both, which all families pass, limits what is received."""


@pytest.fixture(params=list(FAMILIES))
def family(request: pytest.FixtureRequest) -> str:
    if provider_of(request.param).is_signed:
        request.getfixturevalue("credentials")
    return str(request.param)


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Set credentials of an AWS and a Google Cloud machine; a local server issues Google's access tokens."""
    for name, value in AWS.items():
        monkeypatch.setenv(name, value)
    with google_machine(monkeypatch, tmp_path, lambda: "ya29.token"):
        yield


HI = (Message("user", "hi"),)


def key_of(model: str) -> str | None:
    return None if provider_of(model).is_signed else f"os.environ/{KEY_VARIABLE}"


async def ask_family(server: FakeServer, model: str, reply: Callable[[Request], Reply], **params: Any) -> list[Answer]:
    """Complete two calls: the first is answered in the family's format, the second with `reply`."""
    reply_in_format = FAMILIES[model]
    before = len(server.requests)
    server.script = lambda r: reply_in_format("hello") if r.number == before else reply(r)
    section = ModelSection(name="m", model=model, api_base=server.url, api_key=key_of(model))
    call_params = {"temperature": 0.0, "max_tokens": 50, "seed": 3, **params}
    calls = [Call("m", model, (Message("user", "hi"),), Purpose.DIRECT, sample=i, params=call_params) for i in range(2)]
    return await ask(section, *calls, max_attempts=2)


async def test_each_provider_family_answers(server: FakeServer, family: str) -> None:
    form = FAMILIES[family]
    first, second = await ask_family(server, family, lambda _: form("there"))
    assert (first.outcome, first.text, second.text) == (Outcome.OK, "hello", "there"), first
    assert server.requests[0].headers["Accept-Encoding"] == "identity"


@pytest.mark.parametrize("family", BOTH_CLIENTS)
async def test_a_compressed_answer_is_read(server: FakeServer, family: str) -> None:
    packed = gzip.compress(json.dumps(FAMILIES[family]("hello there").body).encode())
    _, answer = await ask_family(server, family, lambda _: Reply(headers={"content-encoding": "gzip"}, raw=packed))
    assert (answer.outcome, answer.text, len(server.requests)) == (Outcome.OK, "hello there", 2), answer.error


@pytest.mark.parametrize("family", BOTH_CLIENTS)
@pytest.mark.parametrize("kind", ["without end", "a compressed bomb", "of an unknown compression"])
async def test_an_answer_is_read_to_the_limit_or_not_at_all(server: FakeServer, family: str, kind: str) -> None:
    form = FAMILIES[family]
    if kind == "without end":
        reply = form("0" * (MAX_RESPONSE_BYTES + 1))
    elif kind == "a compressed bomb":
        bomb = gzip.compress(json.dumps(form("0" * 2 * MAX_RESPONSE_BYTES).body).encode())
        reply = Reply(headers={"content-encoding": "gzip"}, raw=bomb)
    else:
        reply = Reply(headers={"content-encoding": "br"}, raw=b"\x0b")
    _, answer = await ask_family(server, family, lambda _: reply)
    assert (answer.outcome, len(server.requests)) == (Outcome.SERVER_ERROR, 2)
    problem = "the answer is compressed ('br')" if kind == "of an unknown compression" else "larger than 8 MB"
    assert problem in (answer.error or "")


async def test_a_redirect_is_not_followed(server: FakeServer, family: str) -> None:
    with FakeServer() as elsewhere:
        _, answer = await ask_family(server, family, lambda _: Reply(307, headers={"location": f"{elsewhere.url}/x"}))
        assert elsewhere.requests == []
    assert (answer.outcome, len(server.requests)) == (Outcome.CLIENT_ERROR, 2)


@pytest.mark.parametrize("reply", [Reply(drop=True), Reply(500, {"error": {"message": "oops"}})])
async def test_failures_are_retried_only_by_the_gateway(server: FakeServer, family: str, reply: Reply) -> None:
    _, answer = await ask_family(server, family, lambda _: reply)
    assert answer.outcome is Outcome.SERVER_ERROR
    assert len(answer.attempts) == len(server.requests) - 1 == 2


OPENAI = completion("hello").body
NOT_JSON: dict[str, tuple[bytes, str]] = {
    "HTML": (b"<html><body>oops</body></html>", "text that is not JSON (text/html, 30 bytes, begins '<html>"),
    "empty": (b"", "an empty body (text/html, 0 bytes)"),
    "null": (b"null", "JSON that is not an object (text/html, 4 bytes, begins 'null')"),
    "list": (b"[]", "JSON that is not an object"),
    "number": (b"17", "JSON that is not an object"),
    "cut off": (b'{"id": "1", "choices": [{"mess', "text that is not JSON"),
    "UTF-16": (json.dumps(OPENAI).encode("utf-16"), "text that is not UTF-8"),
    "lines": (json.dumps(OPENAI).encode() + b"\n{}\n", "text that is not JSON"),
    "events": (b'data: {"id": "1"}\n\ndata: [DONE]\n\n', "a stream that breaks off before the end of the answer"),
    "deep": (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "JSON with too many nested levels"),
    "digits": (b'{"usage": ' + b"9" * 5000 + b"}", "JSON with a number that has too many digits"),
}
"""Response bodies that are not a JSON object, with the expected error text."""
NO_ANSWER: dict[str, dict[str, Any]] = {
    "nothing": {}, "another protocol": {"outputs": [{"text": "hello"}], "stop": "end"},
    "an error": {"error": {"message": "no upstream", "code": 401}}, "choices are an object": OPENAI | {"choices": {}},
    "no choice": OPENAI | {"choices": []}, "choices are null": OPENAI | {"choices": None},
    "a choice is null": OPENAI | {"choices": [None]},
    "a message is null": OPENAI | {"choices": [{"index": 0, "finish_reason": "stop", "message": None}]},
    "content is a number": OPENAI | {"choices": [{"index": 0, "message": {"role": "assistant", "content": 5}}]},
    "content is an object": OPENAI | {"choices": [{"index": 0, "message": {"role": "assistant", "content": {}}}]},
}  # fmt: skip
"""JSON objects that are no provider's response."""
READ_APART = ("openai/x", "anthropic/claude-sonnet-4-5", "gemini/gemini-2.5-flash")
"""Models that show that the guard refuses what is not JSON before any provider's code reads it."""
PROTOCOLS = [
    *FAMILIES, "mistral/mistral-small-latest", "groq/llama-3.3-70b-versatile", "openrouter/x/y", "cohere/command-r",
    "azure/gpt-4o", "hosted_vllm/x", "together_ai/x/y",
]  # fmt: skip
PYTHON_PHRASES = (
    "Traceback", "litellm", "Expecting value", "object has no attribute", "Exception", "codec", "argument",
)  # fmt: skip
ENDPOINTS = {"chat": None, "completions": LogprobMeasure.ECHO, "next token": LogprobMeasure.CHOICE}


@pytest.fixture(
    params=[*((model, "chat") for model in PROTOCOLS), ("openai/x", "completions"), ("openai/x", "next token")]
)
def first_contact(request: pytest.FixtureRequest) -> tuple[ModelSection, Call]:
    """A model section of each protocol, without its api_base, and a call to it."""
    model, endpoint = request.param
    if provider_of(model).is_signed:
        request.getfixturevalue("credentials")
    measure = ENDPOINTS[endpoint]
    params = {"api_version": "2024-10-21"} if model.startswith("azure/") else {}
    ends = (" a", " b") if measure is LogprobMeasure.ECHO else ()
    call_params = measure_params(measure) if measure else {"max_tokens": 50}
    call = Call("m", model, HI, Purpose.DIRECT, params=call_params, measure=measure, continuations=ends)
    return ModelSection(name="m", model=model, api_key=key_of(model), params=params), call


async def ask_first(section: ModelSection, call: Call, url: str) -> Answer:
    """Complete the first call of a run; if it stops the run, return the answer that the error holds."""
    try:
        [answer] = await ask(section.model_copy(update={"api_base": url}), call, max_attempts=1)
    except ModelSetupError as error:
        if error.answer is None:
            raise
        return error.answer
    return answer


async def test_a_success_that_is_no_answer_is_a_server_error_for_every_provider(
    server: FakeServer, first_contact: tuple[ModelSection, Call]
) -> None:
    bodies = {name: (json.dumps(body).encode(), "") for name, body in NO_ANSWER.items()}
    if first_contact[0].model in READ_APART:
        bodies |= {name: (raw, f"the server answered with {expected}") for name, (raw, expected) in NOT_JSON.items()}
    for name, (raw, expected) in bodies.items():
        server.script = lambda _, raw=raw: Reply(raw=raw, headers={"content-type": "text/html"})  # type: ignore[misc]
        answer = await ask_first(*first_contact, server.url)
        statuses = [a.http_status for a in answer.attempts]
        assert (answer.outcome, statuses) == (Outcome.SERVER_ERROR, [200]), (name, answer)
        assert answer.error
        assert expected in answer.error, name
        assert not [words for words in PYTHON_PHRASES if words in answer.error], (name, answer.error)


@pytest.mark.parametrize("name", [*NOT_JSON, *NO_ANSWER])
async def test_a_batch_whose_line_is_no_answer_is_a_server_error(name: str) -> None:
    raw = NOT_JSON[name][0] if name in NOT_JSON else json.dumps(NO_ANSWER[name]).encode()
    call = Call("m", "openai/x", (Message("user", "hi"),), Purpose.DIRECT, params={"max_tokens": 50})
    litellm_client.open_http_clients()
    try:
        reply = await parse_batch_answer(
            Endpoint("openai/x", "http://127.0.0.1:9/v1", None), call, BatchCallResponse(call.key, 200, raw),
            attempt_number=1, timeout_s=60,
        )  # fmt: skip
    finally:
        await litellm_client.close_http_clients()
    assert reply.failure is not None
    assert (reply.failure.is_retryable, reply.failure.blocks_model) == (True, False)
    assert (reply.answer.outcome, [a.http_status for a in reply.answer.attempts]) == (Outcome.SERVER_ERROR, [200])


async def test_a_utf_8_byte_order_mark_is_ignored(server: FakeServer, family: str) -> None:
    json_body = json.dumps(FAMILIES[family]("there").body).encode()
    _, answer = await ask_family(server, family, lambda _: Reply(raw=codecs.BOM_UTF8 + json_body))
    assert (answer.outcome, answer.text) == (Outcome.OK, "there")


async def test_a_refused_connection_has_no_http_status(first_contact: tuple[ModelSection, Call]) -> None:
    failed_answer = await ask_first(*first_contact, "http://127.0.0.1:9/v1")
    assert [(a.outcome, a.http_status) for a in failed_answer.attempts] == [(Outcome.SERVER_ERROR, None)]
    assert "127.0.0.1" in (failed_answer.attempts[0].error or "")
    assert " object at " not in (failed_answer.attempts[0].error or "")


@pytest.mark.parametrize(
    ("url", "reply", "outcome"),
    [("http://no-such-host.invalid/v1", Reply(), Outcome.SERVER_ERROR),
     ("http://no-such-host-403.invalid/v1", Reply(), Outcome.SERVER_ERROR), ("https", Reply(), Outcome.SERVER_ERROR),
     ("http", Reply(drop=True), Outcome.SERVER_ERROR), ("http", Reply(after=NEVER), Outcome.TIMEOUT)],
    ids=["no such host", "a number that litellm reads as a status", "no TLS", "hangs up", "silent"],
)  # fmt: skip
async def test_a_failure_before_the_status_line_has_no_http_status(
    server: FakeServer, family: str, url: str, reply: Reply, outcome: Outcome
) -> None:
    server.script = lambda _: reply
    timeout_s = 0.5 if outcome is Outcome.TIMEOUT else 60
    section = ModelSection(name="m", model=family, api_key=key_of(family), timeout_s=timeout_s)
    call = Call("m", family, HI, Purpose.DIRECT, params={"max_tokens": 5})
    failed_answer = await ask_first(section, call, url if "." in url else server.url.replace("http", url))
    assert {(a.outcome, a.http_status) for a in failed_answer.attempts} == {(outcome, None)}


async def test_signed_providers_send_a_signature_and_no_secret(server: FakeServer, credentials: None) -> None:
    bedrock, vertex = (name for name in FAMILIES if provider_of(name).is_signed)
    await ask_family(server, bedrock, lambda _: converse("there"))
    assert server.requests[-1].headers["Authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIATEST/")
    await ask_family(server, vertex, lambda _: gemini("there"))
    assert server.requests[-1].headers["Authorization"] == "Bearer ya29.token"
    assert KEY not in repr(server.requests)


async def test_a_bedrock_api_key_replaces_the_machines_credentials(server: FakeServer, credentials: None) -> None:
    server.script = lambda _: converse("hello")
    model = "bedrock/anthropic.claude-3-haiku-20240307-v1:0"
    await ask(model_section(server, model), Call("m", model, (Message("user", "hi"),), Purpose.DIRECT))
    assert server.requests[-1].headers["Authorization"] == f"Bearer {KEY}"
    assert "AKIATEST" not in repr(server.requests)


async def test_a_signing_secret_is_redacted_from_echoed_errors(server: FakeServer, credentials: None) -> None:
    bedrock = next(name for name in FAMILIES if provider_of(name).prefix == "bedrock")
    refusal = Reply(403, {"message": f"the secret {KEY} is wrong"})
    _, failed_answer = await ask_family(server, bedrock, lambda _: refusal)
    assert failed_answer.outcome is Outcome.CLIENT_ERROR
    assert KEY not in repr(failed_answer)
    assert all(KEY.encode() not in a.body.data for a in failed_answer.attempts if a.body)


def slow_to_search_reply(family: str, status: int) -> Reply:
    """A slow-to-search reply: a completion (200), plain text (203) or an error."""
    text = "-----BEGIN PRIVATE KEY-----" * 75_000
    if status == 203:
        return Reply(200, raw=text.encode())
    body = {"type": "error", "error": {"type": "api_error", "message": text, "code": status}}
    return Reply(status, raw=json.dumps(FAMILIES[family](text).body if status == 200 else body).encode())


@pytest.mark.parametrize(
    ("name", "status"),
    [*((model, status) for model in READ_APART for status in (500, 200)), ("openai/x", 429), ("openai/x", 203)],
)
async def test_a_text_that_is_slow_to_search_does_not_block_the_event_loop(
    server: FakeServer, name: str, status: int
) -> None:
    """If litellm searches the text, 2 MB take half an hour, and 8 MB, the largest answer, a day."""
    reply = slow_to_search_reply(name, status)
    server.script = lambda _: reply
    call = Call("m", name, (Message("user", "hi"),), Purpose.DIRECT)
    # Plain text instead of JSON stops the run; another test covers it.
    with hang_limit(), contextlib.suppress(ModelSetupError):
        await ask(model_section(server, name), call, max_attempts=1)
    assert len(server.requests) == 1


async def test_litellms_secret_redaction_is_off(server: FakeServer) -> None:
    from litellm._logging import redact_secrets
    from litellm.litellm_core_utils import exception_mapping_utils

    litellm_client.load_litellm()
    assert redact_secrets("Bearer abcdefghijklmnop") == "Bearer abcdefghijklmnop"
    assert vars(exception_mapping_utils)["_ENABLE_SECRET_REDACTION"] is False
