"""A proxy of litellm in front of OpenAI's models, under names of the proxy's own.

References (read on 2026-11-23): docs.litellm.ai/docs/proxy/user_keys and /docs/proxy/virtual_keys, and the source of
litellm 1.106.2: `proxy/_types.py` (`ProxyException`), `proxy/route_llm_request.py` (model names, status 400),
`proxy/auth/user_api_key_auth.py` (keys), `proxy/hooks/parallel_request_limiter_v3.py` (rate limits),
`llms/openai/chat/o_series_transformation.py` (temperature), `router.py` ("Received Model Group").
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, ClassVar

from tests.providers.dialect import Body, Content, Rule
from tests.providers.dialects.openai import (
    JSON_WORD,
    MISSING_MESSAGES,
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


def error(status: int, message: str, kind: str = "None", param: str = "None", **headers: str) -> Reply:
    """An error in the proxy's format: the code is a string, and missing values are the string `None`."""
    details = {"message": message, "type": kind, "param": param, "code": str(status)}
    return Reply(status, {"error": details}, {name.replace("_", "-"): text for name, text in headers.items()})


def passed_on(rule: Rule) -> Rule:
    """A rule of the provider behind the proxy, whose words the proxy wraps into its own."""

    def find(body: Body) -> Any:
        return rule.find({name: value for name, value in body.items() if name not in PROXY_PARAMETERS})

    def refusal(broken: Any) -> Reply:
        original = rule.refusal(broken)
        words = original.body["error"]["message"]
        message = f"litellm.BadRequestError: OpenAIException - {words}. Received Model Group=moral-judge"
        return error(original.status, f"{message}\nAvailable Model Group Fallbacks=None")

    return Rule(rule.name, find, refusal, rule.example)


class LitellmProxy(OpenAI):
    """The proxy at its default port, with a virtual key."""

    title = "litellm proxy"
    reference = "docs.litellm.ai/docs/proxy and the source of litellm 1.106.2, read on 2026-11-23"
    model = "litellm_proxy/moral-judge"
    thinking_model = "litellm_proxy/moral-thinker"
    wrong_model = "litellm_proxy/moral-nope"
    section: ClassVar[Mapping[str, Any]] = {"api_base": "http://localhost:4000/v1"}
    key_variable = "LITELLM_PROXY_API_KEY"
    url = "http://localhost:4000/v1/chat/completions"
    valid_body = VALID_BODY
    rules = (
        *map(
            passed_on,
            (
                MISSING_MESSAGES,
                UNKNOWN_PARAMETER,
                TEMPERATURE_RANGE,
                TOP_LOGPROBS_RANGE,
                SCHEMA_KEYWORD,
                OPEN_OBJECT,
                JSON_WORD,
            ),
        ),
        Rule(
            "a temperature to a reasoning model",
            lambda body: body.get("model") == "moral-thinker" and body.get("temperature", 1) != 1 and body,
            lambda body: error(
                400,
                f"litellm.UnsupportedParamsError: O-series models don't support temperature={body['temperature']}. "
                "Only temperature=1 is supported. To drop unsupported openai params from the call, set "
                "`litellm.drop_params = True`. Received Model Group=moral-thinker\n"
                "Available Model Group Fallbacks=None",
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

    def message(self, content: Content) -> dict[str, Any]:
        return {**super().message(content), "provider_specific_fields": {"refusal": None}, "function_call": None}

    def completion_body(self, message: dict[str, Any], finish: str, request: Request) -> dict[str, Any]:
        body = super().completion_body(message, finish, request)
        body["choices"][0]["provider_specific_fields"] = {}
        return body

    def unauthenticated(self, request: Request) -> Reply:
        key = request.headers.get("Authorization", "").removeprefix("Bearer ")
        token = hashlib.sha256(key.encode()).hexdigest()
        message = (
            f"Authentication Error, Invalid proxy server token passed. Received API Key = sk-...{key[-4:]}, Key Hash "
            f"(Token) ={token}. Unable to find token in cache or `LiteLLM_VerificationTokenTable`"
        )
        return error(401, message, "token_not_found_in_db", "key")

    def unknown_model(self, model: str) -> Reply:
        words = f"/chat/completions: Invalid model name passed in model={model}."
        hint = "Call `/v1/models` to view available models for your key."
        return error(400, f"{{'error': '{words} {hint}'}}")

    def rate_limited(self, request: Request) -> Reply:
        message = (
            "Rate limit exceeded for api_key: 88dc28d0f030c55e. Limit type: requests. Current limit: 60, Remaining: 0. "
            "Limit resets at: 2026-11-23 12:01:00 UTC"
        )
        return error(429, message, retry_after="60", rate_limit_type="requests")

    def content_filtered(self, request: Request) -> Reply:
        """A filter of the provider behind the proxy refuses the prompt."""
        message = (
            "litellm.BadRequestError: litellm.ContentPolicyViolationError: AzureException - The response was filtered "
            "due to the prompt triggering Azure OpenAI's content management policy. Received Model Group=moral-judge\n"
            "Available Model Group Fallbacks=None"
        )
        return error(400, message)


DIALECT = LitellmProxy()
