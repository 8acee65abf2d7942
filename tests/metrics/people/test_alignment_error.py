from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from auditor.metrics.people.alignment import bias, mae, rmse

X, Y = [0.5, -0.5, 1.0, 0.0], [0.25, 0.0, 0.25, 1.0]
# Differences 1/4, -1/2, 3/4, -1: MAE 5/8, mean square 30/64, bias -1/8.


def test_by_hand() -> None:
    assert mae(X, Y).value == 5 / 8
    assert rmse(X, Y).value == pytest.approx(np.sqrt(30 / 64), abs=1e-15)
    assert bias(X, Y).value == -1 / 8


def test_intervals_are_students() -> None:
    d = np.array(X) - np.array(Y)
    for error, values in ((mae(X, Y), np.abs(d)), (bias(X, Y), d)):
        want = stats.ttest_1samp(values, 0).confidence_interval()
        assert (error.ci_low, error.ci_high) == pytest.approx((want.low, want.high), abs=1e-12)
    want = stats.ttest_1samp(d**2, 0).confidence_interval()
    error = rmse(X, Y)
    assert (error.ci_low, error.ci_high) == pytest.approx((np.sqrt(max(want.low, 0)), np.sqrt(want.high)), abs=1e-12)


def test_the_interval_of_an_error_does_not_go_below_zero() -> None:
    error = mae([0, 0, 0, 2], [0, 0, 0.1, 0])
    assert error.ci_low == 0
    assert bias([0, 0, 0, 2], [0, 0, 0.1, 0]).ci_low is not None


def test_rmse_interval_covers() -> None:
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(500):
        error = rmse(rng.normal(scale=0.3, size=80), np.zeros(80))
        assert error.ci_low is not None
        assert error.ci_high is not None
        hits += error.ci_low <= 0.3 <= error.ci_high
    assert 0.91 < hits / 500 < 0.98


@pytest.mark.parametrize("metric", [mae, rmse, bias])
def test_degenerate(metric: object) -> None:
    f = {id(m): m for m in (mae, rmse, bias)}[id(metric)]
    none = f([np.nan, 1], [0, np.nan])
    assert (none.value, none.n, none.reason) == (None, 0, "no pairs")
    one = f([1], [0])
    assert (one.value, one.ci_low, one.ci_high) == (1, None, None)
    same = f([1.1, 1.2, 1.3], [0.1, 0.2, 0.3])
    assert same.value == pytest.approx(1)
    assert same.ci_low is None
    assert same.reason == "all differences are equal: no interval"
    assert f([0.5, 0.5], [0.5, 0.5]).value == 0
