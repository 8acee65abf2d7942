"""Classify failed requests: the outcome, whether a retry may help, and how long the provider asks to wait."""

from __future__ import annotations

import asyncio
import email.utils
import json
import re
import time
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import httpx

from auditor.domain import Outcome
from auditor.error_messages import (
    BAD_KEY,
    BLOCKED_ACCOUNT,
    CONTEXT_LENGTH,
    MODERATION,
    MODERATION_CODE,
    SPENT_QUOTA,
    SPENT_QUOTA_OR_BILLING,
    TEMPORARY_QUOTA,
    TOO_LARGE,
    UNKNOWN_MODEL,
    clean_message,
    provider_message,
)
from auditor.models.endpoint import AccessTokenRefused
from auditor.models.litellm_client import load_litellm
from auditor.models.transport import HttpExchange, RedirectRefused, UnacceptableExchange, UnreadableResponse
from auditor.redaction import redact

MAX_RETRY_AFTER_S = 1e9
"""About 30 years; longer waits are capped at it, so that they can be added to a date and stored."""
MIN_EPOCH_S = 1e8
"""A larger number is a time since 1970, in seconds or a part of them: no limit takes three years to be reset."""
LITELLM_PREFIX = "llm_provider-"
"""litellm's prefix of a provider's headers."""
UNIT_LENGTHS_S = {"d": 86_400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001, "milli": 0.001}
"""Length of each unit of a duration in seconds, by the beginning of its name."""
_NUMBER = r"[0-9]{1,9}(?:\.[0-9]{1,9})?"
_UNIT = r"(?:ms|milliseconds?|d|days?|h|hrs?|hours?|m|mins?|minutes?|s|secs?|seconds?)"
_DURATION = rf"(?:{_NUMBER}\s?{_UNIT}[\s,]{{0,2}}(?:and\s)?){{1,5}}(?<=[a-z])(?![a-z])"
DURATION_PATTERN = re.compile(_DURATION, re.IGNORECASE)
DURATION_PART_PATTERN = re.compile(rf"({_NUMBER})\s?(ms|milli|[dhms])", re.IGNORECASE)
WORDED_WAIT_PATTERN = re.compile(
    rf"\b(?:(?:try again|retry(?:\s(?:your|the|this)\srequest)?|resets?)\s(?:in|after)|wait(?:\sfor)?)"
    rf"\s(?:about\s)?({_DURATION})",
    re.IGNORECASE,
)
_ESCAPED_QUOTE = r"\\{0,9}[\"']"
RETRY_INFO_PATTERN = re.compile(
    rf"{_ESCAPED_QUOTE}retryDelay{_ESCAPED_QUOTE}\s*:\s*{_ESCAPED_QUOTE}({_NUMBER})s{_ESCAPED_QUOTE}"
    rf"|\bretry_delay(?:\s|\\n){{0,9}}\{{(?:\s|\\n){{0,9}}seconds:\s?({_NUMBER})"
)
"""Field of Google's `RetryInfo`, which comes without a header; also in an error that a proxy quotes."""
RESET_HEADER_PATTERN = re.compile(r"rate-?limit.*-reset\b")
"""Names of headers with the time at which a limit is reset; `reset` is replaced by `remaining` for what is left."""

STRUCTURED_FIELD_PATTERN = re.compile(r"(?:^|[;,])\s*(limit|remaining|reset|r|t)\s*=\s*([0-9]{1,15})(?![\w.])")
"""Numbers in the header `RateLimit` by their names."""


def parse_retry_after(headers: Mapping[str, str]) -> float | None:
    """Parse the wait in seconds from `retry-after-ms` or `retry-after`: seconds, a duration such as `6s`, or a time.

    None if both are absent or unreadable. A time in the past or a negative number is 0; a wait of more than
    `MAX_RETRY_AFTER_S` is capped. Both headers are also read with litellm's prefix.
    """
    texts = _texts_by_header(headers)
    milliseconds = _parse_number(texts.get("retry-after-ms"))
    if milliseconds is not None:
        return _bound(milliseconds / 1000)
    seconds = _seconds_until_reset(texts.get("retry-after", ""))
    return None if seconds is None else _bound(seconds)


def parse_limit_reset(headers: Mapping[str, str]) -> float | None:
    """Parse the wait in seconds from headers that say when a rate limit is reset, for a refused request.

    Of several limits, the one of which nothing remains counts, else the one that is reset last. None if there is none
    that can be read.
    """
    texts = _texts_by_header(headers)
    limits = [
        (seconds, _parse_number(texts.get(name.replace("reset", "remaining"))) == 0)
        for name, text in texts.items()
        if RESET_HEADER_PATTERN.search(name) and (seconds := _seconds_until_reset(text)) is not None
    ]
    limits += [(seconds, True) for seconds in _parse_structured_limits(texts.get("ratelimit", ""))]
    waits = [_bound(seconds) for seconds, _ in limits]
    return max((_bound(seconds) for seconds, is_exhausted in limits if is_exhausted), default=max(waits, default=None))


def _parse_structured_limits(text: str) -> list[float]:
    """Seconds until each limit in a header `RateLimit` is reset of which nothing remains.

    The header has a limit in each part, as `"default";r=0;t=30` (draft-ietf-httpapi-ratelimit-headers-08 and later), or
    one in all, as `limit=100, remaining=0, reset=30` (drafts 03 to 07).
    """
    fields = STRUCTURED_FIELD_PATTERN.findall(text)
    if any(name == "reset" for name, _ in fields):
        limits = [{"r" if name == "remaining" else "t": number for name, number in fields if name != "limit"}]
    else:
        limits = [dict(STRUCTURED_FIELD_PATTERN.findall(part)) for part in text.split(",")]
    return [float(limit["t"]) for limit in limits if "t" in limit and float(limit.get("r", 1)) == 0]


def parse_retry_info(body: str) -> float | None:
    """Parse the wait in seconds from Google's `RetryInfo` in the body of an error; None without one."""
    match = RETRY_INFO_PATTERN.search(body)
    return _bound(float(match[1] or match[2])) if match else None


def parse_worded_wait(body: str) -> float | None:
    """Parse the wait in seconds from the words of a refusal, such as "try again in 7m33.6s"; None if it names none."""
    match = WORDED_WAIT_PATTERN.search(body)
    seconds = parse_duration(match[1]) if match else None
    return None if seconds is None else _bound(seconds)


def parse_duration(text: str | None) -> float | None:
    """Parse a duration such as `6m0s`, `17ms` or `20 seconds` into seconds; None for any other text."""
    if not text or not DURATION_PATTERN.fullmatch(text):
        return None
    parts = DURATION_PART_PATTERN.findall(text)
    return sum(float(number) * UNIT_LENGTHS_S[unit.lower()] for number, unit in parts)


def _texts_by_header(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers by their names in lower case; litellm's prefix is removed where there is no header without it."""
    texts = {str(name).lower(): str(text).strip() for name, text in headers.items()}
    return {name.removeprefix(LITELLM_PREFIX): text for name, text in texts.items()} | texts


def _bound(seconds: float) -> float:
    """A wait from 0 to `MAX_RETRY_AFTER_S`."""
    return min(max(0.0, seconds), MAX_RETRY_AFTER_S)


def _parse_number(text: str | None) -> float | None:
    """Parse a decimal number; None for any other text."""
    return float(text) if text and re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", text) else None


def _seconds_until_reset(text: str) -> float | None:
    """Seconds until a limit is reset: a number of seconds, a time since 1970, a duration, or a time in RFC 3339."""
    number = _parse_number(text)
    if number is not None:
        if number <= MIN_EPOCH_S:
            return number
        for _ in range(3):  # milliseconds, microseconds or nanoseconds
            number = number / 1000 if number > MIN_EPOCH_S * 1000 else number
        return number - time.time()
    if (duration_s := parse_duration(text)) is not None:
        return duration_s
    try:
        return _seconds_until(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        return _seconds_until_http_date(text)


def _seconds_until_http_date(text: str | None) -> float | None:
    """Seconds from now to an HTTP date, negative if it is past; None if it is absent or unreadable."""
    if not text:
        return None
    try:
        return _seconds_until(email.utils.parsedate_to_datetime(text))
    except (ValueError, OverflowError, TypeError, LookupError):  # an impossible year, day or time zone
        return None


def _seconds_until(date: datetime) -> float:
    """Seconds from now to a time, which is in UTC if it names no time zone; negative if it is past."""
    return ((date if date.tzinfo else date.replace(tzinfo=UTC)) - datetime.now(UTC)).total_seconds()


CUT_OFF_PATTERN = re.compile(rb"max completion tokens reached before generating a valid document", re.IGNORECASE)
"""What Groq's `json_validate_failed` says in its `failed_generation` if the answer was cut off."""
MAX_EXCERPT_CHARS = 60
MAX_PARSED_ERROR_CHARS = 8_000
"""Characters of an error's text that are read; enough for a message without prefixes and extra whitespace."""
UNREACHABLE_ERROR_NAMES = (
    "ServerUnreachable",
    "ConnectError",
    "ConnectTimeout",
    "APIConnectionError",
    "ConnectionRefusedError",
)
TRACEBACK_HEADER = "Traceback (most recent call last)"
"""An error's text is cut at this line: a Python traceback follows."""
TLS_HOST_SUFFIX = re.compile(r" ssl:(?:<[^>]*>|\w+)")
"""Suffix that the HTTP library adds to the name of a host that it cannot reach."""
BLOCKING_STATUSES = (401, 402, 403, 404)
"""HTTP statuses after which every further request to the model would fail in the same way."""
TEMPORARY_STATUSES = (408, 409, 424, 425, 498, 499)
"""HTTP statuses below 500 of failures of the server: a time-out, a conflict, which OpenAI's and Anthropic's libraries
retry too, a generation that failed (TGI, Bedrock), one that came too early, Groq's tier `flex` at capacity,
and a request that Gemini or a proxy cancelled."""
WORDED_BLOCK_STATUSES = (400, 412)
"""HTTP statuses after which the same holds if the message says so; Fireworks AI sends 412 for a suspended account."""
AWS_ERROR_HEADER = "x-amzn-errortype"
THROTTLED_PATTERN = re.compile(r"\bThrottlingException\b")
"""AWS's name of a rate limit, which its list of common errors has with status 400."""
MODERATION_PATTERN = re.compile(MODERATION, re.IGNORECASE)
MODERATION_CODE_PATTERN = re.compile(MODERATION_CODE, re.IGNORECASE)
BLOCKED_ACCOUNT_PATTERN = re.compile(BLOCKED_ACCOUNT, re.IGNORECASE)
QUOTA_PATTERN = re.compile(f"{SPENT_QUOTA_OR_BILLING}|{BLOCKED_ACCOUNT}", re.IGNORECASE)
TEMPORARY_QUOTA_PATTERN = re.compile(TEMPORARY_QUOTA, re.IGNORECASE)
ONE_REQUEST_PATTERN = re.compile(f"{CONTEXT_LENGTH}|{TOO_LARGE}|{TEMPORARY_QUOTA}", re.IGNORECASE)
"""Words for a failure of one request; other requests, or later ones, may succeed."""
BLOCKING_PATTERN = re.compile(f"{BAD_KEY}|{UNKNOWN_MODEL}|{SPENT_QUOTA}|{BLOCKED_ACCOUNT}", re.IGNORECASE)
"""Words for a refused key, an unknown model, a spent quota and a closed account."""


@dataclass(frozen=True, slots=True)
class RequestFailure:
    """Why a request failed.

    Attributes:
        outcome: how the call ended.
        is_retryable: whether the same request may succeed later.
        blocks_model: whether every further request to this model would fail too: a bad key, no such model, no quota.
        error: message with secrets redacted.
        http_status: of the server's response; None if there was none.
        retry_after_s: how long the provider asks to wait; None if it does not say.
    """

    outcome: Outcome
    is_retryable: bool
    blocks_model: bool
    error: str
    http_status: int | None = None
    retry_after_s: float | None = None


def classify_failure(error: Exception, exchange: HttpExchange) -> RequestFailure:
    """Classify the exception that a request raised; secrets are redacted from its message.

    The response's HTTP status decides first, then the provider's words. litellm's exception class counts only if no
    request was sent: litellm reads words such as "403" even in the address of a server that cannot be reached.

    Args:
        error: the exception.
        exchange: record of the request and response.
    """
    status = exchange.status if exchange.n_requests else None
    if (unacceptable := _find_cause(error, UnacceptableExchange)) is not None:
        outcome = Outcome.CLIENT_ERROR if isinstance(unacceptable, RedirectRefused) else Outcome.SERVER_ERROR
        # Without a response, it is the destination that is not allowed, and no other request would be.
        return RequestFailure(outcome, False, status is None, str(unacceptable), status)
    text = _describe_error(error, exchange)
    is_timeout = isinstance(error, (asyncio.TimeoutError, load_litellm().Timeout))
    if is_timeout and status not in (*BLOCKING_STATUSES, 429):  # these statuses say enough without the body
        if status is not None and status < 300:
            text = f"the request timed out after {_format_bytes(exchange.response_size)} of the answer"
        return RequestFailure(Outcome.TIMEOUT, True, False, text or "no answer before the timeout", status)
    if status is None and not exchange.n_requests:
        return _classify_unsent(error, text)
    if status is None:
        return RequestFailure(Outcome.SERVER_ERROR, True, False, text)
    if status == 400 and CUT_OFF_PATTERN.search(bytes(exchange.body_start or b"")):
        text = f"{text} The model's tokens ran out: raise max_tokens, or reduce the reasoning effort."
        return RequestFailure(Outcome.TRUNCATED, False, False, text, status)
    header_delay_s, body = parse_retry_after(exchange.headers), _body_excerpt(exchange)
    body_delay_s = parse_retry_info(body)
    if status == 429:  # other errors have the same headers, and similar words
        body_delay_s = body_delay_s or parse_worded_wait(body)
        header_delay_s = header_delay_s or (None if body_delay_s else parse_limit_reset(exchange.headers))
    kind = exchange.headers.get(AWS_ERROR_HEADER, "")
    return _classify_response(status, text, f"{kind} {body}", header_delay_s, body_delay_s)


# Arguments of `RequestFailure` in the next two: outcome, is_retryable, blocks_model, error, http_status, retry_after_s.
def _classify_response(
    status: int, text: str, body: str, header_delay_s: float | None, body_delay_s: float | None
) -> RequestFailure:
    """Classify an unusable response by its HTTP status, then by the provider's words.

    Args:
        status: HTTP status.
        text: the provider's message.
        body: the response's body, after the kind of error in AWS's header; it may name a code beside the message.
        header_delay_s: how long the response's headers ask to wait, in seconds.
        body_delay_s: how long the response's body asks to wait, in seconds.
    """
    retry_after_s = header_delay_s or body_delay_s
    if status < 300 or status >= 500 or status in TEMPORARY_STATUSES:
        return RequestFailure(Outcome.SERVER_ERROR, True, False, text, status, retry_after_s)
    if status == 400 and THROTTLED_PATTERN.search(body):
        return RequestFailure(Outcome.RATE_LIMITED, True, False, text, status, retry_after_s)
    if status not in (401, 402, 404, 429) and _is_moderation(text, body):
        return RequestFailure(Outcome.REFUSED, False, False, text, status)
    if status == 429:
        is_temporary = body_delay_s is not None or bool(TEMPORARY_QUOTA_PATTERN.search(text))
        is_spent = bool(QUOTA_PATTERN.search(text)) and not is_temporary
        outcome = Outcome.CLIENT_ERROR if is_spent else Outcome.RATE_LIMITED
        return RequestFailure(outcome, not is_spent, is_spent, text, status, retry_after_s)
    blocks_model = status in BLOCKING_STATUSES or (status in WORDED_BLOCK_STATUSES and _says_blocked(text))
    return RequestFailure(Outcome.CLIENT_ERROR, False, blocks_model, text, status)


def _is_moderation(text: str, body: str) -> bool:
    """Whether a message, or the code in its body, says that a filter refused one prompt, not that it is the account."""
    is_of_filter = MODERATION_PATTERN.search(text) or MODERATION_CODE_PATTERN.search(body)
    return bool(is_of_filter) and not BLOCKED_ACCOUNT_PATTERN.search(text)


def _says_blocked(text: str) -> bool:
    """Whether a message says that every further request to the model would fail too."""
    return bool(BLOCKING_PATTERN.search(text)) and not ONE_REQUEST_PATTERN.search(text)


def _classify_unsent(error: Exception, text: str) -> RequestFailure:
    """Classify a request that litellm did not send, by litellm's exception class."""
    litellm = load_litellm()
    if isinstance(
        error, (AccessTokenRefused, litellm.AuthenticationError, litellm.PermissionDeniedError, litellm.NotFoundError)
    ):
        return RequestFailure(Outcome.CLIENT_ERROR, False, True, text)
    if isinstance(error, litellm.BadRequestError):
        return RequestFailure(Outcome.CLIENT_ERROR, False, _says_blocked(text), text)
    return RequestFailure(Outcome.SERVER_ERROR, True, False, text)


def is_unreachable(error: Exception, exchange: HttpExchange) -> bool:
    """Whether a request failed because no connection to the server could be made."""
    return exchange.unreachable or (
        not exchange.n_requests
        and any(type(cause).__name__ in UNREACHABLE_ERROR_NAMES for cause in _iter_causes(error))
    )


def _find_cause(error: Exception, error_class: type[BaseException]) -> BaseException | None:
    """The first exception of a class among an error and its causes; None if there is none."""
    return next((cause for cause in _iter_causes(error) if isinstance(cause, error_class)), None)


def _iter_causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and its chain of causes and contexts, each once."""
    seen_ids: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen_ids:
        yield cause
        seen_ids.add(id(cause))
        cause = cause.__cause__ or cause.__context__


def clear_traceback_frames(error: BaseException) -> None:
    """Clear the local variables in an error's traceback: they form cycles and keep the response's body in memory."""
    for cause in _iter_causes(error):
        traceback.clear_frames(cause.__traceback__)


def _describe_error(error: Exception, exchange: HttpExchange) -> str:
    """Describe a failure in one line, at most `MAX_MESSAGE_CHARS` characters.

    Uses the provider's message if it sent an error, and a message of ours if its response cannot be used. litellm's
    message is used only if there is no response: it contains Python details.
    """
    unreadable = _find_cause(error, UnreadableResponse)
    if exchange.status is None:
        text = str(_find_cause(error, httpx.TransportError) or "") or str(getattr(error, "message", "") or error)
        text = TLS_HOST_SUFFIX.sub("", _redacted_excerpt(text).split(TRACEBACK_HEADER, 1)[0])
        return f"the server answered with {unreadable}" if unreadable else clean_message(text)
    body = _body_excerpt(exchange)
    message = provider_message(body.split(TRACEBACK_HEADER, 1)[0])
    if exchange.status >= 300:
        return message or f"the server answered with HTTP status {exchange.status} and an empty body"
    if any(isinstance(cause, httpx.TransportError) for cause in _iter_causes(error)):
        return f"the connection was closed after {_format_bytes(exchange.response_size)} of the answer"
    if exchange.json_body is not None and exchange.json_body.get("error"):
        message = provider_message(_redacted_excerpt(json.dumps(exchange.json_body)))  # of a stream, the last chunk
        return clean_message(f"the server answered with HTTP status {exchange.status} and an error: {message}")
    problem = unreadable or "JSON that is not in this provider's format"
    return f"the server answered with {problem} ({_describe_body(exchange, ' '.join(body.split()))})"


def _body_excerpt(exchange: HttpExchange) -> str:
    """The beginning of a response's body as text, with secrets redacted; empty without a response."""
    return _redacted_excerpt(bytes(exchange.body_start or b"").decode("utf-8", "replace"))


def _redacted_excerpt(text: str) -> str:
    """The beginning of a text that may be megabytes long, with secrets redacted."""
    return redact(text[:MAX_PARSED_ERROR_CHARS], complete=len(text) <= MAX_PARSED_ERROR_CHARS)


def _describe_body(exchange: HttpExchange, body: str) -> str:
    """Content type, size and beginning of a response's body, for an error message."""
    content_type = exchange.headers.get("content-type", "")[:MAX_EXCERPT_CHARS]
    beginning = body[:MAX_EXCERPT_CHARS]
    excerpt = f"begins '{beginning}{'…' if beginning != body else ''}'" if beginning else ""
    return _replace_unprintable(", ".join(filter(None, (content_type, _format_bytes(exchange.response_size), excerpt))))


def _format_bytes(n_bytes: int) -> str:
    """Format a number of bytes for a message, such as `1,024 bytes`."""
    return f"{n_bytes:,} byte{'' if n_bytes == 1 else 's'}"


def _replace_unprintable(text: str) -> str:
    """Replace every unprintable character by the Unicode replacement character."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
