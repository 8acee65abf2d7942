"""Looking after batches, and handing out what came of them."""

from __future__ import annotations

import asyncio
import tempfile
from asyncio import FIRST_COMPLETED as FIRST
from dataclasses import replace
from datetime import UTC, datetime
from typing import IO

from auditor.domain import Answer, Attempt, Outcome
from auditor.errors import ModelSetupError
from auditor.models.batches.call_translation import parse_batch_answer
from auditor.models.batches.client import BatchRequestFailed
from auditor.models.batches.provider import BatchCallResponse, BatchStatus
from auditor.models.failures import RequestFailure
from auditor.models.provider_request import ProviderReply
from auditor.models.responses import sanitize
from auditor.models.transport import MAX_RECORDED_BYTES, MAX_RESPONSE_BYTES
from auditor.run.batches.manager import BatchManager, rejected_batch_error
from auditor.run.batches.model_queue import ModelBatchQueue, OpenBatch, PendingCall
from auditor.run.batches.result_file import iter_call_responses
from auditor.storage import batches

MAX_POLL_FACTOR = 15
"""The longest pause between two looks at a batch, in first pauses."""


def start_collecting(manager: BatchManager, batch: OpenBatch, queue: ModelBatchQueue, *, is_new: bool = False) -> None:
    """See to it that somebody looks after a batch for which calls wait.

    Args:
        fresh: whether it has only just gone out.
    """
    if batch.collect_task is None or batch.collect_task.done():
        batch.collect_task = manager.start_background_task(_collect_batch(manager, batch, queue, is_new))


async def _collect_batch(manager: BatchManager, batch: OpenBatch, queue: ModelBatchQueue, is_new: bool) -> None:
    try:
        if batch.remote_id is None and not await _is_submitted(manager, batch, queue):
            return
        state = await _wait_until_ended(manager, batch, queue, is_new)
        batch.is_queue_full = state.is_queue_full
        if state.rejection_reason is not None:
            await _requeue_rejected(manager, batch, queue, state)
            return
        while batch.pending_calls:  # more may come while some are handed out
            await _wait_for_late_calls(batch, manager.settings.quiet_s)
            await _resolve_calls(manager, batch, queue, state)
        manager.start_background_task(_close_when_recorded(manager, batch))
    except Exception as error:  # noqa: BLE001 - it goes to whoever waits for it
        for waiter in batch.pending_calls.values():
            waiter.fail(error)
        batch.pending_calls.clear()


async def _is_submitted(manager: BatchManager, batch: OpenBatch, queue: ModelBatchQueue) -> bool:
    """Whether a batch of which only the preparation was written down is at the provider."""
    try:
        found = await manager.retry_request(lambda: manager.find_submitted(queue, batch.stored_batch))
    except BatchRequestFailed as error:
        raise rejected_batch_error(queue, str(error)) from None
    for remote in found:
        batch.remote_id = remote
        if queue.provider.is_match_certain or await _contains_own_calls(manager, batch, queue):
            await batches.record_submitted_batch(manager.recorder.db, batch.stored_batch, remote)
            return True
    batch.remote_id = None
    manager.notify(
        f"A batch of {len(batch.stored_batch.call_keys)} calls to '{queue.section.name}' never left: they go out now."
    )
    manager.abandon_batch(batch, queue, "never submitted")
    return False


async def _contains_own_calls(manager: BatchManager, batch: OpenBatch, queue: ModelBatchQueue) -> bool:
    """Whether the results of what may be a batch are of its calls; that is known once it has ended."""
    state, wanted = await _wait_until_ended(manager, batch, queue, is_new=False), set(batch.stored_batch.call_keys)
    for path in state.result_paths:
        with tempfile.TemporaryFile() as file:
            await _download_results(manager, batch, queue, path, file)
            if any(result is not None and result.key in wanted for result in iter_call_responses(file, queue.provider)):
                return True
    return False


async def _wait_until_ended(
    manager: BatchManager, batch: OpenBatch, queue: ModelBatchQueue, is_new: bool
) -> BatchStatus:
    """A batch's state once it has ended; a provider that cannot be reached is asked again, for days if need be."""
    first = pause = manager.settings.poll_s
    while True:
        if is_new:
            await asyncio.sleep(pause)
            pause = min(1.5 * pause, MAX_POLL_FACTOR * first)
        is_new = True
        try:
            state = await queue.provider.fetch_status(queue.client, batch.remote_id or "")
        except BatchRequestFailed as error:
            if not error.is_retryable:
                raise _uncollectable_error(batch, queue, str(error)) from None
            continue
        if state.has_ended:
            return state


async def _requeue_rejected(
    manager: BatchManager, batch: OpenBatch, queue: ModelBatchQueue, status: BatchStatus
) -> None:
    """A batch that was refused as a whole: where that is for others that are under way, it goes out again later."""
    others = [
        other.collect_task
        for other in manager.open_batches()
        if other.stored_batch.model_name == batch.stored_batch.model_name
        and other.collect_task
        and not other.collect_task.done()
        and not other.is_queue_full
    ]
    tries = max((waiter.n_rejections for waiter in batch.pending_calls.values()), default=0)
    if not status.is_queue_full or (tries >= manager.config.limits.max_attempts and not others):
        manager.close_batch(batch, "refused")
        raise rejected_batch_error(queue, status.rejection_reason or "")
    manager.notify(f"The batch {batch.remote_id} has to wait for others: {status.rejection_reason}")
    for waiter in batch.pending_calls.values():
        waiter.n_rejections += not others
    await asyncio.wait(
        [*others, manager.start_background_task(asyncio.sleep(MAX_POLL_FACTOR * manager.settings.poll_s))],
        return_when=FIRST,
    )
    manager.abandon_batch(batch, queue, "refused")


async def _wait_for_late_calls(batch: OpenBatch, quiet_s: float) -> None:
    """Wait while more calls come to wait for a batch, since all of its results are fetched at once."""
    before = -1
    while before != len(batch.pending_calls):
        before = len(batch.pending_calls)
        await asyncio.sleep(quiet_s)


async def _resolve_calls(manager: BatchManager, batch: OpenBatch, queue: ModelBatchQueue, status: BatchStatus) -> None:
    waiting, strange, name = dict(batch.pending_calls), 0, queue.section.name
    asked, wanted = len(waiting), set(batch.stored_batch.call_keys)
    for path in status.result_paths:
        with tempfile.TemporaryFile() as file:
            await _download_results(manager, batch, queue, path, file)
            for result in iter_call_responses(file, queue.provider):
                if result is None or result.key not in wanted:
                    strange += 1
                elif (waiter := waiting.pop(result.key, None)) is not None:
                    await _resolve_call(manager, batch, queue, waiter, result)
    for waiter in waiting.values():
        await _resolve_call(
            manager,
            batch,
            queue,
            waiter,
            BatchCallResponse(waiter.call.key, None, not_sent_reason=f"the batch is {status.provider_status}"),
        )
    manager.notify(
        f"The batch {batch.remote_id} of '{name}' is {status.provider_status}: {asked} calls were collected."
    )
    if strange:
        manager.notify(f"{strange} lines of the batch {batch.remote_id} are of no call in it, and were not taken.")


async def _download_results(
    manager: BatchManager, batch: OpenBatch, queue: ModelBatchQueue, path: str, file: IO[bytes]
) -> None:
    most = len(batch.stored_batch.call_keys) * MAX_RECORDED_BYTES + MAX_RESPONSE_BYTES

    async def whole() -> None:
        file.seek(0)
        file.truncate()
        await queue.client.download_file(path, file, most)

    try:
        await manager.retry_request(whole)
    except BatchRequestFailed as error:
        raise _uncollectable_error(batch, queue, str(error)) from None
    file.seek(0)


async def _resolve_call(
    manager: BatchManager,
    batch: OpenBatch,
    queue: ModelBatchQueue,
    pending_call: PendingCall,
    call_response: BatchCallResponse,
) -> None:
    call, number = pending_call.call, pending_call.attempt_number
    if call_response.http_status is None:
        reply = _not_sent_reply(pending_call, call_response.not_sent_reason)
    else:
        reply = await parse_batch_answer(
            queue.endpoint, call, call_response, attempt_number=number, timeout_s=queue.section.timeout_s
        )
    began = batch.stored_batch.prepared_at
    took = (datetime.now(UTC) - began).total_seconds()
    attempts = [replace(a, started_at=began, latency_s=took) for a in reply.answer.attempts]
    answer = replace(reply.answer, attempts=tuple(attempts))
    manager.budget.settle_reservation(batch.reserved_usd_per_call, answer.cost_usd)
    if not answer.outcome.is_answer:
        batch.open_keys.discard(call.key)
    del batch.pending_calls[call.key]
    pending_call.resolve(replace(reply, answer=answer))
    await asyncio.sleep(0)  # so that it is recorded while the next is read


def _not_sent_reply(pending_call: PendingCall, reason: str) -> ProviderReply:
    reason = sanitize(reason)
    attempt = Attempt(
        pending_call.attempt_number,
        datetime.now(UTC),
        0.0,
        Outcome.TIMEOUT,
        error=reason,
        cost_usd=0.0,
        estimated=False,
    )
    answer = Answer(pending_call.call.key, Outcome.TIMEOUT, error=reason, attempts=(attempt,), cost_usd=0.0)
    return ProviderReply(answer, RequestFailure(Outcome.TIMEOUT, True, False, reason))


async def _close_when_recorded(manager: BatchManager, batch: OpenBatch) -> None:
    """Close a batch once all of its answers are recorded; those that nobody asks for any more stay to be had."""
    before = -1
    while not await manager.close_if_recorded(batch) and before != len(batch.open_keys):
        before = len(batch.open_keys)
        await asyncio.sleep(manager.settings.quiet_s)


def _uncollectable_error(batch: OpenBatch, queue: ModelBatchQueue, reason: str) -> ModelSetupError:
    return ModelSetupError(
        f"the batch {batch.remote_id} of model '{queue.section.name}' cannot be collected: {reason.rstrip(' .')}.",
        "Use the key that it was submitted with. Without [batch] in the config its calls are asked, and paid, anew.",
    )
