"""Scores and confidences calibrated by labels: bent scales, slopes and degenerate input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import minimize
from scipy.special import expit, logit

from auditor.metrics.intervals.estimate import Floats
from auditor.metrics.labels.calibration import ConfidenceCalibration, calibrate, confidence_calibration_error
from tests.support.known import known

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
    # The best that can be done is the noise's own mean size, 0.05 * sqrt(2 / pi) = 0.040.
    assert known(calibration.error_before.value) > 0.2
    assert 0.035 < known(calibration.error_after.value) < 0.06
    assert calibration.gain.value == pytest.approx(
        known(calibration.error_before.value) - known(calibration.error_after.value)
    )
    assert known(calibration.gain.ci_low) > 0.1


def test_error_is_of_ratings_not_seen() -> None:
    # Scores say nothing: fitted on itself the curve looks better than the mean, held out it must not.
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 60))
    calibration = calibrate(x, y)
    seen = float(np.abs(calibration.predict(x) - y).mean())
    assert known(calibration.error_after.value) > seen + 0.02
    assert known(calibration.error_after.value) > float(np.abs(y - y.mean()).mean()) - 0.05


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


def test_copies_of_a_rating_are_not_held_out_from_each_other() -> None:
    x, y = np.random.default_rng(4).normal(size=(2, 40))
    once = calibrate(x, y)
    thrice = calibrate(np.repeat(x, 3), np.repeat(y, 3), groups=np.repeat(np.arange(40), 3))
    leaky = calibrate(np.repeat(x, 3), np.repeat(y, 3))
    assert thrice.error_after.value == pytest.approx(once.error_after.value)
    assert known(leaky.error_after.value) < known(once.error_after.value) - 0.05
    assert "5 separate groups" in (calibrate(x, y, groups=np.arange(40) % 3).reason or "")
    with pytest.raises(ValueError, match="shape"):
        calibrate(x, y, groups=[1])


def _sample(seed: int, slope: float = 1.0, intercept: float = 0.0, n: int = 200) -> tuple[Floats, Floats]:
    """Probabilities of 2,000 traces, and labels of n of them whose log-odds are a line in those of the probability."""
    rng = np.random.default_rng(seed)
    probabilities = rng.beta(4, 2, 2000)
    truth = rng.random(2000) < expit(slope * logit(probabilities) + intercept)
    return probabilities, np.where(rng.permutation(2000) < n, truth.astype(float), NAN)


def _measure(probabilities: Floats, labels: Floats, **options: Any) -> ConfidenceCalibration:
    return confidence_calibration_error(probabilities, labels, n_resamples=500, **options)


def test_bins_are_those_of_the_definition() -> None:
    probabilities = np.array([0.05] * 20 + [0.65] * 20 + [1.0] * 10)
    labels = np.array([1.0] * 3 + [0.0] * 17 + [1.0] * 10 + [0.0] * 10 + [1.0] * 9 + [0.0])
    result = _measure(probabilities, labels)
    assert result.error == pytest.approx(0.4 * 0.10 + 0.4 * 0.15 + 0.2 * 0.1)
    assert [(b.low, b.high, b.n) for b in result.bins] == [(0.0, 0.1, 20), (0.6, 0.7, 20), (0.9, 1.0, 10)]
    assert [b.mean_probability for b in result.bins] == pytest.approx([0.05, 0.65, 1.0])
    assert [b.share for b in result.bins] == pytest.approx([0.15, 0.5, 0.9])
    assert (result.bins[2].band_low, result.bins[2].band_high) == pytest.approx((1.0, 1.0))


def test_an_end_of_a_bin_belongs_to_the_bin_above() -> None:
    # 0.57 * 100 is 56.99999999999999 in floating point.
    result = _measure(np.full(40, 0.57), np.tile([0.0, 1.0], 20), n_bins=100)
    assert [(b.low, b.n) for b in result.bins] == [(0.57, 40)]


def test_a_calibrated_judge_is_within_the_band() -> None:
    # 200 labels in ten bins: an error of about .07 by chance.
    results = [_measure(*_sample(seed)) for seed in range(60)]
    outside = sum(r.error > r.error_band_high for r in results if r.error is not None and r.error_band_high is not None)
    assert outside <= 6  # 2.5% of 60 are 1.5
    assert np.mean([r.error_if_calibrated for r in results if r.error_if_calibrated]) == pytest.approx(0.07, abs=0.015)
    assert np.mean([r.p_value for r in results if r.p_value]) == pytest.approx(0.5, abs=0.13)


def test_an_overconfident_judge_is_outside_the_band() -> None:
    result = _measure(*_sample(1, slope=0.3, n=400))
    assert known(result.error) > known(result.error_band_high)
    assert result.p_value == pytest.approx(1 / 501)
    assert known(result.slope.ci_high) < 1


def test_slope_and_intercept_maximize_the_weighted_likelihood() -> None:
    probabilities, labels = _sample(2, slope=0.6, intercept=0.4)
    inclusion = np.random.default_rng(2).uniform(0.1, 0.9, 2000)
    result = _measure(probabilities, labels, inclusion=inclusion)
    is_labelled = ~np.isnan(labels)
    weights, y, x = 1 / inclusion[is_labelled], labels[is_labelled], logit(probabilities[is_labelled])

    def loss(coefficients: Floats) -> float:
        fitted = expit(coefficients[0] * x + coefficients[1])
        return float(-(weights * (y * np.log(fitted) + (1 - y) * np.log(1 - fitted))).sum())

    def loss_at_slope_1(coefficients: Floats) -> float:
        return loss(np.array([1.0, coefficients[0]]))

    joint = minimize(loss, np.array([1.0, 0.0]), method="BFGS")
    offset = minimize(loss_at_slope_1, np.zeros(1), method="BFGS")
    assert result.slope.value == pytest.approx(joint.x[0], abs=1e-4)
    assert result.intercept.value == pytest.approx(offset.x[0], abs=1e-4)


def test_the_band_is_seeded() -> None:
    probabilities, labels = _sample(4)
    assert _measure(probabilities, labels, seed=1) == _measure(probabilities, labels, seed=1)
    first, second = (_measure(probabilities, labels, seed=seed).error_if_calibrated for seed in (1, 2))
    assert first != second


def test_degenerate_input_has_a_reason() -> None:
    probabilities, labels = _sample(5, n=29)
    few = _measure(probabilities, labels)
    assert few.error is None
    assert few.reason == few.slope.reason == "calibration needs 30 labels, but there are 29"
    empty = _measure(probabilities[:100], _sample(5, n=2000)[1][:100], strata=np.arange(100))
    assert empty.reason is None
    labels = np.where(np.arange(60) < 40, np.arange(60) % 2, NAN)
    constant = _measure(np.full(60, 0.7), labels)
    assert constant.error == pytest.approx(0.2)
    assert constant.slope.reason == "all probabilities are equal: no slope"
    assert constant.intercept.value == pytest.approx(logit(0.5) - logit(0.7))
    probabilities = np.linspace(0, 1, 60)
    separated = _measure(probabilities, np.where(np.arange(60) % 3 == 0, NAN, probabilities > 0.5))
    assert separated.slope.value is None
    assert "no solution" in (separated.slope.reason or "")
    all_valid = _measure(probabilities, np.where(np.arange(60) % 3 == 0, NAN, 1.0))
    assert "no solution" in (all_valid.intercept.reason or "")
    unlabelled_stratum = _measure(probabilities, labels, strata=np.arange(60) // 40)
    assert unlabelled_stratum.reason == "1 stratum has no label: label at least 2 traces of each"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: calibrate([1.0], [1.0], folds=1), "folds"),
        (lambda: calibrate([1.0, 2.0], [1.0]), "columns must be"),
        (lambda: _measure(np.full(40, 1.2), np.zeros(40)), "probabilities and labels must be from 0 to 1"),
        (lambda: _measure(np.full(40, 0.2), np.full(40, 2.0)), "probabilities and labels must be from 0 to 1"),
        (lambda: _measure(np.full(40, 0.2), np.zeros(40), n_bins=1), "n_bins must be from 2 to 100"),
    ],
)
def test_wrong_arguments_are_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
