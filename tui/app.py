"""The terminal app for reviews: its screens, threads and keys. `auditor.review` loads and stores what they show."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar, TypeVar

from textual.app import App, SystemCommand
from textual.binding import BindingType
from textual.content import Content
from textual.events import Event, Key, MouseEvent
from textual.screen import Screen
from textual.worker import Worker

from auditor.errors import AuditorError
from auditor.review.completion import CompletionNotifier, OnDecided
from auditor.review.conflict_list import DEFAULT_SECOND_RATER_SHARE
from auditor.review.session import ReviewSession
from auditor.storage import audits
from auditor.storage.conflict_status import QueueFilter
from auditor.storage.database import Database
from auditor.tui import actions
from auditor.tui.actions import Action, ScreenName
from auditor.tui.agreement import AgreementScreen
from auditor.tui.dialogs import KeysWindow
from auditor.tui.errors import ErrorsScreen
from auditor.tui.formatting import to_single_line
from auditor.tui.home import HomeScreen
from auditor.tui.queue import QueueScreen
from auditor.tui.screen import ReviewScreen
from auditor.tui.settings import ReviewSettings, load_review_settings
from auditor.tui.theme import DARK, LIGHT, THEMES
from auditor.tui.wording import describe_open_next

T = TypeVar("T")
IDLE_BEFORE_GC_S = 3.0
"""Seconds without input after which the garbage collector may run without being noticed."""
WIDTH_BREAKPOINTS = [(0, "-narrow"), (120, "-wide")]


class ReviewApp(App[None]):
    """The app to review conflicts.

    Args:
        db: the caller closes it.
        audit: name of the audit whose queue is opened first; None opens the list of audits.
        on_decided: called with an audit's name, in a background thread, when a decision leaves none of its conflicts
            open, and when the app ends, for each audit with new decisions.
    """

    TITLE = "auditor review"
    CSS_PATH = "app.tcss"
    HORIZONTAL_BREAKPOINTS = WIDTH_BREAKPOINTS
    ENABLE_COMMAND_PALETTE = True
    BINDINGS: ClassVar[list[BindingType]] = actions.bindings_for("everywhere")

    def __init__(
        self,
        db: Database,
        *,
        rater: str,
        audit: str | None = None,
        blind: bool = True,
        second_rater_share: float = DEFAULT_SECOND_RATER_SHARE,
        settings: ReviewSettings | None = None,
        on_decided: OnDecided | None = None,
    ) -> None:
        super().__init__()
        self.db = db
        self.rater = rater
        self.blind = blind
        self.second_rater_share = second_rater_share
        self.settings = settings or load_review_settings()
        self.collects_when_idle = False
        self._initial_audit = audit
        self._last_input_time = 0.0
        self._completion_notifier = CompletionNotifier(on_decided)
        self._review_sessions: dict[str, ReviewSession] = {}
        self._write_executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="review-write")
        self._prefetch_executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="review-follow")

    def on_mount(self) -> None:
        """Set theme and keys, and show the queue of the initial audit, or the home screen without one."""
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = self.settings.theme if self.settings.theme in self.available_themes else DARK.name
        self.set_keymap(self.settings.keys)
        for notice in self.settings.notices:
            self.notify(to_single_line(notice), severity="warning", timeout=20, markup=False)
        if self._initial_audit is None or not self.open_queue(self._initial_audit):
            self.push_screen(HomeScreen())

        self.set_interval(IDLE_BEFORE_GC_S, self._collect_garbage)

    async def on_event(self, event: Event) -> None:
        """Note the time of each input, for `_collect_garbage`, before handling it."""
        if isinstance(event, (Key, MouseEvent)):
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
        """The mode (blind or open book) and the rater's name, for the title bar."""
        mode_label = (
            Content.styled("blind", "$text-success") if self.blind else Content.styled("open book", "$text-warning")
        )
        return Content.assemble(mode_label, (" · ", "$text-muted"), Content.styled(to_single_line(self.rater), "bold"))

    # --- screens

    def get_session(self, audit: str) -> ReviewSession:
        """Return the rater's session in an audit, created at first use and kept until the app ends."""
        if audit not in self._review_sessions:
            self._review_sessions[audit] = ReviewSession(
                self.db,
                audits.get_audit(self.db, audit),
                self.rater,
                blind=self.blind,
                second_rater_share=self.second_rater_share,
            )
        return self._review_sessions[audit]

    def open_queue(self, audit: str, queue_filter: QueueFilter | None = None) -> bool:
        """Show the queue of an audit; False, with an error message on screen, if the audit cannot be opened."""
        return self._open_screen(lambda: QueueScreen(self.get_session(audit), queue_filter))

    def open_agreement(self, audit: str) -> None:
        """Show the agreement of raters and judges in an audit."""
        self._open_screen(lambda: AgreementScreen(self.get_session(audit)))

    def open_errors(self, audit: str) -> None:
        """Show why requests of an audit failed."""
        self._open_screen(lambda: ErrorsScreen(audit))

    def go_back(self) -> None:
        """Close the screen and show the one below it, or the home screen if there is none."""
        if sum(isinstance(screen, ReviewScreen) for screen in self.screen_stack) > 1:
            self.pop_screen()
        else:
            self.switch_screen(HomeScreen())

    def _open_screen(self, create_screen: Callable[[], ReviewScreen]) -> bool:
        """Create and show a screen; return False, with an error message shown, if it cannot be created."""
        try:
            self.push_screen(create_screen())
        except AuditorError as error:
            self.notify(to_single_line(str(error)), severity="error", markup=False)
            return False
        return True

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
                (on_error or self._show_error)(error)
            else:
                on_success(result)

        _: Worker[None] = self.run_worker(work, group="write")

    def _show_error(self, error: AuditorError) -> None:
        self.notify(to_single_line(str(error)), severity="error", timeout=20, markup=False)

    def prefetch_and_notify(self, session: ReviewSession) -> None:
        """After a decision, prefetch the next conflicts, count what is left, and notify a completed audit.

        In a background thread, which must not wait for the app: the app waits for it when it ends.
        """

        def prefetch() -> None:
            session.prefetch_next_keys()
            session.load_progress()

        self._run_in_background(prefetch, self._refresh_title_bar)
        self._run_in_background(lambda: self._completion_notifier.notify_if_complete(session), lambda: None)

    def _run_in_background(self, job: Callable[[], None], on_success: Callable[[], None]) -> None:
        future = self._prefetch_executor.submit(job)

        async def work() -> None:
            try:
                await asyncio.wrap_future(future)
            except AuditorError as error:
                self._show_error(error)
            else:
                on_success()

        _: Worker[None] = self.run_worker(work, group="prefetch")

    def _refresh_title_bar(self) -> None:
        if isinstance(self.screen, ReviewScreen):
            self.screen.refresh_title_bar()

    def notify_decided_audits(self) -> None:
        """Call `on_decided` for the audits with new decisions; to be called when the app has ended."""
        self._completion_notifier.notify_remaining(self._review_sessions.values())

    def _fatal_error(self) -> None:
        """End the app after an unexpected error, which `run_review` then raises.

        Textual would print a traceback with the values of local variables, which may contain a password.
        """
        self.bell()
        self._close_messages_no_wait()

    # --- actions

    def action_open_next(self) -> None:
        """Turn automatic opening of the next conflict on or off, and save the choice."""
        self.settings.save_open_next(not self.settings.open_next)
        self.notify(describe_open_next(self.settings.open_next), markup=False)

    def action_theme(self) -> None:
        """Change between dark and light, and save the choice."""
        self.theme = LIGHT.name if self.current_theme.dark else DARK.name
        self.settings.save_theme(self.theme)

    def action_help(self) -> None:
        """Show the keys of the current screen and those of every screen."""
        screen_name = self._screen_name
        if screen_name is not None:
            groups = [
                (screen_name, self._labelled_actions(screen_name)),
                ("everywhere", self._labelled_actions("everywhere")),
            ]
            self.push_screen(KeysWindow(f"Keys · {screen_name}", groups, self.size.width))

    @property
    def _screen_name(self) -> ScreenName | None:
        return self.screen.screen_name if isinstance(self.screen, ReviewScreen) else None

    def _labelled_actions(self, screen: ScreenName) -> list[tuple[str, Action]]:
        """Actions of a screen, each with the names of its configured keys."""
        labelled_actions = []
        for action in actions.actions_for(screen):
            keys = self.settings.keys.get(action.id, action.keys).split(",")
            labelled_actions.append((" ".join(actions.key_name(key) for key in keys), action))
        return labelled_actions

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Commands of the palette: the actions of the screen and of the app, then Textual's own commands."""
        review_screen = screen if isinstance(screen, ReviewScreen) else None
        for action in (
            *(actions.actions_for(review_screen.screen_name) if review_screen else ()),
            *actions.actions_for("everywhere"),
        ):
            yield SystemCommand(action.label.capitalize(), action.help, self._command_callback(action, review_screen))
        action_titles = {action.label.capitalize() for action in actions.ACTIONS}
        yield from (
            command
            for command in super().get_system_commands(screen)
            if command.title not in action_titles and command.title != "Keys"
        )

    def _command_callback(self, action: Action, review_screen: ReviewScreen | None) -> Callable[[], None]:
        """Return a function that runs an action on its screen, or on the app, after the palette has closed."""

        async def run() -> None:
            target = self if action.screen == "everywhere" or review_screen is None else review_screen
            await self.run_action(action.name, target)

        def start() -> None:
            self.call_later(run)

        return start
