"""SGLang's OpenAI-compatible server.

References (read on 2026-11-23): the package sglang 0.5.23: the request and the response,
sglang/srt/entrypoints/openai/protocol.py; errors, serving_base.py and serving_chat.py beside it,
sglang/srt/sampling/sampling_params.py and managers/tokenizer_manager.py; the key, sglang/srt/utils/auth.py; schemas,
sglang/srt/constrained/json_schema_validation.py; the full queue, managers/scheduler.py. Errors have no object `error`
around them. The server compares no model's name with its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from tests.providers.bodies import REMOVED, Body, schema_keywords
from tests.providers.dialect import Rule
from tests.providers.openai_body import BOUNDED_ANSWER, UNFINISHED_THOUGHT, OpenAIDialect, chat_body, schema_format
from tests.providers.text_completions import completion_body, echoed_choices, plain_choices
from tests.support.fake_server import Reply, Request

SECTION = {"api_base": "http://localhost:30000/v1"}
CONTEXT_TOKENS = 40960
UNSUPPORTED_KEYWORDS = frozenset({"multipleOf", "uniqueItems", "not", "if", "then", "else", "contains"})
"""Keywords that the grammar backend xgrammar, the default, would ignore, and that the server therefore refuses."""
VALID_BODY: Body = chat_body(
    "Qwen/Qwen3-8B", max_tokens=400, seed=1, response_format=schema_format(BOUNDED_ANSWER, strict=True)
)


def error(status: int, message: str, kind: str = "BadRequest") -> Reply:
    """An `ErrorResponse`: its fields are the body itself."""
    return Reply(status, {"object": "error", "message": message, "type": kind, "param": None, "code": status})


def refused_keyword(body: Body) -> tuple[str, str] | None:
    """The pointer to a property, and the first of its keywords that the grammar backend would ignore."""
    schema = ((body.get("response_format") or {}).get("json_schema") or {}).get("schema") or {}
    for name, part in schema.get("properties", {}).items():
        if keywords := sorted(schema_keywords(part) & UNSUPPORTED_KEYWORDS):
            return f"#/properties/{name}", keywords[0]
    return None


def missing_tool(body: Body) -> str | None:
    """The name of a required tool that is not among the tools."""
    choice = body.get("tool_choice")
    names = [tool["function"]["name"] for tool in body.get("tools", [])]
    is_missing = isinstance(choice, dict) and choice["function"]["name"] not in names
    return str(choice["function"]["name"]) if is_missing and isinstance(choice, dict) else None


class SGLang(OpenAIDialect):
    """A server on the user's machine, started with `--api-key` and `--reasoning-parser`."""

    title = "SGLang"
    reference = "sglang 0.5.23, sglang/srt/entrypoints/openai; read on 2026-11-23"
    model = "openai/Qwen/Qwen3-8B"
    wrong_model = "openai/Qwen/Qwen3-8B-nope"
    section = SECTION
    key_variable = "SGLANG_API_KEY"
    url = "http://localhost:30000/v1/chat/completions"
    completions_url = "http://localhost:30000/v1/completions"
    valid_body = VALID_BODY
    message_fields: ClassVar[Body] = {"reasoning_content": None}
    thinking_message: ClassVar[Mapping[str, Any]] = {"content": None, "reasoning_content": UNFINISHED_THOUGHT}
    extra_fields = (
        "choices.0.matched_stop",
        "choices.0.message.reasoning_content",
        "usage.reasoning_tokens",
        "metadata.weight_version",
    )
    rules = (
        Rule(
            "no messages", lambda body: "prompt" not in body and body.get("messages") == [],
            error(400, "Messages cannot be empty.", "BadRequestError"), {"messages": []},
        ),
        Rule(
            "neither messages nor a prompt", lambda body: not {"messages", "prompt"} & body.keys(),
            error(
                400, "1 validation error: {'type': 'missing', 'loc': ('body', 'messages'), 'msg': 'Field required'}",
                "Bad Request",
            ),
            {"messages": REMOVED},
        ),
        Rule(
            "the schema form without a schema",
            lambda body: (
                (body.get("response_format") or {}).get("type") == "json_schema"
                and not (body["response_format"].get("json_schema") or {}).get("schema")
            ),
            error(400, "schema_ is required for json_schema response format request.", "BadRequestError"),
            {"response_format": {"json_schema": {"schema": REMOVED}}},
        ),
        Rule(
            "a keyword that the grammar would ignore", refused_keyword,
            lambda place: error(
                400,
                f"Failed to compile json grammar: JSON Schema at {place[0]} is not supported by xgrammar: keyword(s) "
                f"{place[1]} would be ignored",
            ),
            {"response_format": {"json_schema": {"schema": {"properties": {"score": {"multipleOf": 0.1}}}}}},
        ),
        Rule(
            "a required tool that is not among the tools", missing_tool,
            lambda name: error(400, f"Tool '{name}' not found in tools list.", "BadRequestError"),
            {
                "tools": [{"type": "function", "function": {"name": "Reply"}}],
                "tool_choice": {"type": "function", "function": {"name": "Other"}},
            },
        ),
        Rule(
            "a negative temperature", lambda body: (body.get("temperature") or 0) < 0 and body["temperature"],
            lambda number: error(400, f"temperature must be a non-negative finite number, got {number}."),
            {"temperature": -0.5},
        ),
        Rule(
            "more tokens than the context",
            lambda body: (body.get("max_tokens") or 0) > CONTEXT_TOKENS and body["max_tokens"],
            lambda n: error(
                400,
                f"max_completion_tokens is too large: {n}.This model supports at most {CONTEXT_TOKENS} completion "
                "tokens.",
                "BadRequestError",
            ),
            {"max_tokens": 65536},
        ),
    )  # fmt: skip

    def completion_body(self, message: dict[str, Any], finish: str, request: Request) -> dict[str, Any]:
        body = super().completion_body(message, finish, request)
        body["choices"][0] |= {"logprobs": None, "matched_stop": None if finish == "length" else 151645}
        return {**body, "id": "7c5d3f9b2a1e4d6c8b0a9f8e7d6c5b4a", "metadata": {"weight_version": "default"}}

    def usage(self, completion_tokens: int, reasoning_tokens: int | None = None) -> dict[str, Any]:
        """Thinking is counted beside OpenAI's fields, and in OpenAI's own place only if there was some."""
        counted = super().usage(completion_tokens, reasoning_tokens or None)
        return {**counted, "prompt_tokens_details": None, "reasoning_tokens": reasoning_tokens or 0}

    def unauthenticated(self, request: Request) -> Reply:
        return Reply(401, {"error": "Unauthorized"})

    def rate_limited(self, request: Request) -> Reply:
        """The server's answer if it was started with `--max-queued-requests`."""
        return error(503, "The request queue is full.", "503")

    def logprobs(self, request: Request) -> Reply:
        if "prompt" not in request.body:
            return self.choice_logprobs(request)
        choices = echoed_choices(request) if request.body.get("echo") else plain_choices(request)
        for choice in choices:
            choice["matched_stop"] = None
        return Reply(body=completion_body(choices, self.requested_model(request)))


DIALECT = SGLang()
