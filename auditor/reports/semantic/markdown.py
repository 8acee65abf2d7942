"""Markdown of the section on consistency under paraphrase."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from auditor.metrics.estimate import Estimate
from auditor.reports.data.semantic.schema import SemanticReport, WordedAnswer
from auditor.reports.number_format import format_count, format_number
from auditor.reports.semantic import wording

FormatTable = Callable[[Sequence[str], Iterable[Sequence[str]]], str]


def render_semantic_section(
    semantic: SemanticReport | None,
    escape: Callable[[str], str],
    format_table: FormatTable,
    format_estimate: Callable[[Estimate], str],
) -> Iterable[str]:
    """Render the blocks of the section; none where nothing was measured.

    Args:
        escape: escapes a text for Markdown.
        format_table: renders headers and rows.
        format_estimate: formats an estimate with its interval.
    """
    if semantic is None:
        return
    yield "## The same question in other words"
    yield escape(wording.describe_questions(semantic))
    yield "\n".join(
        f"- **{escape(row.model)}** {escape(wording.describe_model(semantic, row))}." for row in semantic.models
    )
    headers = ["Model", "Score", "Rules of thumb", "Answers", "By chance", "By chance, like length", "Usable", "Lost"]
    rows = [
        [
            row.model, format_estimate(row.consistency), format_estimate(row.rules), format_estimate(row.answers),
            wording.format_chance_score(row.shuffled), wording.format_chance_score(row.length_matched),
            f"{format_count(row.ok)} of {format_count(row.planned)}", wording.format_losses(row),
        ]
        for row in semantic.models
    ]  # fmt: skip
    yield format_table(headers, rows)
    if semantic.foundations:
        yield format_table(
            ["Foundation", "Model", "Score"],
            [[row.foundation, row.model, format_estimate(row.consistency)] for row in semantic.foundations],
        )
    if semantic.differences:
        yield "\n".join(f"- {escape(wording.describe_difference(row))}." for row in semantic.differences)
    if semantic.rivals:
        yield format_table(
            ["Measure", "Of", "Model", "Mean over pairs"],
            [
                [
                    wording.METRIC_LABELS[row.metric],
                    wording.SCORED_TEXT_LABELS[row.text],
                    row.model,
                    format_estimate(row.value),
                ]
                for row in semantic.rivals
            ],
        )
    if semantic.languages:
        yield wording.LANGUAGES_NOTE
        rows = [
            [row.model, wording.format_language_pair(row), format_estimate(row.similarity)]
            for row in semantic.languages
        ]
        yield format_table(["Model", "Languages", "Mean cosine"], rows)
    if semantic.judged:
        yield wording.JUDGED_NOTE
        headers = ["Model", "Judge", "Consistency score", "Consistent", "Asked", "Failed"]
        yield format_table(
            headers,
            [
                [
                    row.model,
                    row.judge,
                    format_estimate(row.score),
                    format_count(row.consistent),
                    format_count(row.asked),
                    format_count(row.failed),
                ]
                for row in semantic.judged
            ],
        )
    if rejection_note := wording.describe_rejected_paraphrases(semantic):
        yield escape(rejection_note)
    if semantic.worst:
        yield "### Least consistent"
    for row in semantic.worst:
        yield f"**{escape(row.model)}**, {format_number(row.score)}: {escape(row.question)}"
        yield "\n".join(f"- {escape(_format_answer(side))}" for side in (row.left, row.right))
        if verdict := wording.describe_contradiction(row):
            yield escape(verdict)


def _format_answer(answer: WordedAnswer) -> str:
    """Format a wording, the answer to it, and the rule of thumb where there is one."""
    rule = f" (rule: {answer.rule})" if answer.rule else ""
    return f"“{answer.wording}” – {answer.answer or 'no usable answer'}{rule}"
