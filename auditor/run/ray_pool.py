"""The workers of a cluster as one sender: requests go to whoever has least to do, and to another when one dies."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from auditor.errors import AuditorError, ModelSetupError
from auditor.run.ray_cluster import RayWorker, WorkerDied
from auditor.run.ray_worker import WorkerConfig, WorkerRequest

if TYPE_CHECKING:
    from auditor.domain import Call
    from auditor.models.provider_request import ProviderReply

MAX_CONSECUTIVE_DEATHS = 3
"""Workers that may die in one place, one after another, without having brought an answer."""
NO_WORKER_NOTICE_S = 30.0
"""After so long without any worker, whoever watches is told."""
WORKER_STOP_TIMEOUT_S = 10.0
"""For a worker to close its connections in, at the end."""
RAY_LOG_FOLDER = "/tmp/ray/session_latest/logs"
"""Where Ray keeps its logs unless it is told otherwise."""
MAX_REQUESTS_PER_MESSAGE = 100
"""Requests in one message."""


class WorkerSlot:
    """A place for one worker; another is hired when it dies.

    Attributes:
        host: where the worker is; None while there is none.
        waiting: requests that have been given to it, by their ids.
        hire: finds one.
        orders: what it is told when it begins.
    """

    def __init__(
        self, start_worker: Callable[[], RayWorker], worker_config: WorkerConfig, on_change: Callable[[], None]
    ) -> None:
        self.host: str | None = None
        self.pending: dict[int, asyncio.Future[ProviderReply | AuditorError]] = {}
        self.start_worker, self.worker_config, self._on_change = start_worker, worker_config, on_change
        self._outbox: list[WorkerRequest] = []
        self._has_requests = asyncio.Event()
        self._answer_count = 0

    async def send(self, request: WorkerRequest) -> ProviderReply:
        """What comes of a request.

        Raises:
            Gone: the worker died; whether the request went out is not known.
            AuditorError: what the worker says.
        """
        future: asyncio.Future[ProviderReply | AuditorError] = asyncio.get_running_loop().create_future()
        self.pending[request.id] = future
        self._outbox.append(request)
        self._has_requests.set()
        try:
            result = await future
        finally:
            self.pending.pop(request.id, None)
        if isinstance(result, AuditorError):
            raise result
        return result

    async def run(self, notify: Callable[[str], None]) -> None:
        """Keep a worker here for as long as that makes sense.

        Args:
            note: receives a line for each worker that dies.

        Raises:
            AuditorError: a worker cannot work on its host, or one after another dies.
        """
        in_vain = 0
        while in_vain < MAX_CONSECUTIVE_DEATHS:
            before, worker = self._answer_count, self.start_worker()
            try:
                await self._run_worker(worker)
            except WorkerDied:
                notify(self._death_message())
                self._fail_pending()
                worker.terminate()
            except BaseException:
                await self._stop_worker(worker)
                raise
            in_vain = 0 if self._answer_count > before else in_vain + 1
        raise ModelSetupError(
            f"{MAX_CONSECUTIVE_DEATHS} workers died one after another without an answer.",
            "Look at the logs of Ray on their hosts: memory may have run out. Nothing recorded is lost.",
        )

    async def _run_worker(self, worker: RayWorker) -> None:
        host = await worker.call_method("start", self.worker_config)
        if isinstance(host, AuditorError):
            raise host
        self.host = host
        self._on_change()
        both = [asyncio.create_task(self._send_requests(worker)), asyncio.create_task(self._collect_replies(worker))]
        try:
            done, _ = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            done.pop().result()
        finally:
            for task in both:
                task.cancel()
            await asyncio.gather(*both, return_exceptions=True)

    async def _send_requests(self, worker: RayWorker) -> None:
        """What gathers while one message is on its way goes with the next."""
        while True:
            await self._has_requests.wait()
            batch, self._outbox = self._outbox[:MAX_REQUESTS_PER_MESSAGE], self._outbox[MAX_REQUESTS_PER_MESSAGE:]
            if not self._outbox:
                self._has_requests.clear()
            await worker.call_method("accept_requests", batch)

    async def _collect_replies(self, worker: RayWorker) -> None:
        while True:
            for number, result in await worker.call_method("collect_replies"):
                self._answer_count += 1
                future = self.pending.get(number)
                if future is not None and not future.done():
                    future.set_result(result)

    async def _stop_worker(self, worker: RayWorker) -> None:
        """Let a worker close what it has open, and dismiss it."""
        with suppress(WorkerDied, TimeoutError):
            async with asyncio.timeout(WORKER_STOP_TIMEOUT_S if self.host else 0):
                await worker.call_method("stop")
        worker.terminate()

    def _death_message(self) -> str:
        """What a user is told of a worker that died, before its calls are taken from it."""
        if self.host is None:
            return f"A worker died before it began. Ray's logs on its host say why (by default in {RAY_LOG_FOLDER})."
        n = len(self.pending)
        calls = (
            "it had no open call" if n == 0 else f"its {n} open call{'s go' if n > 1 else ' goes'} to another worker"
        )
        return f"The worker on {self.host} died; {calls}. Ray's logs there say why (by default in {RAY_LOG_FOLDER})."

    def _fail_pending(self) -> None:
        self.host = None
        self._outbox.clear()
        self._has_requests.clear()
        for future in self.pending.values():
            if not future.done():
                future.set_exception(WorkerDied())
        self._on_change()


class RayDispatcher:
    """Sends by workers. Make one inside the event loop that it is used in, and close it at the end."""

    def __init__(
        self,
        dedicated_model: Callable[[Call], str | None],
        create_slots: Callable[[str | None, Callable[[], None]], Sequence[WorkerSlot]],
        notify: Callable[[str], None],
    ) -> None:
        """Hire nobody yet.

        Args:
            places: names the one model that must be asked by workers of its own; None is for any other.
            man: makes their posts, on first use, that tell when a worker has come or gone.
            note: is told, in a sentence, what whoever watches should know.
        """
        self._dedicated_model, self._create_slots, self._notify = dedicated_model, create_slots, notify
        self._slots: dict[str | None, Sequence[WorkerSlot]] = {}
        self._slot_tasks: set[asyncio.Task[None]] = set()
        self._fatal_error: AuditorError | None = None
        self._worker_change = asyncio.Event()
        self._request_ids = itertools.count(1)

    async def wait_for_first_worker(self) -> list[str]:
        """Wait for a first worker; returns the hosts of those that have come.

        Raises:
            AuditorError: it cannot work where it is.
        """
        await self._least_busy_slot(None)
        return sorted(post.host for post in self._slots[None] if post.host)

    async def send(self, call: Call, attempt_number: int, total_timeout_s: float | None) -> ProviderReply:
        """Have a request sent, again where a worker dies over it and has not recorded an answer.

        Raises:
            AuditorError: what a worker says; no further request can be sent then.
        """
        again = False
        while True:
            post = await self._least_busy_slot(self._dedicated_model(call))
            try:
                return await post.send(
                    WorkerRequest(next(self._request_ids), call, attempt_number, total_timeout_s, again)
                )
            except WorkerDied:
                again = True

    async def close(self) -> None:
        """Dismiss all workers; what they have answered they have recorded."""
        for keeper in self._slot_tasks:
            keeper.cancel()
        await asyncio.gather(*self._slot_tasks, return_exceptions=True)

    async def _least_busy_slot(self, dedicated_model: str | None) -> WorkerSlot:
        """Whoever has least to do."""
        if dedicated_model not in self._slots:
            self._open_slots(dedicated_model)
        patience: float | None = NO_WORKER_NOTICE_S
        while True:
            if self._fatal_error is not None:
                raise self._fatal_error
            if manned := [post for post in self._slots[dedicated_model] if post.host is not None]:
                return min(manned, key=lambda post: len(post.pending))
            try:
                async with asyncio.timeout(patience):
                    await self._worker_change.wait()
            except TimeoutError:
                patience = None
                self._notify("No worker has begun yet: is a core free in the cluster? See `ray status`.")

    def _open_slots(self, dedicated_model: str | None) -> None:
        self._slots[dedicated_model] = self._create_slots(dedicated_model, self._wake_waiters)
        for post in self._slots[dedicated_model]:
            keeper = asyncio.create_task(post.run(self._notify))
            self._slot_tasks.add(keeper)
            keeper.add_done_callback(self._on_slot_end)

    def _on_slot_end(self, slot_task: asyncio.Task[None]) -> None:
        if not slot_task.cancelled() and self._fatal_error is None:
            error = slot_task.exception()
            told = f"the workers cannot be led on: {error!r}."
            self._fatal_error = error if isinstance(error, AuditorError) else AuditorError(told)
        self._wake_waiters()

    def _wake_waiters(self) -> None:
        """Wake all who wait for a worker."""
        self._worker_change.set()
        self._worker_change = asyncio.Event()
