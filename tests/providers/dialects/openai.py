"""OpenAI's chat completions.

References (read on 2026-11-23): the OpenAPI description, github.com/openai/openai-openapi; structured outputs,
platform.openai.com/docs/guides/structured-outputs (supported schemas); errors,
platform.openai.com/docs/guides/error-codes; reasoning models, platform.openai.com/docs/guides/reasoning. The words of
refusals are those in github.com/QwenLM/qwen-code/issues/921, github.com/BeehiveInnovations/pal-mcp-server/issues/78
and zenn.dev/nicopin/scraps/a8d8f53f5faebb.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from tests.providers.bodies import REMOVED, Body, schema_keywords, words
from tests.providers.dialect import Content, Rule
from tests.providers.openai_body import ANSWER, OpenAIDialect, chat_body, schema_format
from tests.support.fake_server import Reply, Request

PARAMETERS = words(
    """audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens messages
    metadata modalities model n parallel_tool_calls prediction presence_penalty prompt_cache_key
    prompt_cache_retention reasoning_effort response_format safety_identifier seed service_tier stop store stream
    stream_options temperature tool_choice tools top_logprobs top_p user verbosity web_search_options"""
)
"""Fields of `CreateChatCompletionRequest`."""
UNSUPPORTED_KEYWORDS = words("minLength maxLength default allOf not dependentRequired dependentSchemas if then else")
"""JSON schema keywords that the strict mode refuses."""
REASONING_MODELS = ("o1", "o3", "o4", "gpt-5")


def error(status: int, message: str, param: str | None = None, code: str | None = None, **headers: str) -> Reply:
    details = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    return Reply(status, {"error": details}, {name.replace("_", "-"): text for name, text in headers.items()})


def unknown_parameter(body: Body) -> str | None:
    return next((name for name in body if name not in PARAMETERS), None)


def refused_keyword(body: Body) -> tuple[str, str, str] | None:
    """A schema's name, its property and the keyword there that the strict mode refuses."""
    json_schema = (body.get("response_format") or {}).get("json_schema") or {}
    if not json_schema.get("strict"):
        return None
    for name, part in json_schema["schema"].get("properties", {}).items():
        if keywords := sorted(schema_keywords(part) & UNSUPPORTED_KEYWORDS):
            return json_schema["name"], name, keywords[0]
    return None


def open_object(body: Body) -> str | None:
    """The name of a strict schema that does not forbid additional properties."""
    json_schema = (body.get("response_format") or {}).get("json_schema") or {}
    is_closed = json_schema.get("schema", {}).get("additionalProperties") is False
    return None if is_closed or not json_schema.get("strict") else str(json_schema["name"])


def lacks_the_word_json(body: Body) -> bool:
    """Whether JSON mode is asked for and no message has the word."""
    is_json_mode = (body.get("response_format") or {}).get("type") == "json_object"
    return is_json_mode and "json" not in str(body["messages"]).lower()


def is_reasoning(body: Body) -> bool:
    return str(body.get("model")).startswith(REASONING_MODELS)


MISSING_MESSAGES = Rule(
    "messages are missing", lambda body: "messages" not in body,
    error(400, "Missing required parameter: 'messages'.", "messages", "missing_required_parameter"),
    {"messages": REMOVED},
)  # fmt: skip
UNKNOWN_PARAMETER = Rule(
    "a parameter that does not exist", unknown_parameter,
    lambda name: error(400, f"Unrecognized request argument supplied: {name}"), {"top_k": 40},
)  # fmt: skip
TEMPERATURE_RANGE = Rule(
    "a temperature above 2", lambda body: (body.get("temperature") or 0) > 2 and body["temperature"],
    lambda number: error(
        400, f"Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got {number} instead.",
        "temperature", "decimal_above_max_value",
    ),
    {"temperature": 2.5},
)  # fmt: skip
TOP_LOGPROBS_RANGE = Rule(
    "more than 20 top_logprobs", lambda body: (body.get("top_logprobs") or 0) > 20 and body["top_logprobs"],
    lambda number: error(
        400, f"Invalid 'top_logprobs': integer above maximum value. Expected a value <= 20, but got {number} instead.",
        "top_logprobs", "integer_above_max_value",
    ),
    {"logprobs": True, "top_logprobs": 21},
)  # fmt: skip
SCHEMA_KEYWORD = Rule(
    "a keyword that the strict mode does not support", refused_keyword,
    lambda place: error(
        400,
        f"Invalid schema for response_format '{place[0]}': In context=('properties', '{place[1]}'), '{place[2]}' is "
        "not permitted.",
        "response_format",
    ),
    {"response_format": {"json_schema": {"schema": {"properties": {"answer": {"minLength": 1}}}}}},
)  # fmt: skip
OPEN_OBJECT = Rule(
    "a strict schema that allows additional properties", open_object,
    lambda name: error(
        400,
        f"Invalid schema for response_format '{name}': In context=(), 'additionalProperties' is required to be "
        "supplied and to be false.",
        "response_format",
    ),
    {"response_format": {"json_schema": {"schema": {"additionalProperties": REMOVED}}}},
)  # fmt: skip
JSON_WORD = Rule(
    "JSON mode without the word JSON", lacks_the_word_json,
    error(
        400, "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.",
        "messages",
    ),
    {"response_format": {"type": "json_object", "json_schema": REMOVED}},
)  # fmt: skip


def reasoning_rules(is_reasoning: Callable[[Body], bool], example_model: str) -> tuple[Rule, Rule]:
    """What reasoning models refuse: the old name of the token limit, and any temperature but the default.

    Args:
        is_reasoning: whether a body names a reasoning model.
        example_model: one of them.
    """
    token_limit = Rule(
        "max_tokens to a reasoning model", lambda body: is_reasoning(body) and "max_tokens" in body,
        error(
            400,
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' "
            "instead.",
            "max_tokens", "unsupported_parameter",
        ),
        {"model": example_model, "max_completion_tokens": REMOVED, "max_tokens": 400, "temperature": REMOVED},
    )  # fmt: skip
    temperature = Rule(
        "a temperature to a reasoning model",
        lambda body: is_reasoning(body) and body.get("temperature", 1) != 1 and str(body["temperature"]),
        lambda number: error(
            400,
            f"Unsupported value: 'temperature' does not support {number} with this model. Only the default (1) value "
            "is supported.",
            "temperature", "unsupported_value",
        ),
        {"model": example_model, "temperature": 0.7},
    )  # fmt: skip
    return token_limit, temperature


VALID_BODY: Body = chat_body(
    "gpt-4.1-mini",
    max_completion_tokens=400,
    response_format=schema_format({**ANSWER, "additionalProperties": False}, strict=True),
)


class OpenAI(OpenAIDialect):
    """OpenAI itself, reached without an `api_base`."""

    title = "OpenAI"
    reference = "github.com/openai/openai-openapi, read on 2026-11-23"
    model = "openai/gpt-4.1-mini"
    thinking_model = "openai/o4-mini"
    wrong_model = "openai/gpt-4.1-nope"
    key_variable = "OPENAI_API_KEY"
    url = "https://api.openai.com/v1/chat/completions"
    valid_body = VALID_BODY
    message_fields: ClassVar[Body] = {"refusal": None, "annotations": []}
    choice_fields: ClassVar[Body] = {"logprobs": None}
    body_fields: ClassVar[Body] = {"service_tier": "default", "system_fingerprint": "fp_7c3a0f1b2d"}
    has_logprobs = True
    rules: tuple[Rule, ...] = (
        MISSING_MESSAGES, UNKNOWN_PARAMETER, TEMPERATURE_RANGE, TOP_LOGPROBS_RANGE, SCHEMA_KEYWORD, OPEN_OBJECT,
        JSON_WORD, *reasoning_rules(is_reasoning, "o4-mini"),
    )  # fmt: skip
    extra_fields: ClassVar[tuple[str, ...]] = (
        "service_tier", "system_fingerprint", "choices.0.message.annotations", "choices.0.message.refusal",
        "usage.completion_tokens_details.rejected_prediction_tokens",
    )  # fmt: skip

    def usage(self, completion_tokens: int, reasoning_tokens: int | None = None) -> dict[str, Any]:
        details = {
            "reasoning_tokens": reasoning_tokens or 0,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        }
        cached = {"cached_tokens": 0, "audio_tokens": 0}
        return {
            **super().usage(completion_tokens),
            "prompt_tokens_details": cached,
            "completion_tokens_details": details,
        }

    def unauthenticated(self, request: Request) -> Reply:
        key = request.headers.get("Authorization", "").removeprefix("Bearer ")
        shown = f"{key[:8]}{'*' * 7}{key[-4:]}"
        help_url = "You can find your API key at https://platform.openai.com/account/api-keys."
        return error(401, f"Incorrect API key provided: {shown}. {help_url}", code="invalid_api_key")

    def unknown_model(self, model: str) -> Reply:
        words = f"The model `{model}` does not exist or you do not have access to it."
        return error(404, words, code="model_not_found")

    def rate_limited(self, request: Request) -> Reply:
        limits = "Limit 500, Used 500, Requested 1. Please try again in 20s."
        message = f"Rate limit reached for gpt-4.1-mini in organization org-a on requests per min (RPM): {limits}"
        details = {"message": message, "type": "requests", "param": None, "code": "rate_limit_exceeded"}
        headers = {
            "retry-after": "20", "retry-after-ms": "20000", "x-ratelimit-limit-requests": "500",
            "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "20s",
        }  # fmt: skip
        return Reply(429, {"error": details}, headers)

    def content_filtered(self, request: Request) -> Reply:
        message: dict[str, Any] = {"role": "assistant", "content": "", "refusal": None, "annotations": []}
        return Reply(body=self.completion_body(message, "content_filter", request))

    def refused(self, request: Request) -> Reply:
        message = self.message(Content("")) | {"content": None, "refusal": "I'm sorry, I cannot assist with that."}
        return Reply(body=self.completion_body(message, "stop", request))


DIALECT = OpenAI()
