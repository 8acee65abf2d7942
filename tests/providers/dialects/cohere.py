"""Cohere's chat, version 2, whose body and responses are its own.

References (read on 2026-11-23): the reference, docs.cohere.com/v2/reference/chat, with its list of errors,
docs.cohere.com/v2/reference/errors; the official library, github.com/cohere-ai/cohere-python (2026-08-19), for the
fields, the finish reasons (`ERROR_TOXIC` is one of version 1 only) and `thinking` parts. Recorded exchanges with
responses, a wrong key and a wrong model are in github.com/maruel/genai (providers/cohere/testdata) and
github.com/pydantic/pydantic-ai (tests/models/cassettes/test_cohere). The words for a response format in OpenAI's form
are those in github.com/koharu-rs/koharu/issues/1128. A tool cannot be chosen by name: `tool_choice` is `REQUIRED` or
`NONE`, and without it the model is free, which here calls the tool that it is told of.
"""

from __future__ import annotations

from typing import Any

from auditor.domain import AnswerForm
from tests.providers.bodies import REMOVED, Body, is_out_of_range
from tests.providers.dialect import Content, Dialect, Rule, Structure
from tests.support.fake_server import Reply, Request

MAX_OUTPUT_TOKENS = 8192
MAX_STOP_SEQUENCES = 5
SAFETY_MODES = ("CONTEXTUAL", "STRICT", "OFF", "NONE")
RESPONSE_ID = "c14c80c3-18eb-4519-9460-6c92edd8cfb4"
THOUGHTS = "The user asks what people there think of it. Many of them object to it."


def error(status: int, message: str) -> Reply:
    """An error of Cohere's, which is a message alone."""
    return Reply(status, {"id": RESPONSE_ID, "message": message}, {"x-debug-trace-id": "9b5b2a1cd4b3a4ae"})


def text_of(content: Any) -> str:
    """The text of a message, which may be a list of parts."""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content or [])


def json_schema(body: Body) -> dict[str, Any] | None:
    schema: dict[str, Any] | None = (body.get("response_format") or {}).get("json_schema")
    return schema


NO_MODEL = Rule(
    "a body without a model", lambda body: "model" not in body,
    error(400, "a model parameter is required for this endpoint."), {"model": REMOVED},
)  # fmt: skip
TEMPERATURE = Rule(
    "a temperature above 1", lambda body: is_out_of_range(body.get("temperature"), 0, 1),
    error(400, "invalid request: temperature must be between 0 and 1.0 inclusive."), {"temperature": 1.5},
)  # fmt: skip
NEGATIVE_LIMIT = Rule(
    "a negative token limit", lambda body: body.get("max_tokens", 0) < 0,
    error(400, "invalid request: max_tokens cannot be less than 0."), {"max_tokens": -1},
)  # fmt: skip
TOKEN_LIMIT = Rule(
    "more tokens than the model can write", lambda body: max(0, body.get("max_tokens", 0) - MAX_OUTPUT_TOKENS),
    lambda excess: error(
        400,
        f"too many tokens: max tokens must be less than or equal to {MAX_OUTPUT_TOKENS}, the maximum output for this "
        f"model - received {MAX_OUTPUT_TOKENS + excess}.",
    ),
    {"max_tokens": MAX_OUTPUT_TOKENS + 1},
)  # fmt: skip
SAFETY_MODE = Rule(
    "a safety mode that does not exist",
    lambda body: body["safety_mode"] if body.get("safety_mode", "OFF") not in SAFETY_MODES else None,
    lambda mode: error(
        400,
        f"unrecognized safety mode '{mode}'. For proper usage, please refer to https://docs.cohere.com/reference/chat",
    ),
    {"safety_mode": "LENIENT"},
)
STOP_SEQUENCES = Rule(
    "too many stop sequences",
    lambda body: len(body.get("stop_sequences", [])) > MAX_STOP_SEQUENCES and len(body["stop_sequences"]),
    lambda number: error(
        400, f"invalid request: too many stop sequences provided, maximum is {MAX_STOP_SEQUENCES}, received {number}."
    ),
    {"stop_sequences": ["A", "B", "C", "D", "E", "F"]},
)
PENALTIES = Rule(
    "both penalties", lambda body: body.get("frequency_penalty") and body.get("presence_penalty"),
    error(400, "invalid request: cannot specify both frequency_penalty and presence_penalty."),
    {"frequency_penalty": 0.1, "presence_penalty": 0.1},
)  # fmt: skip
SCHEMA_TYPE = Rule(
    "a response format in OpenAI's form",
    lambda body: json_schema(body) is not None and "type" not in (json_schema(body) or {}),
    error(
        400,
        "invalid request: response_format validation: invalid 'json_schema' provided: missing required field 'type'",
    ),
    {"response_format": {"type": "json_object", "json_schema": {"name": "Reply", "schema": {"type": "object"}}}},
)


class Cohere(Dialect):
    """Cohere, with a model that does not think, and one that does."""

    title = "Cohere"
    reference = "docs.cohere.com/v2/reference and github.com/cohere-ai/cohere-python, read on 2026-11-23"
    model = "cohere_chat/command-a-03-2025"
    thinking_model = "cohere_chat/command-a-reasoning-08-2025"
    wrong_model = "cohere_chat/command-b-03-2025"
    key_variable = "CO_API_KEY"
    url = "https://api.cohere.com/v2/chat"
    valid_body = {  # noqa: RUF012
        "model": "command-a-03-2025",
        "messages": [{"role": "user", "content": "Is it right?"}],
        "temperature": 0.7,
        "max_tokens": 400,
        "seed": 7,
        "p": 0.9,
        "safety_mode": "CONTEXTUAL",
    }
    rules = (NO_MODEL, TEMPERATURE, NEGATIVE_LIMIT, TOKEN_LIMIT, SAFETY_MODE, STOP_SEQUENCES, PENALTIES, SCHEMA_TYPE)
    extra_fields = (
        "finish_reason", "message.content.0.type", "usage.billed_units.output_tokens", "usage.cached_tokens",
        "usage.tokens.output_tokens",
    )  # fmt: skip

    def structure(self, body: Body) -> Structure:
        if (schema := json_schema(body)) is not None:
            return Structure(AnswerForm.JSON_SCHEMA, schema)
        if (body.get("response_format") or {}).get("type") == "json_object":
            return Structure(AnswerForm.JSON_OBJECT)
        if body.get("tools") and body.get("tool_choice") != "NONE":
            function = body["tools"][0]["function"]
            return Structure(AnswerForm.TOOL, function["parameters"], function["name"])
        return Structure(AnswerForm.TEXT)

    def prompt(self, body: Body) -> str:
        return "\n".join(text_of(message.get("content")) for message in body["messages"])

    def token_limit(self, body: Body) -> int | None:
        return body.get("max_tokens")

    def completion(self, content: Content, request: Request, *, is_cut_off: bool = False) -> Reply:
        parts = [{"type": "text", "text": content.text}]
        if self.requested_model(request) == self.model_id(self.thinking_model):
            parts.insert(0, {"type": "thinking", "thinking": THOUGHTS})
        message: dict[str, Any] = {"role": "assistant", "content": parts}
        if content.tool is not None:
            call = {"id": "Reply_9eq2r5p4nmkh", "type": "function"}
            function = {"name": content.tool, "arguments": content.text}
            plan = "I will reply with the tool."
            message = {"role": "assistant", "tool_plan": plan, "tool_calls": [{**call, "function": function}]}
        finish = "MAX_TOKENS" if is_cut_off else "TOOL_CALL" if content.tool else "COMPLETE"
        return self.chat_response(message, finish, 60)

    def chat_response(self, message: dict[str, Any], finish: str, output_tokens: int) -> Reply:
        """A response; what is billed leaves out the tokens of Cohere's own prompt."""
        usage = {
            "billed_units": {"input_tokens": 150, "output_tokens": output_tokens},
            "tokens": {"input_tokens": 640, "output_tokens": output_tokens},
            "cached_tokens": 0,
        }
        return Reply(body={"id": RESPONSE_ID, "message": message, "finish_reason": finish, "usage": usage})

    def out_of_thinking(self, request: Request) -> Reply:
        """The thoughts alone; they are not counted apart."""
        message = {"role": "assistant", "content": [{"type": "thinking", "thinking": THOUGHTS}]}
        return self.chat_response(message, "MAX_TOKENS", self.token_limit(request.body) or self.thinking_tokens)

    def unauthenticated(self, request: Request) -> Reply:
        return error(401, "invalid api token")

    def unknown_model(self, model: str) -> Reply:
        advice = "make sure the correct model ID was used and that you have access to the model."
        return error(404, f"model '{model}' not found, {advice}")

    def rate_limited(self, request: Request) -> Reply:
        limit = "You are using a Trial key, which is limited to 40 API calls / minute."
        offer = "You can continue to use the Trial key for free or upgrade to a Production key with higher rate limits"
        return error(429, f"{limit} {offer} at 'https://dashboard.cohere.com/api-keys'.")


DIALECT = Cohere()
