"""What is drawn, and the one door by which texts of unknown origin reach the screen.

`prose` and `line` are the only ways from a stored string to a widget: they show what would act on a terminal, and
`Content` takes the result as it stands, without markup. Every sign is a glyph with a word; colour only repeats it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size
from textual.content import Content

from auditor.domain import Decision, Ruling
from auditor.storage.conflict_status import ConflictStatus
from auditor.text_safety import escape_invisible

ELLIPSIS = "…"


class StatusSymbol(NamedTuple):
    """A glyph, the word that says the same, and a style that repeats it."""

    glyph: str
    label: str
    style: str

    def with_text(self, text: str) -> Content:
        """The sign in front of some words."""
        return Content.styled(to_single_line(f"{self.glyph} {text}"), self.style)


STATUS_SYMBOLS = {
    ConflictStatus.OPEN: StatusSymbol("○", "open", "$text-warning"),
    ConflictStatus.DISPUTED: StatusSymbol("≠", "disputed", "$text-error"),
    ConflictStatus.MAJORITY: StatusSymbol("◆", "judges", "$text-secondary"),
    ConflictStatus.PERSON: StatusSymbol("●", "people", "$text-success"),
}
STATUS_LABELS = {
    ConflictStatus.OPEN: "open",
    ConflictStatus.DISPUTED: "people disagree",
    ConflictStatus.MAJORITY: "settled by the judges",
    ConflictStatus.PERSON: "settled by people",
}
VERDICT_SYMBOLS = {
    Ruling.VALID: StatusSymbol("✓", "VALID", "$text-success"),
    Ruling.INVALID: StatusSymbol("✕", "INVALID", "$text-error"),
}
DECISION_SYMBOLS = {
    None: StatusSymbol("·", "", "$text-muted"),
    Decision.LEFT: StatusSymbol("◀", "left", "$text-success"),
    Decision.RIGHT: StatusSymbol("▶", "right", "$text-success"),
    Decision.BOTH: StatusSymbol("◆", "both", "$text-success"),
    Decision.NEITHER: StatusSymbol("✕", "neither", "$text-success"),
    Decision.SCORE: StatusSymbol("±", "score", "$text-success"),
    Decision.SKIP: StatusSymbol("–", "skipped", "$text-muted"),
}


def to_multiline(text: str) -> str:
    """A stored text as it may be shown on several lines."""
    return escape_invisible(text).replace("\t", "    ")


def to_single_line(text: str) -> str:
    """A stored text as it may be shown on one line."""
    return " ".join(escape_invisible(text).split())


def fit_width(text: str, width: int) -> str:
    """One line of exactly `width` columns; what is cut ends in an ellipsis."""
    line = to_single_line(text)
    if cell_len(line) <= width:
        return set_cell_size(line, width)
    return set_cell_size(line, max(width - 1, 0)) + ELLIPSIS[: max(width, 0)]


def to_content(text: str, style: str = "") -> Content:
    """A stored text as content for a widget."""
    return Content.styled(to_multiline(text), style) if style else Content(to_multiline(text))


def highlight_spans(text: str, spans: Iterable[tuple[int, int]], style: str) -> Content:
    """A stored text with some spans of it, as characters of the text, in a style."""
    pieces: list[Content] = []
    end = 0
    for start, stop in spans:
        pieces += [to_content(text[end:start]), to_content(text[start:stop], style)]
        end = stop
    return Content("").join([*pieces, to_content(text[end:])])


def format_score(score: float) -> str:
    """A score with its sign, as in +0.62."""
    return f"{score:+.2f}".replace("-", "−")


def format_answer(score: float | None, answer: str | None) -> str:
    """What a side says: its answer to an item of a task, or its score."""
    return to_single_line(answer) if answer is not None else "no score" if score is None else format_score(score)


def format_cell(country: str, topic: str) -> str:
    """Where a conflict is: the topic and its country, or the item."""
    return f"{to_single_line(topic)} in {to_single_line(country)}" if country else to_single_line(topic)


def draw_progress_bar(share: float | None, width: int) -> str:
    """A bar of a share in [0, 1]; dots where there is none to show."""
    if share is None:
        return "·" * width
    full = round(share * width)
    return "━" * full + "╌" * (width - full)


def draw_score_axis(width: int, points: Sequence[tuple[float, str]]) -> str:
    """The scale from -1 to 1 on `width` columns, with its middle marked and each point's glyph where it lies.

    Several points of one glyph in one place are counted there (2 to 9, then +); of different glyphs the last is seen.
    """
    if width < 3:
        return ""
    cells = ["─"] * width
    cells[(width - 1) // 2] = "┼"
    point_counts: dict[tuple[int, str], int] = {}
    for value, glyph in points:
        column = round((max(-1.0, min(1.0, value)) + 1) / 2 * (width - 1))
        count = point_counts[column, glyph] = point_counts.get((column, glyph), 0) + 1
        cells[column] = glyph if count == 1 else str(count) if count < 10 else "+"
    return "".join(cells)


def draw_interval(width: int, value: float, low: float | None, high: float | None, *, scale_min: float) -> str:
    """A value with its interval on a scale from `least` to 1, in `width` columns; a zero inside is marked."""
    cells = ["·"] * width

    def column(x: float) -> int:
        return round((max(scale_min, min(1.0, x)) - scale_min) / (1 - scale_min) * (width - 1))

    if scale_min < 0:
        cells[column(0.0)] = "┼"
    if low is not None and high is not None:
        for position in range(column(low), column(high) + 1):
            cells[position] = "━"
    cells[column(value)] = "●"
    return "".join(cells)
