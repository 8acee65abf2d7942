"""An asker that gathers the calls that wait at the same time, and puts them to their providers as batches."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from auditor.config import EMBEDDED_PREFIX, AuditConfig, BatchSection
from auditor.domain import Answer, Call, LogprobMeasure, total_cost
from auditor.errors import AuditorError, ModelSetupError
from auditor.models.batches import find_batch_provider
from auditor.models.batches.call_translation import prepare_request
from auditor.models.batches.client import BatchClient, BatchRequestFailed
from auditor.models.endpoint import resolve_endpoint
from auditor.models.provider_request import ProviderReply
from auditor.run.batches.collection import start_collecting
from auditor.run.batches.manager import BatchManager
from auditor.run.batches.model_queue import ModelBatchQueue, OpenBatch, PendingCall
from auditor.run.batches.submission import submit_calls
from auditor.storage import batches, ledger

if TYPE_CHECKING:
    from auditor.agents.recording import CallRecorder
    from auditor.models.gateway import Gateway

STOP_POLL_INTERVAL_S = 0.1
"""How often it is seen whether the run is to stop."""


class BatchingClient:
    """Answers calls out of batches; those that cannot go into one are asked as usual."""

    def __init__(
        self,
        gateway: Gateway,
        config: AuditConfig,
        recorder: CallRecorder,
        stop_event: threading.Event,
        notify: Callable[[str], None],
    ) -> None:
        """Find what earlier runs have under way; nothing goes out yet. Make one inside the event loop, and close it.

        Args:
            gateway: asks what goes out as usual.
            config: with its table `batch`.
            book: where batches are written down, and for whom.
            stop: once set, whoever waits is told that the run is over; batches go on.
            noted: is told what somebody who watches should know.
        """
        self._gateway, self._config, self._recorder, self._stop_event = gateway, config, recorder, stop_event
        settings = config.batch or BatchSection()
        self._manager = BatchManager(gateway.budget, settings, config, recorder, stop_event, notify, self._requeue)
        self._queues: dict[str, asyncio.Task[ModelBatchQueue | None]] = {}
        self._slots: dict[str, asyncio.Semaphore] = {}
        self._pending_calls: dict[str, PendingCall] = {}
        self._call_arrived, self._last_arrival = asyncio.Event(), 0.0
        self._interrupted_message: str | None = None
        self._manager.load_earlier_batches()
        self._manager.start_background_task(self._submit_when_quiet())
        self._manager.start_background_task(self._fail_pending_on_stop())

    async def complete(self, call: Call) -> Answer:
        """The answer out of a batch, or of a call of its own where there is no batch for it.

        Raises:
            ModelSetupError: the provider takes no batch of this model.
            Interrupted: the run was stopped while the call waits in a batch, or to go out.
        """
        desk = await self._get_queue(call) if _is_chat(call) else None
        if desk is None:
            return await self._send_individually(call)
        attempts = 0
        past: Answer | None = None
        while True:
            try:
                reply = await self._wait_for_batch(desk, call, attempts + 1)
                if reply is None:
                    await ledger.record_dispatch(
                        self._recorder.db, self._recorder.run_id, self._recorder.audit_id, call
                    )
                answer = reply.answer if reply else await self._send_individually(call)
            except AuditorError as error:
                if past is None:
                    raise
                raise error.with_answer(_merge_attempts(past, error.answer or past)) from error
            past = _merge_attempts(past, answer)
            attempts = len(past.attempts)
            if reply is None or reply.failure is None or not reply.failure.is_retryable:
                return past
            if attempts >= self._config.limits.max_attempts:
                return past

    async def close(self) -> None:
        """Leave all batches to their providers, and write down which have been collected."""
        await self._manager.close()

    # --- one call -----------------------------------------------------------------------------------------------

    async def _wait_for_batch(self, queue: ModelBatchQueue, call: Call, attempt_number: int) -> ProviderReply | None:
        if self._stop_event.is_set():
            raise self._interrupted_error()
        if (waiter := self._pending_calls.get(call.key)) is None:
            waiter = PendingCall(call, attempt_number, asyncio.get_running_loop().create_future())
            waiter.future.add_done_callback(lambda _: self._pending_calls.pop(call.key, None))
            self._pending_calls[call.key] = waiter
            await ledger.clear_dispatch(
                self._recorder.db, self._recorder.run_id, call
            )  # it is out once its batch says so
            if (tray := self._manager.find_open_batch(call.key)) is not None:
                tray.pending_calls[call.key] = waiter
                start_collecting(self._manager, tray, queue)
            else:
                queue.pending_calls[call.key] = waiter
                self._mark_arrival()
        return await asyncio.shield(waiter.future)

    async def _send_individually(self, call: Call) -> Answer:
        section = self._config.model(call.name)
        async with self._slots.setdefault(call.name, asyncio.Semaphore(section.max_concurrency)):
            if self._stop_event.is_set():
                raise self._interrupted_error()
            return await self._gateway.complete(call)

    async def _get_queue(self, call: Call) -> ModelBatchQueue | None:
        if call.name not in self._queues:
            self._queues[call.name] = self._manager.start_background_task(self._create_queue(call))
        return await asyncio.shield(self._queues[call.name])

    async def _create_queue(self, call: Call) -> ModelBatchQueue | None:
        """A model's desk, made of its first call: a batch goes to the same server, with the same key."""
        section = self._config.model(call.name)
        if (dialect := find_batch_provider(section)) is None:
            self._notify_no_batches(call.name, section.model)
            return None
        usual = resolve_endpoint(section)
        one = await prepare_request(usual, call, section.timeout_s)
        if isinstance(one, ProviderReply) or not one.url.endswith(dialect.call_path):
            self._notify_no_batches(call.name, section.model)
            return None
        post = BatchClient(one.url.removesuffix(dialect.call_path), one.headers)
        try:
            if not await self._manager.retry_request(lambda: dialect.has_batches(post)):
                self._notify_no_batches(call.name, section.model)
                return None
        except BatchRequestFailed as error:
            mend = "Check the key and the address, or take [batch] out of the config. Nothing recorded is lost."
            raise ModelSetupError(f"the batches of model '{call.name}' cannot be used: {error}.", mend) from None
        price = usual.price and usual.price.scaled_by(self._manager.settings.price)
        return ModelBatchQueue(section, replace(usual, price=price), dialect, post)

    def _notify_no_batches(self, model_name: str, provider_model: str) -> None:
        if not provider_model.startswith(EMBEDDED_PREFIX):
            self._manager.notify(
                f"The provider of '{model_name}' has no batches: its calls go out as usual, at the usual price."
            )

    # --- all that wait ------------------------------------------------------------------------------------------

    def _mark_arrival(self) -> None:
        self._last_arrival = asyncio.get_running_loop().time()
        self._call_arrived.set()

    async def _submit_when_quiet(self) -> None:
        """Put calls out whenever no more have come for a moment."""
        loop, quiet = asyncio.get_running_loop(), self._manager.settings.quiet_s
        while True:
            await self._call_arrived.wait()
            while (pause := self._last_arrival + quiet - loop.time()) > 0:  # noqa: ASYNC110 - until nothing happens
                await asyncio.sleep(pause)
            self._call_arrived.clear()
            for task in self._queues.values():
                desk = task.result() if task.done() and not task.cancelled() and not task.exception() else None
                if desk and desk.pending_calls:
                    waiters, desk.pending_calls = desk.pending_calls, {}
                    self._manager.start_background_task(self._submit_or_release(desk, list(waiters.values())))

    async def _submit_or_release(self, queue: ModelBatchQueue, pending_calls: list[PendingCall]) -> None:
        if len(pending_calls) < self._manager.settings.least:
            for waiter in pending_calls:
                waiter.resolve(None)
            return
        try:
            await submit_calls(self._manager, queue, pending_calls)
        except Exception as error:  # noqa: BLE001 - it goes to whoever waits for it
            for waiter in pending_calls:
                waiter.fail(error)

    def _requeue(self, batch: OpenBatch, queue: ModelBatchQueue) -> None:
        """Calls of a batch that came to nothing wait for another."""
        queue.pending_calls |= batch.pending_calls
        batch.pending_calls.clear()
        self._mark_arrival()

    async def _fail_pending_on_stop(self) -> None:
        while not self._stop_event.is_set():  # noqa: ASYNC110 - a thread's event, set by a signal
            await asyncio.sleep(STOP_POLL_INTERVAL_S)
        await asyncio.gather(*self._manager.submissions, return_exceptions=True)
        for waiter in list(self._pending_calls.values()):
            waiter.fail(self._interrupted_error())

    def _interrupted_error(self) -> AuditorError:
        from auditor.errors import RunInterrupted

        if self._interrupted_message is None:
            waits = describe_waiting_calls([len(tray.open_keys) for tray in self._manager.open_batches()])
            self._interrupted_message = (
                f"the run was stopped; everything that arrived is saved{f', and {waits}' if waits else ''}."
            )
        return RunInterrupted(self._interrupted_message, "Give the same command again: it collects what waits.")


def create_batching_client(
    gateway: Gateway,
    config: AuditConfig,
    recorder: CallRecorder,
    stop_event: threading.Event,
    notify: Callable[[str], None],
) -> BatchingClient | None:
    """Whoever asks in batches, where the config wants it; else what waits in some is told."""
    if config.batch is not None:
        return BatchingClient(gateway, config, recorder, stop_event, notify)
    if waits := describe_waiting_calls(
        [batch.n_missing_calls for batch in batches.load_uncollected_batches(recorder.db, recorder.audit_id)]
    ):
        notify(f"{waits}; without [batch] in the config they are asked, and paid, anew.")
    return None


def describe_waiting_calls(calls_per_batch: list[int]) -> str:
    """What waits at providers, in words; nothing where nothing does.

    Args:
        calls: of each batch.
    """
    if not calls_per_batch:
        return ""
    many = f"{len(calls_per_batch)} batches" if len(calls_per_batch) > 1 else "a batch"
    n_calls = sum(calls_per_batch)
    return f"{n_calls} {'calls wait' if n_calls != 1 else 'call waits'} in {many} at the provider"


def _is_chat(call: Call) -> bool:
    return call.measure is None or call.measure is LogprobMeasure.CHOICE


def _merge_attempts(earlier_answer: Answer | None, answer: Answer) -> Answer:
    """The last answer, with all attempts that were made for it, numbered through."""
    is_new = answer is not earlier_answer
    attempts = [*(earlier_answer.attempts if earlier_answer else ()), *(answer.attempts if is_new else ())]
    cost = total_cost([earlier_answer.cost_usd, answer.cost_usd]) if earlier_answer and is_new else answer.cost_usd
    return replace(answer, attempts=tuple(replace(a, number=i) for i, a in enumerate(attempts, 1)), cost_usd=cost)
