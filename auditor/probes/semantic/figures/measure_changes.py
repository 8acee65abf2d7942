"""Every measure of consistency in two settings of an experiment, as rows of its result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from auditor.probes.semantic.figures.differences import difference_over_questions
from auditor.probes.semantic.figures.experiment_rows import MeasureByRuleRow, MeasureByWordingRow
from auditor.probes.semantic.figures.score_table import mean_over_questions
from auditor.reports.data.report_source import FloatArray

MeasureRow = TypeVar("MeasureRow", MeasureByWordingRow, MeasureByRuleRow)
Scores = Mapping[tuple[str, str], FloatArray]
"""Scores over the questions in order, nan where there is none, by text and metric."""


def compare_measures(row_class: type[MeasureRow], first: Scores, second: Scores) -> list[MeasureRow]:
    """Compare two settings by every measure of both; the last three fields of a row are both means and the change."""
    *_, first_name, second_name, change_name = row_class.model_fields
    return [
        row_class.model_validate(
            {
                "text": text,
                "metric": metric,
                first_name: mean_over_questions(first[text, metric], metric=metric),
                second_name: mean_over_questions(second[text, metric], metric=metric),
                change_name: difference_over_questions(first[text, metric], second[text, metric], metric=metric),
            }
        )
        for text, metric in first
        if (text, metric) in second
    ]
