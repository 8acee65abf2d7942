"""Weighted means, errors and bounds against statsmodels and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from samplics import PopParam
from samplics.estimation import TaylorEstimator
from statsmodels.stats.weightstats import DescrStatsW

from auditor.surveys.estimates import (
    SurveyDesign,
    compute_neutral_mean,
    compute_weighted_mean,
    nonresponse_bounds,
    weighted_share,
)
from tests.support.linearised_error import linearised_error

NAN = math.nan


def test_errors_equal_statsmodels() -> None:
    rng = np.random.default_rng(5)
    x, w = rng.choice([-1, -0.5, 0, 1], 200), rng.gamma(2, 0.5, 200)
    for scale in (1, 1e-4, 3e6):
        mean = compute_weighted_mean(x, w * scale)
        assert mean.mean == pytest.approx(DescrStatsW(x, w).mean, abs=1e-12)
        assert mean.standard_error == pytest.approx(linearised_error(x, w), abs=1e-12)


def test_errors_of_designs_equal_samplics() -> None:
    """Strata, sampling units and unequal weights; some people did not answer, and some places have nobody who did."""
    rng = np.random.default_rng(11)
    n = 400
    strata, places = rng.integers(0, 6, n), rng.integers(0, 9, n)
    x, w = rng.choice([-1, -0.5, 0, 1], n) + 0.3 * strata / 6, rng.gamma(2, 0.5, n)
    x[(rng.random(n) < 0.2) | ((strata == 2) & (places < 2))] = NAN
    units, unit = np.unique(np.column_stack([strata, places]), axis=0, return_inverse=True)
    design = SurveyDesign(unit.ravel(), units[:, 0])
    reference = TaylorEstimator(PopParam.mean)
    answered = ~np.isnan(x)
    domain = np.where(answered, "yes", "no")
    reference.estimate(np.nan_to_num(x, nan=1.0), samp_weight=w, stratum=strata, psu=unit.ravel(), domain=domain)
    mean = compute_weighted_mean(x, w, design)
    assert mean.mean == pytest.approx(reference.point_est["yes"], abs=1e-12)
    assert mean.standard_error == pytest.approx(reference.stderror["yes"], abs=1e-12)


def test_a_design_in_which_everybody_is_a_unit_is_no_design() -> None:
    rng = np.random.default_rng(3)
    x, w = rng.normal(size=50), rng.gamma(2, 0.5, 50)
    design = SurveyDesign(np.arange(50), np.zeros(50, np.int64))
    assert compute_weighted_mean(x, w, design) == pytest.approx(compute_weighted_mean(x, w))


def test_one_sampling_unit_has_no_error() -> None:
    design = SurveyDesign(np.zeros(3, np.int64), np.zeros(1, np.int64))
    assert compute_weighted_mean(np.array([0.0, 0, 1]), np.ones(3), design).standard_error is None


def test_equal_weights_are_the_plain_mean_and_its_error() -> None:
    # x = 0, 0, 1: mean 1/3, sum of squares 2/3, error sqrt(2/3 / 3 / 2) = 1/3; n - 1 in both.
    mean = compute_weighted_mean(np.array([0.0, 0, NAN, 1]), np.ones(4))
    assert mean.mean == pytest.approx(1 / 3)
    assert mean.standard_error == pytest.approx(1 / 3)
    assert (mean.n, mean.n_effective) == (3, 3.0)


def test_unequal_weights_cost_precision() -> None:
    # Weights 1 and 3: effective size 16 / 10.
    assert compute_weighted_mean(np.array([0.0, 1]), np.array([1.0, 3])).n_effective == pytest.approx(1.6)


@pytest.mark.parametrize("x", [[], [NAN, NAN]])
def test_no_answer_has_no_mean(x: list[float]) -> None:
    assert compute_weighted_mean(np.array(x), np.ones(len(x))) == (None, None, 0, 0.0)
    assert compute_neutral_mean(np.array(x), np.ones(len(x))).mean is None
    assert nonresponse_bounds(np.array(x), np.ones(len(x))) is None


def test_one_answer_has_no_error() -> None:
    assert compute_weighted_mean(np.array([0.5]), np.array([2.0]))[:2] == (0.5, None)


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
