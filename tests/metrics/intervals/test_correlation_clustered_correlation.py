"""Correlations over observations that share questions: by hand, and by simulation against Fisher's interval."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from auditor.metrics.intervals.correlation import correlate_over_units, correlation_difference_over_units, pearson


def simulate(rng: np.random.Generator, n_questions: int, n_models: int) -> tuple[np.ndarray, ...]:
    """A truth and two scores that share deviations within a question, and the questions' numbers."""
    shape = (n_questions, n_models)
    truth = 0.8 * rng.normal(size=(n_questions, 1)) + 0.6 * rng.normal(size=shape)
    first, second = (truth + 0.7 * rng.normal(size=(n_questions, 1)) + 0.7 * rng.normal(size=shape) for _ in range(2))
    return truth.ravel(), first.ravel(), second.ravel(), np.repeat(np.arange(n_questions), n_models)


def test_each_question_is_left_out_with_all_its_models() -> None:
    truth, first, second, questions = simulate(np.random.default_rng(0), 9, 3)
    result = correlate_over_units(truth, first, {"question": questions})
    left_out = [questions != question for question in range(9)]
    z = np.arctanh([np.corrcoef(truth[others], first[others])[0, 1] for others in left_out])
    error = (8 / 9 * ((z - z.mean()) ** 2).sum()) ** 0.5
    r = np.corrcoef(truth, first)[0, 1]
    expected = np.tanh(np.arctanh(r) + np.array([-1, 1]) * stats.t.ppf(0.975, 8) * error)
    assert result.value == pytest.approx(r, abs=1e-12)
    assert (result.ci_low, result.ci_high) == pytest.approx(tuple(expected), abs=1e-9)
    assert result.p_value == pytest.approx(2 * stats.t.sf(abs(np.arctanh(r)) / error, 8), abs=1e-9)
    assert (result.n, result.resampled) == (27, ("question",))

    difference = correlation_difference_over_units(truth, first, second, {"question": questions})
    gaps = [
        np.corrcoef(truth[others], first[others])[0, 1] - np.corrcoef(truth[others], second[others])[0, 1]
        for others in left_out
    ]
    half_width = stats.t.ppf(0.975, 8) * (8 / 9 * ((np.array(gaps) - np.mean(gaps)) ** 2).sum()) ** 0.5
    value = r - np.corrcoef(truth, second)[0, 1]
    assert difference.value == pytest.approx(value, abs=1e-12)
    assert difference.ci_high == pytest.approx(value + half_width, abs=1e-9)


def test_what_cannot_be_correlated_has_a_reason() -> None:
    questions, sides = {"question": range(8)}, ("the labels", "the measure")
    constant = correlate_over_units([1.0] * 8, np.arange(8.0), questions, sides)
    assert (constant.value, constant.p_value) == (None, None)
    assert constant.reason == "all 8 values of the labels are equal"
    both = correlate_over_units([1.0] * 8, [2.0] * 8, questions, sides)
    assert both.reason == "all 8 values of the labels and of the measure are equal"
    none = correlate_over_units([np.nan] * 8, np.arange(8.0), questions)
    assert none.reason == "a correlation needs at least 3 values on both sides, but there are 0"
    few = correlate_over_units([1.0, 2, 4, np.nan], [2.0, 1, 5, 1], {"question": range(4)})
    assert few.value is not None
    assert few.reason == "an interval needs at least 5 questions, but there are 3 questions"
    assert correlate_over_units([1.0, 2.0], [1.0, 2.0], {"question": range(2)}).value is None


def test_intervals_cover_other_questions_and_fishers_do_not() -> None:
    rng = np.random.default_rng(1)
    truth, first, second, _ = simulate(rng, 100_000, 3)
    r = np.corrcoef(truth, first)[0, 1]
    covered, by_fisher, differences, n_runs = 0, 0, 0, 300
    for _ in range(n_runs):
        truth, first, second, questions = simulate(rng, 20, 4)
        estimate = correlate_over_units(truth, first, {"question": questions})
        difference = correlation_difference_over_units(truth, first, second, {"question": questions})
        fisher = pearson(truth, first)
        assert None not in (estimate.ci_low, estimate.ci_high, difference.ci_low, difference.ci_high)
        covered += (estimate.ci_low or 0) <= r <= (estimate.ci_high or 0)
        by_fisher += (fisher.ci_low or 0) <= r <= (fisher.ci_high or 0)
        differences += (difference.ci_low or 0) <= 0 <= (difference.ci_high or 0)
    assert covered / n_runs > 0.9
    assert differences / n_runs > 0.9
    assert by_fisher / n_runs < 0.9
