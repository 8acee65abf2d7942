"""Screens that show one text: agreement between raters and judges, and reasons why requests failed."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from auditor.review.failure_text import describe_failure
from auditor.review.session import ReviewSession
from auditor.storage import audits
from auditor.storage.conflict_status import ConflictStatus, QueueFilter
from auditor.tui.formatting import draw_interval, fit_width, to_content, to_single_line
from auditor.tui.key_bindings import bindings_for
from auditor.tui.screen import ReviewScreen

if TYPE_CHECKING:
    from auditor.reports.data.failures import FailureGroup
    from auditor.review.summary import RatingSummary, SummaryRow, SummaryTable


MIN_TEXT_WIDTH = 40


class TextScreen(ReviewScreen):
    """A screen with one text that scrolls by keys."""

    loading_text = "Reading …"

    def compose_body(self) -> ComposeResult:
        with VerticalScroll(id="text-page", can_focus=False):
            yield Static(to_content(self.loading_text), id="text")

    @property
    def _page(self) -> Widget:
        return self.query_one("#text-page")

    @property
    def text_width(self) -> int:
        """Columns of a line."""
        return max(self._page.scrollable_content_region.width, MIN_TEXT_WIDTH)

    def show_text(self, text: Content) -> None:
        """Replace the text."""
        self.query_one("#text", Static).update(text)

    @property
    def page_height(self) -> int:
        return self._page.size.height - 1

    def action_move_by(self, lines: int) -> None:
        self._page.scroll_relative(y=lines, animate=False)


MAX_NAME_WIDTH = 26
REFRESH_INTERVAL_S = 5.0
"""Time between checks whether a rater has decided anything."""
PLOT_LEGEND = "● value  ━ 95% confidence interval  ·  agreement: 0 to 100%  ·  kappa: −1 to +1, ┼ is 0"


class AgreementScreen(TextScreen):
    """Agreement between raters, and between judges and people."""

    screen_name = "people"
    loading_text = "Reading the ratings …"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("people")

    def __init__(self, session: ReviewSession) -> None:
        super().__init__()
        self.session = session
        self.summary: RatingSummary | None = None
        self._last_rating_id: int | None = None

    def on_mount(self) -> None:
        self._load_tables()
        self.set_interval(REFRESH_INTERVAL_S, self._check_for_changes)

    def _load_tables(self) -> None:
        """Load the summary in a thread, and show it when it is there."""

        def show(summary: RatingSummary) -> None:
            self.summary = summary
            self._update_tables()

        self.submit_read("summary", self._load_summary, show)

    def _check_for_changes(self) -> None:
        """Load the summary again if any rater has added to the rating log since the last check."""

        def reload(rating_id: int | None) -> None:
            if rating_id != self._last_rating_id:
                self._load_tables()

        if self.is_current:
            self.submit_read("changes", self.session.load_last_rating_id, reload)

    def _load_summary(self) -> RatingSummary:
        """Load the audit's ratings and verdicts, and compute the tables; runs in a thread."""
        from auditor.review.summary import summarize_ratings  # loads scipy, which would delay the first screen

        self._last_rating_id = self.session.load_last_rating_id()
        return summarize_ratings(self.session.db, self.session.audit)

    def refresh_title_bar(self) -> None:
        self.set_title_bar(self.session.audit.name, "agreement")
        self._update_tables()

    def _update_tables(self) -> None:
        """Render the tables at the width of the screen; nothing until they are loaded."""
        if self.summary is not None:
            parts = [
                Content.styled(PLOT_LEGEND, "$text-muted"),
                *(render_table(table, self.text_width) for table in self.summary.tables),
            ]
            self.show_text(Content("\n\n").join(parts))

    def action_contested(self) -> None:
        self.review_app.open_queue(self.session.audit.name, QueueFilter(states=(ConflictStatus.DISPUTED,)))


def render_table(table: SummaryTable, width: int) -> Content:
    """Render a table of the summary: its title, its note, and a line for each row."""
    lines = [to_content(table.title, "bold $text-accent"), to_content(table.note, "$text-muted")]
    name_width = min(MAX_NAME_WIDTH, width // 3)
    lines += [_render_row(row, name_width, width) for row in table.rows]
    return Content("\n").join(lines)


def _render_row(row: SummaryRow, name_width: int, width: int) -> Content:
    """Render one line: name, plot of the value with its interval, and text; without a value, name and text."""
    name_column = Content.styled(fit_width(row.name, name_width) + " ", "bold")
    if row.value is None:
        line_break = "\n  " if len(row.text) > width - name_width - 1 else ""
        return Content.assemble(name_column, line_break, to_content(to_single_line(row.text), "$text-muted"))
    # The plot has 9 to 41 columns; 44 are kept for the text after it.
    plot = draw_interval(
        min(max(width - name_width - 44, 9), 41), row.value, row.low, row.high, scale_min=row.scale_min
    )
    return Content.assemble(name_column, (plot, "$text-primary"), " ", to_content(to_single_line(row.text)))


NO_FAILURES_TEXT = "No request failed."
LEGEND = "Most calls without a usable answer first; also requests that succeeded when they were sent again."


class ErrorsScreen(TextScreen):
    """Failed requests by model, HTTP status and message."""

    screen_name = "errors"
    loading_text = "Reading the failed requests …"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("errors")

    def __init__(self, audit_name: str) -> None:
        super().__init__()
        self.audit_name = audit_name

    def on_mount(self) -> None:
        """Load the failures in a thread, and show them when they are there."""
        self.submit_read("errors", self._load_failures, self._show_failures)

    def _load_failures(self) -> list[FailureGroup]:
        """Load and group the failures; runs in a thread."""
        from auditor.reports.data.failures import load_failure_groups  # loads pydantic models of the report

        db = self.review_app.db
        return load_failure_groups(db, audits.get_audit(db, self.audit_name).id)

    def _show_failures(self, failures: list[FailureGroup]) -> None:
        parts = [Content.styled(LEGEND, "$text-muted"), *map(render_failure, failures)]
        self.show_text(Content("\n\n").join(parts) if failures else Content(NO_FAILURES_TEXT))

    def refresh_title_bar(self) -> None:
        self.set_title_bar(self.audit_name, "errors")


def render_failure(failure: FailureGroup) -> Content:
    """Render failures of one kind in lines: model, status and counts; the message; purposes and times; the fix."""
    heading, message, *details = map(to_single_line, describe_failure(failure, full=True))
    style = "bold $text-error" if failure.unusable else "bold"
    return Content("\n").join(
        [to_content(heading, style), to_content(message), *(to_content(line, "$text-muted") for line in details)]
    )
