"""Azure OpenAI: OpenAI's body at the address of a deployment, with content filters of its own.

References (read on 2026-11-23): learn.microsoft.com/azure/ai-services/openai/reference (2024-10-21, `api-key`,
`prompt_filter_results`), .../how-to/structured-outputs (unsupported keywords), .../how-to/reasoning. The words of the
content filter are those in github.com/compl-ai/compl-ai/issues/20, of a missing deployment those in
github.com/chatboxai/chatbox/issues/646, of a refused temperature those in github.com/holoviz/lumen/pull/1087.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from tests.providers.bodies import Body
from tests.providers.dialect import Content, Rule
from tests.providers.dialects.openai import (
    JSON_WORD,
    MISSING_MESSAGES,
    OPEN_OBJECT,
    PARAMETERS,
    SCHEMA_KEYWORD,
    TEMPERATURE_RANGE,
    TOP_LOGPROBS_RANGE,
    VALID_BODY,
    OpenAI,
    error,
    reasoning_rules,
)
from tests.support.audit_configs import KEY
from tests.support.fake_server import Reply, Request

FILTERS = {
    "hate": {"filtered": False, "severity": "safe"},
    "self_harm": {"filtered": False, "severity": "safe"},
    "sexual": {"filtered": False, "severity": "safe"},
    "violence": {"filtered": False, "severity": "safe"},
}
EXTENSIONS = frozenset({"data_sources", "user_security_context"})
"""Parameters that only Azure has."""


def unknown_parameter(body: Body) -> str | None:
    """The first parameter that neither OpenAI nor Azure has."""
    return next((name for name in body if name not in PARAMETERS | EXTENSIONS), None)


class Azure(OpenAI):
    """A deployment of gpt-4.1-mini, and one of o4-mini, under names of the user's own."""

    title = "Azure OpenAI"
    reference = "learn.microsoft.com/azure/ai-services/openai/reference, read on 2026-11-23"
    model = "azure/moral-judge"
    thinking_model = "azure/moral-thinker"
    wrong_model = "azure/moral-nope"
    section: ClassVar[Mapping[str, Any]] = {
        "api_base": "https://moral-audit.openai.azure.com",
        "params": {"api_version": "2024-10-21"},
    }
    key_variable = "AZURE_API_KEY"
    url = "https://moral-audit.openai.azure.com/openai/deployments/{model}/chat/completions"
    query = "api-version=2024-10-21"
    valid_body = VALID_BODY
    rules = (
        MISSING_MESSAGES,
        Rule("a parameter that does not exist", unknown_parameter,
             lambda name: error(400, f"Unrecognized request argument supplied: {name}"), {"top_k": 40}),
        TEMPERATURE_RANGE, TOP_LOGPROBS_RANGE, SCHEMA_KEYWORD, OPEN_OBJECT, JSON_WORD,
        *reasoning_rules(lambda body: body.get("model") == "moral-thinker", "moral-thinker"),
    )  # fmt: skip
    extra_fields = (
        "prompt_filter_results.0.content_filter_results.hate.severity",
        "choices.0.content_filter_results.violence.filtered",
        "system_fingerprint",
        "usage.completion_tokens_details.accepted_prediction_tokens",
    )

    def is_authenticated(self, request: Request) -> bool:
        return request.headers.get("api-key") == KEY

    def completion_body(self, message: dict[str, Any], finish: str, request: Request) -> dict[str, Any]:
        body = super().completion_body(message, finish, request)
        is_thinker = self.requested_model(request) == "moral-thinker"
        body |= {"model": "o4-mini-2025-04-16" if is_thinker else "gpt-4.1-mini-2025-04-14"}
        body["choices"][0]["content_filter_results"] = FILTERS
        prompt_filters = {**FILTERS, "jailbreak": {"filtered": False, "detected": False}}
        body["prompt_filter_results"] = [{"prompt_index": 0, "content_filter_results": prompt_filters}]
        return body

    def unauthenticated(self, request: Request) -> Reply:
        message = (
            "Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key "
            "for an active subscription and use a correct regional API endpoint for your resource."
        )
        return Reply(401, {"error": {"code": "401", "message": message}})

    def unknown_model(self, model: str) -> Reply:
        message = (
            "The API deployment for this resource does not exist. If you created the deployment within the last 5 "
            "minutes, please wait a moment and try again."
        )
        return Reply(404, {"error": {"code": "DeploymentNotFound", "message": message}})

    def rate_limited(self, request: Request) -> Reply:
        message = (
            "Requests to the ChatCompletions_Create Operation under Azure OpenAI API version 2024-10-21 have exceeded "
            "call rate limit of your current OpenAI S0 pricing tier. Please retry after 17 seconds."
        )
        headers = {"retry-after": "17", "x-ratelimit-reset-requests": "17"}
        return Reply(429, {"error": {"code": "429", "message": message}}, headers)

    def content_filtered(self, request: Request) -> Reply:
        message = (
            "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. Please "
            "modify your prompt and retry. To learn more about our content filtering policies please read our "
            "documentation: https://go.microsoft.com/fwlink/?linkid=2198766"
        )
        results = {**FILTERS, "violence": {"filtered": True, "severity": "medium"}}
        inner = {"code": "ResponsibleAIPolicyViolation", "content_filter_result": results}
        details = {"message": message, "type": None, "param": "prompt", "code": "content_filter", "status": 400}
        return Reply(400, {"error": {**details, "innererror": inner}})

    def refused(self, request: Request) -> Reply:
        message = self.message(Content("")) | {"content": None, "refusal": "I'm sorry, I can't assist with that."}
        return Reply(body=self.completion_body(message, "stop", request))


DIALECT = Azure()
