"""OpenRouter, with a model whose provider there (DeepSeek) knows no JSON schema.

References (read on 2026-11-23): openrouter.ai/docs/api-reference/overview (request and response),
openrouter.ai/docs/api/reference/errors-and-debugging (statuses, moderation, `Retry-After`), and
github.com/OpenRouterTeam/ai-sdk-provider at commit 4247ab2 (2026-06-25), src/chat/schemas.ts and
src/schemas/error-response.ts: the provider's own words are in `metadata.raw`, as JSON or text, and `message` is only
"Provider returned error". The words are those that users report: a wrong key,
github.com/apurvsinghgautam/robin/issues/103; an unknown model,
github.com/OpenRouterTeam/openrouter-examples/issues/74; no endpoint for the parameters,
github.com/block/buzz/issues/3018, for tools, github.com/Kilo-Org/kilocode/issues/9006; a busy provider,
github.com/open-webui/computer/issues/293.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from tests.providers.bodies import REMOVED, Body, schema_keywords
from tests.providers.dialect import Rule, Situation
from tests.providers.openai_body import UNFINISHED_THOUGHT, OpenAIDialect, chat_body
from tests.support.fake_server import Reply, Request

ROUTING_HELP = (
    "To learn more about provider routing, visit: https://openrouter.ai/docs/guides/routing/provider-selection"
)
USER = "user_2x7DNyswjOHVRWDYVMCIROyGjsS"
CONTEXT_TOKENS = 163840
VALID_BODY: Body = chat_body(
    "meta-llama/llama-3.3-70b-instruct",
    question="Is it right? Answer in JSON.",
    max_tokens=400,
    usage={"include": True},
)


def error(status: int, message: str, **metadata: object) -> Reply:
    """An error of OpenRouter's own, or one of a provider if there are metadata."""
    details = {"message": message, "code": status}
    return Reply(status, {"error": {**details, "metadata": metadata} if metadata else details, "user_id": USER})


def provider_error(provider: str, words: dict[str, Any]) -> Reply:
    """A provider's error, which OpenRouter passes on as a text."""
    return error(400, "Provider returned error", raw=json.dumps(words), provider_name=provider, is_byok=False)


def deepseek_error(message: str) -> Reply:
    kind = "invalid_request_error"
    return provider_error("DeepSeek", {"error": {"message": message, "type": kind, "param": None, "code": kind}})


def response_format(body: Body) -> str | None:
    kind: str | None = (body.get("response_format") or {}).get("type")
    return kind


def is_deepseek(body: Body) -> bool:
    """Whether OpenRouter has the model from DeepSeek alone."""
    return str(body.get("model")).startswith("deepseek/")


def keyword_that_cohere_refuses(body: Body) -> str | None:
    """A schema keyword that Cohere does not support."""
    schema = ((body.get("response_format") or {}).get("json_schema") or {}).get("schema")
    refused = sorted(schema_keywords(schema) & {"minLength", "maxLength"})
    return refused[0] if refused and str(body.get("model")).startswith("cohere/") else None


class OpenRouter(OpenAIDialect):
    """OpenRouter itself, reached without an `api_base`."""

    title = "OpenRouter"
    reference = "openrouter.ai/docs/api-reference/overview, read on 2026-11-23"
    model = "openrouter/deepseek/deepseek-v4-flash"
    wrong_model = "openrouter/deepseek/deepseek-nope"
    key_variable = "OPENROUTER_API_KEY"
    url = "https://openrouter.ai/api/v1/chat/completions"
    valid_body = VALID_BODY
    message_fields: ClassVar[Body] = {"refusal": None, "reasoning": None}
    has_logprobs = True
    thinking_message: ClassVar[Mapping[str, Any]] = {"reasoning": UNFINISHED_THOUGHT}
    extra_fields = (
        "provider", "choices.0.native_finish_reason", "choices.0.message.reasoning", "usage.cost", "usage.is_byok",
        "usage.cost_details.upstream_inference_cost",
    )  # fmt: skip
    rules = (
        Rule(
            "neither messages nor a prompt", lambda body: not body.get("messages") and not body.get("prompt"),
            error(400, 'Input required: specify "prompt" or "messages"'), {"messages": REMOVED},
        ),
        Rule(
            "tools for a model without them",
            lambda body: body.get("tools") and body.get("model") == "meta-llama/llama-guard-4-12b",
            error(404, f"No endpoints found that support tool use. {ROUTING_HELP}"),
            {
                "model": "meta-llama/llama-guard-4-12b", "tools": [{"type": "function", "function": {"name": "Reply"}}],
                "response_format": REMOVED,
            },
        ),
        Rule(
            "no provider for all parameters",
            lambda body: (body.get("provider") or {}).get("require_parameters") and "top_logprobs" in body,
            error(404, f"No endpoints found that can handle the requested parameters. {ROUTING_HELP}"),
            {"provider": {"require_parameters": True}, "logprobs": True, "top_logprobs": 5},
        ),
        Rule(
            "more tokens than the context",
            lambda body: (body.get("max_tokens") or 0) > CONTEXT_TOKENS and body["max_tokens"],
            lambda n: error(
                400,
                f"This endpoint's maximum context length is {CONTEXT_TOKENS} tokens. However, you requested about "
                f"{n + 87} tokens (87 of text input, {n} in the output). Please reduce the length of either one, or "
                'use the "middle-out" transform to compress your prompt automatically.',
            ),
            {"max_tokens": 200000},
        ),
        Rule(
            "a JSON schema to DeepSeek", lambda body: is_deepseek(body) and response_format(body) == "json_schema",
            deepseek_error("This response_format type is unavailable now"), {"model": "deepseek/deepseek-v4-flash"},
        ),
        Rule(
            "JSON mode without the word JSON to DeepSeek",
            lambda body: (
                is_deepseek(body)
                and response_format(body) == "json_object"
                and "json" not in str(body["messages"]).lower()
            ),
            deepseek_error(
                "Prompt must contain the word 'json' in some form to use 'response_format' of type 'json_object'."
            ),
            {
                "model": "deepseek/deepseek-v4-flash", "messages": [{"role": "user", "content": "Is it right?"}],
                "response_format": {"type": "json_object", "json_schema": REMOVED},
            },
        ),
        Rule(
            "a schema keyword to Cohere", keyword_that_cohere_refuses,
            lambda keyword: provider_error(
                "Cohere",
                {
                    "message": "invalid request: received non-supported constraint for type: 'string'. constraint: "
                    f"'{keyword}'"
                },
            ),
            {
                "model": "cohere/command-a",
                "response_format": {"json_schema": {"schema": {"properties": {"answer": {"minLength": 1}}}}},
            },
        ),
    )  # fmt: skip

    def respond(self, request: Request, situation: Situation) -> Reply:
        """Moderation comes before the provider, and so before a refusal of the body."""
        is_answerable = self.is_authenticated(request) and self.requested_model(request) in self.model_ids()
        if situation is Situation.CONTENT_FILTER and is_answerable:
            return self.content_filtered(request)
        return super().respond(request, situation)

    def completion_body(self, message: dict[str, Any], finish: str, request: Request) -> dict[str, Any]:
        body = super().completion_body(message, finish, request)
        body["choices"][0] |= {"logprobs": None, "native_finish_reason": finish}
        return {**body, "id": "gen-1753920000-Nm3kPqRsTuVwXyZaBcDe", "provider": "DeepSeek", "system_fingerprint": None}

    def usage(self, completion_tokens: int, reasoning_tokens: int | None = None) -> dict[str, Any]:
        return {
            **super().usage(completion_tokens, reasoning_tokens or 0), "cost": 0.00006, "is_byok": False,
            "prompt_tokens_details": {"cached_tokens": 0}, "cost_details": {"upstream_inference_cost": None},
        }  # fmt: skip

    def unauthenticated(self, request: Request) -> Reply:
        return Reply(401, {"error": {"message": "User not found.", "code": 401}})

    def unknown_model(self, model: str) -> Reply:
        return error(400, f"{model} is not a valid model ID")

    def rate_limited(self, request: Request) -> Reply:
        reply = error(
            429,
            "Provider returned error",
            raw=f"{self.requested_model(request)} is temporarily rate-limited upstream. Please retry shortly, or add "
            "your own key to accumulate your rate limits: https://openrouter.ai/settings/integrations",
            provider_name="DeepSeek",
            is_byok=False,
            limit_source="upstream_provider_shared_pool",
        )
        return Reply(429, reply.body, {"retry-after": "30"})

    def content_filtered(self, request: Request) -> Reply:
        model = self.requested_model(request)
        return error(
            403, f'{model} requires moderation on DeepSeek. Your input was flagged for "violence".',
            reasons=["violence"], flagged_input="…", provider_name="DeepSeek", model_slug=model,
        )  # fmt: skip


DIALECT = OpenRouter()
