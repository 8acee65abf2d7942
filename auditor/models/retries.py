"""Decide whether and when to retry a failed request, by the provider's `retry-after` and the audit's limits."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypeVar

from auditor.config import Limits
from auditor.domain import Answer, Attempt, Outcome, total_cost
from auditor.models.failures import RequestFailure
from auditor.models.limiter import backoff_delay

T = TypeVar("T", Answer, Attempt)


@dataclass(slots=True)
class CallProgress:
    """What has been sent for a call.

    Attributes:
        attempts: all requests that went out, in order.
        costs: of each request in US dollars; None if unknown.
        deadline: end of the call's time, by `time.monotonic`; None before its first request.
        n_tries: number of requests that count towards `limits.max_attempts`.
        sent_at: time at which the last request was sent, by the clock of its account's limiter.
    """

    attempts: list[Attempt]
    costs: list[float | None]
    deadline: float | None = None
    n_tries: int = 0
    sent_at: float = -math.inf

    def add(self, answer: Answer) -> None:
        """Add the attempt and the cost of an answer."""
        self.attempts += answer.attempts
        self.costs.append(answer.cost_usd)

    def append_error_reason(self, answer: Answer, reason: str) -> Answer:
        """Add the reason for not retrying to the error of the last attempt and of the answer, and return the answer."""
        if self.attempts:
            self.attempts[-1] = append_error_reason(self.attempts[-1], reason)
        return append_error_reason(answer, reason)

    def complete(self, answer: Answer) -> Answer:
        """The answer with all attempts and their cost."""
        return replace(answer, attempts=tuple(self.attempts), cost_usd=total_cost(self.costs))


def retry_delay(failure: RequestFailure, n_attempts: int, rng: random.Random) -> float:
    """Seconds to wait before another attempt.

    After a 429 the backoff is added to the wait that the provider asks for; else the longer of both is taken.

    Args:
        failure: of the last attempt.
        n_attempts: number of attempts so far.
        rng: source of the backoff's jitter.
    """
    backoff_s, retry_after_s = backoff_delay(n_attempts, rng), failure.retry_after_s or 0.0
    return backoff_s + retry_after_s if failure.outcome is Outcome.RATE_LIMITED else max(backoff_s, retry_after_s)


def no_retry_reason(
    failure: RequestFailure, wait_s: float, n_attempts: int, deadline: float, limits: Limits, timeout_s: float
) -> str | None:
    """Why a failed request is not retried: a message, empty if the error says enough; None if it is retried.

    Args:
        failure: of the last attempt.
        wait_s: wait before the next attempt, in seconds.
        n_attempts: number of attempts so far.
        deadline: end of the call's time, by `time.monotonic`.
        limits: of the audit.
        timeout_s: time limit of one request to the model, in seconds.
    """
    retry_after_s = failure.retry_after_s or 0.0
    if retry_after_s > limits.max_retry_wait_s:
        return long_wait_message(retry_after_s, limits)
    if n_attempts >= limits.max_attempts:
        return ""
    if time.monotonic() + wait_s < deadline:
        return None
    deadline_limit = f"limits.deadline_s = {limits.resolved_deadline_s(timeout_s):g} s is too short for it"
    return f"the provider asks to wait {format_duration(retry_after_s)}, and {deadline_limit}" if retry_after_s else ""


def append_error_reason(failed_request: T, reason: str) -> T:
    """Copy an answer or an attempt with the reason for not retrying added to its error."""
    return replace(failed_request, error="; ".join(filter(None, (failed_request.error, reason))))


def long_wait_message(retry_after_s: float, limits: Limits) -> str:
    """Message that a provider asks to wait `retry_after_s` seconds, longer than the config's limit allows."""
    wait_limit = f"limits.max_retry_wait_s = {limits.max_retry_wait_s:g} s"
    return f"the provider asks to wait {format_duration(retry_after_s)}, longer than {wait_limit}"


class ModelSuspension:
    """Suspends requests to a model whose provider repeatedly asks for a longer wait than the config allows.

    A single response may ask for it by mistake. Only if another one does so at least `limits.max_retry_wait_s` later,
    with no success between them, are requests suspended until the time that the provider named.
    """

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        """Create the state of a model whose requests are not suspended; `clock` returns a time in seconds."""
        self._limits, self._clock = limits, clock
        # Times by `clock`: of the first response since the last success that asked for a too long wait, and of the end
        # of the suspension.
        self._first_long_wait_at: float | None = None
        self._suspended_until = 0.0

    def record_response(self, failure: RequestFailure | None) -> None:
        """Record how a request ended: its failure, or None for a success, which lifts a suspension."""
        now, max_wait_s = self._clock(), self._limits.max_retry_wait_s
        if failure is None:
            self._first_long_wait_at, self._suspended_until = None, 0.0
        elif failure.outcome is Outcome.RATE_LIMITED and (failure.retry_after_s or 0.0) > max_wait_s:
            self._first_long_wait_at = now if self._first_long_wait_at is None else self._first_long_wait_at
            if now - self._first_long_wait_at >= max_wait_s > 0:
                self._suspended_until = now + (failure.retry_after_s or 0.0)

    @property
    def reason(self) -> str | None:
        """Why requests are suspended now; None if they are not."""
        remaining_s = self._suspended_until - self._clock()
        return f"no request was sent: {long_wait_message(remaining_s, self._limits)}" if remaining_s > 0 else None


def pause_notice(account: str, wait_s: float, retry_after_s: float) -> str:
    """Message that requests to an account wait, and until when, in local time.

    Args:
        account: description of the account.
        wait_s: how long requests wait.
        retry_after_s: how long the provider asks to wait.
    """
    resumes_at = datetime.now().astimezone() + timedelta(seconds=wait_s)
    # The date is shown for a wait of 12 hours or more.
    end_time = f"{resumes_at:%H:%M:%S}" if wait_s < 43_200 else f"{resumes_at:%Y-%m-%d %H:%M}"
    cap_note = (
        f", limited by limits.max_retry_wait_s to {format_duration(wait_s)}" if retry_after_s > wait_s + 1 else ""
    )
    return f"Waiting until {end_time}: {account} asks for a pause of {format_duration(retry_after_s)}{cap_note}."


def format_duration(seconds: float) -> str:
    """Format a duration for a message: `45 s`, `20 min`, `24 h`, `365 days`."""
    # Each entry: name of the unit, its length in seconds, and the duration in seconds from which a larger unit is used.
    for unit, unit_s, upper_bound_s in (("s", 1, 180), ("min", 60, 7200), ("h", 3600, 172_800)):
        if seconds < upper_bound_s:
            return f"{seconds / unit_s:.3g} {unit}"
    return f"{seconds / 86_400:,.0f} days"
