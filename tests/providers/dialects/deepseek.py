"""DeepSeek's chat completions.

References (read on 2026-11-23): the reference, api-docs.deepseek.com/api/create-chat-completion; thinking mode,
api-docs.deepseek.com/guides/thinking_mode (on by default; temperature is accepted and has no effect); JSON output,
api-docs.deepseek.com/guides/json_mode; errors, api-docs.deepseek.com/quick_start/error_codes. Exchanges recorded on
2026-05-26 in github.com/maruel/genai (providers/deepseek/testdata) have the responses, the errors for a wrong key and
a wrong model, the refusal of a forced tool, and the content type of errors. The words of the other refusals are those
in github.com/UKGovernmentBEIS/inspect_ai/issues/4916 (the response format),
github.com/browserbase/stagehand/issues/1204 (the word JSON), github.com/deepseek-ai/DeepSeek-V3/issues/69
(`max_tokens`), github.com/666ghj/BettaFish/issues/108 (the filter) and github.com/tarigelamin1997/jobfetcher/pull/42
(the limit, which comes without headers).
"""

from __future__ import annotations

import json
from typing import Any, ClassVar

from tests.providers.bodies import Body, is_out_of_range
from tests.providers.dialect import Content, Rule
from tests.providers.openai_body import TOP_TOKENS, OpenAIDialect
from tests.support.fake_server import Reply, Request

MAX_OUTPUT_TOKENS = 393_216
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
THOUGHTS = "We are asked what people there think of a practice, as JSON. Many of them object to it."


def error(status: int, message: str, kind: str = "invalid_request_error") -> Reply:
    """An error of DeepSeek's, which has no `param` and the same `code` for all."""
    details = {"message": message, "type": kind, "param": None, "code": "invalid_request_error"}
    headers = {"content-type": "application/octet-stream", "x-ds-trace-id": "51c38cc8cadc433c7f0fd15eb322fb68"}
    return Reply(status, {"error": details}, headers)


def is_thinking(body: Body) -> bool:
    """Whether the model thinks before it answers, as it does by default."""
    return bool((body.get("thinking") or {}).get("type") != "disabled")


def response_format_type(body: Body) -> str | None:
    kind: str | None = (body.get("response_format") or {}).get("type")
    return kind


RESPONSE_FORMAT = Rule(
    "a response format with a schema", lambda body: response_format_type(body) not in (None, "text", "json_object"),
    error(400, "This response_format type is unavailable now"),
    {"response_format": {"type": "json_schema", "json_schema": {"name": "Reply", "schema": {"type": "object"}}}},
)  # fmt: skip
JSON_WORD = Rule(
    "JSON mode without the word JSON",
    lambda body: response_format_type(body) == "json_object" and "json" not in str(body["messages"]).lower(),
    error(400, "Prompt must contain the word 'json' in some form to use 'response_format' of type 'json_object'."),
    {"messages": [{"role": "user", "content": "Is it right?"}]},
)
TEMPERATURE_RANGE = Rule(
    "a temperature above 2", lambda body: is_out_of_range(body.get("temperature"), 0, 2),
    error(400, "Invalid temperature value, the valid range of temperature is [0, 2]"), {"temperature": 2.5},
)  # fmt: skip
MAX_TOKENS_RANGE = Rule(
    "more tokens than the model can write", lambda body: is_out_of_range(body.get("max_tokens"), 1, MAX_OUTPUT_TOKENS),
    error(400, f"Invalid max_tokens value, the valid range of max_tokens is [1, {MAX_OUTPUT_TOKENS}]"),
    {"max_tokens": MAX_OUTPUT_TOKENS + 1},
)  # fmt: skip
LOGPROBS_PAIR = Rule(
    "top_logprobs without logprobs", lambda body: "top_logprobs" in body and not body.get("logprobs"),
    error(400, "Invalid top_logprobs and logprobs value, logprobs must be set to true if top_logprobs is used."),
    {"top_logprobs": 5},
)  # fmt: skip
TOP_LOGPROBS_RANGE = Rule(
    "more than 20 top_logprobs", lambda body: is_out_of_range(body.get("top_logprobs"), 0, 20),
    error(400, "Invalid top_logprobs value, the valid range of top_logprobs is [0, 20]."),
    {"logprobs": True, "top_logprobs": 21},
)  # fmt: skip
FORCED_TOOL = Rule(
    "a tool that must be called, while the model thinks",
    lambda body: is_thinking(body) and body.get("tool_choice") not in (None, "auto", "none"),
    error(400, "Thinking mode does not support this tool_choice"),
    {"tool_choice": {"type": "function", "function": {"name": "Reply"}}},
)
EFFORT = Rule(
    "an effort that does not exist",
    lambda body: body.get("reasoning_effort", "none") not in EFFORTS and body["reasoning_effort"],
    lambda effort: error(
        400,
        "Failed to deserialize the JSON body into the target type: reasoning_effort: unknown variant "
        f"`{effort}`, expected one of {', '.join(f'`{known}`' for known in EFFORTS)}",
    ),
    {"reasoning_effort": "extreme"},
)
PASSED_BACK_THOUGHTS = Rule(
    "a conversation with tools that lacks the thoughts",
    lambda body: (
        is_thinking(body)
        and any("tool_calls" in message and not message.get("reasoning_content") for message in body["messages"])
    ),
    error(400, "The `reasoning_content` in the thinking mode must be passed back to the API."),
    {
        "messages": [
            {"role": "user", "content": "Answer in JSON."},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "type": "function"}]},
            {"role": "tool", "tool_call_id": "1", "content": "No."},
        ]
    },
)
VALID_BODY: Body = {
    "model": "deepseek-v4-flash",
    "messages": [{"role": "user", "content": "Is it right? Answer in JSON."}],
    "temperature": 0.7, "max_tokens": 400, "thinking": {"type": "enabled"}, "reasoning_effort": "high",
    "response_format": {"type": "json_object"},
}  # fmt: skip


class DeepSeek(OpenAIDialect):
    """DeepSeek, at the address of litellm's default, under which the documented features in beta are on too."""

    title = "DeepSeek"
    reference = "api-docs.deepseek.com/api/create-chat-completion, read on 2026-11-23"
    model = "deepseek/deepseek-v4-flash"
    thinking_model = "deepseek/deepseek-v4-pro"
    wrong_model = "deepseek/deepseek-chat"
    key_variable = "DEEPSEEK_API_KEY"
    url = "https://api.deepseek.com/beta/chat/completions"
    valid_body = VALID_BODY
    message_fields: ClassVar[Body] = {"reasoning_content": THOUGHTS}
    choice_fields: ClassVar[Body] = {"logprobs": None}
    body_fields: ClassVar[Body] = {"system_fingerprint": "fp_8b330d02d0_prod0820_fp8_kvcache_20260402"}
    rules = (
        RESPONSE_FORMAT, JSON_WORD, TEMPERATURE_RANGE, MAX_TOKENS_RANGE, LOGPROBS_PAIR, TOP_LOGPROBS_RANGE, FORCED_TOOL,
        EFFORT, PASSED_BACK_THOUGHTS,
    )  # fmt: skip
    extra_fields = (
        "choices.0.message.reasoning_content", "system_fingerprint", "usage.completion_tokens_details.reasoning_tokens",
        "usage.prompt_cache_hit_tokens", "usage.prompt_cache_miss_tokens",
    )  # fmt: skip

    def usage(self, completion_tokens: int, reasoning_tokens: int | None = None) -> dict[str, Any]:
        return {
            **super().usage(completion_tokens, 21 if reasoning_tokens is None else reasoning_tokens),
            "prompt_tokens_details": {"cached_tokens": 0},
            "prompt_cache_hit_tokens": 0,
            "prompt_cache_miss_tokens": self.prompt_tokens,
        }

    def unauthenticated(self, request: Request) -> Reply:
        key = request.headers.get("Authorization", "")
        return error(401, f"Authentication Fails, Your api key: ****{key[-4:]} is invalid", "authentication_error")

    def unknown_model(self, model: str) -> Reply:
        known = "The supported API model names are deepseek-v4-pro or deepseek-v4-flash"
        return error(400, f"{known}, but you passed {model}.")

    def rate_limited(self, request: Request) -> Reply:
        limit = "Your current concurrency is 40, which exceeds your concurrency limit of 39 based on your remaining"
        return error(429, f"{limit} balance. Please top up your balance to restore your concurrency.")

    def content_filtered(self, request: Request) -> Reply:
        return error(400, "Content Exists Risk")

    def refused(self, request: Request) -> Reply:
        """JSON mode enforces JSON, and nothing more: a refusal has keys of its own."""
        words = "I'm sorry, but I cannot help with that."
        is_json = response_format_type(request.body) == "json_object"
        return self.completion(Content(json.dumps({"error": words}) if is_json else words), request)

    def logprobs(self, request: Request) -> Reply:
        """The one token of the measurement is a thought, whose log-probabilities are in a field of their own."""
        body = self.completion_body({"role": "assistant", "content": "", "reasoning_content": "We"}, "length", request)
        limit = request.body["top_logprobs"]
        tokens = [{"token": token, "logprob": p, "bytes": list(token.encode())} for token, p in TOP_TOKENS.items()]
        body["choices"][0]["logprobs"] = {
            "content": None,
            "reasoning_content": [
                {"token": "We", "logprob": -0.01, "bytes": [87, 101], "top_logprobs": tokens[:limit]}
            ],
        }
        return Reply(body={**body, "usage": self.usage(1, 1)})


DIALECT = DeepSeek()
