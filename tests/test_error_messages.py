from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from auditor.error_messages import MAX_MESSAGE_CHARS, TRUNCATED_FIX, how_to_fix, normalize_message, provider_message

# Bodies as providers document or send them; each is shown as the message alone.
BODIES = {
    # platform.openai.com/docs/guides/error-codes
    "openai": (
        {"error": {"message": "Incorrect API key provided.", "type": "invalid_request_error", "code": "x"}},
        "Incorrect API key provided.",
    ),
    # docs.anthropic.com/en/api/errors
    "anthropic": (
        {"type": "error", "error": {"type": "not_found_error", "message": "model: nope"}, "request_id": "req_1"},
        "model: nope",
    ),
    # ai.google.dev/gemini-api/docs/troubleshooting; streams wrap it in a list
    "gemini in a list": (
        [{"error": {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT", "details": [{}]}}],
        "API key not valid.",
    ),
    # github.com/agent0ai/agent-zero/issues/539
    "mistral detail": ({"detail": "Unauthorized"}, "Unauthorized"),
    # github.com/tmc/langchaingo/issues/1233
    "mistral message": (
        {"object": "error", "message": "Invalid model: nope", "type": "invalid_model", "code": "1500"},
        "Invalid model: nope",
    ),
    "mistral nested list": (
        {"object": "error", "message": {"detail": [{"loc": ["body", "temperature"], "msg": "too large"}]}},
        "body.temperature: too large",
    ),
    # fastapi.tiangolo.com/tutorial/handling-errors
    "fastapi": (
        {"detail": [{"loc": ["body", "n"], "msg": "wrong type"}, {"loc": ["body", "m"], "msg": "missing"}]},
        "body.n: wrong type; body.m: missing",
    ),
    "errors list": ({"errors": [{"code": "x", "message": "No such project."}], "trace": "t"}, "No such project."),
    "bedrock": ({"message": "The provided model identifier is invalid."}, "The provided model identifier is invalid."),
    "bedrock capital": ({"Message": "User is not authorized."}, "User is not authorized."),
    "cohere": ({"id": "1", "message": "invalid api token"}, "invalid api token"),
    "hugging face": ({"error": "Model is overloaded", "error_type": "overloaded"}, "Model is overloaded"),
    "hugging face list": ({"error": ["Error in `inputs`: field required"]}, "Error in `inputs`: field required"),
    "ollama": ({"error": 'model "x" not found, try pulling it first'}, 'model "x" not found, try pulling it first'),
    # docs.x.ai: the code is a sentence, the message is in `error`
    "xai": ({"code": "Client specified an invalid argument", "error": "Bad argument."}, "Bad argument."),
    # openrouter.ai/docs/api-reference/errors
    "openrouter": (
        {"error": {"code": 400, "message": "Provider returned error", "metadata": {"raw": '{"error":"too long"}'}}},
        "Provider returned error; too long",
    ),
    "message is json": (
        {"error": {"message": 'litellm.BadRequestError: OpenAIException - {"error": {"message": "no"}}'}},
        "no",
    ),
    "oauth": ({"error": "invalid_grant", "error_description": "Expired."}, "Expired."),
}


@pytest.mark.parametrize("name", BODIES)
def test_the_message_is_read_from_each_documented_body(name: str) -> None:
    body, message = BODIES[name]
    assert provider_message(json.dumps(body)) == message
    assert provider_message(json.dumps(body, indent=4)) == message


def test_the_message_of_a_body_that_was_cut_off_is_read() -> None:
    body = json.dumps({"error": {"message": 'no "such" model', "details": "x" * 900}})[:500]
    assert provider_message(body) == 'no "such" model'
    assert provider_message('{"error": {"message": "no such mo') == "no such mo"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("<html><head><title>502 Bad Gateway</title></head><body><h1>502 …</h1></body></html>", "502 Bad Gateway"),
        ("<!DOCTYPE html><style>p{}</style><p>Not&nbsp;here</p><script>x()</script>", "Not here"),
        ("litellm.NotFoundError: OpenAIException - no such model", "no such model"),
        ("a\x1b[31m\tred\u202e\nline", "a [31m red line"),
        ('{"unknown": "format"}', '{"unknown": "format"}'),
        ("404 page not found\n", "404 page not found"),
        ("", ""),
    ],
)
def test_other_bodies_are_cleaned(body: str, message: str) -> None:
    assert provider_message(body) == message


@given(st.text(max_size=2_000) | st.recursive(st.text() | st.none(), st.lists).map(json.dumps))
def test_any_body_gives_one_short_printable_line(body: str) -> None:
    message = provider_message(body)
    assert len(message) <= MAX_MESSAGE_CHARS
    assert message.isprintable() or not message


EQUAL = [
    (
        "Rate limit reached for gpt-4o in organization org-abcD on tokens per min: Limit 30000, Used 29,870.5.",
        "Rate limit reached for gpt-4o in organization org-xyzK on tokens per min: Limit 30000, Used 1.",
    ),
    ("no model 'a'", 'no model "b"'),
    ("no model `a`", "no model “b”"),
    ("failed (request id: 20250101aBc) at https://x.org/a?b=1", "failed (request id: 20260702xyz) at https://y.org/c"),
    ("error req_011CSHoEeqs5C35K2UUqR7Fy", "error req_0ZZaa"),
    ("id 0f8fad5b-d9cb-469f-a165-70867728950e", "id 7c9e6679-7425-40de-944b-e07fc1f90ae7"),
    ("digest 9f86d081884c", "digest  60303ae22b99"),
    ("out of memory at 0x2c4a78c9", "out of memory at 0xF"),
    ("worker 3fa2 died", "worker b04e91c died"),
    ("Your api key: ****6789 is invalid", "Your api key: ****cd15 is invalid"),
]


@pytest.mark.parametrize(("left", "right"), EQUAL)
def test_messages_that_differ_in_numbers_ids_and_names_are_equal(left: str, right: str) -> None:
    assert normalize_message(left) == normalize_message(right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("Unsupported parameter", "Unsupported value"),
        ("the model doesn't answer, it's asleep", "the model doesn't know, it's asleep"),
        ("slow down", None),
    ],
)
def test_messages_of_other_words_differ(left: str, right: str | None) -> None:
    assert normalize_message(left) != normalize_message(right)


# github.com/continuedev/continue/issues/10218
GROQ_TOO_LARGE = (
    "Request too large for model `llama-3.1-8b-instant` in organization `org_x` service tier `on_demand` on tokens per "
    "minute (TPM): Limit 6000, Requested 7241, please reduce your message size and try again. Need more tokens? "
    "Upgrade to Dev Tier today at https://console.groq.com/settings/billing"
)


@pytest.mark.parametrize(
    ("status", "message", "words"),
    [
        (401, "anything", "api_key"),
        (400, "Incorrect API key provided: na***ys.", "api_key"),
        (400, "API key not valid. Please pass a valid API key.", "api_key"),
        (400, "No connected db.", "api_key"),
        (402, "Insufficient Balance", "Top up"),
        (403, "Your team has either used all available credits or reached its monthly spending limit.", "Top up"),
        (400, "Please recharge at https://x.org/billing: insufficient balance", "Top up"),
        (413, GROQ_TOO_LARGE, "tokens per minute"),
        (413, "Request Entity Too Large", "lower `max_tokens`"),
        (429, "Request too large for gpt-4o on tokens per min (TPM): Limit 30000.", "lower `max_tokens`"),
        (429, "Rate limit reached on tokens per minute. Please try again in 2s. See https://x.org/billing", "rpm"),
        (403, "Your account has been flagged for unusual activity", "account or the key is blocked"),
        (403, "Content blocked by guardrail", "refusals"),
        (403, "You may not use it", "may use this model"),
        (403, "The security token included in the request is expired", "aws sso login"),
        (403, "The request signature we calculated does not match the signature you provided.", "aws sso login"),
        (None, "BedrockException Invalid Authentication - Unable to locate credentials", "aws sso login"),
        (None, "Partial credentials found in env, missing: AWS_SECRET_ACCESS_KEY", "aws sso login"),
        (None, "The config profile (nope) could not be found", "AWS_PROFILE"),
        (None, "Invalid AWS region format: 'eu central'.", "`aws_region_name`"),
        (404, "This model version has reached the end of its life.", "model's name"),
        (400, "The model `llama3-70b-8192` has been decommissioned and is no longer supported.", "model's name"),
        (400, "User location is not supported for the API use.", "does not serve this country"),
        (403, "Country, region, or territory not supported", "does not serve this country"),
        (403, "openai/x requires moderation, your input was flagged", "refusals"),
        (404, "The model `gpt-4.5x` does not exist or you do not have access to it.", "model's name"),
        (400, "Model Not Exist", "model's name"),
        (400, "Invalid model: nope", "model's name"),
        (400, "The supported API model names are deepseek-v4-pro, but you passed deepseek-chat.", "model's name"),
        (404, "404 page not found", "ends with /v1"),
        (404, "Not Found", "ends with /v1"),
        (429, "You exceeded your current quota, please check your plan and billing details.", "Top up"),
        (429, "Rate limit reached", "rpm"),
        (400, "This model's maximum context length is 8192 tokens.", "context"),
        (400, "Unsupported value: 'temperature' does not support 0.7 with this model.", "temperature"),
        (None, "gpt-5 models don't support temperature=0.7. Only temperature=1 is supported.", "temperature"),
        (400, "This response_format type is unavailable now", "form"),
        (200, "its tokens ran out before any text: set reasoning.max_tokens of the model", "lower `effort`"),
        (200, "the answer is only in the server's field for reasoning (`reasoning_content`)", "reasoning parser"),
        (400, "Unsupported parameter: 'max_tokens' is not supported with this model.", "token_limit_param"),
        (None, "openai does not support parameters: ['logit_bias'], for model=x", "params"),
        (None, "LLM Provider NOT provided. Pass in the LLM provider you are trying to call.", "openai/"),
        (None, "Missing credentials. Please pass an `api_key`", "api_key"),
        (None, "Cannot connect to host 127.0.0.1:1 [Connect call failed ('127.0.0.1', 1)]", "server runs"),
        (
            None,
            "Cannot connect to host 127.0.0.1:1 [[SSL: WRONG_VERSION_NUMBER] wrong version number]",
            "write http://",
        ),
        (None, "Cannot connect to host no.such.host:443 [Name or service not known]", "host"),
        (None, "Cannot connect to host x:443 [SSLCertVerificationError: certificate verify failed]", "certificate"),
        (None, "no answer in time", "timeout_s"),
        (503, "The engine is currently overloaded", "later"),
    ],
)
def test_known_failures_have_a_fix(status: int | None, message: str, words: str) -> None:
    assert words in how_to_fix(status, message)


@pytest.mark.parametrize("status", [None, 200])
def test_the_fix_of_an_answer_that_was_cut_off_is_more_room(status: int | None) -> None:
    message = "its tokens ran out before any text: set reasoning.max_tokens of the model"
    assert how_to_fix(status, message) == TRUNCATED_FIX


def test_only_a_refusal_has_the_fix_of_a_parameter() -> None:
    assert how_to_fix(200, "max_tokens") == ""
    assert "later" in how_to_fix(502, "temperature")


def test_an_unknown_failure_has_no_fix() -> None:
    assert how_to_fix(418, "I'm a teapot") == ""
