"""Base class of the conflict screen: decide, note, flag, reveal and undo, with every save in the writer thread."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from auditor.domain import Decision, RatingAction
from auditor.errors import AuditorError
from auditor.review.cell_settlement import CellDecision
from auditor.review.item import ReviewItem
from auditor.review.session import ReviewSession
from auditor.storage.conflict_status import ConflictKey
from auditor.storage.rating_log import RatingEntry
from auditor.tui.cell_dialog import CellDialog
from auditor.tui.dialogs import ScoreDialog, TextDialog
from auditor.tui.formatting import to_single_line
from auditor.tui.screen import ReviewScreen
from auditor.tui.wording import describe_decision, describe_undo, explain_missing_scores

T = TypeVar("T")
DECISION_DELAY_S = 0.4
"""Time for which a conflict that opened by itself must have been visible before decision keys act on it."""
NOTHING_LEFT = "No conflict of this list is left for you to decide."


class RatingScreen(ReviewScreen):
    """A screen with one conflict and the actions that change the rater's rating of it."""

    def __init__(self, session: ReviewSession, conflict_key: ConflictKey) -> None:
        super().__init__()
        self.session = session
        self.conflict_key = conflict_key
        self.item: ReviewItem | None = None
        self.n_pending_saves = 0
        self.last_saved = ""
        """What was saved before the conflict opened by itself; empty if the rater opened it."""
        self._is_advancing = False
        self.accepts_decisions_at = 0.0

    def show_item(self, item: ReviewItem) -> None:
        """Show the current state of the open conflict; defined by the subclass."""
        raise NotImplementedError

    def show_opened_item(self, item: ReviewItem) -> None:
        """Show another conflict, scrolled to the top; defined by the subclass."""
        raise NotImplementedError

    def update_status_line(self) -> None:
        """Show whether a save is pending; defined by the subclass."""
        raise NotImplementedError

    # --- deciding

    def action_decide(self, decision: str) -> None:
        """Store a decision, given as the value of a `Decision`, about the sides as shown.

        Ignored while the next conflict is about to open, so that a key pressed twice does not decide it unseen.
        """
        item, made_decision = self.item, Decision(decision)
        if item is None or self._is_advancing or time.monotonic() < self.accepts_decisions_at:
            return
        if not made_decision.resolves_conflict:
            self._skip(item, made_decision)
        elif made_decision.needs_score:
            self._ask_score(item, made_decision, self._initial_score(item))
        else:
            self._save_decision(item, made_decision)

    def _skip(self, item: ReviewItem, decision: Decision) -> None:
        """Store a decision that resolves nothing, unless the rater has decided the conflict, and go to the next one."""
        if item.decision is None or not item.decision.resolves_conflict:
            self._save_rating(lambda: self.session.decide(item, decision), opens_next=True)
        else:
            self.action_best()

    def action_best(self) -> None:
        """Open the next undecided conflict of the list."""
        raise NotImplementedError

    def _save_decision(
        self,
        item: ReviewItem,
        decision: Decision,
        score: float | None = None,
        following: Sequence[CellDecision] = (),
        on_failed: Callable[[str], None] | None = None,
    ) -> None:
        """Store a decision; then the next conflict opens by itself, or this one shows what was hidden."""
        opens_next = self.review_app.settings.open_next

        def job() -> RatingEntry:
            return self.session.decide(item, decision, score=score, following=following, withhold=opens_next)

        self._save_rating(
            job, opens_next=opens_next, saved_text=describe_decision(decision, score), on_failed=on_failed
        )

    @staticmethod
    def _initial_score(item: ReviewItem) -> float | None:
        """Return the stored custom score, or the mean of both sides; None if a side has no score."""
        if item.left.score is None or item.right.score is None:
            return None
        return item.row.score if item.row.score is not None else (item.left.score + item.right.score) / 2

    def _ask_score(self, item: ReviewItem, decision: Decision, initial_score: float | None, error: str = "") -> None:
        """Ask for a score, starting from `initial_score`, and store it with a decision.

        Args:
            error: why the score was not saved, if it was entered before.
        """
        left_score, right_score = item.left.score, item.right.score
        if left_score is None or right_score is None or initial_score is None:
            self.notify(f"These answers have no scores: {explain_missing_scores(item)}", markup=False)
            return

        def check(score: float | None) -> None:
            """Store a score in [-1, 1] or preview what else it settles; None comes from a cancelled dialog."""
            if score is None:
                return
            try:
                following = self.session.preview_cell(item, score)
            except AuditorError as preview_error:
                self._ask_score(item, decision, score, to_single_line(str(preview_error)))
                return
            if following:
                self._confirm_cell(item, decision, score, following)
            else:
                self._save_score(item, decision, score)

        is_task_audit = self.session.is_task_audit
        dialog = ScoreDialog(initial_score, left_score, right_score, is_task_audit=is_task_audit, error=error)
        self.app.push_screen(dialog, check)

    def _confirm_cell(
        self, item: ReviewItem, decision: Decision, score: float, following: Sequence[CellDecision]
    ) -> None:
        """Show what a custom score implies for the cell's other conflicts, and ask whether to settle them with it."""

        def store(settles_all: bool | None) -> None:
            """Store the score, for all conflicts or for the open one; None goes back to the score."""
            if settles_all is None:
                self._ask_score(item, decision, score)
            else:
                self._save_score(item, decision, score, following if settles_all else ())

        self.app.push_screen(CellDialog(item.key, score, following), store)

    def _save_score(
        self, item: ReviewItem, decision: Decision, score: float, following: Sequence[CellDecision] = ()
    ) -> None:
        """Store a custom score; if that fails, ask for it again with what was typed."""
        self._save_decision(
            item, decision, score, following, on_failed=lambda text: self._ask_score(item, decision, score, text)
        )

    def action_note(self) -> None:
        if self.item:
            self._ask_note(self.item, self.item.row.note)

    def _ask_note(self, item: ReviewItem, initial_text: str, error: str = "") -> None:
        """Ask for a note, and store it if it changed."""

        def store(text: str | None) -> None:
            if text is not None and text != item.row.note:
                self._save_rating(
                    lambda: self.session.save_note(item, text),
                    on_failed=lambda message: self._ask_note(item, text, message),
                )

        hint = f"✕ {error}" if error else "What should other raters know?"
        self.app.push_screen(TextDialog("Note", initial_text, hint), store)

    def action_flag(self) -> None:
        item = self.item
        if item:
            self._save_rating(lambda: self.session.toggle_flag(item))

    def action_reveal(self) -> None:
        item = self.item
        if item and not item.revealed:
            self._save_rating(lambda: self.session.reveal(item))

    def action_undo(self) -> None:
        self._save_undo(RatingAction.UNDO, self.session.undo)

    def action_redo(self) -> None:
        self._save_undo(RatingAction.REDO, self.session.redo)

    # --- saving

    def _save_rating(
        self,
        job: Callable[[], RatingEntry],
        *,
        opens_next: bool = False,
        saved_text: str = "",
        on_failed: Callable[[str], None] | None = None,
    ) -> None:
        """Run a job that stores a rating, and show the conflict as saved once the rating is durable.

        Args:
            opens_next: whether the next conflict then opens by itself.
            saved_text: what was saved, for the status line of the next conflict.
            on_failed: called with the error's text if nothing was saved, to ask again for what was typed.
        """
        key = self.conflict_key
        self._is_advancing = self._is_advancing or opens_next

        def work() -> tuple[RatingEntry, ReviewItem, ReviewItem | None]:
            entry = job()
            next_key = self.session.next_conflict_key(after=key) if opens_next else None
            return entry, self.session.load_item(key), next_key and self._load_next(next_key)

        def show_saved(saved: tuple[RatingEntry, ReviewItem, ReviewItem | None]) -> None:
            entry, item, next_item = saved
            self.n_pending_saves -= 1
            self._is_advancing = self._is_advancing and not opens_next
            is_in_front = self.conflict_key == key and self.app.screen is self
            if next_item and is_in_front:
                self._open_by_itself(next_item, saved_text, entry.n_following)
            else:
                if self.conflict_key == key:
                    self.show_item(item)
                if opens_next and is_in_front:
                    self.notify(NOTHING_LEFT, markup=False)
            self.review_app.prefetch_and_notify(self.session)

        def show_error(error: AuditorError) -> None:
            self._is_advancing = self._is_advancing and not opens_next
            self._show_save_error(error, on_failed)

        self._run_save(work, show_saved, show_error)

    def _load_next(self, key: ConflictKey) -> ReviewItem | None:
        """Load the conflict that opens by itself; None if that fails, since the decision before it is saved anyway."""
        try:
            return self.session.load_item(key)
        except AuditorError:
            return None

    def _open_by_itself(self, item: ReviewItem, saved_text: str, n_following: int) -> None:
        """Show the next conflict, and accept decisions on it once it has been visible for `DECISION_DELAY_S`."""
        self.accepts_decisions_at = math.inf
        self.show_opened_item(item)
        self.last_saved = f"{saved_text} (+{n_following} of the cell)" if n_following else saved_text
        self.update_status_line()

        def accept_later() -> None:
            self.accepts_decisions_at = time.monotonic() + DECISION_DELAY_S

        self.call_after_refresh(accept_later)

    def _save_undo(self, act: RatingAction, job: Callable[[], RatingEntry | None]) -> None:
        """Run an undo or redo in the writer thread, then show the conflict that it changed."""

        def work() -> tuple[RatingEntry | None, ReviewItem | None]:
            entry = job()
            return entry, entry and self.session.load_item(entry.key)

        def show_undo(entry_and_item: tuple[RatingEntry | None, ReviewItem | None]) -> None:
            self.n_pending_saves -= 1
            entry, item = entry_and_item
            self.notify(describe_undo(act, entry), markup=False)
            if item and item.key != self.conflict_key:
                self.show_opened_item(item)
            elif item or self.item:
                self.last_saved = ""
                self.show_item(item or self.item)  # type: ignore[arg-type]
            self.accepts_decisions_at = 0.0
            self.review_app.prefetch_and_notify(self.session)

        self._run_save(work, show_undo, self._show_save_error)

    def _run_save(
        self, job: Callable[[], T], on_success: Callable[[T], None], on_error: Callable[[AuditorError], None]
    ) -> None:
        """Run a job in the writer thread, and show that a save is pending until it has ended."""
        self.n_pending_saves += 1
        self.update_status_line()
        self.review_app.submit_write(job, on_success, on_error)

    def _show_save_error(self, error: AuditorError, on_failed: Callable[[str], None] | None = None) -> None:
        """Show the error of a failed save, and the conflict as it is stored; ask again for what was typed."""
        self.n_pending_saves -= 1
        text = to_single_line(str(error))
        self.notify(text, severity="error", timeout=20, markup=False)
        if self.item:
            self.show_item(self.item)
        if on_failed:
            on_failed(text)
