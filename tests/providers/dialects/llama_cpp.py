"""llama.cpp's own server, `llama-server`.

References (read on 2026-11-23): tools/server/README.md and tools/server/server-common.cpp of
github.com/ggml-org/llama.cpp at commit 006639c3. All responses below but those about thinking and loading were also
measured on that day with the server of the Python package xllamacpp 2026.10.11549 and
SmolLM2-135M-Instruct.Q4_1.gguf: the statuses, the words and the fields are those that it sent. The server answers to
every model's name with the weights that it has loaded; unknown fields are ignored, among them `echo` and
`prompt_logprobs` of the completions endpoint; with weights whose chat template knows no tools, a required tool is
answered in prose.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from tests.providers.bodies import REMOVED, Body
from tests.providers.dialect import Rule
from tests.providers.openai_body import TOP_TOKENS, UNFINISHED_THOUGHT, OpenAIDialect
from tests.providers.text_completions import completion_body, plain_choices
from tests.support.fake_server import Reply, Request

RESPONSE_FORMATS = ("text", "json_object", "json_schema")
SECTION = {"api_base": "http://localhost:8080/v1"}
VALID_BODY: Body = {
    "model": "qwen3-4b",
    "messages": [{"role": "user", "content": "Is it right?"}],
    "temperature": 0.7,
    "max_tokens": 400,
    "response_format": {
        "type": "json_schema",
        "json_schema": {"name": "Reply", "schema": {"properties": {"answer": {"type": "string", "maxLength": 99}}}},
    },
}
CONTEXT_TOKENS = 8192
CHARS_PER_TOKEN = 4


def error(status: int, message: str, kind: str = "invalid_request_error", **details: int) -> Reply:
    """An error as `format_error_response` writes it; `details` replace the code."""
    fields = details or {"code": status}
    return Reply(status, {"error": {**fields, "message": message, "type": kind}})


def is_chat(body: Body) -> bool:
    return "prompt" not in body


def unknown_response_format(body: Body) -> str | None:
    """The type of a response format that the server does not know."""
    response_format = body.get("response_format")
    kind = response_format.get("type") if isinstance(response_format, dict) else None
    return None if kind in (None, *RESPONSE_FORMATS) else str(kind)


def unknown_schema_type(body: Body) -> str | None:
    """The type of a property that no grammar can be made for."""
    json_schema = (body.get("response_format") or {}).get("json_schema") or {}
    kinds = [part.get("type", "string") for part in json_schema.get("schema", {}).get("properties", {}).values()]
    known = ("string", "number", "integer", "boolean", "object", "array", "null")
    return next((kind for kind in kinds if isinstance(kind, str) and kind not in known), None)


def prompt_tokens(body: Body) -> int:
    """Number of tokens of the prompt if it exceeds the context, else 0."""
    n_tokens = len(str(body.get("messages", ""))) // CHARS_PER_TOKEN
    return n_tokens if n_tokens > CONTEXT_TOKENS else 0


class LlamaCpp(OpenAIDialect):
    """A server on the user's machine, started with `--api-key` and a model that thinks."""

    title = "llama.cpp server"
    reference = "github.com/ggml-org/llama.cpp, tools/server; read on 2026-11-23, and measured"
    model = "openai/qwen3-4b"
    wrong_model = "openai/qwen3-4b-nope"
    section = SECTION
    key_variable = "LLAMA_API_KEY"
    url = "http://localhost:8080/v1/chat/completions"
    completions_url = "http://localhost:8080/v1/completions"
    valid_body = VALID_BODY
    body_fields: ClassVar[Body] = {
        "model": "qwen3-4b",  # the alias of the loaded weights, whatever name the request has
        "system_fingerprint": "b6900-5d1f3c2a",
        "timings": {"cache_n": 0, "prompt_n": 150, "prompt_ms": 152.736, "prompt_per_token_ms": 4.628,
                    "prompt_per_second": 216.059, "predicted_n": 60, "predicted_ms": 452.292,
                    "predicted_per_token_ms": 7.47, "predicted_per_second": 133.868},
    }  # fmt: skip
    thinking_message: ClassVar[Mapping[str, Any]] = {
        "reasoning_content": UNFINISHED_THOUGHT
    }  # with `--reasoning-format auto`
    extra_fields = (
        "system_fingerprint",
        "timings.predicted_per_second",
        "timings.cache_n",
        "usage.prompt_tokens_details.cached_tokens",
    )
    rules = (
        Rule(
            "messages are missing", lambda body: is_chat(body) and "messages" not in body,
            error(400, "'messages' is required"), {"messages": REMOVED},
        ),
        Rule(
            "messages are no list", lambda body: is_chat(body) and not isinstance(body.get("messages", []), list),
            error(400, "Expected 'messages' to be an array"), {"messages": "Is it right?"},
        ),
        Rule(
            "an unknown response format", unknown_response_format,
            lambda kind: error(400, f'response_format type must be one of "text" or "json_object", but got: {kind}'),
            {"response_format": {"type": "grammar"}},
        ),
        Rule(
            "a schema with an unknown type", unknown_schema_type,
            lambda kind: error(
                400,
                "Unable to generate parser for this template. Automatic parser generation failed: JSON schema error "
                f"at #: unrecognized type {kind}",
            ),
            {"response_format": {"json_schema": {"schema": {"properties": {"answer": {"type": "nonsense"}}}}}},
        ),
        Rule(
            "top_logprobs without logprobs",
            lambda body: is_chat(body) and "top_logprobs" in body and not body.get("logprobs"),
            error(400, "top_logprobs requires logprobs to be set to true"), {"top_logprobs": 5},
        ),
        Rule(
            "a temperature that is no number", lambda body: not isinstance(body.get("temperature", 1), int | float),
            error(400, "Field 'temperature': [json.exception.type_error.302] type must be number, but is string"),
            {"temperature": "0.7"},
        ),
        Rule(
            "more than one choice", lambda body: body.get("n", 1) > 1 and body["n"],
            lambda n: error(400, f"Field 'n': Value must be between 1 <= value <= 1, but got {n}"), {"n": 2},
        ),
        Rule(
            "a prompt beyond the context", prompt_tokens,
            lambda n: error(
                400,
                f"request ({n} tokens) exceeds the available context size ({CONTEXT_TOKENS} tokens), try increasing it",
                "exceed_context_size_error", n_prompt_tokens=n, n_ctx=CONTEXT_TOKENS,
            ),
            {"messages": [{"role": "user", "content": "word " * 9000}]},
        ),
    )  # fmt: skip

    def usage(self, completion_tokens: int, reasoning_tokens: int | None = None) -> dict[str, Any]:
        """Thinking is not counted on its own."""
        return {**super().usage(completion_tokens), "prompt_tokens_details": {"cached_tokens": 0}}

    def unauthenticated(self, request: Request) -> Reply:
        return error(401, "Invalid API Key", "authentication_error")

    def rate_limited(self, request: Request) -> Reply:
        """The server queues without a limit; it asks to come back only while it loads the weights."""
        return error(503, "Loading model", "unavailable_error")

    def logprobs(self, request: Request) -> Reply:
        if not is_chat(request.body):
            return self.completions_logprobs(request)
        reply = self.choice_logprobs(request)
        entries = reply.body["choices"][0]["logprobs"]["content"]
        for entry in (*entries, *entries[0]["top_logprobs"]):
            entry["id"] = 319
        return reply

    def completions_logprobs(self, request: Request) -> Reply:
        """The generated token's log-probabilities in the format of the chat endpoint, and none of the prompt's."""
        choices = plain_choices(request)
        if request.body.get("logprobs"):
            token, logprob = next(iter(TOP_TOKENS.items()))
            entry = {"id": 319, "token": token, "bytes": list(token.encode()), "logprob": logprob}
            for choice in choices:
                choice["logprobs"] = {"content": [{**entry, "top_logprobs": [entry]}]}
        return Reply(body=completion_body(choices, "qwen3-4b") | {"timings": self.body_fields["timings"]})


DIALECT = LlamaCpp()
