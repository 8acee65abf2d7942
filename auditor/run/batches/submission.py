"""Sending calls as batches: each is written down before it goes out, and again with the provider's name for it."""

from __future__ import annotations

import asyncio
import uuid

from auditor.domain import Answer, Outcome
from auditor.failpoints import failpoint
from auditor.models.batches.client import BatchRequestFailed
from auditor.models.provider_request import ProviderReply
from auditor.run.batches.collection import start_collecting
from auditor.run.batches.manager import BatchManager, rejected_batch_error
from auditor.run.batches.model_queue import BatchChunk, ModelBatchQueue, OpenBatch, PendingCall, split_into_chunks
from auditor.storage import batches
from auditor.storage.batches import ProviderBatch

OVER_BUDGET_ERROR = "the budget is spent"


async def submit_calls(manager: BatchManager, queue: ModelBatchQueue, pending_calls: list[PendingCall]) -> None:
    """Send calls, as far as the budget goes; what is on its way is written down, whoever stops waiting for it.

    Raises:
        ModelSetupError: the provider does not take them.
    """
    most = min(manager.settings.most, queue.provider.max_calls)
    async for part in split_into_chunks(
        queue, pending_calls, most, lambda waiter: _reserve_budget(manager, queue, waiter)
    ):
        if manager.stop_event.is_set():
            return
        task = asyncio.create_task(_submit_chunk(manager, queue, part))
        manager.submissions.add(task)
        task.add_done_callback(manager.submissions.discard)
        await asyncio.shield(task)


def _reserve_budget(manager: BatchManager, queue: ModelBatchQueue, pending_call: PendingCall) -> bool:
    if manager.stop_event.is_set():
        return False
    pending_call.reserved_usd = manager.budget.estimate_max_cost(pending_call.call, queue.endpoint.price)
    if manager.budget.reserve(pending_call.reserved_usd):
        return True
    pending_call.resolve(
        ProviderReply(Answer(pending_call.call.key, Outcome.OVER_BUDGET, error=OVER_BUDGET_ERROR), None)
    )
    return False


async def _submit_chunk(manager: BatchManager, queue: ModelBatchQueue, chunk: BatchChunk) -> None:
    calls, reserved = [w.call.key for w in chunk.pending_calls], sum(w.reserved_usd for w in chunk.pending_calls)
    batch = await batches.record_prepared_batch(
        manager.recorder.db,
        manager.recorder.audit_id,
        tag=uuid.uuid4().hex,
        model_name=queue.section.name,
        call_keys=calls,
        reserved_usd=reserved,
    )
    failpoint("batch_prepared")
    remote = await _submit_with_retries(manager, queue, chunk, batch)
    failpoint("batch_sent")
    if remote is not None:
        await batches.record_submitted_batch(manager.recorder.db, batch, remote)
        manager.notify(f"{len(calls)} calls to '{queue.section.name}' went out as the batch {remote}.")
    failpoint("batch_submitted")
    tray = OpenBatch(batch, remote, set(calls), reserved / len(calls), {w.call.key: w for w in chunk.pending_calls})
    manager.batches_by_key |= dict.fromkeys(calls, tray)
    start_collecting(manager, tray, queue, is_new=True)


async def _submit_with_retries(
    manager: BatchManager, queue: ModelBatchQueue, chunk: BatchChunk, batch: ProviderBatch
) -> str | None:
    """The provider's name for a batch; None where it may have arrived, though nobody heard so, and under which name."""
    tries = 0
    while True:
        try:
            if tries and (found := await manager.find_submitted(queue, batch)):
                return found[0] if queue.provider.is_match_certain else None
            return await queue.provider.submit(chunk.client, chunk.formatted_calls, batch.tag)
        except BatchRequestFailed as error:
            tries += 1
            if not error.is_retryable:
                await batches.record_ended_batch(manager.recorder.db, batch, "refused")
                raise rejected_batch_error(queue, str(error)) from None
            if not manager.may_retry(error, tries):
                raise rejected_batch_error(
                    queue, manager.failure_reason(error)
                ) from None  # whether it arrived is found out by the next run
            await manager.pause_before_retry(tries, error)
