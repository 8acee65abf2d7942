"""Home: the audits of the database, live while they run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from auditor.storage.conflict_status import Standing
from auditor.storage.overview import Overview, overviews
from auditor.tui.actions import bindings
from auditor.tui.formatting import STANDINGS, bar, content, fit, line
from auditor.tui.screen import Page

INTERVAL_S = 2.0
BAR = 24
MARGINS = 5
"""Columns that border, padding and scrollbar take of the list."""
EMPTY = """No audit here yet

auditor init audit.toml      writes a configuration to start from
auditor run audit.toml       runs it; it shows here while it runs
auditor import scores …      brings in scores measured elsewhere"""


class Audits(OptionList, inherit_bindings=False):
    """The list; its keys are the screen's, so that they can be changed."""


class Home(Page):
    """Choose an audit."""

    where = "home"
    BINDINGS: ClassVar[list[BindingType]] = bindings("home")

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Overview] = []

    def body(self) -> ComposeResult:
        with Vertical(id="home"):
            yield Audits(id="audits", markup=False)
            yield Static(id="home-empty")

    def on_mount(self) -> None:
        self.look()
        self.set_interval(INTERVAL_S, self.look)

    def on_screen_resume(self) -> None:
        self.look()

    def refresh_bar(self) -> None:
        self.set_bar("audits")
        self._paint()

    def look(self) -> None:
        """Read the database; a run that writes is neither waited for nor held up."""
        if self.is_current and not any(worker.is_running for worker in self.workers):
            self.read("overviews", lambda: overviews(self.review.db), self._show)

    def _show(self, found: list[Overview]) -> None:
        self.found = found
        self._paint()

    def _paint(self) -> None:
        audits = self.query_one(Audits)
        audits.display = bool(self.found)
        empty = self.query_one("#home-empty", Static)
        empty.display = not self.found
        empty.update(self._nothing())
        openings = sum(o.conflicts[Standing.OPEN] + o.conflicts[Standing.DISPUTED] for o in self.found)
        audits.border_title = content(_count(len(self.found), "audit"))
        audits.border_subtitle = content(f"{_count(openings, 'conflict')} waiting for people")
        width = max(self.size.width - MARGINS, 40)
        names = [o.audit.name for o in self.found]
        if [option.id for option in audits.options] == names:
            for overview in self.found:
                audits.replace_option_prompt(overview.audit.name, card(overview, width))
            return
        audits.clear_options()
        audits.add_options([Option(card(o, width), id=o.audit.name) for o in self.found])
        audits.highlighted = 0 if self.found else None
        audits.focus()

    def _nothing(self) -> Content:
        first, _, rest = EMPTY.partition("\n")
        path = self.review.db.path
        where = content(f"\n\nThis is {line(str(path.resolve()))}" if path else "", "$text-muted")
        return Content.assemble((first, "bold"), "\n", rest, where)

    @property
    def chosen(self) -> str | None:
        """The audit under the cursor."""
        audits = self.query_one(Audits)
        return None if audits.highlighted is None else audits.get_option_at_index(audits.highlighted).id

    @on(OptionList.OptionSelected)
    def _selected(self) -> None:
        self.action_open()

    def action_open(self) -> None:
        if self.chosen:
            self.review.open_queue(self.chosen)

    def action_people(self) -> None:
        if self.chosen:
            self.review.open_people(self.chosen)

    def action_down(self) -> None:
        self.query_one(Audits).action_cursor_down()

    def action_up(self) -> None:
        self.query_one(Audits).action_cursor_up()

    async def action_leave(self) -> None:
        await self.app.action_quit()


def card(overview: Overview, width: int) -> Content:
    """Three lines about an audit, and one to part it from the next."""
    audit = overview.audit
    state, style = _state(overview)
    when = _when(audit.updated_at)
    name = fit(audit.name, max(width - len(state) - len(when) - 3, 12))
    first = Content.assemble((name, "bold"), " ", (state, style), "  ", (when, "$text-muted"))
    return Content("\n").join([first, _work(overview), _conflicts(overview), Content("")])


def _state(overview: Overview) -> tuple[str, str]:
    if overview.is_done:
        return "✓ done", "$text-success"
    running = overview.runner is not None
    return (
        f"▶ {line(overview.audit.stage)}" if running else f"‖ stopped at {line(overview.audit.stage)}"
    ), "$text-warning"


def _work(overview: Overview) -> Content:
    usable = [] if overview.coverage is None else [f"{overview.coverage:.0%} usable"]
    what = f" {' · '.join([*_said(overview), *usable, _cost(overview)])}"
    return Content.assemble((bar(overview.progress, BAR), "$text-primary"), content(what))


def _said(overview: Overview) -> Iterator[str]:
    """How much models have said, by kind; nothing of a kind that the audit does not ask for."""
    if overview.planned != 0 or overview.traces:
        planned = "" if overview.planned is None else f"/{overview.planned:,}"
        yield f"{overview.traces:,}{planned} samples"
    if overview.answers:
        yield _count(overview.answers, "moral answer")
    if overview.comparisons:
        yield _count(overview.comparisons, "comparison")


def _cost(overview: Overview) -> str:
    if overview.cost_usd is None:
        return "cost unknown"
    return f"{'≥ ' if overview.unpriced else ''}${overview.cost_usd:.2f}"


def _conflicts(overview: Overview) -> Content:
    if not overview.total:
        return Content.styled("no conflicts", "$text-muted")
    pieces = [
        sign.says(f"{overview.conflicts[standing]:,} {sign.word}")
        for standing, sign in STANDINGS.items()
        if overview.conflicts[standing]
    ]
    return Content("   ").join([*pieces, content(f"of {_count(overview.total, 'conflict')}", "$text-muted")])


def _count(n: int, word: str) -> str:
    return f"{n:,} {word}" if n == 1 else f"{n:,} {word}s"


def _when(stamp: str) -> str:
    return stamp[:16].replace("T", " ")
