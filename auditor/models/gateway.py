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
from auditor.domain import Answer, Attempt, Call, Measure, Outcome, total_cost
from auditor.errors import AuditorError, Interrupted, ModelSetupError
from auditor.models.budget import Budget, charge_estimate, require_prices, size
from auditor.models.dispatch import Sender, Sending
from auditor.models.endpoint import embedded_slots, price_of
from auditor.models.failures import Failure
from auditor.models.limiter import START, Limiter, Rate, pause
from auditor.models.litellm_client import TokenPrice
from auditor.models.provider_request import failed
from auditor.models.retries import Suspension, pause_notice, wait_before_retry, why_no_retry, with_reason

UNREACHABLE_AFTER = 2
OnLimit = Callable[[str, int, int, str], None]
Noted = Callable[[str], None]


@dataclass(slots=True)
class _Line:
    """One model's connection: its settings, price, limiter, and what blocks it."""

    section: ModelSection
    price: TokenPrice | None
    limiter: Limiter
    slots: asyncio.Semaphore
    rate: Rate
    contact: asyncio.Lock
    suspension: Suspension
    reached: bool = False
    blocked: Failure | None = None

    def refuse(self, call: Call) -> Answer | None:
        """What comes of a call for which no request may go out; None where one may."""
        if self.blocked is not None:
            return failed(call, self.blocked)
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
        stop: threading.Event | None = None,
        on_limit: OnLimit = lambda account, before, after, why: None,
        sender: Sender | None = None,
        noted: Noted = lambda text: None,
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
        self._stop = stop or threading.Event()
        models = list(models)
        require_prices(models, limits)
        self._sender = sender or Sending(models)
        self.budget = Budget(limits.budget_usd, spent_usd)
        self._lines: dict[str, _Line] = {}
        limiters = _limiters(models, limits, on_limit, noted, self._stop.is_set)
        for model in models:
            slots = asyncio.Semaphore(model.most_in_flight)
            rate, contact = Rate(model.rpm, model.tpm, self._stop.is_set), asyncio.Lock()
            self._lines[model.name] = _Line(
                model, price_of(model), limiters[model.account], slots, rate, contact, Suspension(limits)
            )

    async def complete(self, call: Call) -> Answer:
        """Ask, and ask again where that can help, within the limits.

        Raises:
            Interrupted: nothing is to go out any more, and nothing has for this call.
            AuditorError: no request can be sent; its `answer` has the attempts that went out before.
            ModelSetupError: the first request of this run to the model shows that it cannot be used at all (no server,
                a refused key, no such model), so that nothing is spent on an audit that cannot be whole.
        """
        line = self._lines[call.name]
        if call.measure is Measure.CONTINUATION:
            return (await self._sender.send(call, 1, None)).answer
        if not line.reached:
            async with line.contact:
                if not line.reached:  # the first; all others wait for what it finds, and then go out together
                    return await self._first(line, call)
        return await self._ask(line, call)

    async def close(self) -> None:
        """Close what sends."""
        await self._sender.close()

    async def _first(self, line: _Line, call: Call) -> Answer:
        """Whether the model can be used at all."""
        answer = await self._ask(line, call)
        if line.blocked is not None:
            raise _unusable(line, line.blocked).with_answer(answer if answer.attempts else None)
        line.reached = answer.outcome is not Outcome.OVER_BUDGET
        return answer

    async def _ask(self, line: _Line, call: Call) -> Answer:
        deadline: float | None = None
        attempts: list[Attempt] = []
        costs: list[float | None] = []
        answer = Answer(call.key, Outcome.TIMEOUT)
        while len(attempts) < self._limits.max_attempts:
            if (refused := line.refuse(call)) is not None:
                return replace(refused, attempts=tuple(attempts), cost_usd=total_cost(costs))
            estimate = self.budget.estimate(call, line.price)
            if not self.budget.allows(estimate):
                return _over_budget(call, attempts, costs)
            async with self._turn(line, call):
                in_time = deadline is None or time.monotonic() < deadline
                goes = in_time and line.refuse(call) is None and not self._stop.is_set()
                if goes and not self.budget.reserve(estimate):
                    return _over_budget(call, attempts, costs)
                if goes:
                    # Waiting for a first slot is our own doing, and no part of the call's time.
                    deadline = deadline or time.monotonic() + self._limits.deadline_s
                    answer, failure = await self._request(line, call, attempts, deadline)
                    self.budget.settle(estimate, answer.cost_usd)
            if not goes:  # much may have happened while it waited; what was paid for before is kept
                if line.refuse(call) is not None:
                    continue
                if attempts:
                    break
                raise Interrupted
            attempts += answer.attempts
            costs.append(answer.cost_usd)
            _tell(line, failure, first=len(attempts) == 1)
            reason = await self._wait(line, failure, len(attempts), deadline or 0.0)
            if reason:
                answer, attempts[-1] = with_reason(answer, reason), with_reason(attempts[-1], reason)
            if reason is not None:
                break
        return replace(answer, attempts=tuple(attempts), cost_usd=total_cost(costs))

    async def _wait(self, line: _Line, failure: Failure | None, attempts: int, deadline: float) -> str | None:
        """Wait before another try; where there is none, the reason, which may be empty."""
        if failure is None or not failure.retry:
            return ""
        wait_s, asked_s = wait_before_retry(failure, attempts, self._rng), failure.retry_after_s or 0.0
        reason = why_no_retry(failure, wait_s, attempts, deadline, self._limits)
        if reason is None:
            line.limiter.announce(asked_s, asked_s)
            await pause(wait_s, self._stop.is_set)
        return "" if reason is None and self._stop.is_set() else reason

    @asynccontextmanager
    async def _turn(self, line: _Line, call: Call) -> AsyncIterator[None]:
        """Wait until a request may go out, or none may any more."""
        await line.rate.take(size(call))
        async with line.slots, line.limiter.slot():
            yield

    async def _request(
        self, line: _Line, call: Call, before: Sequence[Attempt], deadline: float
    ) -> tuple[Answer, Failure | None]:
        limit, number = max(0.01, min(line.section.timeout_s, deadline - time.monotonic())), len(before) + 1
        try:
            reply = await self._sender.send(call, number, limit)
        except AuditorError as error:
            if not before:
                raise
            raise error.with_answer(Answer(call.key, before[-1].outcome, attempts=tuple(before))) from error
        failure = reply.failure
        if failure and (failure.blocks or (reply.unreachable and not line.reached and number >= UNREACHABLE_AFTER)):
            line.blocked = failure
        return _charged(call, line.price, reply.answer), failure


def _charged(call: Call, price: TokenPrice | None, answer: Answer) -> Answer:
    """The answer with a charge for requests of which nobody heard again, because the process that sent them died."""
    if not any(attempt.estimated is None for attempt in answer.attempts):
        return answer
    charge = charge_estimate(call, price)
    attempts = [
        replace(a, cost_usd=charge.usd, estimated=charge.estimated) if a.estimated is None else a
        for a in answer.attempts
    ]
    return replace(answer, attempts=tuple(attempts), cost_usd=total_cost([a.cost_usd for a in attempts]))


def _over_budget(call: Call, attempts: Sequence[Attempt], costs: Sequence[float | None]) -> Answer:
    why = "the budget is spent"
    return Answer(call.key, Outcome.OVER_BUDGET, error=why, attempts=tuple(attempts), cost_usd=total_cost(costs))


def _limiters(
    models: Sequence[ModelSection], limits: Limits, on_limit: OnLimit, noted: Noted, stopped: Callable[[], bool]
) -> dict[tuple[str, str | None, str | None], Limiter]:
    """One for each account. What waits at a server of few slots would run into its time limit, so they bound it too."""
    found = {}
    for account in {m.account for m in models}:
        mine = [m for m in models if m.account == account]
        most = sum(m.concurrency for m in mine if m.concurrency) or max(m.most_in_flight for m in mine)
        slots = embedded_slots(mine[0].model)
        at_most, start = (most, START) if slots is None else (min(most, slots), slots)
        found[account] = Limiter(
            at_most,
            start=start,
            changed=functools.partial(on_limit, _account(mine[0])),
            stopped=stopped,
            max_wait_s=limits.max_retry_wait_s,
            waits=functools.partial(_announce, noted, _account(mine[0])),
        )
    return found


def _announce(noted: Noted, account: str, wait_s: float, asked_s: float) -> None:
    noted(pause_notice(account, wait_s, asked_s))


def _account(section: ModelSection) -> str:
    """An account in words, without its key."""
    provider, key, server = section.account
    words = [
        provider,
        f"at {urlsplit(server).hostname}" if server else "",
        f"by {key.removeprefix(ENV_PREFIX)}" if key else "",
    ]
    return " ".join(filter(None, words))


def _tell(line: _Line, failure: Failure | None, *, first: bool) -> None:
    """What a request says of its model and its account; one that went well only after others failed says no more."""
    line.suspension.update(failure)
    if failure is None:
        if first:
            line.limiter.succeeded()
    elif failure.outcome is Outcome.RATE_LIMITED:
        line.limiter.throttled(failure.retry_after_s)
    elif failure.outcome in (Outcome.SERVER_ERROR, Outcome.TIMEOUT):
        line.limiter.troubled()


def _unusable(line: _Line, failure: Failure) -> ModelSetupError:
    where = f"model '{line.section.name}' ({line.section.model}"
    where += f" at {line.section.api_base})" if line.section.api_base else ")"
    mends = {
        402: "Top up the account, or use another key.",
        429: "The account's quota is spent: raise it, wait until it is renewed, or use another key.",
        401: f"Check the key that {line.section.api_key or 'the provider'} names.",
        403: "Check that the key may use this model.",
        404: "Check the model's name and the server's address.",
    }
    mend = mends.get(failure.http_status or 0, "Check that the server runs and that the address is right.")
    return ModelSetupError(
        f"{where} cannot be used: {failure.error.rstrip(' .')}.", f"{mend} Nothing recorded is lost."
    )
