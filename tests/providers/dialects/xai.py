"""xAI's chat completions.

References (read on 2026-11-23): the reference, docs.x.ai/docs/api-reference (`top_logprobs` from 0 to 8; the token
limit is one of the visible output only); reasoning, docs.x.ai/docs/guides/reasoning (which parameters such models
refuse); limits, docs.x.ai/docs/rate-limits; the official library, github.com/xai-org/xai-sdk-python (2026-08-18), for
the fields of the usage. The words of the errors are those in github.com/continuedev/continue/issues/11704 (a wrong
key), github.com/UKGovernmentBEIS/inspect_ai/issues/2267 (the filter), github.com/cline/cline/issues/4826 (the limit,
which comes without headers), github.com/miaoxworld/NativeTavern/issues/83 and
github.com/lidge-jun/opencodex/issues/5278 (parameters), github.com/danielmiessler/Fabric/issues/1588 (`top_p`) and
github.com/nocmt/LLMSearchPlus/issues/2 (a message in parts). No words are known for too many `top_logprobs`: those
here are made up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from tests.providers.bodies import Body
from tests.providers.dialect import Rule
from tests.providers.openai_body import OpenAIDialect, chat_body
from tests.support.fake_server import Reply, Request

TEAM = "b2f1a3c4-0d5e-4f6a-8b7c-9d0e1f2a3b4c"
MAX_TOP_LOGPROBS = 8


def error(status: int, code: str, message: str) -> Reply:
    """An error of xAI's, in which `error` is the text itself."""
    return Reply(status, {"code": code, "error": message})


def invalid(message: str) -> Reply:
    return error(400, "invalid-argument", message)


def is_reasoning(body: Body) -> bool:
    """Whether the request's model thinks."""
    return "non-reasoning" not in body["model"]


def unsupported(name: str, spelling: str, applies: Callable[[Body], bool], example: Body) -> Rule:
    """A rule for a parameter that some models do not support; the error has a spelling of its own."""
    return Rule(
        f"the parameter {name}", lambda body: body["model"] if body.get(name) is not None and applies(body) else None,
        lambda model: invalid(f"Model {model} does not support parameter {spelling}."), example,
    )  # fmt: skip


def has_many_texts(body: Body) -> bool:
    """Whether a message has several parts of text."""
    contents = [message.get("content") for message in body["messages"]]
    return any(isinstance(content, list) and len(content) > 1 for content in contents)


VALID_BODY: Body = chat_body("grok-4.20-0309-non-reasoning", max_tokens=400, seed=7)


class XAI(OpenAIDialect):
    """xAI, with a model that does not think."""

    title = "xAI"
    reference = "docs.x.ai/docs and github.com/xai-org/xai-sdk-python, read on 2026-11-23"
    model = "xai/grok-4.20-0309-non-reasoning"
    wrong_model = "xai/grok-9"
    key_variable = "XAI_API_KEY"
    url = "https://api.x.ai/v1/chat/completions"
    valid_body = VALID_BODY
    message_fields: ClassVar[Body] = {"refusal": None}
    body_fields: ClassVar[Body] = {
        "id": "9c8d0e1f-3c1b-4c3a-9d5e-2b7f6a1c0e4d", "system_fingerprint": "fp_a1b2c3d4e5",
    }  # fmt: skip
    has_logprobs = True
    rules = (
        unsupported("presence_penalty", "presencePenalty", lambda _: True, {"presence_penalty": 0.5}),
        unsupported("frequency_penalty", "frequencyPenalty", lambda _: True, {"frequency_penalty": 0.5}),
        unsupported("stop", "stop", is_reasoning, {"model": "grok-4.20-0309-reasoning", "stop": ["Step 2"]}),
        unsupported("reasoning_effort", "reasoningEffort", lambda _: True, {"reasoning_effort": "low"}),
        Rule("too many likeliest tokens", lambda body: body.get("top_logprobs", 0) > MAX_TOP_LOGPROBS,
             invalid(f"Argument not supported: top_logprobs must be between 0 and {MAX_TOP_LOGPROBS}."),
             {"logprobs": True, "top_logprobs": 20}),
        Rule("a top_p of 0", lambda body: body.get("top_p") == 0,
             invalid("top_p must be positive but top_p = 0"), {"top_p": 0}),
        Rule("a message with several texts", has_many_texts,
             invalid("The model expects a single `text` element per message."),
             {"messages": [{"role": "user",
                            "content": [{"type": "text", "text": "Is"}, {"type": "text", "text": "it?"}]}]}),
    )  # fmt: skip
    extra_fields = (
        "choices.0.message.refusal", "system_fingerprint",
        "usage.completion_tokens_details.accepted_prediction_tokens",
        "usage.cost_in_usd_ticks", "usage.num_sources_used", "usage.prompt_tokens_details.text_tokens",
    )  # fmt: skip

    def usage(self, completion_tokens: int, reasoning_tokens: int | None = None) -> dict[str, Any]:
        """Token counts; tokens of thoughts are counted in the total and apart, not among the completion's."""
        thoughts = reasoning_tokens or 0
        usage = super().usage(completion_tokens)
        prompt = {"text_tokens": self.prompt_tokens, "audio_tokens": 0, "image_tokens": 0, "cached_tokens": 0}
        predicted = {"accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0}
        return {
            **usage, "total_tokens": usage["total_tokens"] + thoughts, "prompt_tokens_details": prompt,
            "completion_tokens_details": {"reasoning_tokens": thoughts, "audio_tokens": 0, **predicted},
            "num_sources_used": 0, "cost_in_usd_ticks": 1_925_000,
        }  # fmt: skip

    def unauthenticated(self, request: Request) -> Reply:
        """HTTP status 400, unlike other providers'."""
        return invalid("Incorrect API key provided: sk***10. You can obtain an API key from https://console.x.ai.")

    def unknown_model(self, model: str) -> Reply:
        """HTTP status 400, unlike other providers'."""
        return invalid(f"Model not found: {model}")

    def rate_limited(self, request: Request) -> Reply:
        message = (
            f"Too many requests for team {TEAM} and model {self.requested_model(request)}. Your team's rate limit is — "
            "Requests per Minute (actual/limit): 61/60. You can view your team rate limits at https://console.x.ai."
        )
        return error(429, "Some resource has been exhausted", message)

    def content_filtered(self, request: Request) -> Reply:
        message = (
            f"Content violates usage guidelines. Team: {TEAM}, API key ID: 7f0b, "
            f"Model: {self.requested_model(request)}, Failed check: SAFETY_CHECK_TYPE_BIO"
        )
        return error(403, "The caller does not have permission to execute the specified operation", message)


DIALECT = XAI()
