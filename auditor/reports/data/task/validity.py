"""Do verdicts follow accuracy? VALID of right against wrong answers, within models and over models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np

from auditor.domain import Cell
from auditor.errors import UsageError
from auditor.metrics.estimate import Estimate, ShareEstimate, Tested
from auditor.metrics.item_statistics import share_difference_over_items, within_model_difference
from auditor.metrics.model_correlation import ModelCorrelation, correlate_models
from auditor.metrics.unit_means import share_over_units
from auditor.reports.data.panel.verdict_matrix import find_family
from auditor.reports.data.report_model import ModelName, ReportModel
from auditor.reports.data.report_source import FloatArray, ReportSource
from auditor.reports.data.task.build import select_model_answers
from auditor.reports.document import Column

MIN_CORRELATED_MODELS = 6
"""Fewest models for a correlation over models: with fewer, chance alone makes large ones."""


class ModelValidityRow(ReportModel):
    """VALID among the verdicts on one model's right and on its wrong answers."""

    model: ModelName
    accuracy: Annotated[ShareEstimate, Column("Accuracy")]
    right: Annotated[ShareEstimate, Column("VALID of right answers")]
    wrong: Annotated[ShareEstimate, Column("VALID of wrong answers")]
    difference: Annotated[Estimate, Column("Difference", style="signed", emphasis=True)]
    """VALID of right answers minus that of wrong ones, over items."""


class TaskValidityReport(ReportModel):
    """Whether peer review follows accuracy on a task."""

    answers: int
    """Answers with a verdict whose correctness is known."""
    items: int
    within: Tested
    """VALID of right minus wrong answers, within models; over items and models, which are crossed."""
    over_models: ModelCorrelation
    """Correlation of each model's share of VALID with its accuracy; none with fewer than six models."""
    models: list[ModelValidityRow]


def build_task_validity(source: ReportSource) -> TaskValidityReport:
    """Compare verdicts with accuracy on a task.

    Verdicts that an adaptive panel asked for because others disagreed are left out.

    Raises:
        UsageError: the audit is of a survey, right answers are not known, or no answer has a verdict.
    """
    task = source.survey.task
    if task is None:
        raise UsageError(
            f"the audit '{source.audit.name}' is of a survey, which has no right answers.", "Name an audit of a task."
        )
    answers = select_model_answers(source, task)
    if answers.accuracy_missing_reason is not None:
        raise UsageError(
            f"right answers are needed, but {answers.accuracy_missing_reason}.",
            "Name an audit of items with the column truth; of scores, also with task.tolerance.",
        )
    counts: dict[tuple[str, Cell, int], list[int]] = {}
    for vote in source.votes:
        key = vote.model, Cell(vote.country, vote.topic), vote.sample
        if vote.always and key in answers.correctness:
            n_valid_and_all = counts.setdefault(key, [0, 0])
            n_valid_and_all[0] += bool(vote.valid)
            n_valid_and_all[1] += 1
    if not counts:
        raise UsageError(
            f"the audit '{source.audit.name}' has no verdicts on answers.", "Run it with `judges` in its config."
        )
    keys = sorted(counts)
    valid, totals = np.array([counts[key] for key in keys], dtype=np.float64).T
    is_right = np.array([answers.correctness[key] for key in keys], dtype=np.bool_)
    models, items = (np.array(column) for column in zip(*((key[0], key[1].topic) for key in keys), strict=True))
    rows = [
        _build_row(
            model, valid[models == model], totals[models == model], is_right[models == model], items[models == model]
        )
        for model in source.models
        if (models == model).any()
    ]
    return TaskValidityReport(
        answers=len(keys),
        items=len(set(items.tolist())),
        within=within_model_difference(valid / totals, is_right, models, items),
        over_models=_correlate_over_models(
            source, rows, [valid[models == row.model].sum() for row in rows], totals, models
        ),
        models=rows,
    )


def _build_row(
    model: str, valid: FloatArray, totals: FloatArray, is_right: np.ndarray, items: np.ndarray
) -> ModelValidityRow:
    """The figures of one model, from the verdicts on each of its answers."""
    names, index = np.unique(items, return_inverse=True)
    columns = [
        np.bincount(index, part * side, len(names)) for side in (is_right, ~is_right) for part in (valid, totals)
    ]
    right, wrong = (
        share_over_units(
            valid[side],
            totals[side],
            {"item": items[side]},
            independent_cases=np.ones(int(side.sum())),
            empty_reason=f"it has no {name} answer with a verdict",
        )
        for side, name in ((is_right, "right"), (~is_right, "wrong"))
    )
    return ModelValidityRow(
        model=model,
        accuracy=share_over_units(is_right.astype(float), np.ones(len(items)), {"item": items}),
        right=right,
        wrong=wrong,
        difference=share_difference_over_items(*columns),
    )


def _correlate_over_models(
    source: ReportSource,
    rows: Sequence[ModelValidityRow],
    n_valid: Sequence[float],
    totals: FloatArray,
    models: np.ndarray,
) -> ModelCorrelation:
    """Correlate the models' shares of VALID with their accuracy, from six models."""
    if len(rows) < MIN_CORRELATED_MODELS:
        return ModelCorrelation(
            None,
            len(rows),
            reason=f"a correlation over models needs {MIN_CORRELATED_MODELS} of them, but there are {len(rows)}",
            models=len(rows),
        )
    shares = [n / totals[models == row.model].sum() for n, row in zip(n_valid, rows, strict=True)]
    accuracies = [np.nan if row.accuracy.value is None else row.accuracy.value for row in rows]
    return correlate_models(shares, accuracies, [find_family(source.config, row.model) for row in rows])
