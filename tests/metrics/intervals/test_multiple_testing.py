"""Adjusted p-values and simultaneous critical values agree with published ones."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from scipy.stats import false_discovery_control
from statsmodels.stats.multitest import multipletests

from auditor.metrics.intervals.multiple_testing import (
    MIN_SHARE,
    N_DRAWS,
    UnitKind,
    all_pairs_p_value,
    benjamini_yekutieli,
    critical_values,
    divide_variance,
    holm,
    intersection_union,
    widest_gap,
)
from auditor.metrics.people.alignment import MAE, PEARSON
from tests.support.known import known

NAN = float("nan")
Floats = NDArray[np.float64]


def test_holm_is_statsmodels() -> None:
    for seed in range(5):
        p = np.random.default_rng(seed).beta(0.5, 3, size=12)
        p[3] = p[4]
        assert holm(p) == pytest.approx(multipletests(p, method="holm")[1], abs=1e-15)


def test_weights_give_a_test_a_larger_share_of_the_error() -> None:
    p = [0.03, 0.004, NAN, 0.5]
    assert holm(p, [1, 1, 1, 1]) == pytest.approx(holm(p), nan_ok=True)
    # 0.03 / 0.8 is before 0.004 / 0.1, as a share of the weight of 1 (that of the missing test counts nowhere)
    assert holm(p, [0.8, 0.1, 0.3, 0.1]) == pytest.approx([0.0375, 0.0375, NAN, 0.5], nan_ok=True)
    for weights in ([1, 1], [1, 1, 1, 0]):
        with pytest.raises(ValueError, match="weights"):
            holm(p, weights)


def test_holm_counts_only_tests() -> None:
    # 0.01 * 3, 0.02 * 2, max(0.04, 0.03 * 1)
    assert holm([0.02, NAN, 0.01, 0.03]) == pytest.approx([0.04, NAN, 0.03, 0.04], nan_ok=True)
    assert holm([]).size == 0
    assert np.isnan(holm([NAN])).all()
    with pytest.raises(ValueError, match="p-values"):
        holm([0.5, 1.2])


def test_benjamini_yekutieli_is_scipys() -> None:
    for seed in range(5):
        p = np.random.default_rng(seed).beta(0.5, 3, size=12)
        p[3] = p[4]
        assert benjamini_yekutieli(p) == pytest.approx(false_discovery_control(p, method="by"), abs=1e-15)


def test_benjamini_yekutieli_counts_only_tests() -> None:
    # The sum 1 + 1/2 = 1.5: the smallest of 0.01 * 2 * 1.5 / 1 and 0.02 * 2 * 1.5 / 2, and the latter.
    assert benjamini_yekutieli([0.02, NAN, 0.01]) == pytest.approx([0.03, NAN, 0.03], nan_ok=True)
    assert benjamini_yekutieli([]).size == 0
    with pytest.raises(ValueError, match="p-values"):
        benjamini_yekutieli([-0.1])


def test_a_claim_over_several_comparisons_is_as_weak_as_the_weakest() -> None:
    assert intersection_union([0.01, 0.04, 0.002]) == 0.04
    assert np.isnan(intersection_union([0.01, NAN]))
    assert np.isnan(intersection_union([]))


def world(seed: int, groups: int, members: int, topics: int) -> tuple[Floats, Floats, list[str], list[str], list[str]]:
    """Truth, scores, countries, topics and groups; the size of the error is the same in every group."""
    rng, n = np.random.default_rng(seed), groups * members

    def effects() -> Floats:
        row, column, cell = (rng.normal(size=s) for s in ((n, 1), (1, topics), (n, topics)))
        sums: Floats = (0.2 * row + 0.3 * column + 0.2 * cell).ravel()
        return sums

    truth = effects()
    countries = [f"c{i:02}" for i in range(n) for _ in range(topics)]
    subjects = [f"t{j:02}" for _ in range(n) for j in range(topics)]
    return truth, truth + effects(), countries, subjects, [f"g{i // members}" for i in range(n) for _ in range(topics)]


def test_the_widest_gap_is_the_largest_difference_of_the_plain_figures() -> None:
    truth, scores, countries, topics, groups = world(1, 4, 5, 6)
    labels = np.array(groups)
    errors = {g: float(np.abs(scores - truth)[labels == g].mean()) for g in sorted(set(groups))}
    gap = widest_gap(MAE, scores, truth, countries, topics, groups)
    assert (gap.low_group, gap.high_group) == (min(errors, key=errors.__getitem__), max(errors, key=errors.__getitem__))
    assert gap.value == pytest.approx(max(errors.values()) - min(errors.values()), abs=1e-12)
    assert (gap.n, gap.resampled) == (60, ("country", "topic"))
    assert (gap.compared, gap.left_out, gap.reason) == (4, (), None)


def test_a_real_difference_is_found() -> None:
    n_detected = 0
    for seed in range(12):
        truth, scores, countries, topics, groups = world(seed, 3, 12, 15)
        scores = np.where(np.array(groups) == "g1", truth + 3 * (scores - truth), scores)
        gap = widest_gap(MAE, scores, truth, countries, topics, groups)
        n_detected += gap.high_group == "g1" and known(gap.ci_low) > 0
    assert n_detected >= 11


def test_what_groups_have_in_common_does_not_widen_their_gap() -> None:
    """Errors that are larger on some topics, equally in all groups, cancel in the differences between groups."""
    truth, scores, countries, topics, groups = world(1, 3, 6, 8)
    sizes = np.abs(scores - truth)
    common = np.tile(np.linspace(0, 3, 8), 18)
    without, gap = (widest_gap(MAE, truth + size, truth, countries, topics, groups) for size in (sizes, sizes + common))
    assert gap.value == pytest.approx(without.value)
    widths = [known(row.ci_high) - known(row.ci_low) for row in (without, gap)]
    assert widths[1] == pytest.approx(widths[0], rel=1e-6)


def test_small_groups_are_left_out_or_leave_no_interval() -> None:
    truth, scores, countries, topics, groups = world(2, 3, 6, 6)
    few = [g if c not in ("c00", "c01", "c02", "c03") else "few" for g, c in zip(groups, countries, strict=True)]
    gap = widest_gap(MAE, scores, truth, countries, topics, few)
    assert (gap.compared, gap.left_out) == (2, ("few", "g0"))
    gap = widest_gap(MAE, scores, truth, countries, topics, countries)
    assert gap.value is not None
    assert (gap.ci_low, gap.compared) == (None, 18)
    assert gap.reason == "an interval needs two groups of 5 countries, and as many topics"


def test_degenerate_and_malformed_gaps() -> None:
    truth, scores, countries, topics, groups = world(3, 3, 5, 6)
    for cells in (np.full_like(scores, np.nan), np.where(np.array(groups) == "g0", scores, np.nan)):
        gap = widest_gap(MAE, cells, truth, countries, topics, groups)
        assert (gap.value, gap.reason) == (None, "fewer than two groups have a value")
    assert widest_gap(PEARSON, scores, truth, countries, topics, groups).p_value is None
    flat = widest_gap(PEARSON, np.zeros_like(scores), truth, countries, topics, groups)
    assert flat.value is None
    with pytest.raises(ValueError, match="groups must have the shape"):
        widest_gap(MAE, scores, truth, countries, topics, groups[:-1])
    with pytest.raises(ValueError, match="one group only"):
        widest_gap(MAE, scores, truth, countries, topics, [f"g{i % 2}" for i in range(len(groups))])


def test_it_is_reproducible_and_blind_to_order() -> None:
    truth, scores, countries, topics, groups = world(4, 3, 5, 6)
    args = (scores, truth, countries, topics, groups)
    order = np.random.default_rng(0).permutation(len(groups))
    one, other = widest_gap(MAE, *args), widest_gap(MAE, *(np.asarray(a)[order] for a in args))
    assert one.ci_low == pytest.approx(other.ci_low, abs=1e-12)
    assert one == widest_gap(MAE, *args)


def make_kinds(n_countries: int, n_topics: int, topic_share: float) -> list[UnitKind]:
    return [UnitKind((n_countries,), 1 - topic_share), UnitKind((n_topics,), topic_share)]


def test_two_series_have_students_quantile() -> None:
    values = critical_values(2, make_kinds(20, 10, 0.9))
    assert values.all_pairs == values.with_one == pytest.approx(stats.t.ppf(0.975, 9))


@pytest.mark.parametrize(("n_series", "studentized_range"), [(3, 3.3145), (10, 4.4741)])  # Tukey's table, 5%
def test_with_many_units_they_are_tukeys_and_dunnetts(n_series: int, studentized_range: float) -> None:
    """Without uncertainty of the standard errors it is Tukey's range, and Dunnett's two-sided problem."""
    values = critical_values(n_series, [UnitKind((2000,), 1.0), UnitKind((2000,), 0.0)])
    rng = np.random.default_rng(1)
    normal = rng.standard_normal((100_000, n_series))
    dunnett = np.quantile(np.abs(normal[:, 1:] - normal[:, :1]).max(axis=1) / 2**0.5, 0.95)
    assert values.all_pairs == pytest.approx(studentized_range / 2**0.5, abs=0.06)
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
