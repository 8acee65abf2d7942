"""A proxy of litellm in front of OpenAI's models, under names of the proxy's own.

References (read on 2026-11-23): docs.litellm.ai/docs/proxy/configs and /docs/proxy/virtual_keys. All refusals below
were also measured on that day with the proxy of litellm 1.106.2 and a `master_key`, in front of a server that answers
as OpenAI does: the statuses, the words and the headers are those that it sent. Without a database it takes no key but
the master key, and calls any other one a missing database; with one, a wrong key is refused with status 401. The filter
is that of an Azure deployment behind the proxy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from tests.providers.bodies import REMOVED, Body
from tests.providers.dialect import Rule
from tests.providers.dialects.openai import (
    JSON_WORD,
    OPEN_OBJECT,
    SCHEMA_KEYWORD,
    TEMPERATURE_RANGE,
    TOP_LOGPROBS_RANGE,
    UNKNOWN_PARAMETER,
    VALID_BODY,
    OpenAI,
)
from tests.support.fake_server import Reply, Request

PROXY_PARAMETERS = frozenset({"max_retries", "num_retries", "timeout", "tags", "fallbacks", "mock_response"})
"""Fields that the proxy uses itself and does not pass on."""


def error(
    status: int, message: str, param: str | None = None, kind: str = "invalid_request_error", **headers: str
) -> Reply:
    """An error in the proxy's format, whose code is the status as a string."""
    details = {"message": message, "type": kind, "param": param, "code": str(status)}
    return Reply(status, {"error": details}, {name.replace("_", "-"): text for name, text in headers.items()})


def failed(words: str, group: str = "moral-judge") -> str:
    """The proxy's words for a failure of the provider behind it."""
    return f"{words}\n\nLiteLLM: model group '{group}' failed with the error above. No fallback was attempted."


def passed_on(rule: Rule) -> Rule:
    """A rule of the provider behind the proxy, whose words the proxy wraps into its own."""

    def find(body: Body) -> Any:
        return rule.find({name: value for name, value in body.items() if name not in PROXY_PARAMETERS})

    def refusal(broken: Any) -> Reply:
        original = rule.refuse(broken)
        words, param = original.body["error"]["message"], original.body["error"]["param"]
        return error(original.status, failed(f"litellm.BadRequestError: OpenAIException - {words}"), param)

    return Rule(rule.name, find, refusal, rule.example)


class LitellmProxy(OpenAI):
    """The proxy at its default port, with a virtual key."""

    title = "litellm proxy"
    reference = "docs.litellm.ai/docs/proxy, read on 2026-11-23, and measured with litellm 1.106.2"
    model = "litellm_proxy/moral-judge"
    thinking_model = "litellm_proxy/moral-thinker"
    wrong_model = "litellm_proxy/moral-nope"
    section: ClassVar[Mapping[str, Any]] = {"api_base": "http://localhost:4000/v1"}
    key_variable = "LITELLM_PROXY_API_KEY"
    url = "http://localhost:4000/v1/chat/completions"
    valid_body = VALID_BODY
    message_fields: ClassVar[Body] = {
        **OpenAI.message_fields, "provider_specific_fields": {"refusal": None}, "function_call": None,
    }  # fmt: skip
    choice_fields: ClassVar[Body] = {"logprobs": None, "provider_specific_fields": {}}
    rules = (
        Rule(
            "messages are missing",
            lambda body: "messages" not in body,
            error(400, "/chat/completions: Missing required parameter: 'messages'.", "messages"),
            {"messages": REMOVED},
        ),
        *map(
            passed_on,
            (UNKNOWN_PARAMETER, TEMPERATURE_RANGE, TOP_LOGPROBS_RANGE, SCHEMA_KEYWORD, OPEN_OBJECT, JSON_WORD),
        ),
        Rule(
            "a temperature to a reasoning model",
            lambda body: body.get("model") == "moral-thinker" and body.get("temperature", 1) != 1 and body,
            lambda body: error(
                400,
                failed(
                    "litellm.UnsupportedParamsError: O-series models don't support "
                    f"temperature={body['temperature']}. Only temperature=1 is supported. To drop unsupported openai "
                    "params from the call, set `litellm.drop_params = True`",
                    "moral-thinker",
                ),
            ),
            {"model": "moral-thinker", "temperature": 0.7},
        ),
    )
    extra_fields = (
        "choices.0.provider_specific_fields",
        "choices.0.message.provider_specific_fields.refusal",
        "service_tier",
        "system_fingerprint",
    )

    def unauthenticated(self, request: Request) -> Reply:
        return error(400, "No connected db.", kind="no_db_connection")

    def unknown_model(self, model: str) -> Reply:
        words = f"/chat/completions: Invalid model name passed in model={model}."
        return error(400, f"{words} Call `/v1/models` to view available models for your key.")

    def rate_limited(self, request: Request) -> Reply:
        words = super().rate_limited(request).body["error"]["message"]
        message = failed(f"litellm.RateLimitError: RateLimitError: OpenAIException - {words}")
        headers = {"llm_provider-retry-after": "20", "llm_provider-retry-after-ms": "20000"}
        return Reply(429, error(429, message, kind="throttling_error").body, headers)

    def content_filtered(self, request: Request) -> Reply:
        """A filter of the provider behind the proxy refuses the prompt."""
        words = (
            "litellm.BadRequestError: litellm.ContentPolicyViolationError: The response was filtered due to the prompt "
            "triggering Azure OpenAI's content management policy. Please modify your prompt and retry.\n"
            "model=moral-judge. content_policy_fallback=None. fallbacks=None.\n\nSet 'content_policy_fallback' - "
            "https://docs.litellm.ai/docs/routing#fallbacks"
        )
        return error(400, failed(words))


DIALECT = LitellmProxy()
