"""What a provider's finish reason means: one table for all of them, compared without regard to case.

Sources: litellm's own map (`litellm_core_utils/core_helpers.py`) and the API references of OpenAI, Anthropic, Gemini,
Vertex AI, Bedrock, Cohere, Mistral, Zhipu, DeepSeek, watsonx, Hugging Face TGI, Ollama, vLLM and OpenRouter. litellm
turns every reason that it does not know into `stop`, so its mapped reason alone proves nothing.
"""

from __future__ import annotations

from enum import IntEnum

from auditor.domain import Outcome


class Meaning(IntEnum):
    """What a finish reason says of an answer; where two reasons disagree, the larger number counts."""

    COMPLETE = 0
    TOOL_CALL = 1
    """The model called a tool; structured answers arrive so."""
    UNKNOWN = 2
    """Not documented, or documented as saying nothing."""
    MALFORMED = 3
    """The model wrote something that its provider could not read."""
    TRUNCATED = 4
    """Cut off, by a limit or because the provider paused."""
    REFUSED = 5
    """The model refused, or a filter withheld the answer."""
    FAILED = 6
    """The provider failed while the model answered; the same request may succeed later."""


_REASONS = {
    Meaning.COMPLETE: """
        stop stop_sequence end_turn eos eos_token endoftext complete completed finish finished
        </s> <eos> <|eot_id|> <|im_end|> <|end|> <|endoftext|> <|end_of_text|> <end_of_turn>
        """,  # the tokens by which models of open weights end a turn, as OpenRouter and vLLM hand them on
    Meaning.TOOL_CALL: "tool_calls tool_call tool_use function_call",
    Meaning.UNKNOWN: "finish_reason_unspecified unspecified unknown",
    Meaning.MALFORMED: """
        malformed_function_call malformed_response malformed_model_output malformed_tool_use unexpected_tool_call
        too_many_tool_calls missing_thought_signature
        """,
    Meaning.TRUNCATED: """
        length max_tokens max_length max_output_tokens max_completion_tokens token_limit error_limit time_limit
        model_length model_context_window_exceeded context_length_exceeded incomplete not_finished pause_turn compaction
        """,
    Meaning.REFUSED: """
        content_filter content_filtered refusal safety recitation language other blocklist blacklist
        prohibited_content spii sensitive guardrail_intervened error_toxic model_armor jailbreak
        image_safety image_prohibited_content image_recitation image_other no_image escalation
        """,
    Meaning.FAILED: """
        error network_error server_error timeout abort cancelled canceled user_cancel load unload
        insufficient_system_resource
        """,
}
MEANINGS = {reason: meaning for meaning, reasons in _REASONS.items() for reason in reasons.split()}
"""By the reason in lower case."""
OUTCOMES = {
    Meaning.MALFORMED: Outcome.UNPARSED,
    Meaning.TRUNCATED: Outcome.TRUNCATED,
    Meaning.REFUSED: Outcome.REFUSED,
    Meaning.FAILED: Outcome.SERVER_ERROR,
}
"""Of the meanings that decide how a call ended, whatever its text; the others leave it to the text."""
STANDARD_NAMES = {
    Meaning.COMPLETE: "stop",
    Meaning.TOOL_CALL: "tool_call",
    Meaning.TRUNCATED: "length",
    Meaning.REFUSED: "content_filter",
    Meaning.FAILED: "error",
}
"""The finish reasons of OpenTelemetry's conventions for generative AI."""


def meaning_of(reason: str | None) -> Meaning:
    """What one finish reason means. A missing reason means `COMPLETE`: several providers never send one."""
    return MEANINGS.get(reason.strip().lower(), Meaning.UNKNOWN) if reason and reason.strip() else Meaning.COMPLETE


def worst_of(*reasons: str | None) -> Meaning:
    """The meaning of several reasons of one answer, such as the provider's own and litellm's: the worse one counts."""
    return max(map(meaning_of, reasons))


def outcome_of(reason: str | None) -> Outcome | None:
    """How a call with this finish reason ended; None where its text decides."""
    return OUTCOMES.get(meaning_of(reason))


def standard_name(reason: str | None) -> str | None:
    """The reason in OpenTelemetry's words; as the provider wrote it where there is no such word."""
    return STANDARD_NAMES.get(meaning_of(reason), reason) if reason else None
