"""The section on consistency under paraphrase, as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from auditor.reports.measurement_schema import Estimate
from auditor.reports.pages.number_format import count, number
from auditor.reports.semantic import wording as said
from auditor.reports.semantic.schema import SaidPart, SemanticPart

Table = Callable[[Sequence[str], Iterable[Sequence[str]]], str]


def section(
    part: SemanticPart | None,
    escape: Callable[[str], str],
    table: Table,
    figure: Callable[[Estimate], str],
) -> Iterable[str]:
    """The section; nothing where nothing was measured.

    Args:
        escape, table, figure: how the report writes texts, tables and estimates.
    """
    if part is None:
        return
    yield "## The same question in other words"
    yield escape(said.about(part))
    yield "\n".join(f"- **{escape(row.model)}** {escape(said.model(part, row))}." for row in part.models)
    head = ["Model", "Score", "Rules of thumb", "Answers", "By chance", "By chance, like length", "Usable", "Lost"]
    rows = [
        [
            r.model, figure(r.consistency), figure(r.rules), figure(r.answers), said.null(r.shuffled),
            said.null(r.length_matched), f"{count(r.ok)} of {count(r.planned)}", said.losses(r),
        ]
        for r in part.models
    ]  # fmt: skip
    yield table(head, rows)
    if part.foundations:
        yield table(
            ["Foundation", "Model", "Score"], [[r.foundation, r.model, figure(r.consistency)] for r in part.foundations]
        )
    if part.differences:
        yield "\n".join(f"- {escape(said.difference(row))}." for row in part.differences)
    if part.rivals:
        yield table(
            ["Measure", "Of", "Model", "Mean over pairs"],
            [[said.METRICS[r.metric], said.OF[r.text], r.model, figure(r.value)] for r in part.rivals],
        )
    if part.languages:
        yield said.LANGUAGES
        rows = [[r.model, said.pair(r), figure(r.similarity)] for r in part.languages]
        yield table(["Model", "Languages", "Mean cosine"], rows)
    if part.judged:
        yield said.JUDGED
        head = ["Model", "Judge", "Consistency score", "Consistent", "Asked", "Failed"]
        yield table(
            head,
            [
                [r.model, r.judge, figure(r.score), count(r.consistent), count(r.asked), count(r.failed)]
                for r in part.judged
            ],
        )
    if told := said.rejected(part):
        yield escape(told)
    if part.worst:
        yield "### Least consistent"
    for worst in part.worst:
        yield f"**{escape(worst.model)}**, {number(worst.score)}: {escape(worst.question)}"
        yield "\n".join(f"- {escape(_said(side))}" for side in (worst.left, worst.right))
        if verdict := said.contradiction(worst):
            yield escape(verdict)


def _said(side: SaidPart) -> str:
    rule = f" (rule: {side.rule})" if side.rule else ""
    return f"“{side.wording}” – {side.answer or 'no usable answer'}{rule}"
