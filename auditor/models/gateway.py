"""The gateway to language models: sends every call with concurrency limits, retries, time limits and a budget.

A failure of a provider is returned as an answer with an outcome; only a model that cannot be used at all raises.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace

from auditor.config import Limits, ModelSection
from auditor.domain import Answer, Call, Capability, CapabilityKey, LogprobMeasure, Outcome
from auditor.errors import AuditorError, RunInterrupted
from auditor.models.budget import Budget, charge_unknown_attempts, estimate_max_tokens, require_prices
from auditor.models.capability_registry import CapabilityRegistry, StructureDescriber, describe_schema, prepare_call
from auditor.models.capability_store import CapabilityStore, MemoryCapabilityStore
from auditor.models.dispatch import Dispatcher, LocalDispatcher
from auditor.models.limiter import sleep_unless_stopped
from auditor.models.model_connection import LimitChangeCallback, ModelConnection, NotifyCallback, connect_models
from auditor.models.provider_request import ProviderReply
from auditor.models.retries import CallProgress, no_retry_reason, retry_delay

MAX_UNREACHABLE_ATTEMPTS = 2
MAX_INCONCLUSIVE_CALLS = 4
"""Failed calls to a model, one after another, after which further calls no longer wait for a first success."""


ACCEPTED_OUTCOMES = (Outcome.OK, Outcome.REFUSED, Outcome.TRUNCATED, Outcome.UNPARSED)
"""Outcomes by which a successful response shows that the server accepts the request; an HTTP error shows nothing."""


class Gateway:
    """Sends calls to models. Create one per run, inside the event loop that uses it.

    Close it at the end, unless the dispatcher that it was created with is closed by itself.
    """

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
            on_limit_change: called when the number of requests that a model may have in flight changes, with its
                account, the old limit, the new limit and the reason.
            dispatcher: sends the requests; a `LocalDispatcher` by default.
            notify: called with a sentence when requests wait for long because a provider asks for it, at the first
                failure of each kind, and when a model is stopped.
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
        # Models of one server and effort share a capability, so only one of them finds it out at a time.
        self._discovery_locks: defaultdict[CapabilityKey, asyncio.Lock] = defaultdict(asyncio.Lock)
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
        async with connection.failures.streak(call.purpose).slot():
            answer = await self._send_confirmed(connection, call)
            self.record_outcome(call, answer)
        return answer

    def record_outcome(self, call: Call, answer: Answer) -> None:
        """Count how a call ended; after several equal failures in a row, calls of its purpose are not sent any more."""
        if not self._stop_event.is_set():  # it cuts retries short
            self._connections[call.name].failures.record(call, answer)

    def stopped_answer(self, call: Call) -> Answer | None:
        """The answer to a call that is not sent because its model was stopped for its purpose; None if it may be."""
        return self._connections[call.name].failures.streak(call.purpose).stopped_answer(call)

    async def _send_confirmed(self, connection: ModelConnection, call: Call) -> Answer:
        """Send a call; wait until an earlier call has shown that the model can be used and what its server accepts."""
        if connection.is_confirmed and not self.needs_discovery(call):
            return await self._send_with_retries(connection, call)
        async with connection.first_request_lock, self._discovery_locks[call.capability_key]:
            # Only the first call is sent under the lock; the others wait for its answer and are then sent together.
            is_first = not connection.is_confirmed or self.needs_discovery(call)
            if is_first and connection.n_inconclusive_calls < MAX_INCONCLUSIVE_CALLS:
                return await self._send_first_call(connection, call)
        if is_first:
            return await self._send_first_call(connection, call)
        return await self._send_with_retries(connection, call)

    async def close(self) -> None:
        """Close the dispatcher."""
        await self._dispatcher.close()

    async def _send_first_call(self, connection: ModelConnection, call: Call) -> Answer:
        """Send a call that shows whether the model can be used at all, and what its server accepts.

        Raises:
            ModelSetupError: this run's first call shows that the model cannot be used.
        """
        was_confirmed = connection.is_confirmed
        answer = await self._send_with_retries(connection, call)
        if connection.blocking_failure is not None and not was_confirmed:
            raise connection.unusable_error(connection.blocking_failure).with_answer(
                answer if answer.attempts else None
            )
        connection.is_confirmed = was_confirmed or answer.outcome is not Outcome.OVER_BUDGET
        if not self.needs_discovery(call):
            return answer
        if not _shows_acceptance(answer):
            connection.n_inconclusive_calls += 1
            return answer
        connection.n_inconclusive_calls = 0

        async def resend(earlier: Answer) -> Answer:
            """Send the call once more, and add its attempts to those of the answer so far."""
            return await self._send_with_retries(connection, call, earlier)

        try:
            return await self._capabilities.conclude(call, answer, resend)
        except AuditorError as error:
            raise error.with_answer(error.answer or answer) from error

    async def _send_with_retries(
        self, connection: ModelConnection, call: Call, earlier: Answer | None = None
    ) -> Answer:
        """Send a call until it succeeds, may not be retried, or a limit is reached; the answer has all attempts.

        Requests that find out what the server accepts are attempts, but no retries.

        Args:
            connection: to the model.
            call: the call to send.
            earlier: an answer to the same call, whose attempts and cost are added; None for none.

        Raises:
            RunInterrupted: the run was stopped before a request was sent for this call.
            AuditorError: no request can be sent.
        """
        progress = CallProgress(*((list(earlier.attempts), [earlier.cost_usd]) if earlier else ([], [])))
        answer = Answer(call.key, Outcome.TIMEOUT)
        # Has been paid for, so it is the answer if a request with more room for thinking is not answered.
        cut_off_answer: Answer | None = None
        while progress.n_tries < self._limits.max_attempts:
            if (blocked_answer := connection.blocked_answer(call)) is not None:
                return progress.complete(cut_off_answer or blocked_answer)
            capability = self.capability(call)
            reply = await self._send_when_allowed(connection, call, capability, progress)
            if reply is None:  # blocked, stopped or past the deadline since it began to wait; earlier attempts are kept
                if connection.blocked_answer(call) is not None:
                    continue
                if progress.attempts:
                    break
                raise RunInterrupted
            answer = reply.answer
            if answer.outcome is Outcome.OVER_BUDGET:
                return progress.complete(cut_off_answer or answer)
            progress.add(answer)
            if self._capabilities.step(call, capability, reply):
                if answer.outcome is Outcome.TRUNCATED:
                    cut_off_answer = answer
                if cut_off_answer is None or self.capability(call).thinking_tokens >= capability.thinking_tokens:
                    continue
                break  # the server refuses more room for thinking
            progress.n_tries += 1
            reason = await self._wait_before_retry(connection, reply, progress)
            if reason:
                answer = progress.append_error_reason(answer, reason)
            if reason is not None:
                break
        return progress.complete(answer if answer.outcome.is_answer else cut_off_answer or answer)

    async def _send_when_allowed(
        self, connection: ModelConnection, call: Call, capability: Capability, progress: CallProgress
    ) -> ProviderReply | None:
        """Send one request as soon as the limits allow it, and return the reply.

        Returns:
            The reply; one with the outcome `over_budget` and no attempt if the budget does not allow the request; None
            if it may not be sent, since the model is blocked, the run is stopped, or the call's time has passed.

        Raises:
            AuditorError: no request can be sent; its `answer` has the earlier attempts.
        """
        over_budget = ProviderReply(Answer(call.key, Outcome.OVER_BUDGET, error="the budget is spent"), None)
        estimated_usd = self.budget.estimate_max_cost(call, connection.price, capability)
        if not self.budget.allows(estimated_usd):
            return over_budget
        async with self._request_slot(connection, call, capability) as progress.sent_at:
            is_before_deadline = progress.deadline is None or time.monotonic() < progress.deadline
            if not is_before_deadline or connection.blocked_answer(call) is not None or self._stop_event.is_set():
                return None
            if not self.budget.reserve(estimated_usd):
                return over_budget
            # The deadline starts with the first request: waiting for a first slot does not count.
            timeout_s = connection.section.resolved_timeout_s
            progress.deadline = progress.deadline or time.monotonic() + self._limits.resolved_deadline_s(timeout_s)
            reply = await self._send_attempt(connection, call, capability, progress)
            self.budget.settle_reservation(estimated_usd, reply.answer.cost_usd)
        return reply

    async def _wait_before_retry(
        self, connection: ModelConnection, reply: ProviderReply, progress: CallProgress
    ) -> str | None:
        """Wait before the next attempt and return None; if there will be no next attempt, return why.

        The reason is added to the call's error. It is empty after a success, or if the error says enough by itself. The
        model is blocked if the failure shows that every further request would fail too.
        """
        failure = reply.failure
        if failure and (
            failure.blocks_model
            or (reply.unreachable and not connection.is_confirmed and progress.n_tries >= MAX_UNREACHABLE_ATTEMPTS)
        ):
            connection.blocking_failure = failure
        connection.record_response(failure, progress.sent_at)
        if failure is None or not failure.is_retryable:
            return ""
        wait_s, retry_after_s = retry_delay(failure, progress.n_tries, self._rng), failure.retry_after_s or 0.0
        deadline, timeout_s = progress.deadline or 0.0, connection.section.resolved_timeout_s
        reason = no_retry_reason(failure, wait_s, progress.n_tries, deadline, self._limits, timeout_s)
        if reason is None:
            connection.limiter.announce_wait(retry_after_s, retry_after_s)
            await sleep_unless_stopped(wait_s, self._stop_event.is_set)
        return "" if reason is None and self._stop_event.is_set() else reason

    @asynccontextmanager
    async def _request_slot(
        self, connection: ModelConnection, call: Call, capability: Capability
    ) -> AsyncIterator[float]:
        """Wait until the rate and concurrency limits allow a request, or until the run is stopped; yield that time."""
        await connection.rate_limiter.acquire(estimate_max_tokens(call, capability))
        async with connection.limiter.slot() as admitted_at:
            yield admitted_at

    async def _send_attempt(
        self, connection: ModelConnection, call: Call, capability: Capability, progress: CallProgress
    ) -> ProviderReply:
        """Send one request and return the reply, which has this one attempt.

        Raises:
            AuditorError: no request can be sent; its `answer` has the earlier attempts.
        """
        assert progress.deadline is not None
        # The total limit is positive even if the deadline has just passed.
        total_timeout_s = max(0.01, min(connection.section.resolved_timeout_s, progress.deadline - time.monotonic()))
        prepared_call = prepare_call(call, capability, self._describe_structure)
        try:
            reply = await self._dispatcher.send(prepared_call, len(progress.attempts) + 1, total_timeout_s, capability)
        except AuditorError as error:
            if not progress.attempts:
                raise
            raise error.with_answer(
                Answer(call.key, progress.attempts[-1].outcome, attempts=tuple(progress.attempts))
            ) from error
        return replace(reply, answer=charge_unknown_attempts(call, connection.price, reply.answer, capability))


def _shows_acceptance(answer: Answer) -> bool:
    """Whether an answer shows that the server accepts its request: its last response is a success."""
    status = answer.attempts[-1].http_status if answer.attempts else None
    return status is not None and status < 300 and answer.outcome in ACCEPTED_OUTCOMES
