"""A model client that gathers concurrent calls, and submits them to their providers as batches."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from auditor.config import EMBEDDED, AuditConfig, BatchSection, ModelSection
from auditor.domain import Answer, Call, CapabilityKey, LogprobMeasure, Outcome, total_cost
from auditor.errors import AuditorError, ModelSetupError, RunInterrupted, pluralize
from auditor.failpoints import failpoint
from auditor.models.batches import find_batch_provider, needs_bucket
from auditor.models.batches.provider import BatchClient, BatchRequestFailed, PreparedRequest, prepare_request
from auditor.models.budget import OVER_BUDGET_ERROR
from auditor.models.endpoint import resolve_endpoint
from auditor.models.litellm_client import BATCH_TIER
from auditor.models.provider_request import ProviderReply
from auditor.run.batches.collection import start_collecting
from auditor.run.batches.manager import (
    BatchChunk,
    BatchManager,
    ModelBatchQueue,
    OpenBatch,
    PendingCall,
    rejected_batch_error,
    split_into_chunks,
)
from auditor.run.batches.waiting_calls import describe_waiting_calls
from auditor.storage import batches
from auditor.storage.call_records import ProviderBatch

if TYPE_CHECKING:
    from auditor.agents.call_runner import CallRecorder
    from auditor.models.gateway import Gateway


async def submit_calls(manager: BatchManager, queue: ModelBatchQueue, pending_calls: list[PendingCall]) -> None:
    """Submit calls as batches, as far as the budget allows.

    A batch that is being sent is recorded even if the caller is cancelled.

    Raises:
        ModelSetupError: the provider rejects a batch.
    """
    # `batch.most` is the config's limit of calls in a batch.
    max_calls = min(manager.settings.most, queue.provider.max_calls)
    async for chunk in split_into_chunks(
        queue, pending_calls, max_calls, lambda pending_call: _reserve_budget(manager, queue, pending_call)
    ):
        if manager.stop_event.is_set():
            return
        task = asyncio.create_task(_submit_chunk(manager, queue, chunk))
        manager.submissions.add(task)
        task.add_done_callback(manager.submissions.discard)
        await asyncio.shield(task)


def _reserve_budget(manager: BatchManager, queue: ModelBatchQueue, pending_call: PendingCall) -> bool:
    """Reserve a call's maximum cost, and return whether it may be sent; a call over the budget is resolved as such."""
    if manager.stop_event.is_set():
        return False
    pending_call.reserved_usd = manager.budget.estimate_max_cost(
        pending_call.call, queue.endpoint.price, pending_call.capability
    )
    if manager.budget.reserve(pending_call.reserved_usd):
        return True
    pending_call.resolve(
        ProviderReply(Answer(pending_call.call.key, Outcome.OVER_BUDGET, error=OVER_BUDGET_ERROR), None)
    )
    return False


async def _submit_chunk(manager: BatchManager, queue: ModelBatchQueue, chunk: BatchChunk) -> None:
    """Record a batch, submit it, and start to collect it."""
    call_keys, reserved_usd = (
        [pending_call.call.key for pending_call in chunk.pending_calls],
        sum(pending_call.reserved_usd for pending_call in chunk.pending_calls),
    )
    batch = await batches.record_prepared_batch(
        manager.recorder.db,
        manager.recorder.audit_id,
        tag=uuid.uuid4().hex,
        model_name=queue.section.name,
        call_keys=call_keys,
        reserved_usd=reserved_usd,
        capability=chunk.capability,
    )
    failpoint("batch_prepared")
    remote_id = await _submit_with_retries(manager, queue, chunk, batch)
    failpoint("batch_sent")
    if remote_id is not None:
        await batches.record_submitted_batch(manager.recorder.db, batch, remote_id)
        manager.notify(
            f"{pluralize(len(call_keys), 'call')} to '{queue.section.name}' submitted as the batch {remote_id}."
        )
    failpoint("batch_submitted")
    open_batch = OpenBatch(
        batch,
        remote_id,
        set(call_keys),
        reserved_usd / len(call_keys),
        {pending_call.call.key: pending_call for pending_call in chunk.pending_calls},
    )
    manager.batches_by_key |= dict.fromkeys(call_keys, open_batch)
    start_collecting(manager, open_batch, queue, is_new=True)


async def _submit_with_retries(
    manager: BatchManager, queue: ModelBatchQueue, chunk: BatchChunk, batch: ProviderBatch
) -> str | None:
    """Submit a batch, with retries; returns the provider's id, or None if it may have arrived under an unknown id.

    Raises:
        ModelSetupError: the provider rejects the batch, or all attempts failed.
    """
    n_attempts = 0
    while True:
        is_search = n_attempts > 0
        try:
            if is_search and (remote_ids := await manager.find_submitted(queue, batch)):
                return remote_ids[0] if queue.provider.is_match_certain else None
            is_search = False
            return await queue.provider.submit(chunk.client, chunk.formatted_calls, batch.tag)
        except BatchRequestFailed as error:
            n_attempts += 1
            if manager.may_retry(error, n_attempts):
                await manager.pause_before_retry(n_attempts, error)
                continue
            reason = manager.failure_reason(error)
            if is_search or not error.is_refusal:  # the next run finds out whether the batch arrived
                raise _unconfirmed_batch_error(queue, reason) from None
            await batches.record_ended_batch(manager.recorder.db, batch, batches.REFUSED)
            raise rejected_batch_error(queue, reason) from None


def _unconfirmed_batch_error(queue: ModelBatchQueue, reason: str) -> ModelSetupError:
    """The error for a batch that the provider may have accepted."""
    name = queue.section.name
    return ModelSetupError(
        f"it is not known whether the provider of model '{name}' accepted a batch: {reason.rstrip(' .')}.",
        "Run the same command again: it looks for the batch, and submits it only if it is not there. Recorded answers "
        "are kept.",
    )


STOP_POLL_INTERVAL_S = 0.1
"""How often the stop event is checked."""


class BatchingClient:
    """Answers calls through batches; a call that cannot go into a batch is sent individually."""

    def __init__(
        self,
        gateway: Gateway,
        config: AuditConfig,
        recorder: CallRecorder,
        stop_event: threading.Event,
        notify: Callable[[str], None],
    ) -> None:
        """Load the open batches of earlier runs; no request is sent yet.

        Create the client inside the event loop, and close it.

        Args:
            gateway: sends individual calls.
            config: the audit's configuration, with its table `batch`.
            recorder: names the database, run and audit that batches are recorded for.
            stop_event: once set, waiting calls fail with `RunInterrupted`; submitted batches continue.
            notify: receives notices for the user.
        """
        self._gateway, self._config, self._recorder, self._stop_event = gateway, config, recorder, stop_event
        settings = config.batch or BatchSection()
        self._manager = BatchManager(gateway.budget, settings, config, recorder, stop_event, notify, self._requeue)
        self._queues: dict[str, asyncio.Task[ModelBatchQueue | None]] = {}
        self._slots: dict[str, asyncio.Semaphore] = {}
        self._discovery_locks: dict[CapabilityKey, asyncio.Lock] = {}
        self._pending_calls: dict[str, PendingCall] = {}
        self._call_arrived, self._last_arrival = asyncio.Event(), 0.0
        self._interrupted_message: str | None = None
        self._manager.load_earlier_batches()
        self._manager.start_background_task(self._submit_when_quiet())
        self._manager.start_background_task(self._fail_pending_on_stop())

    async def complete(self, call: Call) -> Answer:
        """The answer from a batch, with retries merged into it.

        It is from an individual call if the model has no batches, or if it is not known yet what its server accepts: a
        batch that the server refuses would cost hours.

        Raises:
            ModelSetupError: the provider rejects batches of this model.
            RunInterrupted: the run was stopped before the call was answered.
        """
        if (first_answer := await self._send_if_undiscovered(call)) is not None:
            return first_answer
        queue = await self._get_queue(call) if (call.measure is None or call.measure is LogprobMeasure.CHOICE) else None
        if queue is None:
            if self._manager.find_open_batch(call.key) is not None:
                raise self._unreachable_batch_error(call)
            return await self._send_individually(call)
        n_attempts = 0
        earlier_answer: Answer | None = None
        while True:
            is_in_batch = self._manager.find_open_batch(call.key) is not None
            if not is_in_batch and (stopped_answer := self._gateway.stopped_answer(call)) is not None:
                return _merge_attempts(earlier_answer, stopped_answer)
            try:
                reply = await self._wait_for_batch(queue, call, n_attempts + 1)
                if reply is None:
                    await self._recorder.record_dispatch(call)
                answer = reply.answer if reply else await self._send_individually(call)
            except AuditorError as error:
                if earlier_answer is None:
                    raise
                raise error.with_answer(_merge_attempts(earlier_answer, error.answer or earlier_answer)) from error
            earlier_answer = _merge_attempts(earlier_answer, answer)
            n_attempts = len(earlier_answer.attempts)
            # Individual calls are retried by the gateway; the others go into another batch if they may be retried.
            if reply is None:
                return earlier_answer
            may_retry = reply.failure is not None and reply.failure.is_retryable
            if not may_retry or n_attempts >= self._config.limits.max_attempts:
                self._gateway.record_outcome(call, earlier_answer)
                return earlier_answer
            await self._recorder.record_failed_attempts(call, earlier_answer)

    async def close(self) -> None:
        """Leave open batches to their providers, and record which have been collected."""
        await self._manager.close()

    # --- single calls --------------------------------------------------------------------------------------------

    async def _send_if_undiscovered(self, call: Call) -> Answer | None:
        """Send a call individually, one at a time, while it is unknown what its model's server accepts; None after."""
        if not self._gateway.needs_discovery(call) or self._manager.find_open_batch(call.key) is not None:
            return None
        async with self._discovery_locks.setdefault(call.capability_key, asyncio.Lock()):
            return await self._send_individually(call) if self._gateway.needs_discovery(call) else None

    async def _wait_for_batch(self, queue: ModelBatchQueue, call: Call, attempt_number: int) -> ProviderReply | None:
        """Queue a call for its open batch or the next one, and wait; None if the call is to be sent individually."""
        if self._stop_event.is_set():
            raise self._interrupted_error()
        if (pending_call := self._pending_calls.get(call.key)) is None:
            pending_call = PendingCall(
                self._gateway.prepare_call(call),
                attempt_number,
                asyncio.get_running_loop().create_future(),
                self._gateway.capability(call),
            )
            pending_call.future.add_done_callback(lambda _: self._pending_calls.pop(call.key, None))
            self._pending_calls[call.key] = pending_call
            # The record of its batch says whether it was sent.
            await self._recorder.clear_dispatch(call)
            if (open_batch := self._manager.find_open_batch(call.key)) is not None:
                open_batch.pending_calls[call.key] = pending_call
                start_collecting(self._manager, open_batch, queue)
            else:
                queue.pending_calls[call.key] = pending_call
                self._mark_arrival()
        return await asyncio.shield(pending_call.future)

    async def _send_individually(self, call: Call) -> Answer:
        """Send a call by the gateway, within the model's limit of concurrent requests."""
        section = self._config.model(call.name)
        async with self._slots.setdefault(call.name, asyncio.Semaphore(section.max_concurrency)):
            if self._stop_event.is_set():
                raise self._interrupted_error()
            return await self._gateway.complete(call)

    async def _get_queue(self, call: Call) -> ModelBatchQueue | None:
        """The model's queue, created on its first call; None if the model has no batches."""
        if call.name not in self._queues:
            self._queues[call.name] = self._manager.start_background_task(self._create_queue(call))
        return await asyncio.shield(self._queues[call.name])

    async def _create_queue(self, call: Call) -> ModelBatchQueue | None:
        """Create a model's queue from its first call, as a batch goes to the same server; None without batches."""
        section = self._config.model(call.name)
        if (provider := find_batch_provider(section, self._manager.settings)) is None:
            self._notify_no_batches(section)
            return None
        endpoint = resolve_endpoint(section)

        async def prepare_first_call() -> PreparedRequest | ProviderReply:
            """Build the request of the first call with the credentials of this moment."""
            return await prepare_request(
                endpoint, self._gateway.prepare_call(call), section.resolved_timeout_s, self._gateway.capability(call)
            )

        async def fetch_headers() -> Mapping[str, str]:
            """The headers of the first call with the credentials of this moment; empty if it cannot be built."""
            request = await prepare_first_call()
            return request.headers if isinstance(request, PreparedRequest) else {}

        prepared_request = await prepare_first_call()
        if isinstance(prepared_request, ProviderReply) or (base_url := provider.base_url(prepared_request.url)) is None:
            self._notify_no_batches(section)
            return None
        client = BatchClient(base_url, prepared_request.headers, prepared_request.url, fetch_headers)
        try:
            if not await self._manager.retry_request(lambda: provider.has_batches(client)):
                self._notify_no_batches(section)
                return None
        except BatchRequestFailed as error:
            how_to_fix = "Check the key and the address, or remove [batch] from the config. Recorded answers are kept."
            raise ModelSetupError(f"the batches of model '{call.name}' cannot be used: {error}.", how_to_fix) from None
        batch_price = endpoint.price and endpoint.price.scaled_by(self._manager.settings.price)
        listed_price = endpoint.listed_price and endpoint.listed_price._replace(tier=BATCH_TIER)
        batch_endpoint = replace(endpoint, price=batch_price, listed_price=listed_price)
        return ModelBatchQueue(section, batch_endpoint, provider, client)

    def _unreachable_batch_error(self, call: Call) -> ModelSetupError:
        """The error for a call that waits in a batch, while its provider offers no batches."""
        if needs_bucket(self._config.model(call.name)) and self._manager.settings.bucket is None:
            problem, how_to_fix = "with a bucket, and batch.bucket names none", "Set batch.bucket again."
        else:
            problem, how_to_fix = "that its provider does not list now", "Run the same command again later."
        return ModelSetupError(
            f"calls to '{call.name}' wait in batches {problem}.",
            f"{how_to_fix} Or remove [batch]: the calls are then sent again, and charged again.",
        )

    def _notify_no_batches(self, section: ModelSection) -> None:
        """Tell the user that a model's calls are sent individually, unless it is embedded, where calls cost nothing."""
        if needs_bucket(section) and self._manager.settings.bucket is None:
            reason = f"The batches of '{section.name}' need batch.bucket, such as \"gs://my-bucket/audits\""
        else:
            reason = f"The provider of '{section.name}' offers no batches"
        if section.provider is not EMBEDDED:
            self._manager.notify(f"{reason}: its calls are sent one by one, at the usual price.")

    # --- all pending calls --------------------------------------------------------------------------------------

    def _mark_arrival(self) -> None:
        """Restart the quiet period after which queued calls are submitted."""
        self._last_arrival = asyncio.get_running_loop().time()
        self._call_arrived.set()

    async def _submit_when_quiet(self) -> None:
        """Submit each queue's calls whenever no new call has arrived for `quiet_s` seconds."""
        loop, quiet_s = asyncio.get_running_loop(), self._manager.settings.quiet_s
        while True:
            await self._call_arrived.wait()
            while (pause_s := self._last_arrival + quiet_s - loop.time()) > 0:  # noqa: ASYNC110 - a debounce
                await asyncio.sleep(pause_s)
            self._call_arrived.clear()
            for task in self._queues.values():
                queue = task.result() if task.done() and not task.cancelled() and not task.exception() else None
                if queue and queue.pending_calls:
                    pending_calls, queue.pending_calls = queue.pending_calls, {}
                    self._manager.start_background_task(self._submit_or_release(queue, list(pending_calls.values())))

    async def _submit_or_release(self, queue: ModelBatchQueue, pending_calls: list[PendingCall]) -> None:
        """Submit calls as batches; if they are too few for one, release them to be sent individually."""
        # `batch.least` is the smallest number of calls that the config allows in a batch.
        if len(pending_calls) < self._manager.settings.least:
            for pending_call in pending_calls:
                pending_call.resolve(None)
            return
        try:
            await submit_calls(self._manager, queue, pending_calls)
        except Exception as error:  # noqa: BLE001 - raised in the waiting calls
            for pending_call in pending_calls:
                pending_call.fail(error)

    def _requeue(self, batch: OpenBatch, queue: ModelBatchQueue) -> None:
        """Put the pending calls of an abandoned batch back into their queue."""
        queue.pending_calls |= batch.pending_calls
        batch.pending_calls.clear()
        self._mark_arrival()

    async def _fail_pending_on_stop(self) -> None:
        """When the run stops, finish the current submissions, and fail all waiting calls."""
        while not self._stop_event.is_set():  # noqa: ASYNC110 - a thread's event, set by a signal
            await asyncio.sleep(STOP_POLL_INTERVAL_S)
        await asyncio.gather(*self._manager.submissions, return_exceptions=True)
        for pending_call in list(self._pending_calls.values()):
            pending_call.fail(self._interrupted_error())

    def _interrupted_error(self) -> AuditorError:
        """The error for calls that wait when the run stops; its message is fixed at the first use."""
        if self._interrupted_message is None:
            waiting_note = describe_waiting_calls(
                [len(open_batch.open_keys) for open_batch in self._manager.open_batches()]
            )
            self._interrupted_message = (
                f"the run was stopped. All answers so far are saved{f', and {waiting_note}' if waiting_note else ''}."
            )
        return RunInterrupted(
            self._interrupted_message, "To collect the remaining answers, run the same command again."
        )


def _merge_attempts(earlier_answer: Answer | None, answer: Answer) -> Answer:
    """The last answer, with the attempts of both, renumbered from 1, and their total cost."""
    is_new = answer is not earlier_answer
    attempts = [*(earlier_answer.attempts if earlier_answer else ()), *(answer.attempts if is_new else ())]
    cost = total_cost([earlier_answer.cost_usd, answer.cost_usd]) if earlier_answer and is_new else answer.cost_usd
    return replace(
        answer,
        attempts=tuple(replace(attempt, number=number) for number, attempt in enumerate(attempts, 1)),
        cost_usd=cost,
    )
