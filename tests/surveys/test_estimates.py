"""Weighted means, errors and bounds against statsmodels and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.weightstats import DescrStatsW

from auditor.surveys.estimates import compute_neutral_mean, compute_weighted_mean, nonresponse_bounds, weighted_share

NAN = math.nan


def test_errors_equal_statsmodels() -> None:
    rng = np.random.default_rng(5)
    x, w = rng.choice([-1, -0.5, 0, 1], 200), rng.gamma(2, 0.5, 200)
    mean, stats = compute_weighted_mean(x, w), DescrStatsW(x, w)
    assert mean.mean == pytest.approx(stats.mean, abs=1e-12)
    assert mean.standard_error == pytest.approx(stats.std_mean, abs=1e-12)
    robust = sm.WLS(x, np.ones(200), weights=w).fit(cov_type="HC1")
    assert mean.design_error == pytest.approx(float(robust.bse[0]), abs=1e-12)


def test_equal_weights_are_the_plain_mean_and_its_error() -> None:
    # x = 0, 0, 1: mean 1/3, sum of squares 2/3, error sqrt(2/3 / 3 / 2) = 1/3; n - 1 in both.
    mean = compute_weighted_mean(np.array([0.0, 0, NAN, 1]), np.ones(4))
    assert mean.mean == pytest.approx(1 / 3)
    assert mean.standard_error == pytest.approx(1 / 3)
    assert mean.design_error == pytest.approx(1 / 3)
    assert (mean.n, mean.n_effective) == (3, 3.0)


def test_unequal_weights_cost_precision() -> None:
    # Weights 1 and 3: effective size 16 / 10.
    assert compute_weighted_mean(np.array([0.0, 1]), np.array([1.0, 3])).n_effective == pytest.approx(1.6)


@pytest.mark.parametrize("x", [[], [NAN, NAN]])
def test_no_answer_has_no_mean(x: list[float]) -> None:
    assert compute_weighted_mean(np.array(x), np.ones(len(x))) == (None, None, None, 0, 0.0)
    assert compute_neutral_mean(np.array(x), np.ones(len(x))).mean is None
    assert nonresponse_bounds(np.array(x), np.ones(len(x))) is None


def test_one_answer_has_no_error() -> None:
    assert compute_weighted_mean(np.array([0.5]), np.array([2.0]))[:3] == (0.5, None, None)


def test_nobody_has_no_share() -> None:
    assert weighted_share(np.array([], bool), np.array([])) is None


def test_treatments_by_hand() -> None:
    # Answers 1 (weight 1) and 0.5 (weight 2); one person of weight 1 gave none: 2/4, and 2/4 +- 1/4.
    x, w = np.array([1, 0.5, NAN]), np.array([1.0, 2, 1])
    assert compute_neutral_mean(x, w).mean == pytest.approx(0.5)
    assert nonresponse_bounds(x, w) == pytest.approx((0.25, 0.75))


@given(st.lists(st.tuples(st.one_of(st.just(NAN), st.floats(-1, 1)), st.floats(0.01, 5)), min_size=1, max_size=30))
def test_every_treatment_lies_within_the_bounds(people: list[tuple[float, float]]) -> None:
    x, w = (np.array(column) for column in zip(*people, strict=True))
    ends, zero = nonresponse_bounds(x, w), compute_neutral_mean(x, w).mean
    if ends is None:
        assert zero is None
        return
    assert zero is not None
    assert ends[0] - 1e-9 <= zero <= ends[1] + 1e-9
    assert ends[0] >= -1 - 1e-9
    assert ends[1] <= 1 + 1e-9
    missing = weighted_share(np.isnan(x), w)
    assert ends[1] - ends[0] == pytest.approx(2 * (missing or 0), abs=1e-9)
