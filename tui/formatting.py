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
from auditor.storage.conflict_status import Standing
from auditor.text_safety import visible

ELLIPSIS = "…"


class Sign(NamedTuple):
    """A glyph, the word that says the same, and a style that repeats it."""

    glyph: str
    word: str
    style: str

    def says(self, words: str) -> Content:
        """The sign in front of some words."""
        return Content.styled(line(f"{self.glyph} {words}"), self.style)


STANDINGS = {
    Standing.OPEN: Sign("○", "open", "$text-warning"),
    Standing.DISPUTED: Sign("≠", "disputed", "$text-error"),
    Standing.MAJORITY: Sign("◆", "judges", "$text-secondary"),
    Standing.PERSON: Sign("●", "people", "$text-success"),
}
STANDING_WORDS = {
    Standing.OPEN: "open",
    Standing.DISPUTED: "people disagree",
    Standing.MAJORITY: "settled by the judges",
    Standing.PERSON: "settled by people",
}
RULINGS = {Ruling.VALID: Sign("✓", "VALID", "$text-success"), Ruling.INVALID: Sign("✕", "INVALID", "$text-error")}
DECISIONS = {
    None: Sign("·", "", "$text-muted"),
    Decision.LEFT: Sign("◀", "left", "$text-success"),
    Decision.RIGHT: Sign("▶", "right", "$text-success"),
    Decision.BOTH: Sign("◆", "both", "$text-success"),
    Decision.NEITHER: Sign("✕", "neither", "$text-success"),
    Decision.SCORE: Sign("±", "score", "$text-success"),
    Decision.SKIP: Sign("–", "skipped", "$text-muted"),
}


def prose(text: str) -> str:
    """A stored text as it may be shown on several lines."""
    return visible(text).replace("\t", "    ")


def line(text: str) -> str:
    """A stored text as it may be shown on one line."""
    return " ".join(visible(text).split())


def fit(text: str, width: int) -> str:
    """One line of exactly `width` columns; what is cut ends in an ellipsis."""
    shown = line(text)
    if cell_len(shown) <= width:
        return set_cell_size(shown, width)
    return set_cell_size(shown, max(width - 1, 0)) + ELLIPSIS[: max(width, 0)]


def content(text: str, style: str = "") -> Content:
    """A stored text as content for a widget."""
    return Content.styled(prose(text), style) if style else Content(prose(text))


def marked(text: str, spans: Iterable[tuple[int, int]], style: str) -> Content:
    """A stored text with some spans of it, as characters of the text, in a style."""
    pieces: list[Content] = []
    end = 0
    for start, stop in spans:
        pieces += [content(text[end:start]), content(text[start:stop], style)]
        end = stop
    return Content("").join([*pieces, content(text[end:])])


def signed(score: float) -> str:
    """A score with its sign, as in +0.62."""
    return f"{score:+.2f}".replace("-", "−")


def position(score: float | None, answer: str | None) -> str:
    """What a side says: its answer to an item of a task, or its score."""
    return line(answer) if answer is not None else "no score" if score is None else signed(score)


def whereabouts(country: str, topic: str) -> str:
    """Where a conflict is: the topic and its country, or the item."""
    return f"{line(topic)} in {line(country)}" if country else line(topic)


def bar(share: float | None, width: int) -> str:
    """A bar of a share in [0, 1]; dots where there is none to show."""
    if share is None:
        return "·" * width
    full = round(share * width)
    return "━" * full + "╌" * (width - full)


def axis(width: int, points: Sequence[tuple[float, str]]) -> str:
    """The scale from -1 to 1 on `width` columns, with its middle marked and each point's glyph where it lies.

    Several points of one glyph in one place are counted there (2 to 9, then +); of different glyphs the last is seen.
    """
    if width < 3:
        return ""
    cells = ["─"] * width
    cells[(width - 1) // 2] = "┼"
    seen: dict[tuple[int, str], int] = {}
    for value, glyph in points:
        column = round((max(-1.0, min(1.0, value)) + 1) / 2 * (width - 1))
        count = seen[column, glyph] = seen.get((column, glyph), 0) + 1
        cells[column] = glyph if count == 1 else str(count) if count < 10 else "+"
    return "".join(cells)


def interval(width: int, value: float, low: float | None, high: float | None, *, least: float) -> str:
    """A value with its interval on a scale from `least` to 1, in `width` columns; a zero inside is marked."""
    cells = ["·"] * width

    def column(x: float) -> int:
        return round((max(least, min(1.0, x)) - least) / (1 - least) * (width - 1))

    if least < 0:
        cells[column(0.0)] = "┼"
    if low is not None and high is not None:
        for place in range(column(low), column(high) + 1):
            cells[place] = "━"
    cells[column(value)] = "●"
    return "".join(cells)
