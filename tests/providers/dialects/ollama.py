"""Ollama's own API, `/api/chat`, on the user's machine.

References (read on 2026-11-23), in github.com/ollama/ollama at commit fb3076099 (2026-08-21): the request and the
response, api/types.go and docs/api.md; errors, server/routes.go, server/images.go, server/sched.go,
llm/llama_server.go and docs/api/errors.mdx; structured outputs and thinking, docs/capabilities; no key on the user's
machine, docs/api/authentication.mdx. Unknown options are ignored, with a warning in the log.
"""

from __future__ import annotations

from typing import Any

from auditor.domain import AnswerForm
from tests.providers.bodies import REMOVED, Body
from tests.providers.dialect import Content, Dialect, Rule, Structure
from tests.support.fake_server import Reply, Request

SECTION = {"api_base": "http://localhost:11434"}
NUMBER_OPTIONS = ("temperature", "top_p", "repeat_penalty", "min_p")
INTEGER_OPTIONS = ("num_predict", "seed", "num_ctx", "top_k")
THINK_LEVELS = ("low", "medium", "high", "max")
CONTEXT_TOKENS = 4096
CHARS_PER_TOKEN = 4
VALID_BODY: Body = {
    "model": "llama3.2",
    "messages": [{"role": "user", "content": "Is it right?"}],
    "stream": False,
    "format": {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]},
    "options": {"temperature": 0.7, "num_predict": 400, "seed": 1},
}


def error(status: int, message: str) -> Reply:
    """An error: its words, and nothing more."""
    return Reply(status, {"error": message})


def option_of_wrong_type(body: Body) -> tuple[str, str] | None:
    """The first option of a wrong type, and its right type in Go's words."""
    for name, value in body.get("options", {}).items():
        if name in NUMBER_OPTIONS and not isinstance(value, int | float):
            return name, "float32"
        if name in INTEGER_OPTIONS and not isinstance(value, int | float):
            return name, "integer"
    return None


def prompt_is_too_long(body: Body) -> bool:
    """Whether the prompt exceeds the context, and may not be cut (`shift`)."""
    return len(str(body.get("messages", ""))) // CHARS_PER_TOKEN > CONTEXT_TOKENS


class Ollama(Dialect):
    """A server on the user's machine, which needs no key."""

    title = "Ollama"
    reference = "github.com/ollama/ollama, docs/api.md and server/routes.go; read on 2026-11-23"
    model = "ollama_chat/llama3.2"
    thinking_model = "ollama_chat/qwen3"
    wrong_model = "ollama_chat/llama3.2-nope"
    section = SECTION
    key_variable = None
    url = "http://localhost:11434/api/chat"
    valid_body = VALID_BODY
    extra_fields = (
        "done", "done_reason", "message.content", "total_duration", "load_duration", "prompt_eval_count", "eval_count",
        "eval_duration",
    )  # fmt: skip
    rules = (
        Rule(
            "no model", lambda body: not body.get("model"), error(400, "model is required"), {"model": REMOVED},
        ),
        Rule(
            "messages are no list", lambda body: not isinstance(body.get("messages", []), list),
            error(400, "json: cannot unmarshal string into Go struct field ChatRequest.messages of type []api.Message"),
            {"messages": "Is it right?"},
        ),
        Rule(
            "a format that is neither JSON nor a schema",
            lambda body: isinstance(body.get("format"), str) and body["format"] not in ("json", "") and body["format"],
            lambda name: error(500, f'invalid format: "\\"{name}\\""; expected "json" or a valid JSON Schema object'),
            {"format": "xml"},
        ),
        Rule(
            "an option of a wrong type", option_of_wrong_type,
            lambda option: error(500, f'option "{option[0]}" must be of type {option[1]}'),
            {"options": {"temperature": "0.7"}},
        ),
        Rule(
            "a thinking level that does not exist",
            lambda body: isinstance(body.get("think"), str) and body["think"] not in THINK_LEVELS and body["think"],
            lambda level: error(
                400, f'invalid think value: "{level}" (must be "high", "medium", "low", "max", true, or false)'
            ),
            {"think": "huge"},
        ),
        Rule(
            "thinking of a model that cannot think",
            lambda body: body.get("think") in (True, *THINK_LEVELS) and body.get("model") == "llama3.2",
            error(400, '"llama3.2" does not support thinking'), {"think": True},
        ),
        Rule(
            "tools for a model without them", lambda body: body.get("tools") and body.get("model") == "gemma2:2b",
            lambda name: error(400, f"registry.ollama.ai/library/{name} does not support tools"),
            {"model": "gemma2:2b", "tools": [{"type": "function", "function": {"name": "Reply"}}]},
        ),
        Rule(
            "more than 20 top_logprobs", lambda body: not 0 <= body.get("top_logprobs", 0) <= 20,
            error(400, "top_logprobs must be between 0 and 20"), {"logprobs": True, "top_logprobs": 21},
        ),
        Rule(
            "a prompt beyond the context", prompt_is_too_long,
            error(
                400,
                "the prompt is longer than the context length currently available to the model; shorten the prompt, "
                "adjust the context length in settings, or use a model with a longer context length",
            ),
            {"messages": [{"role": "user", "content": "word " * 9000}]},
        ),
    )  # fmt: skip

    def is_authenticated(self, request: Request) -> bool:
        """Always: whatever key is sent is ignored."""
        return True

    def structure(self, body: Body) -> Structure:
        schema = body.get("format")
        if isinstance(schema, dict):
            return Structure(AnswerForm.JSON_SCHEMA, schema)
        return Structure(AnswerForm.JSON_OBJECT if schema == "json" else AnswerForm.TEXT)

    def prompt(self, body: Body) -> str:
        return "\n".join(str(message.get("content", "")) for message in body.get("messages", []))

    def token_limit(self, body: Body) -> int | None:
        limit = body.get("options", {}).get("num_predict")
        return limit if isinstance(limit, int) and limit > 0 else None

    def completion(self, content: Content, request: Request, *, is_cut_off: bool = False) -> Reply:
        reason = "length" if is_cut_off else "stop"
        return Reply(body=self.completion_body({"role": "assistant", "content": content.text}, reason, 60, request))

    def completion_body(self, message: Body, reason: str, n_tokens: int, request: Request) -> dict[str, Any]:
        """A `ChatResponse`; durations are in nanoseconds."""
        return {
            "model": self.requested_model(request), "created_at": "2026-11-23T10:15:30.123456789Z", "message": message,
            "done": True, "done_reason": reason, "total_duration": 4883583458, "load_duration": 1334875,
            "prompt_eval_count": 150, "prompt_eval_duration": 342546000, "eval_count": n_tokens,
            "eval_duration": 4535599000,
        }  # fmt: skip

    def unknown_model(self, model: str) -> Reply:
        return error(404, f"model '{model}' not found")

    def rate_limited(self, request: Request) -> Reply:
        """The server's answer if more requests wait than `OLLAMA_MAX_QUEUE`."""
        return error(503, "server busy, please try again.  maximum pending requests exceeded")

    def out_of_thinking(self, request: Request) -> Reply:
        """Thinking is in a field of its own, and counted with the rest."""
        limit = self.token_limit(request.body) or self.thinking_tokens
        message = {"role": "assistant", "content": "", "thinking": "Let me think about what families there value."}
        return Reply(body=self.completion_body(message, "length", limit, request))


DIALECT = Ollama()
