"""The section on consistency under paraphrase, as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from auditor.reports.measurement_schema import Estimate
from auditor.reports.pages.number_format import format_count, format_number
from auditor.reports.semantic import wording
from auditor.reports.semantic.schema import SemanticReport, WordedAnswer

FormatTable = Callable[[Sequence[str], Iterable[Sequence[str]]], str]


def render_semantic_section(
    semantic: SemanticReport | None,
    escape: Callable[[str], str],
    format_table: FormatTable,
    format_estimate: Callable[[Estimate], str],
) -> Iterable[str]:
    """The section; nothing where nothing was measured.

    Args:
        escape, table, figure: how the report writes texts, tables and estimates.
    """
    if semantic is None:
        return
    yield "## The same question in other words"
    yield escape(wording.describe_questions(semantic))
    yield "\n".join(
        f"- **{escape(row.model)}** {escape(wording.describe_model(semantic, row))}." for row in semantic.models
    )
    head = ["Model", "Score", "Rules of thumb", "Answers", "By chance", "By chance, like length", "Usable", "Lost"]
    rows = [
        [
            r.model, format_estimate(r.consistency), format_estimate(r.rules), format_estimate(r.answers),
            wording.format_chance_score(r.shuffled), wording.format_chance_score(r.length_matched),
            f"{format_count(r.ok)} of {format_count(r.planned)}", wording.format_losses(r),
        ]
        for r in semantic.models
    ]  # fmt: skip
    yield format_table(head, rows)
    if semantic.foundations:
        yield format_table(
            ["Foundation", "Model", "Score"],
            [[r.foundation, r.model, format_estimate(r.consistency)] for r in semantic.foundations],
        )
    if semantic.differences:
        yield "\n".join(f"- {escape(wording.describe_difference(row))}." for row in semantic.differences)
    if semantic.rivals:
        yield format_table(
            ["Measure", "Of", "Model", "Mean over pairs"],
            [
                [wording.METRIC_LABELS[r.metric], wording.SCORED_TEXT_LABELS[r.text], r.model, format_estimate(r.value)]
                for r in semantic.rivals
            ],
        )
    if semantic.languages:
        yield wording.LANGUAGES_NOTE
        rows = [[r.model, wording.format_language_pair(r), format_estimate(r.similarity)] for r in semantic.languages]
        yield format_table(["Model", "Languages", "Mean cosine"], rows)
    if semantic.judged:
        yield wording.JUDGED_NOTE
        head = ["Model", "Judge", "Consistency score", "Consistent", "Asked", "Failed"]
        yield format_table(
            head,
            [
                [
                    r.model,
                    r.judge,
                    format_estimate(r.score),
                    format_count(r.consistent),
                    format_count(r.asked),
                    format_count(r.failed),
                ]
                for r in semantic.judged
            ],
        )
    if told := wording.describe_rejected_paraphrases(semantic):
        yield escape(told)
    if semantic.worst:
        yield "### Least consistent"
    for worst in semantic.worst:
        yield f"**{escape(worst.model)}**, {format_number(worst.score)}: {escape(worst.question)}"
        yield "\n".join(f"- {escape(_format_answer(side))}" for side in (worst.left, worst.right))
        if verdict := wording.describe_contradiction(worst):
            yield escape(verdict)


def _format_answer(answer: WordedAnswer) -> str:
    rule = f" (rule: {answer.rule})" if answer.rule else ""
    return f"“{answer.wording}” – {answer.answer or 'no usable answer'}{rule}"
