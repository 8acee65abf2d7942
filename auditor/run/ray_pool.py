"""The workers of a cluster as one sender: requests go to whoever has least to do, and to another when one dies."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from auditor.errors import AuditorError, ModelSetupError
from auditor.run.ray_cluster import Gone, Hired
from auditor.run.ray_worker import Orders, Request

if TYPE_CHECKING:
    from auditor.domain import Call
    from auditor.models.provider_request import Reply

MOST_DEATHS = 3
"""Workers that may die in one place, one after another, without having brought an answer."""
PATIENCE_S = 30.0
"""After so long without any worker, whoever watches is told."""
GRACE_S = 10.0
"""For a worker to close its connections in, at the end."""
RAY_LOGS = "/tmp/ray/session_latest/logs"
"""Where Ray keeps its logs unless it is told otherwise."""
MOST_AT_ONCE = 100
"""Requests in one message."""


class Post:
    """A place for one worker; another is hired when it dies.

    Attributes:
        host: where the worker is; None while there is none.
        waiting: requests that have been given to it, by their ids.
        hire: finds one.
        orders: what it is told when it begins.
    """

    def __init__(self, hire: Callable[[], Hired], orders: Orders, changed: Callable[[], None]) -> None:
        self.host: str | None = None
        self.waiting: dict[int, asyncio.Future[Reply | AuditorError]] = {}
        self.hire, self.orders, self._changed = hire, orders, changed
        self._outbox: list[Request] = []
        self._some = asyncio.Event()
        self._answered = 0

    async def send(self, request: Request) -> Reply:
        """What comes of a request.

        Raises:
            Gone: the worker died; whether the request went out is not known.
            AuditorError: what the worker says.
        """
        future: asyncio.Future[Reply | AuditorError] = asyncio.get_running_loop().create_future()
        self.waiting[request.id] = future
        self._outbox.append(request)
        self._some.set()
        try:
            result = await future
        finally:
            self.waiting.pop(request.id, None)
        if isinstance(result, AuditorError):
            raise result
        return result

    async def man(self, note: Callable[[str], None]) -> None:
        """Keep a worker here for as long as that makes sense.

        Args:
            note: receives a line for each worker that dies.

        Raises:
            AuditorError: a worker cannot work on its host, or one after another dies.
        """
        in_vain = 0
        while in_vain < MOST_DEATHS:
            before, worker = self._answered, self.hire()
            try:
                await self._serve(worker)
            except Gone:
                note(self._death_message())
                self._lose()
                worker.dismiss()
            except BaseException:
                await self._end(worker)
                raise
            in_vain = 0 if self._answered > before else in_vain + 1
        raise ModelSetupError(
            f"{MOST_DEATHS} workers died one after another without an answer.",
            "Look at the logs of Ray on their hosts: memory may have run out. Nothing recorded is lost.",
        )

    async def _serve(self, worker: Hired) -> None:
        host = await worker.call("start", self.orders)
        if isinstance(host, AuditorError):
            raise host
        self.host = host
        self._changed()
        both = [asyncio.create_task(self._hand_over(worker)), asyncio.create_task(self._collect(worker))]
        try:
            done, _ = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            done.pop().result()
        finally:
            for task in both:
                task.cancel()
            await asyncio.gather(*both, return_exceptions=True)

    async def _hand_over(self, worker: Hired) -> None:
        """What gathers while one message is on its way goes with the next."""
        while True:
            await self._some.wait()
            batch, self._outbox = self._outbox[:MOST_AT_ONCE], self._outbox[MOST_AT_ONCE:]
            if not self._outbox:
                self._some.clear()
            await worker.call("take", batch)

    async def _collect(self, worker: Hired) -> None:
        while True:
            for number, result in await worker.call("finished"):
                self._answered += 1
                future = self.waiting.get(number)
                if future is not None and not future.done():
                    future.set_result(result)

    async def _end(self, worker: Hired) -> None:
        """Let a worker close what it has open, and dismiss it."""
        with suppress(Gone, TimeoutError):
            async with asyncio.timeout(GRACE_S if self.host else 0):
                await worker.call("stop")
        worker.dismiss()

    def _death_message(self) -> str:
        """What a user is told of a worker that died, before its calls are taken from it."""
        if self.host is None:
            return f"A worker died before it began. Ray's logs on its host say why (by default in {RAY_LOGS})."
        n = len(self.waiting)
        calls = (
            "it had no open call" if n == 0 else f"its {n} open call{'s go' if n > 1 else ' goes'} to another worker"
        )
        return f"The worker on {self.host} died; {calls}. Ray's logs there say why (by default in {RAY_LOGS})."

    def _lose(self) -> None:
        self.host = None
        self._outbox.clear()
        self._some.clear()
        for future in self.waiting.values():
            if not future.done():
                future.set_exception(Gone())
        self._changed()


class Crew:
    """Sends by workers. Make one inside the event loop that it is used in, and close it at the end."""

    def __init__(
        self,
        places: Callable[[Call], str | None],
        man: Callable[[str | None, Callable[[], None]], Sequence[Post]],
        note: Callable[[str], None],
    ) -> None:
        """Hire nobody yet.

        Args:
            places: names the one model that must be asked by workers of its own; None is for any other.
            man: makes their posts, on first use, that tell when a worker has come or gone.
            note: is told, in a sentence, what whoever watches should know.
        """
        self._places, self._man, self._note = places, man, note
        self._posts: dict[str | None, Sequence[Post]] = {}
        self._keepers: set[asyncio.Task[None]] = set()
        self._trouble: AuditorError | None = None
        self._change = asyncio.Event()
        self._ids = itertools.count(1)

    async def begin(self) -> list[str]:
        """Wait for a first worker; returns the hosts of those that have come.

        Raises:
            AuditorError: it cannot work where it is.
        """
        await self._manned(None)
        return sorted(post.host for post in self._posts[None] if post.host)

    async def send(self, call: Call, number: int, limit_s: float | None) -> Reply:
        """Have a request sent, again where a worker dies over it and has not recorded an answer.

        Raises:
            AuditorError: what a worker says; no further request can be sent then.
        """
        again = False
        while True:
            post = await self._manned(self._places(call))
            try:
                return await post.send(Request(next(self._ids), call, number, limit_s, again))
            except Gone:
                again = True

    async def close(self) -> None:
        """Dismiss all workers; what they have answered they have recorded."""
        for keeper in self._keepers:
            keeper.cancel()
        await asyncio.gather(*self._keepers, return_exceptions=True)

    async def _manned(self, place: str | None) -> Post:
        """Whoever has least to do."""
        if place not in self._posts:
            self._open(place)
        patience: float | None = PATIENCE_S
        while True:
            if self._trouble is not None:
                raise self._trouble
            if manned := [post for post in self._posts[place] if post.host is not None]:
                return min(manned, key=lambda post: len(post.waiting))
            try:
                async with asyncio.timeout(patience):
                    await self._change.wait()
            except TimeoutError:
                patience = None
                self._note("No worker has begun yet: is a core free in the cluster? See `ray status`.")

    def _open(self, place: str | None) -> None:
        self._posts[place] = self._man(place, self._changed)
        for post in self._posts[place]:
            keeper = asyncio.create_task(post.man(self._note))
            self._keepers.add(keeper)
            keeper.add_done_callback(self._ended)

    def _ended(self, keeper: asyncio.Task[None]) -> None:
        if not keeper.cancelled() and self._trouble is None:
            error = keeper.exception()
            told = f"the workers cannot be led on: {error!r}."
            self._trouble = error if isinstance(error, AuditorError) else AuditorError(told)
        self._changed()

    def _changed(self) -> None:
        """Wake all who wait for a worker."""
        self._change.set()
        self._change = asyncio.Event()
