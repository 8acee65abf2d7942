"""Base class of the apps for raters: keys, themes, help, and threads for reading and writing."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar, TypeVar

from textual.actions import ActionParseResult
from textual.app import App, SystemCommand
from textual.binding import BindingType
from textual.content import Content
from textual.dom import DOMNode
from textual.events import Event, Key, MouseEvent
from textual.screen import Screen
from textual.worker import Worker

from auditor.errors import AuditorError
from auditor.storage.database import Database
from auditor.tui import key_bindings
from auditor.tui.dialogs import KeysWindow
from auditor.tui.formatting import describe_open_next, to_single_line
from auditor.tui.key_bindings import Action
from auditor.tui.screen import ReviewScreen
from auditor.tui.settings import DARK, LIGHT, THEMES, ReviewSettings, load_review_settings

T = TypeVar("T")
IDLE_BEFORE_GC_S = 3.0
"""Seconds without input after which the garbage collector may run without being noticed."""
WIDTH_BREAKPOINTS = [(0, "-narrow"), (120, "-wide")]


class RaterApp(App[None]):
    """An app in which one rater decides.

    Args:
        db: the caller closes it.
        rater: name of the rater.
    """

    TITLE = "auditor review"
    CSS_PATH = "app.tcss"
    HORIZONTAL_BREAKPOINTS = WIDTH_BREAKPOINTS
    ENABLE_COMMAND_PALETTE = True
    BINDINGS: ClassVar[list[BindingType]] = key_bindings.bindings_for("everywhere")
    describe_open_next = staticmethod(describe_open_next)
    """Describes what happens after a decision."""

    def __init__(self, db: Database, rater: str, settings: ReviewSettings | None = None) -> None:
        super().__init__()
        self.db = db
        self.rater = rater
        self.settings = settings or load_review_settings()
        self.collects_when_idle = False
        self.is_ending = False
        self._last_input_time = 0.0
        self._write_executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="review-write")
        self._prefetch_executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="review-follow")

    def on_mount(self) -> None:
        """Set theme and keys, and show the first screen."""
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = self.settings.theme if self.settings.theme in self.available_themes else DARK.name
        self.set_keymap(self.settings.keys)
        self.open_first_screen()
        self.set_interval(IDLE_BEFORE_GC_S, self._collect_garbage)

    def open_first_screen(self) -> None:
        """Show the screen with which the app starts; defined by the subclass."""
        raise NotImplementedError

    def exit(self, *args: Any, **options: Any) -> None:
        """End the app; see `textual.app.App.exit`. Further input has no effect: it would open screens that are gone."""
        self.is_ending = True
        super().exit(*args, **options)

    async def on_event(self, event: Event) -> None:
        """Note the time of each input, for `_collect_garbage`, before handling it."""
        if isinstance(event, (Key, MouseEvent)):
            if self.is_ending:
                return
            self._last_input_time = time.monotonic()
        await super().on_event(event)

    def _collect_garbage(self) -> None:
        """Collect garbage if there was no input for `IDLE_BEFORE_GC_S`."""
        if self.collects_when_idle and time.monotonic() - self._last_input_time > IDLE_BEFORE_GC_S:
            gc.collect()

    def on_unmount(self) -> None:
        """End both background threads after all writes are stored."""
        self._write_executor.shutdown(wait=True)
        self._prefetch_executor.shutdown(wait=True, cancel_futures=True)

    @property
    def rater_badge(self) -> Content:
        """The rater's name, for the title bar."""
        return Content.styled(to_single_line(self.rater), "bold")

    # --- storing

    def submit_write(
        self,
        job: Callable[[], T],
        on_success: Callable[[T], None],
        on_error: Callable[[AuditorError], None] | None = None,
    ) -> None:
        """Run a job that writes to the database in the writer thread, in order of submission, then call `on_success`.

        AuditorErrors go to `on_error`, or are shown as a notification.
        """
        future = self._write_executor.submit(
            job
        )  # submitted here, so that nothing is lost if the app ends before the worker starts

        async def work() -> None:
            try:
                result = await asyncio.shield(asyncio.wrap_future(future))
            except AuditorError as error:
                (on_error or self.show_error)(error)
            else:
                on_success(result)

        _: Worker[None] = self.run_worker(work, group="write")

    def show_error(self, error: AuditorError) -> None:
        """Show an error as a notification."""
        self.notify(to_single_line(str(error)), severity="error", timeout=20, markup=False)

    def run_in_background(self, job: Callable[[], None], on_success: Callable[[], None]) -> None:
        """Run a job in the prefetch thread, then call `on_success`. The job must not wait for the app."""
        future = self._prefetch_executor.submit(job)

        async def work() -> None:
            try:
                await asyncio.wrap_future(future)
            except AuditorError as error:
                self.show_error(error)
            else:
                on_success()

        _: Worker[None] = self.run_worker(work, group="prefetch")

    def refresh_title_bar(self) -> None:
        """Update the title bar of the screen in front."""
        if isinstance(self.screen, ReviewScreen) and self.screen.is_open:
            self.screen.refresh_title_bar()

    def _fatal_error(self) -> None:
        """End the app after an unexpected error, which `run_review` then raises.

        Textual would print a traceback with the values of local variables, which may contain a password.
        """
        self.bell()
        self._close_messages_no_wait()

    # --- actions

    async def run_action(
        self,
        action: str | ActionParseResult,
        default_namespace: DOMNode | None = None,
        namespaces: Mapping[str, DOMNode] | None = None,
    ) -> bool:
        """Run an action; an AuditorError, such as of a database server that is gone, is shown, and the app goes on."""
        try:
            return await super().run_action(action, default_namespace, namespaces)
        except AuditorError as error:
            self.show_error(error)
            return True

    def action_open_next(self) -> None:
        """Turn automatic opening of the next item on or off, and save the choice."""
        self.settings.toggle_open_next()
        self.notify(self.describe_open_next(self.settings.open_next), markup=False)

    def action_theme(self) -> None:
        """Change between dark and light, and save the choice."""
        self.theme = LIGHT.name if self.current_theme.dark else DARK.name
        self.settings.save_theme(self.theme)

    def action_help(self) -> None:
        """Show the keys of the current screen and those of every screen."""
        screen = self.screen
        if isinstance(screen, ReviewScreen):
            screen_actions = filter(screen.offers, key_bindings.actions_for(screen.screen_name))
            groups = [
                (screen.screen_name, self._labelled_actions(screen_actions)),
                ("everywhere", self._labelled_actions(key_bindings.actions_for("everywhere"))),
            ]
            window = KeysWindow(f"Keys · {screen.screen_name}", groups, self.size.width)
            self.push_screen(window, self._run_clicked_action)

    def _run_clicked_action(self, action_id: str | None) -> None:
        """Run the action that was clicked in the list of keys, once the list has closed."""
        for action in key_bindings.ACTIONS:
            if action.id == action_id:
                self._command_callback(action, self.screen if isinstance(self.screen, ReviewScreen) else None)()

    def _labelled_actions(self, actions: Iterable[Action]) -> list[tuple[str, Action]]:
        """Actions, each with the names of its configured keys."""
        return [(" ".join(self.settings.key_names(action.id)), action) for action in actions]

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Commands of the palette: the actions of the screen and of the app, then Textual's own commands."""
        review_screen = screen if isinstance(screen, ReviewScreen) else None
        for action in (
            *(
                filter(review_screen.offers, key_bindings.actions_for(review_screen.screen_name))
                if review_screen
                else ()
            ),
            *key_bindings.actions_for("everywhere"),
        ):
            yield SystemCommand(action.label.capitalize(), action.help, self._command_callback(action, review_screen))
        action_titles = {action.label.capitalize() for action in key_bindings.ACTIONS}
        yield from (
            command
            for command in super().get_system_commands(screen)
            if command.title not in action_titles and command.title != "Keys"
        )

    def _command_callback(self, action: Action, review_screen: ReviewScreen | None) -> Callable[[], None]:
        """Return a function that runs an action on its screen, or on the app, after the palette has closed."""

        async def run() -> None:
            target = self if action.screen == "everywhere" or review_screen is None else review_screen
            await self.run_action(action.method, target)

        def start() -> None:
            self.call_later(run)

        return start
