"""The queue of conflicts: filter, order, search, and into a conflict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import Static

from auditor.domain import Act
from auditor.errors import UsageError
from auditor.review.desk import Desk
from auditor.review.filters import format_filter, is_empty, next_sort, parse_filter
from auditor.storage.rating_log import Entry
from auditor.storage.standing import ConflictKey, QueueFilter, Sort, Standing
from auditor.tui.actions import bindings
from auditor.tui.chrome import Page
from auditor.tui.conflict import ConflictPage
from auditor.tui.dialogs import Ask, ChooseFilter
from auditor.tui.paint import STANDINGS, line
from auditor.tui.queue_table import QueueTable, heading
from auditor.tui.words import taken_back

ORDERS = {
    Sort.TEACHES: "what teaches most",
    Sort.GAP: "widest gap",
    Sort.COUNTRY: "country",
    Sort.TOPIC: "topic",
    Sort.KIND: "kind",
    Sort.STATE: "state",
}


class QueuePage(Page):
    """The conflicts of one audit as one rater sees them."""

    where = "queue"
    BINDINGS: ClassVar[list[BindingType]] = bindings("queue")

    def __init__(self, desk: Desk, wanted: QueueFilter | None = None) -> None:
        super().__init__()
        self.desk = desk
        self.wanted = wanted or QueueFilter()
        self.counts = dict.fromkeys(Standing, 0)

    def body(self) -> ComposeResult:
        yield Static(id="queue-head")
        yield Static(id="queue-columns")
        yield QueueTable(self.desk.rows, id="queue")
        yield Static(id="queue-empty")

    @property
    def table(self) -> QueueTable:
        return self.query_one("#queue", QueueTable)

    def on_mount(self) -> None:
        self.load()

    def on_screen_resume(self) -> None:
        self.table.forget()
        self._count()

    def refresh_bar(self) -> None:
        self.set_bar(self.desk.audit.name, "conflicts")
        self._head()

    def load(self, at: ConflictKey | None = None) -> None:
        """Read which conflicts there are, in order; their lines come when they are looked at."""
        self.table.show(self.desk.keys(self.wanted), at)
        empty = not self.table.keys
        self.table.display = not empty
        note = self.query_one("#queue-empty", Static)
        note.display = empty
        nothing = is_empty(self.wanted)
        note.update(
            Content("This audit has no conflicts." if nothing else "No conflict passes this filter. x clears it.")
        )
        self._count()
        self._head()

    def _count(self) -> None:
        self.counts = self.desk.counts()
        self._head()

    @on(QueueTable.Moved)
    def _head(self) -> None:
        pieces = [
            Content.styled(f"{sign.glyph} {self.counts[standing]:,} {sign.word}", sign.style)
            for standing, sign in STANDINGS.items()
            if self.counts[standing] or standing is Standing.OPEN
        ]
        order = ORDERS[self.wanted.sort] + (" (reversed)" if self.wanted.reverse else "")
        shown = (
            "" if is_empty(self.wanted) else line(format_filter(replace(self.wanted, sort=Sort.TEACHES, reverse=False)))
        )
        n = len(self.table.keys)
        place = f"{self.table.cursor + 1:,} of {n:,}" if n else "none"
        below = Content.assemble(
            (place, "bold"), (f" · by {order}", "$text-muted"), (f" · / {shown}" if shown else "", "$text-accent")
        )
        self.query_one("#queue-head", Static).update(Content.assemble(Content("   ").join(pieces), "\n", below))
        self.query_one("#queue-columns", Static).update(
            Content(heading(self.table.scrollable_content_region.width or 80))
        )

    # --- actions

    @on(QueueTable.Chosen)
    def action_open(self) -> None:
        if self.table.key:
            self.app.push_screen(ConflictPage(self.desk, self.table.keys, self.table.key))

    def action_best(self) -> None:
        key = self.desk.next_key()
        if key is None:
            self.notify("Nothing is left for you to decide.", markup=False)
        else:
            self.app.push_screen(ConflictPage(self.desk, self.table.keys, key))

    def action_filter(self) -> None:
        self.app.push_screen(
            Ask(
                "Filter", format_filter(self.wanted), "kind: state: country: topic: model: rater: gap:> is: sort: words"
            ),
            self.set_filter,
        )

    def set_filter(self, text: str | None) -> None:
        """Show what passes a filter, given as a line; None leaves all as it is."""
        if text is None:
            return
        try:
            self.wanted = parse_filter(text)
        except UsageError as error:
            self.notify(line(str(error)), severity="error", markup=False)
            return
        self.load(self.table.key)

    def action_sort(self) -> None:
        self.wanted = next_sort(self.wanted)
        self.load()

    def action_reverse(self) -> None:
        self.wanted = replace(self.wanted, reverse=not self.wanted.reverse)
        self.load()

    def action_clear(self) -> None:
        self.set_filter("")

    def action_filters(self) -> None:
        self.app.push_screen(ChooseFilter(self.review.settings, format_filter(self.wanted)), self.set_filter)

    def action_people(self) -> None:
        self.review.open_people(self.desk.audit.name)

    def action_reload(self) -> None:
        self.load(self.table.key)

    def action_undo(self) -> None:
        self._take_back(Act.UNDO, self.desk.undo)

    def action_redo(self) -> None:
        self._take_back(Act.REDO, self.desk.redo)

    def _take_back(self, act: Act, job: Callable[[], Entry | None]) -> None:
        def done(entry: Entry | None) -> None:
            self.notify(taken_back(act, entry), markup=False)
            self.table.forget()
            self._count()

        self.review.write(job, done)

    def action_down(self) -> None:
        self.table.move(1)

    def action_up(self) -> None:
        self.table.move(-1)

    def action_page_down(self) -> None:
        self.table.move(self.table.page)

    def action_page_up(self) -> None:
        self.table.move(-self.table.page)

    def action_first(self) -> None:
        self.table.move(-len(self.table.keys))

    def action_last(self) -> None:
        self.table.move(len(self.table.keys))

    def action_leave(self) -> None:
        self.review.back()
