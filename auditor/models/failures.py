"""What a failed request means: its outcome, whether another try can help, and how long the provider asks to wait."""

from __future__ import annotations

import asyncio
import email.utils
import re
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import httpx

from auditor.domain import Outcome
from auditor.models.litellm_client import load_litellm
from auditor.models.transport import HttpExchange, RedirectRefused, UnacceptableExchange, UnreadableResponse
from auditor.redaction import redact

MAX_ERROR_CHARS = 500
MAX_EXCERPT_CHARS = 60
MAX_PARSED_ERROR_CHARS = 8_000
"""Of an error's text; what libraries and whitespace add to the part that is kept is less."""
MAX_RETRY_AFTER_S = 1e9
"""About 30 years: a longer wait is read as this one, so that it can be added to a time, and stored."""
UNREACHABLE_ERROR_NAMES = (
    "ServerUnreachable",
    "ConnectError",
    "ConnectTimeout",
    "APIConnectionError",
    "ConnectionRefusedError",
)
TRACEBACK_HEADER = "Traceback (most recent call last)"
"""What follows it in an error's text is Python's."""
TLS_HOST_SUFFIX = re.compile(r" ssl:(?:<[^>]*>|\w+)")
"""What the HTTP library adds to the name of a host that it cannot reach."""
BLOCKING_STATUSES = (401, 403, 404)
"""HTTP statuses with which every further request to the model would be answered too."""
MODERATION_PATTERN = re.compile(r"moderation|flagged", re.IGNORECASE)
"""How OpenRouter says, with status 403, that a filter refused one prompt (openrouter.ai/docs/errors)."""
QUOTA_PATTERN = re.compile(r"insufficient_quota|exceeded your current quota|credit balance|billing", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class RequestFailure:
    """Why a request brought no answer.

    Attributes:
        retry: whether the same request may succeed later.
        blocks: whether every further request to this model must fail too: a bad key, no such model, no quota.
        http_status: of the server's answer; where no request went out, the one that litellm gives its error.
        retry_after_s: how long the provider asks to wait; None when it does not say.
    """

    outcome: Outcome
    is_retryable: bool
    blocks_model: bool
    error: str
    http_status: int | None = None
    retry_after_s: float | None = None


def classify_failure(error: Exception, exchange: HttpExchange) -> RequestFailure:
    """Turn whatever a request raised into a failure; its text holds no secret.

    What the server answered decides before litellm's exception class does: for the same answer that class differs
    between providers.

    Args:
        error: what was raised.
        wire: what went out, and what came back.
    """
    lib = load_litellm()
    status = exchange.status if exchange.n_requests else _error_status(error)
    if (refused := _find_cause(error, UnacceptableExchange)) is not None:
        outcome = Outcome.CLIENT_ERROR if isinstance(refused, RedirectRefused) else Outcome.SERVER_ERROR
        return RequestFailure(outcome, False, False, str(refused), status)
    text, wait = _describe_error(error, exchange), parse_retry_after(exchange.headers)
    if isinstance(error, (asyncio.TimeoutError, lib.Timeout)):
        if status is not None and status < 300:
            text = f"the time limit passed after {_format_bytes(exchange.response_size)} of the answer"
        return RequestFailure(Outcome.TIMEOUT, True, False, text or "no answer in time", status)
    if status is not None and (status < 300 or status >= 500):
        return RequestFailure(Outcome.SERVER_ERROR, True, False, text, status, wait)
    if isinstance(error, lib.ContentPolicyViolationError) or (status == 403 and MODERATION_PATTERN.search(text)):
        return RequestFailure(Outcome.REFUSED, False, False, text, status)
    if isinstance(error, lib.RateLimitError) or status in (402, 429):
        quota = status == 402 or bool(QUOTA_PATTERN.search(text))
        outcome = Outcome.CLIENT_ERROR if quota else Outcome.RATE_LIMITED
        return RequestFailure(outcome, not quota, quota, text, status, wait)
    denied = (lib.AuthenticationError, lib.PermissionDeniedError, lib.NotFoundError)
    if status in BLOCKING_STATUSES or isinstance(error, denied):
        return RequestFailure(Outcome.CLIENT_ERROR, False, True, text, status)
    if isinstance(error, lib.BadRequestError) or (status is not None and 400 <= status < 500 and status != 408):
        return RequestFailure(Outcome.CLIENT_ERROR, False, False, text, status)
    return RequestFailure(Outcome.SERVER_ERROR, True, False, text, status, wait)


def is_unreachable(error: Exception, exchange: HttpExchange) -> bool:
    """Whether no connection to the server could be made."""
    return exchange.unreachable or (
        not exchange.n_requests
        and any(type(cause).__name__ in UNREACHABLE_ERROR_NAMES for cause in _iter_causes(error))
    )


def _find_cause(error: Exception, error_class: type[BaseException]) -> BaseException | None:
    return next((cause for cause in _iter_causes(error) if isinstance(cause, error_class)), None)


def _iter_causes(error: BaseException) -> Iterator[BaseException]:
    """An error and what it came of."""
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        yield cause
        seen.add(id(cause))
        cause = cause.__cause__ or cause.__context__


def clear_traceback_frames(error: BaseException) -> None:
    """Forget what the functions that an error came through held: they would keep each other, and the answer's body."""
    for cause in _iter_causes(error):
        traceback.clear_frames(cause.__traceback__)


def parse_retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait from `retry-after-ms` or `retry-after` (seconds or an HTTP date); None when absent or unreadable.

    A time in the past, or a negative number, is 0; a wait of more than `MAX_RETRY_AFTER_S` is read as that.
    """
    lowered = {str(k).lower(): str(v).strip() for k, v in headers.items()}
    seconds: float | None = None
    for prefix in ("", "llm_provider-"):
        value = lowered.get(f"{prefix}retry-after")
        if (ms := _parse_number(lowered.get(f"{prefix}retry-after-ms"))) is not None:
            seconds = ms / 1000
        elif (seconds := _parse_number(value)) is None:
            seconds = _seconds_until(value)
        if seconds is not None:
            return min(max(0.0, seconds), MAX_RETRY_AFTER_S)
    return None


def _parse_number(value: str | None) -> float | None:
    return float(value) if value and re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", value) else None


def _seconds_until(value: str | None) -> float | None:
    """Seconds from now to an HTTP date; negative when it is past."""
    if not value:
        return None
    try:
        moment = email.utils.parsedate_to_datetime(value)
        return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - datetime.now(UTC)).total_seconds()
    except (ValueError, OverflowError, TypeError, LookupError):  # a year, a day or a time zone that cannot be
        return None


def _error_status(error: Exception) -> int | None:
    status = getattr(error, "status_code", None)
    try:
        return int(status) if status is not None else None
    except (TypeError, ValueError):
        return None


def _describe_error(error: Exception, exchange: HttpExchange) -> str:
    """What went wrong, in words: the server's where it answered, ours where its answer cannot be used.

    litellm's own words are taken only where there is no answer: it adds Python's to them.
    """
    unreadable = _find_cause(error, UnreadableResponse)
    if exchange.status is None:
        text = _redacted_excerpt(
            str(_find_cause(error, httpx.TransportError) or "") or str(getattr(error, "message", "") or error)
        )
        text = re.sub(r"^(?:(?:litellm\.)?\w+: )+(?:\w+Exception - )?", "", text.split(TRACEBACK_HEADER, 1)[0])
        text = TLS_HOST_SUFFIX.sub("", text)
        return (f"the server answered with {unreadable}" if unreadable else " ".join(text.split()))[:MAX_ERROR_CHARS]
    body = " ".join(_redacted_excerpt(bytes(exchange.body_start or b"").decode("utf-8", "replace")).split())
    if exchange.status >= 300:
        text = body or f"the server answered with HTTP status {exchange.status} and nothing else"
    elif any(isinstance(cause, httpx.TransportError) for cause in _iter_causes(error)):
        text = f"the connection broke off after {_format_bytes(exchange.response_size)} of the answer"
    elif exchange.json_body is not None and (reason := exchange.json_body.get("error")):
        message = _redacted_excerpt(reason) if isinstance(reason, str) else body
        text = f"the server answered with HTTP status {exchange.status} and an error: {message}"
    else:
        what = unreadable or "JSON that is not in this provider's format"
        text = f"the server answered with {what} ({_describe_body(exchange, body)})"
    return text.split(TRACEBACK_HEADER, 1)[0][:MAX_ERROR_CHARS]


def _redacted_excerpt(text: str) -> str:
    """The beginning of a text that may be megabytes; secrets are removed before it is cut again."""
    return redact(text[:MAX_PARSED_ERROR_CHARS], complete=len(text) <= MAX_PARSED_ERROR_CHARS)


def _describe_body(exchange: HttpExchange, body: str) -> str:
    """Type, size and beginning of an answer, for a message."""
    kind = exchange.headers.get("content-type", "")[:MAX_EXCERPT_CHARS]
    start = body[:MAX_EXCERPT_CHARS]
    begins = f"begins '{start}{'…' if start != body else ''}'" if start else ""
    return _replace_unprintable(", ".join(filter(None, (kind, _format_bytes(exchange.response_size), begins))))


def _format_bytes(n_bytes: int) -> str:
    return f"{n_bytes:,} byte{'' if n_bytes == 1 else 's'}"


def _replace_unprintable(text: str) -> str:
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
