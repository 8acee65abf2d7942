"""Groq's chat completions.

References (read on 2026-11-23): the request and the response of the official library, github.com/groq/groq-python
(types/chat, 2026-08-18); structured outputs, console.groq.com/docs/structured-outputs; limits,
console.groq.com/docs/rate-limits. Exchanges recorded on 2025-12-13 in github.com/maruel/genai
(providers/groq/testdata) have the responses, the errors for a wrong key and a wrong model, and the refusals of a
response format and of tools. The words of the other refusals are those in github.com/groq/groq-python/issues/25
(`logprobs`), github.com/i-am-bee/beeai-framework/issues/1215 (schema keywords), github.com/fanenr/chatbot/issues/21 (a
parameter), github.com/Alishahryar1/free-claude-code/issues/1354 (the token limit),
github.com/build-with-groq/g1/pull/23 (`json_validate_failed`) and github.com/elizaOS/eliza/issues/4040 (the rate
limit). That tokens which run out before the JSON ends are an HTTP status 400, `json_validate_failed`, and no finish
reason, is what many public repositories guard against (its words: OUT_OF_TOKENS). With `strict`, decoding is
constrained to the schema, so that a refusal can only be written into it. `service_tier` is optional, and left out
here: litellm cannot read that.
"""

from __future__ import annotations

from typing import Any, ClassVar

from auditor.domain import AnswerForm
from tests.providers.bodies import REMOVED, Body, schema_keywords, words
from tests.providers.dialect import Content, Rule
from tests.providers.openai_body import ANSWER, OpenAIDialect, chat_body, schema_format
from tests.support.fake_server import Reply, Request

PARAMETERS = words(
    """citation_options compound_custom disable_tool_validation documents exclude_domains frequency_penalty
    function_call functions include_domains include_reasoning logit_bias logprobs max_completion_tokens
    max_tokens messages metadata model n parallel_tool_calls presence_penalty reasoning_effort reasoning_format
    response_format search_settings seed service_tier stop store stream stream_options temperature tool_choice
    tools top_logprobs top_p user"""
)
"""Fields of `CompletionCreateParams`."""
UNSUPPORTED_KEYWORDS = words("minItems maxItems")
"""JSON schema keywords that are refused."""
SCHEMA_MODELS = words("openai/gpt-oss-120b openai/gpt-oss-20b")
MAX_OUTPUT_TOKENS = 65_536
OUT_OF_TOKENS = "max completion tokens reached before generating a valid document"
THOUGHTS = "The user asks for the view of people there, as JSON. Many of them object to it."


def error(status: int, message: str, param: str | None = None, code: str | None = None, **more: str) -> Reply:
    """An error of Groq's: `param` and `code` are there only if they are known."""
    known = {name: text for name, text in {"param": param, "code": code, **more}.items() if text is not None}
    headers = {"x-groq-region": "yul", "x-request-id": "req_01k3ee1q8afd8v3t7zpfkwmgw1"}
    return Reply(status, {"error": {"message": message, "type": "invalid_request_error", **known}}, headers)


def json_schema(body: Body) -> dict[str, Any] | None:
    """The response format's JSON schema with its name; None without one."""
    response_format = body.get("response_format") or {}
    return response_format.get("json_schema") or {} if response_format.get("type") == "json_schema" else None


def refused_keyword(body: Body) -> tuple[str, str] | None:
    """A property and its keyword that is not supported."""
    for name, part in ((json_schema(body) or {}).get("schema") or {}).get("properties", {}).items():
        if keywords := sorted(schema_keywords(part) & UNSUPPORTED_KEYWORDS):
            return name, keywords[0]
    return None


def is_open(body: Body) -> bool:
    """Whether a strict schema allows additional properties."""
    schema = json_schema(body) or {}
    return bool(schema.get("strict")) and schema["schema"].get("additionalProperties") is not False


def generation_failed(failed_generation: str) -> Reply:
    """The response if the model did not write what the response format asks for."""
    message = "Failed to generate JSON. Please adjust your prompt. See 'failed_generation' for more details."
    return error(400, message, code="json_validate_failed", failed_generation=failed_generation)


UNKNOWN_PARAMETER = Rule(
    "a parameter that does not exist", lambda body: next((name for name in body if name not in PARAMETERS), None),
    lambda name: error(400, f"property '{name}' is unsupported"), {"top_k": 40},
)  # fmt: skip
LOGPROBS = Rule(
    "log-probabilities", lambda body: bool(body.get("logprobs")),
    error(400, "`logprobs` is not supported with this model", "logprobs"), {"logprobs": True},
)  # fmt: skip
SCHEMA_MODEL = Rule(
    "a schema to a model without structured outputs",
    lambda body: json_schema(body) is not None and body["model"] not in SCHEMA_MODELS,
    error(
        400,
        "This model does not support response format `json_schema`. See supported models at "
        "https://console.groq.com/docs/structured-outputs#supported-models",
        "response_format",
    ),
    {"model": "groq/compound"},
)
NO_SCHEMA = Rule(
    "a response format that lacks its schema",
    lambda body: json_schema(body) is not None and not (json_schema(body) or {}).get("schema"),
    error(400, "code=400, message=json schema is required, type=invalid_request_error", "response_format"),
    {"response_format": {"json_schema": {"schema": REMOVED, "strict": False}}},
)
SCHEMA_KEYWORD = Rule(
    "a keyword that schemas may not have", refused_keyword,
    lambda place: error(
        400, f"invalid schema for response format: response_format/json_schema/{place[0]}: {place[1]} is not supported",
    ),
    {"response_format": {"json_schema": {"schema": {"properties": {"answer": {"type": "array", "minItems": 1}}}}}},
)  # fmt: skip
OPEN_OBJECT = Rule(
    "a strict schema that allows additional properties", is_open,
    error(400, "invalid schema for response format: response_format/json_schema: additionalProperties must be false"),
    {"response_format": {"json_schema": {"schema": {"additionalProperties": REMOVED}}}},
)  # fmt: skip
TOKEN_LIMIT = Rule(
    "more tokens than the model can write",
    lambda body: max(body.get("max_completion_tokens") or 0, body.get("max_tokens") or 0) > MAX_OUTPUT_TOKENS,
    error(
        400,
        f"`max_completion_tokens` must be less than or equal to `{MAX_OUTPUT_TOKENS}`, the maximum value for "
        "`max_completion_tokens` is less than the `context_window` for this model",
        "max_completion_tokens",
    ),
    {"max_completion_tokens": MAX_OUTPUT_TOKENS + 1},
)
MESSAGE_PROPERTY = Rule(
    "a message with a property of its own",
    lambda body: next(
        (
            (number, name)
            for number, message in enumerate(body["messages"])
            for name in message
            if name not in words("role content name tool_calls tool_call_id reasoning")
        ),
        None,
    ),
    lambda place: error(
        400,
        f"'messages.{place[0]}' : for 'role:user' the following must be satisfied[('messages.{place[0]}' : property "
        f"'{place[1]}' is unsupported)]",
    ),
    {"messages": [{"role": "user", "content": "Is it right?", "timestamp": 1}]},
)
VALID_BODY: Body = chat_body(
    "openai/gpt-oss-120b", seed=7, max_completion_tokens=400, reasoning_effort="medium",
    response_format=schema_format({**ANSWER, "additionalProperties": False}, strict=True),
)  # fmt: skip


class Groq(OpenAIDialect):
    """Groq, with a model that thinks, as all of its models for structured outputs do."""

    title = "Groq"
    reference = "github.com/groq/groq-python and console.groq.com/docs, read on 2026-11-23"
    model = "groq/openai/gpt-oss-120b"
    wrong_model = "groq/openai/gpt-oss-12b"
    key_variable = "GROQ_API_KEY"
    url = "https://api.groq.com/openai/v1/chat/completions"
    valid_body = VALID_BODY
    message_fields: ClassVar[Body] = {"reasoning": THOUGHTS}
    choice_fields: ClassVar[Body] = {"logprobs": None}
    rules = (
        UNKNOWN_PARAMETER, LOGPROBS, SCHEMA_MODEL, NO_SCHEMA, SCHEMA_KEYWORD, OPEN_OBJECT, TOKEN_LIMIT,
        MESSAGE_PROPERTY,
    )  # fmt: skip
    extra_fields = (
        "choices.0.message.reasoning", "system_fingerprint", "usage.completion_time", "usage.queue_time",
        "usage_breakdown", "x_groq.id", "x_groq.seed",
    )  # fmt: skip

    def completion_body(self, message: dict[str, Any], finish: str, request: Request) -> dict[str, Any]:
        body = super().completion_body(message, finish, request)
        groq_fields = {"id": "req_01kcc49fcmepkrcn3n4evqvh7v", "seed": request.body.get("seed", 512468548)}
        return {**body, "system_fingerprint": "fp_029931c09b", "usage_breakdown": None, "x_groq": groq_fields}

    def usage(self, completion_tokens: int, reasoning_tokens: int | None = None) -> dict[str, Any]:
        times = {"queue_time": 0.07, "prompt_time": 0.005, "completion_time": 0.29, "total_time": 0.295}
        return {**super().usage(completion_tokens, 21 if reasoning_tokens is None else reasoning_tokens), **times}

    def unauthenticated(self, request: Request) -> Reply:
        return error(401, "Invalid API Key", code="invalid_api_key")

    def unknown_model(self, model: str) -> Reply:
        missing = f"The model `{model}` does not exist or you do not have access to it."
        return error(404, missing, code="model_not_found")

    def rate_limited(self, request: Request) -> Reply:
        limits = (
            "Limit 6000, Used 5034, Requested 1443. Please try again in 7.66s. Need more tokens? Upgrade to Dev Tier"
        )
        message = (
            "Rate limit reached for model `openai/gpt-oss-120b` in organization `org_01` service tier `on_demand` on "
            f"tokens per minute (TPM): {limits} today at https://console.groq.com/settings/billing"
        )
        headers = {
            "retry-after": "8", "x-ratelimit-limit-requests": "14400", "x-ratelimit-limit-tokens": "6000",
            "x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "7.66s",
        }  # fmt: skip
        return Reply(429, {"error": {"message": message, "type": "tokens", "code": "rate_limit_exceeded"}}, headers)

    def completion(self, content: Content, request: Request, *, is_cut_off: bool = False) -> Reply:
        """With a response format, a document that does not end is an error."""
        if is_cut_off and self.structure(request.body).form is not AnswerForm.TEXT:
            return generation_failed(OUT_OF_TOKENS)
        return super().completion(content, request, is_cut_off=is_cut_off)

    def refused(self, request: Request) -> Reply:
        """Without constraints a refusal is prose, which is not what the response format asks for."""
        is_free = self.structure(request.body).form is AnswerForm.TEXT
        if is_free or (json_schema(request.body) or {}).get("strict"):
            return super().refused(request)
        return generation_failed("I'm sorry, but I can't help with that.")

    def out_of_thinking(self, request: Request) -> Reply:
        if self.structure(request.body).form is not AnswerForm.TEXT:
            return generation_failed(OUT_OF_TOKENS)
        return super().out_of_thinking(request)


DIALECT = Groq()
