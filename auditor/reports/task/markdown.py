"""The section about a task as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from auditor.reports.measurement_schema import Estimate
from auditor.reports.pages.number_format import count
from auditor.reports.task import wording as said
from auditor.reports.task.schema import TaskModelRow, TaskPart, TellingPart

Escape = Callable[[str], str]
Table = Callable[..., str]
Write = Callable[[Estimate], str]
SCORES = ("r", "Spearman ρ", "MAE", "Bias", "Spread of samples")


def section(part: TaskPart | None, escape: Escape, table: Table, write: Write) -> Iterable[str]:
    """The parts of the section; nothing for a survey."""
    if part is None:
        return
    yield "## How good are the answers?"
    yield escape(said.about(part))
    yield "\n".join(f"- **{escape(model)}** {escape(text)}." for model, text in said.models(part))
    has_scores = any(row.score is not None for row in part.models)
    head = ["Model", "Accuracy", "Commonest answer right", "Undecided", "Samples agree", "Usable", "Planned"]
    yield table([*head, *(SCORES if has_scores else ())], [_model(row, write) for row in part.models])
    yield said.INTERVALS
    if part.telling is not None:
        yield from _telling(part.telling, escape, table, write)
    models = [row.model for row in part.models]
    yield "### Items"
    listed = said.hardest(part)
    if len(listed) < len(part.items):
        yield f"The {len(listed)} answered wrongly most often, of {count(len(part.items))}."
    yield table(
        ["Item", "Question", "Right answer", "Right", *models],
        [
            [
                item.id,
                item.question,
                item.truth or "not known",
                said.percent(item.right.value if item.right else None),
                *(said.answer_of(item, model) for model in models),
            ]
            for item in listed
        ],
    )


def _model(row: TaskModelRow, write: Write) -> list[str]:
    figures = [write(row.accuracy), write(row.commonest), count(row.undecided), write(row.sample_agreement)]
    found = [row.model, *figures, count(row.usable), count(row.planned)]
    if row.score is None:
        return found
    s = row.score
    return [*found, *map(write, (s.pearson_r, s.spearman_rho, s.mae, s.bias, s.spread))]


def _telling(part: TellingPart, escape: Escape, table: Table, write: Write) -> Iterable[str]:
    yield "## Does peer agreement tell anything about being right?"
    yield "\n".join(f"- {escape(text)}" for text in said.telling(part))
    if part.verdicts:
        yield table(["Called", "n", "Right"], [[row.said, count(row.n), write(row.accuracy)] for row in part.verdicts])
    if part.judges:
        yield table(
            ["Judge", "VALID of right answers", "VALID of wrong answers", "Difference"],
            [[row.judge, write(row.right), write(row.wrong), write(row.difference)] for row in part.judges],
        )
