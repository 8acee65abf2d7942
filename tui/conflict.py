"""Conflict screen: both sides next to each other, actions to decide, and the hidden evidence after the decision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, TypeVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Horizontal, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from auditor.domain import Decision, RatingAction
from auditor.errors import AuditorError
from auditor.review.item import ReviewItem
from auditor.review.session import ReviewSession
from auditor.storage.conflict_status import ConflictKey
from auditor.storage.rating_log import RatingEntry
from auditor.tui.actions import bindings_for
from auditor.tui.dialogs import HistoryWindow, ScoreDialog, TextDialog
from auditor.tui.evidence import render_evidence
from auditor.tui.formatting import DECISION_SYMBOLS, STATUS_LABELS, STATUS_SYMBOLS, to_content, to_single_line
from auditor.tui.screen import ReviewScreen
from auditor.tui.side_panel import SidePanel
from auditor.tui.wording import describe_decision, describe_undo, explain_missing_scores

T = TypeVar("T")


class ConflictScreen(ReviewScreen):
    """Screen to decide conflicts, one after the other."""

    screen_name = "conflict"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("conflict")

    def __init__(self, session: ReviewSession, conflict_keys: Sequence[ConflictKey], conflict_key: ConflictKey) -> None:
        super().__init__()
        self.session = session
        self.conflict_keys = conflict_keys
        self.positions = {key: position for position, key in enumerate(conflict_keys)}
        self.conflict_key = conflict_key
        self.item: ReviewItem | None = None
        self.sample_index = 0
        self.highlight_differences = True
        self.n_pending_saves = 0

    def compose_body(self) -> ComposeResult:
        yield Static(id="cell")
        with Container(id="conflict"):
            with Horizontal(id="sides"):
                yield SidePanel(id="left")
                yield SidePanel(id="right")
            with VerticalScroll(id="evidence", can_focus=False):
                yield Static(id="evidence-text")
        yield Static(id="standing")

    def on_mount(self) -> None:
        self.open_conflict(self.conflict_key)

    def refresh_title_bar(self) -> None:
        """Show audit and position in the queue in the title bar, and render the conflict at the new width."""
        position = self.positions.get(self.conflict_key)
        position_text = "" if position is None else f"{position + 1:,} of {len(self.conflict_keys):,}"
        self.set_title_bar(self.session.audit.name, "conflicts", *([position_text] if position_text else []))
        if self.item:
            self._update_panels()

    def open_conflict(self, conflict_key: ConflictKey) -> None:
        """Load and show a conflict, scrolled to the top; show an error message if it no longer exists."""
        try:
            item = self.session.load_item(conflict_key)
        except AuditorError as error:
            self.notify(to_single_line(str(error)), severity="error", markup=False)
            return
        self.conflict_key, self.sample_index = conflict_key, 0
        self.show_item(item)
        for side in self.query(SidePanel):
            side.scroll_home(animate=False)
        self.query_one("#evidence").scroll_home(animate=False)

    def show_item(self, item: ReviewItem) -> None:
        """Show the current state of the open conflict, such as after a decision."""
        self.item = item
        self.query_one("#conflict").set_class(item.revealed, "-revealed")
        self.refresh_title_bar()

    # --- rendering

    def _update_panels(self) -> None:
        """Render the loaded conflict: heading, both sides, evidence and status line."""
        item = self.item
        assert item is not None
        kind = item.row.kind.label if item.row.gap is None else f"{item.row.kind.label} · gap {item.row.gap:.2f}"
        heading = Content.assemble(
            to_content(to_single_line(item.key.topic), "bold $text-accent"),
            to_content(f" in {to_single_line(item.key.country)}" if item.key.country else "", "bold"),
            (f"   {kind}", "$text-muted"),
            "\n",
            to_content(to_single_line(item.question), "italic $text-muted"),
        )
        self.query_one("#cell", Static).update(heading, layout=False)
        survey_score = item.survey.score if item.survey else None
        for side_name, side, other_side in (("left", item.left, item.right), ("right", item.right, item.left)):
            panel = self.query_one(f"#{side_name}", SidePanel)
            panel.show_side(
                side_name,
                side,
                other_side,
                self.sample_index,
                survey_score=survey_score,
                highlight_differences=self.highlight_differences,
            )
        self.query_one("#evidence").border_title = Content("Judges and people" if item.revealed else "Hidden")
        self.query_one("#evidence-text", Static).update(render_evidence(item))
        self.query_one("#standing", Static).update(self._format_status_line(item), layout=False)

    def _format_status_line(self, item: ReviewItem) -> Content:
        """Return the status line: whether the rater's decision is saved, flag, note, and the conflict's status."""
        row = item.row
        if self.n_pending_saves:
            state = Content.styled("… saving", "$text-warning")
        elif item.decision and item.decision.resolves_conflict:
            symbol = DECISION_SYMBOLS[item.decision]
            state = to_content(f"✓ saved: {symbol.glyph} {describe_decision(item.decision, row.score)}", symbol.style)
        else:
            symbol = DECISION_SYMBOLS[item.decision]
            state = to_content(
                f"{symbol.glyph} {symbol.label}, not decided by you" if item.decision else "○ not decided by you"
            )
        parts = [state]
        if row.flagged:
            parts.append(Content.styled("⚑ flagged", "$text-error"))
        if item.needs_second_rater:
            parts.append(Content.styled("a second opinion is wanted", "$text-accent"))
        if row.note:
            parts.append(to_content(f"✎ {to_single_line(row.note)}", "$text-accent"))
        if not item.revealed:
            parts.append(Content.styled("the rest is hidden until you decide", "$text-muted"))
            if item.disclosed_elsewhere:
                parts.append(Content.styled("not blind: you have seen this cell", "$text-warning"))
        else:
            parts.append(STATUS_SYMBOLS[row.status].with_text(STATUS_LABELS[row.status]))
        return Content.styled("  ·  ", "$text-muted").join(parts)

    # --- deciding

    def action_decide(self, decision: str) -> None:
        """Store a decision, given as the value of a `Decision`, about the sides as shown."""
        item, made_decision = self.item, Decision(decision)
        if not made_decision.resolves_conflict:
            self._skip(item, made_decision)
        elif item and made_decision.needs_score:
            self._ask_score(item, made_decision)
        elif item:
            self._save_rating(lambda: self.session.decide(item, made_decision))

    def _skip(self, item: ReviewItem | None, decision: Decision) -> None:
        """Store a decision that resolves nothing, unless the rater has decided the conflict, and go to the next one."""
        if item and (item.decision is None or not item.decision.resolves_conflict):
            self._save_rating(lambda: self.session.decide(item, decision), on_saved=self.action_best)
        else:
            self.action_best()

    def _ask_score(self, item: ReviewItem, decision: Decision) -> None:
        """Ask for a score, starting from the stored one or the mean of both sides, and store it with a decision."""

        def store(score: float | None) -> None:
            """Store a score in [-1, 1]; None comes from a cancelled dialog."""
            if score is not None:
                self._save_rating(lambda: self.session.decide(item, decision, score=score))

        left_score, right_score = item.left.score, item.right.score
        if left_score is None or right_score is None:
            self.notify(f"These answers are no scores: {explain_missing_scores(item)}", markup=False)
            return
        initial_score = item.row.score if item.row.score is not None else (left_score + right_score) / 2
        self.app.push_screen(
            ScoreDialog(initial_score, left_score, right_score, is_task_audit=self.session.is_task_audit), store
        )

    def action_note(self) -> None:
        """Ask for a note, and store it if it changed."""
        item = self.item

        def store(text: str | None) -> None:
            if item and text is not None and text != item.row.note:
                self._save_rating(lambda: self.session.save_note(item, text))

        if item:
            self.app.push_screen(TextDialog("Note", item.row.note, "what a colleague should know"), store)

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

    def _save_rating(self, job: Callable[[], RatingEntry], on_saved: Callable[[], None] | None = None) -> None:
        """Run a job that stores a rating, and show the conflict as saved once the rating is durable."""
        key = self.conflict_key

        def work() -> ReviewItem:
            job()
            return self.session.load_item(key)

        def show_saved(item: ReviewItem) -> None:
            self.n_pending_saves -= 1
            if self.conflict_key == item.key:
                self.show_item(item)
            if on_saved:
                on_saved()
            self.review_app.prefetch_and_notify(self.session)

        self._run_save(work, show_saved)

    def _save_undo(self, act: RatingAction, job: Callable[[], RatingEntry | None]) -> None:
        """Run an undo or redo in the writer thread, then show the conflict that it changed."""

        def work() -> tuple[RatingEntry | None, ReviewItem | None]:
            entry = job()
            return entry, entry and self.session.load_item(entry.key)

        def show_undo(entry_and_item: tuple[RatingEntry | None, ReviewItem | None]) -> None:
            self.n_pending_saves -= 1
            entry, item = entry_and_item
            self.notify(describe_undo(act, entry), markup=False)
            if item:
                self.conflict_key = item.key
                self.show_item(item)
            elif self.item:
                self.show_item(self.item)
            self.review_app.prefetch_and_notify(self.session)

        self._run_save(work, show_undo)

    def _run_save(self, job: Callable[[], T], on_success: Callable[[T], None]) -> None:
        """Run a job in the writer thread, and show that a save is pending until it has ended."""
        self.n_pending_saves += 1
        if self.item:
            self.query_one("#standing", Static).update(self._format_status_line(self.item), layout=False)
        self.review_app.submit_write(job, on_success, self._show_save_error)

    def _show_save_error(self, error: AuditorError) -> None:
        """Show the error of a failed save, and the conflict as it is stored."""
        self.n_pending_saves -= 1
        self.notify(to_single_line(str(error)), severity="error", timeout=20, markup=False)
        if self.item:
            self.show_item(self.item)

    # --- navigation

    def action_best(self) -> None:
        """Open the undecided conflict that teaches most, other than the current one."""
        key = self.session.next_conflict_key(after=self.conflict_key)
        if key is None:
            self.notify("Nothing else is left for you to decide.", markup=False)
        else:
            self.open_conflict(key)

    def action_following(self) -> None:
        self._move_in_queue(1)

    def action_preceding(self) -> None:
        self._move_in_queue(-1)

    def _move_in_queue(self, offset: int) -> None:
        """Open the conflict `offset` places further in the queue; show a message at its end."""
        position = self.positions.get(self.conflict_key, -1 if offset > 0 else 1) + offset
        if 0 <= position < len(self.conflict_keys):
            self.open_conflict(self.conflict_keys[position])
        else:
            self.notify("This is the end of the queue.", markup=False)

    def action_history(self) -> None:
        self.app.push_screen(HistoryWindow(self.session.load_history(self.conflict_key)))

    def action_next_sample(self) -> None:
        self._change_sample(1)

    def action_last_sample(self) -> None:
        self._change_sample(-1)

    def _change_sample(self, offset: int) -> None:
        """Show another sample of both sides; after the last one follows the first."""
        if self.item:
            n_samples = max(len(self.item.left.samples), len(self.item.right.samples), 1)
            self.sample_index = (self.sample_index + offset) % n_samples
            self._update_panels()

    def action_differences(self) -> None:
        self.highlight_differences = not self.highlight_differences
        self._update_panels()

    def action_down(self) -> None:
        self._scroll_panels(1)

    def action_up(self) -> None:
        self._scroll_panels(-1)

    def action_page_down(self) -> None:
        self._scroll_panels(self.query_one("#left").size.height - 1)

    def action_page_up(self) -> None:
        self._scroll_panels(1 - self.query_one("#left").size.height)

    def _scroll_panels(self, lines: int) -> None:
        for widget in (*self.query(SidePanel), self.query_one("#evidence")):
            widget.scroll_relative(y=lines, animate=False)

    def action_leave(self) -> None:
        self.review_app.go_back()
