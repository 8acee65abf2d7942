"""The gateway to language models: sends every call with concurrency limits, retries, time limits and a budget.

A failure of a provider is returned as an answer with an outcome; only a model that cannot be used at all raises.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from auditor.config import Limits, ModelSection
from auditor.domain import Answer, Attempt, Call, Capability, LogprobMeasure, Outcome, total_cost
from auditor.errors import AuditorError, RunInterrupted
from auditor.models.budget import Budget, charge_unknown_attempts, estimate_max_tokens, require_prices
from auditor.models.capability_discovery import CapabilityRegistry, StructureDescriber, describe_schema, prepare_call
from auditor.models.capability_store import CapabilityStore, MemoryCapabilityStore
from auditor.models.dispatch import Dispatcher, LocalDispatcher
from auditor.models.failures import RequestFailure
from auditor.models.limiter import sleep_unless_stopped
from auditor.models.model_connection import LimitChangeCallback, ModelConnection, NotifyCallback, connect_models
from auditor.models.retries import append_error_reason, no_retry_reason, retry_delay

MAX_UNREACHABLE_ATTEMPTS = 2


class Gateway:
    """Sends calls to models. Create one per run, inside the event loop that uses it, and close it at the end."""

    def __init__(
        self,
        models: Iterable[ModelSection],
        limits: Limits,
        *,
        spent_usd: float = 0.0,
        seed: int = 0,
        stop_event: threading.Event | None = None,
        on_limit_change: LimitChangeCallback = lambda account, before, after, reason: None,
        dispatcher: Dispatcher | None = None,
        notify: NotifyCallback = lambda text: None,
        capability_store: CapabilityStore | None = None,
        describe_structure: StructureDescriber = describe_schema,
    ) -> None:
        """Resolve API keys and start embedded models; no request is sent yet.

        Args:
            models: all models that may be called, with unique names.
            limits: budget, attempts and deadline.
            spent_usd: what this audit has cost before.
            seed: of the jitter of retries.
            stop_event: once set, no request is sent any more.
            on_limit_change: called when the number of requests that an account may have in flight changes, with the
                account, the old limit, the new limit and the reason.
            dispatcher: sends the requests; a `LocalDispatcher` by default.
            notify: called with a sentence when requests wait for long because a provider asks for it.
            capability_store: of this audit; one in memory by default.
            describe_structure: describes a requested structure in words; called with the schema's name, the limit on
                the words of each of its texts, and the language. By default it returns the JSON schema.

        Raises:
            ConfigError: an API key is not in the environment, or there is a budget and a model's price is unknown.
            ModelSetupError: an embedded model cannot be started.
        """
        self._limits = limits
        self._rng = random.Random(seed)
        self._stop_event = stop_event or threading.Event()
        models = list(models)
        require_prices(models, limits)
        self._dispatcher = dispatcher or LocalDispatcher(models)
        self.budget = Budget(limits.budget_usd, spent_usd)
        self._capabilities = CapabilityRegistry(capability_store or MemoryCapabilityStore())
        self._describe_structure = describe_structure
        self._connections = connect_models(models, limits, on_limit_change, notify, self._stop_event.is_set)

    def needs_discovery(self, call: Call) -> bool:
        """Whether no response has shown yet what the server of a call's model accepts in a call like this one.

        The next such call that is completed finds it out, and is answered as any other.
        """
        return self._capabilities.needs_discovery(call)

    def capability(self, call: Call) -> Capability:
        """What the server of a call's model accepts, as far as it is known."""
        return self._capabilities.capability(call)

    def prepare_call(self, call: Call) -> Call:
        """Add to a call what its present capability requires, such as a description of the requested structure."""
        return prepare_call(call, self.capability(call), self._describe_structure)

    async def complete(self, call: Call) -> Answer:
        """Send a call to its model, with retries within the limits, and return the answer.

        Raises:
            RunInterrupted: the run was stopped before a request was sent for this call.
            AuditorError: no request can be sent; its `answer` has the attempts that were sent before.
            ModelSetupError: this run's first call to the model shows that it cannot be used at all (no server, a
                refused key, no such model). Raised so that nothing is spent on an audit that cannot be completed.
        """
        connection = self._connections[call.name]
        if call.measure is LogprobMeasure.CONTINUATION:
            # Computed on this machine: first and only attempt, without time limit, retries and budget.
            return (await self._dispatcher.send(call, 1, None)).answer
        if not connection.is_confirmed or self.needs_discovery(call):
            async with connection.first_request_lock:
                # Only the first call is sent under the lock; the others wait for its answer and are then sent together.
                if not connection.is_confirmed or self.needs_discovery(call):
                    return await self._send_first_call(connection, call)
        return await self._send_with_retries(connection, call)

    async def close(self) -> None:
        """Close the dispatcher."""
        await self._dispatcher.close()

    async def _send_first_call(self, connection: ModelConnection, call: Call) -> Answer:
        """Send the first call to a model, which shows whether the model can be used at all.

        Raises:
            ModelSetupError: it cannot be used.
        """
        capability = self.capability(call)
        answer = await self._send_with_retries(connection, call)
        if self.needs_discovery(call) and answer.outcome in (Outcome.OK, Outcome.UNPARSED, Outcome.TRUNCATED):
            await self._capabilities.confirm(call, capability)
        if connection.blocking_failure is not None:
            raise connection.unusable_error(connection.blocking_failure).with_answer(
                answer if answer.attempts else None
            )
        connection.is_confirmed = answer.outcome is not Outcome.OVER_BUDGET
        return answer

    async def _send_with_retries(self, connection: ModelConnection, call: Call) -> Answer:
        """Send a call until it succeeds, may not be retried, or a limit is reached; the answer has all attempts.

        Raises:
            RunInterrupted: the run was stopped before a request was sent for this call.
            AuditorError: no request can be sent.
        """
        # End of the call's time by `time.monotonic`; the costs are in US dollars per attempt, None if unknown.
        deadline: float | None = None
        attempts: list[Attempt] = []
        costs: list[float | None] = []
        answer = Answer(call.key, Outcome.TIMEOUT)
        while len(attempts) < self._limits.max_attempts:
            if (blocked_answer := connection.blocked_answer(call)) is not None:
                return replace(blocked_answer, attempts=tuple(attempts), cost_usd=total_cost(costs))
            estimated_usd = self.budget.estimate_max_cost(call, connection.price)
            if not self.budget.allows(estimated_usd):
                return _over_budget_answer(call, attempts, costs)
            async with self._request_slot(connection, call):
                is_before_deadline = deadline is None or time.monotonic() < deadline
                may_send = (
                    is_before_deadline and connection.blocked_answer(call) is None and not self._stop_event.is_set()
                )
                if may_send and not self.budget.reserve(estimated_usd):
                    return _over_budget_answer(call, attempts, costs)
                if may_send:
                    # The deadline starts with the first request: waiting for a first slot does not count.
                    deadline = deadline or time.monotonic() + self._limits.deadline_s
                    answer, failure = await self._send_attempt(connection, call, attempts, deadline)
                    self.budget.settle_reservation(estimated_usd, answer.cost_usd)
            if not may_send:  # blocked, stopped or past the deadline since it began to wait; earlier attempts are kept
                if connection.blocked_answer(call) is not None:
                    continue
                if attempts:
                    break
                raise RunInterrupted
            attempts += answer.attempts
            costs.append(answer.cost_usd)
            connection.record_response(failure, is_first_attempt=len(attempts) == 1)
            reason = await self._wait_before_retry(connection, failure, len(attempts), deadline or 0.0)
            if reason:
                answer, attempts[-1] = append_error_reason(answer, reason), append_error_reason(attempts[-1], reason)
            if reason is not None:
                break
        return replace(answer, attempts=tuple(attempts), cost_usd=total_cost(costs))

    async def _wait_before_retry(
        self, connection: ModelConnection, failure: RequestFailure | None, n_attempts: int, deadline: float
    ) -> str | None:
        """Wait before the next attempt and return None; if there will be no next attempt, return why.

        The reason is added to the call's error. It is empty after a success, or if the error says enough by itself.

        Args:
            connection: to the model.
            failure: of the last attempt; None if it succeeded.
            n_attempts: number of attempts so far.
            deadline: end of the call's time, by `time.monotonic`.
        """
        if failure is None or not failure.is_retryable:
            return ""
        wait_s, retry_after_s = retry_delay(failure, n_attempts, self._rng), failure.retry_after_s or 0.0
        reason = no_retry_reason(failure, wait_s, n_attempts, deadline, self._limits)
        if reason is None:
            connection.limiter.announce_wait(retry_after_s, retry_after_s)
            await sleep_unless_stopped(wait_s, self._stop_event.is_set)
        return "" if reason is None and self._stop_event.is_set() else reason

    @asynccontextmanager
    async def _request_slot(self, connection: ModelConnection, call: Call) -> AsyncIterator[None]:
        """Wait until the rate and concurrency limits allow a request, or until the run is stopped."""
        await connection.rate_limiter.acquire(estimate_max_tokens(call))
        async with connection.slots, connection.limiter.slot():
            yield

    async def _send_attempt(
        self, connection: ModelConnection, call: Call, earlier_attempts: Sequence[Attempt], deadline: float
    ) -> tuple[Answer, RequestFailure | None]:
        """Send one request; block the model if the failure shows that every further request would fail too.

        Returns:
            The answer with this one attempt, and the failure; None for a success.

        Raises:
            AuditorError: no request can be sent; its `answer` has the earlier attempts.
        """
        # The total limit is positive even if the deadline has just passed.
        total_timeout_s, attempt_number = (
            max(0.01, min(connection.section.timeout_s, deadline - time.monotonic())),
            len(earlier_attempts) + 1,
        )
        try:
            reply = await self._dispatcher.send(
                self.prepare_call(call), attempt_number, total_timeout_s, self.capability(call)
            )
        except AuditorError as error:
            if not earlier_attempts:
                raise
            raise error.with_answer(
                Answer(call.key, earlier_attempts[-1].outcome, attempts=tuple(earlier_attempts))
            ) from error
        failure = reply.failure
        if failure and (
            failure.blocks_model
            or (reply.unreachable and not connection.is_confirmed and attempt_number >= MAX_UNREACHABLE_ATTEMPTS)
        ):
            connection.blocking_failure = failure
        return charge_unknown_attempts(call, connection.price, reply.answer), failure


def _over_budget_answer(call: Call, attempts: Sequence[Attempt], costs: Sequence[float | None]) -> Answer:
    """The answer to a call for which the budget allows no further request, with the attempts made so far."""
    error = "the budget is spent"
    return Answer(call.key, Outcome.OVER_BUDGET, error=error, attempts=tuple(attempts), cost_usd=total_cost(costs))
