"""Figures over models: summaries, correlations with families of models, and the trend over sizes."""

from __future__ import annotations

import inspect
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from auditor.metrics.people.over_models import (
    MIN_TREND_MODELS,
    correlate_models,
    summarize_models,
    trend_within_families,
)

Floats = NDArray[np.float64]
NAN = float("nan")
SIZES = np.array([1e8, 3e8, 1e9, 3e9, 7e9, 1.3e10, 3e10, 7e10])


def test_each_model_counts_once_and_a_missing_figure_is_left_out() -> None:
    values = {"a": 0.2, "b": None, "c": 0.5, "d": -0.1, "e": 0.9, "f": 0.4}
    summary = summarize_models(values)
    known = np.array([value for value in values.values() if value is not None])
    assert summary.mean.value == pytest.approx(known.mean())
    assert summary.mean.n == 5
    assert summary.standard_deviation == pytest.approx(known.std(ddof=1))
    assert (summary.lowest, summary.lowest_model) == (-0.1, "d")
    assert (summary.highest, summary.highest_model) == (0.9, "e")
    half_width = 2.7764451 * known.std(ddof=1) / np.sqrt(5)
    assert summary.mean.ci_low == pytest.approx(known.mean() - half_width)


def test_an_interval_over_models_ends_where_no_figure_can_be() -> None:
    nearly_one = summarize_models({"a": 0.9, "b": 1.0, "c": 1.0, "d": 1.0, "e": 1.0}, (-1.0, 1.0)).mean
    assert nearly_one.value == pytest.approx(0.98)
    assert nearly_one.ci_low == pytest.approx(0.98 - 2.7764451 * 0.02)  # the other end stays Student's
    assert nearly_one.ci_high == 1.0
    nearly_zero = summarize_models({"a": 0.1, "b": 0.0, "c": 0.0, "d": 0.0, "e": 0.0}, (0.0, float("inf"))).mean
    assert nearly_zero.ci_low == 0.0
    assert nearly_zero.ci_high == pytest.approx(0.02 + 2.7764451 * 0.02)


def test_few_models_have_no_interval_and_no_model_has_no_mean() -> None:
    two = summarize_models({"a": 0.1, "b": 0.3})
    assert two.mean.value == pytest.approx(0.2)
    assert two.mean.ci_low is None
    assert "5" in str(two.mean.reason)
    none = summarize_models({"a": None})
    assert (none.mean.value, none.standard_deviation, none.highest_model) == (None, None, None)


def _pair(seed: int, n: int, rho: float = 0.5) -> tuple[Floats, Floats]:
    x, noise = np.random.default_rng(seed).normal(size=(2, n))
    return x, rho * x + np.sqrt(1 - rho**2) * noise


@pytest.mark.parametrize("n", [5, 6, 7])
def test_the_p_value_is_the_share_of_all_orders_with_as_large_a_correlation(n: int) -> None:
    x, y = _pair(n, n)
    result = correlate_models(x, y)
    r = stats.pearsonr(x, y).statistic
    of_orders = stats.zscore(np.array(list(permutations(y))), axis=1) @ stats.zscore(x) / n
    as_large = np.abs(of_orders) >= abs(r) - 1e-12
    assert result.value == pytest.approx(r)
    assert result.p_value == pytest.approx(np.mean(as_large))
    assert (result.ci_low, result.reason) == (None, "too few models: an interval needs at least 8")


RNG_KEYWORD = "rng" if "rng" in inspect.signature(stats.permutation_test).parameters else "random_state"
"""Name of an argument in this version of scipy; the older one is deprecated in newer ones."""


def _scipy_p_value(x: Floats, y: Floats) -> float:
    """The p-value of scipy's permutation test of |r|, which is exact where all orders fit into 50,000 samples."""
    options: dict[str, Any] = {RNG_KEYWORD: np.random.default_rng(1)}
    return float(
        stats.permutation_test(
            (stats.zscore(y),), lambda v, axis: np.abs(v @ stats.zscore(x)), vectorized=True, alternative="greater",
            permutation_type="pairings", n_resamples=50_000, **options,
        ).pvalue
    )  # fmt: skip


def test_the_p_value_is_scipys_exact_one() -> None:
    x, y = _pair(8, 8)
    assert correlate_models(x, y).p_value == pytest.approx(_scipy_p_value(x, y))


def test_more_than_eight_models_have_a_random_sample_of_orders() -> None:
    x, y = _pair(1, 12)
    result = correlate_models(x, y)
    assert result.p_value == pytest.approx(_scipy_p_value(x, y), abs=0.015)
    assert result.p_value == correlate_models(x, y).p_value
    assert correlate_models(x, 2 * x + 1e-3 * y).p_value == 1e-4  # the observed order is one of 10,000


def test_intervals_from_eight_models_are_fishers_and_bonett_and_wrights() -> None:
    x, y = _pair(2, 10)
    result, ranked = correlate_models(x, y), correlate_models(x, y, ranks=True)
    fisher = stats.pearsonr(x, y).confidence_interval()
    assert (result.ci_low, result.ci_high) == pytest.approx((fisher.low, fisher.high))
    assert (result.resampled, result.generalizes_to) == (("model",), "other models like these")
    rho = stats.spearmanr(x, y).statistic
    half_width = stats.norm.ppf(0.975) * np.sqrt((1 + rho**2 / 2) / 7)
    ends = np.tanh([np.arctanh(rho) - half_width, np.arctanh(rho) + half_width])
    assert ranked.value == pytest.approx(rho)
    assert (ranked.ci_low, ranked.ci_high) == pytest.approx(tuple(ends))


def test_too_few_models_have_a_value_and_a_reason() -> None:
    four = correlate_models(*_pair(3, 4))
    assert four.value is not None
    assert (four.p_value, four.ci_low, four.resampled) == (None, None, ())
    assert four.reason == "a test needs at least 5 models, and an interval 8"
    two = correlate_models([1.0, 2.0, NAN], [2.0, 1.0, 3.0])
    assert (two.value, two.p_value, two.models, two.reason) == (None, None, 2, "fewer than 3 models (2)")
    constant = correlate_models([1.0] * 6, np.arange(6.0))
    assert (constant.value, constant.p_value, constant.reason) == (None, None, "x constant")


def test_models_of_one_family_are_averaged_first() -> None:
    x, y = _pair(4, 9)
    families = ["a", "a", "b", None, None, "c", "c", "c", "d"]
    index = [0, 0, 1, 2, 3, 4, 4, 4, 5]
    means = [np.array([values[np.array(index) == i].mean() for i in range(6)]) for values in (x, y)]
    result = correlate_models(x, y, families)
    assert result.value == pytest.approx(stats.pearsonr(*means).statistic)
    assert result.p_value == correlate_models(means[0], means[1]).p_value
    assert result.r_over_models == pytest.approx(stats.pearsonr(x, y).statistic)
    assert (result.n, result.models) == (6, 9)
    assert result.reason == "too few model families: an interval needs at least 8"


def test_single_models_of_known_families_are_models() -> None:
    x, y = _pair(5, 9)
    by_name = correlate_models(x, y, [f"family {i}" for i in range(9)])
    assert by_name == correlate_models(x, y)
    assert by_name.r_over_models == by_name.value


def test_p_values_are_uniform_where_families_have_nothing_in_common_between_the_figures() -> None:
    """A test over single models, the negative control, finds relations that are not there."""
    sizes, n_runs = [4, 3, 2, 2, 1, 1], 400
    index = np.repeat(np.arange(6), sizes)
    families = [str(i) for i in index]
    p_values, naive = [], []
    for seed in range(n_runs):
        rng = np.random.default_rng(seed)
        x, y = (np.sqrt(0.8) * rng.normal(size=6)[index] + np.sqrt(0.2) * rng.normal(size=13) for _ in range(2))
        p_values.append(correlate_models(x, y, families).p_value)
        naive.append(stats.pearsonr(x, y).pvalue)
    for level in (0.05, 0.2, 0.5):
        assert np.mean(np.array(p_values, dtype=float) < level) == pytest.approx(level, abs=0.07)
    assert np.mean(np.array(p_values, dtype=float) < 0.05) < 0.09
    assert np.mean(np.array(naive) < 0.05) > 0.12


def test_a_strong_relation_of_eight_models_is_found() -> None:
    p_values = [correlate_models(*_pair(seed, 8, 0.9)).p_value for seed in range(60)]
    assert np.mean(np.array(p_values, dtype=float) < 0.05) > 0.85


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


@pytest.mark.parametrize("slope", [0.0, 0.1])
def test_figures_that_are_exactly_on_a_line_have_no_interval(slope: float) -> None:
    trend = trend_within_families(0.3 + slope * np.log10(SIZES), SIZES, ["a"] * 8)
    assert trend.value == pytest.approx(slope, abs=1e-12)
    assert (trend.ci_low, trend.ci_high, trend.p_value) == (None, None, None)
    assert "exactly on a line" in (trend.reason or "")
