"""OpenAI's Responses API, which is the only one of some models (`gpt-5-pro`, `o3-pro`, `codex-mini-latest`).

References (read on 2026-11-28): the OpenAPI description, github.com/openai/openai-openapi (`CreateResponse`,
`Response`, `OutputMessage`); reasoning, platform.openai.com/docs/guides/reasoning; structured outputs,
platform.openai.com/docs/guides/structured-outputs. The words of refusals are those of chat completions, with the names
that fields have here.
"""

from __future__ import annotations

import json
from typing import Any, ClassVar

from auditor.domain import AnswerForm
from tests.providers.bodies import REMOVED, Body, schema_keywords, words
from tests.providers.dialect import Content, Rule, Structure
from tests.providers.dialects.openai import UNSUPPORTED_KEYWORDS, OpenAI, error
from tests.support.fake_server import Reply, Request

PARAMETERS = words(
    """background conversation include input instructions max_output_tokens max_tool_calls metadata model
    parallel_tool_calls previous_response_id prompt prompt_cache_key prompt_cache_retention reasoning safety_identifier
    service_tier store stream stream_options temperature text tool_choice tools top_logprobs top_p truncation user"""
)
"""Fields of `CreateResponse`; unlike chat completions, it has no seed."""
MIN_OUTPUT_TOKENS = 16


def text_format(body: Body) -> dict[str, Any]:
    return (body.get("text") or {}).get("format") or {}


def refused_keyword(body: Body) -> tuple[str, str, str] | None:
    """A schema's name, its property and the keyword there that the strict mode refuses."""
    requested = text_format(body)
    if not requested.get("strict"):
        return None
    for name, part in requested["schema"].get("properties", {}).items():
        if keywords := sorted(schema_keywords(part) & UNSUPPORTED_KEYWORDS):
            return requested["name"], name, keywords[0]
    return None


def open_object(body: Body) -> str | None:
    """The name of a strict schema that does not forbid additional properties."""
    requested = text_format(body)
    is_closed = (requested.get("schema") or {}).get("additionalProperties") is False
    return None if is_closed or not requested.get("strict") else str(requested["name"])


class OpenAIResponses(OpenAI):
    """OpenAI itself, for a model without chat completions."""

    title = "OpenAI, Responses API"
    reference = "github.com/openai/openai-openapi, read on 2026-11-28"
    model = "openai/gpt-5-pro"
    thinking_model = "openai/o3-pro"
    wrong_model = "openai/responses/gpt-5-nope"
    url = "https://api.openai.com/v1/responses"
    has_logprobs = False
    valid_body: ClassVar[Body] = {
        "model": "gpt-5-pro",
        "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Is it right?"}]}],
        "max_output_tokens": 400,
        "text": {"format": {"type": "json_schema", "name": "Reply", "strict": True,
                            "schema": {"type": "object", "properties": {"answer": {"type": "string"}},
                                       "required": ["answer"], "additionalProperties": False}}},
    }  # fmt: skip
    rules: tuple[Rule, ...] = (
        Rule(
            "the input is missing", lambda body: "input" not in body,
            error(400, "Missing required parameter: 'input'.", "input", "missing_required_parameter"),
            {"input": REMOVED},
        ),
        Rule(
            "a parameter that does not exist",
            lambda body: next((name for name in body if name not in PARAMETERS), None),
            lambda name: error(400, f"Unknown parameter: '{name}'.", name, "unknown_parameter"), {"seed": 7},
        ),
        Rule(
            "a temperature to a reasoning model", lambda body: "temperature" in body,
            error(
                400, "Unsupported parameter: 'temperature' is not supported with this model.", "temperature",
                "unsupported_parameter",
            ),
            {"temperature": 0.7},
        ),
        Rule(
            "fewer than 16 output tokens",
            lambda body: (
                body.get("max_output_tokens", MIN_OUTPUT_TOKENS) < MIN_OUTPUT_TOKENS and body["max_output_tokens"]
            ),
            lambda number: error(
                400,
                f"Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got {number} "
                "instead.",
                "max_output_tokens", "integer_below_min_value",
            ),
            {"max_output_tokens": 4},
        ),
        Rule(
            "a keyword that the strict mode does not support", refused_keyword,
            lambda place: error(
                400,
                f"Invalid schema for response_format '{place[0]}': In context=('properties', '{place[1]}'), "
                f"'{place[2]}' is not permitted.",
                "text.format.schema", "invalid_json_schema",
            ),
            {"text": {"format": {"schema": {"properties": {"answer": {"minLength": 1}}}}}},
        ),
        Rule(
            "a strict schema that allows additional properties", open_object,
            lambda name: error(
                400,
                f"Invalid schema for response_format '{name}': In context=(), 'additionalProperties' is required to "
                "be supplied and to be false.",
                "text.format.schema", "invalid_json_schema",
            ),
            {"text": {"format": {"schema": {"additionalProperties": REMOVED}}}},
        ),
        Rule(
            "JSON mode without the word JSON",
            lambda body: text_format(body).get("type") == "json_object" and "json" not in str(body["input"]).lower(),
            error(
                400,
                "Response input messages must contain the word 'json' in some form to use 'text.format' of type "
                "'json_object'.",
                "input",
            ),
            {"text": {"format": {"type": "json_object", "name": REMOVED, "strict": REMOVED, "schema": REMOVED}}},
        ),
    )  # fmt: skip
    extra_fields: ClassVar[tuple[str, ...]] = (
        "incomplete_details",
        "output.0.summary",
        "output.1.content.0.annotations",
        "usage.output_tokens_details.reasoning_tokens",
    )

    def model_id(self, model: str) -> str:
        return super().model_id(model).removeprefix("responses/")

    def structure(self, body: Body) -> Structure:
        requested = text_format(body)
        if requested.get("type") == "json_schema":
            return Structure(AnswerForm.JSON_SCHEMA, requested.get("schema"))
        if requested.get("type") == "json_object":
            return Structure(AnswerForm.JSON_OBJECT)
        if body.get("tools") and body.get("tool_choice") not in (None, "auto", "none"):
            return Structure(AnswerForm.TOOL, body["tools"][0].get("parameters"), body["tools"][0]["name"])
        return Structure(AnswerForm.TEXT)

    def prompt(self, body: Body) -> str:
        parts = [part for item in body.get("input", []) for part in item.get("content", [])]
        return "\n".join([body.get("instructions") or "", *(part.get("text", "") for part in parts)])

    def token_limit(self, body: Body) -> int | None:
        limit = body.get("max_output_tokens")
        return limit if isinstance(limit, int) else None

    def completion(self, content: Content, request: Request, *, is_cut_off: bool = False) -> Reply:
        status = "incomplete" if is_cut_off else "completed"
        if content.tool is not None:
            call = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "status": status}
            return self.response(request, [{**call, "name": content.tool, "arguments": content.text}])
        part = {"type": "output_text", "text": content.text, "annotations": [], "logprobs": []}
        return self.response(request, [self.output_message(part, status)], "max_output_tokens" if is_cut_off else None)

    def output_message(self, part: dict[str, Any], status: str = "completed") -> dict[str, Any]:
        return {"type": "message", "id": "msg_1", "status": status, "role": "assistant", "content": [part]}

    def response(self, request: Request, output: list[dict[str, Any]], incomplete_reason: str | None = None) -> Reply:
        """A response with this output after the model's hidden reasoning, which is incomplete for a reason."""
        body = {
            "id": "resp_68a",
            "object": "response",
            "created_at": 1753920000,
            "status": "incomplete" if incomplete_reason else "completed",
            "error": None,
            "incomplete_details": {"reason": incomplete_reason} if incomplete_reason else None,
            "instructions": None,
            "max_output_tokens": self.token_limit(request.body),
            "model": self.requested_model(request),
            "output": [{"type": "reasoning", "id": "rs_1", "summary": []}, *output],
            "parallel_tool_calls": True,
            "previous_response_id": None,
            "reasoning": {"effort": "high", "summary": None},
            "store": True,
            "temperature": 1.0,
            "text": {"format": text_format(request.body) or {"type": "text"}},
            "tool_choice": "auto",
            "tools": [],
            "top_p": 1.0,
            "truncation": "disabled",
            "usage": {
                "input_tokens": self.prompt_tokens,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": self.completion_tokens,
                "output_tokens_details": {"reasoning_tokens": self.completion_tokens // 2},
                "total_tokens": self.prompt_tokens + self.completion_tokens,
            },
            "metadata": {},
        }
        return Reply(body=json.loads(json.dumps(body)))

    def content_filtered(self, request: Request) -> Reply:
        return self.response(request, [], "content_filter")

    def refused(self, request: Request) -> Reply:
        part = {"type": "refusal", "refusal": "I'm sorry, I cannot assist with that."}
        return self.response(request, [self.output_message(part)])

    def out_of_thinking(self, request: Request) -> Reply:
        return self.response(request, [], "max_output_tokens")


DIALECT = OpenAIResponses()
