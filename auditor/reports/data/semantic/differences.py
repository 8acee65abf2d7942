"""Differences in consistency, such as between models, on the questions that both have a score of."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from auditor.domain import Purpose
from auditor.metrics.estimate import Estimate, EstimateWithTest
from auditor.metrics.multiple_testing import holm
from auditor.metrics.paired_difference import paired_difference
from auditor.reports.data.report_source import FloatArray
from auditor.reports.data.requests.sampling_settings import INCOMPARABLE_REASON, SamplingReport
from auditor.reports.data.semantic.schema import SemanticDifferenceRow
from auditor.reports.data.semantic.score_table import ScoreTable, bounds_of


def difference_over_questions(first: FloatArray, second: FloatArray, *, metric: str = "") -> EstimateWithTest:
    """Mean of second minus first, with an interval over questions.

    Args:
        first, second: scores, shape (questions,) each, nan where there is none.
        metric: of both; see `mean_over_questions`.
    """
    low, high = bounds_of(metric)
    bounds = (low - high, high - low)
    return paired_difference(first, second, {"question": np.arange(len(first))}, bounds=bounds)


def build_difference_rows(
    models: Sequence[str], table: ScoreTable, sampling: SamplingReport
) -> list[SemanticDifferenceRow]:
    """Compare each pair of models on the questions with a score from both; p-values are Holm-adjusted.

    Pairs with different sampling settings are listed without figures, and are no test that Holm's method counts.
    """
    all_pairs = list(combinations(models, 2))
    pairs = [pair for pair in all_pairs if sampling.are_comparable(*pair, Purpose.MORAL)]
    withheld = [
        SemanticDifferenceRow(
            first=first, second=second, difference=Estimate(None, 0, reason=INCOMPARABLE_REASON), p_value=None
        )
        for first, second in all_pairs
        if (first, second) not in pairs
    ]
    differences = [
        difference_over_questions(table.scores_of(first), table.scores_of(second)) for first, second in pairs
    ]
    adjusted_p_values = holm(
        [np.nan if difference.p_value is None else difference.p_value for difference in differences]
    )
    return [
        SemanticDifferenceRow(
            first=first,
            second=second,
            difference=difference,
            p_value=None if np.isnan(p_value) else float(p_value),
        )
        for (first, second), difference, p_value in zip(pairs, differences, adjusted_p_values, strict=True)
    ] + withheld
