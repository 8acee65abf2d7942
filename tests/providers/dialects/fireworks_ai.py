"""Fireworks AI's chat completions.

References (read on 2026-11-23): the official library, github.com/fw-ai-external/python-sdk (2026-07-21), for the
parameters, their ranges, which of them exclude each other, and the response; docs.fireworks.ai/guides/quotas_usage for
the headers of the limit, none of which says how long to wait. The words of the errors are those in
github.com/web-infra-dev/midscene/issues/1322 (a parameter that does not exist),
github.com/warpdotdev/warp/issues/15107 (a wrong model) and github.com/GordeyZuev/LEAP/issues/6 (the limit); for a
wrong key they were found in the notes of a public repository. No words are known for a value out of its range, or for
two parameters that exclude each other: those here are made up, in the form of the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.providers.bodies import Body, words
from tests.providers.dialect import Rule
from tests.providers.openai_body import OpenAIDialect, chat_body, schema_format
from tests.support.fake_server import Reply, Request

PARAMETERS = words(
    """context_length_exceeded_behavior echo echo_last frequency_penalty function_call functions ignore_eos logit_bias
    logprobs max_completion_tokens max_tokens messages metadata min_p mirostat_lr mirostat_target model n
    parallel_tool_calls perf_metrics_in_response prediction presence_penalty prompt_cache_isolation_key
    prompt_cache_key prompt_truncate_len raw_output reasoning_effort reasoning_history repetition_penalty
    response_format return_token_ids safe_tokenization sampling_mask seed service_tier speculation stop stream
    stream_options temperature thinking tool_choice tools top_k top_logprobs top_p typical_p user"""
)
"""Fields of `CompletionCreateParams`, and of OpenAI's that are accepted without effect."""
THOUGHTS = "The user asks for the view of people there, as JSON. Many of them object to it."


def error(status: int, message: str, code: str | None = None, **more: str) -> Reply:
    if code is None:
        return Reply(
            status, {"error": {"object": "error", "type": "invalid_request_error", "message": message, **more}}
        )
    return Reply(status, {"error": {"message": message, **more, "code": code, "type": "error"}})


def out_of_range(name: str, smallest: float, largest: float, example: Body) -> Rule:
    def find(body: Body) -> str | None:
        value = body.get(name)
        if not isinstance(value, (int, float)) or smallest <= value <= largest:
            return None
        side = f"greater than or equal to {smallest}" if value < smallest else f"less than or equal to {largest}"
        return f"Input should be {side}, field: '{name}', value: {value}"

    return Rule(f"{name} out of its range", find, lambda message: error(400, message), example)


def both(first: str, second: str, example: Body) -> Rule:
    """A rule for two parameters that exclude each other."""
    find: Callable[[Body], Any] = lambda body: body.get(first) is not None and body.get(second) is not None  # noqa: E731
    return Rule(
        f"{first} and {second} together",
        find,
        error(400, f"Only one of '{first}' and '{second}' can be specified"),
        example,
    )


UNKNOWN_PARAMETER = Rule(
    "a parameter that does not exist",
    lambda body: next(((name, value) for name, value in body.items() if name not in PARAMETERS), None),
    lambda extra: error(400, f"Extra inputs are not permitted, field: '{extra[0]}', value: {extra[1]}"),
    {"vl_high_resolution_images": True},
)
VALID_BODY: Body = chat_body(
    "accounts/fireworks/models/kimi-k2-instruct-0905", max_tokens=400, seed=7, response_format=schema_format()
)


class FireworksAI(OpenAIDialect):
    """Fireworks AI, with a model that does not think, and one that does."""

    title = "Fireworks AI"
    reference = "github.com/fw-ai-external/python-sdk and docs.fireworks.ai, read on 2026-11-23"
    model = "fireworks_ai/accounts/fireworks/models/kimi-k2-instruct-0905"
    thinking_model = "fireworks_ai/accounts/fireworks/models/deepseek-v4-flash"
    wrong_model = "fireworks_ai/accounts/fireworks/models/kimi-k2-instruct-0906"
    key_variable = "FIREWORKS_API_KEY"
    url = "https://api.fireworks.ai/inference/v1/chat/completions"
    valid_body = VALID_BODY
    has_logprobs = True
    rules = (
        UNKNOWN_PARAMETER,
        out_of_range("temperature", 0, 2, {"temperature": 2.5}),
        out_of_range("top_k", 0, 100, {"top_k": 101}),
        out_of_range("n", 1, 128, {"n": 129}),
        out_of_range("top_logprobs", 0, 5, {"logprobs": True, "top_logprobs": 20}),
        both("max_tokens", "max_completion_tokens", {"max_completion_tokens": 400}),
        both("thinking", "reasoning_effort", {"thinking": {"type": "enabled"}, "reasoning_effort": "low"}),
    )
    extra_fields = (
        "choices.0.raw_output", "choices.0.token_ids", "perf_metrics", "prompt_token_ids",
        "usage.prompt_tokens_details.cached_tokens",
    )  # fmt: skip

    def thinks(self, request: Request) -> bool:
        return "deepseek" in self.requested_model(request)

    def completion_body(self, message: dict[str, Any], finish: str, request: Request) -> dict[str, Any]:
        """What a request can ask for is there without it, too, and empty."""
        thoughts = {"reasoning_content": THOUGHTS} if self.thinks(request) else {}
        body = super().completion_body({**message, **thoughts}, finish, request)
        body["choices"][0] |= {"raw_output": None, "token_ids": None}
        return {**body, "perf_metrics": None, "prompt_token_ids": None}

    def usage(self, completion_tokens: int, reasoning_tokens: int | None = None) -> dict[str, Any]:
        """Token counts, in which the thinking is not counted apart."""
        return {**super().usage(completion_tokens), "prompt_tokens_details": {"cached_tokens": 0}}

    def unauthenticated(self, request: Request) -> Reply:
        return error(401, "The API key you provided is invalid.", "UNAUTHORIZED")

    def unknown_model(self, model: str) -> Reply:
        return error(404, "Model not found, inaccessible, and/or not deployed", "NOT_FOUND", param="model")

    def rate_limited(self, request: Request) -> Reply:
        """A body of its own form, whose message sounds like a spent quota."""
        offer = "Please try again later or contact Fireworks to explore dedicated capacity."
        body = {"error": "Too Many Requests", "message": f"You have exceeded your usage limits. {offer}"}
        limits = {"x-ratelimit-limit-requests": "600", "x-ratelimit-remaining-requests": "0"}
        return Reply(429, body, {**limits, "x-ratelimit-over-limit": "yes"})


DIALECT = FireworksAI()
