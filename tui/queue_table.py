"""Table of the conflicts in the queue; it stores keys only, and fetches and renders rows when they become visible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.events import Click
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from auditor.domain import ConflictKind
from auditor.storage.conflict_status import ConflictKey, QueueRow
from auditor.tui.formatting import (
    DECISION_SYMBOLS,
    STATUS_SYMBOLS,
    draw_score_axis,
    fit_width,
    format_answer,
    format_score,
)

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
    symbol = DECISION_SYMBOLS[row.decision]
    label = (
        format_score(row.score) if row.decision and row.decision.needs_score and row.score is not None else symbol.label
    )
    marks = ("⚑" if row.flagged else "") + ("✎" if row.note else "")
    rating_text = f"{symbol.glyph} {label}".rstrip()
    return fit_width(rating_text, RATING_WIDTH - cell_len(marks) - 1) + marks if marks else rating_text
