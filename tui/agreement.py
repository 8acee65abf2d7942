"""How raters agree with each other, and judges with people; and what that teaches about the judges."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from auditor.review.session import Desk
from auditor.storage.conflict_status import QueueFilter, Standing
from auditor.tui.actions import bindings
from auditor.tui.formatting import content, fit, interval, line
from auditor.tui.screen import Page

if TYPE_CHECKING:
    from auditor.review.summary import Row, Summary, Table

NAME = 26
LEGEND = "● value  ━ 95% interval  ·  same: 0 to 100%  ·  kappa: −1 to +1, ┼ is 0"


class PeoplePage(Page):
    """Agreement between raters, and between judges and people."""

    where = "people"
    BINDINGS: ClassVar[list[BindingType]] = bindings("people")

    def __init__(self, desk: Desk) -> None:
        super().__init__()
        self.desk = desk
        self.summary: Summary | None = None

    def body(self) -> ComposeResult:
        with VerticalScroll(id="people", can_focus=False):
            yield Static(Content("Reading the ratings …"), id="people-text")

    def on_mount(self) -> None:
        def show(summary: Summary) -> None:
            self.summary = summary
            self._paint()

        self.read("summary", self._summary, show)

    def _summary(self) -> Summary:
        from auditor.review.summary import summary_of  # loads scipy, which the first screen does without

        return summary_of(self.desk.db, self.desk.audit)

    def refresh_bar(self) -> None:
        self.set_bar(self.desk.audit.name, "agreement")
        self._paint()

    def _paint(self) -> None:
        if self.summary is not None:
            width = max(self.query_one("#people").scrollable_content_region.width, 40)
            parts = [Content.styled(LEGEND, "$text-muted"), *(painted(t, width) for t in self.summary.tables)]
            self.query_one("#people-text", Static).update(Content("\n\n").join(parts))

    def action_disputed(self) -> None:
        self.review.open_queue(self.desk.audit.name, QueueFilter(states=(Standing.DISPUTED,)))

    def action_down(self) -> None:
        self._scroll(1)

    def action_up(self) -> None:
        self._scroll(-1)

    def action_page_down(self) -> None:
        self._scroll(self.query_one("#people").size.height - 1)

    def action_page_up(self) -> None:
        self._scroll(1 - self.query_one("#people").size.height)

    def _scroll(self, lines: int) -> None:
        self.query_one("#people").scroll_relative(y=lines, animate=False)

    def action_leave(self) -> None:
        self.review.back()


def painted(table: Table, width: int) -> Content:
    """A table of the summary: a title, why it can be trusted how far, and a line for each row."""
    lines = [content(table.title, "bold $text-accent"), content(table.note, "$text-muted")]
    name = min(NAME, width // 3)
    lines += [_row(row, name, width) for row in table.rows]
    return Content("\n").join(lines)


def _row(row: Row, name: int, width: int) -> Content:
    head = Content.styled(fit(row.name, name) + " ", "bold")
    if row.value is None:
        break_ = "\n  " if len(row.text) > width - name - 1 else ""
        return Content.assemble(head, break_, content(line(row.text), "$text-muted"))
    plot = interval(min(max(width - name - 44, 9), 41), row.value, row.low, row.high, least=row.least)
    return Content.assemble(head, (plot, "$text-primary"), " ", content(line(row.text)))
