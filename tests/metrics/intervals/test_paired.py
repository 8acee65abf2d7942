"""Paired differences of means, errors and shares: against scipy, published examples, and coverage."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from auditor.metrics.intervals.estimate import Estimate, Tested
from auditor.metrics.intervals.jackknife_interval import FISHER_Z, IDENTITY
from auditor.metrics.intervals.paired import (
    PairedTable,
    pair_verdicts,
    paired_difference,
    paired_difference_over_units,
    paired_differences_over_units,
    paired_error,
    recover_difference,
    recover_difference_with_p_value,
    subtract_independent,
)
from auditor.metrics.intervals.unit_means import mean_over_units
from tests.support.hand_jackknife import two_way_variance
from tests.support.known import known

BOUNDS = (-2.0, 2.0)
Floats = NDArray[np.float64]
Units = dict[str, NDArray[np.intp]]
NAN = float("nan")


def compare(first: ArrayLike, second: ArrayLike, bounds: tuple[float, float] = BOUNDS) -> Tested:
    return paired_difference(first, second, {"question": np.arange(len(np.asarray(first)))}, bounds=bounds)


def compare_with_zero(differences: ArrayLike, bounds: tuple[float, float] = BOUNDS) -> Tested:
    return compare(np.zeros(len(np.asarray(differences))), differences, bounds)


def assert_interval_and_p_value_agree(difference: Tested) -> None:
    low, high, p_value = difference.ci_low, difference.ci_high, difference.p_value
    if low is None or high is None or p_value is None:
        assert (low, high, p_value) == (None, None, None)
        assert difference.reason
    else:
        assert 0 <= p_value <= 1
        assert (low > 0 or high < 0) == (p_value < 0.05)


def test_the_interval_is_that_of_a_bounded_mean() -> None:
    first, second = np.random.default_rng(3).uniform(-1, 1, size=(2, 12))
    second[4] = np.nan
    questions = {"question": np.arange(12)}
    result = paired_difference(first, second, questions, bounds=BOUNDS)
    mean = mean_over_units(second - first, questions, BOUNDS)
    assert result == Tested(**asdict(mean), p_value=result.p_value)
    assert (result.n, result.resampled) == (11, ("question",))


@given(
    bounds=st.sampled_from([BOUNDS, (-1.0, 1.0), (-1.0, 3.0), (-0.3, 0.1)]),
    shares=st.lists(st.floats(0, 1) | st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=30),
)
def test_the_interval_excludes_0_where_the_p_value_is_below_5_percent(
    bounds: tuple[float, float], shares: list[float]
) -> None:
    assert_interval_and_p_value_agree(compare_with_zero(bounds[0] + (bounds[1] - bounds[0]) * np.array(shares), bounds))


@pytest.mark.parametrize("n", [5, 12, 50])
def test_both_agree_near_the_limit_too(n: int) -> None:
    shape = np.random.default_rng(n).normal(size=n)
    p_values = []
    for mean in np.linspace(-0.6, 0.6, 401):
        result = compare_with_zero(np.clip(mean + 0.4 * shape, *BOUNDS))
        assert_interval_and_p_value_agree(result)
        p_values.append(result.p_value or 0.0)
    assert any(0.04 < p < 0.05 for p in p_values)
    assert any(0.05 < p < 0.06 for p in p_values)


@pytest.mark.parametrize("value", BOUNDS)
def test_pairs_that_all_differ_by_a_bound_count_as_one_case_each(value: float) -> None:
    result = compare_with_zero(np.full(8, value))
    assert result.p_value == pytest.approx(2 * 0.5**8)
    assert_interval_and_p_value_agree(result)


def test_with_many_pairs_the_p_value_is_near_students() -> None:
    first, second = np.random.default_rng(4).uniform(-1, 1, size=(2, 400))
    first -= 0.1
    first = np.maximum(first, -1)
    assert compare(first, second).p_value == pytest.approx(stats.ttest_rel(first, second).pvalue, rel=0.2)


def test_the_other_order_has_the_other_sign_and_the_same_p_value() -> None:
    first, second = np.random.default_rng(5).uniform(-1, 1, size=(2, 15))
    one, other = compare(first, second), compare(second, first)
    assert one.value == pytest.approx(-(other.value or 0))
    assert one.p_value == pytest.approx(other.p_value)


def test_a_large_difference_has_a_p_value_near_0() -> None:
    assert 0 <= (compare_with_zero(np.random.default_rng(6).normal(1, 0.01, 300)).p_value or 0) < 1e-12


def test_equal_pairs_are_found_to_differ_as_often_as_the_p_value_says() -> None:
    rng = np.random.default_rng(7)
    p_values = np.array([compare_with_zero(np.clip(rng.normal(0, 0.2, 5), *BOUNDS)).p_value for _ in range(1600)])
    assert np.mean(p_values < 0.05) == pytest.approx(0.05, abs=0.01)
    assert np.mean(p_values < 0.003) <= 0.005


def test_equal_differences_have_neither_an_interval_nor_a_p_value() -> None:
    same = compare([0.1, 0.2, 0.3, 0.4, 0.5], [0.1, 0.2, 0.3, 0.4, 0.5])
    assert (same.value, same.ci_low, same.p_value) == (0.0, None, None)
    assert same.reason


def test_what_cannot_be_compared_has_a_reason() -> None:
    none = compare([np.nan], [1.0])
    assert (none.p_value, none.reason) == (None, "no pair has both values")
    few = compare([0.1, np.nan, 0.3], [0.2, 0.1, 0.3])
    assert (few.n, few.ci_low, few.p_value) == (2, None, None)
    with pytest.raises(ValueError, match="one length"):
        compare([1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="from -2"):
        compare([0.0] * 5, [3.0] * 5)


@pytest.mark.parametrize("bounds", [(-np.inf, np.inf), (0.0, 1.0), (-1.0, 0.0)])
def test_bounds_are_finite_and_on_both_sides_of_0(bounds: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="one below 0 and one above"):
        compare([0.0] * 5, [0.0] * 5, bounds)


def test_it_agrees_with_zous_published_example() -> None:
    """Zou (Psychological Methods 12, 2007), example 1: independent r of .49 (n = 145) and .36 (n = 87)."""
    n = np.array([145, 87])
    z, se = np.arctanh([0.49, 0.36]), 1 / np.sqrt(n - 3)
    low, high = recover_difference(FISHER_Z, z[0], z[1], (se[0], se[1]), np.array(0.0), 1.959964)
    # By hand, from the intervals .355 to .606 and .162 to .530.
    (l1, l2), (u1, u2) = np.tanh(z - 1.959964 * se), np.tanh(z + 1.959964 * se)
    assert float(low) == pytest.approx(0.13 - np.hypot(0.49 - l1, u2 - 0.36))
    assert float(high) == pytest.approx(0.13 + np.hypot(u1 - 0.49, 0.36 - l2))


def test_without_a_transform_it_is_the_usual_interval() -> None:
    low, high = recover_difference(
        IDENTITY,
        np.array([1.0, 2.0]),
        np.array([0.5]),
        (np.array([0.2, 0.3]), np.array([0.1])),
        np.array([0.01, 0.0]),
        2.0,
    )
    std_errors = np.sqrt([0.04 + 0.01 - 0.02, 0.09 + 0.01])
    assert low == pytest.approx([0.5, 1.5] - 2 * std_errors)
    assert high == pytest.approx([0.5, 1.5] + 2 * std_errors)


def test_the_p_value_is_below_5_percent_where_the_interval_excludes_zero() -> None:
    rng = np.random.default_rng(0)
    n_excluded = 0
    for _ in range(100):
        first, second = rng.normal(0.6, 0.3, 2)
        std_errors = (float(rng.uniform(0.05, 0.3)), float(rng.uniform(0.05, 0.3)))
        covariance = float(rng.uniform(-0.9, 0.9)) * std_errors[0] * std_errors[1]
        low, high, p_value = recover_difference_with_p_value(FISHER_Z, (first, second), std_errors, covariance, 9)
        excluded = low > 0 or high < 0
        assert (p_value < 0.05) == excluded
        n_excluded += excluded
    assert 10 <= n_excluded <= 90
    assert recover_difference_with_p_value(FISHER_Z, (0.5, 0.5), (0.1, 0.2), 0.0, 9)[2] == 1.0


def test_without_a_transform_the_p_value_is_students() -> None:
    p_value = recover_difference_with_p_value(IDENTITY, (1.0, 0.6), (0.2, 0.1), 0.005, 7)[2]
    assert p_value == pytest.approx(2 * stats.t.sf(0.4 / (0.04 + 0.01 - 0.01) ** 0.5, 7), rel=1e-9)


def test_it_covers_where_the_two_differ_and_moving_both_by_equal_steps_does_not() -> None:
    """True r of .97 and .6 with equal standard errors of z: nearly all of the uncertainty is in the lower."""
    rng = np.random.default_rng(1)
    true = np.arctanh([0.97, 0.6])
    first, second = (rng.normal(mean, 0.15, 4000) for mean in true)
    difference = 0.97 - 0.6
    low, high = recover_difference(FISHER_Z, first, second, (np.array(0.15), np.array(0.15)), np.array(0.0), 1.96)
    middle, step = (first + second) / 2, 1.96 * 0.15 * 2**0.5 / 2
    naive_low, naive_high = (
        np.tanh(middle + d) - np.tanh(middle - d) for d in ((first - second) / 2 - step, (first - second) / 2 + step)
    )
    covered = np.mean((low <= difference) & (difference <= high))
    assert 0.94 <= covered <= stats.binom.ppf(0.999, 4000, 0.96) / 4000
    assert np.mean((naive_low <= difference) & (difference <= naive_high)) < 0.9


def test_independent_shares_agree_with_newcombes_published_example() -> None:
    """Newcombe (Statistics in Medicine 17, 1998), table II, (a): 56 / 70 - 48 / 80 by method 10."""
    ends = [proportion_confint(hits, n, method="wilson") for hits, n in ((56, 70), (48, 80))]
    first, second = (Estimate(v, n, *end) for v, n, end in zip((0.8, 0.6), (70, 80), ends, strict=True))
    difference = subtract_independent(first, second)
    assert (difference.ci_low, difference.ci_high) == pytest.approx((0.0524, 0.3339), abs=1e-4)
    assert difference.value == pytest.approx(0.2)
    assert difference.n == 150
    assert known(difference.p_value) < 0.05
    reverse = subtract_independent(second, first)
    assert (reverse.ci_low, reverse.p_value) == pytest.approx((-0.3339, known(difference.p_value)), abs=1e-4)


def test_a_missing_interval_has_its_reason() -> None:
    first, missing = Estimate(0.5, 10, 0.4, 0.6), Estimate(0.7, 5, reason="too few labels")
    assert subtract_independent(first, missing).reason == "too few labels"
    assert subtract_independent(missing, first).value == pytest.approx(0.2)
    unknown = subtract_independent(first, Estimate(None, 0, reason="no label"))
    assert (unknown.value, unknown.reason, unknown.p_value) == (None, "no label", None)


def test_is_the_paired_t_test_of_the_absolute_errors() -> None:
    rng = np.random.default_rng(3)
    truth, first, second = rng.uniform(-1, 1, (3, 12))
    first[4], second[7] = np.nan, np.nan
    keep = [i for i in range(12) if i not in (4, 7)]
    errors = [np.abs(v[keep] - truth[keep]) for v in (second, first)]
    outside = stats.ttest_rel(*errors)
    low, high = outside.confidence_interval(0.95)
    difference = paired_error(first, second, truth, "country")
    assert difference.n == 10
    assert (difference.value, difference.ci_low, difference.ci_high, difference.p_value) == pytest.approx(
        (errors[0].mean() - errors[1].mean(), low, high, outside.pvalue)
    )


@pytest.mark.parametrize(
    ("first", "reason"), [([], "no cell"), ([0.1, 0.2, 0.3, 0.4], "needs 5 cells"), ([0.1] * 5, "equal")]
)
def test_degenerate_input_says_why(first: list[float], reason: str) -> None:
    difference = paired_error(first, [0.3] * len(first), [0.0] * len(first), "topic")
    assert reason in str(difference.reason)
    assert difference.p_value is None
    assert difference.ci_low is None


def _units(n_countries: int, n_topics: int) -> Units:
    return {"country": np.repeat(np.arange(n_countries), n_topics), "topic": np.tile(np.arange(n_topics), n_countries)}


def _verdict_pairs(
    rng: np.random.Generator, n_countries: int, n_topics: int, shift: float, mean: float = 0.5
) -> tuple[Floats, Floats]:
    """Verdicts before and after a change whose effect differs between topics and countries."""
    country, topic, topic_shift, country_shift = (
        rng.normal(size=shape) for shape in ((n_countries, 1), (1, n_topics), (1, n_topics), (n_countries, 1))
    )
    trace, first, second = rng.normal(size=(3, n_countries, n_topics))
    quality = mean + 0.4 * country + 0.6 * topic + trace
    before = quality + first > 0
    after = quality + shift + 0.6 * topic_shift + 0.4 * country_shift + second > 0
    return before.ravel().astype(float), after.ravel().astype(float)


def test_the_interval_is_the_jackknifes_over_countries_and_topics() -> None:
    units = _units(8, 7)
    before, after = _verdict_pairs(np.random.default_rng(1), 8, 7, -0.5)
    result = paired_difference_over_units(pair_verdicts(before, after, units))
    total = two_way_variance(lambda keep: float((after - before)[keep].mean()), **units)
    difference, half_width = (after - before).mean(), stats.t.ppf(0.975, 6) * total**0.5
    assert result.value == pytest.approx(difference)
    ends = (result.ci_low, result.ci_high)
    assert ends == pytest.approx((difference - half_width, difference + half_width), abs=1e-9)
    assert result.p_value == pytest.approx(2 * stats.t.sf(abs(difference) / total**0.5, 6))
    assert (result.n, result.resampled) == (56, ("country", "topic"))


def test_a_difference_of_all_cases_has_bonett_and_prices_interval_with_each_unit_as_one_case() -> None:
    result = paired_difference_over_units(pair_verdicts(np.ones(60), np.zeros(60), _units(10, 6)))
    # 6 cases, one gained and one lost added: (1 - 7) / 8, with variance (8/8 - (6/8)²) / 8.
    half_width = stats.t.ppf(0.975, 5) * ((1 - 0.75**2) / 8) ** 0.5
    assert (result.value, result.ci_low) == (-1.0, -1.0)
    assert result.ci_high == pytest.approx(-0.75 + half_width)


def test_where_no_verdict_changed_the_interval_is_around_0() -> None:
    before, _ = _verdict_pairs(np.random.default_rng(3), 10, 6, 0.0)
    estimate = paired_difference_over_units(pair_verdicts(before, before, _units(10, 6)))
    assert estimate.value == 0
    assert -known(estimate.ci_low) == pytest.approx(known(estimate.ci_high))
    assert 0.1 < known(estimate.ci_high) < 0.6


def test_other_rows_say_how_many_cases_are_independent() -> None:
    rng, units = np.random.default_rng(4), _units(20, 10)
    tables = [pair_verdicts(*_verdict_pairs(rng, 20, 10, -1.0), units) for _ in range(4)]
    unchanged = pair_verdicts(np.ones(200), np.ones(200), units)
    pooled, single = paired_differences_over_units([*tables, unchanged])[-1], paired_difference_over_units(unchanged)
    assert known(pooled.ci_high) < known(single.ci_high) / 2


def test_without_enough_units_there_is_a_reason() -> None:
    few = paired_difference_over_units(pair_verdicts(np.ones(40), np.zeros(40), _units(10, 4)))
    assert (few.value, few.ci_low, few.p_value) == (-1.0, None, None)
    assert "but there are 4 topics" in str(few.reason)
    none = paired_difference_over_units(pair_verdicts([NAN, 1.0], [1.0, NAN], {"item": [1, 2]}))
    assert (none.value, none.reason) == (None, "nothing to compare")


def test_verdicts_without_a_partner_are_left_out() -> None:
    table = pair_verdicts([1, 0, NAN, 1, 1], [0, 1, 1, NAN, 1], {"item": range(5)})
    assert [np.asarray(column).tolist() for column in table[:3]] == [
        [False, True, False, False, False], [True, False, False, False, False], [True, True, False, False, True],
    ]  # fmt: skip


def test_malformed_input_raises() -> None:
    with pytest.raises(ValueError, match="one shape"):
        paired_difference_over_units(PairedTable([1, 0], [0], [1], {"item": [1]}))
    with pytest.raises(ValueError, match="at most the totals"):
        paired_difference_over_units(PairedTable([1], [1], [1], {"item": [1]}))
