"""The queue of conflicts: filter, order, search, and into a conflict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.timer import Timer
from textual.widgets import Static

from auditor.domain import Act
from auditor.errors import AuditorError, UsageError
from auditor.review.filters import format_filter, is_empty, next_sort, parse_filter
from auditor.review.session import Desk
from auditor.storage.conflict_status import ConflictKey, QueueFilter, Sort, Standing
from auditor.storage.rating_log import Entry
from auditor.tui.actions import bindings
from auditor.tui.conflict import ConflictPage
from auditor.tui.dialogs import Ask, ChooseFilter
from auditor.tui.formatting import STANDINGS, content, line
from auditor.tui.preview import preview
from auditor.tui.queue_table import QueueTable, heading
from auditor.tui.screen import Page
from auditor.tui.wording import taken_back

ORDERS = {
    Sort.TEACHES: "what teaches most",
    Sort.GAP: "widest gap",
    Sort.COUNTRY: "country",
    Sort.TOPIC: "topic",
    Sort.KIND: "kind",
    Sort.STATE: "state",
}

HINT = "kind: state: country: topic: model: rater: gap:>0.5 is:todo sort:gap"
PREVIEW_DELAY_S = 0.08
NOTHING = "This audit has no conflicts."
NONE_PASSES = "No conflict passes this filter. x clears it."


class QueuePage(Page):
    """The conflicts of one audit as one rater sees them."""

    where = "queue"
    BINDINGS: ClassVar[list[BindingType]] = bindings("queue")

    def __init__(self, desk: Desk, wanted: QueueFilter | None = None) -> None:
        super().__init__()
        self.desk = desk
        self.wanted = wanted or QueueFilter()
        self.counts = dict.fromkeys(Standing, 0)
        self._waiting: Timer | None = None

    def body(self) -> ComposeResult:
        yield Static(id="queue-head")
        with Horizontal(id="queue-body"):
            with Vertical(id="queue-list"):
                yield Static(id="queue-columns")
                yield QueueTable(self.desk.rows, id="queue")
                yield Static(id="queue-empty")
            with VerticalScroll(id="preview", can_focus=False) as panel:
                panel.border_title = Content("Under the cursor")
                yield Static(id="preview-text")

    @property
    def table(self) -> QueueTable:
        return self.query_one("#queue", QueueTable)

    def on_mount(self) -> None:
        self.load()
        self.read("warm-up", self.desk.warm_up, lambda _: None)

    def on_screen_resume(self) -> None:
        self.table.forget()
        self._count()
        self._moved()

    def refresh_bar(self) -> None:
        self.set_bar(self.desk.audit.name, "conflicts")
        self._moved()

    def load(self, at: ConflictKey | None = None) -> None:
        """Read which conflicts there are, in order; their lines come when they are looked at."""
        wanted = self.wanted

        def show(keys: list[ConflictKey]) -> None:
            self.table.show(keys, at)
            self.table.display = bool(keys)
            note = self.query_one("#queue-empty", Static)
            note.display = not keys
            note.update(Content(NOTHING if is_empty(wanted) else NONE_PASSES))
            self._head()

        self.read("keys", lambda: self.desk.keys(wanted), show)
        self._count()

    def _count(self) -> None:
        def show(counts: dict[Standing, int]) -> None:
            self.counts = counts
            self._head()

        self.read("counts", self.desk.counts, show)

    @on(QueueTable.Moved)
    def _moved(self) -> None:
        self._head()
        if self._waiting:
            self._waiting.stop()
        self._waiting = self.set_timer(PREVIEW_DELAY_S, self._preview)

    def _preview(self) -> None:
        """Show what is under the cursor once it rests, where there is room for it."""
        panel = self.query_one("#preview")
        if self.table.key is None or not panel.size.width:
            return
        try:
            shown = preview(self.desk.item(self.table.key, peek=True))
        except AuditorError as error:
            shown = content(str(error), "$text-error")
        self.query_one("#preview-text", Static).update(shown)
        panel.scroll_home(animate=False)

    def _head(self) -> None:
        pieces = [
            sign.says(f"{self.counts[standing]:,} {sign.word}")
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
        self.query_one("#queue-head", Static).update(
            Content.assemble(Content("   ").join(pieces), "\n", below), layout=False
        )
        self.query_one("#queue-columns", Static).update(
            Content(heading(self.table.scrollable_content_region.width or 80, of_task=self.desk.of_task)), layout=False
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
        self._ask_filter(format_filter(self.wanted), HINT)

    def _ask_filter(self, text: str, hint: str) -> None:
        self.app.push_screen(Ask("Filter", text, hint, does="shows", low=True), self.set_filter)

    def set_filter(self, text: str | None) -> None:
        """Show what passes a filter, given as a line; None leaves all as it is."""
        if text is None:
            return
        try:
            self.wanted = parse_filter(text)
        except UsageError as error:
            self._ask_filter(text, f"✕ {line(str(error))}")
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
            self.review.follow(self.desk)

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
