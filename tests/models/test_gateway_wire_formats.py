"""Each response format of a provider: the request that is sent and the answer that is read."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from auditor.domain import Answer, AnswerForm, Call, DeclaredCapabilities, LogprobMeasure, Message, Outcome, Purpose
from auditor.text_safety import escape_for_storage
from tests.models.test_logprobs import BEGINNING, choice, echo, listed, measuring_call
from tests.support.fake_server import FakeServer, Reply, Request, completion
from tests.support.gateway_calls import ask as ask_gateway, model_section

JUDGEMENT = json.dumps({"norms": "a", "reasoning": "b", "score": -0.5})
OTHER_JUDGEMENT = json.dumps({"norms": "a", "reasoning": "b", "score": 0.9})
FULL, TOOLS_ONLY = "openai/x", "volcengine/x"


def tool_call(name: str, arguments: str, text: str | None = None) -> Reply:
    function = {"name": name, "arguments": arguments}
    calls = [{"id": "call_1", "type": "function", "function": function}]
    return completion(text, finish="tool_calls", tool_calls=calls)


def tool_calls(*arguments: str) -> Reply:
    functions = [{"name": "MoralJudgement", "arguments": text} for text in arguments]
    calls = [{"id": f"call_{number}", "type": "function", "function": f} for number, f in enumerate(functions)]
    return completion(None, finish="tool_calls", tool_calls=calls)


class ResponseCase(NamedTuple):
    """A provider's reply, the call it answers, and the expected outcome, text and request keys."""

    reply: Callable[[Request], Reply]
    outcome: Outcome
    text: str | None = None
    model: str = FULL
    schema: str | None = "MoralJudgement"
    measure: LogprobMeasure | None = None
    sent: tuple[str, ...] = ()
    """Keys that the request's body must have."""
    declared: DeclaredCapabilities | None = None


def reply_with(text: str | None, **more: Any) -> Callable[[Request], Reply]:
    return lambda request: completion(text, **more)


RESPONSE_CASES = {
    "chat with JSON schema": ResponseCase(reply_with(JUDGEMENT), Outcome.OK, JUDGEMENT, sent=("response_format",)),
    "chat without JSON schema": ResponseCase(reply_with("SCORE = -0.5"), Outcome.OK, "SCORE = -0.5", schema=None),
    "a tool where litellm lists no schema": ResponseCase(lambda r: tool_call("MoralJudgement", JUDGEMENT), Outcome.OK,
                                                         JUDGEMENT, TOOLS_ONLY, sent=("tools", "tool_choice")),
    "JSON schema that litellm's list denies, as the config declares": ResponseCase(
        reply_with(JUDGEMENT), Outcome.OK, JUDGEMENT, TOOLS_ONLY, sent=("response_format",),
        declared=DeclaredCapabilities(form=AnswerForm.JSON_SCHEMA),
    ),
    "a tool though a schema was sent": ResponseCase(lambda r: tool_call("MoralJudgement", JUDGEMENT), Outcome.OK,
                                                    JUDGEMENT, sent=("response_format",)),
    "a tool called twice alike": ResponseCase(lambda r: tool_calls(JUDGEMENT, JUDGEMENT), Outcome.OK, JUDGEMENT),
    "a tool called twice with two answers": ResponseCase(lambda r: tool_calls(JUDGEMENT, OTHER_JUDGEMENT), Outcome.OK,
                                                         f"{JUDGEMENT}\n{OTHER_JUDGEMENT}"),
    "a tool of another name": ResponseCase(lambda r: tool_call("answer", JUDGEMENT), Outcome.OK, JUDGEMENT),
    "words beside a tool": ResponseCase(lambda r: tool_call("search", "{}", JUDGEMENT), Outcome.OK, JUDGEMENT),
    "words before the required tool": ResponseCase(
        lambda r: tool_call("MoralJudgement", JUDGEMENT, "I will record it."), Outcome.OK,
        f"I will record it.\n{JUDGEMENT}",
    ),
    "the same answer in words and in the tool": ResponseCase(
        lambda r: tool_call("MoralJudgement", JUDGEMENT, JUDGEMENT), Outcome.OK, JUDGEMENT,
    ),
    "another answer in words than in the tool": ResponseCase(
        lambda r: tool_call("MoralJudgement", JUDGEMENT, OTHER_JUDGEMENT), Outcome.OK,
        f"{OTHER_JUDGEMENT}\n{JUDGEMENT}",
    ),
    "a tool without arguments": ResponseCase(lambda r: tool_call("MoralJudgement", ""), Outcome.SERVER_ERROR),
    "a tool in place of words": ResponseCase(lambda r: tool_call("search", "{}"), Outcome.UNPARSED, schema=None),
    "a tool cut off": ResponseCase(
        lambda r: completion(None, finish="length",
                             tool_calls=[{"id": "c", "type": "function",
                                          "function": {"name": "MoralJudgement", "arguments": '{"no'}}]),
        Outcome.TRUNCATED, '{"no',
    ),
    "next token with top_logprobs": ResponseCase(lambda r: choice({"A": -0.5, "B": -1.0}), Outcome.OK,
                                                 '[["A", -0.5], ["B", -1.0]]', schema=None,
                                                 measure=LogprobMeasure.CHOICE, sent=("logprobs", "top_logprobs")),
    "completions with echo": ResponseCase(echo, Outcome.OK, schema=None, model="hosted_vllm/x",
                                          measure=LogprobMeasure.ECHO, sent=("echo", "logprobs", "prompt")),
    "completions with prompt_logprobs": ResponseCase(listed, Outcome.OK, schema=None, model="hosted_vllm/x",
                                                     measure=LogprobMeasure.PROMPT, sent=("prompt_logprobs", "prompt")),
    "refusal in its field": ResponseCase(reply_with(None, refusal="I cannot."), Outcome.REFUSED, "I cannot."),
    "refusal by a filter, with words": ResponseCase(reply_with("0.9", finish="content_filter"), Outcome.REFUSED, "0.9"),
    "an end in a word that no database takes": ResponseCase(reply_with(JUDGEMENT, finish="\ud800\0"), Outcome.OK,
                                                            JUDGEMENT),
    "truncation": ResponseCase(reply_with('{"norms": "a', finish="length"), Outcome.TRUNCATED, '{"norms": "a'),
    "blank": ResponseCase(reply_with(" \n"), Outcome.SERVER_ERROR, " \n"),
    "nothing": ResponseCase(reply_with(None), Outcome.SERVER_ERROR),
    "garbage": ResponseCase(lambda r: Reply(raw=b"\x00\xff<html>"), Outcome.SERVER_ERROR),
    "another thing's JSON": ResponseCase(lambda r: Reply(body={"detail": "hello"}), Outcome.SERVER_ERROR),
}  # fmt: skip


@pytest.mark.parametrize("name", RESPONSE_CASES)
async def test_each_response_format_is_read(server: FakeServer, name: str) -> None:
    case = RESPONSE_CASES[name]
    server.script = case.reply
    answer = await ask(server, case)
    assert answer.outcome is case.outcome, answer
    assert answer.finish_reason is None or escape_for_storage(answer.finish_reason) == answer.finish_reason
    if case.text is not None or case.outcome is not Outcome.OK:
        assert answer.text == case.text
    body = server.requests[0].body
    assert set(case.sent) <= body.keys()
    assert ("response_format" in body) == (
        "response_format" in case.sent or (case.schema is not None and case.model == FULL)
    )
    if "tools" in case.sent:
        [tool] = body["tools"]
        assert tool["function"]["parameters"]["required"] == ["norms", "reasoning", "score"]
        assert body["tool_choice"]["function"]["name"] == tool["function"]["name"] == "MoralJudgement"


async def ask(server: FakeServer, case: ResponseCase) -> Answer:
    if case.measure is not None:
        call = measuring_call(case.model, case.measure, Purpose.DIRECT)
    else:
        call = Call("m", case.model, (Message("user", BEGINNING),), Purpose.DIRECT, params={"max_tokens": 50},
                    schema=case.schema, max_words=20 if case.schema else None, declared=case.declared)  # fmt: skip
    [answer] = await ask_gateway(model_section(server, case.model), call, max_attempts=1)
    return answer
