"""Poll submitted batches, and resolve their calls with the results."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from http import HTTPStatus
from typing import IO

from auditor.domain import Answer, Attempt, Outcome
from auditor.errors import ModelSetupError, pluralize
from auditor.models.batches.provider import (
    BatchCallResponse,
    BatchRequestFailed,
    BatchStatus,
    full_disk_error,
    parse_batch_answer,
)
from auditor.models.budget import NO_CHARGE, RequestCharge, charge_estimate
from auditor.models.failures import RequestFailure
from auditor.models.provider_request import ProviderReply
from auditor.models.responses import sanitize
from auditor.models.transport import MAX_RECORDED_BYTES, MAX_RESPONSE_BYTES
from auditor.run.batches.manager import BatchManager, ModelBatchQueue, OpenBatch, PendingCall, rejected_batch_error
from auditor.storage import batches

MAX_POLL_FACTOR = 15
"""The longest pause between two polls of a batch, as a multiple of the first one."""
MAX_READINGS = 4
"""How often results are read that have fewer answers than the provider counts: they may not be complete yet."""
MAX_NOT_FOUND = 4
"""Polls in a row after which a batch that the provider does not find is taken for lost."""
MAX_CHARGED_LOSSES = 2
"""Attempts at a call, after which it is not sent again if its answer was charged and cannot be found."""

COLLECT_LATER_ADVICE = (
    "Run the same command again later, with the API key with which it was submitted. Or remove [batch] from the "
    "config: its calls are then sent again, and charged again."
)


def start_collecting(manager: BatchManager, batch: OpenBatch, queue: ModelBatchQueue, *, is_new: bool = False) -> None:
    """Start a background task that collects a batch, unless one is running.

    Args:
        manager: the run's batches.
        batch: a batch with pending calls.
        queue: the queue of the batch's model.
        is_new: whether the batch was submitted just now, so that the first poll can wait.
    """
    if batch.collect_task is None or batch.collect_task.done():
        batch.collect_task = manager.start_background_task(_collect_batch(manager, batch, queue, is_new))


async def _collect_batch(manager: BatchManager, batch: OpenBatch, queue: ModelBatchQueue, is_new: bool) -> None:
    """Wait until a batch has ended, and resolve its calls; an error is raised in the waiting calls."""
    try:
        if batch.remote_id is None and not await _is_submitted(manager, batch, queue):
            return
        status = await _wait_until_ended(manager, batch, queue, is_new)
        batch.is_queue_full = status.is_queue_full
        if status.rejection_reason is not None:
            await _requeue_rejected(manager, batch, queue, status)
            return
        while batch.pending_calls:  # more calls may arrive while some are resolved
            await _wait_for_late_calls(batch, manager.settings.quiet_s)
            await _resolve_calls(manager, batch, queue, status)
        manager.start_background_task(_close_when_recorded(manager, batch))
    except Exception as error:  # noqa: BLE001 - raised in the waiting calls
        await _wait_for_others(manager, batch, error)
        for pending_call in batch.pending_calls.values():
            pending_call.fail(error)
        batch.pending_calls.clear()


async def _wait_for_others(manager: BatchManager, failed: OpenBatch, error: Exception) -> None:
    """Wait until the other batches are collected: the error ends the run, and their answers are paid for."""
    failed.has_failed = True
    n_announced = 0
    while tasks := [
        batch.collect_task
        for batch in manager.open_batches()
        if batch.collect_task and not batch.has_failed and not batch.collect_task.done()
    ]:
        if not n_announced and isinstance(error, ModelSetupError):
            manager.notify(f"{error.message} The run ends once the other batches are collected: {len(tasks)} are open.")
        n_announced += 1
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)


async def _is_submitted(manager: BatchManager, batch: OpenBatch, queue: ModelBatchQueue) -> bool:
    """Find a batch at its provider that was recorded as prepared, but not as submitted.

    Returns:
        Whether the provider has it; if not, it is abandoned, and its calls wait for another batch.
    """
    try:
        remote_ids = await manager.retry_request(lambda: manager.find_submitted(queue, batch.stored_batch))
    except BatchRequestFailed as error:
        raise rejected_batch_error(queue, str(error)) from None
    for remote_id in remote_ids:
        batch.remote_id = remote_id
        if queue.provider.is_match_certain or await _results_match_batch(manager, batch, queue):
            await batches.record_submitted_batch(manager.recorder.db, batch.stored_batch, remote_id)
            return True
    batch.remote_id = None
    calls = pluralize(len(batch.stored_batch.call_keys), "call")
    manager.notify(f"A batch of {calls} to '{queue.section.name}' was never submitted: its calls are sent now.")
    manager.abandon_batch(batch, queue, batches.NEVER_SUBMITTED)
    return False


async def _results_match_batch(manager: BatchManager, batch: OpenBatch, queue: ModelBatchQueue) -> bool:
    """Whether the results at the provider belong to the batch's calls; waits until the provider's batch has ended."""
    status, batch_keys = await _wait_until_ended(manager, batch, queue, is_new=False), set(batch.stored_batch.call_keys)
    return any(
        [
            call_response is not None and call_response.key in batch_keys
            async for call_response in _iter_results(manager, batch, queue, status)
        ]
    )


async def _wait_until_ended(
    manager: BatchManager, batch: OpenBatch, queue: ModelBatchQueue, is_new: bool
) -> BatchStatus:
    """Poll a batch until it has ended, and return its status; retryable errors are retried without limit.

    Providers sometimes do not find a batch that they have
    (https://github.com/anthropics/anthropic-sdk-python/issues/1432).

    Raises:
        ModelSetupError: the provider refuses to return the status.
    """
    initial_pause_s = pause_s = manager.settings.poll_s
    n_not_found = 0
    while True:
        if is_new:
            await asyncio.sleep(pause_s)
            # Each pause is half as long again, up to the limit.
            pause_s = min(1.5 * pause_s, MAX_POLL_FACTOR * initial_pause_s)
        is_new = True
        try:
            status = await queue.provider.fetch_status(queue.client, batch.remote_id or "")
        except BatchRequestFailed as error:
            n_not_found = n_not_found + 1 if error.http_status == HTTPStatus.NOT_FOUND else 0
            if not error.is_retryable and not 0 < n_not_found < MAX_NOT_FOUND:
                raise _uncollectable_error(batch, queue, str(error)) from None
            continue
        if status.has_ended:
            return status


async def _requeue_rejected(
    manager: BatchManager, batch: OpenBatch, queue: ModelBatchQueue, status: BatchStatus
) -> None:
    """Resubmit a rejected batch later, if the provider's queue was full.

    It waits until another batch of the model has ended, or for the longest pause between polls.

    Raises:
        ModelSetupError: it was rejected for another reason, or too often although no other batch was open.
    """
    other_tasks = [
        other_batch.collect_task
        for other_batch in manager.open_batches()
        if other_batch.stored_batch.model_name == batch.stored_batch.model_name
        and other_batch.collect_task
        and not other_batch.collect_task.done()
        and not other_batch.is_queue_full
    ]
    # The calls' rejections so far without another open batch that could have filled the provider's queue.
    n_rejections = max((pending_call.n_rejections for pending_call in batch.pending_calls.values()), default=0)
    if not status.is_queue_full or (n_rejections >= manager.config.limits.max_attempts and not other_tasks):
        manager.close_batch(batch, batches.REFUSED)
        raise rejected_batch_error(queue, status.rejection_reason or "")
    manager.notify(
        f"The batch {batch.remote_id} was rejected by the provider and will be submitted again by itself: "
        f"{status.rejection_reason}"
    )
    for pending_call in batch.pending_calls.values():
        pending_call.n_rejections += not other_tasks  # counted only if no other batch explains the full queue
    await asyncio.wait(
        [*other_tasks, manager.start_background_task(asyncio.sleep(MAX_POLL_FACTOR * manager.settings.poll_s))],
        return_when=asyncio.FIRST_COMPLETED,
    )
    manager.abandon_batch(batch, queue, batches.REFUSED)


async def _wait_for_late_calls(batch: OpenBatch, quiet_s: float) -> None:
    """Wait until no new call joins a batch for `quiet_s` seconds, since all of its results are downloaded at once."""
    n_before = -1
    while n_before != len(batch.pending_calls):
        n_before = len(batch.pending_calls)
        await asyncio.sleep(quiet_s)


@dataclass(slots=True)
class _ResultLines:
    """What a batch's results say about calls, as counted while they are read.

    Attributes:
        known_keys: keys of the batch's calls that a line names.
        succeeded_keys: those of them that were answered.
        n_unmatched: lines that name no call of the batch, or are malformed.
        n_malformed: those of them that are malformed.
        n_repeated: lines that name a call again.
        failures: failed requests, and reasons why calls were not sent, by key; an answer in another line counts.
    """

    known_keys: set[str] = field(default_factory=set)
    succeeded_keys: set[str] = field(default_factory=set)
    n_unmatched: int = 0
    n_malformed: int = 0
    n_repeated: int = 0
    failures: dict[str, BatchCallResponse] = field(default_factory=dict)

    @property
    def are_unreadable(self) -> bool:
        """Whether all lines are malformed, as of a page that a gateway sends in place of the results."""
        return not self.known_keys and 0 < self.n_malformed == self.n_unmatched

    def count_missing(self, status: BatchStatus, batch: OpenBatch) -> int:
        """Number of calls that the provider counts as answered, and for which there is no line."""
        n_without_line = len(batch.stored_batch.call_keys) - len(self.known_keys) - self.n_unmatched
        return max(0, min(n_without_line, status.n_succeeded - len(self.succeeded_keys) - self.n_unmatched))


async def _resolve_calls(manager: BatchManager, batch: OpenBatch, queue: ModelBatchQueue, status: BatchStatus) -> None:
    """Download a batch's results, and resolve its pending calls; those without a result fail with a timeout.

    Each line that cannot be matched was an answer to one of them, and was charged; so was each answer that the provider
    counts and does not return. The results are read again before, since they may not be complete yet.

    Raises:
        ModelSetupError: the results cannot be downloaded, or no line of them can be read.
    """
    unanswered = dict(batch.pending_calls)
    n_pending, n_answered = len(unanswered), 0
    lines, n_more = await _read_results(manager, batch, queue, status, unanswered)
    for _ in range(MAX_READINGS - 1):
        n_answered += n_more
        if not unanswered or not (lines.are_unreadable or lines.count_missing(status, batch)):
            break
        await asyncio.sleep(manager.settings.poll_s)
        status = await _wait_until_ended(manager, batch, queue, is_new=False)
        lines, n_more = await _read_results(manager, batch, queue, status, unanswered)
    else:
        n_answered += n_more
    if lines.are_unreadable:
        raise _uncollectable_error(
            batch,
            queue,
            "its results do not say which questions they answer",
            "A gateway may have replaced the results: run the same command once more. If it fails again, remove "
            "[batch] from the config: the calls are then sent one by one, and charged again, as their answers in the "
            "batch were charged already.",
        )
    n_lost = lines.n_unmatched + lines.count_missing(status, batch)
    n_given_up = 0
    for key, pending_call in unanswered.items():
        may_be_charged = key not in lines.failures and n_lost > 0
        n_lost -= may_be_charged
        n_given_up += may_be_charged and pending_call.attempt_number >= MAX_CHARGED_LOSSES
        missing = BatchCallResponse(key, None, not_sent_reason=f"the batch is {status.provider_status}")
        response = lines.failures.get(key, missing)
        n_answered += response.http_status is not None
        await _resolve_call(manager, batch, queue, pending_call, response, may_be_charged=may_be_charged)
    _report_results(manager, batch, queue, status, lines, n_answered, n_pending, n_given_up)


async def _read_results(
    manager: BatchManager,
    batch: OpenBatch,
    queue: ModelBatchQueue,
    status: BatchStatus,
    unanswered: dict[str, PendingCall],
) -> tuple[_ResultLines, int]:
    """Read a batch's results, resolve the calls that were answered, and take them out of `unanswered`.

    Returns:
        The counts of lines, and the number of calls that were resolved.
    """
    lines, n_resolved, batch_keys = _ResultLines(), 0, set(batch.stored_batch.call_keys)
    async for response in _iter_results(manager, batch, queue, status):
        if response is None or response.key not in batch_keys:
            lines.n_unmatched += 1
            lines.n_malformed += response is None
            continue
        lines.n_repeated += response.key in lines.known_keys
        lines.known_keys.add(response.key)
        if response.http_status is None or response.http_status >= 400:
            if response.http_status is not None or response.key not in lines.failures:
                lines.failures[response.key] = response
            continue
        lines.succeeded_keys.add(response.key)
        if (pending_call := unanswered.pop(response.key, None)) is not None:
            n_resolved += 1
            await _resolve_call(manager, batch, queue, pending_call, response)
    return lines, n_resolved


def _report_results(
    manager: BatchManager,
    batch: OpenBatch,
    queue: ModelBatchQueue,
    status: BatchStatus,
    lines: _ResultLines,
    n_answered: int,
    n_pending: int,
    n_given_up: int,
) -> None:
    """Tell the user what a batch has brought, and what is wrong with its results."""
    manager.notify(
        f"The batch {batch.remote_id} of '{queue.section.name}' is {status.provider_status}: the answers to "
        f"{f'{n_answered} of ' if n_answered < n_pending else ''}{pluralize(n_pending, 'call')} were "
        "collected."
    )
    if lines.n_unmatched:
        manager.notify(
            f"{pluralize(lines.n_unmatched, 'line')} that the provider returned for the batch {batch.remote_id} "
            f"{'answers' if lines.n_unmatched == 1 else 'answer'} none of its questions, and "
            f"{'was' if lines.n_unmatched == 1 else 'were'} ignored. As many unanswered questions are charged by "
            "estimate."
        )
    if n_missing := lines.count_missing(status, batch):
        manager.notify(
            f"The provider counts {pluralize(status.n_succeeded, 'answer')} in the batch {batch.remote_id}, and does "
            f"not return {n_missing} of them. As many unanswered questions are charged by estimate."
        )
    if n_given_up:
        manager.notify(
            f"{pluralize(n_given_up, 'call')} to '{queue.section.name}' went into {MAX_CHARGED_LOSSES} batches without "
            "an answer that can be matched, and "
            f"{'is' if n_given_up == 1 else 'are'} not sent again in this run. If it happens again, remove [batch]."
        )
    if lines.n_repeated:
        manager.notify(
            f"In the results of the batch {batch.remote_id}, "
            f"{pluralize(lines.n_repeated, 'line answers', 'lines answer')} a question again; the first answer counts."
        )


async def _iter_results(
    manager: BatchManager, batch: OpenBatch, queue: ModelBatchQueue, status: BatchStatus
) -> AsyncIterator[BatchCallResponse | None]:
    """Download all files of results, with retries, and yield the response to each call; None for a malformed one.

    Raises:
        ModelSetupError: a file cannot be downloaded.
    """
    if not status.result_paths:
        return
    try:
        with tempfile.TemporaryFile() as file:
            for path in status.result_paths:
                await _append_file(manager, batch, queue, path, file)
            file.seek(0)
            for call_response in queue.provider.iter_responses(file, batch.stored_batch.call_keys):
                yield call_response
    except OSError as error:  # also of closing the file, which writes what is left
        raise full_disk_error(error) from None


async def _append_file(
    manager: BatchManager, batch: OpenBatch, queue: ModelBatchQueue, path: str, file: IO[bytes]
) -> None:
    """Download a file of results to the end of another, with retries.

    Raises:
        ModelSetupError: it cannot be downloaded.
    """
    max_bytes = len(batch.stored_batch.call_keys) * MAX_RECORDED_BYTES + MAX_RESPONSE_BYTES
    start = file.tell()

    async def download_from_start() -> None:
        """Download the file from its beginning, without what a failed attempt has written."""
        file.seek(start)
        file.truncate()
        await queue.client.download_file(path, file, max_bytes)

    try:
        await manager.retry_request(download_from_start)
    except BatchRequestFailed as error:
        raise _uncollectable_error(batch, queue, str(error)) from None
    file.write(b"\n")  # the next file begins a line


async def _resolve_call(
    manager: BatchManager,
    batch: OpenBatch,
    queue: ModelBatchQueue,
    pending_call: PendingCall,
    call_response: BatchCallResponse,
    *,
    may_be_charged: bool = False,
) -> None:
    """Resolve one call with its result, settle its share of the budget, and take it out of the batch.

    Args:
        may_be_charged: whether a call without a result may have been answered in a line that cannot be matched.
    """
    call, attempt_number = pending_call.call, pending_call.attempt_number
    if call_response.http_status is None:
        price, capability = queue.endpoint.price, batch.stored_batch.capability
        charge = charge_estimate(call, price, capability) if may_be_charged else NO_CHARGE
        may_retry = not may_be_charged or attempt_number < MAX_CHARGED_LOSSES
        reply = _not_sent_reply(pending_call, call_response.not_sent_reason, charge, may_retry)
    else:
        reply = await parse_batch_answer(
            queue.endpoint,
            call,
            call_response,
            attempt_number=attempt_number,
            timeout_s=queue.section.resolved_timeout_s,
            capability=batch.stored_batch.capability,
        )
    started_at = batch.stored_batch.prepared_at
    latency_s = (datetime.now(UTC) - started_at).total_seconds()
    attempts = [replace(attempt, started_at=started_at, latency_s=latency_s) for attempt in reply.answer.attempts]
    answer = replace(reply.answer, attempts=tuple(attempts))
    manager.budget.settle_reservation(batch.reserved_usd_per_call, answer.cost_usd)
    notice = manager.budget.record_excess(call, queue.endpoint.price, answer, batch.stored_batch.capability)
    if notice is not None:
        manager.notify(notice)
    if not answer.outcome.is_answer:
        batch.open_keys.discard(call.key)
    del batch.pending_calls[call.key]
    pending_call.resolve(replace(reply, answer=answer))
    await asyncio.sleep(0)  # lets the answer be recorded while the next line is read


def _not_sent_reply(pending_call: PendingCall, reason: str, charge: RequestCharge, may_retry: bool) -> ProviderReply:
    """A timeout for a call without a result."""
    reason = sanitize(reason)
    attempt = Attempt(
        pending_call.attempt_number,
        datetime.now(UTC),
        0.0,
        Outcome.TIMEOUT,
        error=reason,
        cost_usd=charge.usd,
        estimated=charge.estimated,
    )
    answer = Answer(pending_call.call.key, Outcome.TIMEOUT, error=reason, attempts=(attempt,), cost_usd=charge.usd)
    return ProviderReply(answer, RequestFailure(Outcome.TIMEOUT, may_retry, False, reason))


async def _close_when_recorded(manager: BatchManager, batch: OpenBatch) -> None:
    """Close a batch once its answers are recorded; give up if a pause adds none, as some calls were not requested."""
    n_open_before = -1
    while not await manager.close_if_recorded(batch) and n_open_before != len(batch.open_keys):
        n_open_before = len(batch.open_keys)
        await asyncio.sleep(manager.settings.quiet_s)


def _uncollectable_error(
    batch: OpenBatch, queue: ModelBatchQueue, reason: str, how_to_fix: str = COLLECT_LATER_ADVICE
) -> ModelSetupError:
    """The error for a batch whose status or results cannot be fetched, or cannot be matched."""
    return ModelSetupError(
        f"the batch {batch.remote_id} of model '{queue.section.name}' cannot be collected: {reason.rstrip(' .')}.",
        how_to_fix,
    )
