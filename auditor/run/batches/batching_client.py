"""An asker that gathers the calls that wait at the same time, and puts them to their providers as batches."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from auditor.config import EMBEDDED, AuditConfig, BatchSection
from auditor.domain import Answer, Call, Measure, total_cost
from auditor.errors import AuditorError, ModelSetupError
from auditor.models.batches import dialect_of
from auditor.models.batches.call_translation import written
from auditor.models.batches.client import NotTaken, Post
from auditor.models.endpoint import resolve
from auditor.models.provider_request import Reply
from auditor.run.batches.collection import watch
from auditor.run.batches.manager import Office
from auditor.run.batches.model_queue import Desk, Tray, Waiter
from auditor.run.batches.submission import send
from auditor.storage import batches, ledger

if TYPE_CHECKING:
    from auditor.agents.recording import Book
    from auditor.models.gateway import Gateway

GLANCE_S = 0.1
"""How often it is seen whether the run is to stop."""


class Batching:
    """Answers calls out of batches; those that cannot go into one are asked as usual."""

    def __init__(
        self, gateway: Gateway, config: AuditConfig, book: Book, stop: threading.Event, noted: Callable[[str], None]
    ) -> None:
        """Find what earlier runs have under way; nothing goes out yet. Make one inside the event loop, and close it.

        Args:
            gateway: asks what goes out as usual.
            config: with its table `batch`.
            book: where batches are written down, and for whom.
            stop: once set, whoever waits is told that the run is over; batches go on.
            noted: is told what somebody who watches should know.
        """
        self._gateway, self._config, self._book, self._stop = gateway, config, book, stop
        settings = config.batch or BatchSection()
        self._office = Office(gateway.budget, settings, config, book, stop, noted, self._put_back)
        self._desks: dict[str, asyncio.Task[Desk | None]] = {}
        self._slots: dict[str, asyncio.Semaphore] = {}
        self._waiters: dict[str, Waiter] = {}
        self._arrived, self._last = asyncio.Event(), 0.0
        self._farewell: str | None = None
        self._office.load()
        self._office.spawn(self._gather())
        self._office.spawn(self._leave_when_stopped())

    async def complete(self, call: Call) -> Answer:
        """The answer out of a batch, or of a call of its own where there is no batch for it.

        Raises:
            ModelSetupError: the provider takes no batch of this model.
            Interrupted: the run was stopped while the call waits in a batch, or to go out.
        """
        desk = await self._desk(call) if _is_chat(call) else None
        if desk is None:
            return await self._as_usual(call)
        attempts = 0
        past: Answer | None = None
        while True:
            try:
                reply = await self._wait(desk, call, attempts + 1)
                if reply is None:
                    await ledger.dispatch(self._book.db, self._book.run, self._book.audit_id, call)
                answer = reply.answer if reply else await self._as_usual(call)
            except AuditorError as error:
                if past is None:
                    raise
                raise error.with_answer(_joined(past, error.answer or past)) from error
            past = _joined(past, answer)
            attempts = len(past.attempts)
            if reply is None or reply.failure is None or not reply.failure.retry:
                return past
            if attempts >= self._config.limits.max_attempts:
                return past

    async def close(self) -> None:
        """Leave all batches to their providers, and write down which have been collected."""
        await self._office.close()

    # --- one call -----------------------------------------------------------------------------------------------

    async def _wait(self, desk: Desk, call: Call, number: int) -> Reply | None:
        if self._stop.is_set():
            raise self._interrupted()
        if (waiter := self._waiters.get(call.key)) is None:
            waiter = Waiter(call, number, asyncio.get_running_loop().create_future())
            waiter.future.add_done_callback(lambda _: self._waiters.pop(call.key, None))
            self._waiters[call.key] = waiter
            await ledger.recall(self._book.db, self._book.run, call)  # it is out once its batch says so
            if (tray := self._office.tray_of(call.key)) is not None:
                tray.waiters[call.key] = waiter
                watch(self._office, tray, desk)
            else:
                desk.pending[call.key] = waiter
                self._arrives()
        return await asyncio.shield(waiter.future)

    async def _as_usual(self, call: Call) -> Answer:
        section = self._config.model(call.name)
        async with self._slots.setdefault(call.name, asyncio.Semaphore(section.most_in_flight)):
            if self._stop.is_set():
                raise self._interrupted()
            return await self._gateway.complete(call)

    async def _desk(self, call: Call) -> Desk | None:
        if call.name not in self._desks:
            self._desks[call.name] = self._office.spawn(self._open(call))
        return await asyncio.shield(self._desks[call.name])

    async def _open(self, call: Call) -> Desk | None:
        """A model's desk, made of its first call: a batch goes to the same server, with the same key."""
        section = self._config.model(call.name)
        if (dialect := dialect_of(section)) is None:
            self._without(call.name, section.model)
            return None
        usual = resolve(section)
        one = await written(usual, call, section.timeout_s)
        if isinstance(one, Reply) or not one.url.endswith(dialect.suffix):
            self._without(call.name, section.model)
            return None
        post = Post(one.url.removesuffix(dialect.suffix), one.headers)
        try:
            if not await self._office.patiently(lambda: dialect.is_there(post)):
                self._without(call.name, section.model)
                return None
        except NotTaken as error:
            mend = "Check the key and the address, or take [batch] out of the config. Nothing recorded is lost."
            raise ModelSetupError(f"the batches of model '{call.name}' cannot be used: {error}.", mend) from None
        price = usual.price and usual.price.times(self._office.settings.price)
        return Desk(section, replace(usual, price=price), dialect, post)

    def _without(self, name: str, model: str) -> None:
        if not model.startswith(EMBEDDED):
            self._office.noted(
                f"The provider of '{name}' has no batches: its calls go out as usual, at the usual price."
            )

    # --- all that wait ------------------------------------------------------------------------------------------

    def _arrives(self) -> None:
        self._last = asyncio.get_running_loop().time()
        self._arrived.set()

    async def _gather(self) -> None:
        """Put calls out whenever no more have come for a moment."""
        loop, quiet = asyncio.get_running_loop(), self._office.settings.quiet_s
        while True:
            await self._arrived.wait()
            while (pause := self._last + quiet - loop.time()) > 0:  # noqa: ASYNC110 - until nothing happens
                await asyncio.sleep(pause)
            self._arrived.clear()
            for task in self._desks.values():
                desk = task.result() if task.done() and not task.cancelled() and not task.exception() else None
                if desk and desk.pending:
                    waiters, desk.pending = desk.pending, {}
                    self._office.spawn(self._put_out(desk, list(waiters.values())))

    async def _put_out(self, desk: Desk, waiters: list[Waiter]) -> None:
        if len(waiters) < self._office.settings.least:
            for waiter in waiters:
                waiter.resolve(None)
            return
        try:
            await send(self._office, desk, waiters)
        except Exception as error:  # noqa: BLE001 - it goes to whoever waits for it
            for waiter in waiters:
                waiter.fail(error)

    def _put_back(self, tray: Tray, desk: Desk) -> None:
        """Calls of a batch that came to nothing wait for another."""
        desk.pending |= tray.waiters
        tray.waiters.clear()
        self._arrives()

    async def _leave_when_stopped(self) -> None:
        while not self._stop.is_set():  # noqa: ASYNC110 - a thread's event, set by a signal
            await asyncio.sleep(GLANCE_S)
        await asyncio.gather(*self._office.sending, return_exceptions=True)
        for waiter in list(self._waiters.values()):
            waiter.fail(self._interrupted())

    def _interrupted(self) -> AuditorError:
        from auditor.errors import Interrupted

        if self._farewell is None:
            waits = waiting_words([len(tray.left) for tray in self._office.under_way()])
            self._farewell = (
                f"the run was stopped; everything that arrived is saved{f', and {waits}' if waits else ''}."
            )
        return Interrupted(self._farewell, "Give the same command again: it collects what waits.")


def batching(
    gateway: Gateway, config: AuditConfig, book: Book, stop: threading.Event, noted: Callable[[str], None]
) -> Batching | None:
    """Whoever asks in batches, where the config wants it; else what waits in some is told."""
    if config.batch is not None:
        return Batching(gateway, config, book, stop, noted)
    if waits := waiting_words([batch.calls for batch in batches.waiting(book.db, book.audit_id)]):
        noted(f"{waits}; without [batch] in the config they are asked, and paid, anew.")
    return None


def waiting_words(calls: list[int]) -> str:
    """What waits at providers, in words; nothing where nothing does.

    Args:
        calls: of each batch.
    """
    if not calls:
        return ""
    many = f"{len(calls)} batches" if len(calls) > 1 else "a batch"
    return f"{sum(calls)} {'calls wait' if sum(calls) != 1 else 'call waits'} in {many} at the provider"


def _is_chat(call: Call) -> bool:
    return call.measure is None or call.measure is Measure.CHOICE


def _joined(past: Answer | None, answer: Answer) -> Answer:
    """The last answer, with all attempts that were made for it, numbered through."""
    is_new = answer is not past
    attempts = [*(past.attempts if past else ()), *(answer.attempts if is_new else ())]
    cost = total_cost([past.cost_usd, answer.cost_usd]) if past and is_new else answer.cost_usd
    return replace(answer, attempts=tuple(replace(a, number=i) for i, a in enumerate(attempts, 1)), cost_usd=cost)
