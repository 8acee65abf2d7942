"""Queue screen: the conflicts of an audit, with filter, sort order and preview; rows are fetched when visible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar, NamedTuple

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.events import Click
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.timer import Timer
from textual.widgets import Static

from auditor.domain import ConflictKind, RatingAction
from auditor.errors import AuditorError, UsageError, format_count
from auditor.review.conflict_list import (
    format_filter,
    format_progress,
    matches_everything,
    parse_filter,
    with_next_sort,
)
from auditor.review.session import ReviewSession
from auditor.storage.conflict_status import ConflictKey, ConflictStatus, QueueFilter, QueueRow, QueueSort
from auditor.storage.rating_log import RatingEntry
from auditor.tui.conflict import ConflictScreen
from auditor.tui.dialogs import FilterDialog, TextDialog
from auditor.tui.formatting import (
    DECISION_SYMBOLS,
    STATUS_LABELS,
    STATUS_SYMBOLS,
    describe_undo,
    draw_score_axis,
    fit_width,
    format_answer,
    format_score,
    to_content,
    to_single_line,
)
from auditor.tui.key_bindings import bindings_for
from auditor.tui.panels import render_preview
from auditor.tui.rating_screen import NOTHING_LEFT
from auditor.tui.screen import ReviewScreen

ROWS_PER_FETCH = 64
"""Rows fetched at once."""
MAX_CACHED_PAGES = 16
MARKER_WIDTH, STATUS_WIDTH, GAP_WIDTH, RATING_WIDTH = 2, 12, 6, 10
KIND_WIDTH = max(len(kind.label) for kind in ConflictKind) + 1
LEFT_GLYPH, RIGHT_GLYPH = "●", "◇"

FetchRows = Callable[[Sequence[ConflictKey]], list[QueueRow]]


class ColumnWidths(NamedTuple):
    """Widths in characters of the columns that adapt to the width of the table."""

    country: int
    topic: int
    axis: int


def compute_column_widths(width: int) -> ColumnWidths:
    """Divide the width that the fixed columns leave; the score axis has a marked middle, so its width is odd."""
    flexible_width = max(width - MARKER_WIDTH - STATUS_WIDTH - KIND_WIDTH - GAP_WIDTH - RATING_WIDTH, 24)
    axis = min(max(flexible_width // 3, 9), 41) // 2 * 2 - 1
    country = min((flexible_width - axis - 3) * 9 // 20, 24)
    return ColumnWidths(country, flexible_width - axis - country - 3, axis)


def format_header(width: int, *, is_task_audit: bool = False) -> str:
    """Format the header of the table; for a task, with one column for its items and without the axis of scores."""
    widths = compute_column_widths(width)
    axis_labels = "−1" + "0".center(widths.axis - 4) + "+1" if widths.axis >= 9 else " " * widths.axis
    cell_columns = (
        fit_width("item", widths.country + widths.topic + 1)
        if is_task_audit
        else f"{fit_width('country', widths.country)} {fit_width('topic', widths.topic)}"
    )
    columns = [
        " " * MARKER_WIDTH, fit_width("state", STATUS_WIDTH), fit_width("kind", KIND_WIDTH), cell_columns,
        " ", fit_width("answers", widths.axis) if is_task_audit else axis_labels, " ", fit_width("  gap", GAP_WIDTH),
        fit_width("yours", RATING_WIDTH),
    ]  # fmt: skip
    return "".join(columns)


class QueueTable(ScrollView):
    """A scrollable table of conflicts, one per row, with a cursor."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "queue--open",
        "queue--disputed",
        "queue--majority",
        "queue--person",
        "queue--muted",
        "queue--mine",
        "queue--axis",
        "queue--cursor",
    }
    can_focus = False
    cursor: reactive[int] = reactive(0)

    class CursorMoved(Message):
        """The cursor moved to another row, or other conflicts are shown, so that another may be under it."""

    class RowOpened(Message):
        """The row under the cursor was double-clicked."""

    def __init__(self, fetch_rows: FetchRows, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._fetch_rows = fetch_rows
        self._conflict_keys: list[ConflictKey] = []
        self._cached_pages: dict[int, dict[ConflictKey, QueueRow]] = {}

    @property
    def conflict_keys(self) -> list[ConflictKey]:
        """All conflicts of the table, in order."""
        return self._conflict_keys

    @property
    def cursor_key(self) -> ConflictKey | None:
        """The conflict under the cursor."""
        return self._conflict_keys[self.cursor] if self._conflict_keys else None

    def show_conflicts(self, conflict_keys: list[ConflictKey], cursor_key: ConflictKey | None = None) -> None:
        """Show other conflicts, with the cursor on `cursor_key`, or on the first row if that is not among them."""
        self._conflict_keys = conflict_keys
        self._cached_pages.clear()
        self.virtual_size = Size(self.size.width, len(conflict_keys))
        self.cursor = conflict_keys.index(cursor_key) if cursor_key in conflict_keys else 0
        self._scroll_to_row()
        self.refresh()
        self.post_message(self.CursorMoved())

    def complete_conflicts(self, conflict_keys: Sequence[ConflictKey]) -> None:
        """Show all conflicts, of which the first ones are shown; a screen that was opened on these gets them too."""
        self._conflict_keys[:] = conflict_keys
        self.virtual_size = Size(self.size.width, len(conflict_keys))
        self.refresh()

    def invalidate_rows(self) -> None:
        """Discard the cached rows, so that changed ones are fetched again."""
        self._cached_pages.clear()
        self.refresh()

    def move_cursor(self, offset: int) -> None:
        """Move the cursor by `offset` rows, at most to the first or last."""
        self.cursor = max(0, min(len(self._conflict_keys) - 1, self.cursor + offset))

    @property
    def page_height(self) -> int:
        """Number of visible rows less one, which stays in view after paging."""
        return max(self.scrollable_content_region.height - 1, 1)

    def watch_cursor(self) -> None:
        self._scroll_to_row()
        self.refresh()
        self.post_message(self.CursorMoved())

    def on_resize(self) -> None:
        self.virtual_size = Size(self.size.width, len(self._conflict_keys))
        self._scroll_to_row()

    def on_click(self, event: Click) -> None:
        """Move the cursor to the clicked row; a double click on the row of the cursor opens it."""
        index = event.y + self.scroll_offset.y
        if index >= len(self._conflict_keys):
            return
        if index == self.cursor and event.chain > 1:
            self.post_message(self.RowOpened())
        self.cursor = index

    def render_line(self, y: int) -> Strip:
        """Render line `y` of the visible part; blank if there is no row."""
        index = y + self.scroll_offset.y
        width = self.scrollable_content_region.width
        row = self._load_row(index)
        if row is None:
            return Strip.blank(width, self.rich_style)
        is_cursor = index == self.cursor
        base_style = self.get_component_rich_style("queue--cursor") if is_cursor else self.rich_style
        segments = [
            Segment(text, base_style + self._cell_style(style_name, is_cursor))
            for text, style_name in format_cells(row, width, is_cursor=is_cursor)
        ]
        return Strip(segments).adjust_cell_length(width, base_style)

    def _cell_style(self, name: str, is_cursor: bool) -> Style:
        """Return the colour of a style name, bold in the row of the cursor; no style for an empty name."""
        if not name:
            return Style.null()
        style = self.get_component_rich_style(f"queue--{name}", partial=True)
        return Style(color=style.color, bold=style.bold or is_cursor)

    def _load_row(self, index: int) -> QueueRow | None:
        """Return the row at a position, from the cache or fetched with its page; None if there is none."""
        if not 0 <= index < len(self._conflict_keys):
            return None
        page_number = index // ROWS_PER_FETCH
        if page_number not in self._cached_pages:
            if len(self._cached_pages) >= MAX_CACHED_PAGES:
                self._cached_pages.pop(next(iter(self._cached_pages)))
            keys = self._conflict_keys[page_number * ROWS_PER_FETCH : (page_number + 1) * ROWS_PER_FETCH]
            self._cached_pages[page_number] = {row.key: row for row in self._fetch_rows(keys)}
        return self._cached_pages[page_number].get(self._conflict_keys[index])

    def _scroll_to_row(self) -> None:
        if self.size.height:
            self.scroll_to_region(Region(0, self.cursor, 1, 1), animate=False, force=True)


def format_cells(row: QueueRow, width: int, *, is_cursor: bool) -> list[tuple[str, str]]:
    """Format one row as pieces of text, each with the name of its style (`queue--NAME`)."""
    widths = compute_column_widths(width)
    symbol = STATUS_SYMBOLS[row.status]
    gap = row.gap
    if row.answer_left is None and row.score_left is not None and row.score_right is not None:
        answers_text = draw_score_axis(widths.axis, [(row.score_left, LEFT_GLYPH), (row.score_right, RIGHT_GLYPH)])
    else:
        answers = (format_answer(row.score_left, row.answer_left), format_answer(row.score_right, row.answer_right))
        answers_text = fit_width(" / ".join(answers), widths.axis)
    country, topic = row.key.country, row.key.topic
    cell_columns = (
        f"{fit_width(country, widths.country)} {fit_width(topic, widths.topic)}"
        if country
        else fit_width(topic, widths.country + widths.topic + 1)
    )
    return [
        ("▌ " if is_cursor else "  ", "axis"),
        (fit_width(f"{symbol.glyph} {symbol.label}", STATUS_WIDTH), str(row.status)),
        (fit_width(row.kind.label, KIND_WIDTH), "muted"),
        (cell_columns + " ", ""),
        (answers_text + " ", "axis"),
        (fit_width("" if gap is None else f" {gap:.2f}", GAP_WIDTH), "muted"),
        (
            fit_width(format_rating(row), RATING_WIDTH),
            "mine" if row.decision and row.decision.resolves_conflict else "muted",
        ),
    ]


def format_rating(row: QueueRow) -> str:
    """Format the rater's decision, with symbols for a flag and a note."""
    has_chosen = row.skipped or (row.decision is not None and row.decision.resolves_conflict)
    symbol = DECISION_SYMBOLS[row.decision if has_chosen else None]
    label = (
        format_score(row.score) if row.decision and row.decision.needs_score and row.score is not None else symbol.label
    )
    marks = ("⚑" if row.flagged else "") + ("✎" if row.note else "")
    rating_text = f"{symbol.glyph} {label}".rstrip()
    return fit_width(rating_text, RATING_WIDTH - cell_len(marks) - 1) + marks if marks else rating_text


SORT_LABELS = {
    QueueSort.INFORMATIVENESS: "information",
    QueueSort.EFFECT: "effect on the conclusions",
    QueueSort.GAP: "gap",
    QueueSort.COUNTRY: "country",
    QueueSort.TOPIC: "topic",
    QueueSort.KIND: "kind",
    QueueSort.STATE: "state",
}

FILTER_HINT = "kind: state:open country: topic: model: rater: gap:>0.5 is:todo sort:gap"
PREVIEW_DELAY_S = 0.08
LOADING_TEXT = "Reading the conflicts …"
NO_CONFLICTS_TEXT = "This audit has no conflicts."
NO_MATCH_TEXT = "No conflict matches this filter. Press x to clear it."
FIRST_CONFLICTS = 500
"""Conflicts that are shown before the whole list is loaded, so that a reviewer can begin."""
REFRESH_INTERVAL_S = 2.0
"""Time between checks whether another rater has changed a conflict."""


class QueueScreen(ReviewScreen):
    """Screen with the conflicts of one audit as one rater may see them."""

    screen_name = "queue"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("queue")

    def __init__(self, session: ReviewSession, queue_filter: QueueFilter | None = None) -> None:
        super().__init__()
        self.session = session
        self.queue_filter = queue_filter or QueueFilter()
        self.session.queue_filter = self.queue_filter
        self.status_counts: dict[ConflictStatus, int] | None = None
        self._last_rating_id: int | None = None
        self._preview_timer: Timer | None = None
        self._is_list_complete = True
        self._is_loading = True

    def compose_body(self) -> ComposeResult:
        yield Static(id="queue-head")
        with Horizontal(id="queue-body"):
            with Vertical(id="queue-list"):
                yield Static(id="queue-columns")
                yield QueueTable(self.session.load_queue_rows, id="queue")
                yield Static(id="queue-empty")
            with VerticalScroll(id="preview", can_focus=False) as panel:
                panel.border_title = Content("Selected conflict")
                yield Static(id="preview-text")

    @property
    def queue_table(self) -> QueueTable:
        return self.query_one("#queue", QueueTable)

    def on_mount(self) -> None:
        self.load_conflicts()
        self.submit_read("warm-up", self.session.preload_masking, lambda _: None)
        self.set_interval(REFRESH_INTERVAL_S, self._check_for_changes)

    def on_screen_resume(self) -> None:
        self.queue_table.invalidate_rows()
        self._load_counts()
        self._schedule_preview()

    def refresh_title_bar(self) -> None:
        self.set_title_bar(self.session.audit.name, "conflicts")
        self._schedule_preview()

    def load_conflicts(self, cursor_key: ConflictKey | None = None) -> None:
        """Load the keys of the conflicts that match the filter; the table fetches rows when they become visible."""
        queue_filter = self.session.queue_filter = self.queue_filter
        limit = FIRST_CONFLICTS if cursor_key is None else None

        def show(keys: list[ConflictKey]) -> None:
            self._is_list_complete, self._is_loading = len(keys) != limit, False
            self.queue_table.show_conflicts(keys, cursor_key)
            self.queue_table.display = bool(keys)
            note = self.query_one("#queue-empty", Static)
            note.display = not keys
            note.update(Content(NO_CONFLICTS_TEXT if matches_everything(queue_filter) else NO_MATCH_TEXT))
            self._update_header()
            if not self._is_list_complete:
                self.submit_read("keys", lambda: self.session.conflict_keys(queue_filter), show_all)
            self._load_counts()

        def show_all(keys: list[ConflictKey]) -> None:
            self._is_list_complete = True
            self.queue_table.complete_conflicts(keys)
            self._update_header()

        self.submit_read("keys", lambda: self.session.conflict_keys(queue_filter, limit), show)

    def _load_counts(self) -> None:
        """Count the conflicts by status in a thread, and show the counts and the rater's progress."""

        def load() -> dict[ConflictStatus, int]:
            self.session.load_progress()
            return self.session.count_by_status()

        def show(counts: dict[ConflictStatus, int]) -> None:
            self.status_counts = counts
            self._update_header()

        self.submit_read("counts", load, show)

    def _check_for_changes(self) -> None:
        """Load rows and counts again if any rater has added to the rating log since the last check."""

        def show(rating_id: int | None) -> None:
            if rating_id != self._last_rating_id:
                self._last_rating_id = rating_id
                self.queue_table.invalidate_rows()
                self._load_counts()

        if self.is_current:
            self.submit_read("changes", self.session.load_last_rating_id, show)

    @on(QueueTable.CursorMoved)
    def _schedule_preview(self) -> None:
        """Show the preview once the cursor has rested for `PREVIEW_DELAY_S` seconds."""
        self._update_header()
        if self._preview_timer:
            self._preview_timer.stop()
        self._preview_timer = self.set_timer(PREVIEW_DELAY_S, self._show_preview)

    def _show_preview(self) -> None:
        """Show the conflict under the cursor in the preview panel, if the screen is wide enough for it."""
        panel = self.query_one("#preview")
        if self.queue_table.cursor_key is None or not panel.size.width:
            return
        try:
            preview = render_preview(self.session.load_item(self.queue_table.cursor_key, keep_hidden=True))
        except AuditorError as error:
            preview = to_content(str(error), "$text-error")
        self.query_one("#preview-text", Static).update(preview)
        panel.scroll_home(animate=False)

    def _update_header(self) -> None:
        """Show the counts by status, the rater's progress, position, order and filter, and the names of the columns."""
        pieces = [
            symbol.with_text(f"{format_count(self.status_counts[status])} {STATUS_LABELS[status]}")
            for status, symbol in STATUS_SYMBOLS.items()
            if self.status_counts is not None and (self.status_counts[status] or status is ConflictStatus.OPEN)
        ] or [Content.styled(LOADING_TEXT, "$text-muted")]
        order = SORT_LABELS[self.queue_filter.sort] + (" (reversed)" if self.queue_filter.reverse else "")
        filter_text = (
            ""
            if matches_everything(self.queue_filter)
            else to_single_line(
                format_filter(replace(self.queue_filter, sort=QueueSort.INFORMATIVENESS, reverse=False))
            )
        )
        n_conflicts = len(self.queue_table.conflict_keys)
        total_text = format_count(n_conflicts) if self._is_list_complete else "…"
        empty_text = "…" if self._is_loading else "none"
        position_text = f"{format_count(self.queue_table.cursor + 1)} of {total_text}" if n_conflicts else empty_text
        position_line = Content.assemble(
            (position_text, "bold"),
            (f" · by {order}", "$text-muted"),
            (f" · / {filter_text}" if filter_text else "", "$text-accent"),
        )
        self.query_one("#queue-head", Static).update(
            Content("\n").join([Content("   ").join(pieces), self._format_progress(), position_line]), layout=False
        )
        self.query_one("#queue-columns", Static).update(
            Content(
                format_header(
                    self.queue_table.scrollable_content_region.width or 80, is_task_audit=self.session.is_task_audit
                )
            ),
            layout=False,
        )

    def _format_progress(self) -> Content:
        """Return the rater's list of things to do: total, done, left, pace and the time to go."""
        progress = self.session.progress
        return Content.assemble(("To do  ", "bold"), (format_progress(progress) if progress else "…", "$text-muted"))

    # --- actions

    @on(QueueTable.RowOpened)
    def action_open(self) -> None:
        """Open the conflict under the cursor."""
        if self.queue_table.cursor_key:
            self.app.push_screen(
                ConflictScreen(self.session, self.queue_table.conflict_keys, self.queue_table.cursor_key)
            )

    def action_best(self) -> None:
        """Open the next undecided conflict of the list."""
        key = self.session.next_conflict_key()
        if key is None:
            self.notify(NOTHING_LEFT, markup=False)
        else:
            self.app.push_screen(ConflictScreen(self.session, self.queue_table.conflict_keys, key))

    def action_filter(self) -> None:
        self._open_filter_dialog(format_filter(self.queue_filter), FILTER_HINT)

    def _open_filter_dialog(self, text: str, hint: str) -> None:
        dialog = TextDialog("Filter", text, hint, enter_verb="applies it", at_bottom=True)
        self.app.push_screen(dialog, self.action_filter_by)

    def action_filter_by(self, text: str | None) -> None:
        """Apply a filter given as text; None keeps the current one. An invalid one reopens the dialog with an error."""
        if text is None:
            return
        try:
            self.queue_filter = parse_filter(text)
        except UsageError as error:
            self._open_filter_dialog(text, f"✕ {to_single_line(str(error))}")
            return
        self.load_conflicts(self.queue_table.cursor_key)

    def action_sort(self) -> None:
        self.queue_filter = with_next_sort(self.queue_filter)
        self.load_conflicts()

    def action_reverse(self) -> None:
        self.queue_filter = replace(self.queue_filter, reverse=not self.queue_filter.reverse)
        self.load_conflicts()

    def action_filters(self) -> None:
        self.app.push_screen(
            FilterDialog(self.review_app.settings, format_filter(self.queue_filter)), self.action_filter_by
        )

    def action_people(self) -> None:
        self.review_app.open_agreement(self.session.audit.name)

    def action_errors(self) -> None:
        self.review_app.open_errors(self.session.audit.name)

    def action_reload(self) -> None:
        self.load_conflicts(self.queue_table.cursor_key)

    def action_undo(self) -> None:
        self._save_undo(RatingAction.UNDO, self.session.undo)

    def action_redo(self) -> None:
        self._save_undo(RatingAction.REDO, self.session.redo)

    def _save_undo(self, act: RatingAction, job: Callable[[], RatingEntry | None]) -> None:
        """Run an undo or redo in the writer thread, then say what it did and update the table."""

        def show_undo(entry: RatingEntry | None) -> None:
            self.notify(describe_undo(act, entry), markup=False)
            if self.is_open:
                self.queue_table.invalidate_rows()
                self._load_counts()
            self.review_app.prefetch_and_notify(self.session)

        self.review_app.submit_write(job, show_undo)

    @property
    def page_height(self) -> int:
        return self.queue_table.page_height

    def action_move_by(self, lines: int) -> None:
        self.queue_table.move_cursor(lines)

    def action_first(self) -> None:
        self.queue_table.move_cursor(-len(self.queue_table.conflict_keys))

    def action_last(self) -> None:
        self.queue_table.move_cursor(len(self.queue_table.conflict_keys))
