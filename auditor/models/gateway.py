"""The gateway to language models: sends every call with concurrency limits, retries, time limits and a budget.

A failure of a provider is returned as an answer with an outcome; only a model that cannot be used at all raises.
"""

from __future__ import annotations

import asyncio
import functools
import random
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from auditor.config import LimitsSection, ModelSection
from auditor.domain import Answer, Call, Capability, CapabilityKey, LogprobMeasure, Outcome
from auditor.errors import AuditorError
from auditor.models.budget import (
    OVER_BUDGET_ERROR,
    Budget,
    charge_unknown_attempts,
    estimate_max_tokens,
    require_prices,
)
from auditor.models.capability_registry import (
    CapabilityRegistry,
    CapabilityStore,
    MemoryCapabilityStore,
    StructureDescriber,
    describe_schema,
    prepare_call,
)
from auditor.models.dispatch import Dispatcher, LocalDispatcher
from auditor.models.limiter import sleep_unless_stopped
from auditor.models.model_connection import KeyConnection, ModelConnection, connect_models
from auditor.models.provider_request import ProviderReply
from auditor.models.request_params import check_params
from auditor.models.retries import (
    CallProgress,
    LimitChangeCallback,
    NotifyCallback,
    backoff_delay,
    explain_timeout,
    no_retry_reason,
)

MAX_INCONCLUSIVE_CALLS = 4
"""Failed calls to a model, one after another, after which further calls no longer wait for a first success."""
ACCEPTED_OUTCOMES = (Outcome.OK, Outcome.REFUSED, Outcome.TRUNCATED, Outcome.UNPARSED)
"""Outcomes by which a successful response shows that the server accepts the request; an HTTP error shows nothing."""

BUDGET_POLL_INTERVAL_S = 0.05
"""How often a call looks whether the requests in flight leave room in the budget."""
WITHOUT_ROOM = ProviderReply(Answer("", Outcome.OVER_BUDGET), None)
"""Stands for the reply to a request that was not sent, since the budget has no room beside what is reserved."""


class Gateway:
    """Sends calls to models. Create one per run, inside the event loop that uses it.

    Close it at the end, unless the dispatcher that it was created with is closed by itself.
    """

    def __init__(
        self,
        models: Iterable[ModelSection],
        limits: LimitsSection,
        *,
        spent_usd: float = 0.0,
        largest_usd: Mapping[str, float] | None = None,
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
            spent_usd: what this audit may have spent before.
            largest_usd: what its most expensive request to each model has cost before.
            seed: of the jitter of retries.
            stop_event: once set, no request is sent any more.
            on_limit_change: called when the number of requests that a model may have in flight changes.
            dispatcher: sends the requests; a `LocalDispatcher` by default.
            notify: called with a sentence of what a user should know, such as a long wait or a new kind of failure.
            capability_store: of this audit; one in memory by default.
            describe_structure: describes a requested structure in words; by default it returns the JSON schema.

        Raises:
            ConfigError: an API key is not in the environment, there is a budget and a model's price is unknown, or a
                parameter of a model is not allowed.
            ModelSetupError: an embedded model cannot be started.
        """
        self._limits, self._describe_structure, self._notify = limits, describe_structure, notify
        self._rng, self._stop_event = random.Random(seed), stop_event or threading.Event()
        require_prices(models := list(models), limits)
        check_params(models, limits)
        self._dispatcher = dispatcher or LocalDispatcher(models)
        self.budget = Budget(limits.budget_usd, spent_usd, largest_usd)
        self._capabilities = CapabilityRegistry(capability_store or MemoryCapabilityStore())
        # Models of one server and effort share a capability, so only one of them finds it out at a time.
        self._discovery_locks: defaultdict[CapabilityKey, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._n_in_flight, self._budget_lock = 0, asyncio.Lock()
        self._connections = connect_models(models, limits, on_limit_change, notify, self._stop_event.is_set, self._rng)

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
        streak = connection.failures.streak(call.purpose)
        await streak.begin_call()
        try:
            answer = await self._send_confirmed(connection, call)
            self.record_outcome(call, answer)
        finally:
            streak.end_call()
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
        status = answer.attempts[-1].http_status if answer.attempts else None
        if not (status is not None and status < 300 and answer.outcome in ACCEPTED_OUTCOMES):
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

        Requests that find out what the server accepts are attempts, but no retries. The attempts and the cost of an
        earlier answer to the same call are added.

        Raises:
            RunInterrupted: the run was stopped before a request was sent for this call.
            AuditorError: no request can be sent.
        """
        progress = CallProgress.after(earlier)
        answer = Answer(call.key, Outcome.TIMEOUT)
        while progress.n_tries < self._limits.max_attempts:
            blocked_answer = connection.blocked_answer(call, has_attempts=bool(progress.attempts))
            if blocked_answer is not None:
                return progress.complete(blocked_answer)
            capability = self.capability(call)
            reply = await self._send_when_allowed(connection, call, capability, progress)
            if reply is None:  # blocked, stopped or past the deadline since it began to wait
                if connection.blocked_answer(call) is not None:
                    continue
                deadline_s = None if self._stop_event.is_set() else connection.deadline_s
                return progress.complete(progress.explain_unsent(answer, deadline_s))
            answer = reply.answer
            if answer.outcome is Outcome.OVER_BUDGET:
                break
            progress.add(answer)
            if self._capabilities.step(call, capability, reply):
                if answer.outcome is Outcome.TRUNCATED:
                    progress.cut_off_answer = answer
                if not progress.cut_off_answer or self.capability(call).thinking_tokens >= capability.thinking_tokens:
                    continue
                break  # the server refuses more room for thinking
            progress.count_try(answer)
            if (reason := await self._wait_before_retry(connection, reply, progress)) is not None:
                answer = progress.append_error_reason(answer, reason)
                break
        return progress.complete(answer)

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
        over_budget = ProviderReply(Answer(call.key, Outcome.OVER_BUDGET, error=OVER_BUDGET_ERROR), None)
        if not self.budget.allows(self.budget.estimate_max_cost(call, connection.price, capability)):
            return over_budget
        reply = await self._send_in_slot(connection, call, capability, progress)
        while reply is WITHOUT_ROOM:
            # One call at a time waits for room, and reserves it before its slot: no slot is held for want of room.
            async with self._budget_lock:
                reserved_usd = await self._reserve_room(connection, call, capability)
            if reserved_usd is None:
                return over_budget
            self._n_in_flight += 1  # for the others, its reservation is as good as a request
            try:
                reply = await self._send_in_slot(connection, call, capability, progress, reserved_usd)
            finally:
                self._n_in_flight -= 1
        return reply

    async def _reserve_room(self, connection: ModelConnection, call: Call, capability: Capability) -> float | None:
        """Wait while only other calls' reservations leave no room in the budget: most cost less than is reserved.

        Returns:
            The amount in US dollars that is now reserved for the call, 0 if the run is stopped; None without room.
        """
        while not self._stop_event.is_set():
            # Estimated again: the server may have exceeded its limits since.
            estimated_usd = self.budget.estimate_max_cost(call, connection.price, capability)
            if self.budget.reserve(estimated_usd):
                return estimated_usd
            if not self._n_in_flight or not self.budget.allows(estimated_usd):
                return None
            await asyncio.sleep(BUDGET_POLL_INTERVAL_S)
        return 0.0

    async def _send_in_slot(
        self,
        connection: ModelConnection,
        call: Call,
        capability: Capability,
        progress: CallProgress,
        reserved_usd: float = 0.0,
    ) -> ProviderReply | None:
        """Send one request in the model's next slot; returns and raises as `_send_when_allowed`.

        Returns `WITHOUT_ROOM` in place of a reply if the budget has no room for the request at present. The amount
        that was reserved for the wait is released.
        """
        estimate_tokens = functools.partial(estimate_max_tokens, call, capability)
        try:
            slot = await connection.take_slot(call.purpose.priority, estimate_tokens, progress.deadline)
        finally:  # also if the call is cancelled while it waits
            self.budget.settle_reservation(reserved_usd, None)
        if slot is None:
            return None
        try:
            if connection.blocked_answer(call) is not None or self._stop_event.is_set():
                return None
            # Estimated again: the server may have exceeded its limits since.
            estimated_usd = self.budget.estimate_max_cost(call, connection.price, capability)
            if not self.budget.reserve(estimated_usd):
                return WITHOUT_ROOM
            # The deadline starts with the first request: waiting for a first slot does not count.
            progress.deadline = progress.deadline or time.monotonic() + connection.deadline_s
            self._n_in_flight += 1
            try:
                reply = await self._send_attempt(connection, slot.key, call, capability, progress)
            finally:
                self._n_in_flight -= 1
            # At an unknown cost, such as in a tier without a listed price, the reservation counts as spent.
            cost_usd = reply.answer.cost_usd
            self.budget.settle_reservation(estimated_usd, estimated_usd if cost_usd is None else cost_usd)
            if notice := self.budget.record_excess(call, connection.price, reply.answer, capability):
                self._notify(notice)
            slot.key.record_response(reply.failure, slot.held.sent_at)
        finally:
            slot.held.release()
        progress.key = slot.key
        return reply

    async def _wait_before_retry(
        self, connection: ModelConnection, reply: ProviderReply, progress: CallProgress
    ) -> str | None:
        """Wait before the next attempt and return None; if there will be no next attempt, return why.

        The reason is added to the call's error. It is empty after a success, or if the error says enough by itself. The
        model is blocked if the failure shows that every further request would fail too. The wait that the provider asks
        for is part of the wait for the next slot.
        """
        assert progress.key is not None
        if connection.block_if_unusable(reply, progress.n_tries, progress.key):
            progress.n_tries -= 1  # the call is sent again with another key
            return None
        failure = reply.failure
        if failure is None or not failure.is_retryable:
            return ""
        backoff_s = 0.0 if failure.outcome is Outcome.RATE_LIMITED else backoff_delay(progress.n_tries, self._rng)
        wait_s = max(backoff_s, failure.retry_after_s or 0.0)
        if failure.outcome is Outcome.RATE_LIMITED:  # a refusal that the deadline cuts off might count as charged
            if connection.has_free_key(but=progress.key) and self._limits.max_attempts > 1:
                return None
            wait_s = connection.wait_s() + progress.attempts[-1].latency_s
        reason = no_retry_reason(failure, wait_s, progress, self._limits, connection.deadline_s)
        if reason is None:
            await sleep_unless_stopped(backoff_s, self._stop_event.is_set)
        return "" if reason is None and self._stop_event.is_set() else reason

    async def _send_attempt(
        self,
        connection: ModelConnection,
        key: KeyConnection,
        call: Call,
        capability: Capability,
        progress: CallProgress,
    ) -> ProviderReply:
        """Send one request with a key and return the reply, which has this one attempt.

        Raises:
            AuditorError: no request can be sent; its `answer` has the earlier attempts.
        """
        assert progress.deadline is not None
        # The total limit is positive even if the deadline has just passed.
        timeout_s, remaining_s = connection.timeout_s, progress.deadline - time.monotonic()
        total_timeout_s = max(0.01, min(timeout_s, remaining_s))
        prepared_call = prepare_call(call, capability, self._describe_structure)
        if prepared_call.name != key.section.name:
            prepared_call = replace(prepared_call, name=key.section.name)
        try:
            reply = await self._dispatcher.send(prepared_call, len(progress.attempts) + 1, total_timeout_s, capability)
        except AuditorError as error:
            if not progress.attempts:
                raise
            raise error.with_answer(
                Answer(call.key, progress.attempts[-1].outcome, attempts=tuple(progress.attempts))
            ) from error
        answer = charge_unknown_attempts(call, connection.price, reply.answer, capability)
        if answer.outcome is Outcome.TIMEOUT and remaining_s < timeout_s:
            answer = explain_timeout(answer, connection.deadline_s)
        return reply if answer is reply.answer else replace(reply, answer=answer)
