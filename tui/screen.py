"""Base class of all screens: title bar at the top, key bar at the bottom, access to the app."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import accumulate
from typing import TYPE_CHECKING, ClassVar, TypeVar, cast

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.content import Content
from textual.events import Click
from textual.screen import Screen
from textual.style import Style
from textual.widget import Widget
from textual.widgets import Static
from textual.worker import Worker, WorkerState

from auditor.tui import key_bindings
from auditor.tui.formatting import fit_width, to_single_line
from auditor.tui.key_bindings import Action, ScreenName

if TYPE_CHECKING:
    from auditor.tui.app import ReviewApp
    from auditor.tui.rater_app import RaterApp

T = TypeVar("T")
PATH_SEPARATOR = " › "
MIN_NAME_WIDTH = 8


def _shorten_longest(names: list[str], width: int) -> list[str]:
    """Cut the longest of the names of a path, such as that of an audit, so that the others are within a width."""
    longest = max(names, key=cell_len)
    excess = cell_len(PATH_SEPARATOR.join(names)) - width
    if excess <= 0:
        return names
    short = fit_width(longest, max(cell_len(longest) - excess, MIN_NAME_WIDTH))
    return [short if name == longest else name for name in names]


class ReviewScreen(Screen[None]):
    """A full screen with a title bar, a body and a key bar."""

    screen_name: ClassVar[ScreenName] = "everywhere"
    leads_back: ClassVar[bool] = True
    """Whether leaving the screen shows another one, and does not end the app."""
    _read_error = ""
    """Error of the last read; empty if it succeeded."""

    @property
    def rater_app(self) -> RaterApp:
        """The app, with the type of all apps of raters."""
        return cast("RaterApp", self.app)

    @property
    def is_open(self) -> bool:
        """Whether the screen is composed and on the stack. Otherwise it has no widgets to update."""
        return self.is_mounted and self.is_attached and self in self.app.screen_stack

    @property
    def review_app(self) -> ReviewApp:
        """The app of a screen on conflicts."""
        return cast("ReviewApp", self.app)

    def compose(self) -> ComposeResult:
        yield Static(id="bar")
        yield from self.compose_body()
        yield KeyBar(self.screen_name)

    def compose_body(self) -> ComposeResult:
        """Yield the widgets between title bar and key bar."""
        yield from ()

    def set_title_bar(self, *path: str, right: Content | None = None) -> None:
        """Show the path of the screen in the title bar, and on the right `right` or the rater and the mode.

        A click on the path goes back, as the key does.
        """
        right = right or self.rater_app.rater_badge
        free_width = (self.size.width or 80) - 3 - right.cell_length
        names = _shorten_longest([to_single_line(part) for part in ("auditor", *path)], free_width)
        parts = [Content.styled(to_single_line(name), "bold") for name in names]
        if self.leads_back:
            parts = [*(part.stylize(Style.from_meta({"@click": "app.go_back"})) for part in parts[:-1]), parts[-1]]
        trail = Content(PATH_SEPARATOR).join(parts)
        bar = self.query_one("#bar", Static)
        padding = max((self.size.width or 80) - 2 - trail.cell_length - right.cell_length, 1)
        bar.update(Content.assemble(trail, " " * padding, right), layout=False)

    def submit_read(self, group: str, job: Callable[[], T], on_success: Callable[[T], None]) -> None:
        """Run `job` in a thread and pass its return value to `on_success`; a later job of the group cancels it.

        `on_success` is not called if the screen was closed meanwhile.
        """

        async def work() -> None:
            result = await asyncio.to_thread(job)
            self._read_error = ""
            if self.is_open:
                on_success(result)

        # Pass `work`, not `work()`: a coroutine that is cancelled before its start would never be awaited.
        _: Worker[None] = self.run_worker(work, group=group, exclusive=True, exit_on_error=False)

    @on(Worker.StateChanged)
    def _show_read_error(self, event: Worker.StateChanged) -> None:
        """Show why a read failed; once for the reads that are repeated while the reason stays the same."""
        text = to_single_line(f"cannot be read: {event.worker.error}")
        if event.state is WorkerState.ERROR and text != self._read_error:
            self._read_error = text
            self.notify(text, severity="error", markup=False)

    def on_resize(self) -> None:
        self.call_after_refresh(self.refresh_title_bar)

    def offers(self, action: Action) -> bool:
        """Whether an action of the screen does something in this audit; others are in no list of keys."""
        return True

    # --- moving

    @property
    def page_height(self) -> int:
        """Lines or rows of a page."""
        raise NotImplementedError

    def action_move_by(self, lines: int) -> None:
        """Move down by a number of lines or rows; up if it is negative."""
        raise NotImplementedError

    def action_move_by_pages(self, pages: int) -> None:
        """Move down by a number of pages; up if it is negative."""
        self.action_move_by(pages * self.page_height)

    def refresh_title_bar(self) -> None:
        """Update the title bar; each screen sets its content."""


class KeyBar(Widget):
    """The most important keys of a screen on one line, as many as fit; each can be clicked.

    It is a single widget: Textual's footer has one widget per key, which doubles the time to open a screen.
    """

    def __init__(self, screen: ScreenName) -> None:
        super().__init__()
        self._screen_actions = [action for action in key_bindings.actions_for(screen) if action.in_footer]
        self._global_actions = [action for action in key_bindings.actions_for("everywhere") if action.in_footer]
        self._click_regions: list[tuple[int, Action]] = []

    def render(self) -> Content:
        """Render the screen's keys as far as they fit, then the app's; note where each ends, for clicks."""
        global_keys = [(action, self._format_key(action)) for action in self._global_actions]
        free_width = self.size.width - sum(key_text.cell_length for _, key_text in global_keys)
        fitting_keys = []
        for action, key_text in ((action, self._format_key(action)) for action in self._screen_actions):
            if key_text.cell_length > free_width:
                break
            free_width -= key_text.cell_length
            fitting_keys.append((action, key_text))
        ends = accumulate(key_text.cell_length for _, key_text in (*fitting_keys, *global_keys))
        self._click_regions = [
            (end, action) for end, (action, _) in zip(ends, (*fitting_keys, *global_keys), strict=True)
        ]
        return Content("").join(key_text for _, key_text in (*fitting_keys, *global_keys))

    def _format_key(self, action: Action) -> Content:
        """Return the first configured key of an action, followed by its label."""
        key = cast("RaterApp", self.app).settings.key_names(action.id)[0]
        return Content.assemble((key, "bold $footer-key-foreground"), f" {action.label}  ")

    async def on_click(self, event: Click) -> None:
        """Run the action whose key was clicked."""
        offset = event.get_content_offset(self)
        for end, action in self._click_regions:
            if offset is not None and offset.x < end:
                target = self.app if action.screen == "everywhere" else self.screen
                await self.app.run_action(action.method, target)
                return
