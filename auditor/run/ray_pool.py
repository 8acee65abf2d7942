"""Dispatch requests to the workers of a cluster, each to the least busy one; the driver records the answers."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from auditor.domain import Capability, LogprobMeasure
from auditor.errors import AuditorError, ModelSetupError
from auditor.models.dispatch import REPLIES_ADAPTER, REQUESTS_ADAPTER, WorkerRequest
from auditor.models.provider_request import ProviderReply, sender_died_reply
from auditor.run.ray_cluster import RAY_LOG_FOLDER, RayWorker, WorkerDied

if TYPE_CHECKING:
    from auditor.domain import Call

MAX_CONSECUTIVE_DEATHS = 3
"""Deaths of one worker, one after another, without an answer between them, that end the run."""
NO_WORKER_NOTICE_S = 30.0
"""Seconds without any worker after which the user is notified."""
WORKER_STOP_TIMEOUT_S = 10.0
"""Seconds for a worker to close its connections at the end."""
WORKER_GRACE_PERIOD_S = 30.0
"""A worker that is later than a request's time limit by this much is taken to hang."""
RESTART_POLL_INTERVAL_S = 0.2
"""Seconds between two attempts to reach a worker that Ray is starting again."""


class WorkerSlot:
    """One worker of the pool, which Ray starts again when it dies, and the requests assigned to it.

    Attributes:
        host: name of the worker's host; None while the worker is not ready.
        pending: futures of the requests assigned to the worker, by request id; None as a result means that the worker
            died after the request was passed to it.
        start_worker: requests the worker.
    """

    def __init__(self, start_worker: Callable[[], RayWorker], on_change: Callable[[], None]) -> None:
        self.host: str | None = None
        self.pending: dict[int, asyncio.Future[ProviderReply | AuditorError | None]] = {}
        self.start_worker, self._on_change = start_worker, on_change
        self._outbox: list[WorkerRequest] = []
        self._has_requests, self._is_hanging = asyncio.Event(), asyncio.Event()
        self._answer_count = 0

    @property
    def is_ready(self) -> bool:
        """Whether the worker accepts requests."""
        return self.host is not None and not self._is_hanging.is_set()

    async def send(self, request: WorkerRequest) -> ProviderReply | None:
        """Send a request through the worker, and return the reply; None if the worker died, maybe after sending it.

        Raises:
            WorkerDied: the worker died before the request was passed to it.
            AuditorError: the worker's error.
        """
        future: asyncio.Future[ProviderReply | AuditorError | None] = asyncio.get_running_loop().create_future()
        self.pending[request.id] = future
        self._outbox.append(request)
        self._has_requests.set()
        timeout_s = None if request.total_timeout_s is None else request.total_timeout_s + WORKER_GRACE_PERIOD_S
        try:
            async with asyncio.timeout(timeout_s):
                reply_or_error = await future
        except TimeoutError:
            self._is_hanging.set()  # `run` then ends all other requests that wait for the worker
            return None
        finally:
            self.pending.pop(request.id, None)
        if isinstance(reply_or_error, AuditorError):
            raise reply_or_error
        return reply_or_error

    async def run(self, notify: Callable[[str], None]) -> None:
        """Exchange messages with the worker, as often as Ray starts it again, until cancelled.

        Args:
            notify: receives a line each time the worker dies.

        Raises:
            AuditorError: the worker cannot work on its host, or it died `MAX_CONSECUTIVE_DEATHS` times without an
                answer.
        """
        fruitless_deaths = 0  # one after another, without an answer between them
        worker = self.start_worker()
        try:
            while fruitless_deaths < MAX_CONSECUTIVE_DEATHS:
                answers_before, host = self._answer_count, await self._wait_until_started(worker)
                try:
                    await self._serve(worker, host)
                except WorkerDied:
                    notify(self._death_message(host))
                    self.fail_pending()
                fruitless_deaths = 0 if self._answer_count > answers_before else fruitless_deaths + 1
        finally:
            await self._stop_worker(worker)
            self.fail_pending()
        raise ModelSetupError(
            f"{MAX_CONSECUTIVE_DEATHS} workers died one after another without an answer.",
            f"Check Ray's logs on {host} (default: {RAY_LOG_FOLDER}): memory may have run out. Recorded answers are "
            "kept. To resume, run the same command again.",
        )

    async def _wait_until_started(self, worker: RayWorker) -> str:
        """Wait until Ray has started the worker, for the first time or again; returns its host's name."""
        while True:
            with suppress(WorkerDied):  # it is being started again
                return str(await worker.call_method("name_host"))
            await asyncio.sleep(RESTART_POLL_INTERVAL_S)

    async def _serve(self, worker: RayWorker, host: str) -> None:
        """Exchange messages with a worker that has started, until one direction fails or the worker hangs."""
        if (error := await worker.call_method("open")) is not None:
            raise error
        self.host = host
        self._is_hanging.clear()
        self._on_change()
        transfer_tasks = [
            asyncio.create_task(transfer(worker))
            for transfer in (self._send_requests, self._collect_replies, self._restart_when_hanging)
        ]
        try:
            finished, _ = await asyncio.wait(transfer_tasks, return_when=asyncio.FIRST_COMPLETED)
            finished.pop().result()
        finally:
            for task in transfer_tasks:
                task.cancel()
            await asyncio.gather(*transfer_tasks, return_exceptions=True)

    async def _send_requests(self, worker: RayWorker) -> None:
        """Send queued requests; those that arrive while a message is in flight go into the next one."""
        while True:
            await self._has_requests.wait()
            self._has_requests.clear()
            requests, self._outbox = self._outbox, []
            await worker.call_method("accept_requests", REQUESTS_ADAPTER.dump_json(requests))

    async def _collect_replies(self, worker: RayWorker) -> None:
        """Resolve pending requests with the worker's replies, until the worker dies or the task is cancelled."""
        while True:
            replies_json, errors = await worker.call_method("collect_replies")
            replies = ((reply.id, reply.reply) for reply in REPLIES_ADAPTER.validate_json(replies_json))
            for request_id, reply_or_error in itertools.chain(replies, errors):
                self._answer_count += 1
                future = self.pending.get(request_id)
                if future is not None and not future.done():
                    future.set_result(reply_or_error)

    async def _restart_when_hanging(self, worker: RayWorker) -> None:
        """Wait until a request is much later than its time limit; kill the worker then, so that Ray starts it again.

        Raises:
            WorkerDied: always.
        """
        await self._is_hanging.wait()
        worker.restart()
        raise WorkerDied

    async def _stop_worker(self, worker: RayWorker) -> None:
        """Let a worker close its connections, and terminate it."""
        with suppress(WorkerDied, AuditorError, TimeoutError):
            async with asyncio.timeout(WORKER_STOP_TIMEOUT_S if self.host else 0):
                await worker.call_method("stop")
        worker.terminate()

    def _death_message(self, host: str) -> str:
        """The notice about a worker that died; call it before `fail_pending`, as it counts the open calls."""
        log_note = f"Ray's logs there have the cause (default: {RAY_LOG_FOLDER})."
        if self.host is None:
            return f"The worker on {host} died before it sent anything. {log_note}"
        n_calls = len(self.pending)
        consequence = f"its {n_calls} open call{'s are' if n_calls != 1 else ' is'} sent again"
        return f"The worker on {host} died; {consequence}. {log_note}"

    def fail_pending(self) -> None:
        """End all requests of a dead worker; those that it never received raise WorkerDied."""
        self.host = None
        unsent_ids = {request.id for request in self._outbox}
        self._outbox.clear()
        self._has_requests.clear()
        for request_id, future in self.pending.items():
            if not future.done() and request_id in unsent_ids:
                future.set_exception(WorkerDied())
            elif not future.done():
                future.set_result(None)
        self._on_change()


class RayDispatcher:
    """Sends requests through the workers of a cluster. Create it inside the event loop, and close it at the end."""

    def __init__(
        self,
        dedicated_model: Callable[[Call], str | None],
        create_slots: Callable[[str | None, Callable[[], None]], Sequence[WorkerSlot]],
        notify: Callable[[str], None],
    ) -> None:
        """Prepare the dispatcher; workers are started on first use.

        Args:
            dedicated_model: maps a call to the model that needs a worker of its own; None for any other call.
            create_slots: creates the slots for a dedicated model, or for all other calls (None); a slot calls the
                second argument when its worker starts or dies.
            notify: receives notices for the user.
        """
        self._dedicated_model, self._create_slots, self._notify = dedicated_model, create_slots, notify
        self._slots: dict[str | None, Sequence[WorkerSlot]] = {}
        self._slot_tasks: set[asyncio.Task[None]] = set()
        self._fatal_error: AuditorError | None = None
        self._has_reported_lack = False
        self._worker_change = asyncio.Event()
        self._request_ids = itertools.count(1)

    async def wait_for_first_worker(self) -> list[str]:
        """Wait until a worker is ready; returns the hosts of all ready workers, sorted.

        Raises:
            AuditorError: a worker cannot work on its host.
        """
        await self._least_busy_slot(None)
        return sorted(slot.host for slot in self._slots[None] if slot.host)

    async def send(
        self, call: Call, attempt_number: int, total_timeout_s: float | None, capability: Capability | None = None
    ) -> ProviderReply:
        """Send a request through the least busy worker.

        Returns:
            The reply. If the worker died, a retryable failure of unknown cost; a request that never reached the worker,
            or that it was to compute itself, goes to another worker instead.

        Raises:
            AuditorError: a worker's error; no further request can be sent then.
        """
        request = WorkerRequest(
            next(self._request_ids), call, attempt_number, total_timeout_s, capability or Capability()
        )
        while True:
            slot = await self._least_busy_slot(self._dedicated_model(call))
            started_at = datetime.now(UTC)
            with suppress(WorkerDied):
                if (reply := await slot.send(request)) is not None:
                    return reply
                if call.measure is not LogprobMeasure.CONTINUATION:  # computed by the worker: nothing was sent or paid
                    return sender_died_reply(call, attempt_number, started_at)

    async def close(self) -> None:
        """Stop all workers."""
        for slot_task in self._slot_tasks:
            slot_task.cancel()
        await asyncio.gather(*self._slot_tasks, return_exceptions=True)

    async def _least_busy_slot(self, dedicated_model: str | None) -> WorkerSlot:
        """The slot with the fewest pending requests among those with a ready worker; waits until there is one."""
        if dedicated_model not in self._slots:
            self._open_slots(dedicated_model)
        notice_timeout_s: float | None = NO_WORKER_NOTICE_S
        while True:
            if self._fatal_error is not None:
                raise self._fatal_error
            if ready_slots := [slot for slot in self._slots[dedicated_model] if slot.is_ready]:
                self._has_reported_lack = False
                return min(ready_slots, key=lambda slot: len(slot.pending))
            try:
                async with asyncio.timeout(notice_timeout_s):
                    await self._worker_change.wait()
            except TimeoutError:
                notice_timeout_s = None
                if not self._has_reported_lack:  # many calls may wait
                    self._has_reported_lack = True
                    advice = "Check with `ray status` whether the cluster has a free core."
                    self._notify(f"No worker has been available for {NO_WORKER_NOTICE_S:.0f} s. Calls wait. {advice}")

    def _open_slots(self, dedicated_model: str | None) -> None:
        """Create the slots for a dedicated model, and run their workers in the background."""
        self._slots[dedicated_model] = self._create_slots(dedicated_model, self._wake_waiters)
        for slot in self._slots[dedicated_model]:
            slot_task = asyncio.create_task(slot.run(self._notify))
            self._slot_tasks.add(slot_task)
            slot_task.add_done_callback(self._on_slot_end)

    def _on_slot_end(self, slot_task: asyncio.Task[None]) -> None:
        """Keep a slot's error, which every later request raises, and wake waiting tasks."""
        if not slot_task.cancelled() and self._fatal_error is None:
            error = slot_task.exception()
            message = f"the workers cannot be used any more: {error!r}."
            self._fatal_error = error if isinstance(error, AuditorError) else AuditorError(message)
        self._wake_waiters()

    def _wake_waiters(self) -> None:
        """Wake all tasks that wait for a worker."""
        self._worker_change.set()
        self._worker_change = asyncio.Event()
