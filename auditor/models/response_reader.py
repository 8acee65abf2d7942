"""Read a successful response in OpenAI's or Gemini's format without litellm, where litellm cannot read it.

Such an answer was paid for. Only fields of the documented types are read; all others count as missing. Responses of
OpenAI's Responses API are always read here: litellm drops refusals, and all text but the first part.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from auditor.config.providers import Provider
from auditor.models.response_body import (
    TokenUsage,
    has_integer_counts,
    is_responses_body,
    parse_usage,
    responses_status,
)


def read_response(body: Mapping[str, Any], provider: Provider) -> Any:
    """Read a body into an object with the attributes of litellm's response that the parsers use.

    Args:
        body: JSON object of a successful response.
        provider: which sent it.

    Returns:
        None if the body has none of OpenAI's formats, nor Gemini's from Gemini or Vertex AI.
    """
    choices = [_read_responses_output(body)] if is_responses_body(body) else _read_openai_choices(body.get("choices"))
    if not choices and provider.has_candidates:
        choices = _read_gemini_candidates(body.get("candidates"))
    if not choices:
        return None
    return SimpleNamespace(model=body.get("model"), choices=choices, usage=_read_usage(body))


def _read_openai_choices(choices: object) -> list[SimpleNamespace]:
    """Read the choices of a chat completion or a completion; empty if one has another format."""
    if not isinstance(choices, Sequence) or not all(_is_openai_choice(choice) for choice in choices):
        return []
    return [
        SimpleNamespace(
            index=choice["index"] if isinstance(choice.get("index"), int) else position,
            finish_reason=_text(choice.get("finish_reason")),
            message=_read_message(_mapping(choice.get("message"))),
            text=_text(choice.get("text")),
            logprobs=_read_logprobs(_mapping(choice.get("logprobs"))),
            prompt_logprobs=choice.get("prompt_logprobs"),
        )
        for position, choice in enumerate(choices)
    ]


def _is_openai_choice(choice: object) -> bool:
    """Whether a choice has a completion's text, or a message with a text, parts, a filled object or null."""
    if not isinstance(choice, Mapping):
        return False
    message = choice.get("message")
    if isinstance(message, Mapping):
        content = message.get("content")
        return content is None or isinstance(content, (str, list)) or (isinstance(content, Mapping) and bool(content))
    return isinstance(choice.get("text"), str)


def _read_message(message: Mapping[str, Any]) -> SimpleNamespace:
    """Read the message of a choice: its text, tool calls, refusal and reasoning."""
    tool_calls = message.get("tool_calls")
    functions = [
        _mapping(_mapping(tool_call).get("function"))
        for tool_call in (tool_calls if isinstance(tool_calls, list) else [])
    ]
    reasoning = _text(message.get("reasoning_content")) or _text(message.get("reasoning"))
    return SimpleNamespace(
        content=_json_text(message.get("content")),
        tool_calls=[
            SimpleNamespace(
                function=SimpleNamespace(
                    name=_text(function.get("name")), arguments=_json_text(function.get("arguments"))
                )
            )
            for function in functions
            if function
        ],
        reasoning_content=reasoning,
        provider_specific_fields={"refusal": refusal} if (refusal := _text(message.get("refusal"))) else {},
    )


def _read_logprobs(logprobs: Mapping[str, Any]) -> SimpleNamespace:
    """Read log-probabilities of a chat's tokens (`content`), or of a completion's (`tokens`, `token_logprobs`)."""
    content = logprobs.get("content")
    return SimpleNamespace(
        content=[
            SimpleNamespace(top_logprobs=_read_candidates(_mapping(token).get("top_logprobs")))
            for token in (content if isinstance(content, list) else [])
        ],
        tokens=logprobs.get("tokens"),
        token_logprobs=logprobs.get("token_logprobs"),
    )


def _read_candidates(candidates: object) -> list[SimpleNamespace]:
    """Read the likeliest tokens at one position; empty if one of them cannot be read."""
    if not isinstance(candidates, list):
        return []
    pairs = [(_mapping(candidate).get("token"), _mapping(candidate).get("logprob")) for candidate in candidates]
    if not all(isinstance(token, str) and isinstance(logprob, (int, float)) for token, logprob in pairs):
        return []
    return [SimpleNamespace(token=token, logprob=logprob) for token, logprob in pairs if not math.isnan(logprob or 0)]


def _read_gemini_candidates(candidates: object) -> list[SimpleNamespace]:
    """Read the candidates of Gemini and Vertex AI; a candidate that used up its tokens thinking has no parts."""
    if not isinstance(candidates, list):
        return []
    choices: list[SimpleNamespace] = []
    for candidate in map(_mapping, candidates):
        parts = _mapping(candidate.get("content")).get("parts")
        texts = [
            (bool(_mapping(part).get("thought")), _text(_mapping(part).get("text")) or "")
            for part in (parts if isinstance(parts, list) else [])
        ]
        message = {
            "content": "".join(text for is_thought, text in texts if not is_thought) or None,
            "reasoning_content": "".join(text for is_thought, text in texts if is_thought) or None,
        }
        choices.append(
            SimpleNamespace(
                index=len(choices),
                finish_reason=_text(candidate.get("finishReason")),
                message=_read_message(message),
                logprobs=_read_logprobs({}),
            )
        )
    return choices


def _read_responses_output(body: Mapping[str, Any]) -> SimpleNamespace:
    """Read the output of the Responses API as a choice: the texts of its messages, its refusals and its tool calls.

    Of messages that name a phase, the final answer is the text, and not what the model remarked before.
    """
    items = [_mapping(item) for item in body["output"]]
    messages = [item for item in items if item.get("type") == "message"]
    parts = [
        _mapping(part)
        for message in [item for item in messages if item.get("phase") == "final_answer"] or messages
        for part in (message["content"] if isinstance(message.get("content"), list) else [])
    ]
    summaries = [
        _text(_mapping(part).get("text")) or ""
        for item in items
        if item.get("type") == "reasoning"
        for part in (item["summary"] if isinstance(item.get("summary"), list) else [])
    ]
    message = {
        "content": "".join(_text(part.get("text")) or "" for part in parts if part.get("type") == "output_text")
        or None,
        "refusal": " ".join(filter(None, (_text(part.get("refusal")) for part in parts))) or None,
        "reasoning_content": " ".join(summaries) or None,
        "tool_calls": [{"function": item} for item in items if item.get("type") == "function_call"],
    }
    return SimpleNamespace(
        index=0, finish_reason=responses_status(body), message=_read_message(message), logprobs=_read_logprobs({})
    )


def _read_usage(body: Mapping[str, Any]) -> SimpleNamespace:
    """Read the token counts; all None if the body has no usable ones."""
    usage = parse_usage(body)
    if usage is None or not has_integer_counts(usage):
        usage = TokenUsage(None, None)
    openai_usage = _mapping(body.get("usage"))
    gemini_usage = _mapping(body.get("usageMetadata"))
    return SimpleNamespace(
        prompt_tokens=usage.prompt,
        completion_tokens=usage.completion,
        prompt_tokens_details=SimpleNamespace(
            cached_tokens=_read_details(openai_usage, "prompt", "input").get("cached_tokens")
        ),
        completion_tokens_details=SimpleNamespace(
            reasoning_tokens=_read_details(openai_usage, "completion", "output").get("reasoning_tokens")
            or gemini_usage.get("thoughtsTokenCount")
        ),
    )


def _read_details(usage: Mapping[str, Any], *sides: str) -> Mapping[str, Any]:
    """The details of a count, by its name in chat completions or in the Responses API; empty without any."""
    return next((details for side in sides if (details := _mapping(usage.get(f"{side}_tokens_details")))), {})


def _mapping(value: object) -> Mapping[str, Any]:
    """The value if it is a JSON object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def _text(value: object) -> str | None:
    """The value if it is a text, else None."""
    return value if isinstance(value, str) else None


def _json_text(value: object) -> str | None:
    """A tool's arguments, or a structured answer, as JSON text; some servers send the object itself."""
    return json.dumps(value) if isinstance(value, Mapping) else _text(value)
