"""Critical values agree with published ones where the problem is classical, and grow with the number of series."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from auditor.metrics.intervals.multiple_testing import (
    MIN_SHARE,
    N_DRAWS,
    UnitKind,
    all_pairs_p_value,
    critical_values,
    divide_variance,
)


def make_kinds(n_countries: int, n_topics: int, topic_share: float) -> list[UnitKind]:
    return [UnitKind((n_countries,), 1 - topic_share), UnitKind((n_topics,), topic_share)]


def test_two_series_have_students_quantile() -> None:
    values = critical_values(2, make_kinds(20, 10, 0.9))
    assert values.all_pairs == values.with_one == pytest.approx(stats.t.ppf(0.975, 9))


@pytest.mark.parametrize("n_series", [3, 5, 10])
def test_with_many_units_they_are_tukeys_and_dunnetts(n_series: int) -> None:
    """Without uncertainty of the standard errors it is Tukey's range, and Dunnett's two-sided problem."""
    values = critical_values(n_series, [UnitKind((2000,), 1.0), UnitKind((2000,), 0.0)])
    tukey = stats.studentized_range.ppf(0.95, n_series, np.inf) / 2**0.5
    rng = np.random.default_rng(1)
    normal = rng.standard_normal((400_000, n_series))
    dunnett = np.quantile(np.abs(normal[:, 1:] - normal[:, :1]).max(axis=1) / 2**0.5, 0.95)
    assert values.all_pairs == pytest.approx(tukey, abs=0.06)
    assert values.with_one == pytest.approx(dunnett, abs=0.04)


def test_few_units_give_separate_standard_errors_near_bonferroni() -> None:
    """Paired t tests over 8 units: Bonferroni's quantile is close, Tukey's range is much too small."""
    value = critical_values(20, make_kinds(8, 8, 1.0)).all_pairs
    assert stats.studentized_range.ppf(0.95, 20, 7) / 2**0.5 < value - 1
    assert value == pytest.approx(stats.t.ppf(1 - 0.025 / 190, 7), rel=0.06)


def test_values_grow_with_the_number_of_series_and_shrink_with_the_units() -> None:
    by_series = [critical_values(n, make_kinds(20, 10, 0.8)).all_pairs for n in (2, 3, 6, 20)]
    by_units = [critical_values(6, make_kinds(n, n, 0.8)).all_pairs for n in (5, 8, 20, 60)]
    assert by_series == sorted(by_series)
    assert by_units == sorted(by_units, reverse=True)
    one = critical_values(20, make_kinds(20, 10, 0.8))
    assert stats.t.ppf(0.975, 9) <= one.with_one < one.all_pairs


@pytest.mark.parametrize(
    ("n_series", "kinds"),
    [
        (2, make_kinds(20, 10, 0.9)),
        (6, make_kinds(20, 10, 0.8)),
        (4, [UnitKind((5, 6, 7, 20), 0.9), UnitKind((19,), 0.1)]),
    ],
)
def test_p_values_are_those_of_the_critical_values(n_series: int, kinds: list[UnitKind]) -> None:
    critical = critical_values(n_series, kinds).all_pairs
    assert all_pairs_p_value(critical, n_series, kinds) == pytest.approx(0.05)
    assert (
        all_pairs_p_value(-1.001 * critical, n_series, kinds)
        < 0.05
        < all_pairs_p_value(0.999 * critical, n_series, kinds)
    )
    p_values = [all_pairs_p_value(statistic, n_series, kinds) for statistic in (0.0, 1.0, 2.0, 4.0, 8.0, 100.0)]
    assert p_values == sorted(p_values, reverse=True)
    assert p_values[0] == pytest.approx(1.0)
    if n_series > 2:
        assert p_values[-1] == 1 / N_DRAWS
    else:
        assert p_values[-1] == pytest.approx(2 * stats.t.sf(100, 9))


def test_units_of_groups_are_their_own() -> None:
    groups = critical_values(4, [UnitKind((5, 6, 7, 20), 0.9), UnitKind((19,), 0.1)])
    larger = critical_values(4, [UnitKind((20, 20, 20, 20), 0.9), UnitKind((19,), 0.1)])
    assert groups.all_pairs > larger.all_pairs > 2


def test_the_variance_is_divided_by_what_differs_between_series() -> None:
    by_country, by_topic = np.eye(3) + 100, 19 * np.eye(3)  # what is common to all series cancels
    kinds = divide_variance([by_country, by_topic], [(20,), (10,)])
    assert [kind.share for kind in kinds] == pytest.approx([0.05, 0.95])
    kinds = divide_variance([19 * np.eye(3), np.eye(3)], [(20,), (10,)])
    assert [kind.share for kind in kinds] == pytest.approx([1 - MIN_SHARE, MIN_SHARE])
    kinds = divide_variance([np.zeros((2, 2)), np.zeros((2, 2))], [(5,), (5,)])
    assert [kind.share for kind in kinds] == [1.0, 0.0]


def test_values_for_several_sets_of_differences_hold_together() -> None:
    two = critical_values(2, make_kinds(20, 10, 0.9), n_comparisons=2)
    assert two.all_pairs == two.with_one == pytest.approx(stats.t.ppf(1 - 0.025 / 2, 9))
    kinds = make_kinds(20, 10, 0.8)
    one, several = critical_values(6, kinds), critical_values(6, kinds, n_comparisons=4)
    assert all_pairs_p_value(several.all_pairs, 6, kinds) == pytest.approx(0.05 / 4, abs=1e-3)
    assert several.with_one > one.with_one
