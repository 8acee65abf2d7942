"""Format scores, symbols and plots for the screen, and sanitize stored texts before they are shown.

Every stored text must pass `to_multiline` or `to_single_line` before a widget shows it: they escape control and
invisible characters. `Content` then shows it without interpreting markup. Every symbol has a label that says the same,
so that colour is never the only cue.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size
from textual.content import Content

from auditor.domain import Decision, Outcome, Ruling
from auditor.storage.conflict_status import ConflictStatus
from auditor.text_safety import escape_invisible

ELLIPSIS = "…"


class StatusSymbol(NamedTuple):
    """A glyph with a label and a style of the same meaning."""

    glyph: str
    label: str
    style: str

    def with_text(self, text: str) -> Content:
        """Return the glyph followed by a text, in the symbol's style."""
        return Content.styled(to_single_line(f"{self.glyph} {text}"), self.style)


STATUS_SYMBOLS = {
    ConflictStatus.OPEN: StatusSymbol("○", "open", "$text-warning"),
    ConflictStatus.DISPUTED: StatusSymbol("≠", "contested", "$text-error"),
    ConflictStatus.MAJORITY: StatusSymbol("◆", "settled", "$text-secondary"),
    ConflictStatus.PERSON: StatusSymbol("●", "settled", "$text-success"),
}
STATUS_LABELS = {
    ConflictStatus.OPEN: "open",
    ConflictStatus.DISPUTED: "contested",
    ConflictStatus.MAJORITY: "settled by judges",
    ConflictStatus.PERSON: "decided by people",
}
VERDICT_SYMBOLS = {
    Ruling.VALID: StatusSymbol("✓", "VALID", "$text-success"),
    Ruling.INVALID: StatusSymbol("✕", "INVALID", "$text-error"),
}
DECISION_SYMBOLS: dict[Decision | None, StatusSymbol] = {
    None: StatusSymbol("·", "", "$text-muted"),
    **{
        decision: StatusSymbol(
            decision.spec.glyph,
            decision.spec.label,
            "$text-success" if decision.resolves_conflict else "$text-muted",
        )
        for decision in Decision
    },
}


def to_multiline(text: str) -> str:
    """Escape control and invisible characters of a stored text, but keep its lines; tabs become four spaces."""
    return escape_invisible(text).replace("\t", "    ")


def to_single_line(text: str) -> str:
    """Escape control and invisible characters of a stored text, and join its lines with single spaces."""
    return " ".join(escape_invisible(text).split())


def fit_width(text: str, width: int) -> str:
    """Pad or cut a text to exactly `width` columns on one line; a cut text ends in an ellipsis."""
    line = to_single_line(text)
    if cell_len(line) <= width:
        return set_cell_size(line, width)
    return set_cell_size(line, max(width - 1, 0)) + ELLIPSIS[: max(width, 0)]


def to_content(text: str, style: str = "") -> Content:
    """Convert a stored text to content for a widget, escaped and without markup."""
    return Content.styled(to_multiline(text), style) if style else Content(to_multiline(text))


def highlight_spans(text: str, spans: Iterable[tuple[int, int]], style: str) -> Content:
    """Return a stored text with some spans in a style; spans are (start, stop) in characters, sorted and apart."""
    pieces: list[Content] = []
    end = 0
    for start, stop in spans:
        pieces += [to_content(text[end:start]), to_content(text[start:stop], style)]
        end = stop
    return Content("").join([*pieces, to_content(text[end:])])


def format_score(score: float) -> str:
    """Format a score with sign and two decimals, as in +0.62; the minus is U+2212."""
    return f"{score:+.2f}".replace("-", "−")


def format_answer(score: float | None, answer: str | None) -> str:
    """Format a side's answer to an item of a task, or its score."""
    return to_single_line(answer) if answer is not None else "no score" if score is None else format_score(score)


def format_outcome(outcome: Outcome) -> str:
    """Format the outcome of a sample, as in "refused" or "rate limited"."""
    return outcome.value.replace("_", " ")


def split_norms(text: str, *, has_norms: bool) -> list[tuple[str, str]]:
    """Split a sample's text into parts, each with its label; one part without a label if the text has no norms.

    The labels are not in the text: a model gives norms and reasoning separately, and they are stored as paragraphs.
    """
    norms, separator, reasoning = text.partition("\n\n")
    return [("Norms", norms), ("Reasoning", reasoning)] if has_norms and separator else [("", text)]


def format_cell(country: str, topic: str) -> str:
    """Format a conflict's topic and country, or its item for a task."""
    return f"{to_single_line(topic)} in {to_single_line(country)}" if country else to_single_line(topic)


def draw_progress_bar(share: float | None, width: int) -> str:
    """Draw a bar for a share in [0, 1]; dots if the share is None."""
    if share is None:
        return "·" * width
    full = round(share * width)
    return "━" * full + "╌" * (width - full)


def draw_score_axis(width: int, points: Sequence[tuple[float, str]]) -> str:
    """Draw the scale from -1 to 1 on `width` columns, with its middle marked and a glyph for each point.

    Several points with the same glyph in one column appear as their number (2 to 9, then +); of different glyphs in one
    column, the last one is shown.
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
    """Draw a value with its interval on a scale from `scale_min` to 1, in `width` columns; 0 is marked if inside."""
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
