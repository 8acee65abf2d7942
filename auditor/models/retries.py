"""When a failed request is tried again, and how long that takes: a provider's wishes within the audit's limits."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeVar

from auditor.config import Limits
from auditor.domain import Answer, Attempt, Outcome
from auditor.models.failures import RequestFailure
from auditor.models.limiter import backoff_delay

T = TypeVar("T", Answer, Attempt)


def retry_delay(failure: RequestFailure, n_attempts: int, rng: random.Random) -> float:
    """Seconds before another try.

    Args:
        failure: of the last one.
        attempt: requests made so far, from 1.
        rng: source of the jitter.
    """
    wait_s, asked_s = backoff_delay(n_attempts, rng), failure.retry_after_s or 0.0
    return wait_s + asked_s if failure.outcome is Outcome.RATE_LIMITED else max(wait_s, asked_s)


def no_retry_reason(
    failure: RequestFailure, wait_s: float, n_attempts: int, deadline: float, limits: Limits
) -> str | None:
    """Why there is no other try, in words that may be empty; None where there is one.

    Args:
        failure: of the last try.
        wait_s: before another.
        attempts: requests made so far.
        deadline: end of the call's time, by `time.monotonic`.
        limits: of the audit.
    """
    asked_s = failure.retry_after_s or 0.0
    if asked_s > limits.max_retry_wait_s:
        return long_wait_message(asked_s, limits)
    if n_attempts >= limits.max_attempts:
        return ""
    if time.monotonic() + wait_s < deadline:
        return None
    left = f"limits.deadline_s = {limits.deadline_s:g} s leaves no time for it"
    return f"the provider asks to wait {format_duration(asked_s)}, and {left}" if asked_s else ""


def append_error_reason(failed_request: T, reason: str) -> T:
    """An answer or an attempt whose error also says why there is no other try."""
    return replace(failed_request, error="; ".join(filter(None, (failed_request.error, reason))))


def long_wait_message(retry_after_s: float, limits: Limits) -> str:
    """That a provider asks for a longer wait than is allowed."""
    most = f"limits.max_retry_wait_s = {limits.max_retry_wait_s:g} s"
    return f"the provider asks to wait {format_duration(retry_after_s)}, longer than {most}"


class ModelSuspension:
    """Whether a model's provider insists on a longer wait than is allowed, so that asking it is of no use.

    A single answer may ask for too much by mistake. Only where another one does so after the longest wait that is
    allowed, with no success between them, is the model not asked again before the time that it named.
    """

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits, self._clock = limits, clock
        self._first_long_wait_at: float | None = None
        self._suspended_until = 0.0

    def record_response(self, failure: RequestFailure | None) -> None:
        """Take into account how a request ended; None where it went well."""
        now, most_s = self._clock(), self._limits.max_retry_wait_s
        if failure is None:
            self._first_long_wait_at, self._suspended_until = None, 0.0
        elif failure.outcome is Outcome.RATE_LIMITED and (failure.retry_after_s or 0.0) > most_s:
            self._first_long_wait_at = now if self._first_long_wait_at is None else self._first_long_wait_at
            if now - self._first_long_wait_at >= most_s > 0:
                self._suspended_until = now + (failure.retry_after_s or 0.0)

    @property
    def reason(self) -> str | None:
        """Why no request may go out now; None where one may."""
        left = self._suspended_until - self._clock()
        return f"no request went out: {long_wait_message(left, self._limits)}" if left > 0 else None


def pause_notice(account: str, wait_s: float, retry_after_s: float) -> str:
    """Which account is waited for, and until when, in local time.

    Args:
        account: in words.
        wait_s: how long it is waited for.
        asked_s: how long it asks to wait.
    """
    at = datetime.now().astimezone() + timedelta(seconds=wait_s)
    until = f"{at:%H:%M:%S}" if wait_s < 43_200 else f"{at:%Y-%m-%d %H:%M}"
    allowed = (
        f", of which limits.max_retry_wait_s allows {format_duration(wait_s)}" if retry_after_s > wait_s + 1 else ""
    )
    return f"Waiting until {until}: {account} asks for a pause of {format_duration(retry_after_s)}{allowed}."


def format_duration(seconds: float) -> str:
    """A length of time in words: `45 s`, `20 min`, `24 h`, `365 days`."""
    for unit, size, most in (("s", 1, 180), ("min", 60, 7200), ("h", 3600, 172_800)):
        if seconds < most:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 86_400:,.0f} days"
