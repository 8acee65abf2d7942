"""Preview of the conflict under the cursor, shown next to the queue on wide terminals."""

from __future__ import annotations

from textual.content import Content

from auditor.domain import Decision
from auditor.review.item import ReviewItem, ReviewSide
from auditor.tui.formatting import DECISION_SYMBOLS, draw_score_axis, format_answer, to_content, to_single_line
from auditor.tui.side_panel import SAMPLE_GLYPH, sort_samples
from auditor.tui.wording import EFFECT_REASONS, describe_decision

SCORE_AXIS_WIDTH = 35
MAX_EXCERPT_CHARS = 600


def render_preview(item: ReviewItem) -> Content:
    """Render a short version of a conflict: the question, both sides, and the rater's decision."""
    parts = [
        Content.assemble(
            to_content(to_single_line(item.key.topic), "bold $text-accent"),
            to_content(f" in {to_single_line(item.key.country)}" if item.key.country else "", "bold"),
            "\n",
            to_content(to_single_line(item.question) if item.key.country else item.question, "italic $text-muted"),
        ),
        _render_side(Decision.LEFT, item.left),
        _render_side(Decision.RIGHT, item.right),
        *([] if item.effect is None else [to_content(EFFECT_REASONS[item.effect], "$text-muted")]),
        _render_rating(item),
    ]
    return Content("\n\n").join(parts)


def _render_side(decision: Decision, side: ReviewSide) -> Content:
    """Render a side's answer, its samples' scores on the scale, and the start of its first usable text.

    Args:
        decision: the one that upholds this side; its key and label are the heading.
    """
    scores = [(sample.score, SAMPLE_GLYPH) for sample in side.samples if sample.score is not None]
    usable_samples = [
        sample
        for sample in sort_samples(side)
        if sample.text and (sample.score is not None or sample.answer is not None)
    ]
    text = usable_samples[0].text if usable_samples and usable_samples[0].text else "no text"
    excerpt = text if len(text) <= MAX_EXCERPT_CHARS else text[:MAX_EXCERPT_CHARS] + "…"
    heading = f"{decision.spec.keys} {decision.spec.label}"
    score_axis = Content.assemble(
        ("−1 ", "$text-muted"),
        (draw_score_axis(SCORE_AXIS_WIDTH, scores), "$text-primary"),
        (" +1", "$text-muted"),
        "\n",
    )
    return Content.assemble(
        to_content(f"{heading}  {format_answer(side.score, side.answer)}", "bold $text-primary"),
        "\n",
        score_axis if side.score is not None else "",
        to_content(excerpt),
    )


def _render_rating(item: ReviewItem) -> Content:
    """Render the rater's own decision, flag and note."""
    if item.decision is None or not item.decision.resolves_conflict:
        pieces = [Content.styled("not decided by you", "$text-muted")]
    else:
        pieces = [DECISION_SYMBOLS[item.decision].with_text(describe_decision(item.decision, item.row.score))]
    if item.row.flagged:
        pieces.append(Content.styled("⚑ flagged", "$text-error"))
    if item.row.note:
        pieces.append(to_content(f"✎ {to_single_line(item.row.note)}", "$text-accent"))
    return Content("  ·  ").join(pieces)
