"""The trend over sizes of models: against ordinary regression, and its limits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from auditor.metrics.people.over_models import MIN_TREND_MODELS, trend_within_families

SIZES = np.array([1e8, 3e8, 1e9, 3e9, 7e9, 1.3e10, 3e10, 7e10])


def test_the_trend_within_one_family_is_that_of_linear_regression() -> None:
    y = np.random.default_rng(1).normal(0, 1, 8) + 0.5 * np.log10(SIZES)
    trend, expected = trend_within_families(y, SIZES, ["a"] * 8), stats.linregress(np.log10(SIZES), y)
    half_width = stats.t.ppf(0.975, 6) * expected.stderr
    assert trend.value == pytest.approx(expected.slope)
    assert (trend.ci_low, trend.ci_high) == pytest.approx((expected.slope - half_width, expected.slope + half_width))
    assert trend.p_value == pytest.approx(expected.pvalue)
    assert (trend.n, trend.resampled) == (8, ("model",))


def test_families_have_intercepts_of_their_own_and_a_single_model_of_a_family_is_left_out() -> None:
    rng = np.random.default_rng(2)
    families = ["a"] * 4 + ["b"] * 4
    y = rng.normal(0, 0.1, 8) + np.repeat([0.0, 5.0], 4)
    trend = trend_within_families([*y, 99.0], [*SIZES, 1e12], [*families, "alone"])
    design = np.column_stack([np.repeat([1.0, 0.0], 4), np.repeat([0.0, 1.0], 4), np.log10(SIZES)])
    coefficients, residuals, *_ = np.linalg.lstsq(design, y, rcond=None)
    std_error = np.sqrt(residuals[0] / 5 * np.linalg.inv(design.T @ design)[2, 2])
    assert trend.n == 8
    assert trend.value == pytest.approx(coefficients[2])
    assert (trend.ci_high or 0.0) - (trend.ci_low or 0.0) == pytest.approx(2 * stats.t.ppf(0.975, 5) * std_error)


def test_there_is_no_trend_below_six_models_or_for_equal_sizes() -> None:
    y = np.arange(8.0)
    for n in range(MIN_TREND_MODELS):
        trend = trend_within_families(y[:n], SIZES[:n], ["a"] * n)
        assert (trend.value, trend.p_value) == (None, None)
        assert "at least 6 models" in (trend.reason or "")
    assert trend_within_families([*y[:5], np.nan], SIZES[:6], ["a"] * 6).value is None
    assert trend_within_families(y, np.full(8, 7e9), ["a"] * 8).reason == "the models of a family have equal sizes"
    assert trend_within_families(y[:6], SIZES[:6], ["a"] * 6).value is not None


def test_a_planted_trend_is_covered_and_found_and_none_is_not() -> None:
    """Eight models over three decades; two standard deviations between models per decade."""
    rng, n_audits = np.random.default_rng(3), 400
    results = {slope: [0, 0] for slope in (0.0, 2.0)}
    for slope, counts in results.items():
        for _ in range(n_audits):
            y = slope * np.log10(SIZES) + rng.normal(0, 1, 8)
            trend = trend_within_families(y, SIZES, ["a"] * 8)
            counts[0] += (trend.ci_low or 0.0) <= slope <= (trend.ci_high or 0.0)
            counts[1] += (trend.p_value or 0.0) < 0.05
    assert all(n_covered >= 0.92 * n_audits for n_covered, _ in results.values())
    assert results[0.0][1] <= 0.075 * n_audits
    assert results[2.0][1] >= 0.9 * n_audits
