"""What all parts of asking in batches share: the batches under way, the budget, and patience with providers."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from auditor.config import AuditConfig, BatchSection
from auditor.errors import ModelSetupError
from auditor.models.batches.client import NotTaken
from auditor.models.budget import Budget
from auditor.models.limiter import NOTICE_S, backoff, pause
from auditor.models.retries import pause_notice, too_long
from auditor.run.batches.model_queue import Desk, Tray
from auditor.storage import batches, ledger
from auditor.storage.batches import Batch

if TYPE_CHECKING:
    from auditor.agents.recording import Book

T = TypeVar("T")
KEPT_DAYS = 29
"""How long providers keep what came of a batch, at least."""
CLOCKS = timedelta(minutes=10)
"""How far a provider's clock may be from ours."""


@dataclass(eq=False)
class Office:
    """A run's surroundings, and the batches under way, its own and those of earlier runs.

    Attributes:
        settings: of the config's table `batch`.
        book: where batches are written down, and for whom.
        stop: once set, nothing is sent any more.
        noted: is told what somebody who watches should know.
        put_back: takes the waiting calls of a batch that came to nothing.
        trays: by the key of each call; of one that is in several batches, the last.
        tasks: all that goes on beside the calls, and may be ended at any time.
        sending: what is on its way, and is waited for until it is written down.
    """

    budget: Budget
    settings: BatchSection
    config: AuditConfig
    book: Book
    stop: threading.Event
    noted: Callable[[str], None]
    put_back: Callable[[Tray, Desk], None]
    trays: dict[str, Tray] = field(default_factory=dict)
    tasks: set[asyncio.Task[Any]] = field(default_factory=set)
    sending: set[asyncio.Task[None]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._rng = random.Random(self.config.seed)

    def load(self) -> None:
        """Find the batches of earlier runs."""
        old = datetime.now(UTC) - timedelta(days=KEPT_DAYS)
        found: list[Tray] = []
        for batch in batches.under_way(self.book.db):
            known = ledger.known_keys(self.book.db, batch.calls)
            tray = Tray(batch, batch.remote, set(batch.calls) - known, batch.reserved_usd / len(batch.calls))
            for key in tray.left:
                if (earlier := self.trays.get(key)) is not None:
                    earlier.left.discard(key)
                self.trays[key] = tray
            found.append(tray)
        for tray in found:
            if not tray.left:
                self.forget(tray, "collected")
            elif tray.batch.prepared_at < old:
                self.forget(tray, f"not collected within {KEPT_DAYS} days")
                self.noted(f"The batch {tray.batch.remote} was not collected in time: its calls are paid anew.")
            elif tray.batch.audit_id == self.book.audit_id:
                self.budget.hold(tray.share_usd * len(tray.left))

    def tray_of(self, key: str) -> Tray | None:
        """The batch under way that a call is in."""
        tray = self.trays.get(key)
        return tray if tray is not None and key in tray.left else None

    def under_way(self) -> list[Tray]:
        """Batches of which something is to come."""
        return [tray for tray in {id(tray): tray for tray in self.trays.values()}.values() if tray.left]

    def forget(self, tray: Tray, how: str) -> None:
        """Nothing more is to come of a batch."""
        for key in tray.batch.calls:
            if self.trays.get(key) is tray:
                del self.trays[key]
        self.spawn(batches.end(self.book.db, tray.batch, how))

    def give_up(self, tray: Tray, desk: Desk, how: str) -> None:
        """Nothing was done of a batch: its money is free again, and its calls wait for another."""
        self.budget.settle(tray.share_usd * len(tray.left), None)
        self.forget(tray, how)
        self.put_back(tray, desk)

    async def is_recorded(self, tray: Tray) -> bool:
        """Whether all answers of a batch are recorded; that nothing more is to come of it is written down then."""
        tray.left -= await asyncio.to_thread(ledger.known_keys, self.book.db, list(tray.left))
        if not tray.left:
            self.forget(tray, "collected")
        return not tray.left

    async def close(self) -> None:
        """End all that goes on, and write down which batches have been collected."""
        doing = list(self.tasks)
        for task in doing:
            task.cancel()
        await asyncio.gather(*doing, return_exceptions=True)
        for tray in list({id(tray): tray for tray in self.trays.values()}.values()):
            await self.is_recorded(tray)
        await asyncio.gather(*self.tasks)

    async def find(self, desk: Desk, batch: Batch) -> list[str]:
        """The provider's names for what may be a batch of which only the preparation was written down."""
        known = await asyncio.to_thread(batches.known_remotes, self.book.db)
        since = batch.prepared_at - CLOCKS
        return await desk.dialect.find(desk.post, batch.tag, len(batch.calls), since, known)

    async def patiently(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Ask the provider, and again where that may help.

        Raises:
            NotTaken: nothing helped.
        """
        tries = 0
        while True:
            try:
                return await ask()
            except NotTaken as error:
                tries += 1
                if not self.may_retry(error, tries):
                    raise NotTaken(self.reason(error), error.status, again=error.again, wait_s=error.wait_s) from error
                await self.pause(tries, error)

    async def pause(self, tries: int, error: NotTaken) -> None:
        """Wait before another try, or until nothing is to go out any more."""
        if (asked_s := error.wait_s or 0.0) > NOTICE_S:
            self.noted(pause_notice("the batches' provider", asked_s, asked_s))
        await pause(backoff(tries, self._rng) + asked_s, self.stop.is_set)

    def may_retry(self, error: NotTaken, tries: int) -> bool:
        """Whether a request about a batch is tried again, after so many tries."""
        more = tries < self.config.limits.max_attempts and not self.stop.is_set()
        return error.again and more and not self._is_too_long(error)

    def reason(self, error: NotTaken) -> str:
        """Why a request about a batch did not succeed, and is not tried again."""
        waits = too_long(error.wait_s or 0.0, self.config.limits) if self._is_too_long(error) else ""
        return "; ".join(filter(None, (str(error), waits)))

    def _is_too_long(self, error: NotTaken) -> bool:
        return (error.wait_s or 0.0) > self.config.limits.max_retry_wait_s

    def spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Do something beside the calls."""
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task


def not_taken(desk: Desk, why: str) -> ModelSetupError:
    """A batch that the provider refuses, in words."""
    return ModelSetupError(
        f"the provider of model '{desk.section.name}' does not take a batch: {why.rstrip(' .')}.",
        "Mend that, set batch.most lower where it is too large, or take [batch] out of the config. "
        "Nothing recorded is lost.",
    )
