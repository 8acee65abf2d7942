"""One conflict: both sides next to each other, the keys that settle it, and what was hidden once it is decided."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, TypeVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Horizontal, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from auditor.domain import Act, Decision
from auditor.errors import AuditorError
from auditor.review.item import Item
from auditor.review.session import Desk
from auditor.storage.conflict_status import ConflictKey
from auditor.storage.rating_log import Entry
from auditor.tui.actions import bindings
from auditor.tui.dialogs import Ask, AskScore, History
from auditor.tui.evidence import evidence
from auditor.tui.formatting import DECISIONS, STANDING_WORDS, STANDINGS, content, line
from auditor.tui.screen import Page
from auditor.tui.side_panel import SidePanel
from auditor.tui.wording import said, taken_back

T = TypeVar("T")


class ConflictPage(Page):
    """Decide one conflict after the other."""

    where = "conflict"
    BINDINGS: ClassVar[list[BindingType]] = bindings("conflict")

    def __init__(self, desk: Desk, keys: Sequence[ConflictKey], key: ConflictKey) -> None:
        super().__init__()
        self.desk = desk
        self.keys = keys
        self.places = {key: place for place, key in enumerate(keys)}
        self.key = key
        self.item: Item | None = None
        self.sample = 0
        self.marks = True
        self.saving = 0
        self.last_said = ""

    def body(self) -> ComposeResult:
        yield Static(id="cell")
        with Container(id="conflict"):
            with Horizontal(id="sides"):
                yield SidePanel(id="left")
                yield SidePanel(id="right")
            with VerticalScroll(id="evidence", can_focus=False):
                yield Static(id="evidence-text")
        yield Static(id="standing")

    def on_mount(self) -> None:
        self.open(self.key)

    def refresh_bar(self) -> None:
        place = self.places.get(self.key)
        where = "" if place is None else f"{place + 1:,} of {len(self.keys):,}"
        self.set_bar(self.desk.audit.name, "conflicts", *([where] if where else []))
        if self.item:
            self._paint()

    def open(self, key: ConflictKey) -> None:
        """Show a conflict, as the rater may see it now."""
        try:
            item = self.desk.item(key)
        except AuditorError as error:
            self.notify(line(str(error)), severity="error", markup=False)
            return
        self.key, self.sample = key, 0
        self.show(item)
        for side in self.query(SidePanel):
            side.scroll_home(animate=False)
        self.query_one("#evidence").scroll_home(animate=False)

    def show(self, item: Item) -> None:
        """Show the conflict that is open in its present state."""
        self.item = item
        self.query_one("#conflict").set_class(item.revealed, "-revealed")
        self.refresh_bar()

    # --- what is seen

    def _paint(self) -> None:
        item = self.item
        assert item is not None
        kind = item.row.kind if item.row.gap is None else f"{item.row.kind} · gap {item.row.gap:.2f}"
        head = Content.assemble(
            content(line(item.key.topic), "bold $text-accent"),
            content(f" in {line(item.key.country)}" if item.key.country else "", "bold"),
            (f"   {kind}", "$text-muted"),
            "\n",
            content(line(item.question), "italic $text-muted"),
        )
        self.query_one("#cell", Static).update(head, layout=False)
        truth = item.survey.score if item.survey else None
        for name, side, other in (("left", item.left, item.right), ("right", item.right, item.left)):
            panel = self.query_one(f"#{name}", SidePanel)
            panel.show(name, side, other, self.sample, truth=truth, marks=self.marks)
        self.query_one("#evidence").border_title = Content("Judges and people" if item.revealed else "Hidden")
        self.query_one("#evidence-text", Static).update(evidence(item))
        self.query_one("#standing", Static).update(self._standing(item), layout=False)

    def _standing(self, item: Item) -> Content:
        row = item.row
        if self.saving:
            state = Content.styled("… saving", "$text-warning")
        elif item.decision and item.decision.settles:
            sign = DECISIONS[item.decision]
            state = content(f"✓ saved: {sign.glyph} {said(item.decision, row.score)}", sign.style)
        else:
            state = Content("○ not decided by you" if item.decision is None else "– skipped, not decided by you")
        parts = [state]
        if row.flagged:
            parts.append(Content.styled("⚑ flagged", "$text-error"))
        if item.wants_second:
            parts.append(Content.styled("a second opinion is wanted", "$text-accent"))
        if row.note:
            parts.append(content(f"✎ {line(row.note)}", "$text-accent"))
        if not item.revealed:
            parts.append(Content.styled("the rest is hidden until you decide", "$text-muted"))
            if item.known:
                parts.append(Content.styled("not blind: you have seen this cell", "$text-warning"))
        else:
            parts.append(STANDINGS[row.standing].says(STANDING_WORDS[row.standing]))
        return Content.styled("  ·  ", "$text-muted").join(parts)

    # --- deciding

    def action_decide(self, decision: str) -> None:
        item = self.item
        if item:
            self._write(lambda: self.desk.decide(item, Decision(decision)))

    def action_score(self) -> None:
        item = self.item
        if item is None:
            return
        left, right = item.left.score, item.right.score
        if left is None or right is None:
            self.notify("These answers are no scores: say left, right, both or neither, or write a note.", markup=False)
            return
        start = item.row.score if item.row.score is not None else (left + right) / 2
        self.app.push_screen(AskScore(start, left, right, of_task=self.desk.of_task), self._give_score)

    def _give_score(self, score: float | None) -> None:
        item = self.item
        if item and score is not None:
            self._write(lambda: self.desk.decide(item, Decision.SCORE, score=score))

    def action_skip(self) -> None:
        item = self.item
        if item and (item.decision is None or not item.decision.settles):
            self._write(lambda: self.desk.decide(item, Decision.SKIP), then=self.action_best)
        else:
            self.action_best()

    def action_note(self) -> None:
        item = self.item

        def store(text: str | None) -> None:
            if item and text is not None and text != item.row.note:
                self._write(lambda: self.desk.note(item, text))

        if item:
            self.app.push_screen(Ask("Note", item.row.note, "what a colleague should know"), store)

    def action_flag(self) -> None:
        item = self.item
        if item:
            self._write(lambda: self.desk.flag(item))

    def action_reveal(self) -> None:
        item = self.item
        if item and not item.revealed:
            self._write(lambda: self.desk.reveal(item))

    def action_undo(self) -> None:
        self._take_back(Act.UNDO, self.desk.undo)

    def action_redo(self) -> None:
        self._take_back(Act.REDO, self.desk.redo)

    def _write(self, job: Callable[[], Entry], then: Callable[[], None] | None = None) -> None:
        """Store, and only when it is durable show that it is."""
        key = self.key

        def work() -> Item:
            job()
            return self.desk.item(key)

        def done(item: Item) -> None:
            self.saving -= 1
            if self.key == item.key:
                self.show(item)
            if then:
                then()
            self.review.follow(self.desk)

        self._save(work, done)

    def _take_back(self, act: Act, job: Callable[[], Entry | None]) -> None:
        def work() -> tuple[Entry | None, Item | None]:
            entry = job()
            return entry, entry and self.desk.item(entry.key)

        def done(result: tuple[Entry | None, Item | None]) -> None:
            self.saving -= 1
            entry, item = result
            self.notify(taken_back(act, entry), markup=False)
            if item:
                self.key = item.key
                self.show(item)
            elif self.item:
                self.show(self.item)
            self.review.follow(self.desk)

        self._save(work, done)

    def _save(self, work: Callable[[], T], done: Callable[[T], None]) -> None:
        self.saving += 1
        if self.item:
            self.query_one("#standing", Static).update(self._standing(self.item), layout=False)
        self.review.write(work, done, self._failed)

    def _failed(self, error: AuditorError) -> None:
        self.saving -= 1
        self.notify(line(str(error)), severity="error", timeout=20, markup=False)
        if self.item:
            self.show(self.item)

    # --- going about

    def action_best(self) -> None:
        key = self.desk.next_key(after=self.key)
        if key is None:
            self.notify("Nothing else is left for you to decide.", markup=False)
        else:
            self.open(key)

    def action_following(self) -> None:
        self._step(1)

    def action_preceding(self) -> None:
        self._step(-1)

    def _step(self, by: int) -> None:
        place = self.places.get(self.key, -1 if by > 0 else 1) + by
        if 0 <= place < len(self.keys):
            self.open(self.keys[place])
        else:
            self.notify("This is the end of the queue.", markup=False)

    def action_history(self) -> None:
        self.app.push_screen(History(self.desk.history(self.key)))

    def action_next_sample(self) -> None:
        self._turn(1)

    def action_last_sample(self) -> None:
        self._turn(-1)

    def _turn(self, by: int) -> None:
        if self.item:
            n = max(len(self.item.left.samples), len(self.item.right.samples), 1)
            self.sample = (self.sample + by) % n
            self._paint()

    def action_differences(self) -> None:
        self.marks = not self.marks
        self._paint()

    def action_down(self) -> None:
        self._scroll(1)

    def action_up(self) -> None:
        self._scroll(-1)

    def action_page_down(self) -> None:
        self._scroll(self.query_one("#left").size.height - 1)

    def action_page_up(self) -> None:
        self._scroll(1 - self.query_one("#left").size.height)

    def _scroll(self, lines: int) -> None:
        for widget in (*self.query(SidePanel), self.query_one("#evidence")):
            widget.scroll_relative(y=lines, animate=False)

    def action_leave(self) -> None:
        self.review.back()
