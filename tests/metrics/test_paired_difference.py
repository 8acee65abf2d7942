"""The paired difference: Student's interval, and the exact sign-flip test."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import ArrayLike
from scipy import stats

from auditor.metrics.paired_difference import PairedDifference, paired_difference, sign_flip_p_value


def compare(first: ArrayLike, second: ArrayLike, flips: int = 10_000) -> PairedDifference:
    a, b = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    return paired_difference(a, b, {"question": np.arange(len(a))}, flips=flips)


def test_the_interval_is_students() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(2, 12))
    difference = compare(a, b).estimate
    expected = stats.t.interval(0.95, 11, (b - a).mean(), stats.sem(b - a))
    assert difference.value == pytest.approx((b - a).mean(), abs=1e-12)
    assert (difference.ci_low, difference.ci_high) == pytest.approx(expected, abs=1e-9)
    assert difference.resampled == ("question",)


def test_the_paired_test_is_the_exact_one() -> None:
    rng = np.random.default_rng(3)
    a = rng.normal(size=10)
    b = a + rng.normal(0.4, 0.6, 10)
    exact = stats.permutation_test(
        (b - a, np.zeros(10)), lambda x, y: np.mean(x - y), permutation_type="samples", n_resamples=2**10
    )
    assert compare(a, b, flips=40_000).p_value == pytest.approx(exact.pvalue, abs=0.01)


def test_no_difference_is_no_evidence() -> None:
    same = compare([0.1, 0.2, 0.3, 0.4, 0.5], [0.1, 0.2, 0.3, 0.4, 0.5])
    assert (same.estimate.value, same.p_value) == (0.0, 1.0)
    assert same.estimate.ci_low is None


def test_what_cannot_be_compared_has_a_reason() -> None:
    none = compare([np.nan], [1.0])
    assert (none.p_value, none.estimate.reason) == (None, "no pair has both values")
    few = compare([0.1, np.nan, 0.3], [0.2, 0.1, 0.3])
    assert (few.estimate.n, few.estimate.ci_low) == (2, None)
    with pytest.raises(ValueError, match="one shape"):
        compare([1.0], [1.0, 2.0])


def test_the_paired_test_errs_as_often_as_it_says() -> None:
    rng = np.random.default_rng(4)
    p = [sign_flip_p_value(rng.normal(size=12), flips=300, seed=i) for i in range(400)]
    assert np.mean([x <= 0.05 for x in p]) == pytest.approx(0.05, abs=0.03)
