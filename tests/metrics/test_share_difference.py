"""Differences of shares against Newcombe's published examples, and their coverage."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from auditor.metrics.share_difference import difference_of_paired_shares, difference_of_shares, verdict_drift

NAN = float("nan")


def test_newcombes_own_examples() -> None:
    # Newcombe 1998, table II, method 10: contrasts (a) to (d).
    for counts, low, high in (
        ((56, 70, 48, 80), 0.0524, 0.3339),
        ((9, 10, 3, 10), 0.1705, 0.8090),
        ((10, 10, 0, 10), 0.6075, 1.0),
        ((5, 56, 0, 29), -0.0381, 0.1926),
    ):
        difference = difference_of_shares(*counts)
        assert difference.ci_low == pytest.approx(low, abs=5e-5)
        assert difference.ci_high == pytest.approx(high, abs=5e-5)


def test_paired_shares_that_are_unrelated_have_the_interval_of_unpaired_ones() -> None:
    paired, unpaired = difference_of_paired_shares(12, 18, 8, 12), difference_of_shares(30, 50, 20, 50)
    assert (paired.value, paired.ci_low, paired.ci_high) == (unpaired.value, unpaired.ci_low, unpaired.ci_high)
    related = difference_of_paired_shares(20, 10, 0, 20)
    assert related.value == pytest.approx(0.2)
    assert related.ci_low is not None
    assert unpaired.ci_low is not None
    assert related.ci_low > unpaired.ci_low


def test_the_paired_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(6)
    held, runs, n = 0, 600, 40
    for _ in range(runs):
        shared = rng.random(n) < 0.4
        first, second = (np.where(shared, rng.random(n) < 0.9, rng.random(n) < p) for p in (0.5, 0.2))
        cases = [
            int((a & b).sum()) for a, b in ((first, second), (first, ~second), (~first, second), (~first, ~second))
        ]
        difference = difference_of_paired_shares(*cases)
        assert difference.ci_low is not None
        assert difference.ci_high is not None
        held += difference.ci_low <= 0.6 * 0.3 <= difference.ci_high
    assert 0.93 <= held / runs <= 0.99


def test_drift_is_paired() -> None:
    before = np.array([1, 1, 0, 0, 1, 0, NAN, 1.0])
    after = np.array([1, 0, 0, 1, 1, 1, 1, NAN])
    drift = verdict_drift(before, after)
    assert drift.value == pytest.approx(1 / 6)
    assert drift.n == 6


def test_shares_that_cannot_be_compared_have_no_difference_and_differences_increase_with_the_share() -> None:
    assert difference_of_shares(0, 0, 5, 10).value is None
    assert verdict_drift([NAN], [1.0]).value is None
    values = [difference_of_shares(k, 10, 5, 10).value for k in range(11)]
    assert all(a is not None and b is not None and a < b for a, b in pairwise(values))
