"""Each way in which a provider answers, in its own wire format: what is asked of it, and what comes of that."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from auditor.config import Limits, ModelSection
from auditor.domain import Answer, Call, LogprobMeasure, Message, Outcome, Purpose
from auditor.models.gateway import Gateway
from auditor.models.logprobs import measure_params
from auditor.models.responses import escape_for_storage
from tests.models.test_logprobs import BEGINNING, ENDS, choice, echo, listed
from tests.support.audit_configs import KEY, KEY_VARIABLE
from tests.support.fake_server import FakeServer, Reply, Request, completion

JUDGEMENT = json.dumps({"norms": "a", "reasoning": "b", "score": -0.5})
FULL, TOOLS_ONLY = "openai/x", "volcengine/x"


def tool_call(name: str, arguments: str, text: str | None = None) -> Reply:
    """What a model sends that calls a function in place of speaking."""
    function = {"name": name, "arguments": arguments}
    calls = [{"id": "call_1", "type": "function", "function": function}]
    return completion(text, finish="tool_calls", tool_calls=calls)


class Way(NamedTuple):
    """One behaviour: who is asked for what, what it sends, and what is made of it."""

    reply: Callable[[Request], Reply]
    outcome: Outcome
    text: str | None = None
    model: str = FULL
    schema: str | None = "MoralJudgement"
    measure: LogprobMeasure | None = None
    sent: tuple[str, ...] = ()
    """Keys of the request's body that must be there."""


def scripted_completion(text: str | None, **more: Any) -> Callable[[Request], Reply]:
    return lambda request: completion(text, **more)


WAYS = {
    "chat with JSON schema": Way(scripted_completion(JUDGEMENT), Outcome.OK, JUDGEMENT, sent=("response_format",)),
    "chat without JSON schema": Way(scripted_completion("SCORE = -0.5"), Outcome.OK, "SCORE = -0.5", schema=None),
    "a tool where there is no schema": Way(
        lambda r: tool_call("MoralJudgement", JUDGEMENT), Outcome.OK, JUDGEMENT, TOOLS_ONLY,
        sent=("tools", "tool_choice"),
    ),
    "a tool though a schema was sent": Way(
        lambda r: tool_call("MoralJudgement", JUDGEMENT), Outcome.OK, JUDGEMENT, sent=("response_format",)
    ),
    "a tool of another name": Way(lambda r: tool_call("answer", JUDGEMENT), Outcome.OK, JUDGEMENT),
    "words beside a tool": Way(lambda r: tool_call("search", "{}", JUDGEMENT), Outcome.OK, JUDGEMENT),
    "a tool without arguments": Way(lambda r: tool_call("MoralJudgement", ""), Outcome.SERVER_ERROR),
    "a tool in place of words": Way(lambda r: tool_call("search", "{}"), Outcome.UNPARSED, schema=None),
    "a tool cut off": Way(
        lambda r: completion(
            None, finish="length",
            tool_calls=[{"id": "c", "type": "function", "function": {"name": "MoralJudgement", "arguments": '{"no'}}],
        ),
        Outcome.TRUNCATED, '{"no',
    ),
    "next token with top_logprobs": Way(
        lambda r: choice({"A": -0.5, "B": -1.0}), Outcome.OK, '[["A", -0.5], ["B", -1.0]]', schema=None,
        measure=LogprobMeasure.CHOICE, sent=("logprobs", "top_logprobs"),
    ),
    "completions with echo": Way(
        echo, Outcome.OK, schema=None, model="hosted_vllm/x", measure=LogprobMeasure.ECHO,
        sent=("echo", "logprobs", "prompt")
    ),
    "completions with prompt_logprobs": Way(
        listed, Outcome.OK, schema=None, model="hosted_vllm/x", measure=LogprobMeasure.PROMPT,
        sent=("prompt_logprobs", "prompt"),
    ),
    "refusal in its field": Way(scripted_completion(None, refusal="I cannot."), Outcome.REFUSED, "I cannot."),
    "refusal by a filter": Way(scripted_completion(None, finish="content_filter"), Outcome.REFUSED),
    "refusal by a filter, with words": Way(scripted_completion("0.9", finish="content_filter"), Outcome.REFUSED, "0.9"),
    "an end in a word that no database takes": Way(
        scripted_completion(JUDGEMENT, finish="\ud800\0"), Outcome.OK, JUDGEMENT
    ),
    "truncation": Way(scripted_completion('{"norms": "a', finish="length"), Outcome.TRUNCATED, '{"norms": "a'),
    "empty": Way(scripted_completion(""), Outcome.SERVER_ERROR),
    "blank": Way(scripted_completion(" \n"), Outcome.SERVER_ERROR, " \n"),
    "nothing": Way(scripted_completion(None), Outcome.SERVER_ERROR),
    "no choice": Way(lambda r: Reply(body={"id": "1", "choices": []}), Outcome.SERVER_ERROR),
    "garbage": Way(lambda r: Reply(raw=b"\x00\xff<html>"), Outcome.SERVER_ERROR),
    "half of JSON": Way(lambda r: Reply(raw=b'{"choices": [{"mess'), Outcome.SERVER_ERROR),
    "another thing's JSON": Way(lambda r: Reply(body={"detail": "hello"}), Outcome.SERVER_ERROR),
}  # fmt: skip


@pytest.mark.parametrize("name", WAYS)
async def test_each_response_format_is_read(server: FakeServer, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    way = WAYS[name]
    server.script = way.reply
    answer = await ask(server, way)
    assert answer.outcome is way.outcome, answer
    assert answer.finish_reason is None or escape_for_storage(answer.finish_reason) == answer.finish_reason
    if way.text is not None or way.outcome is not Outcome.OK:
        assert answer.text == way.text
    body = server.requests[0].body
    assert set(way.sent) <= body.keys()
    assert ("response_format" in body) == (
        "response_format" in way.sent or (way.schema is not None and way.model == FULL)
    )
    if "tools" in way.sent:
        [tool] = body["tools"]
        assert tool["function"]["parameters"]["required"] == ["norms", "reasoning", "score"]
        assert body["tool_choice"]["function"]["name"] == tool["function"]["name"] == "MoralJudgement"


async def ask(server: FakeServer, way: Way) -> Answer:
    model = ModelSection(name="m", model=way.model, api_base=server.url, api_key=f"os.environ/{KEY_VARIABLE}")
    uses_completions_endpoint = way.measure is not None and way.measure.needs_completions_endpoint
    call = Call(
        name="m",
        model=way.model,
        messages=(Message("user", BEGINNING),),
        purpose=Purpose.DIRECT,
        params={"max_tokens": 50} if way.measure is None else measure_params(way.measure),
        schema=way.schema,
        max_words=20 if way.schema else None,
        measure=way.measure,
        continuations=ENDS if uses_completions_endpoint else (),
    )
    gateway = Gateway([model], Limits(max_attempts=1))
    try:
        return await gateway.complete(call)
    finally:
        await gateway.close()
