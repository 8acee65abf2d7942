from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from auditor.metrics.labels.calibration import calibrate

NAN = float("nan")


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.integers(30, 60))
def test_curve_is_the_min_max_formula(seed: int, n: int) -> None:
    # Robertson, Wright and Dykstra (1988), th. 1.4.4: the curve at x is the largest over a <= x of the smallest over
    # b >= x of the mean rating of the scores in [a, b].
    rng = np.random.default_rng(seed)
    x = np.round(rng.uniform(-1, 1, n), 1)  # rounded, so that scores tie
    y = x**3 + rng.normal(0, 0.3, n)
    knots = np.unique(x)
    want = [
        max(min(y[(x >= a) & (x <= b)].mean() for b in knots[knots >= at]) for a in knots[knots <= at]) for at in knots
    ]
    calibration = calibrate(x, y)
    np.testing.assert_allclose(calibration.predict(knots), want, atol=1e-12)
    np.testing.assert_allclose(calibration.predict([-9.0, 9.0]), [want[0], want[-1]], atol=1e-12)


def test_a_bent_scale_is_straightened() -> None:
    rng = np.random.default_rng(0)
    truth = rng.uniform(-1, 1, 400)
    calibration = calibrate(np.tanh(3 * truth), truth + rng.normal(0, 0.05, 400))
    assert calibration.error_before.value is not None
    assert calibration.error_after.value is not None
    assert calibration.gain.ci_low is not None
    # The best that can be done is the noise's own mean size, 0.05 * sqrt(2 / pi) = 0.040.
    assert calibration.error_before.value > 0.2
    assert 0.035 < calibration.error_after.value < 0.06
    assert calibration.gain.value == pytest.approx(calibration.error_before.value - calibration.error_after.value)
    assert calibration.gain.ci_low > 0.1


def test_error_is_of_ratings_not_seen() -> None:
    # Scores say nothing: fitted on itself the curve looks better than the mean, held out it must not.
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 60))
    calibration = calibrate(x, y)
    seen = float(np.abs(calibration.predict(x) - y).mean())
    assert calibration.error_after.value is not None
    assert calibration.error_after.value > seen + 0.02
    assert calibration.error_after.value > float(np.abs(y - y.mean()).mean()) - 0.05


def test_split_is_seeded() -> None:
    x, y = np.random.default_rng(2).normal(size=(2, 50))
    assert calibrate(x, y, seed=1).error_after == calibrate(x, y, seed=1).error_after
    assert calibrate(x, y, seed=1).error_after != calibrate(x, y, seed=2).error_after


def test_thirty_are_enough_and_twenty_nine_are_not() -> None:
    x = np.linspace(-1, 1, 30)
    assert calibrate(x, x).reason is None
    calibration = calibrate([*x[:29], 0.5, NAN], [*x[:29], NAN, 0.5])
    assert (calibration.n, calibration.n_dropped, calibration.knots.size) == (29, 2, 0)
    assert calibration.reason == "calibration needs 30 ratings, but there are 29"
    assert (calibration.error_after.value, calibration.gain.value) == (None, None)
    assert calibration.error_before.value == 0
    with pytest.raises(ValueError, match="30 ratings"):
        calibration.predict([0.1])


def test_equal_scores_give_no_curve() -> None:
    x = np.linspace(-1, 1, 40)
    assert calibrate(np.full(40, 0.3), x).reason == "all scores are equal"
    assert calibrate(x, np.full(40, 0.3)).reason == "all ratings are equal"
    assert calibrate([], []).reason == "calibration needs 30 ratings, but there are 0"


def test_missing_scores_stay_missing() -> None:
    x = np.linspace(-1, 1, 40)
    calibration = calibrate(x, 2 * x).predict([[0.0, NAN], [9.0, -9.0]])
    np.testing.assert_allclose(calibration, np.array([[0.0, NAN], [2.0, -2.0]]), atol=0.05)


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="folds"):
        calibrate([1.0], [1.0], folds=1)
    with pytest.raises(ValueError, match="columns must be"):
        calibrate([1.0, 2.0], [1.0])


def test_copies_of_a_rating_are_not_held_out_from_each_other() -> None:
    x, y = np.random.default_rng(4).normal(size=(2, 40))
    once = calibrate(x, y)
    thrice = calibrate(np.repeat(x, 3), np.repeat(y, 3), groups=np.repeat(np.arange(40), 3))
    leaky = calibrate(np.repeat(x, 3), np.repeat(y, 3))
    assert thrice.error_after.value == pytest.approx(once.error_after.value)
    assert leaky.error_after.value is not None
    assert once.error_after.value is not None
    assert leaky.error_after.value < once.error_after.value - 0.05
    assert "5 separate groups" in (calibrate(x, y, groups=np.arange(40) % 3).reason or "")
    with pytest.raises(ValueError, match="shape"):
        calibrate(x, y, groups=[1])
