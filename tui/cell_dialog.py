"""Dialog that shows what a custom score implies for the other conflicts of its cell, before anything is saved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from auditor.reports.number_format import pluralize
from auditor.review.cell_settlement import CellDecision
from auditor.storage.conflict_status import ConflictKey
from auditor.tui.dialogs import format_hints
from auditor.tui.formatting import format_answer, format_cell, format_score, to_content
from auditor.tui.wording import describe_decision


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
