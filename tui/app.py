"""The terminal app for reviews: its screens, threads and keys. `auditor.review` loads and stores what they show."""

from __future__ import annotations

from collections.abc import Callable

from textual.content import Content

from auditor.errors import AuditorError
from auditor.review.completion import CompletionNotifier, OnDecided
from auditor.review.conflict_list import DEFAULT_SECOND_RATER_SHARE
from auditor.review.session import ReviewSession
from auditor.storage import audits
from auditor.storage.conflict_status import QueueFilter
from auditor.storage.database import Database
from auditor.tui.errors import ErrorsScreen
from auditor.tui.formatting import to_single_line
from auditor.tui.home import HomeScreen
from auditor.tui.queue import QueueScreen
from auditor.tui.rater_app import RaterApp
from auditor.tui.screen import ReviewScreen
from auditor.tui.settings import ReviewSettings


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
        from auditor.tui.agreement import AgreementScreen  # loads numpy (0.1 s)

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
