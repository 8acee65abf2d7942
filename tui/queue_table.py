"""The queue as a table that holds keys only: lines are fetched when they come into view, and painted one by one."""

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

from auditor.domain import Decision
from auditor.storage.conflict_status import ConflictKey, QueueRow
from auditor.tui.formatting import DECISIONS, STANDINGS, axis, fit, position, signed

PAGE = 64
"""Lines fetched at once."""
KEPT_PAGES = 16
MARKER, STANDING, KIND, GAP, MINE = 2, 11, 9, 6, 10
LEFT_GLYPH, RIGHT_GLYPH = "●", "◇"

Fetch = Callable[[Sequence[ConflictKey]], list[QueueRow]]


class Columns(NamedTuple):
    """Widths of the columns that give way."""

    country: int
    topic: int
    axis: int


def columns(width: int) -> Columns:
    """What is left beside the fixed columns, shared out; the axis has a middle, so its width is odd."""
    left = max(width - MARKER - STANDING - KIND - GAP - MINE, 24)
    scale = min(max(left // 3, 9), 41) // 2 * 2 - 1
    country = min((left - scale - 3) * 9 // 20, 24)
    return Columns(country, left - scale - country - 3, scale)


def heading(width: int, *, of_task: bool = False) -> str:
    """The line above the table; the items of a task have no country, and their answers need be no scores."""
    c = columns(width)
    scale = "−1" + "0".center(c.axis - 4) + "+1" if c.axis >= 9 else " " * c.axis
    where = fit("item", c.country + c.topic + 1) if of_task else f"{fit('country', c.country)} {fit('topic', c.topic)}"
    parts = [
        " " * MARKER, fit("state", STANDING), fit("kind", KIND), where,
        " ", fit("answers", c.axis) if of_task else scale, " ", fit("  gap", GAP), fit("yours", MINE),
    ]  # fmt: skip
    return "".join(parts)


class QueueTable(ScrollView):
    """Conflicts, one a line, with a cursor."""

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

    class Moved(Message):
        """The cursor came to another line."""

    class Chosen(Message):
        """The line under the cursor was clicked again."""

    def __init__(self, fetch: Fetch, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._fetch = fetch
        self._keys: list[ConflictKey] = []
        self._pages: dict[int, dict[ConflictKey, QueueRow]] = {}

    @property
    def keys(self) -> list[ConflictKey]:
        """All conflicts of the table, in order."""
        return self._keys

    @property
    def key(self) -> ConflictKey | None:
        """The conflict under the cursor."""
        return self._keys[self.cursor] if self._keys else None

    def show(self, keys: list[ConflictKey], at: ConflictKey | None = None) -> None:
        """Show other conflicts, with the cursor where it was told, or at the top."""
        self._keys = keys
        self._pages.clear()
        self.virtual_size = Size(self.size.width, len(keys))
        self.cursor = keys.index(at) if at in keys else 0
        self._reveal_cursor()
        self.refresh()

    def forget(self) -> None:
        """Fetch lines anew when they are next painted: something was decided."""
        self._pages.clear()
        self.refresh()

    def move(self, by: int) -> None:
        """Move the cursor, as far as there are lines."""
        self.cursor = max(0, min(len(self._keys) - 1, self.cursor + by))

    @property
    def page(self) -> int:
        """Lines in view, less one for the eye to hold on to."""
        return max(self.scrollable_content_region.height - 1, 1)

    def watch_cursor(self) -> None:
        self._reveal_cursor()
        self.refresh()
        self.post_message(self.Moved())

    def on_resize(self) -> None:
        self.virtual_size = Size(self.size.width, len(self._keys))
        self._reveal_cursor()

    def on_click(self, event: Click) -> None:
        index = event.y + self.scroll_offset.y
        if index >= len(self._keys):
            return
        if index == self.cursor and event.chain > 1:
            self.post_message(self.Chosen())
        self.cursor = index

    def render_line(self, y: int) -> Strip:
        index = y + self.scroll_offset.y
        width = self.scrollable_content_region.width
        row = self._row(index)
        if row is None:
            return Strip.blank(width, self.rich_style)
        is_cursor = index == self.cursor
        base = self.get_component_rich_style("queue--cursor") if is_cursor else self.rich_style
        segments = [
            Segment(text, base + self._style(name, is_cursor)) for text, name in cells(row, width, is_cursor=is_cursor)
        ]
        return Strip(segments).adjust_cell_length(width, base)

    def _style(self, name: str, is_cursor: bool) -> Style:
        if not name:
            return Style.null()
        style = self.get_component_rich_style(f"queue--{name}", partial=True)
        return Style(color=style.color, bold=style.bold or is_cursor)

    def _row(self, index: int) -> QueueRow | None:
        if not 0 <= index < len(self._keys):
            return None
        number = index // PAGE
        if number not in self._pages:
            if len(self._pages) >= KEPT_PAGES:
                self._pages.pop(next(iter(self._pages)))
            keys = self._keys[number * PAGE : (number + 1) * PAGE]
            self._pages[number] = {row.key: row for row in self._fetch(keys)}
        return self._pages[number].get(self._keys[index])

    def _reveal_cursor(self) -> None:
        if self.size.height:
            self.scroll_to_region(Region(0, self.cursor, 1, 1), animate=False, force=True)


def cells(row: QueueRow, width: int, *, is_cursor: bool) -> list[tuple[str, str]]:
    """The pieces of one line, each with the name of its style."""
    c = columns(width)
    standing = STANDINGS[row.standing]
    gap = row.gap
    if row.answer_left is None and row.score_left is not None and row.score_right is not None:
        said = axis(c.axis, [(row.score_left, LEFT_GLYPH), (row.score_right, RIGHT_GLYPH)])
    else:
        sides = (position(row.score_left, row.answer_left), position(row.score_right, row.answer_right))
        said = fit(" / ".join(sides), c.axis)
    country, topic = row.key.country, row.key.topic
    where = f"{fit(country, c.country)} {fit(topic, c.topic)}" if country else fit(topic, c.country + c.topic + 1)
    return [
        ("▌ " if is_cursor else "  ", "axis"),
        (fit(f"{standing.glyph} {standing.word}", STANDING), str(row.standing)),
        (fit(str(row.kind), KIND), "muted"),
        (where + " ", ""),
        (said + " ", "axis"),
        (fit("" if gap is None else f" {gap:.2f}", GAP), "muted"),
        (fit(mine(row), MINE), "mine" if row.decision and row.decision.settles else "muted"),
    ]


def mine(row: QueueRow) -> str:
    """What the rater said, with signs for a flag and a note."""
    sign = DECISIONS[row.decision]
    word = signed(row.score) if row.decision is Decision.SCORE and row.score is not None else sign.word
    marks = ("⚑" if row.flagged else "") + ("✎" if row.note else "")
    said = f"{sign.glyph} {word}".rstrip()
    return fit(said, MINE - cell_len(marks) - 1) + marks if marks else said
