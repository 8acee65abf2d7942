"""Reading what a provider sent back, past what litellm makes of it: unknown stays unknown, cut off is not complete."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from auditor.domain import Answer, Call, Outcome, Purpose
from auditor.models.budget import plausible_token_counts
from auditor.models.finish_reasons import OUTCOME_BY_CATEGORY, FinishCategory, worst_category
from auditor.models.response_body import MAX_FINISH_REASON_CHARS, TokenUsage, join_text_parts, native_finish_reason
from auditor.models.structured import is_complete_structure
from auditor.redaction import redact
from auditor.text_safety import map_strings

T = TypeVar("T")
ResponseBody = Mapping[str, Any] | None
FORMATTED_PURPOSES = frozenset({Purpose.DIRECT})
"""Purposes whose free text has a form, such as a score line, without which their reader takes no answer out of it."""
NO_CHOICE_ERROR = "the provider sent an answer without any choice"
NO_TEXT_ERROR = (
    "its tokens ran out before any text, as in hidden reasoning: raise max_tokens, or ask for less reasoning"
)


def parse_response(call: Call, response: Any, body: ResponseBody = None) -> Answer:
    """What a completed request brought: words, a refusal, a cut-off text, or nothing.

    Args:
        call: what was asked.
        response: litellm's response object.
        body: the answer as the provider sent it; None where it is not known in full.
    """
    choices = getattr(response, "choices", None) or []
    if not choices:
        if _is_all_reasoning(call, response, None):
            return build_answer(call, response, body, Outcome.TRUNCATED, error=NO_TEXT_ERROR)
        return build_answer(call, response, body, Outcome.SERVER_ERROR, error=NO_CHOICE_ERROR)
    message = choices[0].message
    text = join_text_parts(body) or (message.content if isinstance(message.content, str) else None)
    called = _tool_call_arguments(call, message)
    if called is not None and not (text and text.strip()):
        if call.schema is None:
            why = "the model called a tool that it was not given, and said nothing"
            return build_answer(call, response, body, Outcome.UNPARSED, error=why)
        text = called
    refusal = (getattr(message, "provider_specific_fields", None) or {}).get("refusal")
    outcome, error = (Outcome.REFUSED, None) if refusal else _classify_outcome(call, response, body, text)
    if outcome is Outcome.SERVER_ERROR and (text or "").strip():
        text = None  # whatever was written before the provider failed counts for nothing
    return build_answer(call, response, body, outcome, text=text or refusal, error=error)


def _classify_outcome(call: Call, response: Any, body: ResponseBody, text: str | None) -> tuple[Outcome, str | None]:
    """How a call with this text ended, and why where it failed."""
    reason, meaning = finish_reason(response.choices[0], body), finish_category(response, body)
    is_empty = not (text and text.strip())
    if is_empty and meaning is not FinishCategory.FAILED and meaning is not FinishCategory.REFUSED:
        if meaning is FinishCategory.TRUNCATED or _is_all_reasoning(call, response, response.choices[0].message):
            return Outcome.TRUNCATED, NO_TEXT_ERROR
        if meaning is not FinishCategory.MALFORMED:
            return Outcome.SERVER_ERROR, "the provider sent an empty text"
    if meaning in OUTCOME_BY_CATEGORY:
        errors = {
            FinishCategory.FAILED: f"the provider failed while the model answered (finish reason {reason!r})",
            FinishCategory.MALFORMED: f"the provider could not read what the model wrote (finish reason {reason!r})",
        }
        return OUTCOME_BY_CATEGORY[meaning], errors.get(meaning)
    if native_finish_reason(body) is None and body is not None and _is_at_token_limit(call, response):
        return Outcome.TRUNCATED, None
    if meaning is FinishCategory.UNKNOWN and not _is_complete_text(call, text or ""):
        return Outcome.UNPARSED, f"the finish reason {reason!r} is not documented, and the answer may be cut off"
    return Outcome.OK, None


def _is_complete_text(call: Call, text: str) -> bool:
    """Whether a text shows by itself that nothing of it is missing, or its reader requires that it does."""
    return call.purpose in FORMATTED_PURPOSES if call.schema is None else is_complete_structure(call.schema, text)


def _is_at_token_limit(call: Call, response: Any) -> bool:
    """Whether the answer has as many tokens as it may have; a count that is not believed says nothing."""
    limit, counts = (
        call.params.get("max_tokens"),
        plausible_token_counts(call, litellm_token_usage(response)[0], has_text=False),
    )
    return isinstance(limit, int) and counts is not None and counts[1] >= limit > 0


def _is_all_reasoning(call: Call, response: Any, message: Any) -> bool:
    """Whether an answer without a text was paid for in full: to ask again with the same limit would bring no more."""
    usage = getattr(response, "usage", None)
    completion = getattr(usage, "completion_tokens", None)
    reasoning = getattr(getattr(usage, "completion_tokens_details", None), "reasoning_tokens", None)
    counted = isinstance(completion, int) and isinstance(reasoning, int) and 0 < completion <= reasoning
    return counted or _is_at_token_limit(call, response) or bool(getattr(message, "reasoning_content", None))


def _tool_call_arguments(call: Call, message: Any) -> str | None:
    """Arguments of the tool that a model called, as it wrote them: the one asked for, else the first."""
    found = [getattr(c, "function", None) for c in getattr(message, "tool_calls", None) or []]
    named = [f for f in found if f is not None and f.name == call.schema] or [f for f in found if f is not None]
    return str(named[0].arguments or "") if named else None


def build_answer(
    call: Call,
    response: Any,
    body: ResponseBody,
    outcome: Outcome,
    text: str | None = None,
    error: str | None = None,
) -> Answer:
    """An answer with what the response says of itself: who served it and why it ended; what it cost is added later."""
    choices = getattr(response, "choices", None) or []
    return Answer(
        key=call.key,
        outcome=outcome,
        text=text,
        finish_reason=finish_reason(choices[0], body) if choices else None,
        served_model=getattr(response, "model", None),
        error=error,
    )


def finish_reason(choice: Any, body: ResponseBody) -> str | None:
    """The finish reason as the provider wrote it, else litellm's word for it; None where the provider sent none."""
    specific = getattr(choice, "provider_specific_fields", None) or {}
    mapped = str(choice.finish_reason) if choice.finish_reason else None
    reason = native_finish_reason(body) or specific.get("native_finish_reason") or mapped
    if body is not None and native_finish_reason(body) is None and reason == "stop":
        return None  # litellm fills it in
    return None if reason is None else str(reason)[:MAX_FINISH_REASON_CHARS]


def finish_category(response: Any, body: ResponseBody) -> FinishCategory:
    """What the finish reasons of a response mean: the provider's own or litellm's, whichever is worse."""
    choice = response.choices[0]
    return worst_category(finish_reason(choice, body), str(choice.finish_reason) if choice.finish_reason else None)


def litellm_token_usage(response: Any) -> tuple[TokenUsage | None, int | None]:
    """Token counts as litellm read them, and how many of the prompt's tokens the provider had cached.

    It writes zeros where the provider said nothing, and puts into one place what providers name `cached_tokens`,
    `cache_read_input_tokens` or `prompt_cache_hit_tokens`.
    """
    usage = getattr(response, "usage", None)
    if not (prompt := getattr(usage, "prompt_tokens", None)):
        return None, None
    cached = getattr(getattr(usage, "prompt_tokens_details", None), "cached_tokens", None)
    known = isinstance(cached, int) and isinstance(prompt, int) and 0 <= cached <= prompt
    return TokenUsage(prompt, getattr(usage, "completion_tokens", None)), cached if known else None


def escape_for_storage(text: str) -> str:
    """Text that any database takes: lone surrogates and NUL become visible escapes."""
    if text.isascii() and "\0" not in text:
        return text
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\x00")


def sanitize(text: str) -> str:
    """A provider's text as it may be stored and shown: without secrets, in characters that any database takes."""
    return escape_for_storage(redact(text))


def sanitize_strings(value: T) -> T:
    """A copy of a dataclass, or of decoded JSON, with every string sanitized: whatever a provider sent passes here."""
    return map_strings(value, sanitize)
