"""A review in plain text: what is open, and a method for each command."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from auditor.domain import Decision, RatingAction
from auditor.errors import UsageError
from auditor.review.completion import CompletionNotifier
from auditor.review.filters import format_filter, parse_filter, with_next_sort
from auditor.review.item import ReviewItem
from auditor.review.session import ReviewSession
from auditor.storage.conflict_status import ConflictKey, QueueFilter, QueueSort
from auditor.storage.database import Database
from auditor.storage.overview import load_overviews
from auditor.storage.rating_log import RatingEntry
from auditor.tui.formatting import to_single_line
from auditor.tui.plain_text import (
    describe_audit,
    describe_hidden_evidence,
    describe_item,
    describe_queue_row,
    describe_samples,
)
from auditor.tui.settings import ReviewSettings
from auditor.tui.wording import describe_decision, describe_log_entry, describe_undo, explain_missing_scores

ROWS_PER_PAGE = 20


class PlainTextReview:
    """A review in plain text: the open audit and conflict, and one method per command of `plain_text_commands`.

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
        self._create_session = create_session
        self.write_line = write_line
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
        """Open an audit and print the number of its conflicts by status."""
        if audit_name not in self.sessions:
            self.sessions[audit_name] = self._create_session(audit_name)
        self._session, self._item, self._queue_filter = self.sessions[audit_name], None, QueueFilter()
        self._load_conflict_keys()
        self.write_line(
            f"Audit {to_single_line(audit_name)}: {self._format_status_counts()}. 'next' shows the one that teaches "
            "most, 'list' lists them."
        )

    @property
    def session(self) -> ReviewSession:
        """The session of the open audit; UsageError if none is open."""
        if self._session is None:
            raise UsageError("no audit is open.", "Say 'audits', then 'open' and its number.")
        return self._session

    @property
    def item(self) -> ReviewItem:
        """The open conflict; UsageError if none is open."""
        if self._item is None:
            raise UsageError("no conflict is open.", "Say 'next', or 'open' and its number in the list.")
        return self._item

    def _load_conflict_keys(self) -> None:
        self._conflict_keys, self._n_listed = self.session.conflict_keys(self._queue_filter), 0

    def _format_status_counts(self) -> str:
        return ", ".join(f"{n} {status}" for status, n in self.session.count_by_status().items() if n) or "no conflicts"

    def show_conflict(self, key: ConflictKey) -> None:
        """Open a conflict and print it."""
        self._item, self._sample_index = self.session.load_item(key), 0
        self.write_lines(describe_item(self._item))

    def write_lines(self, lines: Iterable[str]) -> None:
        """Print several lines."""
        for text in lines:
            self.write_line(text)

    # --- commands

    def list_audits(self, argument: str) -> None:
        """Close the open audit, and list all audits with a number."""
        overviews = load_overviews(self.db)
        self._audit_names, self._session, self._item = [overview.audit.name for overview in overviews], None, None
        self.write_lines(describe_audit(number, overview) for number, overview in enumerate(overviews, 1))
        if not overviews:
            self.write_line("No audit here yet. `auditor run CONFIG` makes one.")

    def open_selection(self, argument: str) -> None:
        """Open an audit by number or name, or, within an audit, a conflict by its number in the list."""
        if self._session is None:
            names = self._audit_names or [overview.audit.name for overview in load_overviews(self.db)]
            number = _parse_number(argument, len(names)) if argument not in names else names.index(argument) + 1
            self.open_audit(names[number - 1])
        else:
            self.show_conflict(self._conflict_keys[_parse_number(argument, len(self._conflict_keys)) - 1])

    def list_conflicts(self, argument: str) -> None:
        """Close the open conflict, and print the next page of the queue with the number of conflicts left."""
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
            f"{n_remaining} more; 'list' goes on."
            if n_remaining
            else f"{len(self._conflict_keys)} in all: {self._format_status_counts()}."
        )

    def show_next(self, argument: str) -> None:
        """Show the undecided conflict that teaches most, other than the open one."""
        key = self.session.next_conflict_key(after=self._item.key if self._item else None)
        if key is None:
            self.write_line("Nothing is left for you to decide.")
        else:
            self.show_conflict(key)

    def show_current(self, argument: str) -> None:
        self.show_conflict(self.item.key)

    def apply_filter(self, argument: str) -> None:
        """Restrict the queue to a filter; an empty argument shows all conflicts."""
        self._queue_filter = parse_filter(argument)
        self._load_conflict_keys()
        self.write_line(f"{len(self._conflict_keys)} conflicts pass.")

    def change_sort(self, argument: str) -> None:
        """Sort the queue by the named order, or by the next one if none is named."""
        if argument:
            sort_filter = parse_filter(f"sort:{argument}")
            self._queue_filter = replace(self._queue_filter, sort=sort_filter.sort, reverse=sort_filter.reverse)
        else:
            self._queue_filter = with_next_sort(self._queue_filter)
        self._load_conflict_keys()
        self.write_line(f"In order of {self._queue_filter.sort}. Orders: {', '.join(QueueSort)}.")

    def reverse_sort(self, argument: str) -> None:
        self._queue_filter = replace(self._queue_filter, reverse=not self._queue_filter.reverse)
        self._load_conflict_keys()
        self.write_line("Reversed." if self._queue_filter.reverse else "Not reversed.")

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
            self.write_line("No filter is saved. 'filters save NAME' saves the present one.")
        return None

    def decide(self, decision: Decision, score: float | None = None) -> None:
        """Store a decision on the open conflict, and print the evidence that was hidden until now."""
        self.session.decide(self.item, decision, score=score)
        revealed = self.item.revealed
        self._item = self.session.load_item(self.item.key)
        self.write_line(f"Saved: {describe_decision(decision, score)}.")
        if not revealed:
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

    def _parse_score(self, argument: str) -> float:
        """Parse a score of the rater; UsageError unless it is in [-1, 1] and the sides have scores."""
        try:
            score = float(argument.replace("−", "-"))
        except ValueError:
            score = 2.0  # outside the range, so that it is refused below
        if self.item.left.score is None:
            advice = explain_missing_scores(self.item)
            raise UsageError("these answers are no scores.", advice[0].upper() + advice[1:])
        if not -1 <= score <= 1:
            raise UsageError(
                f"'{to_single_line(argument)}' is not a score.", "Give a number from -1 to 1, as in: score -0.4"
            )
        return score

    def save_note(self, argument: str) -> None:
        self.session.save_note(self.item, argument)
        self._item = self.session.load_item(self.item.key)
        self.write_line("Note saved." if argument else "Note taken off.")

    def toggle_flag(self, argument: str) -> None:
        self.session.toggle_flag(self.item)
        self._item = self.session.load_item(self.item.key)
        self.write_line("Flagged." if self._item.row.flagged else "Flag taken off.")

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
        self._sample_index = _parse_number(argument, 10_000) - 1 if argument else self._sample_index + 1
        self.write_lines(describe_samples(self.item, self._sample_index))

    def show_agreement(self, argument: str) -> None:
        """Print the agreement of raters and judges as tables."""
        from auditor.review.summary import summarize_ratings  # loads scipy: slow

        for table in summarize_ratings(self.db, self.session.audit).tables:
            self.write_line(f"{table.title}. {table.note}")
            self.write_lines(f"  {to_single_line(row.name)}: {to_single_line(row.text)}." for row in table.rows)

    def show_errors(self, argument: str) -> None:
        """Print why requests failed, by model, HTTP status and message."""
        from auditor.reports.data.failures.build import load_failure_groups
        from auditor.review.failure_text import describe_failure

        failures = load_failure_groups(self.db, self.session.audit.id)
        self.write_lines(to_single_line(line) for failure in failures for line in describe_failure(failure))
        if not failures:
            self.write_line("No request failed.")


def _parse_number(text: str, maximum: int) -> int:
    """Parse a position from 1 to `maximum`; raise UsageError for any other text."""
    if not text.isdecimal() or not 1 <= int(text) <= maximum:
        raise UsageError(f"'{to_single_line(text)}' is not a number of the list.", f"It goes from 1 to {maximum}.")
    return int(text)
