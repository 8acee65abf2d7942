"""Streamed answers: joined into the response that would have come in one piece, found out at first contact, bounded."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from auditor.domain import Answer, Call, Message, Outcome, Purpose
from auditor.errors import ConfigError
from auditor.models.response_body import is_event_stream, join_events
from tests.support.fake_server import FakeServer, Reply, Request, completion, error
from tests.support.gateway_calls import ask as ask_gateway, model_section
from tests.support.known import known

ANSWER = json.dumps({"norms": "a", "reasoning": "b", "score": 0.5})
USAGE = {"prompt_tokens": 70, "completion_tokens": 30, "total_tokens": 100}
STREAM_ONLY = "This model only supports stream mode, please enable the stream parameter to access the model."


def chunk(delta: dict[str, Any], finish: str | None = None, **fields: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
    head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m-1", "usage": None}
    return {**head, "choices": [choice], **fields}


def events(*chunks: dict[str, Any] | str, newline: str = "\n") -> bytes:
    lines = [f"data: {part if isinstance(part, str) else json.dumps(part)}" for part in chunks]
    return "".join(f"{line}{newline}{newline}" for line in lines).encode()


def answer_chunks(text: str = ANSWER, usage: bool = True) -> list[dict[str, Any] | str]:
    """The chunks of a whole answer, a few characters each."""
    pieces = [chunk({"content": text[start : start + 7]}) for start in range(0, len(text), 7)]
    last = [{**chunk({}), "choices": [], "usage": USAGE}] if usage else []
    return [chunk({"role": "assistant", "content": ""}), *pieces, chunk({}, "stop"), *last, "[DONE]"]


def message_events(blocks: list[dict[str, Any]], stop_reason: str | None = "end_turn") -> list[dict[str, Any] | str]:
    """The events of a message of Anthropic's, with each block's text or arguments in two pieces."""
    names: dict[str, Any] = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m-1"}
    message = names | {"content": [], "stop_reason": None, "usage": {"input_tokens": 70, "output_tokens": 1}}
    parts: list[dict[str, Any] | str] = [{"type": "message_start", "message": message}, {"type": "ping"}]
    for index, block in enumerate(blocks):
        [(name, field)] = [(name, field) for name, field in block.items() if name in ("text", "thinking", "input")]
        text, empty = (json.dumps(field), {}) if name == "input" else (field, "")
        kind, piece = ("input_json_delta", "partial_json") if name == "input" else (f"{name}_delta", name)
        parts.append({"type": "content_block_start", "index": index, "content_block": {**block, name: empty}})
        for half in (text[:9], text[9:]):
            delta = {"type": kind, piece: half}
            parts.append({"type": "content_block_delta", "index": index, "delta": delta})
        parts.append({"type": "content_block_stop", "index": index})
    changes = {"stop_reason": stop_reason, "stop_sequence": None}
    end = {"type": "message_delta", "delta": changes, "usage": {"output_tokens": 30}}
    return [*parts, end, {"type": "message_stop"}]


def streamed(body: bytes, content_type: str = "text/event-stream") -> Reply:
    return Reply(raw=body, headers={"content-type": content_type})


# --- joining ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_the_pieces_of_an_answer_are_joined_with_the_usage_of_the_last_chunk(newline: str) -> None:
    joined = known(join_events(b": comment" + newline.encode() * 2 + events(*answer_chunks(), newline=newline)))
    assert (joined["object"], joined["usage"], joined["model"]) == ("chat.completion", USAGE, "m-1")
    [choice] = joined["choices"]
    assert (choice["message"]["content"], choice["finish_reason"]) == (ANSWER, "stop")


def test_reasoning_refusals_tool_calls_and_log_probabilities_are_joined() -> None:
    call = {"index": 0, "id": "t1", "type": "function", "function": {"name": "Reply", "arguments": '{"a"'}}
    rest_of_call = {"index": 0, "function": {"arguments": ": 1}"}}
    first = chunk({"reasoning_content": "Let ", "tool_calls": [call]})
    first["choices"][0]["logprobs"] = {"content": [{"token": "x"}]}
    second = chunk({"reasoning_content": "me see.", "refusal": "No.", "tool_calls": [rest_of_call]}, "tool_calls")
    second["choices"][0]["logprobs"] = {"content": [{"token": "y"}]}
    [choice] = known(join_events(events(first, second)))["choices"]
    assert choice["logprobs"] == {"content": [{"token": "x"}, {"token": "y"}]}
    message = choice["message"]
    assert (message["reasoning_content"], message["refusal"], message["content"]) == ("Let me see.", "No.", None)
    assert message["tool_calls"][0]["function"] == {"name": "Reply", "arguments": '{"a": 1}'}


THOUGHT = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
"""A part of Mistral's (docs.mistral.ai, reasoning), after which the text comes in parts or as it is."""


@pytest.mark.parametrize(
    "chunks",
    [
        [completion(ANSWER).body],
        [chunk({"content": [THOUGHT]}), chunk({"content": ANSWER[:9]}), chunk({"content": ANSWER[9:]}, "stop")],
        [chunk({"content": [THOUGHT, {"type": "text", "text": part}]}, "stop") for part in (ANSWER[:9], ANSWER[9:])],
        [chunk({"content": ANSWER}), completion(ANSWER).body],
    ],
    ids=["in one event", "after a thought", "in parts", "and once more at the end"],
)
def test_a_whole_answer_is_read_once(chunks: list[dict[str, Any] | str]) -> None:
    assert known(join_events(events(*chunks, "[DONE]")))["choices"][0]["message"]["content"] == ANSWER


def test_a_stream_without_an_end_is_no_answer() -> None:
    all_chunks = answer_chunks()
    for n_chunks in range(len(all_chunks) - 2):
        assert join_events(events(*all_chunks[:n_chunks])) is None
    assert join_events(events(*all_chunks[:-1])) is not None, "the finish reason ends an answer too"
    assert join_events(events(chunk({"content": "SCORE = 0.5"}), "[DONE]")) is None, "a proxy ends what it lost so"
    body = events(*all_chunks)
    finish_at = body.index(b'"stop"')
    for size in range(0, finish_at, 97):
        assert join_events(body[:size]) is None


def test_the_last_event_of_the_responses_api_holds_the_response() -> None:
    response = {"object": "response", "status": "completed", "output": []}
    started = {"type": "response.created", "response": {"object": "response", "status": "in_progress"}}
    assert join_events(events(started, {"type": "response.completed", "response": response})) == response
    assert join_events(events(started)) is None


def test_an_error_in_a_stream_is_the_response() -> None:
    error_body = {"error": {"message": "Overloaded"}}
    assert join_events(events(*answer_chunks()[:3], error_body)) == error_body


@given(st.binary(max_size=300) | st.lists(st.text(max_size=20)).map(lambda parts: events(*parts)))
def test_no_body_breaks_the_reading(body: bytes) -> None:
    joined = join_events(body)
    assert joined is None or isinstance(joined, dict)
    is_event_stream("", body)


# --- asking -----------------------------------------------------------------------------------------------------


async def ask(server: FakeServer, model: str = "openai/m", **settings: Any) -> list[Answer]:
    """The answers to two questions with structured answers, one after the other."""
    section = model_section(server, model, price={"input": 10, "output": 10}, **settings)
    calls = [
        Call("m", model, (Message("user", f"Question {number}?"),), Purpose.DIRECT, number, {"max_tokens": 400},
             schema="ReasonedJudgement", max_words=60, server=section.api_base)
        for number in range(2)
    ]  # fmt: skip
    return await ask_gateway(section, *calls, max_attempts=1)


def stream_only(request: Request) -> Reply:
    """A server that answers only by streams."""
    if not request.body.get("stream"):
        return error(400, STREAM_ONLY, code="invalid_parameter_error")
    return streamed(events(*answer_chunks(usage="stream_options" in request.body)))


def test_the_blocks_of_anthropics_message_are_joined() -> None:
    blocks: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": "Let me weigh it.", "signature": "s"},
        {"type": "text", "text": "Here it is, for you."},
        {"type": "tool_use", "id": "t", "name": "Reply", "input": {"score": 0.5}},
    ]
    joined = known(join_events(events(*message_events(blocks))))
    assert joined["content"] == blocks
    assert (joined["stop_reason"], joined["usage"]) == ("end_turn", {"input_tokens": 70, "output_tokens": 30})


def test_anthropics_message_is_whole_with_the_reason_why_it_ended_and_no_answer_before() -> None:
    blocks = [{"type": "text", "text": ANSWER}]
    for n_events in range(7):
        assert join_events(events(*message_events(blocks)[:n_events])) is None
    assert known(join_events(events(*message_events(blocks)[:7])))["content"] == blocks
    assert join_events(events(*message_events(blocks, stop_reason=None))) is None


async def test_a_server_that_only_streams_is_found_out_at_first_contact(server: FakeServer) -> None:
    server.script = stream_only
    answers = await ask(server)
    assert [(answer.outcome, answer.text) for answer in answers] == [(Outcome.OK, ANSWER)] * 2
    assert [len(answer.attempts) for answer in answers] == [2, 1]
    assert [request.body.get("stream") for request in server.requests] == [None, True, True]
    assert server.requests[-1].body["stream_options"] == {"include_usage": True}
    assert (answers[1].prompt_tokens, answers[1].completion_tokens) == (70, 30)
    assert answers[1].cost_usd == pytest.approx(100 * 10 / 1e6)


async def test_with_the_setting_the_first_request_asks_for_a_stream(server: FakeServer) -> None:
    server.script = stream_only
    answers = await ask(server, stream=True)
    assert [len(answer.attempts) for answer in answers] == [1, 1]
    assert answers[0].finish_reason == "stop"


async def test_a_server_that_refuses_to_send_the_usage_is_asked_without_it(server: FakeServer) -> None:
    def script(request: Request) -> Reply:
        if "stream_options" in request.body:
            return error(400, "Unrecognized request argument supplied: stream_options")
        return stream_only(request)

    server.script = script
    answers = await ask(server, stream=True)
    assert [answer.outcome for answer in answers] == [Outcome.OK, Outcome.OK]
    assert "stream_options" not in server.requests[-1].body


@pytest.mark.parametrize("content_type", ["text/event-stream; charset=utf-8", "application/json", "text/plain"])
async def test_a_server_may_stream_although_it_was_not_asked_to(server: FakeServer, content_type: str) -> None:
    server.script = lambda _: streamed(events(*answer_chunks()), content_type)
    answers = await ask(server)
    assert [(answer.outcome, answer.text, len(answer.attempts)) for answer in answers] == [(Outcome.OK, ANSWER, 1)] * 2


async def test_a_gateway_may_stream_anthropics_message_although_it_was_not_asked_to(server: FakeServer) -> None:
    server.script = lambda _: streamed(events(*message_events([{"type": "text", "text": ANSWER}])))
    answers = await ask(server, "anthropic/claude-sonnet-4-5")
    assert [(answer.outcome, answer.text, len(answer.attempts)) for answer in answers] == [(Outcome.OK, ANSWER, 1)] * 2
    assert (answers[0].prompt_tokens, answers[0].completion_tokens) == (70, 30)


@pytest.mark.parametrize(
    ("chunks", "words"),
    [
        (answer_chunks()[:-3], "a stream that breaks off"),
        ([*answer_chunks()[:2], {"error": {"message": "The engine is overloaded."}}], "The engine is overloaded."),
        ([chunk({"content": "x" * 100_000})] * 90, "larger than 8 MB"),
    ],
    ids=["it breaks off", "an error", "more than 8 MB"],
)
async def test_a_stream_without_a_whole_answer_is_no_answer(
    server: FakeServer, chunks: list[dict[str, Any] | str], words: str
) -> None:
    server.script = lambda _: streamed(events(*chunks))
    [answer, _] = await ask(server, stream=True)
    assert (answer.outcome, answer.text) == (Outcome.SERVER_ERROR, None)
    assert words in (answer.error or "")


async def test_the_deadline_holds_for_a_stream_that_never_ends(server: FakeServer) -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
    pieces = [part for _ in range(50) for part in (events(chunk({"content": "x"})), 0.1)]
    server.script = lambda _: Reply(wire=(head, *pieces))
    [answer, _] = await ask(server, stream=True, timeout_s=0.5)
    assert answer.outcome is Outcome.TIMEOUT  # not the error for a stream that breaks off, as this one does at last


async def test_an_ordinary_server_is_not_asked_for_a_stream(server: FakeServer) -> None:
    server.script = lambda _: completion(ANSWER)
    await ask(server)
    assert all("stream" not in request.body for request in server.requests)


async def test_a_provider_with_a_protocol_of_its_own_is_not_asked_for_streams(server: FakeServer) -> None:
    with pytest.raises(ConfigError, match="stream = true"):
        await ask(server, model="anthropic/m", stream=True)
