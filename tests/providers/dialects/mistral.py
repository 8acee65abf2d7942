"""Mistral's chat completions.

References (read on 2026-11-23): the OpenAPI description and the documentation in
github.com/mistralai/platform-docs-public (2026-08-21; no parameter or property beyond the described ones), its page on
native reasoning (content as a list of parts, the thinking first) and its error glossary. Exchanges recorded on
2025-12-14 in github.com/maruel/genai (providers/mistral/testdata) have the responses, the rate-limit headers and the
errors for a wrong key, a wrong model and a tool; a newer one with `prompt_tokens_details` is in
github.com/pydantic/pydantic-ai (tests/models/cassettes/test_mistral). The words of the other refusals are those in
github.com/Gitlawb/openclaude/issues/739 (a parameter), github.com/nomtek/mistralai_client_dart/issues/44 (a message's
property) and github.com/raycast/extensions/issues/31107 (the rate limit).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.providers.bodies import REMOVED, Body, words
from tests.providers.dialect import Rule
from tests.providers.openai_body import OpenAIDialect, chat_body
from tests.support.fake_server import Reply, Request

PARAMETERS = words(
    """frequency_penalty guardrails max_tokens messages metadata model n parallel_tool_calls prediction presence_penalty
    prompt_cache_key prompt_mode random_seed reasoning_effort response_format safe_prompt stop stream temperature
    tool_choice tools top_p"""
)
"""Fields of `ChatCompletionRequest`, which allows no others: `seed` and `max_completion_tokens` are unknown."""
MESSAGE_FIELDS = words("role content tool_calls prefix tool_call_id name")
HEADERS = {"mistral-correlation-id": "019b1ce1-1f5b-772d-b04f-e2b9111d3ef3"}
THOUGHTS = "Let me think of what people there hold. Many of them object to it."

Problem = tuple[str, list[str | int], str, object]
"""Type, place, message and input of a validation error."""


def invalid(problem: Problem) -> Reply:
    kind, place, message, value = problem
    return Reply(422, {"detail": [{"type": kind, "loc": ["body", *place], "msg": message, "input": value}]}, HEADERS)


def extra_parameter(body: Body) -> Problem | None:
    """The first parameter that does not exist."""
    name = next((name for name in body if name not in PARAMETERS), None)
    return None if name is None else ("extra_forbidden", [name], "Extra inputs are not permitted", body[name])


def extra_message_field(body: Body) -> Problem | None:
    """The first field of a message that does not exist; `name` exists in a tool's message only."""
    for number, message in enumerate(body.get("messages", [])):
        role = str(message["role"])
        for name, value in message.items():
            if name not in MESSAGE_FIELDS or (name == "name" and role != "tool"):
                return "extra_forbidden", ["messages", number, role, name], "Extra inputs are not permitted", value
    return None


def out_of_range(name: str, smallest: float, largest: float) -> Callable[[Body], Problem | None]:
    """A check of a number's range."""

    def find(body: Body) -> Problem | None:
        value = body.get(name)
        if not isinstance(value, (int, float)) or smallest <= value <= largest:
            return None
        if value < smallest:
            return "greater_than_equal", [name], f"Input should be greater than or equal to {smallest}", value
        return "less_than_equal", [name], f"Input should be less than or equal to {largest}", value

    return find


def nameless_schema(body: Body) -> Problem | None:
    """A JSON schema without the name that it must have."""
    response_format = body.get("response_format") or {}
    schema = response_format.get("json_schema")
    if response_format.get("type") != "json_schema" or (schema and "name" in schema):
        return None
    return "missing", ["response_format", "json_schema", "name"], "Field required", schema


def unknown_tool(body: Body) -> Problem | None:
    for number, tool in enumerate(body.get("tools") or []):
        if tool.get("type", "function") != "function":
            return "enum", ["tools", "list[Tool]", number, "type"], "Input should be 'function'", tool["type"]
    return None


def rule(name: str, find: Callable[[Body], Problem | None], example: Mapping[str, Any]) -> Rule:
    """A rule whose breach is a validation error."""
    return Rule(name, find, invalid, example)


VALID_BODY: Body = chat_body("mistral-small-latest", max_tokens=400, random_seed=7)


class Mistral(OpenAIDialect):
    """Mistral, with a model that thinks only if it is asked to, and one that always does."""

    title = "Mistral"
    reference = "github.com/mistralai/platform-docs-public, read on 2026-11-23"
    model = "mistral/mistral-small-latest"
    thinking_model = "mistral/magistral-medium-latest"
    wrong_model = "mistral/mistral-small-last"
    key_variable = "MISTRAL_API_KEY"
    url = "https://api.mistral.ai/v1/chat/completions"
    valid_body = VALID_BODY
    rules = (
        rule("messages are missing",
             lambda body: None if "messages" in body else ("missing", ["messages"], "Field required", body),
             {"messages": REMOVED}),
        rule("a parameter that does not exist", extra_parameter, {"random_seed": REMOVED, "seed": 7}),
        rule("a message's field that does not exist", extra_message_field,
             {"messages": [{"role": "user", "content": "Is it right?", "name": "analyst"}]}),
        rule("a temperature above 1.5", out_of_range("temperature", 0, 1.5), {"temperature": 2.0}),
        rule("a negative seed", out_of_range("random_seed", 0, 2**63), {"random_seed": -1}),
        rule("a negative token limit", out_of_range("max_tokens", 0, 2**31), {"max_tokens": -1}),
        rule("a schema without a name", nameless_schema, {"response_format": {"json_schema": {"name": REMOVED}}}),
        rule("a tool that is no function", unknown_tool, {"tools": [{"type": "web_search"}]}),
    )  # fmt: skip
    extra_fields = (
        "choices.0.message.prefix",
        "usage.num_cached_tokens",
        "usage.prompt_audio_seconds",
        "usage.prompt_tokens_details.cached_tokens",
    )

    def thinks(self, request: Request) -> bool:
        """Whether the model of a request thinks before it answers."""
        return str(request.body.get("model")).startswith("magistral") or request.body.get("reasoning_effort") == "high"

    def completion_body(self, message: dict[str, Any], finish: str, request: Request) -> dict[str, Any]:
        """A model that thinks answers with a list of parts."""
        message = {"tool_calls": None, **message, "prefix": False}
        if self.thinks(request) and message["content"] is not None:
            answer = [{"type": "text", "text": message["content"]}] if message["content"] else []
            message["content"] = [{"type": "thinking", "thinking": [{"type": "text", "text": THOUGHTS}]}, *answer]
        body = super().completion_body(message, finish, request)
        return {**body, "id": "7f72c2facf39454da788badc242222ed"}

    def usage(self, completion_tokens: int, reasoning_tokens: int | None = None) -> dict[str, Any]:
        """Token counts, in which the thinking is not counted apart."""
        cached = {"prompt_audio_seconds": None, "num_cached_tokens": 0, "prompt_tokens_details": {"cached_tokens": 0}}
        return {**super().usage(completion_tokens), **cached}

    def unauthenticated(self, request: Request) -> Reply:
        return Reply(401, {"detail": "Unauthorized"}, HEADERS)

    def unknown_model(self, model: str) -> Reply:
        details = {"message": f"Invalid model: {model}", "type": "invalid_model", "param": None, "code": "1500"}
        return Reply(400, {"object": "error", **details}, HEADERS)

    def rate_limited(self, request: Request) -> Reply:
        details = {"message": "Rate limit exceeded", "type": "rate_limited", "param": None, "code": "1300"}
        headers = {**HEADERS, "x-ratelimit-limit-req-60-second": "360", "x-ratelimit-remaining-req-60-second": "0"}
        return Reply(429, {"object": "error", **details, "raw_status_code": 429}, headers)


DIALECT = Mistral()
