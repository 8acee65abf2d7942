"""The terminal app for reviews: its screens, threads, keys and themes, and how it is started."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from textual.content import Content

from auditor.domain.labels import LabelKind
from auditor.errors import AuditorError
from auditor.review.conflict_list import DEFAULT_SECOND_RATER_SHARE
from auditor.review.session import CompletionNotifier, OnDecided, ReviewSession
from auditor.storage import audits
from auditor.storage.conflict_status import QueueFilter
from auditor.storage.database import Database, open_database
from auditor.tui.formatting import to_single_line
from auditor.tui.home import HomeScreen
from auditor.tui.label_screen import LabelApp
from auditor.tui.queue import QueueScreen
from auditor.tui.rater_app import RaterApp
from auditor.tui.screen import ReviewScreen
from auditor.tui.settings import ReviewSettings, load_review_settings
from auditor.tui.text_screens import ErrorsScreen


class ReviewApp(RaterApp):
    """The app to review conflicts.

    Args:
        db: the caller closes it.
        audit: name of the audit whose queue is opened first; None opens the list of audits.
        on_decided: called with an audit's name, in a background thread, when a decision leaves none of its conflicts
            open, and when the app ends, for each audit with new decisions.
    """

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
        super().__init__(db, rater, settings)
        self.blind = blind
        self.second_rater_share = second_rater_share
        self._initial_audit = audit
        self._completion_notifier = CompletionNotifier(on_decided)
        self._review_sessions: dict[str, ReviewSession] = {}

    def open_first_screen(self) -> None:
        """Show the queue of the initial audit, or the home screen without one."""
        if self._initial_audit is None or not self.open_queue(self._initial_audit):
            self.push_screen(HomeScreen())

    @property
    def rater_badge(self) -> Content:
        """The mode (blind or open book) and the rater's name, for the title bar."""
        mode_label = (
            Content.styled("blind", "$text-success") if self.blind else Content.styled("open book", "$text-warning")
        )
        return Content.assemble(mode_label, (" · ", "$text-muted"), super().rater_badge)

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
        from auditor.tui.text_screens import AgreementScreen  # loads numpy (0.1 s)

        self._open_screen(lambda: AgreementScreen(self.get_session(audit)))

    def open_errors(self, audit: str) -> None:
        """Show why requests of an audit failed."""
        self._open_screen(lambda: ErrorsScreen(audit))

    def action_go_back(self) -> None:
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

    def prefetch_and_notify(self, session: ReviewSession) -> None:
        """After a decision, prefetch the next conflicts, count what is left, and notify a completed audit.

        In a background thread, which must not wait for the app: the app waits for it when it ends.
        """

        def prefetch() -> None:
            session.prefetch_next_keys()
            session.load_progress()

        self.run_in_background(prefetch, self.refresh_title_bar)
        self.run_in_background(lambda: self._completion_notifier.notify_if_complete(session), lambda: None)

    def notify_decided_audits(self) -> None:
        """Call `on_decided` for the audits with new decisions; to be called when the app has ended."""
        self._completion_notifier.notify_remaining(self._review_sessions.values())


@contextmanager
def idle_garbage_collection(app: RaterApp) -> Iterator[None]:
    """Collect garbage only while there is no input, since a collection blocks the screen for up to 0.1 s."""
    gc.collect()
    gc.freeze()
    gc.disable()
    app.collects_when_idle = True
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
    second_rater_share: float = DEFAULT_SECOND_RATER_SHARE,
    on_decided: OnDecided | None = None,
) -> None:
    """Run the app on a database until the reviewer quits.

    Args:
        storage_url: URL of the database, such as `sqlite:///auditor.db`; only ratings are written to it.
        audit: name of the audit whose queue is opened first.
        rater: name of the reviewer, stored with their ratings.
        blind: whether authors, verdicts and survey are hidden until the decision.
        second_rater_share: share of conflicts, in [0, 1], that two raters decide.
        on_decided: see `ReviewApp`; also called after the app has ended.

    Raises:
        StorageError: the database or the audit does not exist.
        UsageError: the reviewer's name looks like that of another one.
        ConfigError: the reviewer's settings are invalid.
        Exception: any error that ended the app unexpectedly.
    """
    settings = load_review_settings()
    with open_database(storage_url, create=False) as db:
        app = ReviewApp(
            db,
            rater=rater,
            audit=audit,
            blind=blind,
            second_rater_share=second_rater_share,
            settings=settings,
            on_decided=on_decided,
        )
        if audit is not None:
            app.get_session(audit)  # fails here, not behind a screen
        with idle_garbage_collection(app):
            app.run()
        app.notify_decided_audits()
        _raise_fatal_error(app)


def run_labelling(
    storage_url: str, audit: str, *, rater: str, kind: LabelKind = LabelKind.TRACE, **options: Any
) -> None:
    """Run the app in which a rater labels the random sample of an audit, until the rater quits.

    Args:
        storage_url: URL of the database; only labels are written to it.
        audit: name of the audit.
        rater: name of the rater, stored with the labels.
        kind: what is labelled.
        options: see `LabellingSession`.

    Raises:
        StorageError: the database or the audit does not exist.
        ReviewError: no sample was drawn.
        ConfigError: the rater's settings are invalid.
        Exception: any error that ended the app unexpectedly.
    """
    from auditor.review.labelling import open_labelling_session  # loads numpy (0.1 s)

    settings = load_review_settings()
    with open_database(storage_url, create=False) as db:
        app = LabelApp(open_labelling_session(db, audit, rater, kind, **options), settings)
        with idle_garbage_collection(app):
            app.run()
        _raise_fatal_error(app)


def _raise_fatal_error(app: RaterApp) -> None:
    """Raise the unexpected error that ended the app, if there was one."""
    if app._exception is not None:
        raise app._exception
