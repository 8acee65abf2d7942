"""Intervals of differences recovered from two intervals: published example, known cases, and coverage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from auditor.metrics.intervals.estimate import Estimate
from auditor.metrics.intervals.jackknife_interval import FISHER_Z, IDENTITY
from auditor.metrics.intervals.paired import (
    recover_difference,
    recover_difference_with_p_value,
    subtract_independent,
)


def test_it_agrees_with_zous_published_example() -> None:
    """Zou (Psychological Methods 12, 2007), example 1: independent r of .49 (n = 145) and .36 (n = 87)."""
    n = np.array([145, 87])
    z, se = np.arctanh([0.49, 0.36]), 1 / np.sqrt(n - 3)
    low, high = recover_difference(FISHER_Z, z[0], z[1], (se[0], se[1]), np.array(0.0), 1.959964)
    # By hand, from the intervals .355 to .606 and .162 to .530.
    (l1, l2), (u1, u2) = np.tanh(z - 1.959964 * se), np.tanh(z + 1.959964 * se)
    assert float(low) == pytest.approx(0.13 - np.hypot(0.49 - l1, u2 - 0.36))
    assert float(high) == pytest.approx(0.13 + np.hypot(u1 - 0.49, 0.36 - l2))


def test_without_a_transform_it_is_the_usual_interval() -> None:
    low, high = recover_difference(
        IDENTITY,
        np.array([1.0, 2.0]),
        np.array([0.5]),
        (np.array([0.2, 0.3]), np.array([0.1])),
        np.array([0.01, 0.0]),
        2.0,
    )
    std_errors = np.sqrt([0.04 + 0.01 - 0.02, 0.09 + 0.01])
    assert low == pytest.approx([0.5, 1.5] - 2 * std_errors)
    assert high == pytest.approx([0.5, 1.5] + 2 * std_errors)


def test_the_p_value_is_below_5_percent_where_the_interval_excludes_zero() -> None:
    rng = np.random.default_rng(0)
    n_excluded = 0
    for _ in range(100):
        first, second = rng.normal(0.6, 0.3, 2)
        std_errors = (float(rng.uniform(0.05, 0.3)), float(rng.uniform(0.05, 0.3)))
        covariance = float(rng.uniform(-0.9, 0.9)) * std_errors[0] * std_errors[1]
        low, high, p_value = recover_difference_with_p_value(FISHER_Z, (first, second), std_errors, covariance, 9)
        excluded = low > 0 or high < 0
        assert (p_value < 0.05) == excluded
        n_excluded += excluded
    assert 10 <= n_excluded <= 90
    assert recover_difference_with_p_value(FISHER_Z, (0.5, 0.5), (0.1, 0.2), 0.0, 9)[2] == 1.0


def test_without_a_transform_the_p_value_is_students() -> None:
    p_value = recover_difference_with_p_value(IDENTITY, (1.0, 0.6), (0.2, 0.1), 0.005, 7)[2]
    assert p_value == pytest.approx(2 * stats.t.sf(0.4 / (0.04 + 0.01 - 0.01) ** 0.5, 7), rel=1e-9)


def test_it_covers_where_the_two_differ_and_moving_both_by_equal_steps_does_not() -> None:
    """True r of .97 and .6 with equal standard errors of z: nearly all of the uncertainty is in the lower."""
    rng = np.random.default_rng(1)
    true = np.arctanh([0.97, 0.6])
    first, second = (rng.normal(mean, 0.15, 4000) for mean in true)
    difference = 0.97 - 0.6
    low, high = recover_difference(FISHER_Z, first, second, (np.array(0.15), np.array(0.15)), np.array(0.0), 1.96)
    middle, step = (first + second) / 2, 1.96 * 0.15 * 2**0.5 / 2
    naive_low, naive_high = (
        np.tanh(middle + d) - np.tanh(middle - d) for d in ((first - second) / 2 - step, (first - second) / 2 + step)
    )
    covered = np.mean((low <= difference) & (difference <= high))
    assert 0.94 <= covered <= stats.binom.ppf(0.999, 4000, 0.96) / 4000
    assert np.mean((naive_low <= difference) & (difference <= naive_high)) < 0.9


def test_independent_shares_agree_with_newcombes_published_example() -> None:
    """Newcombe (Statistics in Medicine 17, 1998), table II, (a): 56 / 70 - 48 / 80 by method 10."""
    ends = [proportion_confint(hits, n, method="wilson") for hits, n in ((56, 70), (48, 80))]
    first, second = (Estimate(v, n, *end) for v, n, end in zip((0.8, 0.6), (70, 80), ends, strict=True))
    difference = subtract_independent(first, second)
    assert (difference.ci_low, difference.ci_high) == pytest.approx((0.0524, 0.3339), abs=1e-4)
    assert difference.value == pytest.approx(0.2)
    assert difference.n == 150
    assert difference.p_value is not None
    assert difference.p_value < 0.05
    reverse = subtract_independent(second, first)
    assert (reverse.ci_low, reverse.p_value) == pytest.approx((-0.3339, difference.p_value), abs=1e-4)


def test_a_missing_interval_has_its_reason() -> None:
    first, missing = Estimate(0.5, 10, 0.4, 0.6), Estimate(0.7, 5, reason="too few labels")
    assert subtract_independent(first, missing).reason == "too few labels"
    assert subtract_independent(missing, first).value == pytest.approx(0.2)
    unknown = subtract_independent(first, Estimate(None, 0, reason="no label"))
    assert (unknown.value, unknown.reason, unknown.p_value) == (None, "no label", None)
