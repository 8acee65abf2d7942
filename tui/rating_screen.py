"""Base classes of the screens on which a rater decides: saves in the writer thread, note, flag, reveal, undo."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import ClassVar, Generic, TypeVar

from auditor.domain import Decision, RatingAction
from auditor.errors import AuditorError
from auditor.review.item import ReviewItem
from auditor.review.session import CellDecision, ReviewSession
from auditor.storage.conflict_status import ConflictKey
from auditor.storage.rating_log import RatingEntry
from auditor.tui.dialogs import CellDialog, ScoreDialog, TextDialog
from auditor.tui.formatting import describe_decision, describe_undo, explain_missing_scores, to_single_line
from auditor.tui.screen import ReviewScreen

T = TypeVar("T")
ItemT = TypeVar("ItemT")
DECISION_DELAY_S = 0.4
"""Time for which an item that opened by itself must have been visible before decision keys act on it."""
MIN_COLUMNS, MIN_ROWS = 80, 24
"""Smallest window in which a rater can decide: a smaller one shows little or nothing of the texts."""
SAVED_BUT_UNREADABLE = "Your decision is saved, but it cannot be read at the moment. Open it again later."


class SavingScreen(ReviewScreen, Generic[ItemT]):
    """A screen with one item, the rater's decision on it, and the next item once that is saved.

    `item` is None until the first item is loaded. `last_saved` says what was saved before the item opened by itself; it
    is empty if the rater opened the item.
    """

    nothing_left: ClassVar[str] = ""
    """Message if no next item is left after a decision."""

    def __init__(self) -> None:
        super().__init__()
        self.item: ItemT | None = None
        self.n_pending_saves = 0
        self.last_saved = ""
        self._is_advancing = False
        self.accepts_decisions_at = 0.0

    # --- defined by the subclass

    @property
    def open_key(self) -> object:
        """Key of the open item."""
        raise NotImplementedError

    def show_item(self, item: ItemT) -> None:
        """Show the current state of the open item."""
        raise NotImplementedError

    def show_opened_item(self, item: ItemT) -> None:
        """Show another item, scrolled to the top."""
        raise NotImplementedError

    def update_status_line(self) -> None:
        """Show whether a save is pending."""
        raise NotImplementedError

    def after_save(self) -> None:
        """Refresh what depends on the saved decisions, such as the progress."""
        raise NotImplementedError

    # --- saving

    @property
    def is_advancing(self) -> bool:
        """Whether the next item opens by itself once the decision on this one is saved."""
        return self._is_advancing

    @property
    def accepts_decisions(self) -> bool:
        """Whether decision keys act; not while the next item is about to open, so that nothing is decided unseen."""
        return self.item is not None and not self._is_advancing and time.monotonic() >= self.accepts_decisions_at

    def check_window_size(self) -> bool:
        """Whether the window shows enough for a decision; if not, say how large it must be."""
        width, height = self.app.size
        if width >= MIN_COLUMNS and height >= MIN_ROWS:
            return True
        self.notify(
            f"Nothing is saved: the window has {width} × {height} characters, and decisions need {MIN_COLUMNS} × "
            f"{MIN_ROWS}. Enlarge the window, or make its letters smaller.",
            severity="warning",
            markup=False,
        )
        return False

    def save_item(
        self,
        job: Callable[[], T],
        load_item: Callable[[T], ItemT],
        load_next: Callable[[], ItemT | None] | None = None,
        *,
        describe_saved: Callable[[T], str] | None = None,
        on_failed: Callable[[str], None] | None = None,
    ) -> None:
        """Run a job that stores a decision, and show the item as saved once the decision is durable.

        Args:
            load_item: loads the open item again, from what the job returned.
            load_next: loads the item that then opens by itself; None if the open one stays.
            describe_saved: describes what the job returned, for the status line of the next item.
            on_failed: called with the error's text if nothing was saved, to ask again for what was typed.
        """
        key, opens_next = self.open_key, load_next is not None
        self._is_advancing = self._is_advancing or opens_next

        def work() -> tuple[T, ItemT | None, ItemT | None]:
            saved = job()
            return saved, _load_if_possible(lambda: load_item(saved)), load_next and _load_if_possible(load_next)

        def show_saved(result: tuple[T, ItemT | None, ItemT | None]) -> None:
            saved, item, next_item = result
            self._is_advancing = self._is_advancing and not opens_next
            is_in_front = self.open_key == key and self.app.screen is self
            if next_item is not None and is_in_front:
                self._open_by_itself(next_item, describe_saved(saved) if describe_saved else "")
            else:
                if self.open_key == key and item is not None:
                    self.last_saved = ""
                    self.show_item(item)
                elif self.open_key == key:
                    self.notify(SAVED_BUT_UNREADABLE, severity="warning", timeout=20, markup=False)
                if opens_next and is_in_front:
                    self.notify(self.nothing_left, markup=False)

        def show_error(error: AuditorError) -> None:
            self._is_advancing = self._is_advancing and not opens_next
            self.show_save_error(error, on_failed)

        self.run_save(work, show_saved, show_error)

    def _open_by_itself(self, item: ItemT, saved_text: str) -> None:
        """Show the next item, and accept decisions on it once it has been visible for `DECISION_DELAY_S`."""
        self.show_opened_item(item)
        self.last_saved = saved_text
        self.update_status_line()
        self.delay_decisions()

    def delay_decisions(self) -> None:
        """Accept decisions on an item that the rater did not open once it has been visible for `DECISION_DELAY_S`."""
        self.accepts_decisions_at = math.inf

        def accept_later() -> None:
            self.accepts_decisions_at = time.monotonic() + DECISION_DELAY_S

        self.call_after_refresh(accept_later)

    def save_undo(self, job: Callable[[], tuple[str, ItemT | None]], get_key: Callable[[ItemT], object]) -> None:
        """Run an undo or redo in the writer thread, then show the item that it changed.

        Args:
            job: returns a description of the new state, and the changed item; None if nothing was changed.
            get_key: returns an item's key.
        """

        def show_undo(description_and_item: tuple[str, ItemT | None]) -> None:
            description, item = description_and_item
            self.notify(description, markup=False)
            if item is not None and get_key(item) != self.open_key:
                self.show_opened_item(item)
            elif item is not None or self.item is not None:
                self.last_saved = ""
                self.show_item(item if item is not None else self.item)  # type: ignore[arg-type]
            self.accepts_decisions_at = 0.0

        self.run_save(job, show_undo, self.show_save_error)

    def run_save(
        self, job: Callable[[], T], on_success: Callable[[T], None], on_error: Callable[[AuditorError], None]
    ) -> None:
        """Run a job in the writer thread, and show that a save is pending until it has ended.

        If the screen is closed meanwhile, only an error is shown.
        """

        def finish(result: T) -> None:
            self.n_pending_saves -= 1
            if self.is_open:
                on_success(result)
            self.after_save()

        def fail(error: AuditorError) -> None:
            self.n_pending_saves -= 1
            (on_error if self.is_open else self.rater_app.show_error)(error)

        self.n_pending_saves += 1
        self.update_status_line()
        self.rater_app.submit_write(job, finish, fail)

    def show_save_error(self, error: AuditorError, on_failed: Callable[[str], None] | None = None) -> None:
        """Show the error of a failed save, and the item as it is stored; ask again for what was typed."""
        self.rater_app.show_error(error)
        if self.item is not None:
            self.show_item(self.item)
        if on_failed:
            on_failed(to_single_line(str(error)))

    def ask_note(self, initial_text: str, store: Callable[[str], None], error: str = "") -> None:
        """Ask for a note, and pass it to `store` if it changed.

        Args:
            error: why the note was not saved, if it was entered before.
        """

        def check(text: str | None) -> None:
            if text is not None and (error or text != initial_text):
                store(text)

        hint = f"✕ {error}" if error else "What should other raters know?"
        self.app.push_screen(TextDialog("Note", initial_text, hint), check)


def _load_if_possible(load: Callable[[], ItemT | None]) -> ItemT | None:
    """Load an item after a decision; None if that fails, since the decision is saved anyway."""
    try:
        return load()
    except AuditorError:
        return None


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
        elif not self.check_window_size():
            return
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
