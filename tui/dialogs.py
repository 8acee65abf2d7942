"""Small windows over a screen: a line of text, a score, the saved filters, the history of a conflict, the keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from auditor.storage.rating_log import Entry
from auditor.tui.actions import Action
from auditor.tui.formatting import axis, content, line
from auditor.tui.settings import Settings
from auditor.tui.wording import did

STEP = 0.05
NEVER_AND_ALWAYS = ("never acceptable", "always acceptable")
LEAST_AND_MOST = ("the least of the range", "the most")
KEYS = 13
"""Columns for the keys in the list of keys."""
MOST = 100
"""Columns of a window at most, as in `app.tcss`."""


class Ask(ModalScreen[str | None]):
    """Ask for one line of text."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "cancel")]

    def __init__(self, title: str, value: str, hint: str, *, does: str = "saves", low: bool = False) -> None:
        super().__init__(classes="-bottom" if low else None)
        self._title, self._value, self._hint, self._does = title, value, hint, does

    def compose(self) -> ComposeResult:
        with Vertical(classes="window") as window:
            window.border_title = content(self._title)
            window.border_subtitle = content(f"enter {self._does} · esc cancels")
            yield Input(line(self._value), id="answer")
            yield Static(content(self._hint, "$text-muted"))

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip())


class AskScore(ModalScreen[float | None]):
    """Ask for a score in [-1, 1], by keys or by figures."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "cancel"),
        Binding("up,right", f"step({STEP})", "more", priority=True),
        Binding("down,left", f"step(-{STEP})", "less", priority=True),
    ]

    def __init__(self, start: float, left: float, right: float, *, of_task: bool = False) -> None:
        super().__init__()
        self._ends = LEAST_AND_MOST if of_task else NEVER_AND_ALWAYS
        self._start, self._left, self._right = round(start, 2), left, right

    def compose(self) -> ComposeResult:
        with Vertical(classes="window") as window:
            window.border_title = Content("Your own score")
            window.border_subtitle = Content("arrows change it · enter saves · esc cancels")
            yield Static(id="score-axis")
            yield Input(f"{self._start:.2f}", id="answer", restrict=r"[-+0-9.]*", max_length=6)
            yield Static(id="score-error")

    def on_mount(self) -> None:
        self._paint()

    def on_resize(self) -> None:
        self.call_after_refresh(self._paint)

    @property
    def value(self) -> float | None:
        """The score typed; None while it is none."""
        try:
            score = float(self.query_one(Input).value)
        except ValueError:
            return None
        return score if -1 <= score <= 1 else None

    def action_step(self, by: float) -> None:
        score = self.value
        moved = max(-1.0, min(1.0, (self._start if score is None else score) + by))
        self.query_one(Input).value = f"{moved:.2f}"

    @on(Input.Changed)
    def _paint(self) -> None:
        score = self.value
        width = max(self.query_one("#score-axis").size.width - 6, 3)
        points = [(self._left, "◀"), (self._right, "▶")] + ([(score, "●")] if score is not None else [])
        scale = Content.assemble(("−1 ", "$text-muted"), (axis(width, points), "$primary"), (" +1", "$text-muted"))
        self.query_one("#score-axis", Static).update(scale)
        legend = f"◀ left   ● yours   ▶ right   ·   -1 {self._ends[0]}, 1 {self._ends[1]}"
        wrong = f"✕ a number from -1 ({self._ends[0]}) to 1 ({self._ends[1]})"
        words, style = (legend, "$text-muted") if score is not None else (wrong, "$text-error")
        self.query_one("#score-error", Static).update(content(words, style))

    @on(Input.Submitted)
    def _submitted(self) -> None:
        if self.value is not None:
            self.dismiss(self.value)


class Filters(OptionList, inherit_bindings=False):
    """The list of saved filters; its keys are the window's."""


class ChooseFilter(ModalScreen[str | None]):
    """Choose among saved filters, save the present one, or delete one."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss(None)", "cancel"),
        Binding("s", "save", "save the present one"),
        Binding("d,delete", "delete", "delete"),
        Binding("enter", "use", "use"),
        Binding("j,down", "down"),
        Binding("k,up", "up"),
    ]

    def __init__(self, settings: Settings, present: str) -> None:
        super().__init__()
        self._settings, self._present = settings, present

    def compose(self) -> ComposeResult:
        with Vertical(classes="window") as window:
            window.border_title = Content("Saved filters")
            window.border_subtitle = Content("enter uses · s saves the present one · d deletes · esc cancels")
            yield Filters(id="filters", markup=False)
            yield Static(id="filters-note")

    def on_mount(self) -> None:
        self._fill()

    def _fill(self) -> None:
        options = self.query_one(OptionList)
        options.clear_options()
        for name, text in self._settings.filters.items():
            options.add_option(
                Option(Content.assemble(content(line(name), "bold"), "  ", content(line(text))), id=name)
            )
        options.highlighted = 0 if self._settings.filters else None
        options.display = bool(self._settings.filters)
        options.focus()
        nothing = "" if self._settings.filters else "None is saved yet. "
        present = line(self._present) or "all conflicts, by what teaches most"
        self.query_one("#filters-note", Static).update(content(f"{nothing}The present one: {present}", "$text-muted"))

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._settings.filters[str(event.option.id)])

    def action_use(self) -> None:
        self.query_one(OptionList).action_select()

    def action_save(self) -> None:
        def store(name: str | None) -> None:
            if name:
                self._settings.save_filter(name, self._present)
                self._fill()

        self.app.push_screen(Ask("Save the filter as", "", line(self._present) or "(no filter)"), store)

    def action_delete(self) -> None:
        options = self.query_one(OptionList)
        if options.highlighted is not None:
            self._settings.delete_filter(str(options.get_option_at_index(options.highlighted).id))
            self._fill()

    def action_down(self) -> None:
        self.query_one(OptionList).action_cursor_down()

    def action_up(self) -> None:
        self.query_one(OptionList).action_cursor_up()


class Reading(ModalScreen[None]):
    """A window of text to read."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter,question_mark,f1,h", "dismiss(None)", "close"),
        Binding("j,down", "scroll(1)"),
        Binding("k,up", "scroll(-1)"),
    ]

    def __init__(self, title: str, text: Content) -> None:
        super().__init__()
        self._title, self._text = title, text

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="window", can_focus=False) as window:
            window.border_title = content(self._title)
            window.border_subtitle = Content("esc closes")
            yield Static(self._text)

    def action_scroll(self, by: int) -> None:
        self.query_one(".window").scroll_relative(y=by, animate=False)


class History(Reading):
    """All that the rater did to a conflict."""

    def __init__(self, log: Sequence[Entry]) -> None:
        lines = [content(did(entry)) for entry in log]
        super().__init__("What you did here", Content("\n").join(lines) if lines else Content("Nothing yet."))


class Keys(Reading):
    """Every key of a screen, as they are set now."""

    def __init__(self, title: str, groups: Sequence[tuple[str, Sequence[tuple[str, Action]]]], width: int) -> None:
        lines: list[Content] = []
        for name, rows in groups:
            lines.append(content(name, "bold $text-accent"))
            lines += [
                _key(keys, action, min(width * 8 // 10 if width >= 120 else width * 96 // 100, MOST) - 8)
                for keys, action in rows
            ]
            lines.append(Content(""))
        lines.append(Content.styled("To change keys, give the names on the right a key in review.toml.", "$text-muted"))
        super().__init__(title, Content("\n").join(lines))


def _key(keys: str, action: Action, width: int) -> Content:
    space = width - KEYS - len(action.help) - len(action.id)
    name = " " * space + action.id if space > 1 else ""
    return Content.assemble((f"{keys:>{KEYS - 2}}  ", "bold $text-primary"), action.help, (name, "$text-muted"))
