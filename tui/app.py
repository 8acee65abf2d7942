"""The terminal app: screens and keys. What they show and store is in `auditor.review` and `auditor.storage`."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import ClassVar, TypeVar

from textual.app import App, SystemCommand
from textual.binding import BindingType
from textual.content import Content
from textual.events import Event, Key, MouseEvent
from textual.screen import Screen
from textual.worker import Worker

from auditor.errors import AuditorError
from auditor.review.completion import Afterwards, OnDecided
from auditor.review.session import SECOND_SHARE, Desk
from auditor.storage import audits
from auditor.storage.conflict_status import QueueFilter
from auditor.storage.database import Database, open_database
from auditor.tui import actions
from auditor.tui.actions import Action, Where
from auditor.tui.agreement import PeoplePage
from auditor.tui.dialogs import Keys
from auditor.tui.formatting import line
from auditor.tui.home import Home
from auditor.tui.queue import QueuePage
from auditor.tui.screen import Page
from auditor.tui.settings import Settings, load_settings
from auditor.tui.theme import DARK, LIGHT, THEMES

T = TypeVar("T")
REST_S = 3.0
"""Without a key for so long, a person reads."""
BREAKPOINTS = [(0, "-narrow"), (120, "-wide")]


class ReviewApp(App[None]):
    """Review conflicts.

    Args:
        db: stays the caller's to close.
        audit: opens its queue at once; None begins with the list of audits.
        on_decided: called with an audit's name, off the screen's thread, when a decision left none of its conflicts
            open, and once when the app ends, for each audit in which something was decided.
    """

    TITLE = "auditor review"
    CSS_PATH = "app.tcss"
    HORIZONTAL_BREAKPOINTS = BREAKPOINTS
    ENABLE_COMMAND_PALETTE = True
    BINDINGS: ClassVar[list[BindingType]] = actions.bindings("everywhere")

    def __init__(
        self,
        db: Database,
        *,
        rater: str,
        audit: str | None = None,
        blind: bool = True,
        second_share: float = SECOND_SHARE,
        settings: Settings | None = None,
        on_decided: OnDecided | None = None,
    ) -> None:
        super().__init__()
        self.db = db
        self.rater = rater
        self.blind = blind
        self.second_share = second_share
        self.settings = settings or load_settings()
        self.collects = False
        self._start = audit
        self._last_key = 0.0
        self._afterwards = Afterwards(on_decided)
        self._desks: dict[str, Desk] = {}
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="review-write")
        self._follower = ThreadPoolExecutor(max_workers=1, thread_name_prefix="review-follow")

    def on_mount(self) -> None:
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = self.settings.theme if self.settings.theme in self.available_themes else DARK.name
        self.set_keymap(self.settings.keys)
        if self._start is None or not self.open_queue(self._start):
            self.push_screen(Home())

        self.set_interval(REST_S, self._collect)

    async def on_event(self, event: Event) -> None:
        if isinstance(event, (Key, MouseEvent)):
            self._last_key = time.monotonic()
        await super().on_event(event)

    def _collect(self) -> None:
        if self.collects and time.monotonic() - self._last_key > REST_S:
            gc.collect()

    def on_unmount(self) -> None:
        self._writer.shutdown(wait=True)
        self._follower.shutdown(wait=True, cancel_futures=True)

    @property
    def badge(self) -> Content:
        """Who rates, and what they may see."""
        sight = Content.styled("blind", "$text-success") if self.blind else Content.styled("open book", "$text-warning")
        return Content.assemble(sight, (" · ", "$text-muted"), Content.styled(line(self.rater), "bold"))

    # --- screens

    def desk(self, audit: str) -> Desk:
        """The rater's desk in an audit; one for the whole session."""
        if audit not in self._desks:
            self._desks[audit] = Desk(
                self.db,
                audits.get(self.db, audit),
                self.rater,
                blind=self.blind,
                second_share=self.second_share,
            )
        return self._desks[audit]

    def open_queue(self, audit: str, wanted: QueueFilter | None = None) -> bool:
        """Show the queue of an audit, and say whether there is one."""
        return self._open(lambda: QueuePage(self.desk(audit), wanted))

    def open_people(self, audit: str) -> None:
        """Show how people, and judges and people, agree in an audit."""
        self._open(lambda: PeoplePage(self.desk(audit)))

    def back(self) -> None:
        """Leave the screen for the one below it; below the first is home."""
        if sum(isinstance(screen, Page) for screen in self.screen_stack) > 1:
            self.pop_screen()
        else:
            self.switch_screen(Home())

    def _open(self, page: Callable[[], Page]) -> bool:
        try:
            self.push_screen(page())
        except AuditorError as error:
            self.notify(line(str(error)), severity="error", markup=False)
            return False
        return True

    # --- storing

    def write(
        self,
        job: Callable[[], T],
        done: Callable[[T], None],
        failed: Callable[[AuditorError], None] | None = None,
    ) -> None:
        """Do what stores something off the screen's thread, one after another; then say that it is done."""
        future = self._writer.submit(job)  # now, so that leaving at once loses nothing

        async def work() -> None:
            try:
                result = await asyncio.shield(asyncio.wrap_future(future))
            except AuditorError as error:
                (failed or self._failed)(error)
            else:
                done(result)

        _: Worker[None] = self.run_worker(work, group="write")

    def _failed(self, error: AuditorError) -> None:
        self.notify(line(str(error)), severity="error", timeout=20, markup=False)

    def follow(self, desk: Desk) -> None:
        """After a decision: work out in the background what comes next, and tell an audit that waits for people."""

        def work() -> None:
            try:
                desk.look_ahead()
                self._afterwards.decided(desk)
            except AuditorError as error:
                self.call_from_thread(self._failed, error)

        self._follower.submit(work)

    def finish(self) -> None:
        """Tell of the audits in which something was decided; called when the app has ended."""
        self._afterwards.leave(self._desks.values())

    def _fatal_error(self) -> None:
        """End the app after an unexpected error, which `run_review` then raises.

        The library would print a traceback with the values of local variables, among which may be a password.
        """
        self.bell()
        self._close_messages_no_wait()

    # --- actions

    def action_theme(self) -> None:
        self.theme = LIGHT.name if self.current_theme.dark else DARK.name
        self.settings.save_theme(self.theme)

    def action_help(self) -> None:
        where = self._where
        if where is not None:
            groups = [(where, self._keys(where)), ("everywhere", self._keys("everywhere"))]
            self.push_screen(Keys(f"Keys · {where}", groups, self.size.width))

    @property
    def _where(self) -> Where | None:
        return self.screen.where if isinstance(self.screen, Page) else None

    def _keys(self, where: Where) -> list[tuple[str, Action]]:
        found = []
        for action in actions.of(where):
            names = self.settings.keys.get(action.id, action.keys).split(",")
            found.append((" ".join(actions.key_name(name) for name in names), action))
        return found

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """The palette: every action of the screen, then the library's own."""
        page = screen if isinstance(screen, Page) else None
        for action in (*(actions.of(page.where) if page else ()), *actions.of("everywhere")):
            yield SystemCommand(action.label.capitalize(), action.help, self._runner(action, page))
        names = {action.label.capitalize() for action in actions.ACTIONS}
        yield from (c for c in super().get_system_commands(screen) if c.title not in names and c.title != "Keys")

    def _runner(self, action: Action, page: Page | None) -> Callable[[], None]:
        async def run() -> None:
            target = self if action.where == "everywhere" or page is None else page
            await self.run_action(action.name, target)

        def start() -> None:
            self.call_later(run)

        return start


@contextmanager
def collecting_at_rest(app: ReviewApp) -> Iterator[None]:
    """Collect garbage only while no key is pressed: a collection stops the screen for up to a tenth of a second."""
    gc.collect()
    gc.freeze()
    gc.disable()
    app.collects = True
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()


def run_review(
    storage_url: str,
    audit: str | None = None,
    *,
    rater: str,
    blind: bool = True,
    second_share: float = SECOND_SHARE,
    on_decided: OnDecided | None = None,
) -> None:
    """Open the app on a database and return when the person leaves.

    Args:
        storage_url: such as `sqlite:///auditor.db`; it is only read, but for the ratings.
        audit: opens its queue at once.
        rater: who decides.
        blind: whether authors, verdicts and survey stay hidden until the decision.
        second_share: share of conflicts, in [0, 1], put to two raters.
        on_decided: see `ReviewApp`; also called after the app has ended.

    Raises:
        StorageError: no such database or audit.
        ConfigError: the reviewer's settings are wrong.
        Exception: whatever ended the app unexpectedly.
    """
    settings = load_settings()
    with open_database(storage_url, create=False) as db:
        if audit is not None:
            audits.get(db, audit)
        app = ReviewApp(
            db,
            rater=rater,
            audit=audit,
            blind=blind,
            second_share=second_share,
            settings=settings,
            on_decided=on_decided,
        )
        with collecting_at_rest(app):
            app.run()
        app.finish()
        if app._exception is not None:
            raise app._exception
