"""Modal dialogs: text input, score input, the other conflicts of a cell, saved filters, history, list of keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.events import Click, Paste
from textual.screen import ModalScreen
from textual.style import Style
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from auditor.reports.number_format import pluralize
from auditor.review.session import CellDecision
from auditor.storage.conflict_status import ConflictKey
from auditor.storage.rating_log import RatingEntry
from auditor.tui.formatting import (
    describe_decision,
    describe_log_entry,
    draw_score_axis,
    format_answer,
    format_cell,
    format_score,
    parse_score,
    to_content,
    to_single_line,
)
from auditor.tui.key_bindings import Action
from auditor.tui.settings import ReviewSettings

SCORE_STEP = 0.05
AXIS_MARGIN = 3
"""Columns on each side of the scale, for its ends."""
CANCEL_HINT = ("esc cancels", "dismiss(None)")
ACCEPTABILITY_LABELS = ("never acceptable", "always acceptable")
TASK_RANGE_LABELS = ("lowest of the range", "highest")
KEY_COLUMN_WIDTH = 13
"""Width in characters of the column with the keys in the list of keys."""
MAX_WINDOW_WIDTH = 100
"""Largest width of a window in characters, as in `app.tcss`."""


def format_hints(*hints: tuple[str, str]) -> Content:
    """Return what keys of a dialog do, for its border; each pair is a text and the action that a click on it runs."""
    return Content(" · ").join(
        to_content(text).stylize(Style.from_meta({"@click": f"screen.{action}"})) for text, action in hints
    )


class LineInput(Input):
    """A field of one line that takes all lines of a pasted text; Textual's takes the first."""

    def on_paste(self, event: Paste) -> None:
        """Insert the pasted lines with spaces between them, in place of what is selected."""
        event.prevent_default()
        event.stop()
        self.replace(" ".join(filter(None, map(str.strip, event.text.splitlines()))), *self.selection)


class TextDialog(ModalScreen[str | None]):
    """Dialog for one line of text; returns None if it is cancelled."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "cancel")]

    def __init__(
        self, title: str, initial_text: str, hint: str, *, enter_verb: str = "saves", at_bottom: bool = False
    ) -> None:
        super().__init__(classes="-bottom" if at_bottom else None)
        self._title, self._initial_text, self._hint, self._enter_verb = title, initial_text, hint, enter_verb

    def compose(self) -> ComposeResult:
        with Vertical(classes="window") as window:
            window.border_title = to_content(self._title)
            window.border_subtitle = format_hints((f"enter {self._enter_verb}", "submit"), CANCEL_HINT)
            yield LineInput(to_single_line(self._initial_text), id="answer")
            yield Static(to_content(self._hint, "$text-muted"))

    @on(Input.Submitted)
    def action_submit(self) -> None:
        self.dismiss(self.query_one(Input).value.strip())


class ScoreDialog(ModalScreen[float | None]):
    """Dialog for a score in [-1, 1], typed or changed with the arrow keys; returns None if it is cancelled."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "cancel"),
        Binding("up,right", f"step({SCORE_STEP})", "more", priority=True),
        Binding("down,left", f"step(-{SCORE_STEP})", "less", priority=True),
    ]

    def __init__(
        self,
        initial_score: float | None,
        left_score: float,
        right_score: float,
        *,
        is_task_audit: bool = False,
        error: str = "",
    ) -> None:
        super().__init__()
        self._error = error
        self._end_labels = TASK_RANGE_LABELS if is_task_audit else ACCEPTABILITY_LABELS
        self._initial_text = "" if initial_score is None else f"{initial_score:.2f}"
        self._left_score, self._right_score = left_score, right_score

    def compose(self) -> ComposeResult:
        with Vertical(classes="window") as window:
            window.border_title = Content("Custom score")
            window.border_subtitle = format_hints(
                ("↓ less", f"step(-{SCORE_STEP})"),
                ("↑ more", f"step({SCORE_STEP})"),
                ("enter saves", "submit"),
                CANCEL_HINT,
            )
            if self._error:
                yield Static(to_content(f"✕ {self._error}", "$text-error"))
            yield Static(id="score-axis")
            # Without the comma, "0,1" would be "01", which is 1.
            yield Input(self._initial_text, id="answer", restrict=r"[-−+0-9.,]*", max_length=6)
            yield Static(id="score-error")

    def on_mount(self) -> None:
        self._update_score_axis()

    def on_resize(self) -> None:
        self.call_after_refresh(self._update_score_axis)

    @property
    def score(self) -> float | None:
        """The typed score; None while the text is not a number in [-1, 1]."""
        return parse_score(self.query_one(Input).value)

    def action_step(self, increment: float) -> None:
        """Add `increment` to the typed score, or to 0 if none is valid; the result is kept in [-1, 1]."""
        self._set_score((self.score or 0.0) + increment)

    def _set_score(self, score: float) -> None:
        """Put a score in the field, kept in [-1, 1]."""
        self.query_one(Input).value = f"{max(-1.0, min(1.0, score)):.2f}"

    @on(Click, "#score-axis")
    def _set_clicked_score(self, event: Click) -> None:
        """Put the score at the clicked place of the scale in the field."""
        axis = self.query_one("#score-axis")
        offset, last_column = event.get_content_offset(axis), axis.size.width - 2 * AXIS_MARGIN - 1
        if offset is not None and last_column > 0:
            self._set_score(2 * (offset.x - AXIS_MARGIN) / last_column - 1)

    @on(Input.Changed)
    def _update_score_axis(self) -> None:
        """Draw both sides and the typed score on the scale; say what is wrong while it is invalid."""
        score = self.score
        width = max(self.query_one("#score-axis").size.width - 2 * AXIS_MARGIN, 3)
        points = [(self._left_score, "◀"), (self._right_score, "▶")] + ([(score, "●")] if score is not None else [])
        axis = Content.assemble(
            ("−1 ", "$text-muted"), (draw_score_axis(width, points), "$primary"), (" +1", "$text-muted")
        )
        self.query_one("#score-axis", Static).update(axis)
        if score is None and self.query_one(Input).value:
            self._show_problem()
            return
        legend = f"◀ left   ● yours   ▶ right\n−1 {self._end_labels[0]}, +1 {self._end_labels[1]}"
        self.query_one("#score-error", Static).update(to_content(legend, "$text-muted"))

    def _show_problem(self) -> None:
        """Say what can be entered."""
        problem = f"✕ Enter a number from -1 ({self._end_labels[0]}) to 1 ({self._end_labels[1]})"
        self.query_one("#score-error", Static).update(to_content(problem, "$text-error"))

    @on(Input.Submitted)
    def action_submit(self) -> None:
        """Return the score; without a valid one, say what is missing."""
        if self.score is not None:
            self.dismiss(self.score)
        else:
            self._show_problem()


class FilterList(OptionList, inherit_bindings=False):
    """The list of saved filters; without key bindings of its own, since the dialog has them."""


class FilterDialog(ModalScreen[str | None]):
    """Dialog to choose or delete a saved filter, or to save the current one; returns the chosen filter or None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss(None)", "cancel"),
        Binding("s", "save", "save the current filter"),
        Binding("d,delete", "delete", "delete"),
        Binding("enter", "use", "use"),
        Binding("j,down", "down"),
        Binding("k,up", "up"),
    ]

    def __init__(self, settings: ReviewSettings, current_filter: str) -> None:
        super().__init__()
        self._settings, self._current_filter = settings, current_filter

    def compose(self) -> ComposeResult:
        with Vertical(classes="window") as window:
            window.border_title = Content("Saved filters")
            window.border_subtitle = format_hints(
                ("enter uses", "use"), ("s saves the current filter", "save"), ("d deletes", "delete"), CANCEL_HINT
            )
            yield FilterList(id="filters", markup=False)
            yield Static(id="filters-note")

    def on_mount(self) -> None:
        self._update_list()

    def _update_list(self) -> None:
        """Fill the list with the saved filters, and name the current one below it."""
        options = self.query_one(OptionList)
        options.clear_options()
        for name, text in self._settings.filters.items():
            options.add_option(
                Option(
                    Content.assemble(to_content(to_single_line(name), "bold"), "  ", to_content(to_single_line(text))),
                    id=name,
                )
            )
        options.highlighted = 0 if self._settings.filters else None
        options.display = bool(self._settings.filters)
        options.focus()
        empty_notice = "" if self._settings.filters else "No filter is saved yet. "
        current_filter = to_single_line(self._current_filter) or "all conflicts, most informative first"
        self.query_one("#filters-note", Static).update(
            to_content(f"{empty_notice}Current filter: {current_filter}", "$text-muted")
        )

    @on(OptionList.OptionSelected)
    def action_use(self) -> None:
        """Return the filter under the cursor."""
        if self._selected_name is not None:
            self.dismiss(self._settings.filters[self._selected_name])

    @property
    def _selected_name(self) -> str | None:
        """Name of the filter under the cursor; None if there is none."""
        option = self.query_one(OptionList).highlighted_option
        return None if option is None else option.id

    def action_save(self) -> None:
        """Ask for a name, and save the current filter under it."""

        def store(name: str | None) -> None:
            if name:
                self._settings.save_filter(name, self._current_filter)
                self._update_list()

        self.app.push_screen(
            TextDialog("Name of the filter", "", to_single_line(self._current_filter) or "(no filter)"), store
        )

    def action_delete(self) -> None:
        """Delete the filter under the cursor."""
        if self._selected_name is not None:
            self._settings.delete_filter(self._selected_name)
            self._update_list()

    def action_down(self) -> None:
        self.query_one(OptionList).action_cursor_down()

    def action_up(self) -> None:
        self.query_one(OptionList).action_cursor_up()


class TextWindow(ModalScreen[str | None]):
    """A scrollable window with a text; returns None."""

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
            window.border_title = to_content(self._title)
            window.border_subtitle = format_hints(("esc closes", "dismiss(None)"))
            yield Static(self._text)

    def action_scroll(self, lines: int) -> None:
        self.query_one(".window").scroll_relative(y=lines, animate=False)


class HistoryWindow(TextWindow):
    """All of the rater's actions on a conflict."""

    def __init__(self, entries: Sequence[RatingEntry]) -> None:
        lines = [to_content(describe_log_entry(entry)) for entry in entries]
        super().__init__(
            "Your actions", Content("\n").join(lines) if lines else Content("You have done nothing here yet.")
        )


class KeysWindow(TextWindow):
    """The configured keys of every action of a screen; returns the id of the action that was clicked."""

    def __init__(
        self, title: str, action_groups: Sequence[tuple[str, Sequence[tuple[str, Action]]]], width: int
    ) -> None:
        lines: list[Content] = []
        for group_name, rows in action_groups:
            lines.append(to_content(group_name, "bold $text-accent"))
            lines += [
                _format_key_row(
                    keys, action, min(width * 8 // 10 if width >= 120 else width * 96 // 100, MAX_WINDOW_WIDTH) - 8
                )
                for keys, action in rows
            ]
            lines.append(Content(""))
        lines.append(
            Content.styled("To change keys, assign them to the names on the right in review.toml.", "$text-muted")
        )
        super().__init__(title, Content("\n").join(lines))


def _format_key_row(keys: str, action: Action, width: int) -> Content:
    """Return the keys, the help and, on the right, the id of an action; on a line of its own if `width` has no room."""
    padding_width = width - KEY_COLUMN_WIDTH - len(action.help) - len(action.id)
    id_column = " " * padding_width + action.id if padding_width > 1 else f"\n{action.id:>{width}}"
    return Content.assemble(
        (f"{keys:>{KEY_COLUMN_WIDTH - 2}}  ", "bold $text-primary"),
        (action.help, Style.from_meta({"@click": f"screen.dismiss('{action.id}')"})),
        (id_column, "$text-muted"),
    )


class CellDialog(ModalScreen[bool | None]):
    """Dialog to settle all conflicts of a cell (True) or only the open one (False); None goes back to the score."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "dismiss(True)", "all"),
        Binding("n", "dismiss(False)", "only this one"),
        Binding("escape", "dismiss(None)", "back"),
        Binding("j,down", "scroll(1)"),
        Binding("k,up", "scroll(-1)"),
    ]

    def __init__(self, key: ConflictKey, score: float, following: Sequence[CellDecision]) -> None:
        super().__init__()
        lines = [
            Content.assemble(to_content(f"• {conflict}: "), to_content(decision, "bold $text-primary"))
            for conflict, decision in describe_following(following)
        ]
        explanation = to_content(describe_settlement(key, score, len(following)), "$text-muted")
        self._text = Content("\n").join([*lines, Content(""), explanation])
        self._n_conflicts = len(following) + 1

    def compose(self) -> ComposeResult:
        with Vertical(classes="window") as window:
            window.border_title = Content("Settle the whole cell?")
            window.border_subtitle = format_hints(
                (f"y saves all {self._n_conflicts}", "dismiss(True)"),
                ("n saves only this one", "dismiss(False)"),
                ("esc goes back", "dismiss(None)"),
            )
            with VerticalScroll(id="cell-lines", can_focus=False):
                yield Static(self._text)

    def action_scroll(self, lines: int) -> None:
        self.query_one("#cell-lines").scroll_relative(y=lines, animate=False)


def describe_settlement(key: ConflictKey, score: float, n_following: int) -> str:
    """Say what a custom score does with the other conflicts of a cell."""
    return (
        f"Your score {format_score(score)} for {format_cell(key.country, key.topic)} also answers "
        f"{pluralize(n_following, 'other conflict')}. Where only one side is within the conflict threshold of your "
        "score and has its sign, that side is chosen. Elsewhere your score is saved. Nothing is saved yet."
    )


def describe_following(following: Sequence[CellDecision]) -> Iterator[tuple[str, str]]:
    """Yield each of the other conflicts of a cell, and the decision on it that a custom score implies.

    They show scores only, which the list of conflicts shows too, and the sides in the rater's order.
    """
    for other in following:
        left = format_answer(other.row.score_left, other.row.answer_left)
        right = format_answer(other.row.score_right, other.row.answer_right)
        yield f"{other.row.kind.label}, left {left}, right {right}", describe_decision(other.decision, other.score)
