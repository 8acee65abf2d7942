"""The paired difference: its interval is that of a bounded mean, and its p-value agrees with the interval."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import ArrayLike
from scipy import stats

from auditor.metrics.intervals.estimate import Tested
from auditor.metrics.intervals.paired import paired_difference
from auditor.metrics.intervals.unit_means import mean_over_units

BOUNDS = (-2.0, 2.0)


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
    p_values = np.array([compare_with_zero(np.clip(rng.normal(0, 0.2, 5), *BOUNDS)).p_value for _ in range(4000)])
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
