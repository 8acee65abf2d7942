"""vLLM's OpenAI-compatible server, `vllm serve`.

Measured on 2026-11-23 with vLLM 0.32.0 on a CPU (SmolLM2-135M; with and without `--api-key`, `--reasoning-parser
deepseek_r1` and the backend xgrammar): the response, every refusal here and thinking that takes all tokens. Its source
is github.com/vllm-project/vllm (commits 002032ee and 030141c1): vllm/entrypoints/openai/chat_completion/protocol.py,
vllm/entrypoints/openai/engine/protocol.py and vllm/sampling_params.py. Unknown fields are ignored. The default backend,
auto, gives guidance what xgrammar does not support; xgrammar alone refuses it (test_server_variants.py). More tokens
than the context has left are clipped, more than the whole context are refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from tests.providers.bodies import REMOVED, Body, schema_keywords, words
from tests.providers.dialect import Rule
from tests.providers.openai_body import BOUNDED_ANSWER, UNFINISHED_THOUGHT, OpenAIDialect, chat_body, schema_format
from tests.providers.text_completions import completion_body, echoed_choices, plain_choices
from tests.support.fake_server import Reply, Request

SECTION = {"api_base": "http://localhost:8000/v1"}
MAX_LOGPROBS = 20
"""Default of `--max-logprobs`."""
UNSUPPORTED_KEYWORDS = frozenset({"uniqueItems", "contains", "minContains"})
"""Keywords that neither xgrammar nor guidance knows."""
CONTEXT_TOKENS = 40960
RESPONSE_FORMATS = ("text", "json_object", "json_schema", "structural_tag")
VALID_BODY: Body = chat_body(
    "Qwen/Qwen3-8B", max_tokens=400, seed=1, response_format=schema_format(BOUNDED_ANSWER, strict=True)
)


def error(status: int, message: str, kind: str = "BadRequestError", param: str | None = None) -> Reply:
    """An `ErrorResponse`."""
    return Reply(status, {"error": {"message": message, "type": kind, "param": param, "code": status}})


def invalid(message: str, param: str, value: object = None) -> Reply:
    """A `VLLMValidationError`, whose words end with its parameter."""
    details = f"parameter={param}" if value is None else f"parameter={param}, value={value}"
    return error(400, f"{message} ({details})", param=param)


def too_many_tokens(n: int, context_tokens: int) -> Reply:
    """The refusal of more tokens than the whole context, `--max-model-len`."""
    return invalid(
        f"max_tokens={n} cannot be greater than max_model_len={context_tokens}. Please request fewer output tokens.",
        "max_tokens",
        n,
    )


def refused_keywords(body: Body) -> list[str]:
    """Keywords of a schema that the server does not support."""
    schema = ((body.get("response_format") or {}).get("json_schema") or {}).get("schema")
    return sorted(schema_keywords(schema) & UNSUPPORTED_KEYWORDS)


def unknown_tool(body: Body) -> bool:
    """Whether a tool is required that is not among the tools."""
    choice = body.get("tool_choice")
    names = [tool["function"]["name"] for tool in body.get("tools", [])]
    return isinstance(choice, dict) and choice["function"]["name"] not in names


class VLLM(OpenAIDialect):
    """A server on the user's machine, started with `--api-key` and `--reasoning-parser`."""

    title = "vLLM"
    reference = "github.com/vllm-project/vllm, vllm/entrypoints/openai; read on 2026-11-23"
    model = "hosted_vllm/Qwen/Qwen3-8B"
    wrong_model = "hosted_vllm/Qwen/Qwen3-8B-nope"
    section = SECTION
    key_variable = "VLLM_API_KEY"
    url = "http://localhost:8000/v1/chat/completions"
    completions_url = "http://localhost:8000/v1/completions"
    valid_body = VALID_BODY
    message_fields = dict.fromkeys(words("refusal annotations audio function_call reasoning"))
    choice_fields = dict.fromkeys(words("logprobs stop_reason token_ids routed_experts"))
    body_fields = {"system_fingerprint": "vllm-0.32.0-c2082cf2"} | dict.fromkeys(
        words("metrics service_tier prompt_logprobs prompt_token_ids prompt_text kv_transfer_params ec_transfer_params")
    )
    thinking_message: ClassVar[Mapping[str, Any]] = {"content": None, "reasoning": UNFINISHED_THOUGHT}
    extra_fields = (
        "choices.0.stop_reason", "choices.0.token_ids", "choices.0.message.reasoning", "prompt_logprobs",
        "kv_transfer_params",
    )  # fmt: skip
    rules = (
        Rule(
            "neither messages nor a prompt", lambda body: not {"messages", "prompt"} & body.keys(),
            error(
                400,
                "1 validation error:\n  {'type': 'missing', 'loc': 'body.messages', 'msg': 'Field required', 'input': "
                "'<dict of 1 items>'}",
                "Bad Request", "body.messages",
            ),
            {"messages": REMOVED},
        ),
        Rule(
            "an unknown response format",
            lambda body: (body.get("response_format") or {}).get("type", "text") not in RESPONSE_FORMATS,
            error(
                400,
                "6 validation errors:\n  {'type': 'literal_error', 'loc': 'body.response_format.type', 'msg': \"Input "
                "should be 'text', 'json_object' or 'json_schema'\", 'input': 'grammar'}",
                "Bad Request", "body.response_format.type",
            ),
            {"response_format": {"type": "grammar"}},
        ),
        Rule(
            "the schema form without a schema",
            lambda body: (
                (body.get("response_format") or {}).get("type") == "json_schema"
                and not body["response_format"].get("json_schema")
            ),
            invalid(
                "When response_format type is 'json_schema', the 'json_schema' field must be provided.",
                "response_format",
            ),
            {"response_format": {"json_schema": REMOVED}},
        ),
        Rule(
            "keywords that no grammar backend knows", refused_keywords,
            lambda names: error(400, f"Grammar error: Unimplemented keys: {json.dumps(names)}"),
            {"response_format": {"json_schema": {"schema": {"properties": {"score": {"uniqueItems": True}}}}}},
        ),
        Rule(
            "top_logprobs without logprobs", lambda body: body.get("top_logprobs", 0) > 0 and not body.get("logprobs"),
            invalid("when using `top_logprobs`, `logprobs` must be set to true.", "top_logprobs"), {"top_logprobs": 5},
        ),
        Rule(
            "more log-probabilities than the server allows",
            lambda body: body.get("top_logprobs", 0) > MAX_LOGPROBS and body["top_logprobs"],
            lambda n: invalid(
                f"Requested sample logprobs of {n}, which is greater than max allowed: {MAX_LOGPROBS}", "logprobs", n
            ),
            {"logprobs": True, "top_logprobs": 21},
        ),
        Rule(
            "a negative temperature", lambda body: (body.get("temperature") or 0) < 0 and body["temperature"],
            lambda number: invalid(f"temperature must be non-negative, got {number}.", "temperature", number),
            {"temperature": -0.5},
        ),
        Rule(
            "a temperature above 2", lambda body: (body.get("temperature") or 0) > 2 and body["temperature"],
            lambda number: invalid(f"temperature must be in [0, 2], got {number}.", "temperature", number),
            {"temperature": 3.0},
        ),
        Rule(
            "more tokens than the model's context",
            lambda body: (body.get("max_tokens") or 0) > CONTEXT_TOKENS and body["max_tokens"],
            lambda n: too_many_tokens(n, CONTEXT_TOKENS), {"max_tokens": 50000},
        ),
        Rule(
            "a required tool that is not among the tools", unknown_tool,
            invalid("The tool specified in `tool_choice` does not match any of the specified `tools`", "tool_choice"),
            {
                "tools": [{"type": "function", "function": {"name": "Reply"}}],
                "tool_choice": {"type": "function", "function": {"name": "Other"}},
            },
        ),
        Rule(
            "a required tool, and no parser for calls of tools",
            lambda body: (
                isinstance(body.get("tool_choice"), dict)
                and not unknown_tool(body)
                and body["tool_choice"]["function"]["name"]
            ),
            lambda name: error(400, f'tool_choice=function "{name}" requires --tool-call-parser to be set'),
            {
                "tools": [{"type": "function", "function": {"name": "Reply"}}],
                "tool_choice": {"type": "function", "function": {"name": "Reply"}},
            },
        ),
        Rule(
            "an empty list of tools", lambda body: body.get("tools") == [],
            invalid(
                "`tools` must not be an empty array. Either provide at least one tool or omit the field entirely.",
                "tools",
            ),
            {"tools": []},
        ),
    )  # fmt: skip

    def usage(self, completion_tokens: int, reasoning_tokens: int | None = None) -> dict[str, Any]:
        """The usage; thinking that is unfinished counts as 0."""
        details = None if reasoning_tokens is None else {"reasoning_tokens": 0}
        return {**super().usage(completion_tokens), "prompt_tokens_details": None, "completion_tokens_details": details}

    def unauthenticated(self, request: Request) -> Reply:
        return Reply(401, {"error": "Unauthorized"})

    def unknown_model(self, model: str) -> Reply:
        return error(
            404, f"The model `{model}` does not exist. Valid aliases: Qwen/Qwen3-8B.", "NotFoundError", "model"
        )

    def logprobs(self, request: Request) -> Reply:
        if "prompt" not in request.body:
            return self.choice_logprobs(request)
        choices = echoed_choices(request) if request.body.get("echo") else plain_choices(request)
        for choice in choices:
            choice |= {"stop_reason": None, "prompt_logprobs": None}
        return Reply(body=completion_body(choices, self.requested_model(request)))


DIALECT = VLLM()
