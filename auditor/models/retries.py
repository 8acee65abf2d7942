"""When to retry a failed request, how long to wait before, and the limits of an account, which pause its models."""

from __future__ import annotations

import functools
import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from auditor.config import ENV_PREFIX, LimitsSection, ModelSection
from auditor.config.model_section import KEY_SEPARATOR
from auditor.domain import Answer, Attempt, Outcome, total_cost
from auditor.errors import RunInterrupted
from auditor.models.endpoint import embedded_slots
from auditor.models.failures import RequestFailure
from auditor.models.limiter import DEFAULT_INITIAL_CONCURRENCY, ConcurrencyLimiter, RateLimiter, SharedSlots
from auditor.models.request_queue import RequestGate

if TYPE_CHECKING:
    from auditor.models.model_connection import KeyConnection


INITIAL_BACKOFF_S = 1.0
MAX_BACKOFF_S = 60.0
MAX_DOUBLINGS = 30
"""Beyond these the backoff is at its maximum anyway, and larger powers are no floating-point numbers."""
MAX_PAUSE_JITTER = 0.1
"""Requests wait up to this share longer than the provider asks."""
MIN_BACKOFF_SHARE = 0.25
"""At least this share of the backoff is waited: a provider may refuse again and again after the wait it asked for."""

T = TypeVar("T", Answer, Attempt)


@dataclass(slots=True)
class CallProgress:
    """What has been sent for a call.

    Attributes:
        attempts: all requests that went out, in order.
        costs: of each request in US dollars; None if unknown.
        deadline: end of the call's time, by `time.monotonic`; None before its first request.
        n_tries: number of requests that count towards `limits.max_attempts`.
        cut_off_answer: an answer that was cut off while the model was thinking; None if there is none. It was paid for,
            so it is the answer if a request with more room for thinking is not answered.
        key: what the last request was sent with; None before the first.
    """

    attempts: list[Attempt]
    costs: list[float | None]
    deadline: float | None = None
    n_tries: int = 0
    cut_off_answer: Answer | None = None
    key: KeyConnection | None = None

    @classmethod
    def after(cls, earlier: Answer | None) -> CallProgress:
        """What has been sent for a call with an earlier answer; nothing if that is None."""
        return cls([], []) if earlier is None else cls(list(earlier.attempts), [earlier.cost_usd])

    def add(self, answer: Answer) -> None:
        """Add the attempt and the cost of an answer."""
        self.attempts += answer.attempts
        self.costs.append(answer.cost_usd)

    def count_try(self, answer: Answer) -> None:
        """Count the last request towards `limits.max_attempts`, unless it was refused by status 429."""
        self.n_tries += answer.outcome is not Outcome.RATE_LIMITED

    def append_error_reason(self, answer: Answer, reason: str) -> Answer:
        """Add the reason for not retrying to the error of the last attempt and of the answer, and return the answer."""
        if not reason:
            return answer
        if self.attempts:
            self.attempts[-1] = append_error_reason(self.attempts[-1], reason)
        return append_error_reason(answer, reason)

    def explain_unsent(self, answer: Answer, deadline_s: float | None) -> Answer:
        """The last answer, if no further request was sent; with the reason if the call was refused until its deadline.

        Args:
            answer: to the last request.
            deadline_s: time limit of the call, in seconds, which has passed; None if the run was stopped instead.

        Raises:
            RunInterrupted: no request was sent for the call.
        """
        if not self.attempts:
            raise RunInterrupted
        if answer.outcome is not Outcome.RATE_LIMITED or deadline_s is None:
            return answer
        return self.append_error_reason(answer, deadline_message(deadline_s))

    def complete(self, answer: Answer) -> Answer:
        """The answer, or the one that was cut off if that is none, with all attempts and their cost."""
        answer = answer if answer.outcome.is_answer else self.cut_off_answer or answer
        return replace(answer, attempts=tuple(self.attempts), cost_usd=total_cost(self.costs))


def backoff_delay(attempt: int, rng: random.Random) -> float:
    """Seconds to wait before the next attempt: exponential backoff with equal jitter, so that retries do not coincide.

    At least half of it is waited, so that a call does not use up its attempts within a short outage.

    Args:
        attempt: number of attempts so far, from 1.
        rng: source of the jitter.
    """
    backoff_s = _max_backoff(attempt)
    return rng.uniform(backoff_s / 2, backoff_s)


def _max_backoff(attempt: int) -> float:
    """Longest backoff in seconds after a number of attempts."""
    return float(min(MAX_BACKOFF_S, INITIAL_BACKOFF_S * 2.0 ** min(attempt - 1, MAX_DOUBLINGS)))


def pause_delay(n_refusals: int, retry_after_s: float, rng: random.Random) -> float:
    """Seconds for which requests are held back after a refusal: about as long as the provider asks, else the backoff.

    Both have jitter, so that several programs with one account do not send their probes together. The backoff has full
    jitter: refusals use up no attempts, and one request, the probe, is the price of a short pause.

    Args:
        n_refusals: number of consecutive refusals, from 1.
        retry_after_s: how long the provider asks to wait; 0 if it does not say.
        rng: source of the jitter.
    """
    if not retry_after_s:
        return rng.uniform(0, _max_backoff(n_refusals))
    min_pause_s = MIN_BACKOFF_SHARE * backoff_delay(n_refusals, rng)
    return max(retry_after_s * rng.uniform(1, 1 + MAX_PAUSE_JITTER), min_pause_s)


def no_retry_reason(
    failure: RequestFailure, wait_s: float, progress: CallProgress, limits: LimitsSection, deadline_s: float
) -> str | None:
    """Why a failed request is not retried: a message, empty if the error says enough; None if it is retried.

    Args:
        failure: of the last attempt.
        wait_s: wait before the next attempt, in seconds.
        progress: of the call.
        limits: of the audit.
        deadline_s: time limit of the call, in seconds.
    """
    retry_after_s = failure.retry_after_s or 0.0
    if retry_after_s > limits.max_retry_wait_s:
        return long_wait_message(retry_after_s, limits)
    if limits.max_attempts == 1 or progress.n_tries >= limits.max_attempts:
        return ""
    if time.monotonic() + wait_s < (progress.deadline or 0.0):
        return None
    if retry_after_s:
        deadline_limit = f"limits.deadline_s = {deadline_s:g} s is too short for it"
        return f"the provider asks to wait {format_duration(retry_after_s)}, and {deadline_limit}"
    return deadline_message(deadline_s) if failure.outcome is Outcome.RATE_LIMITED else ""


def deadline_message(deadline_s: float) -> str:
    """Message that a provider refused a call by status 429 until its time limit of `deadline_s` seconds."""
    return f"the provider refused it until limits.deadline_s = {deadline_s:g} s was over"


def explain_timeout(answer: Answer, deadline_s: float) -> Answer:
    """Name the time limit of a call that cut off its last request, `deadline_s` seconds, in place of the model's.

    A timeout that the server reports is left as it is.
    """
    if not answer.attempts or (answer.attempts[-1].http_status or 200) >= 300:
        return answer
    *earlier, attempt = answer.attempts
    error = f"no answer came before limits.deadline_s = {deadline_s:g} s was over"
    return replace(answer, error=error, attempts=(*earlier, replace(attempt, error=error)))


def append_error_reason(failed_request: T, reason: str) -> T:
    """Copy an answer or an attempt with the reason for not retrying added to its error."""
    return replace(failed_request, error="; ".join(filter(None, (failed_request.error, reason))))


def long_wait_message(retry_after_s: float, limits: LimitsSection) -> str:
    """Message that a provider asks to wait `retry_after_s` seconds, longer than the config's limit allows."""
    wait_limit = f"limits.max_retry_wait_s = {limits.max_retry_wait_s:g} s"
    return f"the provider asks to wait {format_duration(retry_after_s)}, longer than {wait_limit}"


class ModelSuspension:
    """Suspends requests to a model whose provider refuses all of them, or asks for a longer wait than is allowed.

    A single response may ask for too long a wait by mistake. Only if another one does so at least
    `limits.max_retry_wait_s` later, with no success between them, are requests suspended until the time that the
    provider named. If every request is refused by status 429 for the time limit of a call, they are suspended for that
    time: each further call would end in the same way.
    """

    def __init__(
        self,
        limits: LimitsSection,
        deadline_s: float,
        on_suspend: Callable[[str, float], None] = lambda cause, wait_s: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create the state of a model whose requests are not suspended.

        Args:
            limits: of the audit.
            deadline_s: time limit of a call to the model, in seconds.
            on_suspend: called when requests are suspended, with the cause, a clause, and the time in seconds.
            clock: monotonic time in seconds.
        """
        self._limits, self._deadline_s, self._on_suspend, self._clock = limits, deadline_s, on_suspend, clock
        # Refusals further apart are not consecutive, since the model was not asked meanwhile.
        self._max_gap_s = deadline_s + max(limits.max_retry_wait_s, MAX_BACKOFF_S)
        # Times of the first refusal since the last success, and of the first that asked for too long a wait.
        self._refused_since: float | None = None
        self._first_long_wait_at: float | None = None
        self._refused_at = self._suspended_until = -math.inf
        self._refuses_all = False

    def record_response(self, failure: RequestFailure | None) -> None:
        """Record how a request ended: its failure, or None for a success, which lifts a suspension."""
        now, max_wait_s = self._clock(), self._limits.max_retry_wait_s
        if failure is None:
            self._refused_since = self._first_long_wait_at = None
            self._suspended_until = -math.inf
        elif failure.outcome is Outcome.RATE_LIMITED:
            if self._refused_since is None or now - max(self._refused_at, self._suspended_until) > self._max_gap_s:
                self._refused_since = now
            self._refused_at = now
            if (retry_after_s := failure.retry_after_s or 0.0) > max_wait_s:
                self._first_long_wait_at = now if self._first_long_wait_at is None else self._first_long_wait_at
                if now - self._first_long_wait_at >= max_wait_s > 0:
                    self._suspend(retry_after_s, refuses_all=False)
            elif now - self._refused_since >= self._deadline_s:
                self._suspend(self._deadline_s, refuses_all=True)

    def record_account_refusal(self, failure: RequestFailure) -> None:
        """Record the refusal of a request to another model of the account, if this model is refused too."""
        if self._refused_since is not None:
            self.record_response(failure)

    def _suspend(self, wait_s: float, *, refuses_all: bool) -> None:
        """Suspend requests for a time in seconds."""
        was_suspended = self.cause is not None
        self._suspended_until, self._refuses_all = self._clock() + wait_s, refuses_all
        if not was_suspended:
            self._on_suspend(self.cause or "", wait_s)

    @property
    def cause(self) -> str | None:
        """Why requests are suspended now, as a clause; None if they are not."""
        if (remaining_s := self._suspended_until - self._clock()) <= 0:
            return None
        if self._refuses_all:
            return f"the provider has refused every request for {format_duration(self._deadline_s)} (status 429)"
        return long_wait_message(remaining_s, self._limits)


def pause_notice(account: str, wait_s: float, retry_after_s: float) -> str:
    """Message that requests to an account wait, and until when, in local time.

    Args:
        account: description of the account.
        wait_s: how long requests wait.
        retry_after_s: how long the provider asks to wait; 0 if it does not say.
    """
    resumes_at = datetime.now().astimezone() + timedelta(seconds=wait_s)
    # The date is shown for a wait of 12 hours or more.
    end_time = f"{resumes_at:%H:%M:%S}" if wait_s < 43_200 else f"{resumes_at:%Y-%m-%d %H:%M}"
    if not retry_after_s:
        return f"Waiting until {end_time}: {account} refuses requests (status 429)."
    cap_note = (
        f", limited by limits.max_retry_wait_s to {format_duration(wait_s)}" if retry_after_s > wait_s + 1 else ""
    )
    return f"Waiting until {end_time}: {account} asks for a pause of {format_duration(retry_after_s)}{cap_note}."


def suspension_notice(model_name: str, cause: str, wait_s: float, variable: str | None = None) -> str:
    """Message that calls to a model are not sent for a time, and what to do.

    Args:
        model_name: name of the model in the config.
        cause: why, as a clause.
        wait_s: for how long, in seconds.
        variable: the environment variable of the key that this holds for; None if it holds for the model.
    """
    if variable is not None:
        return f"The key in {variable} rests for {format_duration(wait_s)}: {cause}. '{model_name}' has other keys."
    return (
        f"'{model_name}' gets no requests for {format_duration(wait_s)}: {cause}. Its calls fail meanwhile as "
        "rate_limited. To request them later, run the same command again."
    )


def format_duration(seconds: float) -> str:
    """Format a duration for a message: `45 s`, `20 min`, `24 h`, `365 days`."""
    # Each entry: name of the unit, its length in seconds, and the duration in seconds from which a larger unit is used.
    for unit, unit_s, upper_bound_s in (("s", 1, 180), ("min", 60, 7200), ("h", 3600, 172_800)):
        if seconds < upper_bound_s:
            return f"{seconds / unit_s:.3g} {unit}"
    return f"{seconds / 86_400:,.0f} days"


# Called with the account, the old limit, the new limit and the reason.
LimitChangeCallback = Callable[[str, int, int, str], None]
# Called with a sentence for the user.
NotifyCallback = Callable[[str], None]


class AccountLimits:
    """What the models of one account share, and the limits of each of them.

    Attributes:
        suspensions: of its models.
    """

    def __init__(
        self, models: Sequence[ModelSection], limits: LimitsSection, notify: NotifyCallback, rng: random.Random
    ) -> None:
        """Create the shared limits.

        Args:
            models: of the account; see `ModelSection.rate_limit_key`.
            limits: of the audit.
            notify: called with a sentence when requests wait for long because a provider refuses them.
            rng: source of the jitter of pauses.
        """
        self.suspensions: list[ModelSuspension] = []
        self._limits, self._notify, self._rng = limits, notify, rng
        self._slots = SharedSlots(_max_account_requests(models))
        paused_together = [model for model in models if model.resolved_rate_limit_scope == "account"]
        self._gate = self._make_gate(describe_account(models[0])) if len(paused_together) > 1 else None
        self._rate_limited = [model for model in models if model.rate_limit_scope == "account"]
        self._rate_limiter: RateLimiter | None = None

    def make_limiter(
        self,
        model: ModelSection,
        on_limit_change: LimitChangeCallback,
        is_stopped: Callable[[], bool],
        model_slots: SharedSlots | None,
    ) -> ConcurrencyLimiter:
        """Create the limit on a model's requests in flight, with its pauses after 429.

        Args:
            model: of this account.
            on_limit_change: called when the number of requests that the model may have in flight changes.
            is_stopped: whether no request is sent to the model any more.
            model_slots: limit on the requests in flight with all keys of the model; None if it has one key.
        """
        description = f"{describe_account(model)} for {model.name.partition(KEY_SEPARATOR)[0]}"
        return ConcurrencyLimiter(
            self._make_gate(description),
            model.max_concurrency,
            initial_limit=embedded_slots(model.model) or DEFAULT_INITIAL_CONCURRENCY,
            clock=time.monotonic,
            on_change=functools.partial(on_limit_change, description),
            is_stopped=is_stopped,
            account_gate=self._gate if model.resolved_rate_limit_scope == "account" else None,
            shared_slots=[self._slots] if model_slots is None else [self._slots, model_slots],
        )

    def make_rate_limiter(self, model: ModelSection, is_stopped: Callable[[], bool]) -> RateLimiter:
        """The limits per minute of a model, or of all models of the account whose `rate_limit_scope` says so."""
        if model.rate_limit_scope != "account":
            return RateLimiter(model.rpm, model.tpm, is_stopped, time.monotonic)
        if self._rate_limiter is None:
            rpm, tpm = (
                next((limit for section in self._rate_limited if (limit := getattr(section, key))), None)
                for key in ("rpm", "tpm")
            )
            self._rate_limiter = RateLimiter(rpm, tpm, is_stopped, time.monotonic)
        return self._rate_limiter

    def _make_gate(self, account: str) -> RequestGate:
        """Create what holds requests back after a 429, for a described account or model."""

        def announce(wait_s: float, retry_after_s: float) -> None:
            """Notify the user of a long wait."""
            self._notify(pause_notice(account, wait_s, retry_after_s))

        return RequestGate(
            functools.partial(pause_delay, rng=self._rng),
            clock=time.monotonic,
            max_wait_s=self._limits.max_retry_wait_s,
            on_wait=announce,
        )


def _max_account_requests(account_models: Sequence[ModelSection]) -> int:
    """Requests that may be in flight for an account: the sum of the `concurrency` that its models set.

    If none sets it, the largest default. An embedded model's limit is at most the slots of its servers: requests that
    wait in a server would time out.
    """
    configured_limit = sum(model.concurrency for model in account_models if model.concurrency) or max(
        model.max_concurrency for model in account_models
    )
    slots = embedded_slots(account_models[0].model)
    return configured_limit if slots is None else min(configured_limit, slots)


def describe_account(section: ModelSection) -> str:
    """Describe a model's account for a message: provider, host, and the name of the key's variable."""
    provider, key_reference, base_url = section.rate_limit_key
    words = [
        provider,
        f"at {urlsplit(base_url).hostname}" if base_url else "",
        f"by {key_reference.removeprefix(ENV_PREFIX)}" if key_reference else "",
    ]
    return " ".join(filter(None, words))
