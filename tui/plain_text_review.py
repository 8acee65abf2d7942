"""Plain-text interface for reviews: the commands on the open conflict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from auditor.domain import Decision, RatingAction
from auditor.errors import UsageError
from auditor.reports.number_format import pluralize
from auditor.review.cell_settlement import CellDecision
from auditor.review.item import ReviewItem
from auditor.review.progress import format_left
from auditor.storage.rating_log import RatingEntry
from auditor.tui.cell_dialog import describe_following, describe_settlement
from auditor.tui.formatting import to_single_line
from auditor.tui.plain_text import describe_hidden_evidence, describe_samples
from auditor.tui.plain_text_list import PlainTextList, parse_number
from auditor.tui.wording import (
    describe_decision,
    describe_log_entry,
    describe_open_next,
    describe_undo,
    explain_missing_scores,
)


class CellPreview(NamedTuple):
    """A custom score for an item, with the decisions on other conflicts of the cell that were printed for it."""

    item: ReviewItem
    score: float
    following: Sequence[CellDecision]


class PlainTextReview(PlainTextList):
    """A review in plain text: one method per command."""

    _cell_preview: CellPreview | None = None

    def show_next(self, argument: str) -> None:
        """Open the next undecided conflict of the list, other than the open one."""
        key = self.session.next_conflict_key(after=self._item.key if self._item else None)
        if key is None:
            self.write_line("No conflict of this list is left for you to decide.")
        else:
            self.show_conflict(key)

    def show_current(self, argument: str) -> None:
        self.show_conflict(self.item.key)

    def decide(self, decision: Decision, score: float | None = None, following: Sequence[CellDecision] = ()) -> None:
        """Store a decision; then open the next conflict, or print the evidence that was hidden until now."""
        item, opens_next = self.item, self.settings.open_next
        self.session.decide(item, decision, score=score, following=following, withhold=opens_next)
        self._cell_preview = None
        self._item = self.session.load_item(item.key)
        n_following = pluralize(len(following), "other conflict")
        following_note = f", with {n_following} of the cell" if following else ""
        self.write_line(f"Saved: {describe_decision(decision, score)}{following_note}.")
        if opens_next:
            self.write_line(f"{format_left(self.session.load_progress())}.")
            self.session.prefetch_next_keys()
            self.show_next("")
        elif not item.revealed:
            self.write_lines(describe_hidden_evidence(self._item))
        self._completion_notifier.notify_if_complete(self.session)

    def run_decision(self, decision: Decision, argument: str) -> None:
        """Make a decision; one that needs a score reads it from the argument, and one that resolves nothing goes on."""
        if decision.needs_score:
            self.decide(decision, self._parse_score(argument))
        elif decision.resolves_conflict:
            self.decide(decision)
        else:
            if self.item.decision is None or not self.item.decision.resolves_conflict:
                self.session.decide(self.item, decision)
                self.write_line(f"{decision.spec.label.capitalize()}.")
            self.show_next("")

    def preview_cell(self, argument: str) -> None:
        """Print what a custom score settles in the whole cell; nothing is saved before the command `confirm`."""
        score = self._parse_score(argument)
        following = self.session.preview_cell(self.item, score)
        if not following:
            self.write_line("No other conflict of this cell can be settled. 'score' saves the score for this one.")
            return
        self._cell_preview = CellPreview(self.item, score, following)
        self.write_line(describe_settlement(self.item.key, score, len(following)))
        self.write_lines(f"{conflict}: {decision}." for conflict, decision in describe_following(following))
        self.write_line("'confirm' saves all of this. 'score' and the number save it for this conflict only.")

    def confirm_cell(self, argument: str) -> None:
        """Save what the command `cell` printed for the open conflict."""
        preview = self._cell_preview
        if preview is None or preview.item is not self.item:
            raise UsageError("there is nothing to confirm.", "Enter 'cell' and a score first, as in: cell -0.4")
        self.decide(Decision.SCORE, preview.score, preview.following)

    def _parse_score(self, argument: str) -> float:
        """Parse a score of the rater; UsageError unless it is in [-1, 1] and the sides have scores."""
        try:
            score = float(argument.replace("−", "-"))
        except ValueError:
            score = 2.0  # outside the range, so that it is refused below
        if Decision.SCORE not in self.item.possible_decisions:
            advice = explain_missing_scores(self.item)
            raise UsageError("these answers have no scores.", advice[0].upper() + advice[1:])
        if not -1 <= score <= 1:
            raise UsageError(
                f"'{to_single_line(argument)}' is not a score.", "Enter a number from -1 to 1, as in: score -0.4"
            )
        return score

    def save_note(self, argument: str) -> None:
        self.session.save_note(self.item, argument)
        self._item = self.session.load_item(self.item.key)
        self.write_line("Note saved." if argument else "Note removed.")

    def toggle_flag(self, argument: str) -> None:
        self.session.toggle_flag(self.item)
        self._item = self.session.load_item(self.item.key)
        self.write_line("Flagged." if self._item.row.flagged else "Flag removed.")

    def reveal(self, argument: str) -> None:
        """Log that the rater asks for the hidden evidence, and print it."""
        if not self.item.revealed:
            self.session.reveal(self.item)
            self._item = self.session.load_item(self.item.key)
        self.write_lines(describe_hidden_evidence(self.item))

    def undo(self, argument: str) -> None:
        self._report_undo(RatingAction.UNDO, self.session.undo())

    def redo(self, argument: str) -> None:
        self._report_undo(RatingAction.REDO, self.session.redo())

    def _report_undo(self, act: RatingAction, entry: RatingEntry | None) -> None:
        """Print what an undo or redo did, and load the conflict that it changed; None if there was nothing to do."""
        if entry:
            self._item = self.session.load_item(entry.key)
        self.write_line(describe_undo(act, entry))
        self._completion_notifier.notify_if_complete(self.session)

    def show_history(self, argument: str) -> None:
        self.write_lines(describe_log_entry(entry) for entry in self.session.load_history(self.item.key))

    def show_sample(self, argument: str) -> None:
        """Print the sample of the given number, from 1, of both sides; the next one without a number."""
        self._sample_index = parse_number(argument, 10_000) - 1 if argument else self._sample_index + 1
        self.write_lines(describe_samples(self.item, self._sample_index))

    def toggle_open_next(self, argument: str) -> None:
        """Turn automatic opening of the next conflict on or off; `on` and `off` say which."""
        self.settings.toggle_open_next(argument)
        self.write_line(describe_open_next(self.settings.open_next))
