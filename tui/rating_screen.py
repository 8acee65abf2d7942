"""Base class of the conflict screen: decide, note, flag, reveal and undo."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from auditor.domain import Decision, RatingAction
from auditor.errors import AuditorError
from auditor.review.cell_settlement import CellDecision
from auditor.review.item import ReviewItem
from auditor.review.session import ReviewSession
from auditor.storage.conflict_status import ConflictKey
from auditor.storage.rating_log import RatingEntry
from auditor.tui.cell_dialog import CellDialog
from auditor.tui.dialogs import ScoreDialog
from auditor.tui.formatting import to_single_line
from auditor.tui.saving_screen import SavingScreen
from auditor.tui.wording import describe_decision, describe_undo, explain_missing_scores

NOTHING_LEFT = "No conflict of this list is left for you to decide."


class RatingScreen(SavingScreen[ReviewItem]):
    """A screen with one conflict and the actions that change the rater's rating of it."""

    nothing_left = NOTHING_LEFT

    def __init__(self, session: ReviewSession, conflict_key: ConflictKey) -> None:
        super().__init__()
        self.session = session
        self.conflict_key = conflict_key

    @property
    def open_key(self) -> ConflictKey:
        return self.conflict_key

    def after_save(self) -> None:
        self.review_app.prefetch_and_notify(self.session)

    # --- deciding

    def action_decide(self, decision: str) -> None:
        """Store a decision, given as the value of a `Decision`, about the sides as shown.

        Ignored while the next conflict is about to open, so that a key pressed twice does not decide it unseen.
        """
        item, made_decision = self.item, Decision(decision)
        if item is None or not self.accepts_decisions:
            return
        if not made_decision.resolves_conflict:
            self._skip(item, made_decision)
        elif made_decision.needs_score:
            self._ask_score(item, made_decision, item.row.score)
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

    def _ask_score(self, item: ReviewItem, decision: Decision, initial_score: float | None, error: str = "") -> None:
        """Ask for a score, and store it with a decision.

        Args:
            initial_score: what was typed or stored before; None leaves the field empty, since a suggestion would
                influence the rater.
            error: why the score was not saved, if it was entered before.
        """
        left_score, right_score = item.left.score, item.right.score
        if left_score is None or right_score is None:
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
        """Ask for a note, and store it if it changed; if that fails, ask again with what was typed."""

        def store(text: str) -> None:
            self._save_rating(
                lambda: self.session.save_note(item, text),
                on_failed=lambda message: self._ask_note(item, text, message),
            )

        self.ask_note(initial_text, store, error)

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
        """Run a job that stores a rating; see `save_item`.

        Args:
            opens_next: whether the next conflict then opens by itself.
            saved_text: what was saved, for the status line of the next conflict.
        """
        key = self.conflict_key

        def load_next() -> ReviewItem | None:
            next_key = self.session.next_conflict_key(after=key)
            return None if next_key is None else self.session.load_item(next_key)

        def describe_saved(entry: RatingEntry) -> str:
            return f"{saved_text} (+{entry.n_following} of the cell)" if entry.n_following else saved_text

        self.save_item(
            job,
            lambda entry: self.session.load_item(key),
            load_next if opens_next else None,
            describe_saved=describe_saved,
            on_failed=on_failed,
        )

    def _save_undo(self, act: RatingAction, undo_or_redo: Callable[[], RatingEntry | None]) -> None:
        """Undo or redo, and show the conflict that was changed."""

        def job() -> tuple[str, ReviewItem | None]:
            entry = undo_or_redo()
            return describe_undo(act, entry), entry and self.session.load_item(entry.key)

        self.save_undo(job, lambda item: item.key)
