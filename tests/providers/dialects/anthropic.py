"""Anthropic's Messages API.

References (read on 2026-11-23): docs.anthropic.com/en/api/messages and /errors, platform.claude.com/docs/en/
build-with-claude/structured-outputs (unsupported keywords), /adaptive-thinking, /extended-thinking;
github.com/anthropics/anthropic-sdk-python (types of requests and responses). The words of refusals are those in
github.com/agentjido/req_llm/issues/302 and BerriAI/litellm/pull/29624 (schema keywords) and
github.com/UKGovernmentBEIS/inspect_ai/issues/3721 (temperature).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from auditor.domain import AnswerForm
from tests.providers.bodies import REMOVED, Body, words
from tests.providers.dialect import Content, Dialect, Rule, Structure
from tests.support.audit_configs import KEY
from tests.support.fake_server import Reply, Request

PARAMETERS = words(
    """cache_control container context_management inference_geo max_tokens mcp_servers messages metadata model
    output_config output_format service_tier speed stop_sequences stream system temperature thinking tool_choice tools
    top_k top_p"""
)
"""Fields of a request."""
VERSION_HEADERS = ("anthropic-version", "anthropic-beta")
UNSUPPORTED_KEYWORDS = {
    "string": words("minLength maxLength"),
    "number": words("minimum maximum exclusiveMinimum exclusiveMaximum multipleOf"),
    "integer": words("minimum maximum exclusiveMinimum exclusiveMaximum multipleOf"),
    "array": words("maxItems uniqueItems"),
}
"""JSON schema keywords that a type may not have."""
MAX_OUTPUT_TOKENS = 64_000


def error(status: int, kind: str, message: str, headers: Mapping[str, str] | None = None) -> Reply:
    body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_011CT7W3vE"}
    return Reply(status, body, {"request-id": "req_011CT7W3vE", **(headers or {})})


def invalid(message: str) -> Reply:
    return error(400, "invalid_request_error", message)


def output_schema(body: Body) -> dict[str, Any] | None:
    """The JSON schema of the answer: in `output_config.format`, or `output_format` of the beta version."""
    output_format = (body.get("output_config") or {}).get("format") or body.get("output_format") or {}
    schema: dict[str, Any] | None = output_format.get("schema")
    return schema


def refused_keywords(schema: Any) -> str | None:
    """Why a schema, or a part of it, is not supported; None if it is."""
    if isinstance(schema, list):
        return next(filter(None, map(refused_keywords, schema)), None)
    if not isinstance(schema, dict):
        return None
    kind = schema.get("type")
    keywords = sorted(set(schema) & UNSUPPORTED_KEYWORDS.get(str(kind), frozenset()))
    if keywords and isinstance(kind, str):
        plural = f"properties {', '.join(keywords)} are" if len(keywords) > 1 else f"property '{keywords[0]}' is"
        return f"For '{kind}' type, {plural} not supported"
    if kind == "object" and schema.get("additionalProperties") is not False:
        return "For 'object' type, 'additionalProperties' must be explicitly set to false"
    parts = [*schema.get("properties", {}).values(), schema.get("items"), schema.get("anyOf")]
    return refused_keywords(parts)


def is_thinking(body: Body) -> bool:
    """Whether the request turns thinking on."""
    return (body.get("thinking") or {}).get("type") in ("enabled", "adaptive")


def budget(body: Body) -> int:
    """The budget for thinking of a model whose thinking has one; 0 without."""
    return int((body.get("thinking") or {}).get("budget_tokens") or 0)


class Anthropic(Dialect):
    """Anthropic itself, reached without an `api_base`."""

    title = "Anthropic"
    reference = "docs.anthropic.com/en/api/messages, read on 2026-11-23"
    model = "anthropic/claude-sonnet-4-5"
    thinking_model = "anthropic/claude-opus-4-7"
    thinking_section: ClassVar[Mapping[str, Any]] = {"reasoning": {"effort": "medium"}}
    thinking_tokens = 3000  # more than the room for a medium effort
    wrong_model = "anthropic/claude-sonnet-nope"
    key_variable = "ANTHROPIC_API_KEY"
    url = "https://api.anthropic.com/v1/messages"
    valid_body: ClassVar[Body] = {
        "anthropic-version": "2023-06-01", "anthropic-beta": "structured-outputs-2025-11-13",
        "model": "claude-sonnet-4-5", "max_tokens": 400, "temperature": 0.7,
        "system": [{"type": "text", "text": "Answer in JSON."}],
        "messages": [{"role": "user", "content": "Is it right?"}],
        "output_format": {"type": "json_schema",
                          "schema": {"type": "object",
                                     "properties": {"answer": {"type": "string"}, "score": {"type": "number"}},
                                     "required": ["answer", "score"], "additionalProperties": False}},
    }  # fmt: skip
    rules: tuple[Rule, ...] = (
        Rule(
            "the version's header is missing", lambda fields: fields["anthropic-version"] != "2023-06-01",
            invalid("anthropic-version: header is required"), {"anthropic-version": None},
        ),
        Rule(
            "a beta field without the beta's header",
            lambda fields: "output_format" in fields and "structured-outputs-" not in (fields["anthropic-beta"] or ""),
            invalid("output_format: Extra inputs are not permitted"), {"anthropic-beta": None},
        ),
        Rule(
            "a field that does not exist",
            lambda body: next((name for name in body if name not in PARAMETERS | {*VERSION_HEADERS}), None),
            lambda name: invalid(f"{name}: Extra inputs are not permitted"), {"seed": 7},
        ),
        Rule(
            "max_tokens is missing", lambda body: "max_tokens" not in body,
            invalid("max_tokens: Field required"), {"max_tokens": REMOVED},
        ),
        Rule(
            "more tokens than the model can write",
            lambda body: body.get("max_tokens", 0) > MAX_OUTPUT_TOKENS and body["max_tokens"],
            lambda number: invalid(
                f"max_tokens: {number} > {MAX_OUTPUT_TOKENS}, which is the maximum allowed number of output tokens for "
                "claude-sonnet-4-5-20250929"
            ),
            {"max_tokens": 100_000},
        ),
        Rule(
            "a system message among the messages",
            lambda body: any(message["role"] == "system" for message in body["messages"]),
            invalid(
                'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, not '
                '"system" as an input message role.'
            ),
            {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Is it right?"}]},
        ),
        Rule(
            "a temperature above 1", lambda body: (body.get("temperature") or 0) > 1,
            invalid("temperature: Input should be less than or equal to 1"), {"temperature": 1.5},
        ),
        Rule(
            "a temperature to a model that has none",
            lambda body: str(body["model"]).startswith("claude-opus-4-7") and "temperature" in body,
            invalid("`temperature` is deprecated for this model."), {"model": "claude-opus-4-7"},
        ),
        Rule(
            "a temperature while thinking", lambda body: budget(body) and body.get("temperature", 1) != 1,
            invalid(
                "`temperature` may only be set to 1 when thinking is enabled. Please consult our documentation at "
                "https://docs.claude.com/en/docs/build-with-claude/extended-thinking",
            ),
            {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 2000},
        ),
        Rule(
            "no room beside the budget for thinking", lambda body: budget(body) >= body.get("max_tokens", 1),
            invalid("`max_tokens` must be greater than `thinking.budget_tokens`."),
            {"thinking": {"type": "enabled", "budget_tokens": 1024}, "temperature": REMOVED},
        ),
        Rule(
            "a forced tool while thinking",
            lambda body: is_thinking(body) and (body.get("tool_choice") or {}).get("type") in ("tool", "any"),
            invalid("Thinking may not be enabled when tool_choice forces tool use."),
            {
                "model": "claude-opus-4-7", "temperature": REMOVED, "thinking": {"type": "adaptive"},
                "tool_choice": {"type": "tool", "name": "Reply"},
            },
        ),
        Rule(
            "a schema that is not supported", lambda body: refused_keywords(output_schema(body)),
            lambda reason: invalid(f"output_format.schema: {reason}"),
            {"output_format": {"schema": {"properties": {"answer": {"minLength": 1}}}}},
        ),
    )  # fmt: skip
    extra_fields = (
        "type", "stop_reason", "content.0.type", "usage.cache_creation_input_tokens",
        "usage.cache_creation.ephemeral_5m_input_tokens", "usage.service_tier",
    )  # fmt: skip

    def is_authenticated(self, request: Request) -> bool:
        return request.headers.get("x-api-key") == KEY

    def fields(self, request: Request) -> Body:
        """The body, and the headers with the version and the beta features."""
        return {**request.body, **{name: request.headers.get(name) for name in VERSION_HEADERS}}

    def unauthenticated(self, request: Request) -> Reply:
        return error(401, "authentication_error", "invalid x-api-key")

    def unknown_model(self, model: str) -> Reply:
        return error(404, "not_found_error", f"model: {model}")

    def rate_limited(self, request: Request) -> Reply:
        message = "This request would exceed your organization's rate limit of 50 requests per minute (org: org-a)."
        headers = {
            "retry-after": "21",
            "anthropic-ratelimit-requests-limit": "50",
            "anthropic-ratelimit-requests-remaining": "0",
            "anthropic-ratelimit-requests-reset": "2026-11-23T12:00:21Z",
        }
        return error(429, "rate_limit_error", message, headers)

    def content_filtered(self, request: Request) -> Reply:
        return invalid("Output blocked by content filtering policy")

    def refused(self, request: Request) -> Reply:
        return self._reply([], "refusal", request)

    def structure(self, body: Body) -> Structure:
        if (schema := output_schema(body)) is not None:
            return Structure(AnswerForm.JSON_SCHEMA, schema)
        if body.get("tools") and (body.get("tool_choice") or {}).get("type", "auto") != "none":
            tool = body["tools"][0]
            return Structure(AnswerForm.TOOL, tool["input_schema"], tool["name"])
        return Structure(AnswerForm.TEXT)

    def prompt(self, body: Body) -> str:
        parts = [body.get("system"), *(message["content"] for message in body["messages"])]
        return "\n".join(
            part if isinstance(part, str) else "".join(block.get("text", "") for block in part or []) for part in parts
        )

    def token_limit(self, body: Body) -> int | None:
        return int(body["max_tokens"])

    def completion(self, content: Content, request: Request, *, is_cut_off: bool = False) -> Reply:
        if content.tool is None:
            block: dict[str, Any] = {"type": "text", "text": content.text}
            return self._reply([block], "max_tokens" if is_cut_off else "end_turn", request)
        # A tool's arguments that were cut off arrive as the fields that were complete.
        arguments = {} if is_cut_off else json.loads(content.text)
        block = {"type": "tool_use", "id": "toolu_01A09q90qw", "name": content.tool, "input": arguments}
        return self._reply([block], "max_tokens" if is_cut_off else "tool_use", request)

    def out_of_thinking(self, request: Request) -> Reply:
        block = {"type": "thinking", "thinking": "Let me weigh what people there say.", "signature": "EqoBCkgIARAB"}
        return self._reply([block], "max_tokens", request, self.token_limit(request.body))

    def _reply(
        self, content: list[dict[str, Any]], stop_reason: str, request: Request, n_tokens: int | None = None
    ) -> Reply:
        usage = {
            "input_tokens": 150, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
            "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
            "output_tokens": n_tokens or 60, "service_tier": "standard",
        }  # fmt: skip
        body = {
            "id": "msg_01XFDUDYJgAACzvnptvVoYEL", "type": "message", "role": "assistant",
            "model": self.requested_model(request), "content": content, "stop_reason": stop_reason,
            "stop_sequence": None, "usage": usage,
        }  # fmt: skip
        return Reply(body=body, headers={"request-id": "req_011CT7W3vE"})


DIALECT = Anthropic()
