"""The body of an answer as the provider sent it: its finish reason and its token counts, in each documented form.

litellm loses both: it maps an unknown reason to `stop` before anybody can read it (Anthropic, Bedrock, Cohere), fills
in zeros for token counts that are missing, and raises where it cannot read them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MAX_FINISH_REASON_CHARS = 100
FINISH_REASON_FIELDS = (
    "native_finish_reason",
    "finish_reason",
    "finishReason",
    "stop_reason",
    "stopReason",
    "done_reason",
    "completionReason",
)
"""Names of the finish reason. vLLM has `stop_reason` beside `finish_reason`, for the matched stop sequence."""
ANSWER_LIST_FIELDS = ("choices", "candidates", "results", "outputs", "generations")
"""Names of the list whose first element is the answer."""
WRAPPER_FIELDS = ("details", "chatResponse", "output")
"""Names of objects around either, at Hugging Face, OCI and DashScope."""
REQUIRED_FIELDS: Mapping[str, Mapping[str, Any]] = {
    "candidates": {"usageMetadata": {"promptTokenCount": 0, "candidatesTokenCount": 0, "totalTokenCount": 0}},
    "content": {"usage": {"input_tokens": 0, "output_tokens": 0}, "stop_reason": None},
    "output": {"usage": {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0}, "stopReason": None},
    "choices": {"usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}, "service_tier": "auto"},
}
"""What litellm cannot read an answer without, though it has a text, by a field that only this form of answer has."""


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Token counts as a provider sent them, whatever they are; None where they are missing."""

    prompt: object
    completion: object


def native_finish_reason(body: Mapping[str, Any] | None) -> str | None:
    """The finish reason as the provider wrote it; None where the body has none."""
    if body is None:
        return None
    for part in _finish_reason_objects(body):
        for name in FINISH_REASON_FIELDS:
            if isinstance(reason := part.get(name), (str, int)) and not isinstance(reason, bool) and str(reason):
                return str(reason)[:MAX_FINISH_REASON_CHARS]
    return None


def parse_usage(body: Mapping[str, Any] | None) -> TokenUsage | None:
    """The token counts in a body, cached prompt tokens and hidden reasoning included; None where it has no counts."""
    if body is None:
        return None
    if "usageMetadata" in body:
        return _parse_gemini_usage(body["usageMetadata"])
    if "usage" not in body:
        return _parse_ollama_usage(body)
    usage = body["usage"]
    if not isinstance(usage, Mapping):
        return None if usage is None else TokenUsage(usage, None)
    usage = next((usage[name] for name in ("tokens", "billed_units") if isinstance(usage.get(name), Mapping)), usage)
    if "prompt_tokens" in usage or "completion_tokens" in usage:
        return TokenUsage(usage.get("prompt_tokens"), usage.get("completion_tokens"))
    if "inputTokens" in usage:
        cached = (usage.get("cacheReadInputTokens"), usage.get("cacheWriteInputTokens"))
        return TokenUsage(_sum_counts(usage["inputTokens"], *cached), usage.get("outputTokens"))
    cached = (usage.get("cache_read_input_tokens"), usage.get("cache_creation_input_tokens"))
    return TokenUsage(_sum_counts(usage.get("input_tokens"), *cached), usage.get("output_tokens"))


def has_integer_counts(usage: TokenUsage) -> bool:
    """Whether both counts are whole numbers, as litellm can read them."""
    return type(usage.prompt) is int and type(usage.completion) is int


def join_text_parts(body: Mapping[str, Any] | None) -> str | None:
    """A text that comes as a list of parts in OpenAI's form, as Mistral's may; None where there is no such list.

    litellm takes the last part for the whole, or none of them.
    """
    match body:
        case {"choices": [{"message": {"content": [*parts]}}, *_]}:
            texts = [part.get("text") for part in parts if isinstance(part, Mapping) and part.get("type") == "text"]
            return "".join(text for text in texts if isinstance(text, str)) or None
    return None


def fill_missing_fields(body: Mapping[str, Any]) -> bytes | None:
    """The same body with what litellm cannot do without; None where it has all of that, or its form is not known."""
    if (text := join_text_parts(body)) is not None:
        first, *others = body["choices"]
        body = {**body, "choices": [{**first, "message": {**first["message"], "content": text}}, *others]}
        return fill_missing_fields(body) or json.dumps(body).encode()
    form = next((field for field in REQUIRED_FIELDS if field in body), None)
    if form is None:
        return None
    usage = parse_usage(body)
    is_usable = usage is not None and has_integer_counts(usage)
    missing = {
        k: v for k, v in REQUIRED_FIELDS[form].items() if k not in body or (k.startswith("usage") and not is_usable)
    }
    return json.dumps({**body, **missing}).encode() if missing else None


def _finish_reason_objects(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Where a finish reason may stand: in the answer first, then around it."""
    places = [body, *(body[name] for name in WRAPPER_FIELDS if isinstance(body.get(name), Mapping))]
    answers = [
        answer
        for part in places
        for name in ANSWER_LIST_FIELDS
        if isinstance(part.get(name), list) and part[name] and isinstance(answer := part[name][0], Mapping)
    ]
    return [*answers, *places]


def _parse_gemini_usage(usage: object) -> TokenUsage:
    """Gemini's and Vertex AI's counts, in which hidden reasoning stands apart, and what is zero is left out."""
    if not isinstance(usage, Mapping):
        return TokenUsage(usage, None)
    return TokenUsage(
        usage.get("promptTokenCount"),
        _sum_counts(usage.get("candidatesTokenCount", 0), usage.get("thoughtsTokenCount")),
    )


def _parse_ollama_usage(body: Mapping[str, Any]) -> TokenUsage | None:
    known = "prompt_eval_count" in body or "eval_count" in body
    return TokenUsage(body.get("prompt_eval_count"), body.get("eval_count")) if known else None


def _sum_counts(first: object, *others: object) -> object:
    """The sum where all that is there is a whole number; else what is none, so that nobody takes it for a count."""
    total = 0
    for value in (first, *(other for other in others if other is not None)):
        if not isinstance(value, int) or isinstance(value, bool):
            return value
        total += value
    return total
