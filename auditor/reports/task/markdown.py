"""Markdown of the section on a task."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from auditor.metrics.estimate import Estimate
from auditor.reports.data.task.schema import PeerValidityReport, TaskModelRow, TaskReport
from auditor.reports.number_format import format_count
from auditor.reports.task import wording

EscapeText = Callable[[str], str]
FormatTable = Callable[..., str]
FormatEstimate = Callable[[Estimate], str]
SCORE_HEADERS = ("r", "Spearman ρ", "MAE", "Bias", "Spread of samples")


def render_task_section(
    task: TaskReport | None, escape: EscapeText, format_table: FormatTable, format_estimate: FormatEstimate
) -> Iterable[str]:
    """Render the blocks of the section; none for an audit of a survey.

    Args:
        escape: escapes a text for Markdown.
        format_table: renders headers and rows.
        format_estimate: formats an estimate with its interval.
    """
    if task is None:
        return
    yield "## How good are the answers?"
    yield escape(wording.describe_task(task))
    yield "\n".join(f"- **{escape(model)}** {escape(text)}." for model, text in wording.describe_models(task))
    has_scores = any(row.score is not None for row in task.models)
    headers = ["Model", "Accuracy", "Commonest answer right", "Undecided", "Samples agree", "Usable", "Planned"]
    yield format_table(
        [*headers, *(SCORE_HEADERS if has_scores else ())],
        [_format_model_row(row, format_estimate) for row in task.models],
    )
    yield wording.INTERVALS_NOTE
    if task.telling is not None:
        # `telling` is the report on how well peer verdicts separate right from wrong answers.
        yield from _render_peer_validity(task.telling, escape, format_table, format_estimate)
    models = [row.model for row in task.models]
    yield "### Items"
    listed = wording.select_hardest_items(task)
    if len(listed) < len(task.items):
        yield f"The {len(listed)} answered wrongly most often, of {format_count(len(task.items))}."
    yield format_table(
        ["Item", "Question", "Right answer", "Right", *models],
        [
            [
                item.id,
                item.question,
                item.truth or "not known",
                wording.format_percent(item.right.value if item.right else None),
                *(wording.item_answer(item, model) for model in models),
            ]
            for item in listed
        ],
    )


def _format_model_row(row: TaskModelRow, format_estimate: FormatEstimate) -> list[str]:
    """Format one model's row, with columns of scores where the answers of the task are scores."""
    figures = [
        format_estimate(row.accuracy),
        format_estimate(row.commonest),
        format_count(row.undecided),
        format_estimate(row.sample_agreement),
    ]
    columns = [row.model, *figures, format_count(row.usable), format_count(row.planned)]
    if row.score is None:
        return columns
    score = row.score
    return [*columns, *map(format_estimate, (score.pearson_r, score.spearman_rho, score.mae, score.bias, score.spread))]


def _render_peer_validity(
    peer_validity: PeerValidityReport, escape: EscapeText, format_table: FormatTable, format_estimate: FormatEstimate
) -> Iterable[str]:
    """Yield the blocks on whether verdicts separate right from wrong answers: sentences, then tables."""
    yield "## Does peer agreement tell anything about being right?"
    yield "\n".join(f"- {escape(text)}" for text in wording.describe_peer_validity(peer_validity))
    if peer_validity.verdicts:
        yield format_table(
            ["Called", "n", "Right"],
            [[row.said, format_count(row.n), format_estimate(row.accuracy)] for row in peer_validity.verdicts],
        )
    if peer_validity.judges:
        yield format_table(
            ["Judge", "VALID of right answers", "VALID of wrong answers", "Difference"],
            [
                [row.judge, format_estimate(row.right), format_estimate(row.wrong), format_estimate(row.difference)]
                for row in peer_validity.judges
            ],
        )
