"""Drive the app in a test: press keys, wait until it is idle, read what the compositor shows."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from textual.pilot import Pilot, WaitForScreenTimeout
from textual.screen import Screen
from textual.worker import WorkerError

from auditor.storage.rating_log import RatingEntry, load_entries
from auditor.tui.app import ReviewApp
from auditor.tui.conflict import ConflictScreen
from auditor.tui.queue import QueueScreen
from auditor.tui.rater_app import RaterApp
from auditor.tui.screen import ReviewScreen
from tests.support.patience import PATIENCE_S

S = TypeVar("S", bound=Screen[object])


@dataclass
class Driver:
    """An app that runs in a test, with shortcuts for its screens."""

    app: RaterApp
    pilot: Pilot[None]

    @property
    def review_app(self) -> ReviewApp:
        assert isinstance(self.app, ReviewApp)
        return self.app

    async def press(self, *keys: str) -> None:
        """Press keys; wait until the app is idle after each."""
        for key in keys:
            await self.pilot.press(key)
            await self.settle()

    async def type(self, text: str) -> None:
        """Type into the focused widget."""
        await self.pilot.press(*text)
        await self.settle()

    async def settle(self) -> None:
        """Wait until no message is queued and no worker runs, twice: a last message may start a worker."""
        deadline, n_idle_checks = time.monotonic() + PATIENCE_S, 0
        while n_idle_checks < 2:
            with suppress(WaitForScreenTimeout):  # a widget that is removed meanwhile never answers the pilot
                await self.pilot.pause()
            with suppress(WorkerError):  # superseded by a later worker; failures are shown on the screen
                await self.app.workers.wait_for_complete()
            n_idle_checks = n_idle_checks + 1 if self._is_idle() or not self.app.is_running else 0
            assert time.monotonic() < deadline, "the app does not come to rest"

    def _is_idle(self) -> bool:
        pumps = [self.app, *self.app.screen.walk_children(with_self=True)]
        workers = all(worker.is_finished for worker in self.app.workers)
        return workers and not any(pump.message_queue_size for pump in pumps)

    async def reaches(self, state: Callable[[Driver], bool], within_s: float = PATIENCE_S) -> bool:
        """Whether the app reaches a state within the time limit."""
        deadline = time.monotonic() + within_s
        while not state(self):
            if time.monotonic() > deadline:
                return False
            await self.settle()
        return True

    @property
    def text(self) -> str:
        """The visible text, with newlines between rows."""
        return "\n".join(strip.text.rstrip() for strip in self.app.screen._compositor.render_strips())

    @property
    def messages(self) -> list[str]:
        """The notifications so far, oldest first."""
        return [notification.message for notification in self.app._notifications]

    @property
    def page(self) -> ReviewScreen:
        """The topmost full screen, below any dialog."""
        return next(screen for screen in reversed(self.app.screen_stack) if isinstance(screen, ReviewScreen))

    @property
    def queue(self) -> QueueScreen:
        assert isinstance(self.page, QueueScreen)
        return self.page

    @property
    def conflict(self) -> ConflictScreen:
        assert isinstance(self.page, ConflictScreen)
        return self.page

    @property
    def log(self) -> list[RatingEntry]:
        """The stored rating log of the current audit."""
        audit = (self.conflict if isinstance(self.page, ConflictScreen) else self.queue).session.audit
        return load_entries(self.app.db, audit.id)
