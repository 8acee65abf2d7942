"""Parse a provider's response into an `Answer`: its text, outcome, finish reason and token counts.

litellm's reading is corrected where it guesses: a missing finish reason or token count stays missing, and a text that
was cut off is `truncated`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from auditor.domain import Answer, Call, Capability, Outcome, Purpose
from auditor.models.budget import plausible_token_counts
from auditor.models.endpoint import DEFAULT_CAPABILITY
from auditor.models.finish_reasons import OUTCOME_BY_CATEGORY, FinishCategory, worst_category
from auditor.models.reasoning import output_limit
from auditor.models.response_body import (
    MAX_FINISH_REASON_CHARS,
    TokenUsage,
    is_responses_body,
    join_text_parts,
    native_finish_reason,
)
from auditor.models.structured_reading import is_complete_structure
from auditor.redaction import redact
from auditor.text_safety import escape_for_storage, map_strings

T = TypeVar("T")
ResponseBody = Mapping[str, Any] | None
FORMATTED_PURPOSES = frozenset({Purpose.DIRECT})
"""Purposes whose free text must have a form, such as a score line: its parser rejects a text that was cut off."""
NO_CHOICE_ERROR = "the response has no choices"
NO_TEXT_ERROR = (
    "its tokens ran out before any text, as in hidden reasoning: set reasoning.max_tokens of the model, or a lower "
    "reasoning.effort"
)
TWO_CHOICES_ERROR = "the response has two choices with different texts, of which one was asked for"
REASONING_ONLY_ERROR = (
    "the answer is only in the server's field for reasoning (`reasoning_content`), and its text is empty"
)
_STATED_ANSWER = re.compile(r"\b(?:score|answer|verdict)\b[\"'*_`]*\s*[:=]", re.IGNORECASE)
"""Words before an answer, in JSON and in free text."""


def parse_response(
    call: Call, response: Any, body: ResponseBody = None, capability: Capability = DEFAULT_CAPABILITY
) -> Answer:
    """Parse a chat completion into an answer: a complete text, a refusal, a truncated text or a failure.

    Args:
        call: the call that was sent.
        response: litellm's response object.
        body: the JSON object that the provider sent; None if it is not known in full.
        capability: what the call was sent under.
    """
    choices = getattr(response, "choices", None) or []
    if not choices:
        if _is_all_reasoning(call, response, None, capability):
            return build_answer(call, response, body, Outcome.TRUNCATED, error=NO_TEXT_ERROR)
        return build_answer(call, response, body, Outcome.SERVER_ERROR, error=NO_CHOICE_ERROR)
    message = choices[0].message
    text = join_text_parts(body) or (message.content if isinstance(message.content, str) else None)
    tool_arguments = _tool_call_arguments(call, message, has_text=bool(text and text.strip()))
    if tool_arguments is not None:
        if call.schema is None:
            tool_error = "the model called an unknown tool and returned no text"
            return build_answer(call, response, body, Outcome.UNPARSED, error=tool_error)
        # Claude writes what it is about to do before it calls the tool; another answer there is a second one.
        text = "\n".join(dict.fromkeys(filter(str.strip, (text or "", tool_arguments))))
    if _has_other_choice(call, choices, text):
        return build_answer(call, response, body, Outcome.UNPARSED, text=text, error=TWO_CHOICES_ERROR)
    refusal = _refusal_text(message) or join_text_parts(body, "refusal")
    outcome, error = (Outcome.REFUSED, None) if refusal else _classify_outcome(call, response, body, text, capability)
    if outcome is Outcome.SERVER_ERROR and (text or "").strip():
        text = None  # a part of an answer, written before the provider failed, is not used
    return build_answer(call, response, body, outcome, text=text or refusal, error=error)


def _has_other_choice(call: Call, choices: Sequence[Any], text: str | None) -> bool:
    """Whether a response has a second text, other than the first, that was not asked for by the parameter `n`."""
    if len(choices) == 1 or call.params.get("n", 1) != 1:
        return False
    contents = [getattr(getattr(choice, "message", None), "content", None) for choice in choices[1:]]
    return any(isinstance(content, str) and content.strip() not in ("", (text or "").strip()) for content in contents)


def _refusal_text(message: Any) -> str | None:
    """The refusal that the provider sent apart from the text; None without one.

    litellm keeps it in a field of the message, `response_reader` among the provider's fields.
    """
    provider_fields = getattr(message, "provider_specific_fields", None) or {}
    return getattr(message, "refusal", None) or provider_fields.get("refusal")


def _classify_outcome(
    call: Call, response: Any, body: ResponseBody, text: str | None, capability: Capability
) -> tuple[Outcome, str | None]:
    """Return a call's outcome for a response with this text, and an error message, None if the outcome says enough."""
    choice = response.choices[0]
    reason = finish_reason(choice, body)
    category = _category_of_reasons(choice, reason)
    is_empty = not (text and text.strip())
    if is_empty and reason is not None and category is FinishCategory.COMPLETE and _is_in_reasoning(call, response):
        return Outcome.UNPARSED, REASONING_ONLY_ERROR
    if is_empty and category is not FinishCategory.FAILED and category is not FinishCategory.REFUSED:
        has_certain_status = body is not None and is_responses_body(body)
        if category is FinishCategory.TRUNCATED or (
            not has_certain_status and _is_all_reasoning(call, response, response.choices[0].message, capability)
        ):
            return Outcome.TRUNCATED, NO_TEXT_ERROR
        if category is not FinishCategory.MALFORMED:
            return Outcome.SERVER_ERROR, "the provider returned an empty text"
    if category in OUTCOME_BY_CATEGORY:
        errors = {
            FinishCategory.FAILED: f"the provider failed during the answer (finish reason {reason!r})",
            FinishCategory.MALFORMED: f"the provider could not parse the model's output (finish reason {reason!r})",
        }
        return OUTCOME_BY_CATEGORY[category], errors.get(category)
    if native_finish_reason(body) is None and body is not None and _is_at_token_limit(call, response, capability):
        return Outcome.TRUNCATED, None
    if category is FinishCategory.UNKNOWN and not _is_complete_text(call, text or ""):
        return Outcome.UNPARSED, f"the finish reason {reason!r} is not documented, and the answer may be cut off"
    return Outcome.OK, None


def _is_complete_text(call: Call, text: str) -> bool:
    """Whether a text with an undocumented finish reason can be taken as complete.

    A structured answer is complete if it parses. A free text is if its purpose requires a form: its parser rejects a
    text that was cut off.
    """
    return call.purpose in FORMATTED_PURPOSES if call.schema is None else is_complete_structure(call.schema, text)


def _is_at_token_limit(call: Call, response: Any, capability: Capability) -> bool:
    """Whether the answer has as many tokens as the limit that was sent; False if its count is not known."""
    usage, _ = litellm_token_usage(response)
    limit = output_limit(call, capability)
    counts = plausible_token_counts(call, usage, has_text=False, capability=capability)
    # `counts` is (prompt tokens, completion tokens).
    return limit is not None and counts is not None and counts[1] >= limit > 0


def _is_in_reasoning(call: Call, response: Any) -> bool:
    """Whether a response without text states an answer in its field for reasoning.

    It is not used, since a model may draft other answers there, but its tokens did not run out.
    """
    reasoning = getattr(response.choices[0].message, "reasoning_content", None)
    if not isinstance(reasoning, str):
        return False
    is_structure = call.schema is not None and is_complete_structure(call.schema, reasoning)
    return is_structure or _STATED_ANSWER.search(reasoning) is not None


def _is_all_reasoning(call: Call, response: Any, message: Any, capability: Capability) -> bool:
    """Whether a response without text used up its tokens for reasoning: a retry with the same limit would not help.

    Args:
        call: the call that was sent.
        response: litellm's response object.
        message: of the first choice; None if the response has no choice.
        capability: what the call was sent under.
    """
    usage = getattr(response, "usage", None)
    completion_tokens = getattr(usage, "completion_tokens", None)
    reasoning_tokens = getattr(getattr(usage, "completion_tokens_details", None), "reasoning_tokens", None)
    has_only_reasoning_tokens = (
        isinstance(completion_tokens, int)
        and isinstance(reasoning_tokens, int)
        and 0 < completion_tokens <= reasoning_tokens
    )
    return (
        has_only_reasoning_tokens
        or _is_at_token_limit(call, response, capability)
        or bool(getattr(message, "reasoning_content", None))
    )


def _tool_call_arguments(call: Call, message: Any, *, has_text: bool) -> str | None:
    """Arguments of the tool that the model called, as JSON text: of the required tool, else of the first one called.

    Several calls with different arguments are several answers, whose texts are joined. None if the model called no
    tool, or beside a text only another one than the required.
    """
    tool_calls = [getattr(tool_call, "function", None) for tool_call in getattr(message, "tool_calls", None) or []]
    functions = [function for function in tool_calls if function is not None]
    names = [function.name for function in functions]
    required_name = (call.schema or "").rpartition(".")[2]
    is_called = call.schema is not None and required_name in names
    if not names or (has_text and not is_called):
        return None
    name = required_name if is_called else names[0]
    return "\n".join(dict.fromkeys(str(function.arguments or "") for function in functions if function.name == name))


def build_answer(
    call: Call,
    response: Any,
    body: ResponseBody,
    outcome: Outcome,
    text: str | None = None,
    error: str | None = None,
) -> Answer:
    """Create an answer with the finish reason and the model name of the response; the cost is added later."""
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
    """The finish reason as the provider wrote it, else litellm's name for it; None if the provider sent none."""
    provider_fields = getattr(choice, "provider_specific_fields", None) or {}
    litellm_reason = str(choice.finish_reason) if choice.finish_reason else None
    native_reason = native_finish_reason(body)
    reason = native_reason or provider_fields.get("native_finish_reason") or litellm_reason
    if body is not None and native_reason is None and reason == "stop":
        return None  # litellm fills in `stop` for a missing reason
    return None if reason is None else str(reason)[:MAX_FINISH_REASON_CHARS]


def finish_category(response: Any, body: ResponseBody) -> FinishCategory:
    """Category of a response's finish reason: the worse one of the provider's own and litellm's."""
    choice = response.choices[0]
    return _category_of_reasons(choice, finish_reason(choice, body))


def _category_of_reasons(choice: Any, reason: str | None) -> FinishCategory:
    """The worse category of a finish reason and of litellm's name for it."""
    return worst_category(reason, str(choice.finish_reason) if choice.finish_reason else None)


MAX_TOKEN_COUNT = 2**31
"""Larger counts do not fit into a column of the database."""


def litellm_token_usage(response: Any) -> tuple[TokenUsage | None, int | None]:
    """Return the token counts as litellm read them, and the number of prompt tokens from the provider's cache.

    Each is None if unknown. litellm writes zeros for counts that are missing, and puts into one place what providers
    name `cached_tokens`, `cache_read_input_tokens` or `prompt_cache_hit_tokens`. Some servers count more cached tokens
    than prompt tokens; the report then says that the cost is a lower bound.
    """
    usage = getattr(response, "usage", None)
    if not (prompt_tokens := getattr(usage, "prompt_tokens", None)):
        return None, None
    # Moonshot has the count beside those of the prompt and the completion.
    holders = (getattr(usage, "prompt_tokens_details", None), usage)
    counts = (getattr(holder, "cached_tokens", None) for holder in holders)
    cached_tokens = next((count for count in counts if count is not None), None)
    is_plausible = isinstance(cached_tokens, int) and 0 <= cached_tokens < MAX_TOKEN_COUNT
    return TokenUsage(prompt_tokens, getattr(usage, "completion_tokens", None)), cached_tokens if is_plausible else None


def sanitize(text: str) -> str:
    """Make a provider's text safe to store and show: secrets are redacted, characters that databases refuse escaped."""
    return escape_for_storage(redact(text))


def sanitize_strings(value: T) -> T:
    """Copy a dataclass or decoded JSON with every string sanitized; applied to everything that a provider sends."""
    return map_strings(value, sanitize)
