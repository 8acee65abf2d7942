"""vLLM's OpenAI-compatible server, `vllm serve`.

References (read on 2026-11-23), in github.com/vllm-project/vllm at commits 002032ee and 030141c1: the request and the
response, vllm/entrypoints/openai/chat_completion/protocol.py; errors, vllm/entrypoints/openai/engine/protocol.py and
vllm/sampling_params.py; schemas, vllm/v1/structured_output/backend_xgrammar.py. The key is checked by the middleware
`AuthenticationMiddleware`; `VLLM_API_KEY` is the variable of `--api-key`. Unknown fields are ignored, with a warning
in the log. The words about the context are in github.com/vllm-project/vllm/issues/42474, those about an unknown model
in issue 3485 (the object around them is that of the protocol).
"""

from __future__ import annotations

from typing import Any

from tests.providers.bodies import REMOVED, Body, schema_keywords
from tests.providers.dialect import Content, Rule
from tests.providers.openai_body import OpenAIDialect
from tests.providers.text_completions import completion_body, echoed_choices, plain_choices
from tests.support.fake_server import Reply, Request

SECTION = {"api_base": "http://localhost:8000/v1"}
MAX_LOGPROBS = 20
"""Default of `--max-logprobs`."""
UNSUPPORTED_KEYWORDS = frozenset({"multipleOf", "uniqueItems", "contains", "minContains", "maxContains"})
"""Keywords that `has_xgrammar_unsupported_json_features` refuses wherever they are."""
RESPONSE_FORMATS = ("text", "json_object", "json_schema", "structural_tag")
VALID_BODY: Body = {
    "model": "Qwen/Qwen3-8B",
    "messages": [{"role": "user", "content": "Is it right?"}],
    "temperature": 0.7,
    "max_tokens": 400,
    "seed": 1,
    "response_format": {
        "type": "json_schema",
        "json_schema": {
            "name": "Reply",
            "strict": True,
            "schema": {
                "type": "object",
                "properties": {
                    "answer": {"type": "string", "minLength": 1, "maxLength": 400},
                    "score": {"type": "number", "minimum": -1, "maximum": 1},
                },
                "required": ["answer", "score"],
            },
        },
    },
}


def error(status: int, message: str, kind: str = "BadRequestError", param: str | None = None) -> Reply:
    """An `ErrorResponse`."""
    return Reply(status, {"error": {"message": message, "type": kind, "param": param, "code": status}})


def refused_keyword(body: Body) -> bool:
    """Whether a schema has a keyword that the server does not support."""
    schema = ((body.get("response_format") or {}).get("json_schema") or {}).get("schema")
    return bool(schema_keywords(schema) & UNSUPPORTED_KEYWORDS)


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
    extra_fields = (
        "choices.0.stop_reason",
        "choices.0.token_ids",
        "choices.0.message.reasoning",
        "prompt_logprobs",
        "kv_transfer_params",
    )
    rules = (
        Rule(
            "neither messages nor a prompt",
            lambda body: not {"messages", "prompt"} & body.keys(),
            lambda _: error(
                400, "[{'type': 'missing', 'loc': ('body', 'messages'), 'msg': 'Field required'}]", "Bad Request"
            ),
            {"messages": REMOVED},
        ),
        Rule(
            "an unknown response format",
            lambda body: (body.get("response_format") or {}).get("type", "text") not in RESPONSE_FORMATS,
            lambda _: error(
                400,
                "[{'type': 'literal_error', 'loc': ('body', 'response_format', 'ResponseFormat', 'type'), 'msg': "
                "\"Input should be 'text', 'json_object' or 'json_schema'\"}]",
                "Bad Request",
            ),
            {"response_format": {"type": "grammar"}},
        ),
        Rule(
            "the schema form without a schema",
            lambda body: (
                (body.get("response_format") or {}).get("type") == "json_schema"
                and not body["response_format"].get("json_schema")
            ),
            lambda _: error(
                400,
                "When response_format type is 'json_schema', the 'json_schema' field must be provided.",
                param="response_format",
            ),
            {"response_format": {"json_schema": REMOVED}},
        ),
        Rule(
            "a keyword that xgrammar does not support",
            refused_keyword,
            lambda _: error(400, "The provided JSON schema contains features not supported by xgrammar."),
            {"response_format": {"json_schema": {"schema": {"properties": {"score": {"multipleOf": 0.1}}}}}},
        ),
        Rule(
            "top_logprobs without logprobs",
            lambda body: body.get("top_logprobs", 0) > 0 and not body.get("logprobs"),
            lambda _: error(400, "when using `top_logprobs`, `logprobs` must be set to true.", param="top_logprobs"),
            {"top_logprobs": 5},
        ),
        Rule(
            "more log-probabilities than the server allows",
            lambda body: body.get("top_logprobs", 0) > MAX_LOGPROBS and body["top_logprobs"],
            lambda n: error(
                400,
                f"Requested sample logprobs of {n}, which is greater than max allowed: {MAX_LOGPROBS}",
                param="logprobs",
            ),
            {"logprobs": True, "top_logprobs": 21},
        ),
        Rule(
            "a negative temperature",
            lambda body: (body.get("temperature") or 0) < 0 and body["temperature"],
            lambda number: error(400, f"temperature must be non-negative, got {number}.", param="temperature"),
            {"temperature": -0.5},
        ),
        Rule(
            "a required tool that is not among the tools",
            unknown_tool,
            lambda _: error(
                400,
                "The tool specified in `tool_choice` does not match any of the specified `tools`",
                param="tool_choice",
            ),
            {
                "tools": [{"type": "function", "function": {"name": "Reply"}}],
                "tool_choice": {"type": "function", "function": {"name": "Other"}},
            },
        ),
        Rule(
            "an empty list of tools",
            lambda body: body.get("tools") == [],
            lambda _: error(
                400,
                "`tools` must not be an empty array. Either provide at least one tool or omit the field entirely.",
                param="tools",
            ),
            {"tools": []},
        ),
    )

    def message(self, content: Content) -> dict[str, Any]:
        extra = {"refusal": None, "annotations": None, "audio": None, "function_call": None, "reasoning": None}
        return {**super().message(content), **extra}

    def completion_body(self, message: dict[str, Any], finish: str, request: Request) -> dict[str, Any]:
        body = super().completion_body(message, finish, request)
        body["choices"][0] |= {"logprobs": None, "stop_reason": None, "token_ids": None}
        extra = {"service_tier": None, "system_fingerprint": None, "prompt_logprobs": None, "prompt_token_ids": None}
        return {**body, **extra, "kv_transfer_params": None}

    def usage(self, completion_tokens: int, reasoning_tokens: int | None = None) -> dict[str, Any]:
        """Thinking is not counted on its own."""
        return {**super().usage(completion_tokens), "prompt_tokens_details": None}

    def unauthenticated(self, request: Request) -> Reply:
        return Reply(401, {"error": "Unauthorized"})

    def unknown_model(self, model: str) -> Reply:
        return error(404, f"The model `{model}` does not exist.", "NotFoundError", "model")

    def rate_limited(self, request: Request) -> Reply:
        """Never; see the expectations."""
        raise NotImplementedError

    def logprobs(self, request: Request) -> Reply:
        if "prompt" not in request.body:
            return self.choice_logprobs(request)
        choices = echoed_choices(request) if request.body.get("echo") else plain_choices(request)
        for choice in choices:
            choice |= {"stop_reason": None, "prompt_logprobs": None}
        return Reply(body=completion_body(choices, self.requested_model(request)))

    def out_of_thinking(self, request: Request) -> Reply:
        """With a reasoning parser, thinking is in `reasoning` and the content is null; it is not counted on its own."""
        limit = self.token_limit(request.body) or self.thinking_tokens
        message = {**self.message(Content("")), "content": None, "reasoning": "Let me think about what families value."}
        body = self.completion_body(message, self.finish_cut_off, request)
        return Reply(body=body | {"usage": self.usage(limit)})


DIALECT = VLLM()
