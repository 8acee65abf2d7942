"""Differences in consistency, such as between models, on the questions that both have a score of."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from auditor.metrics.estimate import Tested
from auditor.metrics.paired_difference import paired_difference
from auditor.probes.semantic.figures.schema import SemanticDifferenceRow
from auditor.probes.semantic.figures.score_table import ScoreTable, bounds_of
from auditor.probes.semantic.records import MORAL_PURPOSE
from auditor.reports.data.adjusted_tests import adjust_rows
from auditor.reports.data.report_source import FloatArray
from auditor.reports.data.requests.sampling_settings import INCOMPARABLE_REASON, SamplingReport


def difference_over_questions(first: FloatArray, second: FloatArray, *, metric: str = "") -> Tested:
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
    pairs = sorted(
        combinations(models, 2), key=lambda pair: not sampling.are_comparable(pair[0], pair[1], MORAL_PURPOSE)
    )
    rows = [
        SemanticDifferenceRow(
            first=first,
            second=second,
            difference=difference_over_questions(table.scores_of(first), table.scores_of(second))
            if sampling.are_comparable(first, second, MORAL_PURPOSE)
            else Tested(None, 0, reason=INCOMPARABLE_REASON),
        )
        for first, second in pairs
    ]
    return adjust_rows(rows, "difference", "differences in consistency")
