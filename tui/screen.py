"""What all screens share: the bar at the top, the keys at the bottom, and the way to the app."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import accumulate
from typing import TYPE_CHECKING, ClassVar, TypeVar, cast

from textual import on
from textual.app import ComposeResult
from textual.content import Content
from textual.events import Click
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Static
from textual.worker import Worker, WorkerState

from auditor.tui import actions
from auditor.tui.actions import Action, Where
from auditor.tui.formatting import line

if TYPE_CHECKING:
    from auditor.tui.app import ReviewApp

T = TypeVar("T")


class Page(Screen[None]):
    """A full screen: a bar, a body, the keys."""

    where: ClassVar[Where] = "everywhere"

    @property
    def review(self) -> ReviewApp:
        """The app, with what is ours."""
        from auditor.tui.app import ReviewApp

        return cast(ReviewApp, self.app)

    def compose(self) -> ComposeResult:
        yield Static(id="bar")
        yield from self.body()
        yield KeyBar(self.where)

    def body(self) -> ComposeResult:
        """What stands between bar and keys."""
        yield from ()

    def set_bar(self, *path: str, right: Content | None = None) -> None:
        """Show where we are, and on the right who rates how."""
        trail = Content(" › ").join([Content.styled(line(part), "bold") for part in ("auditor", *path)])
        bar = self.query_one("#bar", Static)
        right = right or self.review.badge
        space = max((self.size.width or 80) - 2 - trail.cell_length - right.cell_length, 1)
        bar.update(Content.assemble(trail, " " * space, right), layout=False)

    def read(self, group: str, job: Callable[[], T], done: Callable[[T], None]) -> None:
        """Read something in a thread, then show it; a later reading of the same group takes the place of this one."""

        async def work() -> None:
            done(await asyncio.to_thread(job))

        # `work`, not `work()`: cancelled before it began, that would never be awaited.
        _: Worker[None] = self.run_worker(work, group=group, exclusive=True, exit_on_error=False)

    @on(Worker.StateChanged)
    def _cannot_read(self, event: Worker.StateChanged) -> None:
        if event.state is WorkerState.ERROR:
            self.notify(line(f"cannot be read: {event.worker.error}"), severity="error", markup=False)

    def on_resize(self) -> None:
        self.call_after_refresh(self.refresh_bar)

    def refresh_bar(self) -> None:
        """Show the bar anew; each screen says what is in it."""


class KeyBar(Widget):
    """The keys of a screen that matter most, on one line, as many as fit; each can be clicked.

    One widget, where the library's footer has one for every key: a screen opens in half the time.
    """

    def __init__(self, where: Where) -> None:
        super().__init__()
        self._shown = [action for action in actions.of(where) if action.footer]
        self._always = [action for action in actions.of("everywhere") if action.footer]
        self._places: list[tuple[int, Action]] = []

    def render(self) -> Content:
        last = [(action, self._piece(action)) for action in self._always]
        room = self.size.width - sum(piece.cell_length for _, piece in last)
        shown = []
        for action, piece in ((action, self._piece(action)) for action in self._shown):
            if piece.cell_length > room:
                break
            room -= piece.cell_length
            shown.append((action, piece))
        ends = accumulate(piece.cell_length for _, piece in (*shown, *last))
        self._places = [(end, action) for end, (action, _) in zip(ends, (*shown, *last), strict=True)]
        return Content("").join(piece for _, piece in (*shown, *last))

    def _piece(self, action: Action) -> Content:
        review = cast("ReviewApp", self.app)
        key = actions.key_name(review.settings.keys.get(action.id, action.keys).split(",")[0])
        return Content.assemble((key, "bold $footer-key-foreground"), f" {action.label}  ")

    async def on_click(self, event: Click) -> None:
        at = event.get_content_offset(self)
        for end, action in self._places:
            if at is not None and at.x < end:
                target = self.app if action.where == "everywhere" else self.screen
                await self.app.run_action(action.name, target)
                return
