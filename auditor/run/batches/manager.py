"""State of batches: queues of each model, open batches, the budget, and retries."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from auditor.config import AuditConfig, BatchSection, ModelSection
from auditor.domain import Call, Capability
from auditor.errors import ModelSetupError
from auditor.models.batches.provider import (
    BatchClient,
    BatchProvider,
    BatchRequestFailed,
    PreparedRequest,
    prepare_request,
)
from auditor.models.budget import Budget
from auditor.models.endpoint import Endpoint
from auditor.models.limiter import sleep_unless_stopped
from auditor.models.provider_request import ProviderReply
from auditor.models.request_queue import MIN_ANNOUNCED_WAIT_S
from auditor.models.retries import backoff_delay, long_wait_message, pause_notice
from auditor.storage import batches, ledger
from auditor.storage.call_records import ProviderBatch

if TYPE_CHECKING:
    from auditor.agents.call_runner import CallRecorder


@dataclass(eq=False, slots=True)
class PendingCall:
    """A call that waits for its answer.

    Attributes:
        call: the call.
        attempt_number: number of this attempt at the call, from 1.
        future: receives the provider's reply, or None if the call is to be sent individually.
        capability: what the server accepts; the call is submitted under it.
        reserved_usd: the call's cost at most, reserved from the budget.
        n_rejections: how often its batch was rejected although no other batch of the model was open.
    """

    call: Call
    attempt_number: int
    future: asyncio.Future[ProviderReply | None]
    capability: Capability
    reserved_usd: float = 0.0
    n_rejections: int = 0

    def resolve(self, reply: ProviderReply | None) -> None:
        """Set the reply, unless the call was cancelled."""
        if not self.future.done():
            self.future.set_result(reply)

    def fail(self, error: BaseException) -> None:
        """Set an error, unless the call was cancelled."""
        if not self.future.done():
            self.future.set_exception(error)


@dataclass(eq=False, slots=True)
class OpenBatch:
    """A batch at a provider.

    Attributes:
        stored_batch: the batch's record in the database.
        remote_id: the provider's id of the batch; None until it is known.
        open_keys: keys of the calls whose answers are not known to be recorded.
        reserved_usd_per_call: budget reserved for each call.
        pending_calls: calls of this run that wait for the batch, by key.
        collect_task: the task that collects it; None until one is started.
        is_queue_full: whether the provider rejected it because of other open batches.
        has_failed: whether it cannot be collected.
    """

    stored_batch: ProviderBatch
    remote_id: str | None
    open_keys: set[str]
    reserved_usd_per_call: float
    pending_calls: dict[str, PendingCall] = field(default_factory=dict)
    collect_task: asyncio.Task[None] | None = None
    is_queue_full: bool = False
    has_failed: bool = False


@dataclass(eq=False, slots=True)
class ModelBatchQueue:
    """Calls of one model that wait for the next batch, and how to submit it.

    Attributes:
        section: the model's section of the config.
        endpoint: the model's endpoint, with the prices of a batch.
        provider: the provider's batch API.
        client: HTTP client with the headers of the model's first call.
        pending_calls: calls that wait for the next batch, by key.
    """

    section: ModelSection
    endpoint: Endpoint
    provider: BatchProvider
    client: BatchClient
    pending_calls: dict[str, PendingCall] = field(default_factory=dict)

    def client_for(self, prepared_request: PreparedRequest) -> BatchClient:
        """The HTTP client for a batch of calls with the same address and headers as this request."""
        base_url = self.provider.base_url(prepared_request.url)
        assert base_url is not None  # as for the first call, by which the queue was created
        return BatchClient(base_url, prepared_request.headers, prepared_request.url)


@dataclass(eq=False, slots=True)
class BatchChunk:
    """Calls to be submitted as one batch under one capability, and their lines in the batch's file."""

    client: BatchClient
    capability: Capability
    pending_calls: list[PendingCall] = field(default_factory=list)
    formatted_calls: list[bytes] = field(default_factory=list)
    size_bytes: int = 0


async def split_into_chunks(
    queue: ModelBatchQueue,
    pending_calls: Iterable[PendingCall],
    max_calls: int,
    reserve_budget: Callable[[PendingCall], bool],
) -> AsyncIterator[BatchChunk]:
    """Yield chunks of calls with the same address, headers and capability, each as soon as it is full.

    Args:
        queue: the model's queue.
        pending_calls: calls to be split.
        max_calls: number of calls of one chunk at most.
        reserve_budget: whether a call may be sent; it resolves the calls that it refuses.
    """
    open_chunks: dict[object, BatchChunk] = {}
    for pending_call in pending_calls:
        if not reserve_budget(pending_call):
            continue
        prepared_request = await prepare_request(
            queue.endpoint, pending_call.call, queue.section.resolved_timeout_s, pending_call.capability
        )
        if isinstance(prepared_request, ProviderReply):
            pending_call.resolve(prepared_request)
            continue
        formatted_call = queue.provider.format_call(pending_call.call.key, prepared_request.body)
        chunk_key = _chunk_key(prepared_request), pending_call.capability
        if (full_chunk := open_chunks.get(chunk_key)) and (
            len(full_chunk.formatted_calls) >= max_calls
            or full_chunk.size_bytes + len(formatted_call) > queue.provider.max_bytes
        ):
            yield open_chunks.pop(chunk_key)
        chunk = open_chunks.setdefault(
            chunk_key, BatchChunk(queue.client_for(prepared_request), pending_call.capability)
        )
        chunk.pending_calls.append(pending_call)
        chunk.formatted_calls.append(formatted_call)
        chunk.size_bytes += len(formatted_call) + 1
    for chunk in open_chunks.values():
        yield chunk


def _chunk_key(prepared_request: PreparedRequest) -> object:
    """What all calls of a batch have in common: address and headers, except the length of the body."""
    return prepared_request.url, frozenset(
        (name, value) for name, value in prepared_request.headers.items() if name.lower() != "content-length"
    )


T = TypeVar("T")
MIN_RETENTION_DAYS = 29
"""How long providers keep the results of a batch, at least."""
MAX_CLOCK_SKEW = timedelta(minutes=10)
"""How far a provider's clock may differ from ours."""


@dataclass(eq=False)
class BatchManager:
    """The open batches of this run and of earlier runs, and what is needed to send and record them.

    Attributes:
        budget: budget of the run.
        settings: the config's table `batch`.
        config: the audit's configuration.
        recorder: names the database, run and audit that batches are recorded for.
        stop_event: once set, nothing more is sent.
        notify: receives notices for the user.
        requeue: puts the pending calls of an abandoned batch back into their queue.
        batches_by_key: the batch of each call, by the call's key; the latest if a call is in several.
        background_tasks: tasks that may be cancelled at any time.
        submissions: tasks that submit batches, which must not be cancelled before the batch is recorded.
    """

    budget: Budget
    settings: BatchSection
    config: AuditConfig
    recorder: CallRecorder
    stop_event: threading.Event
    notify: Callable[[str], None]
    requeue: Callable[[OpenBatch, ModelBatchQueue], None]
    batches_by_key: dict[str, OpenBatch] = field(default_factory=dict)
    background_tasks: set[asyncio.Task[Any]] = field(default_factory=set)
    submissions: set[asyncio.Task[None]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._rng = random.Random(self.config.seed)

    def load_earlier_batches(self) -> None:
        """Load the open batches of earlier runs.

        Those whose results are all recorded, or past the provider's retention, are closed. For the others of this audit
        the budget is reserved.
        """
        retention_limit = datetime.now(UTC) - timedelta(days=MIN_RETENTION_DAYS)
        earlier_batches: list[OpenBatch] = []
        stored_batches = batches.load_open_batches(self.recorder.db)
        unread_keys_by_batch = batches.find_unread_keys(self.recorder.db, stored_batches)
        # Batches come oldest first: a call that is in several is expected from the latest.
        for batch, unread_keys in zip(stored_batches, unread_keys_by_batch, strict=True):
            open_keys = unread_keys - ledger.find_answered_keys(self.recorder.db, unread_keys)
            open_batch = OpenBatch(batch, batch.remote_id, open_keys, batch.reserved_usd / len(batch.call_keys))
            for key in open_batch.open_keys:
                if (earlier_batch := self.batches_by_key.get(key)) is not None:
                    earlier_batch.open_keys.discard(key)
                self.batches_by_key[key] = open_batch
            earlier_batches.append(open_batch)
        for open_batch in earlier_batches:
            if not open_batch.open_keys:
                self.close_batch(open_batch, "collected")
            elif open_batch.stored_batch.prepared_at < retention_limit:
                self.close_batch(open_batch, f"not collected within {MIN_RETENTION_DAYS} days")
                self.notify(
                    f"The batch {open_batch.stored_batch.remote_id} was not collected in time: its calls are sent and "
                    "charged again."
                )
            elif open_batch.stored_batch.audit_id == self.recorder.audit_id:
                self.budget.reserve_unconditionally(open_batch.reserved_usd_per_call * len(open_batch.open_keys))

    def find_open_batch(self, key: str) -> OpenBatch | None:
        """The open batch that a call's answer is expected from; None if there is none."""
        open_batch = self.batches_by_key.get(key)
        return open_batch if open_batch is not None and key in open_batch.open_keys else None

    def open_batches(self) -> list[OpenBatch]:
        """Batches with calls whose answers are not recorded."""
        # `batches_by_key` lists a batch once per call; ids make the list unique.
        return [
            batch for batch in {id(batch): batch for batch in self.batches_by_key.values()}.values() if batch.open_keys
        ]

    def close_batch(self, batch: OpenBatch, reason: str) -> None:
        """Forget a batch, and record in the background why it has ended."""
        for key in batch.stored_batch.call_keys:
            if self.batches_by_key.get(key) is batch:
                del self.batches_by_key[key]
        self.start_background_task(batches.record_ended_batch(self.recorder.db, batch.stored_batch, reason))

    def abandon_batch(self, batch: OpenBatch, queue: ModelBatchQueue, reason: str) -> None:
        """Close a batch that the provider has not processed: release its budget, and requeue its calls."""
        self.budget.settle_reservation(batch.reserved_usd_per_call * len(batch.open_keys), None)
        self.close_batch(batch, reason)
        self.requeue(batch, queue)

    async def close_if_recorded(self, batch: OpenBatch) -> bool:
        """Close a batch if all of its answers are recorded; returns whether they are."""
        batch.open_keys -= await asyncio.to_thread(ledger.find_answered_keys, self.recorder.db, list(batch.open_keys))
        if not batch.open_keys:
            self.close_batch(batch, "collected")
        return not batch.open_keys

    async def close(self) -> None:
        """Cancel the background tasks, and record which batches have been collected."""
        running_tasks = list(self.background_tasks)
        for task in running_tasks:
            task.cancel()
        await asyncio.gather(*running_tasks, return_exceptions=True)
        for open_batch in list({id(open_batch): open_batch for open_batch in self.batches_by_key.values()}.values()):
            await self.close_if_recorded(open_batch)
        await asyncio.gather(*self.background_tasks)

    async def find_submitted(self, queue: ModelBatchQueue, batch: ProviderBatch) -> list[str]:
        """The provider's ids of batches that may be a prepared batch whose submission was not recorded."""
        known_remote_ids = await asyncio.to_thread(batches.load_remote_ids, self.recorder.db)
        submitted_after = batch.prepared_at - MAX_CLOCK_SKEW
        return await queue.provider.find_submitted(
            queue.client, batch.tag, len(batch.call_keys), submitted_after, known_remote_ids
        )

    async def retry_request(self, send_request: Callable[[], Awaitable[T]]) -> T:
        """Send a request about a batch, with retries.

        Raises:
            BatchRequestFailed: the last attempt failed; the message says why.
        """
        n_attempts = 0
        while True:
            try:
                return await send_request()
            except BatchRequestFailed as error:
                n_attempts += 1
                if not self.may_retry(error, n_attempts):
                    raise BatchRequestFailed(
                        self.failure_reason(error),
                        error.http_status,
                        is_retryable=error.is_retryable,
                        retry_after_s=error.retry_after_s,
                    ) from error
                await self.pause_before_retry(n_attempts, error)

    async def pause_before_retry(self, n_attempts: int, error: BatchRequestFailed) -> None:
        """Wait before the next attempt, or until the run stops."""
        if (announced_s := error.retry_after_s or 0.0) > MIN_ANNOUNCED_WAIT_S:
            self.notify(pause_notice("the batches' provider", announced_s, announced_s))
        await sleep_unless_stopped(backoff_delay(n_attempts, self._rng) + announced_s, self.stop_event.is_set)

    def may_retry(self, error: BatchRequestFailed, n_attempts: int) -> bool:
        """Whether a request about a batch is retried after `n_attempts` attempts."""
        may_go_on = n_attempts < self.config.limits.max_attempts and not self.stop_event.is_set()
        return error.is_retryable and may_go_on and not self._is_wait_too_long(error)

    def failure_reason(self, error: BatchRequestFailed) -> str:
        """Why a request about a batch failed, and is not retried."""
        wait_note = (
            long_wait_message(error.retry_after_s or 0.0, self.config.limits) if self._is_wait_too_long(error) else ""
        )
        return "; ".join(filter(None, (str(error), wait_note)))

    def _is_wait_too_long(self, error: BatchRequestFailed) -> bool:
        """Whether the wait that the provider requests is longer than the config's limit."""
        return (error.retry_after_s or 0.0) > self.config.limits.max_retry_wait_s

    def start_background_task(self, coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Start a coroutine as a task that `close` cancels; returns the task."""
        task = asyncio.create_task(coroutine)
        self.background_tasks.add(task)
        task.add_done_callback(self.background_tasks.discard)
        return task


def rejected_batch_error(queue: ModelBatchQueue, reason: str) -> ModelSetupError:
    """The error for a batch that the provider rejects."""
    return ModelSetupError(
        f"the provider of model '{queue.section.name}' rejected a batch: {reason.rstrip(' .')}.",
        "Correct the cause. If the batch is too large, lower batch.most. Or remove [batch] from the config. Recorded "
        "answers are kept.",
    )
