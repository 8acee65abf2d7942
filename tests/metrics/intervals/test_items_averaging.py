"""Shares averaged over instances or pooled: by hand, and by simulation with instances that differ."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from auditor.metrics.intervals.items import AVERAGINGS, Averaging, averaged_share, instance_values


def test_instances_count_the_same_or_by_their_cases() -> None:
    hits, totals = [9, 1, 2, 3, 4], [10, 2, 2, 4, 5]
    labels = {"set": list("abcde")}
    assert averaged_share(hits, totals, labels, "instances").value == pytest.approx((0.9 + 0.5 + 1 + 0.75 + 0.8) / 5)
    assert averaged_share(hits, totals, labels, "instances").n == 5
    pooled = averaged_share(hits, totals, labels, "pooled")
    assert pooled.value == pytest.approx(19 / 23)
    assert (pooled.n, pooled.averaged) == (23, "pooled")
    assert pooled.resampled == ("set",)
    assert pooled.generalizes_to == "other item sets like these"


def test_rows_of_one_instance_are_averaged_first() -> None:
    hits, totals, labels = [1, 3, 4, 0], [2, 3, 4, 0], ["a", "a", "b", "c"]
    np.testing.assert_allclose(instance_values(hits, totals, labels), [0.75, 1.0])
    figure = averaged_share(hits, totals, {"question": labels}, "instances")
    assert figure.value == pytest.approx(0.875)
    assert figure.n == 2
    assert figure.reason == "an interval needs at least 5 questions, but there are 2 questions"


def test_the_interval_is_clopper_and_pearsons_at_the_effective_number_of_cases() -> None:
    """By hand: the variance of a mean is s^2 / n, and Student's quantile reduces the number of cases."""
    values = np.array([0.5, 0.75, 0.25, 1.0, 0.6, 0.4])
    figure = averaged_share(values * 20, np.full(6, 20), {"set": range(6)}, "instances")
    mean, variance = values.mean(), values.var(ddof=1) / 6
    size = mean * (1 - mean) / variance * (stats.norm.ppf(0.975) / stats.t.ppf(0.975, 5)) ** 2
    expected = (
        stats.beta.ppf(0.025, mean * size, size - mean * size + 1),
        stats.beta.ppf(0.975, mean * size + 1, size - mean * size),
    )
    assert (figure.ci_low, figure.ci_high) == pytest.approx(expected, abs=1e-9)
    pooled = averaged_share(values * 20, np.full(6, 20), {"set": range(6)}, "pooled")
    assert (pooled.value, pooled.ci_low, pooled.ci_high) == pytest.approx((mean, *expected), abs=1e-9)


@pytest.mark.parametrize("averaged", AVERAGINGS)
def test_instances_without_a_miss_count_as_one_case_each(averaged: Averaging) -> None:
    figure = averaged_share([30] * 6, [30] * 6, {"set": range(6)}, averaged)
    assert (figure.value, figure.ci_high) == (1.0, 1.0)
    assert figure.ci_low == pytest.approx(proportion_confint(6, 6, method="beta")[0], abs=1e-9)
    # A single miss does not make the interval shorter.
    one_miss = averaged_share([30, 30, 30, 30, 30, 29], [30] * 6, {"set": range(6)}, averaged)
    assert one_miss.ci_low is not None
    assert figure.ci_low is not None
    assert one_miss.ci_low <= figure.ci_low


def test_what_cannot_be_estimated_has_a_reason() -> None:
    assert averaged_share([], [], {"set": []}, "pooled", empty_reason="not asked").reason == "not asked"
    assert averaged_share([0], [0], {"set": ["a"]}, "instances").value is None
    with pytest.raises(ValueError, match="hits at most totals"):
        averaged_share([3], [2], {"set": ["a"]}, "pooled")
    with pytest.raises(ValueError, match="one shape"):
        averaged_share([1, 2], [2, 2], {"set": ["a"]}, "pooled")


@pytest.mark.parametrize(("mean", "concentration"), [(0.6, 3), (0.9, 10), (0.95, 10)])
@pytest.mark.parametrize("n_sets", [5, 20])
def test_intervals_cover_other_sets_and_those_over_cases_do_not(mean: float, concentration: float, n_sets: int) -> None:
    """The rule of docs/coverage.md with 300 runs; yesterday's interval over cases must fail in the same runs."""
    rng = np.random.default_rng(11)
    covered, covered_by_cases, n_runs = dict.fromkeys(AVERAGINGS, 0), 0, 300
    for _ in range(n_runs):
        totals = rng.integers(15, 46, n_sets)
        hits = rng.binomial(totals, rng.beta(mean * concentration, (1 - mean) * concentration, n_sets))
        for averaged in AVERAGINGS:
            figure = averaged_share(hits, totals, {"set": range(n_sets)}, averaged)
            assert figure.ci_low is not None
            assert figure.ci_high is not None
            covered[averaged] += figure.ci_low <= mean <= figure.ci_high
        low, high = proportion_confint(hits.sum(), totals.sum(), method="wilson")
        covered_by_cases += low <= mean <= high
    for hits_of_interval in covered.values():
        assert stats.beta.ppf(0.999, hits_of_interval + 1, n_runs - hits_of_interval + 1e-9) > 0.92
    assert covered_by_cases / n_runs < 0.85
