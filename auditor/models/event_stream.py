"""Join a streamed answer (server-sent events) into the JSON object that the server would have sent without streaming.

Some servers answer only by streams, and some stream although they were not asked to. The joined object is read as any
other response. Formats: OpenAI's chat completion chunks, and the events of its Responses API, whose last one holds the
whole response (platform.openai.com/docs/api-reference/chat-streaming and /responses-streaming).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

CONTENT_TYPE = "text/event-stream"
END_MARK = "[DONE]"
EVENT_STARTS = (b"data:", b"event:", b"id:", b"retry:", b":")
"""Beginnings of a stream of events; no JSON object starts so."""
JOINED_TEXTS = ("content", "reasoning_content", "reasoning", "refusal")
"""Fields of a message that are sent in pieces."""
FINAL_EVENTS = ("response.completed", "response.incomplete", "response.failed")
"""Events of the Responses API that end a stream, and hold the whole response."""


def is_event_stream(content_type: str, body: bytes) -> bool:
    """Whether a body is a stream of events, as its content type or its beginning says."""
    return content_type.lower().startswith(CONTENT_TYPE) or body[:100].lstrip().startswith(EVENT_STARTS)


def join_events(body: bytes) -> dict[str, Any] | None:
    """Join the events of a whole stream into one JSON object: a completion, a response, or the error that ended it.

    Returns:
        None if the stream breaks off before the end of the answer, or holds something else.
    """
    completion: dict[str, Any] = {}
    choices: dict[int, dict[str, Any]] = {}
    for event in _iter_events(body):
        if event == END_MARK:
            break
        chunk = _parse_object(event)
        if chunk is None:
            return None
        if chunk.get("error"):
            return {"error": chunk["error"]}
        if chunk.get("type") in FINAL_EVENTS:
            return chunk["response"] if isinstance(chunk.get("response"), dict) else None
        # Usage comes in the last chunk, or in each, as the count so far.
        completion |= {name: field for name, field in chunk.items() if name != "choices" and field is not None}
        for choice in chunk.get("choices") or []:
            if isinstance(choice, dict):
                _add_piece(choices.setdefault(_position(choice), {"message": {"role": "assistant"}}), choice)
    # The end mark alone does not show that an answer is whole: a proxy may send it after a connection that it lost.
    is_whole = bool(choices) and all(choice.get("finish_reason") for choice in choices.values())
    return _finish(completion, choices) if is_whole else None


def _iter_events(body: bytes) -> Iterator[str]:
    """Yield the data of each event. The data of an event that its connection cut off is yielded too."""
    text = body.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    for block in text.split("\n\n"):
        lines = [line.removeprefix("data:").removeprefix(" ") for line in block.split("\n") if line.startswith("data:")]
        if lines:
            yield "\n".join(lines).strip()


def _parse_object(text: str) -> dict[str, Any] | None:
    """The JSON object of an event; None if it is none."""
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict) else None


def _position(choice: Mapping[str, Any]) -> int:
    """Position of a choice, or of a tool call, among those of an answer."""
    return choice["index"] if isinstance(choice.get("index"), int) else 0


def _add_piece(joined: dict[str, Any], choice: Mapping[str, Any]) -> None:
    """Add a chunk's choice to what came before: texts are appended, the last finish reason counts."""
    joined["index"] = _position(choice)
    if choice.get("finish_reason"):
        joined["finish_reason"] = choice["finish_reason"]
    if isinstance(logprobs := choice.get("logprobs"), dict) and isinstance(logprobs.get("content"), list):
        joined.setdefault("logprobs", {"content": []})["content"].extend(logprobs["content"])
    # A server that sends the whole answer as one event may leave it under its name in responses that are no stream.
    delta, message = choice.get("delta") or choice.get("message"), joined["message"]
    for name, field in (delta if isinstance(delta, dict) else {}).items():
        if name == "tool_calls" and isinstance(field, list):
            _add_tool_calls(message.setdefault("tool_calls", []), field)
        elif name in JOINED_TEXTS and isinstance(field, str):
            message[name] = (message.get(name) or "") + field
        elif field is not None:
            message[name] = field


def _add_tool_calls(joined: list[dict[str, Any]], pieces: list[Any]) -> None:
    """Add pieces of tool calls to those that came before: names and arguments are appended."""
    for piece in pieces:
        if not isinstance(piece, dict):
            continue
        position = _position(piece)
        tool_call = next((tool_call for tool_call in joined if tool_call["index"] == position), None)
        if tool_call is None:
            tool_call = {"index": position, "type": "function", "function": {"name": "", "arguments": ""}}
            joined.append(tool_call)
        tool_call["id"] = piece.get("id") or tool_call.get("id")
        function = piece.get("function")
        for name in ("name", "arguments"):
            if isinstance(function, dict) and isinstance(function.get(name), str):
                tool_call["function"][name] += function[name]


def _finish(completion: dict[str, Any], choices: Mapping[int, dict[str, Any]]) -> dict[str, Any]:
    """The completion of a stream that was sent to its end."""
    in_order = [choices[position] for position in sorted(choices)]
    for choice in in_order:
        choice["message"].setdefault("content", None)
    return {**completion, "object": "chat.completion", "choices": in_order}
