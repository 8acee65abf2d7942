"""The gateway: every call to a language model goes out here, and comes back as an answer, whatever happened.

It owns concurrency, retries, time limits, prices and the budget. It never raises for what a provider does: a failure is
a value with an outcome.
"""

from __future__ import annotations

import asyncio
import functools
import random
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from auditor.config import ENV_PREFIX, Limits, ModelSection
from auditor.domain import Answer, Attempt, Call, LogprobMeasure, Outcome, total_cost
from auditor.errors import AuditorError, ModelSetupError, RunInterrupted
from auditor.models.budget import Budget, charge_estimate, estimate_max_tokens, require_prices
from auditor.models.dispatch import Dispatcher, LocalDispatcher
from auditor.models.endpoint import embedded_slots, token_price
from auditor.models.failures import RequestFailure
from auditor.models.limiter import DEFAULT_INITIAL_CONCURRENCY, ConcurrencyLimiter, RateLimiter, sleep_unless_stopped
from auditor.models.litellm_client import TokenPrice
from auditor.models.provider_request import failed_answer
from auditor.models.retries import ModelSuspension, append_error_reason, no_retry_reason, pause_notice, retry_delay

MAX_UNREACHABLE_ATTEMPTS = 2
LimitChangeCallback = Callable[[str, int, int, str], None]
NotifyCallback = Callable[[str], None]


@dataclass(slots=True)
class _ModelConnection:
    """One model's connection: its settings, price, limiter, and what blocks it."""

    section: ModelSection
    price: TokenPrice | None
    limiter: ConcurrencyLimiter
    slots: asyncio.Semaphore
    rate_limiter: RateLimiter
    first_request_lock: asyncio.Lock
    suspension: ModelSuspension
    is_confirmed: bool = False
    blocking_failure: RequestFailure | None = None

    def blocked_answer(self, call: Call) -> Answer | None:
        """What comes of a call for which no request may go out; None where one may."""
        if self.blocking_failure is not None:
            return failed_answer(call, self.blocking_failure)
        reason = self.suspension.reason
        return None if reason is None else Answer(call.key, Outcome.RATE_LIMITED, error=reason)


class Gateway:
    """Asks models. Make one a run, inside the event loop that it is used in, and close it at the end."""

    def __init__(
        self,
        models: Iterable[ModelSection],
        limits: Limits,
        *,
        spent_usd: float = 0.0,
        seed: int = 0,
        stop_event: threading.Event | None = None,
        on_limit_change: LimitChangeCallback = lambda account, before, after, why: None,
        dispatcher: Dispatcher | None = None,
        notify: NotifyCallback = lambda text: None,
    ) -> None:
        """Resolve keys and start embedded models; no request goes out yet.

        Args:
            models: all models that may be asked, with names of their own.
            limits: budget, attempts and deadline.
            spent_usd: what this audit has cost before.
            seed: of the retries' jitter.
            stop: once set, nothing goes out any more.
            on_limit: is told when the number of requests that an account may have in flight changes: account, from, to,
                why.
            sender: sends the requests; this process if not given.
            noted: is called with a sentence when requests wait for long because a provider asks for it.

        Raises:
            ConfigError: a key is not in the environment, or there is a budget that an unknown price would pass by.
            ModelSetupError: an embedded model cannot be started.
        """
        self._limits = limits
        self._rng = random.Random(seed)
        self._stop_event = stop_event or threading.Event()
        models = list(models)
        require_prices(models, limits)
        self._dispatcher = dispatcher or LocalDispatcher(models)
        self.budget = Budget(limits.budget_usd, spent_usd)
        self._connections: dict[str, _ModelConnection] = {}
        limiters = _build_limiters(models, limits, on_limit_change, notify, self._stop_event.is_set)
        for model in models:
            slots = asyncio.Semaphore(model.max_concurrency)
            rate, contact = RateLimiter(model.rpm, model.tpm, self._stop_event.is_set), asyncio.Lock()
            self._connections[model.name] = _ModelConnection(
                model, token_price(model), limiters[model.rate_limit_key], slots, rate, contact, ModelSuspension(limits)
            )

    async def complete(self, call: Call) -> Answer:
        """Ask, and ask again where that can help, within the limits.

        Raises:
            Interrupted: nothing is to go out any more, and nothing has for this call.
            AuditorError: no request can be sent; its `answer` has the attempts that went out before.
            ModelSetupError: the first request of this run to the model shows that it cannot be used at all (no server,
                a refused key, no such model), so that nothing is spent on an audit that cannot be whole.
        """
        line = self._connections[call.name]
        if call.measure is LogprobMeasure.CONTINUATION:
            return (await self._dispatcher.send(call, 1, None)).answer
        if not line.is_confirmed:
            async with line.first_request_lock:
                if not line.is_confirmed:  # the first; all others wait for what it finds, and then go out together
                    return await self._send_first_call(line, call)
        return await self._send_with_retries(line, call)

    async def close(self) -> None:
        """Close what sends."""
        await self._dispatcher.close()

    async def _send_first_call(self, connection: _ModelConnection, call: Call) -> Answer:
        """Whether the model can be used at all."""
        answer = await self._send_with_retries(connection, call)
        if connection.blocking_failure is not None:
            raise _unusable_model_error(connection, connection.blocking_failure).with_answer(
                answer if answer.attempts else None
            )
        connection.is_confirmed = answer.outcome is not Outcome.OVER_BUDGET
        return answer

    async def _send_with_retries(self, connection: _ModelConnection, call: Call) -> Answer:
        deadline: float | None = None
        attempts: list[Attempt] = []
        costs: list[float | None] = []
        answer = Answer(call.key, Outcome.TIMEOUT)
        while len(attempts) < self._limits.max_attempts:
            if (refused := connection.blocked_answer(call)) is not None:
                return replace(refused, attempts=tuple(attempts), cost_usd=total_cost(costs))
            estimate = self.budget.estimate_max_cost(call, connection.price)
            if not self.budget.allows(estimate):
                return _over_budget_answer(call, attempts, costs)
            async with self._request_slot(connection, call):
                in_time = deadline is None or time.monotonic() < deadline
                goes = in_time and connection.blocked_answer(call) is None and not self._stop_event.is_set()
                if goes and not self.budget.reserve(estimate):
                    return _over_budget_answer(call, attempts, costs)
                if goes:
                    # Waiting for a first slot is our own doing, and no part of the call's time.
                    deadline = deadline or time.monotonic() + self._limits.deadline_s
                    answer, failure = await self._send_attempt(connection, call, attempts, deadline)
                    self.budget.settle_reservation(estimate, answer.cost_usd)
            if not goes:  # much may have happened while it waited; what was paid for before is kept
                if connection.blocked_answer(call) is not None:
                    continue
                if attempts:
                    break
                raise RunInterrupted
            attempts += answer.attempts
            costs.append(answer.cost_usd)
            _update_limits(connection, failure, is_first_attempt=len(attempts) == 1)
            reason = await self._wait_before_retry(connection, failure, len(attempts), deadline or 0.0)
            if reason:
                answer, attempts[-1] = append_error_reason(answer, reason), append_error_reason(attempts[-1], reason)
            if reason is not None:
                break
        return replace(answer, attempts=tuple(attempts), cost_usd=total_cost(costs))

    async def _wait_before_retry(
        self, connection: _ModelConnection, failure: RequestFailure | None, n_attempts: int, deadline: float
    ) -> str | None:
        """Wait before another try; where there is none, the reason, which may be empty."""
        if failure is None or not failure.is_retryable:
            return ""
        wait_s, asked_s = retry_delay(failure, n_attempts, self._rng), failure.retry_after_s or 0.0
        reason = no_retry_reason(failure, wait_s, n_attempts, deadline, self._limits)
        if reason is None:
            connection.limiter.announce_wait(asked_s, asked_s)
            await sleep_unless_stopped(wait_s, self._stop_event.is_set)
        return "" if reason is None and self._stop_event.is_set() else reason

    @asynccontextmanager
    async def _request_slot(self, connection: _ModelConnection, call: Call) -> AsyncIterator[None]:
        """Wait until a request may go out, or none may any more."""
        await connection.rate_limiter.acquire(estimate_max_tokens(call))
        async with connection.slots, connection.limiter.slot():
            yield

    async def _send_attempt(
        self, connection: _ModelConnection, call: Call, earlier_attempts: Sequence[Attempt], deadline: float
    ) -> tuple[Answer, RequestFailure | None]:
        limit, number = (
            max(0.01, min(connection.section.timeout_s, deadline - time.monotonic())),
            len(earlier_attempts) + 1,
        )
        try:
            reply = await self._dispatcher.send(call, number, limit)
        except AuditorError as error:
            if not earlier_attempts:
                raise
            raise error.with_answer(
                Answer(call.key, earlier_attempts[-1].outcome, attempts=tuple(earlier_attempts))
            ) from error
        failure = reply.failure
        if failure and (
            failure.blocks_model
            or (reply.unreachable and not connection.is_confirmed and number >= MAX_UNREACHABLE_ATTEMPTS)
        ):
            connection.blocking_failure = failure
        return _charge_unknown_attempts(call, connection.price, reply.answer), failure


def _charge_unknown_attempts(call: Call, price: TokenPrice | None, answer: Answer) -> Answer:
    """The answer with a charge for requests of which nobody heard again, because the process that sent them died."""
    if not any(attempt.estimated is None for attempt in answer.attempts):
        return answer
    charge = charge_estimate(call, price)
    attempts = [
        replace(a, cost_usd=charge.usd, estimated=charge.estimated) if a.estimated is None else a
        for a in answer.attempts
    ]
    return replace(answer, attempts=tuple(attempts), cost_usd=total_cost([a.cost_usd for a in attempts]))


def _over_budget_answer(call: Call, attempts: Sequence[Attempt], costs: Sequence[float | None]) -> Answer:
    why = "the budget is spent"
    return Answer(call.key, Outcome.OVER_BUDGET, error=why, attempts=tuple(attempts), cost_usd=total_cost(costs))


def _build_limiters(
    models: Sequence[ModelSection],
    limits: Limits,
    on_limit_change: LimitChangeCallback,
    notify: NotifyCallback,
    is_stopped: Callable[[], bool],
) -> dict[tuple[str, str | None, str | None], ConcurrencyLimiter]:
    """One for each account. What waits at a server of few slots would run into its time limit, so they bound it too."""
    found = {}
    for account in {m.rate_limit_key for m in models}:
        mine = [m for m in models if m.rate_limit_key == account]
        most = sum(m.concurrency for m in mine if m.concurrency) or max(m.max_concurrency for m in mine)
        slots = embedded_slots(mine[0].model)
        at_most, start = (most, DEFAULT_INITIAL_CONCURRENCY) if slots is None else (min(most, slots), slots)
        found[account] = ConcurrencyLimiter(
            at_most,
            initial_limit=start,
            on_change=functools.partial(on_limit_change, _describe_account(mine[0])),
            is_stopped=is_stopped,
            max_wait_s=limits.max_retry_wait_s,
            on_wait=functools.partial(_notify_pause, notify, _describe_account(mine[0])),
        )
    return found


def _notify_pause(notify: NotifyCallback, account: str, wait_s: float, retry_after_s: float) -> None:
    notify(pause_notice(account, wait_s, retry_after_s))


def _describe_account(section: ModelSection) -> str:
    """An account in words, without its key."""
    provider, key, server = section.rate_limit_key
    words = [
        provider,
        f"at {urlsplit(server).hostname}" if server else "",
        f"by {key.removeprefix(ENV_PREFIX)}" if key else "",
    ]
    return " ".join(filter(None, words))


def _update_limits(connection: _ModelConnection, failure: RequestFailure | None, *, is_first_attempt: bool) -> None:
    """What a request says of its model and its account; one that went well only after others failed says no more."""
    connection.suspension.record_response(failure)
    if failure is None:
        if is_first_attempt:
            connection.limiter.record_success()
    elif failure.outcome is Outcome.RATE_LIMITED:
        connection.limiter.record_throttling(failure.retry_after_s)
    elif failure.outcome in (Outcome.SERVER_ERROR, Outcome.TIMEOUT):
        connection.limiter.record_server_error()


def _unusable_model_error(connection: _ModelConnection, failure: RequestFailure) -> ModelSetupError:
    where = f"model '{connection.section.name}' ({connection.section.model}"
    where += f" at {connection.section.api_base})" if connection.section.api_base else ")"
    mends = {
        402: "Top up the account, or use another key.",
        429: "The account's quota is spent: raise it, wait until it is renewed, or use another key.",
        401: f"Check the key that {connection.section.api_key or 'the provider'} names.",
        403: "Check that the key may use this model.",
        404: "Check the model's name and the server's address.",
    }
    mend = mends.get(failure.http_status or 0, "Check that the server runs and that the address is right.")
    return ModelSetupError(
        f"{where} cannot be used: {failure.error.rstrip(' .')}.", f"{mend} Nothing recorded is lost."
    )
