"""Driving the app in a test: press keys, wait until it rests, read what the compositor shows."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from textual.pilot import Pilot
from textual.screen import Screen

from auditor.storage.rating_log import Entry, entries
from auditor.tui.app import ReviewApp
from auditor.tui.chrome import Page
from auditor.tui.conflict import ConflictPage
from auditor.tui.queue import QueuePage

S = TypeVar("S", bound=Screen[object])


@dataclass
class Driver:
    """An app that runs in a test."""

    app: ReviewApp
    pilot: Pilot[None]

    async def press(self, *keys: str) -> None:
        """Press keys, and wait for what they start after each."""
        for key in keys:
            await self.pilot.press(key)
            await self.settle()

    async def type(self, text: str) -> None:
        """Type into what has the focus."""
        await self.pilot.press(*text)

    async def settle(self) -> None:
        """Wait until nothing is being stored or read."""
        await self.pilot.pause()
        await self.app.workers.wait_for_complete()
        await self.pilot.pause()

    async def comes_to(self, state: Callable[[Driver], bool], within_s: float = 10.0) -> bool:
        """Whether the app comes to a state; a busy machine may take its time over what a key started."""
        until = time.monotonic() + within_s
        while not state(self):
            if time.monotonic() > until:
                return False
            await self.settle()
        return True

    @property
    def text(self) -> str:
        """What the screen shows, line by line."""
        return "\n".join(strip.text.rstrip() for strip in self.app.screen._compositor.render_strips())

    @property
    def messages(self) -> list[str]:
        """What the app told the person, oldest first."""
        return [notification.message for notification in self.app._notifications]

    @property
    def page(self) -> Page:
        """The full screen in view."""
        return next(screen for screen in reversed(self.app.screen_stack) if isinstance(screen, Page))

    @property
    def queue(self) -> QueuePage:
        assert isinstance(self.page, QueuePage)
        return self.page

    @property
    def conflict(self) -> ConflictPage:
        assert isinstance(self.page, ConflictPage)
        return self.page

    @property
    def log(self) -> list[Entry]:
        """All that is stored of the audit in view."""
        audit = (self.conflict if isinstance(self.page, ConflictPage) else self.queue).desk.audit
        return entries(self.app.db, audit.id)
