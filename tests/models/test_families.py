"""Providers that litellm reaches by handlers of its own are held by the same bounds as those of OpenAI's protocol."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from typing import Any

import pytest

from auditor.config import Limits, ModelSection
from auditor.domain import Answer, Call, Message, Outcome, Purpose
from auditor.models.gateway import Gateway
from auditor.models.transport import MAX_BYTES
from tests.audits import KEY_VARIABLE
from tests.fake_server import FakeServer, Reply, Request, completion


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


FAMILIES: dict[str, Callable[[str], Reply]] = {
    "openai/x": completion,
    "anthropic/claude-sonnet-4-5": anthropic,
    "gemini/gemini-2.5-flash": gemini,
    "deepseek/deepseek-chat": completion,
}


@pytest.fixture(params=list(FAMILIES))
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def ask(server: FakeServer, model: str, reply: Callable[[Request], Reply], **params: Any) -> list[Answer]:
    """The first answer in the family's form, and the second as the reply has it."""
    form = FAMILIES[model]
    before = len(server.requests)
    server.script = lambda r: form("hello") if r.number == before else reply(r)
    section = ModelSection(name="m", model=model, api_base=server.url, api_key=f"os.environ/{KEY_VARIABLE}")
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
