"""Providers that litellm reaches by handlers of its own are held by the same bounds as those of OpenAI's protocol."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gzip
import json
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from auditor.config import Limits, ModelSection
from auditor.config.signing import SIGNED, provider_of
from auditor.domain import Answer, Call, Message, Outcome, Purpose
from auditor.errors import ModelSetupError
from auditor.models import door
from auditor.models.gateway import Gateway
from auditor.models.transport import MAX_BYTES
from tests.audits import KEY, KEY_VARIABLE
from tests.fake_server import FakeServer, Reply, Request, completion

AWS = {"AWS_ACCESS_KEY_ID": "AKIATEST", "AWS_SECRET_ACCESS_KEY": KEY, "AWS_REGION_NAME": "eu-central-1"}


def anthropic(text: str) -> Reply:
    """An answer in Anthropic's form."""
    body = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-served", "stop_sequence": None}
    usage = {"input_tokens": 7, "output_tokens": 3}
    return Reply(body=body | {"content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "usage": usage})


def gemini(text: str) -> Reply:
    """An answer in Gemini's form."""
    candidate = {"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 7, "candidatesTokenCount": 3, "totalTokenCount": 10}
    return Reply(body={"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-served"})


def converse(text: str) -> Reply:
    """An answer in the form of Bedrock's Converse."""
    usage = {"inputTokens": 7, "outputTokens": 3, "totalTokens": 10}
    message = {"role": "assistant", "content": [{"text": text}]}
    return Reply(body={"output": {"message": message}, "stopReason": "end_turn", "usage": usage})


FAMILIES: dict[str, Callable[[str], Reply]] = {
    "openai/x": completion,
    "anthropic/claude-sonnet-4-5": anthropic,
    "gemini/gemini-2.5-flash": gemini,
    "deepseek/deepseek-chat": completion,
    "bedrock/anthropic.claude-3-haiku-20240307-v1:0": converse,
    "vertex_ai/gemini-2.5-flash": gemini,
}


@pytest.fixture(params=list(FAMILIES))
def family(request: pytest.FixtureRequest) -> str:
    if provider_of(request.param) in SIGNED:
        request.getfixturevalue("credentials")
    return str(request.param)


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Those of a machine at Amazon's and at Google's, whose tokens come from a server of the test's own."""
    for name, value in AWS.items():
        monkeypatch.setenv(name, value)
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    with FakeServer(lambda _: Reply(body={"access_token": "ya29.token", "expires_in": 3600})) as tokens:
        account = {"type": "service_account", "client_email": "a@b.org", "private_key": pem, "token_uri": tokens.url}
        (tmp_path / "account.json").write_text(json.dumps(account))
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "account.json"))
        monkeypatch.setenv("VERTEXAI_PROJECT", "p")
        monkeypatch.setenv("VERTEXAI_LOCATION", "europe-west1")
        yield


async def ask(server: FakeServer, model: str, reply: Callable[[Request], Reply], **params: Any) -> list[Answer]:
    """The first answer in the family's form, and the second as the reply has it."""
    form = FAMILIES[model]
    before = len(server.requests)
    server.script = lambda r: form("hello") if r.number == before else reply(r)
    key = None if provider_of(model) in SIGNED else f"os.environ/{KEY_VARIABLE}"
    section = ModelSection(name="m", model=model, api_base=server.url, api_key=key)
    gateway = Gateway([section], Limits(max_attempts=2))
    chosen = {"temperature": 0.0, "max_tokens": 50, "seed": 3, **params}
    calls = [Call("m", model, (Message("user", "hi"),), Purpose.DIRECT, sample=i, params=chosen) for i in range(2)]
    try:
        return [await gateway.complete(call) for call in calls]
    finally:
        await gateway.close()


async def test_it_answers(server: FakeServer, family: str) -> None:
    form = FAMILIES[family]
    first, second = await ask(server, family, lambda _: form("there"))
    assert (first.outcome, first.text, second.text) == (Outcome.OK, "hello", "there"), first
    assert server.requests[0].headers["Accept-Encoding"] == "identity"


async def test_a_compressed_bomb_is_not_unpacked(server: FakeServer, family: str) -> None:
    form = FAMILIES[family]
    bomb = gzip.compress(json.dumps(form("0" * 50_000_000).body).encode())
    _, got = await ask(server, family, lambda _: Reply(headers={"content-encoding": "gzip"}, raw=bomb))
    assert (got.outcome, len(server.requests)) == (Outcome.SERVER_ERROR, 2)
    assert "compressed" in (got.error or "")


async def test_an_answer_without_end_is_cut_off(server: FakeServer, family: str) -> None:
    form = FAMILIES[family]
    _, got = await ask(server, family, lambda _: form("0" * (MAX_BYTES + 1)))
    assert (got.outcome, len(server.requests)) == (Outcome.SERVER_ERROR, 2)
    assert "larger than 8 MB" in (got.error or "")


async def test_a_redirect_is_not_followed(server: FakeServer, family: str) -> None:
    with FakeServer() as elsewhere:
        _, got = await ask(server, family, lambda _: Reply(307, headers={"location": f"{elsewhere.url}/x"}))
        assert elsewhere.requests == []
    assert (got.outcome, len(server.requests)) == (Outcome.CLIENT_ERROR, 2)


@pytest.mark.parametrize("reply", [Reply(drop=True), Reply(500, {"error": {"message": "oops"}})])
async def test_what_fails_is_asked_again_by_nobody_but_us(server: FakeServer, family: str, reply: Reply) -> None:
    _, got = await ask(server, family, lambda _: reply)
    assert got.outcome is Outcome.SERVER_ERROR
    assert len(got.attempts) == len(server.requests) - 1 == 2


async def test_machines_sign_and_send_no_secret(server: FakeServer, credentials: None) -> None:
    bedrock, vertex = (name for name in FAMILIES if provider_of(name) in SIGNED)
    await ask(server, bedrock, lambda _: converse("there"))
    assert server.requests[-1].headers["Authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIATEST/")
    await ask(server, vertex, lambda _: gemini("there"))
    assert server.requests[-1].headers["Authorization"] == "Bearer ya29.token"
    assert KEY not in repr(server.requests)


async def test_a_key_of_bedrocks_own_stands_instead_of_the_machines(server: FakeServer, credentials: None) -> None:
    server.script = lambda _: converse("hello")
    model = "bedrock/anthropic.claude-3-haiku-20240307-v1:0"
    section = ModelSection(name="m", model=model, api_base=server.url, api_key=f"os.environ/{KEY_VARIABLE}")
    gateway = Gateway([section], Limits(max_attempts=1))
    try:
        await gateway.complete(Call("m", model, (Message("user", "hi"),), Purpose.DIRECT))
    finally:
        await gateway.close()
    assert server.requests[-1].headers["Authorization"] == f"Bearer {KEY}"
    assert "AKIATEST" not in repr(server.requests)


async def test_a_secret_that_signs_is_cut_out_of_what_a_server_echoes(server: FakeServer, credentials: None) -> None:
    bedrock = next(name for name in FAMILIES if provider_of(name) == "bedrock")
    _, got = await ask(server, bedrock, lambda _: Reply(403, {"message": f"the secret {KEY} is wrong"}))
    assert got.outcome is Outcome.CLIENT_ERROR
    assert KEY not in repr(got)
    assert all(KEY.encode() not in a.body.data for a in got.attempts if a.body)


UNIT = "-----BEGIN PRIVATE KEY-----"
MAX_GAP_S = 0.5


def hostile(family: str, status: int, size: int) -> Reply:
    """An answer of one text that takes cubic time to search for private keys, in an error, in words, or as it is."""
    text = UNIT * (size // len(UNIT))
    if status == 200:
        return FAMILIES[family](text)
    if status == 203:
        return Reply(200, raw=text.encode())
    body = {"type": "error", "error": {"type": "api_error", "message": text, "code": status}}
    return Reply(status, raw=json.dumps(body).encode())


async def largest_gap(work: Awaitable[object]) -> float:
    """Seconds for which the event loop did nothing else at most, while something was awaited."""
    worst, last = 0.0, time.monotonic()

    async def tick() -> None:
        nonlocal worst, last
        while True:
            await asyncio.sleep(0.005)
            worst, last = max(worst, time.monotonic() - last), time.monotonic()

    ticking = asyncio.create_task(tick())
    await asyncio.sleep(0.01)
    with contextlib.suppress(ModelSetupError):  # what a text in place of JSON means is another test's matter
        await work
    await asyncio.sleep(0.02)
    ticking.cancel()
    return worst


@pytest.mark.parametrize("status", [500, 429, 203, 200])
@pytest.mark.parametrize("name", ["openai/x", "anthropic/claude-sonnet-4-5", "gemini/gemini-2.5-flash"])
async def test_a_text_that_is_slow_to_search_does_not_hold_up_the_event_loop(
    server: FakeServer, name: str, status: int
) -> None:
    """The first size shows at once if litellm searches it: it takes 1.6 s, 8 MB would take years."""
    await ask(server, name, lambda _: FAMILIES[name]("hello"))  # what is imported on first use is no part of it
    section = ModelSection(name="m", model=name, api_base=server.url, api_key=f"os.environ/{KEY_VARIABLE}")
    for size in (8_000, 7_900_000):
        reply = hostile(name, status, size)
        reply = replace(reply, raw=json.dumps(reply.body).encode()) if reply.raw is None else reply
        server.script = functools.partial(lambda sent, _: sent, reply)
        gateway = Gateway([section], Limits(max_attempts=1))
        call = Call("m", name, (Message("user", "hi"),), Purpose.DIRECT)
        assert await largest_gap(gateway.complete(call)) < MAX_GAP_S
        await gateway.close()


async def test_litellms_own_search_for_secrets_is_off(server: FakeServer) -> None:
    from litellm._logging import redact_secrets
    from litellm.litellm_core_utils import exception_mapping_utils

    door.litellm()
    assert redact_secrets("Bearer abcdefghijklmnop") == "Bearer abcdefghijklmnop"
    assert vars(exception_mapping_utils)["_ENABLE_SECRET_REDACTION"] is False
