"""Panels beside a conflict: a side's scores and reasoning, the hidden evidence, and the preview in the queue."""

from __future__ import annotations

from collections import Counter

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from auditor.domain import Decision, Outcome, Ruling, Verdict
from auditor.domain.decisions import REVIEW_ASPECTS
from auditor.reports.number_format import pluralize
from auditor.review.item import (
    JUDGE_ADDRESS_LABEL,
    DifferenceUnit,
    ReviewItem,
    ReviewSide,
    TextDifference,
    addresses_its_judge,
    find_differences,
)
from auditor.storage.evidence import BlindedSample
from auditor.tui.formatting import (
    DECISION_SYMBOLS,
    EFFECT_REASONS,
    VERDICT_SYMBOLS,
    describe_decision,
    draw_score_axis,
    format_answer,
    format_outcome,
    format_score,
    highlight_spans,
    split_norms,
    to_content,
    to_single_line,
)

SAMPLE_GLYPH, MEAN_GLYPH, SURVEY_GLYPH = "●", "▲", "◆"
DIFFERENCE_NOTES = {
    DifferenceUnit.WORDS: "",
    DifferenceUnit.SENTENCES: "marked by sentence",
    DifferenceUnit.ENTIRE_TEXT: "no common sentence",
}
DIFFERENCE_STYLES = {
    DifferenceUnit.WORDS: "underline $text-accent",
    DifferenceUnit.SENTENCES: "underline",
    DifferenceUnit.ENTIRE_TEXT: "",
}


class ScoreScale(Widget):
    """The scale from -1 to 1 with the samples' scores; below it their mean, and the survey's score once revealed."""

    def __init__(self) -> None:
        super().__init__(classes="scale")
        self.sample_scores: tuple[float, ...] = ()
        self.mean_score = 0.0
        self.survey_score: float | None = None

    def show_scores(self, sample_scores: tuple[float, ...], mean_score: float, survey_score: float | None) -> None:
        """Plot these scores instead of the current ones."""
        self.sample_scores, self.mean_score, self.survey_score = sample_scores, mean_score, survey_score
        self.refresh()

    def render(self) -> Content:
        """Render the samples' scores on the scale, and below it their mean and the survey's score."""
        width = max(self.size.width - 6, 3)
        sample_points = [(score, SAMPLE_GLYPH) for score in self.sample_scores]
        sample_axis = draw_score_axis(width, sample_points)
        mean_points = [(self.mean_score, MEAN_GLYPH)] + (
            [(self.survey_score, SURVEY_GLYPH)] if self.survey_score is not None else []
        )
        mean_axis = draw_score_axis(width, mean_points).replace("─", " ").replace("┼", " ")
        return Content.assemble(
            ("−1 ", "$text-muted"), (sample_axis, "$primary"), (" +1", "$text-muted"), "\n   ", mean_axis
        )


class SidePanel(VerticalScroll):
    """Score scale, summary and reasoning of one side."""

    can_focus = False

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._rendered_state: object = None

    def compose(self) -> ComposeResult:
        yield ScoreScale()
        yield Static(classes="summary")
        yield Static(classes="reasoning")

    def show_side(
        self,
        side_name: str,
        side: ReviewSide,
        other_side: ReviewSide,
        sample_index: int,
        *,
        survey_score: float | None,
        has_norms: bool,
        highlight_differences: bool,
    ) -> None:
        """Show a side, starting with the sample at `sample_index` of its sorted samples.

        `has_norms` is as in `ReviewItem`.

        With `highlight_differences`, words or sentences that are not in the other side's sample are underlined.
        """
        keys = Decision(side_name).spec.keys
        author = "" if side.author is None else f" · {side.author}"
        self.border_title = Content(
            to_single_line(f"{keys} {side_name} · {format_answer(side.score, side.answer)}{author}")
        )
        scores = tuple(sample.score for sample in side.samples if sample.score is not None)
        scale = self.query_one(ScoreScale)
        scale.display = side.score is not None
        if side.score is not None:
            scale.show_scores(scores, side.score, survey_score)
        self.query_one(".summary", Static).update(_render_summary(side, survey_score), layout=False)
        samples, other_samples = sort_samples(side), sort_samples(other_side)
        n_samples = len(samples)
        other_sample = other_samples[sample_index % len(other_samples)] if other_samples else None
        notes = [f"text {sample_index % n_samples + 1} of {n_samples}"] if n_samples > 1 else []
        if highlight_differences and samples and other_sample:
            notes.append(DIFFERENCE_NOTES[_compare(samples[sample_index % n_samples], other_sample).unit])
        self.border_subtitle = to_content(" · ".join(filter(None, notes)))
        rotated_samples = samples[sample_index % n_samples :] + samples[: sample_index % n_samples] if n_samples else []
        new_state = (rotated_samples, other_sample, has_norms, highlight_differences)
        if new_state != self._rendered_state:
            self._rendered_state = new_state
            pieces = [
                _render_reasoning(
                    sample, other_sample, has_norms=has_norms, highlight_differences=highlight_differences
                )
                for sample in rotated_samples
            ]
            empty_notice = Content.styled("No sample is stored for this side.", "$text-muted")
            self.query_one(".reasoning", Static).update(Content("\n\n").join(pieces) if pieces else empty_notice)


def _render_summary(side: ReviewSide, survey_score: float | None) -> Content:
    """Render the number of samples by outcome, the mean or majority, and the survey's score."""
    n_by_outcome = Counter(sample.outcome for sample in side.samples)
    n_usable = n_by_outcome.pop(Outcome.OK, 0)
    if side.score is None:
        n_same = sum(sample.answer == side.answer for sample in side.samples)
        parts = [f"{n_same} of {n_usable} samples give this answer"]
    else:
        parts = [f"{n_usable} {SAMPLE_GLYPH}", f"mean {MEAN_GLYPH} {format_score(side.score)}"]
    if survey_score is not None:
        parts.append(f"survey {SURVEY_GLYPH} {format_score(survey_score)}")
    parts += [f"{n} {format_outcome(outcome)}" for outcome, n in n_by_outcome.most_common()]
    return to_content(" · ".join(parts), "$text-muted")


def sort_samples(side: ReviewSide) -> list[BlindedSample]:
    """Sort samples by agreement with the side's answer or distance from its mean; unusable samples come last."""
    return sorted(
        side.samples,
        key=lambda sample: (
            sample.score is None and sample.answer is None,
            float(sample.answer != side.answer) if side.score is None else abs((sample.score or 0.0) - side.score),
            sample.number,
        ),
    )


def _render_reasoning(
    shown_sample: BlindedSample, other_sample: BlindedSample | None, *, has_norms: bool, highlight_differences: bool
) -> Content:
    """Render a sample's answer, number and text; what is not in the other sample's text is underlined."""
    is_usable = shown_sample.score is not None or shown_sample.answer is not None
    answer_text = (
        format_answer(shown_sample.score, shown_sample.answer) if is_usable else format_outcome(shown_sample.outcome)
    )
    heading = Content.assemble(
        to_content(f"{answer_text} ", "bold $text-primary" if is_usable else "bold $text-error"),
        (f"sample #{shown_sample.number + 1}", "$text-muted"),
        (f" · {JUDGE_ADDRESS_LABEL}" if addresses_its_judge(shown_sample) else "", "$text-warning"),
        "\n",
    )
    if shown_sample.text is None:
        return heading + Content.styled("no text", "$text-muted")
    difference = _compare(shown_sample, other_sample if highlight_differences else None)
    pieces, end = [heading], 0
    for label, part in split_norms(shown_sample.text, has_norms=has_norms and is_usable):
        start = shown_sample.text.index(part, end)
        end = start + len(part)
        spans = [
            (max(first, start) - start, min(last, end) - start)
            for first, last in difference.spans
            if first < end and last > start
        ]
        pieces.append(to_content(f"{label}\n", "bold $text-muted") if label else Content(""))
        pieces += [highlight_spans(part, spans, DIFFERENCE_STYLES[difference.unit]), Content("\n" if label else "")]
    return Content("").join(pieces).rstrip()


def _compare(sample: BlindedSample, other_sample: BlindedSample | None) -> TextDifference:
    """Compare the texts of two samples; no difference if one of them is missing."""
    if other_sample is None or not sample.text or not other_sample.text:
        return TextDifference([], DifferenceUnit.WORDS)
    return find_differences(sample.text, other_sample.text)


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
