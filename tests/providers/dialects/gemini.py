"""Google's Gemini API (AI Studio): `generateContent`.

References (read on 2026-11-23): ai.google.dev/api/generate-content (fields of `GenerationConfig`, finish reasons,
`promptFeedback`), ai.google.dev/gemini-api/docs/structured-output, /troubleshooting, /rate-limits;
github.com/googleapis/python-genai (types). The words of a refused key are those in
github.com/continuedev/continue/issues/10290, of refused log-probabilities those in
github.com/googleapis/python-genai/issues/1921. Fields may be written in camel case or in snake case, as in all JSON of
protocol buffers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, ClassVar

from auditor.domain import AnswerForm
from tests.providers.bodies import REMOVED, Body, words
from tests.providers.dialect import Content, Dialect, Rule, Structure
from tests.providers.openai_body import TOP_TOKENS
from tests.support.audit_configs import KEY
from tests.support.fake_server import Reply, Request

REQUEST_FIELDS = words(
    "cachedContent contents generationConfig model safetySettings serviceTier store systemInstruction toolConfig tools"
)
GENERATION_FIELDS = words(
    """audioTimestamp candidateCount enableEnhancedCivicAnswers frequencyPenalty imageConfig logprobs maxOutputTokens
    mediaResolution presencePenalty responseFormat responseJsonSchema responseLogprobs responseMimeType
    responseModalities responseSchema seed speechConfig stopSequences temperature thinkingConfig topK topP"""
)
"""Fields of `GenerationConfig`."""
MIME_TYPES = ("text/plain", "application/json", "application/xml", "application/yaml", "text/x.enum")
MAX_OUTPUT_TOKENS = 65_536
MAX_INT32 = 2**31 - 1
ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo"
RETRY_INFO = "type.googleapis.com/google.rpc.RetryInfo"


def camel(name: str) -> str:
    return re.sub(r"_(\w)", lambda match: match[1].upper(), name)


def normalized(body: Body) -> Body:
    """A request with the names of its fields, and those of its configuration, in camel case."""
    fields = {camel(name): value for name, value in body.items()}
    fields["generationConfig"] = {camel(name): value for name, value in (fields.get("generationConfig") or {}).items()}
    return fields


def generation(body: Body) -> dict[str, Any]:
    """The configuration of a request, with names in camel case."""
    config: dict[str, Any] = normalized(body)["generationConfig"]
    return config


def error(status: int, name: str, message: str, details: list[dict[str, Any]] | None = None) -> Reply:
    body: dict[str, Any] = {"code": status, "message": message, "status": name}
    return Reply(status, {"error": body | ({"details": details} if details else {})})


def invalid(message: str) -> Reply:
    return error(400, "INVALID_ARGUMENT", message)


def unknown_field(body: Body) -> str | None:
    """The first field that does not exist, in quotes, with its place."""
    if name := next((name for name in body if camel(name) not in REQUEST_FIELDS), None):
        return f'"{name}"'
    config = body.get("generationConfig") or body.get("generation_config") or {}
    name = next((name for name in config if camel(name) not in GENERATION_FIELDS), None)
    return name and f"\"{name}\" at 'generation_config'"


def too_large(body: Body) -> int | None:
    """The limit on output tokens, if it is beyond the model's."""
    limit = generation(body).get("maxOutputTokens") or 1
    return limit if not 1 <= limit <= MAX_OUTPUT_TOKENS else None


VALID_BODY: Body = {
    "contents": [{"role": "user", "parts": [{"text": "Is it right?"}]}],
    "systemInstruction": {"parts": [{"text": "Answer in JSON."}]},
    "generationConfig": {"temperature": 0.7, "maxOutputTokens": 400, "seed": 7, "responseMimeType": "application/json",
                         "responseJsonSchema": {"type": "object", "properties": {"answer": {"type": "string"}},
                                                "required": ["answer"]}},
}  # fmt: skip
UNKNOWN_FIELD = Rule(
    "a field that does not exist", unknown_field,
    lambda place: invalid(f"Invalid JSON payload received. Unknown name {place}: Cannot find field."),
    {"generationConfig": {"max_tokens": 400}},
)  # fmt: skip
MISSING_CONTENTS = Rule(
    "contents are missing", lambda body: not body.get("contents"),
    invalid("* GenerateContentRequest.contents: contents is not specified\n"), {"contents": REMOVED},
)  # fmt: skip
TEMPERATURE_RANGE = Rule(
    "a temperature above 2", lambda body: not 0 <= (generation(body).get("temperature") or 0) <= 2,
    invalid("* GenerateContentRequest.generation_config.temperature: temperature must be in the range [0.0, 2.0].\n"),
    {"generationConfig": {"temperature": 2.5}},
)  # fmt: skip
OUTPUT_LIMIT = Rule(
    "more tokens than the model can write", too_large,
    lambda limit: invalid(
        f"Unable to submit request because it has a maxOutputTokens value of {limit} but the supported range is from 1 "
        f"(inclusive) to {MAX_OUTPUT_TOKENS + 1} (exclusive). Update the value and try again.",
    ),
    {"generationConfig": {"maxOutputTokens": 100_000}},
)  # fmt: skip
MIME_TYPE = Rule(
    "a media type that is not offered",
    lambda body: generation(body).get("responseMimeType", "text/plain") not in MIME_TYPES,
    invalid(
        "* GenerateContentRequest.generation_config.response_mime_type: allowed mimetypes are `text/plain`, "
        "`application/json`, `application/xml`, `application/yaml` and `text/x.enum`.\n"
    ),
    {"generationConfig": {"responseMimeType": "application/pdf", "responseJsonSchema": REMOVED}},
)
SEED_TYPE = Rule(
    "a seed beyond 32 bits",
    lambda body: abs(generation(body).get("seed") or 0) > MAX_INT32 and generation(body)["seed"],
    lambda number: invalid(f"Invalid value at 'generation_config.seed' (TYPE_INT32), {number}"),
    {"generationConfig": {"seed": 2**31}},
)
TOOLS_WITH_JSON = Rule(
    "tools and JSON at once",
    lambda body: body.get("tools") and generation(body).get("responseMimeType") == "application/json",
    invalid("Function calling with a response mime type: 'application/json' is unsupported"),
    {"tools": [{"functionDeclarations": [{"name": "Reply"}]}]},
)


class Gemini(Dialect):
    """Gemini by a key of AI Studio, reached without an `api_base`."""

    title = "Gemini (AI Studio)"
    reference = "ai.google.dev/api/generate-content, read on 2026-11-23"
    model = "gemini/gemini-2.5-flash"
    thinking_model = "gemini/gemini-2.5-pro"
    wrong_model = "gemini/gemini-2.5-flush"
    key_variable: ClassVar[str | None] = "GEMINI_API_KEY"
    url = "https://generativelanguage.googleapis.com/v1beta/models/{model}:generateContent"
    valid_body = VALID_BODY
    rules: tuple[Rule, ...] = (
        UNKNOWN_FIELD, MISSING_CONTENTS, TEMPERATURE_RANGE, OUTPUT_LIMIT, MIME_TYPE, SEED_TYPE, TOOLS_WITH_JSON,
        Rule("log-probabilities, which the models of 2.5 do not give here",
             lambda body: generation(body).get("responseLogprobs"),
             invalid("Logprobs is not enabled for models/gemini-2.5-flash"),
             {"generationConfig": {"responseLogprobs": True, "logprobs": 5}}),
    )  # fmt: skip
    extra_fields = (
        "usageMetadata.promptTokensDetails.0.modality", "usageMetadata.thoughtsTokenCount", "modelVersion",
        "responseId", "candidates.0.finishReason",
    )  # fmt: skip

    def is_authenticated(self, request: Request) -> bool:
        return request.headers.get("x-goog-api-key") == KEY

    def unauthenticated(self, request: Request) -> Reply:
        message = "API key not valid. Please pass a valid API key."
        service = {"service": "generativelanguage.googleapis.com"}
        info = {"@type": ERROR_INFO, "reason": "API_KEY_INVALID", "domain": "googleapis.com", "metadata": service}
        return error(400, "INVALID_ARGUMENT", message, [info])

    def unknown_model(self, model: str) -> Reply:
        message = (
            f"models/{model} is not found for API version v1beta, or is not supported for generateContent. Call "
            "ListModels to see the list of available models and their supported methods."
        )
        return error(404, "NOT_FOUND", message)

    def rate_limited(self, request: Request) -> Reply:
        message = (
            "You exceeded your current quota, please check your plan and billing details. For more information on "
            "this error, head over to: https://ai.google.dev/gemini-api/docs/rate-limits. \n* Quota exceeded for "
            "metric: generativelanguage.googleapis.com/generate_content_free_tier_requests, limit: 10\nPlease retry "
            "in 34.074824224s."
        )
        quota = {
            "quotaMetric": "generativelanguage.googleapis.com/generate_content_free_tier_requests",
            "quotaId": "GenerateRequestsPerMinutePerProjectPerModel-FreeTier",
            "quotaValue": "10",
        }
        details: list[dict[str, Any]] = [
            {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [quota]},
            {"@type": RETRY_INFO, "retryDelay": "34s"},
        ]
        return error(429, "RESOURCE_EXHAUSTED", message, details)

    def content_filtered(self, request: Request) -> Reply:
        """The prompt is blocked: no candidate at all."""
        usage = {"promptTokenCount": 150, "totalTokenCount": 150}
        feedback = {"blockReason": "PROHIBITED_CONTENT"}
        return Reply(body={"promptFeedback": feedback, "usageMetadata": usage, "modelVersion": "gemini-2.5-flash"})

    def refused(self, request: Request) -> Reply:
        """The answer is blocked: a candidate without content."""
        rating = {"category": "HARM_CATEGORY_HARASSMENT", "probability": "HIGH", "blocked": True}
        return self._reply({"finishReason": "SAFETY", "index": 0, "safetyRatings": [rating]}, request)

    def structure(self, body: Body) -> Structure:
        config, tools = generation(body), body.get("tools")
        if (schema := config.get("responseJsonSchema") or config.get("responseSchema")) is not None:
            return Structure(AnswerForm.JSON_SCHEMA, schema)
        if config.get("responseMimeType") == "application/json":
            return Structure(AnswerForm.JSON_OBJECT)
        tool_config = normalized(body).get("toolConfig") or {}
        calling = {camel(k): v for k, v in tool_config.items()}.get("functionCallingConfig") or {}
        if tools and calling.get("mode") == "ANY":
            declarations = {camel(k): v for k, v in tools[0].items()}["functionDeclarations"]
            return Structure(AnswerForm.TOOL, declarations[0].get("parameters"), declarations[0]["name"])
        return Structure(AnswerForm.TEXT)

    def prompt(self, body: Body) -> str:
        contents = [normalized(body).get("systemInstruction") or {}, *body["contents"]]
        return "\n".join(part.get("text", "") for content in contents for part in content.get("parts", []))

    def token_limit(self, body: Body) -> int | None:
        limit = generation(body).get("maxOutputTokens")
        return limit if isinstance(limit, int) else None

    def completion(self, content: Content, request: Request, *, is_cut_off: bool = False) -> Reply:
        if content.tool is None:
            part: dict[str, Any] = {"text": content.text}
        else:
            part = {"functionCall": {"name": content.tool, "args": {} if is_cut_off else json.loads(content.text)}}
        finish = "MAX_TOKENS" if is_cut_off else "STOP"
        return self._reply({"content": {"parts": [part], "role": "model"}, "finishReason": finish, "index": 0}, request)

    def out_of_thinking(self, request: Request) -> Reply:
        candidate = {"content": {"role": "model"}, "finishReason": "MAX_TOKENS", "index": 0}
        limit = self.token_limit(request.body) or 0
        usage = {"promptTokenCount": 150, "totalTokenCount": 150 + limit, "thoughtsTokenCount": limit}
        return self._reply(candidate, request, usage)

    def logprobs(self, request: Request) -> Reply:
        """The likeliest next tokens; refused here by a rule, and given by Vertex AI."""
        limit = generation(request.body).get("logprobs") or 0
        top = [{"token": t, "tokenId": 235, "logProbability": p} for t, p in TOP_TOKENS.items()]
        chosen = {"chosenCandidates": top[:1], "topCandidates": [{"candidates": top[:limit]}]}
        content = {"parts": [{"text": "A"}], "role": "model"}
        candidate = {"content": content, "finishReason": "MAX_TOKENS", "index": 0, "avgLogprobs": -0.35}
        return self._reply({**candidate, "logprobsResult": chosen}, request)

    def _reply(self, candidate: Mapping[str, Any], request: Request, usage: Mapping[str, Any] | None = None) -> Reply:
        counts = {"promptTokenCount": 150, "candidatesTokenCount": 60, "totalTokenCount": 290, "thoughtsTokenCount": 80}
        details = {"promptTokensDetails": [{"modality": "TEXT", "tokenCount": 150}]}
        body = {
            "candidates": [candidate],
            "usageMetadata": {**(usage or counts), **details},
            "modelVersion": self.requested_model(request),
            "responseId": "mAitaLmkHPPlz7IPvtfUqQ4",
        }
        return Reply(body=body)


DIALECT = Gemini()
