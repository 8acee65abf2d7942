"""Every measure of consistency in two settings of an experiment, as rows of its result."""

from __future__ import annotations

from collections.abc import Mapping

from auditor.reports.data.report_source import FloatArray
from auditor.reports.data.semantic.differences import difference_over_questions
from auditor.reports.data.semantic.experiment_rows import MeasureByRuleRow, MeasureByWordingRow
from auditor.reports.data.semantic.score_table import mean_over_questions

Scores = Mapping[tuple[str, str], FloatArray]
"""Scores over the questions in order, nan where there is none, by text and metric."""


def compare_wordings(same_words: Scores, other_words: Scores) -> list[MeasureByWordingRow]:
    """Compare repeated answers to one wording with answers to several, by every measure that both have."""
    return [
        MeasureByWordingRow(
            text=text,
            metric=metric,
            same_words=mean_over_questions(first, metric=metric),
            other_words=mean_over_questions(second, metric=metric),
            difference=difference_over_questions(first, second, metric=metric),
        )
        for (text, metric), first, second in _shared_measures(same_words, other_words)
    ]


def compare_rules(before: Scores, after: Scores) -> list[MeasureByRuleRow]:
    """Compare answers without and with a rule to follow, by every measure that both have."""
    return [
        MeasureByRuleRow(
            text=text,
            metric=metric,
            before=mean_over_questions(first, metric=metric),
            after=mean_over_questions(second, metric=metric),
            change=difference_over_questions(first, second, metric=metric),
        )
        for (text, metric), first, second in _shared_measures(before, after)
    ]


def _shared_measures(first: Scores, second: Scores) -> list[tuple[tuple[str, str], FloatArray, FloatArray]]:
    """Text and metric, and the scores in both settings."""
    return [(key, first[key], second[key]) for key in first if key in second]
