"""Classify providers' finish reasons: one table for all providers, compared without regard to case.

Sources: litellm's own map (`litellm_core_utils/core_helpers.py`) and the API references of OpenAI, Anthropic, Gemini,
Vertex AI, Bedrock, Cohere, Mistral, Zhipu, DeepSeek, watsonx, Hugging Face TGI, Ollama, vLLM and OpenRouter. litellm
maps every reason that it does not know to `stop`, so its mapped reason alone is not reliable.
"""

from __future__ import annotations

from enum import IntEnum

from auditor.domain import Outcome


class FinishCategory(IntEnum):
    """Meaning of a finish reason; if two reasons of one answer disagree, the larger number counts."""

    COMPLETE = 0
    TOOL_CALL = 1
    """The model called a tool, which is one way to request a structured answer."""
    UNKNOWN = 2
    """Not documented, or documented as unspecified."""
    MALFORMED = 3
    """The model wrote something that its provider could not parse."""
    TRUNCATED = 4
    """Cut off, by a limit or because the provider paused."""
    REFUSED = 5
    """The model refused, or a filter withheld the answer."""
    FAILED = 6
    """The provider failed while the model answered; the same request may succeed later."""


_REASONS_BY_CATEGORY = {
    FinishCategory.COMPLETE: """
        stop stop_sequence end_turn eos eos_token endoftext complete completed finish finished
        </s> <eos> <|eot_id|> <|im_end|> <|end|> <|endoftext|> <|end_of_text|> <end_of_turn>
        """,  # tokens by which open-weights models end a turn, which OpenRouter and vLLM pass on
    FinishCategory.TOOL_CALL: "tool_calls tool_call tool_use function_call",
    FinishCategory.UNKNOWN: "finish_reason_unspecified unspecified unknown",
    FinishCategory.MALFORMED: """
        malformed_function_call malformed_response malformed_model_output malformed_tool_use unexpected_tool_call
        too_many_tool_calls missing_thought_signature
        """,
    FinishCategory.TRUNCATED: """
        length max_tokens max_length max_output_tokens max_completion_tokens token_limit error_limit time_limit
        continuation model_length model_context_window_exceeded context_length_exceeded incomplete not_finished
        pause_turn compaction
        """,
    FinishCategory.REFUSED: """
        content_filter content_filtered refusal safety recitation language other blocklist blacklist
        prohibited_content spii sensitive guardrail_intervened error_toxic model_armor jailbreak
        image_safety image_prohibited_content image_recitation image_other no_image escalation
        """,
    FinishCategory.FAILED: """
        error network_error server_error timeout abort cancelled canceled user_cancel load unload
        failed in_progress queued
        insufficient_system_resource
        """,
}
CATEGORY_BY_REASON = {
    reason: category for category, reasons in _REASONS_BY_CATEGORY.items() for reason in reasons.split()
}
"""Keys are reasons in lower case."""
OUTCOME_BY_CATEGORY = {
    FinishCategory.MALFORMED: Outcome.UNPARSED,
    FinishCategory.TRUNCATED: Outcome.TRUNCATED,
    FinishCategory.REFUSED: Outcome.REFUSED,
    FinishCategory.FAILED: Outcome.SERVER_ERROR,
}
"""Outcomes for the categories that decide how a call ended; for the others its text decides."""
OPENTELEMETRY_NAMES = {
    FinishCategory.COMPLETE: "stop",
    FinishCategory.TOOL_CALL: "tool_call",
    FinishCategory.TRUNCATED: "length",
    FinishCategory.REFUSED: "content_filter",
    FinishCategory.FAILED: "error",
}
"""Finish reasons in OpenTelemetry's semantic conventions for generative AI."""


def classify_finish_reason(reason: str | None) -> FinishCategory:
    """Category of one finish reason. A missing reason is `COMPLETE`, since several providers never send one.

    Gemini's endpoint with OpenAI's protocol adds a detail after a colon, as in `content_filter: PROHIBITED_CONTENT`.
    """
    if not reason or not reason.strip():
        return FinishCategory.COMPLETE
    return CATEGORY_BY_REASON.get(reason.partition(":")[0].strip().lower(), FinishCategory.UNKNOWN)


def worst_category(*reasons: str | None) -> FinishCategory:
    """Worst category of several finish reasons of one answer, such as the provider's own and litellm's."""
    return max(map(classify_finish_reason, reasons))


def finish_reason_outcome(reason: str | None) -> Outcome | None:
    """Outcome of a call with this finish reason; None if its text decides."""
    return OUTCOME_BY_CATEGORY.get(classify_finish_reason(reason))


def opentelemetry_finish_reason(reason: str | None) -> str | None:
    """OpenTelemetry's name for a finish reason; the provider's own if there is none."""
    return OPENTELEMETRY_NAMES.get(classify_finish_reason(reason), reason) if reason else None
