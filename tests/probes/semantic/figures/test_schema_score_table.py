"""Intervals of mean scores stay between the bounds of their metric."""

from __future__ import annotations

import numpy as np
import pytest

from auditor.metrics.answers.semantic import SizedScores
from auditor.probes.semantic.figures.experiment_rows import difference_over_questions
from auditor.probes.semantic.figures.schema import bounds_of, mean_over_questions
from tests.support.known import known

LOW_SCORES = np.array([0.0, 0.0, 0.0, 0.05, 0.5])
METRICS = ("bleu", "bleu_nltk", "rouge_l", "rouge_l_stemmed")


@pytest.mark.parametrize("metric", METRICS)
def test_bleu_and_rouge_have_no_interval_below_zero(metric: str) -> None:
    estimate = mean_over_questions(LOW_SCORES, metric=metric)
    assert estimate.value == pytest.approx(0.11)
    assert known(estimate.ci_low) >= 0
    as_cosine = mean_over_questions(LOW_SCORES, metric="cosine")
    assert known(as_cosine.ci_low) < 0
    assert bounds_of("bertscore") == bounds_of("sage:alpha=1") == (-1, 1)


def test_a_difference_of_bleu_lies_between_minus_one_and_one() -> None:
    ones, mostly_zeros = np.ones(5), np.array([0.0, 0.0, 0.0, 0.0, 1.0])
    first, second = (SizedScores(scores, np.full(5, 2.0)) for scores in (mostly_zeros, ones))
    as_bleu, as_cosine = (difference_over_questions(first, second, metric=metric) for metric in ("bleu", "cosine"))
    assert as_bleu.value == as_cosine.value == pytest.approx(0.8)
    assert known(as_bleu.ci_high) <= 1 < known(as_cosine.ci_high)
