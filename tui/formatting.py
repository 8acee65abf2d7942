"""Format scores, symbols, plots, decisions and log entries for the screen, and sanitize stored texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len, set_cell_size
from textual.content import Content

from auditor.domain import Decision, Outcome, RatingAction, Ruling
from auditor.domain.decisions import REVIEW_ASPECTS
from auditor.domain.labels import LabelUnit
from auditor.reports.number_format import pluralize
from auditor.review.item import ReviewItem
from auditor.storage.conflict_status import ConflictEffect, ConflictStatus
from auditor.storage.rating_log import RatingEntry
from auditor.text_safety import escape_invisible

if TYPE_CHECKING:
    from auditor.review.labelling import OpenUnit
    from auditor.review.rater_agreement import PairAgreement


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


def parse_score(text: str) -> float | None:
    """Parse a score as a rater types it, with a decimal point or comma; None unless it is a number in [-1, 1]."""
    try:
        score = float(text.replace("−", "-").replace(",", "."))
    except ValueError:
        return None
    return score if -1 <= score <= 1 else None


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
    """Draw a bar for a share in [0, 1], full or empty only if the share is; dots if it is None."""
    if share is None:
        return "·" * width
    full = round(share * width) if share in (0, 1) else min(max(round(share * width), 1), width - 1)
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


NOTHING_LEFT_TO_LABEL = "You have labelled every text of the sample that is left to you."


def describe_decision(decision: Decision, score: float | None = None) -> str:
    """Describe a decision about the sides as shown, with its custom score if it has one."""
    score_note = f" {format_score(score)}" if decision.needs_score and score is not None else ""
    return decision.spec.phrase + score_note


def explain_missing_scores(item: ReviewItem) -> str:
    """Say what a rater can do instead of giving a score, for sides that have none."""
    *first, last = [decision.value for decision in item.possible_decisions if decision.resolves_conflict]
    return f"choose {', '.join(first)} or {last}, or write a note."


def describe_undo(act: RatingAction, entry: RatingEntry | None) -> str:
    """Describe the state after an undo or redo; `entry` is None if there was nothing to undo or redo."""
    if entry is None:
        return f"There is nothing to {act}."
    rating = entry.rating
    verb = "Undone" if act is RatingAction.UNDO else "Redone"
    state_parts = [describe_decision(rating.decision, rating.score)]
    state_parts += ["flagged"] * rating.flagged + ["with a note"] * bool(rating.note)
    following_note = (
        f" This includes {pluralize(entry.n_following, 'other conflict')} of the cell." if entry.n_following else ""
    )
    return f"{verb}. {format_cell(*rating.cell)} is now: {', '.join(state_parts)}.{following_note}"


EFFECT_LABELS = {
    ConflictEffect.HIGH: "can change who is ahead",
    ConflictEffect.SOME: "may change who is ahead",
    ConflictEffect.NONE: "cannot change who is ahead",
}
EFFECT_REASONS = {
    ConflictEffect.HIGH: "Both sides have been right about equally often. This decision can change which is ahead.",
    ConflictEffect.SOME: "One side has been right more often. The open conflicts can still change which is ahead.",
    ConflictEffect.NONE: "One side has been right so often that the open conflicts cannot change which is ahead.",
}


def describe_open_next(is_on: bool) -> str:
    """Describe what happens after a decision, for the setting `open_next`."""
    if is_on:
        return "After a decision, the next conflict opens. Authors, verdicts and survey stay hidden."
    return "After a decision, this conflict stays open and shows authors, verdicts and survey."


def describe_open_next_unit(is_on: bool) -> str:
    """Describe what happens after a label, for the setting `open_next`."""
    return "After a label, the next text opens." if is_on else "After a label, this text stays open."


def describe_label(opened: OpenUnit) -> str:
    """Describe a rater's label on a unit: the choice, and the answers on aspects if any."""
    label = opened.choice.label if opened.choice is not None else "no label"
    answers = opened.draft.aspects
    aspects = [
        f"{aspect.label} {'yes' if answers[aspect.name] else 'no'}"
        for aspect in REVIEW_ASPECTS
        if aspect.name in answers
    ]
    return f"{label} ({', '.join(aspects)})" if aspects else label


def describe_missing(missing: Mapping[LabelUnit, str]) -> str:
    """Say how many units cannot be shown and why; without their names, which are hidden from raters."""
    reasons = " ".join(dict.fromkeys(missing.values()))
    return f"{pluralize(len(missing), 'text')} of the sample cannot be shown, and stay unlabelled. {reasons}"


def describe_unsaved_drafts(n_units: int) -> str:
    """Say that aspects or notes of units are not saved, and when they would be."""
    units = pluralize(n_units, "text")
    return f"Not saved: the aspects or the note of {units} without a label. They are saved with a label."


def describe_own_agreement(agreement: PairAgreement, rater: str) -> str:
    """Describe a rater's agreement with another one, with its interval for these units if there is no other."""
    share = agreement.raw_agreement
    other = agreement.rater_b if agreement.rater_a == rater else agreement.rater_a
    if share.value is None:
        return ""
    low, high = (share.ci_low, share.ci_high) if share.ci_low is not None else (share.cells_ci_low, share.cells_ci_high)
    interval = "" if low is None or high is None else f"95% CI {low:.0%} to {high:.0%}, "
    return f"you agree with {to_single_line(other)} on {share.value:.0%} ({interval}{pluralize(share.n, 'text')})"


def describe_log_entry(entry: RatingEntry) -> str:
    """Describe a row of the rating log: time, action, duration, and whether it was blind."""
    rating = entry.rating
    action_text = {
        RatingAction.DECIDE: describe_decision(rating.decision, rating.score)
        if rating.decision.resolves_conflict
        else rating.decision.spec.label,
        RatingAction.NOTE: f"note: {to_single_line(rating.note)}" if rating.note else "note removed",
        RatingAction.FLAG: "flagged" if rating.flagged else "flag removed",
        RatingAction.REVEAL: "hidden evidence shown",
        RatingAction.FOLLOW: f"settled with another conflict of this cell: "
        f"{describe_decision(rating.decision, rating.score)}",
        RatingAction.UNDO: f"undone; now: {describe_decision(rating.decision, rating.score)}",
        RatingAction.REDO: f"redone; now: {describe_decision(rating.decision, rating.score)}",
    }[rating.act]
    blind_note = "" if not rating.shown else " (not blind)"
    duration_note = "" if rating.duration_s is None or rating.duration_s < 1 else f" after {rating.duration_s:.0f} s"
    return f"{rating.decided_at:%Y-%m-%d %H:%M:%S} {action_text}{duration_note}{blind_note}"
