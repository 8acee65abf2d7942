"""Submit calls as batches: each batch is recorded before it is sent, and again with the provider's id."""

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
from auditor.storage.call_records import ProviderBatch

OVER_BUDGET_ERROR = "the budget is spent"


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
        manager.notify(f"{len(call_keys)} calls to '{queue.section.name}' were submitted as the batch {remote_id}.")
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
        try:
            if n_attempts and (remote_ids := await manager.find_submitted(queue, batch)):
                return remote_ids[0] if queue.provider.is_match_certain else None
            return await queue.provider.submit(chunk.client, chunk.formatted_calls, batch.tag)
        except BatchRequestFailed as error:
            n_attempts += 1
            if not error.is_retryable:
                await batches.record_ended_batch(manager.recorder.db, batch, "refused")
                raise rejected_batch_error(queue, str(error)) from None
            if not manager.may_retry(error, n_attempts):
                # The next run finds out whether the batch arrived.
                raise rejected_batch_error(queue, manager.failure_reason(error)) from None
            await manager.pause_before_retry(n_attempts, error)
