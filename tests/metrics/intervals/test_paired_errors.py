"""Paired errors, against scipy's paired test and by worked bounds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from auditor.metrics.intervals.paired import paired_error
from auditor.metrics.intervals.two_way import paired_jackknife
from auditor.metrics.people.alignment import MAE


def test_is_the_paired_t_test_of_the_absolute_errors() -> None:
    rng = np.random.default_rng(3)
    truth, first, second = rng.uniform(-1, 1, (3, 12))
    first[4], second[7] = np.nan, np.nan
    keep = [i for i in range(12) if i not in (4, 7)]
    errors = [np.abs(v[keep] - truth[keep]) for v in (second, first)]
    outside = stats.ttest_rel(*errors)
    low, high = outside.confidence_interval(0.95)
    difference = paired_error(first, second, truth, "country")
    assert difference.n == 10
    assert (difference.value, difference.ci_low, difference.ci_high, difference.p_value) == pytest.approx(
        (errors[0].mean() - errors[1].mean(), low, high, outside.pvalue)
    )


@pytest.mark.parametrize(
    ("first", "reason"), [([], "no cell"), ([0.1, 0.2, 0.3, 0.4], "needs 5 cells"), ([0.1] * 5, "equal")]
)
def test_degenerate_input_says_why(first: list[float], reason: str) -> None:
    difference = paired_error(first, [0.3] * len(first), [0.0] * len(first), "topic")
    assert reason in str(difference.reason)
    assert difference.p_value is None
    assert difference.ci_low is None


def _simulated_p(rng: np.random.Generator, shift: float) -> float:
    """Two models of equal noise over 30 countries and 12 topics, the second off by `shift` everywhere."""
    countries, topics = (np.repeat(np.arange(30), 12), np.tile(np.arange(12), 30))
    truth = np.zeros(360)

    def scores() -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        noise = rng.normal(0, 0.1, 30)[countries] + rng.normal(0, 0.1, 12)[topics] + rng.normal(0, 0.2, 360)
        return np.asarray(noise, dtype=np.float64)

    second = scores() + shift
    difference = paired_jackknife(MAE, scores(), second, truth, countries, topics)
    assert difference.p_value is not None
    return difference.p_value


def test_the_paired_p_value_rejects_seldom_where_nothing_differs_and_often_where_much_does() -> None:
    rng = np.random.default_rng(11)
    equal = np.array([_simulated_p(rng, 0.0) for _ in range(60)])
    p_values_of_different = np.array([_simulated_p(rng, 0.4) for _ in range(10)])
    assert (equal < 0.05).mean() <= 0.15
    assert (p_values_of_different < 0.05).mean() >= 0.9
