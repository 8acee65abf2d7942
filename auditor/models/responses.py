"""Reading what a provider sent back, past what litellm makes of it: unknown stays unknown, cut off is not complete."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from auditor.domain import Answer, Call, Outcome
from auditor.models.door import TokenPrice

T = TypeVar("T")
NO_CHOICE = "the provider sent an answer without any choice"
REFUSALS = ("content_filter", "refusal", "safety", "recitation", "prohibited_content", "blocklist")


def read_response(call: Call, response: Any, price: TokenPrice | None) -> Answer:
    """What a completed request brought: words, a refusal, a cut-off text, or nothing.

    Args:
        call: what was asked.
        response: litellm's response object.
        price: of a token; None when unknown.
    """
    choices = getattr(response, "choices", None) or []
    if not choices:
        return Answer(call.key, Outcome.SERVER_ERROR, error=NO_CHOICE)
    message = choices[0].message
    text = message.content if isinstance(message.content, str) else None
    called = _called(call, message)
    if called is not None and not (text and text.strip()):
        if call.schema is None:
            why = "the model called a tool that it was not given, and said nothing"
            return answer_of(call, response, price, Outcome.UNPARSED, error=why)
        text = called
    refusal = (getattr(message, "provider_specific_fields", None) or {}).get("refusal")
    outcome = _outcome(text, refusal, finish_reason(choices[0]))
    error = "the provider sent an empty text" if outcome is Outcome.SERVER_ERROR else None
    return answer_of(call, response, price, outcome, text=text or refusal, error=error)


def _called(call: Call, message: Any) -> str | None:
    """Arguments of the tool that a model called, as it wrote them: the one asked for, else the first."""
    found = [getattr(c, "function", None) for c in getattr(message, "tool_calls", None) or []]
    named = [f for f in found if f is not None and f.name == call.schema] or [f for f in found if f is not None]
    return str(named[0].arguments or "") if named else None


def answer_of(
    call: Call,
    response: Any,
    price: TokenPrice | None,
    outcome: Outcome,
    text: str | None = None,
    error: str | None = None,
) -> Answer:
    """An answer with what the response says of itself: who served it, why it ended, tokens, cost."""
    choices = getattr(response, "choices", None) or []
    prompt, completion, cached = _usage(response)
    return Answer(
        key=call.key,
        outcome=outcome,
        text=text,
        finish_reason=finish_reason(choices[0]) if choices else None,
        served_model=getattr(response, "model", None),
        prompt_tokens=prompt,
        completion_tokens=completion,
        cached_tokens=cached,
        cost_usd=None if price is None or prompt is None else price.cost(prompt, completion or 0, cached or 0),
        error=error,
    )


def _outcome(text: str | None, refusal: str | None, finish: str | None) -> Outcome:
    if refusal or (finish or "").lower() in REFUSALS:
        return Outcome.REFUSED
    if finish in ("length", "max_tokens"):
        return Outcome.TRUNCATED
    return Outcome.OK if text and text.strip() else Outcome.SERVER_ERROR


def finish_reason(choice: Any) -> str | None:
    """The provider's own reason: litellm maps what it does not know to `stop`."""
    specific = getattr(choice, "provider_specific_fields", None) or {}
    native = specific.get("native_finish_reason")
    return str(native or choice.finish_reason) if native or choice.finish_reason else None


def _usage(response: Any) -> tuple[int | None, int | None, int | None]:
    """Tokens in, out, and in but kept of earlier prompts; litellm writes zeros where the provider said nothing.

    It puts into one place what providers name `cached_tokens`, `cache_read_input_tokens` or `prompt_cache_hit_tokens`.
    """
    usage = getattr(response, "usage", None)
    prompt = getattr(usage, "prompt_tokens", None)
    if not prompt:
        return None, None, None
    cached = getattr(getattr(usage, "prompt_tokens_details", None), "cached_tokens", None)
    told = cached if isinstance(cached, int) and 0 <= cached <= prompt else None
    return prompt, getattr(usage, "completion_tokens", None), told


def storable(text: str) -> str:
    """Text that any database takes: lone surrogates and NUL become visible escapes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\x00")


def with_storable_strings(value: T) -> T:
    """A copy of a dataclass whose strings, at any depth, can all be stored: whatever a provider sent passes here."""
    result: Any = value
    if type(result) is str:  # an enumeration's members are strings, too, and stay
        result = storable(result)
    elif isinstance(result, tuple):
        result = tuple(map(with_storable_strings, result))
    elif is_dataclass(result) and not isinstance(result, type):
        result = replace(result, **{f.name: with_storable_strings(getattr(result, f.name)) for f in fields(result)})
    return result  # type: ignore[no-any-return]
