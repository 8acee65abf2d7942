"""What a failed request means: its outcome, whether another try can help, and how long the provider asks to wait."""

from __future__ import annotations

import asyncio
import email.utils
import re
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from auditor.domain import Outcome
from auditor.models.door import litellm
from auditor.models.responses import storable
from auditor.models.transport import Redirected, Unacceptable
from auditor.redaction import redact

MAX_ERROR_CHARS = 500
MAX_READ_CHARS = 8_000
"""Of an error's text; what libraries and whitespace add to the part that is kept is less."""
UNREACHABLE = ("Unreachable", "ConnectError", "ConnectTimeout", "APIConnectionError", "ConnectionRefusedError")
QUOTA = re.compile(r"insufficient_quota|exceeded your current quota|credit balance|billing", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a request brought no answer.

    Attributes:
        retry: whether the same request may succeed later.
        blocks: whether every further request to this model must fail too: a bad key, no such model, no quota.
        retry_after_s: how long the provider asks to wait; None when it does not say.
    """

    outcome: Outcome
    retry: bool
    blocks: bool
    error: str
    http_status: int | None = None
    retry_after_s: float | None = None


def classify(error: Exception) -> Failure:
    """Turn whatever a request raised into a failure; its text holds no secret."""
    lib = litellm()
    status = _status(error)
    text = _text(error)
    if (refused := _cause(error, Unacceptable)) is not None:
        outcome = Outcome.CLIENT_ERROR if isinstance(refused, Redirected) else Outcome.SERVER_ERROR
        return Failure(outcome, False, False, str(refused), status)
    if isinstance(error, (asyncio.TimeoutError, lib.Timeout)):
        return Failure(Outcome.TIMEOUT, True, False, text or "no answer in time", status)
    if isinstance(error, lib.ContentPolicyViolationError):
        return Failure(Outcome.REFUSED, False, False, text, status)
    if isinstance(error, lib.RateLimitError) or status == 402:
        quota = status == 402 or bool(QUOTA.search(text))
        wait = retry_after(getattr(error, "litellm_response_headers", None) or {})
        outcome = Outcome.CLIENT_ERROR if quota else Outcome.RATE_LIMITED
        return Failure(outcome, not quota, quota, text, status, wait)
    if isinstance(error, (lib.AuthenticationError, lib.PermissionDeniedError, lib.NotFoundError)):
        return Failure(Outcome.CLIENT_ERROR, False, True, text, status)
    if isinstance(error, lib.BadRequestError) or (status is not None and 400 <= status < 500 and status != 408):
        return Failure(Outcome.CLIENT_ERROR, False, False, text, status)
    wait = retry_after(getattr(error, "litellm_response_headers", None) or {})
    return Failure(Outcome.SERVER_ERROR, True, False, text, status, wait)


def is_unreachable(error: Exception) -> bool:
    """Whether no server answered at all."""
    return any(type(cause).__name__ in UNREACHABLE for cause in _causes(error))


def _cause(error: Exception, kind: type[BaseException]) -> BaseException | None:
    return next((cause for cause in _causes(error) if isinstance(cause, kind)), None)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An error and what it came of."""
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        yield cause
        seen.add(id(cause))
        cause = cause.__cause__ or cause.__context__


def let_go(error: BaseException) -> None:
    """Forget what the functions that an error came through held: they would keep each other, and the answer's body."""
    for cause in _causes(error):
        traceback.clear_frames(cause.__traceback__)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait from `retry-after-ms` or `retry-after` (seconds or an HTTP date); None when absent or unreadable.

    A time in the past, or a negative number, is 0.
    """
    lowered = {str(k).lower(): str(v).strip() for k, v in headers.items()}
    for prefix in ("", "llm_provider-"):
        if (ms := _number(lowered.get(f"{prefix}retry-after-ms"))) is not None:
            return max(0.0, ms / 1000)
        value = lowered.get(f"{prefix}retry-after")
        if (seconds := _number(value)) is not None:
            return max(0.0, seconds)
        if value and (moment := _date(value)) is not None:
            return max(0.0, (moment - datetime.now(UTC)).total_seconds())
    return None


def _number(value: str | None) -> float | None:
    return float(value) if value and re.fullmatch(r"-?\d+(\.\d+)?", value) else None


def _date(value: str) -> datetime | None:
    try:
        moment = email.utils.parsedate_to_datetime(value)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _status(error: Exception) -> int | None:
    status = getattr(error, "status_code", None)
    try:
        return int(status) if status is not None else None
    except (TypeError, ValueError):
        return None


def _text(error: Exception) -> str:
    text = str(getattr(error, "message", "") or error)
    # Only the beginning is read, since it may be megabytes; secrets are removed before the text is cut again.
    text = redact(text[:MAX_READ_CHARS], complete=len(text) <= MAX_READ_CHARS)
    text = re.sub(r"^(?:(?:litellm\.)?\w+: )+(?:\w+Exception - )?", "", text)
    return storable(" ".join(text.split())[:MAX_ERROR_CHARS])
