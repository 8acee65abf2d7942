"""Panel of the evidence that is hidden until the rater decides: survey, verdicts and justifications."""

from __future__ import annotations

from textual.content import Content

from auditor.domain import Outcome, Ruling, Verdict
from auditor.domain.review_aspects import REVIEW_ASPECTS
from auditor.reports.number_format import pluralize
from auditor.review.item import ReviewItem, ReviewSide
from auditor.tui.formatting import VERDICT_SYMBOLS, format_score, to_content, to_single_line
from auditor.tui.wording import describe_decision

HIDDEN_NOTICE = """Hidden until you decide

Authors, the judges' verdicts and the survey's result are hidden, so that they do not influence your decision. v shows \
them; this is logged, and a decision after that does not count as blind.
"""
WITHHELD_NOTICE = """Still hidden

Your decision is saved. v shows authors, the judges' verdicts and the survey's result. You can change your decision; \
your first decision is kept.
"""


def render_evidence(item: ReviewItem) -> Content:
    """Render the evidence panel; before the rater has decided, a notice that the evidence is hidden."""
    if not item.revealed:
        has_decided = item.decision is not None and item.decision.resolves_conflict
        heading, _, explanation = (WITHHELD_NOTICE if has_decided else HIDDEN_NOTICE).partition("\n")
        return Content.assemble(*_render_task_question(item), (heading, "bold"), "\n", (explanation, "$text-muted"))
    vote_counts = f"Judges  left {_format_vote_counts(item.left)} · right {_format_vote_counts(item.right)}"
    parts = [
        Content.assemble(
            *_render_task_question(item), _render_ground_truth(item), "\n", (vote_counts[:6], "bold"), vote_counts[6:]
        )
    ]
    if item.first_decision is not None:
        parts.append(
            to_content(
                f"First decision: {describe_decision(item.first_decision)}. Both are kept.",
                "$text-accent",
            )
        )
    parts += [_render_side_verdicts("left", item.left), _render_side_verdicts("right", item.right)]
    return Content("\n\n").join(parts)


def _render_task_question(item: ReviewItem) -> list[Content]:
    """Render the full text of a task's item, since the header of the screen only shows one line; empty for a survey."""
    return [] if item.key.country else [to_content(item.question), Content("\n\n")]


def _render_ground_truth(item: ReviewItem) -> Content:
    """Render the survey's score, or the correct answer of a task's item."""
    if item.key.country:
        return _render_survey_score(item)
    if item.correct_answer is None:
        return Content.assemble(("◆ Correct answer ", "bold"), ("not known", "$text-muted"))
    correct_sides = [
        name for name, side in (("left", item.left), ("right", item.right)) if side.answer == item.correct_answer
    ]
    side_note = (
        f" · {correct_sides[0]} gives it"
        if len(correct_sides) == 1
        else ""
        if correct_sides
        else " · neither side gives it"
    )
    return Content.assemble(
        ("◆ Correct answer ", "bold"), to_content(to_single_line(item.correct_answer)), (side_note, "$text-accent")
    )


def _render_survey_score(item: ReviewItem) -> Content:
    """Render the survey's score and the distance of each side's score from it."""
    if item.survey is None or item.survey.score is None:
        return Content.assemble(("◆ Survey ", "bold"), ("the survey did not ask this in this country", "$text-muted"))
    survey_score = item.survey.score
    sample_size_note = "" if item.survey.n is None else f" ({pluralize(item.survey.n, 'respondent')})"
    left_distance, right_distance = (abs((side.score or 0.0) - survey_score) for side in (item.left, item.right))
    nearer_side_text = (
        "both sides are equally close"
        if left_distance == right_distance
        else f"{'left' if left_distance < right_distance else 'right'} is closer"
    )
    return Content.assemble(
        ("◆ Survey ", "bold"),
        f"{format_score(survey_score)}{sample_size_note} · ",
        (f"{nearer_side_text} (distance: left {left_distance:.2f}, right {right_distance:.2f})", "$text-accent"),
    )


def _format_vote_counts(side: ReviewSide) -> str:
    """Format the number of VALID verdicts out of all verdicts with a ruling."""
    n_valid = sum(verdict.ruling is Ruling.VALID for verdict in side.verdicts)
    n_verdicts = sum(verdict.ruling is not None for verdict in side.verdicts)
    return f"{n_valid} of {n_verdicts} VALID" if n_verdicts else "no verdict"


def _render_side_verdicts(side_name: str, side: ReviewSide) -> Content:
    """Render a side's author, its number of VALID verdicts, and a line per verdict."""
    heading = Content.assemble(
        (f"{side_name.capitalize()} · ", "bold"),
        to_content(to_single_line(side.author or ""), "bold"),
        (f"  {_format_vote_counts(side)}", "$text-muted"),
    )
    return Content("\n").join([heading, *(_render_verdict(verdict) for verdict in side.verdicts)])


def _render_verdict(verdict: Verdict) -> Content:
    """Render a judge's ruling on one sample, the aspects that it denies, and its justification."""
    judge_text = to_content(f" {to_single_line(verdict.judge)} #{verdict.sample + 1}")
    if verdict.outcome is not Outcome.OK or verdict.ruling is None:
        return Content.assemble((f"– {verdict.outcome}", "$text-muted"), judge_text)
    symbol = VERDICT_SYMBOLS[verdict.ruling]
    lacking = [aspect.label for aspect in REVIEW_ASPECTS if verdict.aspects.get(aspect.name) is False]
    lacking_text = to_content(f" · lacks {', '.join(lacking)}" if lacking else "", "$text-muted")
    justification_text = to_content(f" — {to_single_line(verdict.justification)}" if verdict.justification else "")
    return Content.assemble(symbol.with_text(symbol.label), judge_text, lacking_text, justification_text)
