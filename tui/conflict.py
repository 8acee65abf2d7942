"""Conflict screen: both sides next to each other, and the hidden evidence once it is revealed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Horizontal, VerticalScroll
from textual.content import Content
from textual.events import Click
from textual.widgets import Static

from auditor.errors import AuditorError, format_count
from auditor.review.conflict_list import format_left
from auditor.review.item import ReviewItem
from auditor.review.session import ReviewSession, stored_content
from auditor.storage.conflict_status import ConflictKey, QueueRow
from auditor.tui.dialogs import HistoryWindow, TextWindow
from auditor.tui.formatting import (
    DECISION_SYMBOLS,
    EFFECT_LABELS,
    STATUS_LABELS,
    STATUS_SYMBOLS,
    describe_decision,
    to_content,
    to_single_line,
)
from auditor.tui.key_bindings import bindings_for
from auditor.tui.panels import SidePanel, render_evidence
from auditor.tui.rating_screen import NOTHING_LEFT, RatingScreen

REFRESH_INTERVAL_S = 2.0
"""Time between checks whether another rater has changed the open conflict."""
ANSWERS_CHANGED = "The answers of this conflict have changed: what you see now is new."
LINES_PER_QUESTION_LINE = 8
"""Lines of the screen for each line of the question in the heading."""


class ConflictScreen(RatingScreen):
    """Screen to decide conflicts, one after the other."""

    screen_name = "conflict"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("conflict")

    def __init__(self, session: ReviewSession, conflict_keys: Sequence[ConflictKey], conflict_key: ConflictKey) -> None:
        super().__init__(session, conflict_key)
        self.conflict_keys = conflict_keys
        self.sample_index = 0
        self.highlight_differences = True
        self._n_heading_lines = 0

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
        self.set_interval(REFRESH_INTERVAL_S, self._check_for_changes)

    def refresh_title_bar(self) -> None:
        """Show audit, position and what is left in the title bar, and render the conflict at the new width."""
        position, progress = self._find_position(), self.session.progress
        position_text = (
            "" if position is None else f"{format_count(position + 1)} of {format_count(len(self.conflict_keys))}"
        )
        progress_text = "" if progress is None else format_left(progress)
        self.set_title_bar(self.session.audit.name, *filter(None, (position_text, progress_text)))
        if self.item:
            self._update_panels()

    def open_conflict(self, conflict_key: ConflictKey) -> None:
        """Load and show a conflict, scrolled to the top; show an error message if it no longer exists."""
        try:
            item = self.session.load_item(conflict_key)
        except AuditorError as error:
            self.notify(to_single_line(str(error)), severity="error", markup=False)
            return
        self.show_opened_item(item)

    def show_opened_item(self, item: ReviewItem) -> None:
        """Show another conflict, scrolled to the top."""
        self.conflict_key, self.sample_index, self.last_saved = item.key, 0, ""
        self.show_item(item)
        for side in self.query(SidePanel):
            side.scroll_home(animate=False)
        self.query_one("#evidence").scroll_home(animate=False)

    def show_item(self, item: ReviewItem) -> None:
        """Show the current state of the open conflict, such as after a decision."""
        self.item = item
        self.query_one("#conflict").set_class(item.revealed, "-revealed")
        self.refresh_title_bar()

    def _check_for_changes(self) -> None:
        """Load the conflict's row again, in a thread, if it is in front and no save is pending."""
        item = self.item
        if item is None or self.n_pending_saves or not self.is_current:
            return

        def show(rows: list[QueueRow]) -> None:
            if self.item is item and not self.n_pending_saves and rows and rows[0] != item.row:
                self._show_changed_row(item, rows[0])

        self.submit_read("row", lambda: self.session.load_queue_rows([item.key]), show)

    def _show_changed_row(self, item: ReviewItem, row: QueueRow) -> None:
        """Show a change that another rater made; load the conflict again if this rater or the audit changed it."""
        before = item.row
        if (
            replace(row, status=before.status, n_raters=before.n_raters, n_direct_raters=before.n_direct_raters)
            != before
        ):
            self.open_conflict(item.key)
            self.delay_decisions()
            if stored_content(row, swapped=False) != stored_content(before, swapped=False):
                self.notify(ANSWERS_CHANGED, severity="warning", timeout=20, markup=False)
            return
        self.item = self.session.update_row(item, row)
        self._update_panels()
        if row.n_raters > item.row.n_raters:
            self.notify(f"Another rater has decided this conflict. It is {STATUS_LABELS[row.status]}.", markup=False)

    # --- rendering

    def _update_panels(self) -> None:
        """Render the loaded conflict: heading, both sides, evidence and status line."""
        item = self.item
        assert item is not None
        kind = item.row.kind.label if item.row.gap is None else f"{item.row.kind.label} · gap {item.row.gap:.2f}"
        if item.effect is not None:
            kind += f" · {EFFECT_LABELS[item.effect]}"
        heading = self._format_heading(item, kind)
        n_lines = heading.plain.count("\n") + 1
        self.query_one("#cell", Static).update(heading, layout=n_lines != self._n_heading_lines)
        self._n_heading_lines = n_lines
        survey_score = item.survey.score if item.survey else None
        for side_name, side, other_side in (("left", item.left, item.right), ("right", item.right, item.left)):
            panel = self.query_one(f"#{side_name}", SidePanel)
            panel.show_side(
                side_name,
                side,
                other_side,
                self.sample_index,
                survey_score=survey_score,
                has_norms=item.has_norms,
                highlight_differences=self.highlight_differences,
            )
        self.query_one("#evidence").border_title = Content("Judges and people" if item.revealed else "Hidden")
        self.query_one("#evidence-text", Static).update(render_evidence(item))
        self.update_status_line()

    def _format_heading(self, item: ReviewItem, kind: str) -> Content:
        """Return the cell and the question, as many of its lines as leave room for the answers."""
        width = max(self.size.width - 4, 20)
        lines = to_content(item.question, "italic $text-muted").wrap(width)
        n_shown = max(self.size.height // LINES_PER_QUESTION_LINE, 2)
        hint = Content("")
        if len(lines) > n_shown:
            key = self.rater_app.settings.key_names("conflict.question")[0]
            hint = Content.assemble("   ", (key, "bold $text-accent"), (" whole question", "$text-muted"))
            last_line = lines[n_shown - 1].rstrip().truncate(width - 2) + to_content(" …", "italic $text-muted")
            lines = [*lines[: n_shown - 1], last_line]
        cell = Content.assemble(
            to_content(to_single_line(item.key.topic), "bold $text-accent"),
            to_content(f" in {to_single_line(item.key.country)}" if item.key.country else "", "bold"),
            to_content(f"   {kind}", "$text-muted"),
            hint,
        )
        return Content("\n").join([cell, *lines])

    @on(Click, "#cell")
    def action_question(self) -> None:
        """Show the whole question, which hides nothing from a blind rater, in a window that scrolls."""
        if self.item:
            self.app.push_screen(TextWindow("Question", to_content(self.item.question)))

    def update_status_line(self) -> None:
        """Show the state of the conflict and of the rater's decision on it."""
        if self.item:
            self.query_one("#standing", Static).update(self._format_status_line(self.item), layout=False)

    def _format_status_line(self, item: ReviewItem) -> Content:
        """Return the status line: the conflict's state, whether the rater's decision is saved, flag, and note."""
        row = item.row
        decision = item.decision if item.decision and item.decision.resolves_conflict else None
        parts = [STATUS_SYMBOLS[row.status].with_text(STATUS_LABELS[row.status])]
        if self.n_pending_saves:
            parts.append(Content.styled("… saving", "$text-warning"))
        elif decision:
            symbol = DECISION_SYMBOLS[decision]
            parts.append(to_content(f"✓ saved: {symbol.glyph} {describe_decision(decision, row.score)}", symbol.style))
        else:
            skipped = f"{DECISION_SYMBOLS[item.decision].label}, " if row.skipped else ""
            parts.append(to_content(f"{skipped}not decided by you"))
        if self.last_saved and not self.n_pending_saves:
            parts.append(to_content(f"✓ saved, u undoes: {self.last_saved}", "$text-success"))
        if row.flagged:
            parts.append(Content.styled("⚑ flagged", "$text-error"))
        if item.needs_second_rater:
            parts.append(Content.styled("second opinion needed", "$text-accent"))
        if row.note:
            parts.append(to_content(f"✎ {to_single_line(row.note)}", "$text-accent"))
        if not item.revealed:
            hint = "v shows the hidden evidence" if decision else "the rest is hidden until you decide"
            parts.append(to_content(hint, "$text-muted"))
            if item.disclosed_elsewhere:
                parts.append(Content.styled("not blind: you have seen this cell", "$text-warning"))
        return Content.styled("  ·  ", "$text-muted").join(parts)

    # --- navigation

    def action_best(self) -> None:
        """Open the next undecided conflict of the list, other than the current one."""
        key = self.session.next_conflict_key(after=self.conflict_key)
        if key is None:
            self.notify(NOTHING_LEFT, markup=False)
        else:
            self.open_conflict(key)

    def _find_position(self) -> int | None:
        """Position of the open conflict in the queue; None if the queue does not show it."""
        try:
            return self.conflict_keys.index(self.conflict_key)
        except ValueError:
            return None

    def action_open_neighbour(self, offset: int) -> None:
        """Open the conflict `offset` places further in the queue; show a message at its end."""
        position = self._find_position()
        position = (-1 if offset > 0 else 1) + offset if position is None else position + offset
        if 0 <= position < len(self.conflict_keys):
            self.open_conflict(self.conflict_keys[position])
        else:
            self.notify("This is the end of the list.", markup=False)

    def action_history(self) -> None:
        self.app.push_screen(HistoryWindow(self.session.load_history(self.conflict_key)))

    def action_change_sample(self, offset: int) -> None:
        """Show another sample of both sides; after the last one follows the first."""
        if self.item:
            n_samples = max(len(self.item.left.samples), len(self.item.right.samples), 1)
            self.sample_index = (self.sample_index + offset) % n_samples
            self._update_panels()

    def action_differences(self) -> None:
        self.highlight_differences = not self.highlight_differences
        self._update_panels()

    @property
    def page_height(self) -> int:
        return self.query_one("#left").size.height - 1

    def action_move_by(self, lines: int) -> None:
        for widget in (*self.query(SidePanel), self.query_one("#evidence")):
            widget.scroll_relative(y=lines, animate=False)
