"""What all parts of asking in batches share: the batches under way, the budget, and patience with providers."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from auditor.config import AuditConfig, BatchSection
from auditor.errors import ModelSetupError
from auditor.models.batches.client import BatchRequestFailed
from auditor.models.budget import Budget
from auditor.models.limiter import MIN_ANNOUNCED_WAIT_S, backoff_delay, sleep_unless_stopped
from auditor.models.retries import long_wait_message, pause_notice
from auditor.run.batches.model_queue import ModelBatchQueue, OpenBatch
from auditor.storage import batches, ledger
from auditor.storage.batches import ProviderBatch

if TYPE_CHECKING:
    from auditor.agents.recording import CallRecorder

T = TypeVar("T")
MIN_RETENTION_DAYS = 29
"""How long providers keep what came of a batch, at least."""
MAX_CLOCK_SKEW = timedelta(minutes=10)
"""How far a provider's clock may be from ours."""


@dataclass(eq=False)
class BatchManager:
    """A run's surroundings, and the batches under way, its own and those of earlier runs.

    Attributes:
        settings: of the config's table `batch`.
        book: where batches are written down, and for whom.
        stop: once set, nothing is sent any more.
        noted: is told what somebody who watches should know.
        put_back: takes the waiting calls of a batch that came to nothing.
        trays: by the key of each call; of one that is in several batches, the last.
        tasks: all that goes on beside the calls, and may be ended at any time.
        sending: what is on its way, and is waited for until it is written down.
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
        """Find the batches of earlier runs."""
        old = datetime.now(UTC) - timedelta(days=MIN_RETENTION_DAYS)
        found: list[OpenBatch] = []
        for batch in batches.load_open_batches(self.recorder.db):
            known = ledger.find_answered_keys(self.recorder.db, batch.call_keys)
            tray = OpenBatch(
                batch, batch.remote_id, set(batch.call_keys) - known, batch.reserved_usd / len(batch.call_keys)
            )
            for key in tray.open_keys:
                if (earlier := self.batches_by_key.get(key)) is not None:
                    earlier.open_keys.discard(key)
                self.batches_by_key[key] = tray
            found.append(tray)
        for tray in found:
            if not tray.open_keys:
                self.close_batch(tray, "collected")
            elif tray.stored_batch.prepared_at < old:
                self.close_batch(tray, f"not collected within {MIN_RETENTION_DAYS} days")
                self.notify(
                    f"The batch {tray.stored_batch.remote_id} was not collected in time: its calls are paid anew."
                )
            elif tray.stored_batch.audit_id == self.recorder.audit_id:
                self.budget.reserve_unconditionally(tray.reserved_usd_per_call * len(tray.open_keys))

    def find_open_batch(self, key: str) -> OpenBatch | None:
        """The batch under way that a call is in."""
        tray = self.batches_by_key.get(key)
        return tray if tray is not None and key in tray.open_keys else None

    def open_batches(self) -> list[OpenBatch]:
        """Batches of which something is to come."""
        return [tray for tray in {id(tray): tray for tray in self.batches_by_key.values()}.values() if tray.open_keys]

    def close_batch(self, batch: OpenBatch, reason: str) -> None:
        """Nothing more is to come of a batch."""
        for key in batch.stored_batch.call_keys:
            if self.batches_by_key.get(key) is batch:
                del self.batches_by_key[key]
        self.start_background_task(batches.record_ended_batch(self.recorder.db, batch.stored_batch, reason))

    def abandon_batch(self, batch: OpenBatch, queue: ModelBatchQueue, reason: str) -> None:
        """Nothing was done of a batch: its money is free again, and its calls wait for another."""
        self.budget.settle_reservation(batch.reserved_usd_per_call * len(batch.open_keys), None)
        self.close_batch(batch, reason)
        self.requeue(batch, queue)

    async def close_if_recorded(self, batch: OpenBatch) -> bool:
        """Whether all answers of a batch are recorded; that nothing more is to come of it is written down then."""
        batch.open_keys -= await asyncio.to_thread(ledger.find_answered_keys, self.recorder.db, list(batch.open_keys))
        if not batch.open_keys:
            self.close_batch(batch, "collected")
        return not batch.open_keys

    async def close(self) -> None:
        """End all that goes on, and write down which batches have been collected."""
        doing = list(self.background_tasks)
        for task in doing:
            task.cancel()
        await asyncio.gather(*doing, return_exceptions=True)
        for tray in list({id(tray): tray for tray in self.batches_by_key.values()}.values()):
            await self.close_if_recorded(tray)
        await asyncio.gather(*self.background_tasks)

    async def find_submitted(self, queue: ModelBatchQueue, batch: ProviderBatch) -> list[str]:
        """The provider's names for what may be a batch of which only the preparation was written down."""
        known = await asyncio.to_thread(batches.load_remote_ids, self.recorder.db)
        since = batch.prepared_at - MAX_CLOCK_SKEW
        return await queue.provider.find_submitted(queue.client, batch.tag, len(batch.call_keys), since, known)

    async def retry_request(self, send_request: Callable[[], Awaitable[T]]) -> T:
        """Ask the provider, and again where that may help.

        Raises:
            NotTaken: nothing helped.
        """
        tries = 0
        while True:
            try:
                return await send_request()
            except BatchRequestFailed as error:
                tries += 1
                if not self.may_retry(error, tries):
                    raise BatchRequestFailed(
                        self.failure_reason(error),
                        error.http_status,
                        is_retryable=error.is_retryable,
                        retry_after_s=error.retry_after_s,
                    ) from error
                await self.pause_before_retry(tries, error)

    async def pause_before_retry(self, n_attempts: int, error: BatchRequestFailed) -> None:
        """Wait before another try, or until nothing is to go out any more."""
        if (asked_s := error.retry_after_s or 0.0) > MIN_ANNOUNCED_WAIT_S:
            self.notify(pause_notice("the batches' provider", asked_s, asked_s))
        await sleep_unless_stopped(backoff_delay(n_attempts, self._rng) + asked_s, self.stop_event.is_set)

    def may_retry(self, error: BatchRequestFailed, n_attempts: int) -> bool:
        """Whether a request about a batch is tried again, after so many tries."""
        more = n_attempts < self.config.limits.max_attempts and not self.stop_event.is_set()
        return error.is_retryable and more and not self._is_wait_too_long(error)

    def failure_reason(self, error: BatchRequestFailed) -> str:
        """Why a request about a batch did not succeed, and is not tried again."""
        waits = (
            long_wait_message(error.retry_after_s or 0.0, self.config.limits) if self._is_wait_too_long(error) else ""
        )
        return "; ".join(filter(None, (str(error), waits)))

    def _is_wait_too_long(self, error: BatchRequestFailed) -> bool:
        return (error.retry_after_s or 0.0) > self.config.limits.max_retry_wait_s

    def start_background_task(self, coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Do something beside the calls."""
        task = asyncio.create_task(coroutine)
        self.background_tasks.add(task)
        task.add_done_callback(self.background_tasks.discard)
        return task


def rejected_batch_error(queue: ModelBatchQueue, reason: str) -> ModelSetupError:
    """A batch that the provider refuses, in words."""
    return ModelSetupError(
        f"the provider of model '{queue.section.name}' does not take a batch: {reason.rstrip(' .')}.",
        "Mend that, set batch.most lower where it is too large, or take [batch] out of the config. "
        "Nothing recorded is lost.",
    )
