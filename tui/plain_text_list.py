"""Plain-text interface for reviews: the commands on audits, the list of conflicts, filters and agreement."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from auditor.errors import UsageError
from auditor.review.completion import CompletionNotifier
from auditor.review.filters import format_filter, parse_filter, with_next_sort
from auditor.review.item import ReviewItem
from auditor.review.progress import format_progress
from auditor.review.session import ReviewSession
from auditor.storage.conflict_status import ConflictKey, QueueFilter, QueueSort
from auditor.storage.database import Database
from auditor.storage.overview import load_overviews
from auditor.tui.formatting import STATUS_LABELS, to_single_line
from auditor.tui.plain_text import describe_audit, describe_item, describe_queue_row
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
        self.write_line(f"{len(self._conflict_keys)} conflicts match.")

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
        from auditor.reports.data.failures.build import load_failure_groups
        from auditor.review.failure_text import describe_failure

        failures = load_failure_groups(self.db, self.session.audit.id)
        self.write_lines(to_single_line(line) for failure in failures for line in describe_failure(failure))
        if not failures:
            self.write_line("No request failed.")


def parse_number(text: str, maximum: int) -> int:
    """Parse a position from 1 to `maximum`; raise UsageError for any other text."""
    if not text.isdecimal() or not 1 <= int(text) <= maximum:
        raise UsageError(
            f"'{to_single_line(text)}' is not a number of the list.", f"Enter a number from 1 to {maximum}."
        )
    return int(text)
