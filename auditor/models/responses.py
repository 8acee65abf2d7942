"""Reading what a provider sent back, past what litellm makes of it: unknown stays unknown, cut off is not complete."""

from __future__ import annotations

from typing import Any

from auditor.domain import Answer, Call, Outcome

REFUSALS = ("content_filter", "refusal", "safety", "recitation", "prohibited_content", "blocklist")


def read_response(call: Call, response: Any, price: tuple[float, float] | None) -> Answer:
    """What a completed request brought: words, a refusal, a cut-off text, or nothing.

    Args:
        call: what was asked.
        response: litellm's response object.
        price: US dollars per input and output token; None when unknown.
    """
    choices = getattr(response, "choices", None) or []
    if not choices:
        return Answer(call.key, Outcome.SERVER_ERROR, error="the provider sent an answer without any choice")
    message = choices[0].message
    text = message.content if isinstance(message.content, str) else None
    refusal = (getattr(message, "provider_specific_fields", None) or {}).get("refusal")
    outcome = _outcome(text, refusal, finish_reason(choices[0]))
    error = "the provider sent an empty text" if outcome is Outcome.SERVER_ERROR else None
    return answer_of(call, response, price, outcome, text=text or refusal, error=error)


def answer_of(
    call: Call,
    response: Any,
    price: tuple[float, float] | None,
    outcome: Outcome,
    text: str | None = None,
    error: str | None = None,
) -> Answer:
    """An answer with what the response says of itself: who served it, why it ended, tokens, cost."""
    choices = getattr(response, "choices", None) or []
    prompt, completion = _usage(response)
    return Answer(
        key=call.key,
        outcome=outcome,
        text=_storable(text),
        finish_reason=finish_reason(choices[0]) if choices else None,
        served_model=getattr(response, "model", None),
        prompt_tokens=prompt,
        completion_tokens=completion,
        cost_usd=None if price is None or prompt is None else prompt * price[0] + (completion or 0) * price[1],
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


def _usage(response: Any) -> tuple[int | None, int | None]:
    """Tokens in and out; litellm writes zeros where the provider said nothing."""
    usage = getattr(response, "usage", None)
    prompt = getattr(usage, "prompt_tokens", None)
    return (prompt, getattr(usage, "completion_tokens", None)) if prompt else (None, None)


def _storable(text: str | None) -> str | None:
    """Text that any database takes: lone surrogates and NUL become visible escapes."""
    if text is None:
        return None
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\x00")
