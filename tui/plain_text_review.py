"""Plain-text interface for reviews: the commands on audits, on the list of conflicts, and on the open conflict."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from auditor.domain import Decision, RatingAction
from auditor.errors import UsageError
from auditor.reports.data.failures import load_failure_groups
from auditor.reports.number_format import pluralize
from auditor.review.conflict_list import format_filter, format_left, format_progress, parse_filter, with_next_sort
from auditor.review.failure_text import describe_failure
from auditor.review.item import ReviewItem
from auditor.review.session import CellDecision, CompletionNotifier, ReviewSession
from auditor.storage.conflict_status import ConflictKey, QueueFilter, QueueSort
from auditor.storage.database import Database
from auditor.storage.overview import load_overviews
from auditor.storage.rating_log import RatingEntry
from auditor.tui.dialogs import describe_following, describe_settlement
from auditor.tui.formatting import (
    STATUS_LABELS,
    describe_log_entry,
    describe_open_next,
    describe_undo,
    explain_missing_scores,
    format_cell,
    parse_score,
    to_single_line,
)
from auditor.tui.plain_text import (
    describe_audit,
    describe_hidden_evidence,
    describe_item,
    describe_queue_row,
    describe_samples,
    describe_spoken_decision,
    require_alone,
)
from auditor.tui.settings import ReviewSettings

ROWS_PER_PAGE = 20


class PlainTextList:
    """The open audit and the list of its conflicts, and one method per command on them.

    Args:
        create_session: creates the session of an audit, given by name.
        write_line: prints one line.
    """

    def __init__(
        self,
        db: Database,
        create_session: Callable[[str], ReviewSession],
        settings: ReviewSettings,
        write_line: Callable[[str], None],
        completion_notifier: CompletionNotifier,
    ) -> None:
        self.db = db
        self.settings = settings
        self.sessions: dict[str, ReviewSession] = {}
        self.write_line = write_line
        self._create_session = create_session
        self._completion_notifier = completion_notifier
        self._audit_names: list[str] = []
        self._session: ReviewSession | None = None
        self._queue_filter = QueueFilter()
        self._conflict_keys: list[ConflictKey] = []
        self._n_listed = 0
        self._item: ReviewItem | None = None
        self._sample_index = 0

    # --- open audit and conflict

    def open_audit(self, audit_name: str) -> None:
        """Open an audit; print the number of its conflicts by status, and what is left to do."""
        if audit_name not in self.sessions:
            self.sessions[audit_name] = self._create_session(audit_name)
        self._session, self._item = self.sessions[audit_name], None
        self._set_filter(QueueFilter())
        self.write_line(f"Audit {to_single_line(audit_name)}: {self._format_status_counts()}.")
        self.show_progress("")
        self.write_line("'next' opens the first conflict to decide, 'list' lists the conflicts.")

    @property
    def session(self) -> ReviewSession:
        """The session of the open audit; UsageError if none is open."""
        if self._session is None:
            raise UsageError("no audit is open.", "Enter 'audits', then 'open' and its number.")
        return self._session

    @property
    def item(self) -> ReviewItem:
        """The open conflict; UsageError if none is open."""
        if self._item is None:
            raise UsageError("no conflict is open.", "Enter 'next', or 'open' and its number in the list.")
        return self._item

    def _set_filter(self, queue_filter: QueueFilter) -> None:
        """Show the conflicts that match a filter, and go through them in its order."""
        self._queue_filter = self.session.queue_filter = queue_filter
        self._load_conflict_keys()

    def _load_conflict_keys(self) -> None:
        self._conflict_keys, self._n_listed = self.session.conflict_keys(self._queue_filter), 0

    def _format_status_counts(self) -> str:
        counts = self.session.count_by_status()
        return ", ".join(f"{n} {STATUS_LABELS[status]}" for status, n in counts.items() if n) or "no conflicts"

    def show_conflict(self, key: ConflictKey) -> None:
        """Open a conflict and print it."""
        self._item, self._sample_index = self.session.load_item(key), 0
        self.write_lines(describe_item(self._item))

    def write_lines(self, lines: Iterable[str]) -> None:
        """Print some lines."""
        for text in lines:
            self.write_line(text)

    # --- commands

    def list_audits(self, argument: str) -> None:
        """Close the open audit, and list all audits with a number."""
        overviews = load_overviews(self.db)
        self._audit_names, self._session, self._item = [overview.audit.name for overview in overviews], None, None
        self.write_lines(describe_audit(number, overview) for number, overview in enumerate(overviews, 1))
        if not overviews:
            self.write_line("This database has no audit. `auditor run CONFIG` starts one.")

    def open_selection(self, argument: str) -> None:
        """Open an audit by number or name, or, within an audit, a conflict by its number in the list."""
        if self._session is None:
            names = self._audit_names or [overview.audit.name for overview in load_overviews(self.db)]
            number = parse_number(argument, len(names)) if argument not in names else names.index(argument) + 1
            self.open_audit(names[number - 1])
        else:
            self.show_conflict(self._conflict_keys[parse_number(argument, len(self._conflict_keys)) - 1])

    def list_conflicts(self, argument: str) -> None:
        """Close the open conflict, and print the next page of the list with the number of conflicts left."""
        if self._item is not None or not argument:
            self._item = None
            if self._n_listed >= len(self._conflict_keys) or not self._n_listed:
                self._load_conflict_keys()
        rows = self.session.load_queue_rows(self._conflict_keys[self._n_listed : self._n_listed + ROWS_PER_PAGE])
        position_by_key = {key: position for position, key in enumerate(self._conflict_keys, 1)}
        self.write_lines(describe_queue_row(position_by_key[row.key], row) for row in rows)
        self._n_listed += len(rows)
        n_remaining = len(self._conflict_keys) - self._n_listed
        self.write_line(
            f"{n_remaining} more. 'list' shows the next page."
            if n_remaining
            else f"{len(self._conflict_keys)} in total: {self._format_status_counts()}."
        )

    def show_progress(self, argument: str) -> None:
        """Print how many conflicts there are, how many are done and left, the rater's pace, and the time to go."""
        self.write_line(f"To do: {format_progress(self.session.load_progress()).replace(' · ', ', ')}.")

    def apply_filter(self, argument: str) -> None:
        """Restrict the list to a filter; an empty argument shows all conflicts."""
        self._set_filter(parse_filter(argument))
        self.write_line(f"{pluralize(len(self._conflict_keys), 'conflict matches', 'conflicts match')}.")

    def change_sort(self, argument: str) -> None:
        """Sort the list by the named order, or by the next one if none is named."""
        if argument:
            sort_filter = parse_filter(f"sort:{argument}")
            self._set_filter(replace(self._queue_filter, sort=sort_filter.sort, reverse=sort_filter.reverse))
        else:
            self._set_filter(with_next_sort(self._queue_filter))
        self.write_line(f"Sorted by {self._queue_filter.sort}. Possible orders: {', '.join(QueueSort)}.")

    def reverse_sort(self, argument: str) -> None:
        self._set_filter(replace(self._queue_filter, reverse=not self._queue_filter.reverse))
        self.write_line("Order reversed." if self._queue_filter.reverse else "Order no longer reversed.")

    def manage_filters(self, argument: str) -> None:
        """List the saved filters, apply the one named by the argument, or `save NAME` or `delete NAME`."""
        verb, _, name = argument.partition(" ")
        if verb == "save" and name:
            self.settings.save_filter(name, format_filter(self._queue_filter))
        elif verb == "delete" and name:
            self.settings.delete_filter(name)
        elif argument:
            if argument not in self.settings.filters:
                raise UsageError(f"there is no filter '{to_single_line(argument)}'.", "'filters' lists them.")
            return self.apply_filter(self.settings.filters[argument])
        self.write_lines(
            f"{to_single_line(name)}: {to_single_line(text)}" for name, text in self.settings.filters.items()
        )
        if not self.settings.filters:
            self.write_line("No filter is saved. 'filters save NAME' saves the current one.")
        return None

    def show_agreement(self, argument: str) -> None:
        """Print the agreement of raters and judges as tables."""
        from auditor.review.summary import summarize_ratings  # loads scipy: slow

        for table in summarize_ratings(self.db, self.session.audit).tables:
            self.write_line(f"{table.title}. {table.note}")
            self.write_lines(f"  {to_single_line(row.name)}: {to_single_line(row.text)}." for row in table.rows)

    def show_errors(self, argument: str) -> None:
        """Print why requests failed, by model, HTTP status and message."""
        failures = load_failure_groups(self.db, self.session.audit.id)
        self.write_lines(to_single_line(line) for failure in failures for line in describe_failure(failure))
        if not failures:
            self.write_line("No request failed.")


def parse_number(text: str, maximum: int) -> int:
    """Parse a position from 1 to `maximum`; raise UsageError for any other text."""
    if not text.isdecimal() or len(text) > len(str(maximum)) or not 1 <= int(text) <= maximum:
        how_to_fix = f"Enter a number from 1 to {maximum}." if maximum else "The list is empty."
        raise UsageError(f"'{to_single_line(text)}' is not a number of the list.", how_to_fix)
    return int(text)


class CellPreview(NamedTuple):
    """A custom score for an item, with the decisions on other conflicts of the cell that were printed for it."""

    item: ReviewItem
    score: float
    following: Sequence[CellDecision]


class PlainTextReview(PlainTextList):
    """A review in plain text: one method per command."""

    _cell_preview: CellPreview | None = None
    _opened_by_itself: ConflictKey | None = None
    """The conflict that a decision opened; the first `next` after it stays there."""

    def show_next(self, argument: str) -> None:
        """Open the next undecided conflict of the list; one that a decision opened just now stays open."""
        opened, self._opened_by_itself = self._opened_by_itself, None
        if self._item is not None and self._item.key == opened:
            cell = format_cell(opened.country, opened.topic)
            self.write_line(f"Your decision opened the next conflict: {cell}. Decide it, or enter 'next' to skip it.")
            return
        self._open_next()

    def _open_next(self) -> None:
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
        self.write_line(f"Saved: {describe_spoken_decision(decision, score)}{following_note}.")
        if opens_next:
            self.write_line(f"{format_left(self.session.load_progress())}.")
            self.session.prefetch_next_keys()
            self._open_next()
            self._opened_by_itself = self._item.key if self._item.key != item.key else None
        elif not item.revealed:
            self.write_lines(describe_hidden_evidence(self._item))
        self._completion_notifier.notify_if_complete(self.session)

    def run_decision(self, decision: Decision, argument: str) -> None:
        """Make a decision; one that needs a score reads it from the argument, and one that resolves nothing goes on."""
        if decision.needs_score:
            self.decide(decision, self._parse_score(argument))
            return
        require_alone(decision.value, argument)
        if decision.resolves_conflict:
            self.decide(decision)
        else:
            if self.item.decision is None or not self.item.decision.resolves_conflict:
                self.session.decide(self.item, decision)
                self.write_line(f"{decision.spec.label.capitalize()}.")
            self._open_next()

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
        require_alone("confirm", argument)
        preview = self._cell_preview
        if preview is None or preview.item is not self.item:
            raise UsageError("there is nothing to confirm.", "Enter 'cell' and a score first, as in: cell -0.4")
        self.decide(Decision.SCORE, preview.score, preview.following)

    def _parse_score(self, argument: str) -> float:
        """Parse a score of the rater; UsageError unless it is in [-1, 1] and the sides have scores."""
        score = parse_score(argument)
        if Decision.SCORE not in self.item.possible_decisions:
            advice = explain_missing_scores(self.item)
            raise UsageError("these answers have no scores.", advice[0].upper() + advice[1:])
        if score is None:
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
        require_alone("undo", argument)
        self._report_undo(RatingAction.UNDO, self.session.undo())

    def redo(self, argument: str) -> None:
        require_alone("redo", argument)
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
