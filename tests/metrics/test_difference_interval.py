"""Intervals of differences recovered from two intervals: published example, known cases, and coverage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from auditor.metrics.difference_interval import recover_difference
from auditor.metrics.jackknife_interval import FISHER_Z, IDENTITY, LOG


def test_it_agrees_with_zous_published_example() -> None:
    """Zou (Psychological Methods 12, 2007), example 1: independent r of .49 (n = 145) and .36 (n = 87)."""
    n = np.array([145, 87])
    z, se = np.arctanh([0.49, 0.36]), 1 / np.sqrt(n - 3)
    ends = recover_difference(FISHER_Z, z[0], z[1], (se[0], se[1]), np.array(0.0), 1.959964)
    # By hand, from the intervals .355 to .606 and .162 to .530.
    (l1, l2), (u1, u2) = np.tanh(z - 1.959964 * se), np.tanh(z + 1.959964 * se)
    assert float(ends.low) == pytest.approx(0.13 - np.hypot(0.49 - l1, u2 - 0.36))
    assert float(ends.high) == pytest.approx(0.13 + np.hypot(u1 - 0.49, 0.36 - l2))


def test_without_a_transform_it_is_the_usual_interval() -> None:
    ends = recover_difference(
        IDENTITY,
        np.array([1.0, 2.0]),
        np.array([0.5]),
        (np.array([0.2, 0.3]), np.array([0.1])),
        np.array([0.01, 0.0]),
        2.0,
    )
    std_errors = np.sqrt([0.04 + 0.01 - 0.02, 0.09 + 0.01])
    assert ends.low == pytest.approx([0.5, 1.5] - 2 * std_errors)
    assert ends.high == pytest.approx([0.5, 1.5] + 2 * std_errors)


def test_its_sign_is_that_of_the_interval_on_the_transformed_scale() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.normal(0.8, 0.5, (2, 500))
    se = rng.uniform(0.05, 0.5, (2, 500))
    covariance = rng.uniform(-1, 1, 500) * se[0] * se[1]
    half_width = 2 * np.sqrt(se[0] ** 2 + se[1] ** 2 - 2 * covariance)
    for transform in (FISHER_Z, LOG):
        ends = recover_difference(transform, first, second, (se[0], se[1]), covariance, 2.0)
        assert (np.asarray(ends.low >= 0)[first - second > half_width]).all()
        assert (np.asarray(ends.low <= 0)[first - second < half_width]).all()
        assert (np.asarray(ends.high <= 0)[second - first > half_width]).all()
        assert (ends.low <= transform.inverse(first) - transform.inverse(second)).all()


def test_it_covers_where_the_two_differ_and_moving_both_by_equal_steps_does_not() -> None:
    """True r of .97 and .6 with equal standard errors of z: nearly all of the uncertainty is in the lower."""
    rng = np.random.default_rng(1)
    true = np.arctanh([0.97, 0.6])
    first, second = (rng.normal(mean, 0.15, 4000) for mean in true)
    difference = 0.97 - 0.6
    ends = recover_difference(FISHER_Z, first, second, (np.array(0.15), np.array(0.15)), np.array(0.0), 1.96)
    middle, step = (first + second) / 2, 1.96 * 0.15 * 2**0.5 / 2
    low, high = (
        np.tanh(middle + d) - np.tanh(middle - d) for d in ((first - second) / 2 - step, (first - second) / 2 + step)
    )
    covered = np.mean((ends.low <= difference) & (difference <= ends.high))
    assert 0.94 <= covered <= stats.binom.ppf(0.999, 4000, 0.96) / 4000
    assert np.mean((low <= difference) & (difference <= high)) < 0.9
