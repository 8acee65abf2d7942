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
from auditor.run.ray_cluster import RayWorker, WorkerDied
from auditor.run.ray_worker import WorkerConfig, WorkerRequest

if TYPE_CHECKING:
    from auditor.domain import Call
    from auditor.models.provider_request import ProviderReply

MAX_CONSECUTIVE_DEATHS = 3
"""Workers that may die in one slot, one after another, without an answer."""
NO_WORKER_NOTICE_S = 30.0
"""Seconds without any worker after which the user is notified."""
WORKER_STOP_TIMEOUT_S = 10.0
"""Seconds for a worker to close its connections at the end."""
RAY_LOG_FOLDER = "/tmp/ray/session_latest/logs"
"""Ray's default folder for logs."""
MAX_REQUESTS_PER_MESSAGE = 100
"""Limit of requests in one message to a worker."""


class WorkerSlot:
    """Keeps one worker running; starts another when it dies.

    Attributes:
        host: name of the worker's host; None while no worker is ready.
        pending: futures of the requests assigned to the worker, by request id; None as a result means that the worker
            died after the request was passed to it.
        start_worker: requests a new worker.
        worker_config: the worker's configuration.
    """

    def __init__(
        self, start_worker: Callable[[], RayWorker], worker_config: WorkerConfig, on_change: Callable[[], None]
    ) -> None:
        self.host: str | None = None
        self.pending: dict[int, asyncio.Future[ProviderReply | AuditorError | None]] = {}
        self.start_worker, self.worker_config, self._on_change = start_worker, worker_config, on_change
        self._outbox: list[WorkerRequest] = []
        self._has_requests = asyncio.Event()
        self._answer_count = 0

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
        try:
            reply_or_error = await future
        finally:
            self.pending.pop(request.id, None)
        if isinstance(reply_or_error, AuditorError):
            raise reply_or_error
        return reply_or_error

    async def run(self, notify: Callable[[str], None]) -> None:
        """Run workers, one after another, until cancelled.

        Args:
            notify: receives a line for each worker that dies.

        Raises:
            AuditorError: a worker cannot work on its host, or `MAX_CONSECUTIVE_DEATHS` died without an answer.
        """
        fruitless_deaths = 0  # workers that died one after another without an answer
        while fruitless_deaths < MAX_CONSECUTIVE_DEATHS:
            answers_before, worker = self._answer_count, self.start_worker()
            try:
                await self._run_worker(worker)
            except WorkerDied:
                notify(self._death_message())
                self._fail_pending()
                worker.terminate()
            except BaseException:
                await self._stop_worker(worker)
                raise
            fruitless_deaths = 0 if self._answer_count > answers_before else fruitless_deaths + 1
        raise ModelSetupError(
            f"{MAX_CONSECUTIVE_DEATHS} workers died one after another without an answer.",
            "Check Ray's logs on their hosts: memory may have run out. Recorded answers are kept.",
        )

    async def _run_worker(self, worker: RayWorker) -> None:
        """Start a worker, and exchange messages with it until one direction fails."""
        host = await worker.call_method("start", self.worker_config)
        if isinstance(host, AuditorError):
            raise host
        self.host = host
        self._on_change()
        transfer_tasks = [
            asyncio.create_task(self._send_requests(worker)),
            asyncio.create_task(self._collect_replies(worker)),
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
            batch, self._outbox = self._outbox[:MAX_REQUESTS_PER_MESSAGE], self._outbox[MAX_REQUESTS_PER_MESSAGE:]
            if not self._outbox:
                self._has_requests.clear()
            await worker.call_method("accept_requests", batch)

    async def _collect_replies(self, worker: RayWorker) -> None:
        """Resolve pending requests with the worker's replies, until the worker dies or the task is cancelled."""
        while True:
            for request_id, reply_or_error in await worker.call_method("collect_replies"):
                self._answer_count += 1
                future = self.pending.get(request_id)
                if future is not None and not future.done():
                    future.set_result(reply_or_error)

    async def _stop_worker(self, worker: RayWorker) -> None:
        """Let a worker close its connections, and terminate it."""
        with suppress(WorkerDied, TimeoutError):
            async with asyncio.timeout(WORKER_STOP_TIMEOUT_S if self.host else 0):
                await worker.call_method("stop")
        worker.terminate()

    def _death_message(self) -> str:
        """The notice about a worker that died; call it before `_fail_pending`, as it counts the open calls."""
        if self.host is None:
            return (
                f"A worker died before it started. Ray's logs on its host have the cause (default: {RAY_LOG_FOLDER})."
            )
        n_open_calls = len(self.pending)
        consequence = (
            "it had no open call"
            if n_open_calls == 0
            else f"its {n_open_calls} open call{'s are' if n_open_calls > 1 else ' is'} sent again by another worker"
        )
        log_note = f"Ray's logs there have the cause (default: {RAY_LOG_FOLDER})."
        return f"The worker on {self.host} died; {consequence}. {log_note}"

    def _fail_pending(self) -> None:
        """End all requests of a dead worker; those that it never received raise WorkerDied."""
        self.host = None
        unsent_ids = {request.id for request in self._outbox}
        self._outbox.clear()
        self._has_requests.clear()
        for request_id, future in self.pending.items():
            if future.done():
                continue
            if request_id in unsent_ids:
                future.set_exception(WorkerDied())
            else:
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
        from auditor.models.provider_request import sender_died_reply  # loads httpx (0.4 s)

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
            if ready_slots := [slot for slot in self._slots[dedicated_model] if slot.host is not None]:
                return min(ready_slots, key=lambda slot: len(slot.pending))
            try:
                async with asyncio.timeout(notice_timeout_s):
                    await self._worker_change.wait()
            except TimeoutError:
                notice_timeout_s = None
                self._notify("No worker has started yet. Check with `ray status` whether the cluster has a free core.")

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
