"""Gemini on Vertex AI: the same body as the Gemini API, another address, authentication and other refusals.

References (read on 2026-11-23): cloud.google.com/vertex-ai/generative-ai/docs/model-reference/inference (fields and
ranges, `logprobs` from 1 to 20), .../docs/multimodal/control-generated-output, .../docs/error-code-429;
cloud.google.com/docs/authentication (401). The words on log-probabilities of other models are those in
github.com/GoogleCloudPlatform/generative-ai/issues/2947; that the models of 2.5 give them here is in
github.com/vercel/ai/issues/5418. That Flash-Lite of 2.5 thinks only if it is asked to is in
ai.google.dev/gemini-api/docs/thinking.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.providers.bodies import Body
from tests.providers.conftest import GOOGLE_TOKEN
from tests.providers.dialect import Rule
from tests.providers.dialects.gemini import (
    ERROR_INFO,
    MISSING_CONTENTS,
    OUTPUT_LIMIT,
    SEED_TYPE,
    TOOLS_WITH_JSON,
    UNKNOWN_FIELD,
    VALID_BODY,
    Gemini,
    error,
    generation,
    invalid,
)
from tests.support.fake_server import Reply, Request

SUPPORTED_RANGES = {
    "temperature": (0, 2, "0 (inclusive) to 2 (inclusive)"),
    "logprobs": (0, 20, "0 (inclusive) to 21 (exclusive)"),
}
"""Least and largest value of a field, and the words for both."""


def out_of_range(field: str, body: Body) -> str | None:
    """Words on a number that is outside its range; None if it is inside or missing."""
    number, (low, high, description) = generation(body).get(field), SUPPORTED_RANGES[field]
    if number is None or low <= number <= high:
        return None
    return (
        f"Unable to submit request because it has a {field} value of {number} but the supported range is from "
        f"{description}. Update the value and try again."
    )


class VertexAI(Gemini):
    """Gemini by the credentials of a Google Cloud machine."""

    title = "Vertex AI"
    reference = "cloud.google.com/vertex-ai/generative-ai/docs/model-reference/inference, read on 2026-11-23"
    model = "vertex_ai/gemini-2.5-flash-lite"  # does not think by default, which its log-probabilities need
    thinking_model = "vertex_ai/gemini-2.5-pro"
    wrong_model = "vertex_ai/gemini-nope"
    key_variable = None
    url = (
        "https://europe-west1-aiplatform.googleapis.com/v1/projects/moral-audit/locations/europe-west1/publishers/"
        "google/models/{model}:generateContent"
    )
    valid_body = VALID_BODY
    rules = (
        UNKNOWN_FIELD, MISSING_CONTENTS,
        Rule("a temperature above 2", lambda body: out_of_range("temperature", body), invalid,
             {"generationConfig": {"temperature": 2.5}}),
        OUTPUT_LIMIT,
        Rule("more than 20 log-probabilities", lambda body: out_of_range("logprobs", body), invalid,
             {"generationConfig": {"responseLogprobs": True, "logprobs": 21}}),
        SEED_TYPE, TOOLS_WITH_JSON,
    )  # fmt: skip
    extra_fields = ("usageMetadata.trafficType", "createTime", "candidates.0.avgLogprobs", "modelVersion", "responseId")

    def is_authenticated(self, request: Request) -> bool:
        return request.headers.get("Authorization") == f"Bearer {GOOGLE_TOKEN}"

    def unauthenticated(self, request: Request) -> Reply:
        message = (
            "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other "
            "valid authentication credential. See https://developers.google.com/identity/sign-in/web/devconsole-project."
        )
        info = {"@type": ERROR_INFO, "reason": "ACCESS_TOKEN_TYPE_UNSUPPORTED", "domain": "googleapis.com"}
        return error(401, "UNAUTHENTICATED", message, [info])

    def unknown_model(self, model: str) -> Reply:
        name = f"projects/moral-audit/locations/europe-west1/publishers/google/models/{model}"
        message = (
            f"Publisher Model `{name}` was not found or your project does not have access to it. Please ensure you are "
            "using a valid model version."
        )
        return error(404, "NOT_FOUND", message)

    def rate_limited(self, request: Request) -> Reply:
        help_url = "https://cloud.google.com/vertex-ai/generative-ai/docs/error-code-429"
        message = f"Resource exhausted. Please try again later. Please refer to {help_url} for more details."
        return error(429, "RESOURCE_EXHAUSTED", message)

    def content_filtered(self, request: Request) -> Reply:
        """A response filter withholds the answer."""
        return self._reply({"finishReason": "PROHIBITED_CONTENT", "index": 0}, request)

    def refused(self, request: Request) -> Reply:
        """The prompt is blocked: no candidate at all."""
        usage = {"promptTokenCount": 150, "totalTokenCount": 150, "trafficType": "ON_DEMAND"}
        feedback = {"blockReason": "BLOCKLIST", "blockReasonMessage": "The prompt is blocked by a terminology list."}
        return Reply(body={"promptFeedback": feedback, "usageMetadata": usage, "modelVersion": "gemini-2.5-flash"})

    def _reply(self, candidate: Mapping[str, Any], request: Request, usage: Mapping[str, Any] | None = None) -> Reply:
        reply = super()._reply({"avgLogprobs": -0.2, **candidate}, request, usage)
        if self.requested_model(request) == self.model_id(self.model):
            reply.body["usageMetadata"].pop("thoughtsTokenCount", None)
        reply.body["usageMetadata"]["trafficType"] = "ON_DEMAND"
        reply.body["createTime"] = "2026-11-23T12:00:00.000000Z"
        return reply


DIALECT = VertexAI()
