from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given, strategies as st

from auditor.domain import Outcome
from auditor.models.failures import (
    MAX_RETRY_AFTER_S,
    classify_failure,
    parse_limit_reset,
    parse_retry_after,
    parse_worded_wait,
)
from auditor.models.litellm_client import load_litellm
from auditor.models.transport import HttpExchange
from auditor.redaction import register_secrets
from tests.test_error_messages import GROQ_TOO_LARGE

# Error responses as providers send them, with the source of the words; each is classified by status, then by words.
BLOCKED, FAILED = (Outcome.CLIENT_ERROR, True), (Outcome.CLIENT_ERROR, False)
REFUSED, LIMITED, SERVER = (Outcome.REFUSED, False), (Outcome.RATE_LIMITED, False), (Outcome.SERVER_ERROR, False)
RESPONSES: dict[str, tuple[int, Any, tuple[Outcome, bool]]] = {
    # github.com/BerriAI/litellm/issues/10403
    "deepseek key": (401, {"error": {"message": "Authentication Fails, Your api key: ****cd15 is invalid"}}, BLOCKED),
    # github.com/ConardLi/easy-dataset/issues/9
    "deepseek model": (400, {"error": {"message": "Model Not Exist", "type": "invalid_request_error"}}, BLOCKED),
    # api-docs.deepseek.com/quick_start/error_codes
    "deepseek balance": (402, {"error": {"message": "Insufficient Balance"}}, BLOCKED),
    # github.com/deepseek-ai/awesome-deepseek-integration/issues/13
    "deepseek filter": (400, {"error": {"message": "Content Exists Risk"}}, REFUSED),
    # github.com/langchain4j/langchain4j/issues/1079 and docs.z.ai, "Error codes"
    "zhipu filter": (400, {"error": {"message": "系统检测到输入或生成内容可能包含不安全或敏感内容"}}, REFUSED),
    "zhipu filter, in English": (400, {"error": {"message": "System detected unsafe or sensitive content."}},
                                 REFUSED),
    # github.com/666ghj/BettaFish/issues/228
    "moonshot filter": (400, {"error": {"message": "The request was rejected because it was considered high risk",
                                        "type": "content_filter"}}, REFUSED),
    # github.com/QwenLM/qwen-code, "data_inspection_failed"
    "filter that only the code names": (400, {"error": {"code": "data_inspection_failed", "message": "Rejected."}},
                                        REFUSED),
    "filter whose code is a number": (400, {"error": {"code": 1301, "message": "Rejected."}}, REFUSED),
    "code that only begins so": (400, {"error": {"code": 13010, "message": "Rejected."}}, FAILED),
    # github.com/agent0ai/agent-zero/issues/539
    "mistral key": (401, {"detail": "Unauthorized"}, BLOCKED),
    # github.com/tmc/langchaingo/issues/1233
    "mistral model": (400, {"object": "error", "message": "Invalid model: nope", "type": "invalid_model"}, BLOCKED),
    # github.com/openai/codex/issues/1352
    "xai key": (400, {"code": "x", "error": "Incorrect API key provided: sk***gA. You can obtain one."}, BLOCKED),
    # github.com/UKGovernmentBEIS/inspect_ai/pull/2267
    "xai filter": (403, {"code": "x", "error": "Content violates usage guidelines. Team: x"}, REFUSED),
    # ai.google.dev/gemini-api/docs/troubleshooting
    "gemini key": (400, [{"error": {"message": "API key not valid. Please pass a valid API key."}}], BLOCKED),
    "gemini rate": (429,
                    {"error": {"message": "You exceeded your current quota.", "details": [{"retryDelay": "36.5s"}]}},
                    LIMITED),
    # github.com/BerriAI/litellm: its proxy quotes the provider's JSON within a message
    "gemini rate behind a proxy": (
        429, {"error": {"message": 'geminiException - {"message": "You exceeded your current quota.", "details": '
                                   '[{"retryDelay": "36s"}]}'}}, LIMITED),
    # github.com/googleapis/python-genai, errors.py: the text of its exceptions has the response as Python's dict
    "gemini rate as a dict": (
        429, {"error": {"message": "429 RESOURCE_EXHAUSTED. {'error': {'message': 'You exceeded your current quota.', "
                                   "'details': [{'retryDelay': '36s'}]}}"}}, LIMITED),
    # github.com/google-gemini/deprecated-generative-ai-python: the text of its exceptions
    "gemini rate as text": (
        429, {"error": {"message": "429 You exceeded your current quota. [retry_delay {\n seconds: 36\n}]"}}, LIMITED),
    # platform.openai.com/docs/guides/error-codes
    "openai quota": (429, {"error": {"message": "You exceeded your current quota, please check your plan"}}, BLOCKED),
    "openai rate": (429, {"error": {"message": "Rate limit reached for gpt-4o. Please try again in 2s."}}, LIMITED),
    "openai context": (400, {"error": {"message": "This model's maximum context length is 8192 tokens."}}, FAILED),
    "openai parameter": (400, {"error": {"message": "Unsupported parameter: 'max_tokens'"}}, FAILED),
    # learn.microsoft.com/azure/ai-services/openai/concepts/content-filter
    "azure filter": (400, {"error": {"message": "The response was filtered: content management policy."}}, REFUSED),
    # docs.anthropic.com/en/api/errors
    "anthropic balance": (400, {"error": {"message": "Your credit balance is too low to access the API."}}, BLOCKED),
    "anthropic overloaded": (529, {"type": "error", "error": {"message": "Overloaded"}}, SERVER),
    # github.com/openai/openai-python, README, "Retries"
    "conflict": (409, {"error": {"message": "Another request is being processed."}}, SERVER),
    # huggingface.co/docs/text-generation-inference, openapi.json
    "generation failed": (424, {"error": "Request failed during generation: Server error", "error_type": "generation"},
                          SERVER),
    "too early": (425, {"error": {"message": "Too early"}}, SERVER),
    # console.groq.com/docs/flex-processing
    "groq flex at capacity": (498, {"error": {"message": "Capacity exceeded", "code": "capacity_exceeded"}}, SERVER),
    # openrouter.ai/docs/errors
    "openrouter filter": (403, {"error": {"message": "openai/x requires moderation on OpenRouter."}}, REFUSED),
    "openrouter model": (400, {"error": {"message": "nope is not a valid model ID"}}, BLOCKED),
    "bedrock model": (400, {"message": "The provided model identifier is invalid."}, BLOCKED),
    "bedrock on demand": (400, {"message": "Model ID x with on-demand throughput isn’t supported."}, BLOCKED),
    # docs.aws.amazon.com/bedrock/latest/APIReference/CommonErrors.html: ThrottlingException has status 400 there
    "bedrock rate, 400": (400, {"__type": "com.amazon.coral.availability#ThrottlingException",
                                "message": "Rate exceeded"}, LIMITED),
    "permission": (403, {"message": "You don't have access to the model with the specified model ID."}, BLOCKED),
    "no such path": (404, "404 page not found", BLOCKED),
    "groq schema": (400, {"error": {"message": "Failed to generate JSON.", "code": "json_validate_failed"}}, FAILED),
    # console.groq.com/docs/errors and console.groq.com/docs/deprecations
    "groq account": (400, {"error": {"message": "Organization has been restricted. Please reach out to support.",
                                     "code": "organization_restricted"}}, BLOCKED),
    "groq retired": (400, {"error": {"message": "The model `llama3-70b-8192` has been decommissioned and is no longer "
                                                "supported.", "code": "model_decommissioned"}}, BLOCKED),
    "groq retired, with a version": (400, {"error": {"message": "The model `llama-3.1-70b-versatile` has been "
                                                               "decommissioned and is no longer supported."}}, BLOCKED),
    # github.com/anthropics/claude-code/issues, "specified API usage limits"
    "anthropic limit of the account": (400, {"error": {"message": "You have reached your specified API usage limits. "
                                                                  "You will regain access on 2026-12-01."}}, BLOCKED),
    "groq too large": (413, {"error": {"message": GROQ_TOO_LARGE, "code": "rate_limit_exceeded"}}, FAILED),
    "the same with another status": (400, {"error": {"message": GROQ_TOO_LARGE}}, FAILED),
    "link to the account": (400, {"error": {"message": "Bad value. Upgrade at https://x.org/billing"}}, FAILED),
    "quota that is renewed": (400, {"error": {"message": "Insufficient quota per minute."}}, FAILED),
    "context and account": (400, {"error": {"message": "Context length exceeded: insufficient quota."}}, FAILED),
    "model's words of one request": (400, {"error": "model 'x' output not found in response"}, FAILED),
    "model's output": (400, {"error": "The model output could not be found."}, FAILED),
    "model in quotes": (400, {"error": "The model 'x' could not be found."}, BLOCKED),
    **{f"words of a bad key with {status}": (status, "Invalid API key format.", FAILED) for status in (413, 422)},
    **{f"words of a bad model with {status}": (status, "Unknown model field.", FAILED) for status in (413, 422)},
    **{f"billing with {status}": (status, "Set up billing first.", BLOCKED) for status in (402, 403, 429)},
    # github.com/FerroxLabs/wayland/issues/545
    "fireworks suspended": (412, {"error": {"message": "Account analyst is suspended, see your invoices."}}, BLOCKED),
    "account flagged": (403, "Your account has been flagged for unusual activity; contact support.", BLOCKED),
    "account flagged, 400": (400, "Your organization has been suspended: content policy.", BLOCKED),
    "access terminated": (403, "Your access was terminated: repeated content policy violations.", BLOCKED),
    # github.com/acheong08/ChatGPT/issues/533
    "access terminated, 429": (429, "Your access was terminated due to violation of our policies.", BLOCKED),
    "key blocked for a while": (429, "Your API key has been temporarily blocked: too many requests.", LIMITED),
    "key blocked": (403, "API key is currently blocked by the safety system", BLOCKED),
    "prompt of an account flagged": (403, "Your account's prompt was flagged by moderation.", REFUSED),
    "organization's prompt": (403, "In your organization the prompt was flagged.", REFUSED),
    "warning beside a flagged prompt": (400, "Your prompt was flagged. If this goes on, your account may be suspended.",
                                        REFUSED),
    "access to one answer": (400, "Access to this response is blocked by the content filter.", REFUSED),
    "words of a filter with a key's status": (401, {"error": {"message": "flagged as stolen"}}, BLOCKED),
}  # fmt: skip


def received(status: int, body: Any) -> HttpExchange:
    exchange = HttpExchange()
    exchange.n_requests, exchange.status, exchange.body_start = 1, status, bytearray()
    exchange.receive_chunk((body if isinstance(body, str) else json.dumps(body)).encode())
    return exchange


@pytest.mark.parametrize("name", RESPONSES)
def test_a_response_is_classified_by_its_status_and_its_words_whatever_litellm_makes_of_it(name: str) -> None:
    status, body, expected = RESPONSES[name]
    litellm = load_litellm()
    for error_class in (litellm.BadRequestError, litellm.AuthenticationError, litellm.RateLimitError):
        error = error_class("words", model="m", llm_provider="openai")
        failure = classify_failure(error, received(status, body))
        assert ((failure.outcome, failure.blocks_model), failure.http_status) == (expected, status)
        assert failure.is_retryable == (expected in (LIMITED, SERVER))


def test_a_header_of_aws_names_a_throttled_request() -> None:
    exchange = received(400, {"message": "Too many requests, please wait before trying again."})
    exchange.headers["x-amzn-errortype"] = "ThrottlingException:http://internal.amazon.com/coral/"
    failure = classify_failure(RuntimeError("words"), exchange)
    assert (failure.outcome, failure.is_retryable, failure.http_status) == (Outcome.RATE_LIMITED, True, 400)


def refused_with(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "tokens"}}


DAILY = "Rate limit reached on tokens per day (TPD). Please try again in 7m33.6s. Upgrade: https://x.org/billing"
RESET = {"x-ratelimit-reset-requests": "9s", "x-ratelimit-remaining-requests": "0"}
# What refusals ask for in other ways than `retry-after`: headers, body, wait in seconds.
ASKED_WAITS: dict[str, tuple[dict[str, str], Any, float | None]] = {
    "gemini": ({}, RESPONSES["gemini rate"][1], 36.5),
    "words": ({}, refused_with("Limit 30000. Please try again in 4.2s."), 4.2),
    "words of a daily limit": ({}, refused_with(DAILY), 453.6),
    "a header before words": ({"retry-after": "2"}, refused_with("Please try again in 4.2s."), 2.0),
    "words before a reset": (RESET, refused_with("Please try again in 4.2s."), 4.2),
    "a header of 0 says nothing": ({"retry-after": "0"}, refused_with("Please try again in 4.2s."), 4.2),
    "a reset": (RESET, refused_with("Too many requests"), 9.0),
    "nothing": ({}, refused_with("Too many requests"), None),
}


@pytest.mark.parametrize("name", ASKED_WAITS)
def test_a_refusal_may_ask_for_a_wait_in_other_ways(name: str) -> None:
    headers, body, expected = ASKED_WAITS[name]
    exchange = received(429, body)
    exchange.headers.update(headers)
    failure = classify_failure(ValueError("x"), exchange)
    assert (failure.outcome, failure.retry_after_s) == (Outcome.RATE_LIMITED, expected)


@pytest.mark.parametrize("status", [400, 401, 413, 500, 503])
def test_other_errors_ask_for_no_wait_by_words_or_resets(status: int) -> None:
    exchange = received(status, refused_with("Please try again in 4.2s."))
    exchange.headers.update(RESET)
    assert classify_failure(ValueError("x"), exchange).retry_after_s is None


def test_a_spent_quota_is_not_waited_for_because_a_header_names_a_reset() -> None:
    status, body, _ = RESPONSES["openai quota"]
    exchange = received(status, body)
    exchange.headers.update(RESET)
    assert not classify_failure(ValueError("x"), exchange).is_retryable


def test_without_a_response_the_class_of_the_error_counts_and_there_is_no_status() -> None:
    litellm = load_litellm()
    expected = {
        litellm.AuthenticationError: (Outcome.CLIENT_ERROR, False, True),
        litellm.UnsupportedParamsError: (Outcome.CLIENT_ERROR, False, False),
        litellm.InternalServerError: (Outcome.SERVER_ERROR, True, False),
    }
    for error_class, classification in expected.items():
        error = error_class("litellm.XError: some words", model="m", llm_provider="openai")
        failure = classify_failure(error, HttpExchange())
        assert (failure.outcome, failure.is_retryable, failure.blocks_model) == classification
        assert (failure.error, failure.http_status) == ("some words", None)


def test_only_the_message_of_an_error_is_shown_without_secrets() -> None:
    register_secrets("sk-secret-123456")
    body = {"error": {"message": "bad key sk-secret-123456\n<\x1b[0m", "type": "x"}, "filler": "y" * 10_000}
    failure = classify_failure(ValueError("x"), received(401, body))
    assert failure.error == "bad key [key removed] < [0m"


@pytest.mark.parametrize(("status", "outcome"), [(429, Outcome.RATE_LIMITED), (401, Outcome.CLIENT_ERROR)])
def test_a_refusal_whose_body_comes_too_late_is_no_timeout(status: int, outcome: Outcome) -> None:
    exchange = received(status, '{"error": {"mess')
    exchange.headers["retry-after"] = "7"
    failure = classify_failure(TimeoutError(), exchange)
    assert failure.outcome is outcome
    assert failure.retry_after_s == (7.0 if status == 429 else None)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None), ({"Retry-After": "2"}, 2.0), ({"retry-after": "2.5"}, 2.5), ({"retry-after": "-3"}, 0.0),
        ({"retry-after-ms": "250"}, 0.25), ({"llm_provider-retry-after": "7"}, 7.0), ({"retry-after": "6s"}, 6.0),
        ({"retry-after": "1m30s"}, 90.0), ({"retry-after": "1500ms"}, 1.5), ({"retry-after": "soon"}, None),
        ({"retry-after": "6 monkeys"}, None),
        ({"retry-after": format_datetime(datetime.now(UTC) - timedelta(hours=1))}, 0.0),
        ({"retry-after": "86400"}, 86_400.0), ({"retry-after": "9" * 400}, MAX_RETRY_AFTER_S),
        ({"retry-after": "9" * 5000}, MAX_RETRY_AFTER_S), ({"retry-after-ms": "9" * 400}, MAX_RETRY_AFTER_S),
        ({"retry-after": "-" + "9" * 400}, 0.0), ({"retry-after-ms": "1e400"}, None),
        ({"retry-after-ms": "inf", "retry-after": "3"}, 3.0), ({"retry-after-ms": "nan"}, None),
        ({"retry-after": "-inf"}, None), ({"retry-after": "\u0663"}, None),
        ({"retry-after": "Wed, 21 Oct 9999999 07:28:00 GMT"}, None),
        ({"retry-after": f"Wed, 21 Oct {'9' * 5000} 07:28:00 GMT"}, None),
        ({"retry-after": "Wed, 99 Oct 2099 07:28:00 GMT"}, None),
        ({"retry-after": "Wed, 21 Oct 2099 99:99:99 GMT"}, None),
        ({"retry-after": "Wed, 21 Oct 2099 07:28:00 +99999999999999"}, None),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}, MAX_RETRY_AFTER_S),
        ({"retry-after": "Mon, 01 Jan 0001 00:00:00 +2359"}, 0.0),
        ({"retry-after": ",,,,"}, None), ({"retry-after": "\ud800"}, None), ({"retry-after": ""}, None),
    ],
)  # fmt: skip
def test_retry_after_in_all_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    assert parse_retry_after(headers) == seconds


@pytest.mark.parametrize(
    "form",
    [
        format_datetime,
        datetime.isoformat,
        lambda later: f"{later.timestamp():.0f}",  # github.com/cloudfoundry/cloud_controller_ng/issues/2544
        lambda later: f"{later.timestamp() * 1000:.0f}",
    ],
    ids=["HTTP", "ISO 8601", "seconds since 1970", "milliseconds since 1970"],
)
def test_retry_after_as_a_time(form: Callable[[datetime], str]) -> None:
    later = form(datetime.now(UTC) + timedelta(hours=10))
    assert parse_retry_after({"retry-after": later}) == pytest.approx(36_000, abs=300)


@given(
    st.text(st.characters(codec=None))
    | st.from_regex(r"[0-9]{0,12}[.]?[0-9]{0,4} ?(ms|s|m|h|days)[0-9]{0,20}s?")
    | st.from_regex(r"[A-Z][a-z]{2}, [0-9]{1,5} [A-Z][a-z]{2} [0-9]{1,9} [0-9:]{1,12} [+-]?[0-9]{0,20}")
)
def test_any_header_gives_a_bounded_wait_or_none(value: str) -> None:
    headers = dict.fromkeys(("retry-after", "retry-after-ms", "x-ratelimit-reset"), value)
    waits = [parse_retry_after({name: value}) for name in headers]
    waits += [parse_limit_reset(headers), parse_worded_wait(f"try again in {value}")]
    assert all(wait is None or 0 <= wait <= MAX_RETRY_AFTER_S for wait in waits)


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("Please try again in 4.2s.", 4.2), ("Please try again in 120ms.", 0.12),
        ("Please try again in 7m33.6s. Need more tokens?", 453.6),
        ("try again in 1h2m3s", 3723.0), ("Please retry after 20 seconds.", 20.0), ("Please retry in 41.09s.", 41.09),
        ("Try again in 1 minute and 30 seconds", 90.0), ("Please try again in 2 days", 172_800.0),
        ("Please wait 30 seconds and try again.", 30.0), ("Please retry your request after 5 minutes.", 300.0),
        ("The limit resets in 41s.", 41.0), ("Please wait.", None),
        ("Please try again later.", None), ("Please try again in 5 months.", None), ("Please try again in 4.2", None),
        ("It took 4.2s.", None),
    ],
)  # fmt: skip
def test_the_words_of_a_refusal(words: str, seconds: float | None) -> None:
    assert parse_worded_wait(words) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None), ({"x-ratelimit-reset-requests": "4s"}, 4.0), ({"x-ratelimit-reset-tokens": "6m0s"}, 360.0),
        ({"x-ratelimit-reset-tokens": "17ms"}, 0.017), ({"x-ratelimit-reset-tokens-minute": "11.38"}, 11.38),
        ({"RateLimit-Reset": "50"}, 50.0), ({"llm_provider-x-ratelimit-reset-requests": "4s"}, 4.0),
        ({"x-ratelimit-reset-requests": "4s", "x-ratelimit-reset-tokens": "9s"}, 9.0),
        ({"x-ratelimit-reset-requests": "4s", "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-tokens": "9s",
          "x-ratelimit-remaining-tokens": "300"}, 4.0),
        ({"x-ratelimit-reset": "0"}, 0.0), ({"x-ratelimit-reset": "1"}, 1.0),
        ({"x-ratelimit-reset": "1700000000"}, 0.0),
        ({"anthropic-ratelimit-requests-reset": "2020-01-01T00:00:00Z"}, 0.0),
        ({"x-ratelimit-reset": "soon"}, None), ({"x-ratelimit-reset": "9" * 400}, MAX_RETRY_AFTER_S),
        ({"x-ratelimit-limit-requests": "60", "x-ratelimit-remaining-requests": "0"}, None),
        ({"x-password-reset": "60"}, None),
        ({"RateLimit": '"default";r=0;t=30', "RateLimit-Policy": '"default";q=100;w=60'}, 30.0),
        ({"RateLimit": '"burst";r=5;t=90, "daily";t=40;r=0'}, 40.0), ({"RateLimit": '"day";r=9;t=43200'}, None),
        ({"RateLimit": "limit=100, remaining=0, reset=50"}, 50.0), ({"RateLimit": '"a";r=0'}, None),
        ({"RateLimit": '"t=30"'}, None), ({"RateLimit": "'; t"}, None),
    ],
)  # fmt: skip
def test_the_time_at_which_a_limit_is_reset(headers: dict[str, str], seconds: float | None) -> None:
    assert parse_limit_reset(headers) == seconds


def test_the_time_of_a_reset_since_1970_or_as_a_date() -> None:
    now_s = time.time()
    dates = {
        "x-ratelimit-reset": f"{now_s + 600:.0f}",
        "x-rate-limit-reset": f"{(now_s + 600) * 1000:.0f}",
        "x-ratelimit-reset-requests": f"{(now_s + 600) * 1e6:.0f}",
        "x-ratelimit-reset-tokens": f"{(now_s + 600) * 1e9:.0f}",
        "anthropic-ratelimit-input-tokens-reset": (datetime.now(UTC) + timedelta(seconds=600)).isoformat(),
        "anthropic-ratelimit-requests-reset": f"{datetime.now(UTC) + timedelta(seconds=600):%Y-%m-%dT%H:%M:%SZ}",
        "ratelimit-reset": format_datetime(datetime.now(UTC) + timedelta(seconds=600)),
    }
    for name, text in dates.items():
        assert parse_limit_reset({name: text}) == pytest.approx(600, abs=120), name
