"""LM Studio's OpenAI-compatible server.

References (read on 2026-11-23): github.com/lmstudio-ai/docs at commit c6854fb (2026-04-29), 1_developer: parameters,
3_openai-compat/chat-completions.md; schemas, 3_openai-compat/structured-output.md; keys, 0_core/authentication.mdx;
`stats` and `reasoning_content`, api-changelog.md. The program is closed; the words of its refusals are those that
users report: response formats, github.com/lmstudio-ai/lmstudio-bug-tracker/issues/189; `tool_choice`, issue 670; the
context, issue 2256 and github.com/Gitlawb/openclaude/issues/353; keys, github.com/agustif/opencode-lmstudio/issues/41
(a wrong key is shown by its first ten characters); an unknown model, github.com/gitbutlerapp/gitbutler/issues/8706;
log-probabilities are asked for in vain, github.com/lmstudio-ai/lms/issues/60.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from tests.providers.bodies import REMOVED, Body
from tests.providers.dialect import Content, Rule
from tests.providers.openai_body import UNFINISHED_THOUGHT, OpenAIDialect, chat_body
from tests.providers.text_completions import completion_body, plain_choices
from tests.support.fake_server import Reply, Request

SECTION = {"api_base": "http://localhost:1234/v1"}
CONTEXT_TOKENS = 8192
CHARS_PER_TOKEN = 4
TOOL_CHOICES = ("none", "auto", "required")
VALID_BODY: Body = chat_body("qwen/qwen3-8b", max_tokens=400, seed=1)


def error(status: int, message: str) -> Reply:
    """An error of the validation: its words, and nothing more."""
    return Reply(status, {"error": message})


def object_error(status: int, message: str, kind: str, code: str, **details: str) -> Reply:
    """An error with an object, as the server has for keys and models."""
    return Reply(status, {"error": {"message": message, "type": kind, "code": code, **details}})


def prompt_tokens(body: Body) -> int:
    """Number of tokens of the prompt if it exceeds the context, else 0."""
    n_tokens = len(str(body.get("messages", ""))) // CHARS_PER_TOKEN
    return n_tokens if n_tokens >= CONTEXT_TOKENS else 0


class LMStudio(OpenAIDialect):
    """A server on the user's machine that requires a key, which is a setting of it."""

    title = "LM Studio"
    reference = "github.com/lmstudio-ai/docs, 1_developer/3_openai-compat; read on 2026-11-23"
    model = "lm_studio/qwen/qwen3-8b"
    wrong_model = "lm_studio/qwen/qwen3-8b-nope"
    section = SECTION
    key_variable = "LM_API_TOKEN"
    url = "http://localhost:1234/v1/chat/completions"
    completions_url = "http://localhost:1234/v1/completions"
    valid_body = VALID_BODY
    choice_fields: ClassVar[Body] = {"logprobs": None}
    body_fields: ClassVar[Body] = {"stats": {}, "system_fingerprint": "qwen/qwen3-8b"}
    thinking_message: ClassVar[Mapping[str, Any]] = {"reasoning_content": UNFINISHED_THOUGHT}
    extra_fields = (
        "stats",
        "system_fingerprint",
        "choices.0.message.reasoning_content",
        "usage.completion_tokens_details.reasoning_tokens",
    )
    rules = (
        Rule(
            "neither messages nor a prompt", lambda body: not {"messages", "prompt"} & body.keys(),
            error(400, "'messages' field is required"), {"messages": REMOVED},
        ),
        Rule(
            "JSON mode",
            lambda body: (body.get("response_format") or {}).get("type", "text") not in ("json_schema", "text"),
            error(400, "'response_format.type' must be 'json_schema' or 'text'"),
            {"response_format": {"type": "json_object", "json_schema": REMOVED}},
        ),
        Rule(
            "a required tool by its name", lambda body: isinstance(body.get("tool_choice"), dict),
            error(400, "Invalid tool_choice type: 'object'. Supported string values: none, auto, required"),
            {"tool_choice": {"type": "function", "function": {"name": "Reply"}}},
        ),
        Rule(
            "an unknown tool choice",
            lambda body: isinstance(body.get("tool_choice"), str) and body["tool_choice"] not in TOOL_CHOICES,
            error(400, "Invalid tool_choice. Supported string values: none, auto, required"), {"tool_choice": "any"},
        ),
        Rule(
            "a prompt beyond the context", prompt_tokens,
            lambda n: error(
                400,
                "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: "
                f"{n}>= n_ctx: {CONTEXT_TOKENS}). Try to load the model with a larger context length, or provide a "
                "shorter input.",
            ),
            {"messages": [{"role": "user", "content": "word " * 9000}]},
        ),
    )  # fmt: skip

    def message(self, content: Content) -> dict[str, Any]:
        return {"tool_calls": [], **super().message(content), "reasoning_content": ""}

    def usage(self, completion_tokens: int, reasoning_tokens: int | None = None) -> dict[str, Any]:
        return super().usage(completion_tokens, reasoning_tokens or 0)

    def unauthenticated(self, request: Request) -> Reply:
        key = request.headers.get("Authorization", "").removeprefix("Bearer ")
        help_url = "https://lmstudio.ai/docs/developer/core/authentication"
        message = f"Malformed LM Studio API token provided: {key[:10]}{'*' * 14}. Learn more at: {help_url}."
        return object_error(401, message, "invalid_request", "invalid_api_key")

    def unknown_model(self, model: str) -> Reply:
        message = f'Model "{model}" not found. Please specify a valid model.\n\nYour models:\n\nqwen/qwen3-8b\n'
        return object_error(404, message, "invalid_request_error", "model_not_found", param="model")

    def logprobs(self, request: Request) -> Reply:
        """As if they had not been asked for."""
        if "prompt" in request.body:
            return Reply(body=completion_body(plain_choices(request), self.requested_model(request)))
        return self.completion(Content("A"), request, is_cut_off=True)


DIALECT = LMStudio()
