"""Hugging Face's router of inference providers, with a model that Groq serves there, and one that thinks at Novita.

References (read on 2026-11-23): docs/inference-providers/tasks/chat-completion.md and index.md of
github.com/huggingface/hub-docs at commit 242f4a1e (2026-08-22): the request, the response and the provider as a
suffix of the model. The router's own errors are those that users report: an unknown model,
github.com/vercel/ai/pull/7788; a token without the permission, github.com/huggingface/serge/pull/56; spent credits
and a wrong token are a text under `error`. A provider's refusal is passed on unchanged
(github.com/huggingface/huggingface.js/issues/2225); Groq's words are those of its own dialect. The router has chat
completions and responses, and no text completions; its 404 is plain text.
"""

from __future__ import annotations

from typing import Any, ClassVar

from tests.providers.bodies import REMOVED, Body
from tests.providers.dialect import Content, Rule
from tests.providers.openai_body import OpenAIDialect, chat_body
from tests.support.fake_server import Reply, Request

SECTION = {"api_base": "https://router.huggingface.co/v1"}
MAX_OUTPUT_TOKENS = 32768
VALID_BODY: Body = chat_body(
    "meta-llama/Llama-3.3-70B-Instruct:groq", question="Is it right? Answer in JSON.", max_tokens=400, seed=1,
    response_format={"type": "json_object"},
)  # fmt: skip


def router_error(status: int, message: str, code: str, param: str | None = None) -> Reply:
    kind = "invalid_request_error"
    return Reply(status, {"error": {"message": message, "type": kind, "param": param, "code": code}})


def groq_error(message: str, param: str | None = None) -> Reply:
    """An error of Groq's, passed on."""
    details = {"message": message, "type": "invalid_request_error"}
    return Reply(400, {"error": details if param is None else {**details, "param": param}})


def is_at_groq(body: Body) -> bool:
    """Whether the model's suffix names Groq."""
    return str(body.get("model")).endswith(":groq")


def response_format(body: Body) -> str | None:
    kind: str | None = (body.get("response_format") or {}).get("type")
    return kind


class HuggingFaceRouter(OpenAIDialect):
    """The router, reached as any server of OpenAI's protocol."""

    title = "Hugging Face Inference Providers"
    reference = "github.com/huggingface/hub-docs, docs/inference-providers; read on 2026-11-23"
    model = "openai/meta-llama/Llama-3.3-70B-Instruct:groq"
    thinking_model = "openai/Qwen/Qwen3-235B-A22B-Thinking-2507:novita"
    wrong_model = "openai/meta-llama/Llama-3.3-7B-Instruct"
    section = SECTION
    key_variable = "HF_TOKEN"
    url = "https://router.huggingface.co/v1/chat/completions"
    completions_url = "https://router.huggingface.co/v1/completions"
    valid_body = VALID_BODY
    choice_fields: ClassVar[Body] = {"logprobs": None}
    body_fields: ClassVar[Body] = {
        "model": "llama-3.3-70b-versatile",  # the provider's name for it
        "system_fingerprint": "fp_3f3b593e33", "x_groq": {"id": "req_01kcc49fcmepkrcn3n4evqvh7v"},
    }  # fmt: skip
    extra_fields = ("system_fingerprint", "usage.queue_time", "usage.completion_time", "x_groq.id")
    rules = (
        Rule(
            "messages are missing", lambda body: "prompt" not in body and not body.get("messages"),
            groq_error("'messages' : minimum number of items is 1"), {"messages": REMOVED, "response_format": REMOVED},
        ),
        Rule(
            "a JSON schema for a model without structured outputs",
            lambda body: is_at_groq(body) and response_format(body) == "json_schema",
            groq_error(
                "This model does not support response format `json_schema`. See supported models at "
                "https://console.groq.com/docs/structured-outputs#supported-models",
                "response_format",
            ),
            {"response_format": {"type": "json_schema", "json_schema": {"name": "Reply", "schema": {}}}},
        ),
        Rule(
            "JSON mode without the word JSON",
            lambda body: (
                is_at_groq(body)
                and response_format(body) == "json_object"
                and "json" not in str(body.get("messages")).lower()
            ),
            groq_error(
                "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.",
                "messages",
            ),
            {"messages": [{"role": "user", "content": "Is it right?"}]},
        ),
        Rule(
            "log-probabilities", lambda body: is_at_groq(body) and "prompt" not in body and body.get("logprobs"),
            groq_error("`logprobs` is not supported with this model", "logprobs"), {"logprobs": True},
        ),
        Rule(
            "more than one choice", lambda body: is_at_groq(body) and body.get("n", 1) > 1,
            groq_error("'n' : number must be at most 1", "n"), {"n": 2},
        ),
        Rule(
            "more tokens than the model can write",
            lambda body: is_at_groq(body) and (body.get("max_tokens") or 0) > MAX_OUTPUT_TOKENS,
            groq_error(
                f"`max_tokens` must be less than or equal to `{MAX_OUTPUT_TOKENS}`, the maximum value for `max_tokens` "
                "is less than the `context_window` for this model",
                "max_tokens",
            ),
            {"max_tokens": 40000},
        ),
    )  # fmt: skip

    def usage(self, completion_tokens: int, reasoning_tokens: int | None = None) -> dict[str, Any]:
        times = {"queue_time": 0.07, "prompt_time": 0.005, "completion_time": 0.29, "total_time": 0.295}
        return {**super().usage(completion_tokens, reasoning_tokens), **times}

    def unauthenticated(self, request: Request) -> Reply:
        return Reply(401, {"error": "Invalid username or password."})

    def unknown_model(self, model: str) -> Reply:
        message = f"The requested model '{model}' is not supported by any provider you have enabled."
        return router_error(400, message, "model_not_supported", "model")

    def rate_limited(self, request: Request) -> Reply:
        """Groq's limit, passed on."""
        limits = "Limit 6000, Used 5034, Requested 1443. Please try again in 7.66s."
        message = f"Rate limit reached for model `llama-3.3-70b-versatile` on tokens per minute (TPM): {limits}"
        details = {"message": message, "type": "tokens", "code": "rate_limit_exceeded"}
        return Reply(429, {"error": details}, {"retry-after": "8"})

    def logprobs(self, request: Request) -> Reply:
        """The address of text completions does not exist; the chat's refusal is a rule."""
        return Reply(404, raw=b"Not Found", headers={"content-type": "text/plain; charset=utf-8"})

    def out_of_thinking(self, request: Request) -> Reply:
        """Novita has the thinking in a field of its own, and does not count it on its own."""
        limit = self.token_limit(request.body) or self.thinking_tokens
        thinking = {"content": "", "reasoning_content": "Let me think about what families there value."}
        body = self.completion_body({**self.message(Content("")), **thinking}, self.finish_cut_off, request)
        return Reply(body=body | {"usage": super().usage(limit)})


DIALECT = HuggingFaceRouter()
