"""Shares and means over units, the p-values of shares, and intervals that rise with the hits."""

from __future__ import annotations

from itertools import pairwise
from math import lcm

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats
from scipy.special import expit
from scipy.stats import binomtest

from auditor.metrics.intervals.estimate import Estimate
from auditor.metrics.intervals.jackknife_interval import CONSTANT_REASON, clopper_pearson
from auditor.metrics.intervals.unit_means import (
    ShareTable,
    mean_over_units,
    pooled_design_effect,
    share_over_units,
    share_p_values,
    shares_over_units,
    widen_by_common_variance,
)
from tests.support.known import known

COUNTRY, TOPIC = np.repeat(np.arange(20), 10), np.tile(np.arange(10), 20)
UNITS = {"country": COUNTRY, "topic": TOPIC}
CASES = np.full(200, 5)


def covers(estimate: Estimate, truth: float) -> bool:
    return known(estimate.ci_low) <= truth <= known(estimate.ci_high)


@pytest.mark.parametrize(("hits", "n"), [(0, 30), (1, 30), (17, 40), (30, 30)])
def test_clopper_pearson_is_that_of_scipy(hits: int, n: int) -> None:
    expected = stats.binomtest(hits, n).proportion_ci(0.95, "exact")
    assert clopper_pearson(hits / n, n) == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize(("share", "n"), [(1e-6, 1e9), (5e-4, 1e20), (0.999, 1e19), (0.3, 1e8 + 1)])
def test_the_interval_of_very_many_cases_is_the_normal_one(share: float, n: float) -> None:
    low, high = clopper_pearson(share, n)
    half_width = stats.norm.ppf(0.975) * np.sqrt(share * (1 - share) / n)
    assert low <= share <= high
    assert (low, high) == pytest.approx((share - half_width, share + half_width), rel=3e-3)


def test_values_equal_but_for_rounding_have_an_interval() -> None:
    variances = 0.001 + 2e-12 * np.arange(25)
    units = {"country": np.repeat(range(5), 5), "topic": np.tile(range(5), 5)}
    mean = mean_over_units(variances, units, (0.0, 2.0))
    assert covers(mean, variances.mean())


def test_a_share_by_hand() -> None:
    hits, n, item = np.array([3, 1, 4, 2, 1, 3]), np.full(6, 4), list("abcdef")
    share = share_over_units(hits, n, {"item": item})
    p = 14 / 24
    # With equal counts the jackknife variance is that of the mean of the items' shares.
    variance = (hits / 4).var(ddof=1) / 6
    n_effective = p * (1 - p) / variance * (stats.norm.ppf(0.975) / stats.t.ppf(0.975, 5)) ** 2
    low = stats.beta.ppf(0.025, p * n_effective, (1 - p) * n_effective + 1)
    high = stats.beta.ppf(0.975, p * n_effective + 1, (1 - p) * n_effective)
    assert share.value == pytest.approx(p)
    assert (share.n, share.resampled) == (24, ("item",))
    assert (share.ci_low, share.ci_high) == pytest.approx((low, high))
    exact = stats.binomtest(14, 24).proportion_ci(0.95, "exact")
    assert (share.cells_ci_low, share.cells_ci_high) == pytest.approx((exact.low, exact.high))


def test_rows_may_be_cells_or_single_cases() -> None:
    rng = np.random.default_rng(1)
    cases = rng.random((5, 200)) < 0.3
    by_cell = share_over_units(cases.sum(axis=0), CASES, UNITS)
    units = {unit: np.tile(labels, 5) for unit, labels in UNITS.items()}
    single = share_over_units(cases.ravel(), np.ones(1000), units)
    assert (by_cell.ci_low, by_cell.ci_high) == pytest.approx((single.ci_low, single.ci_high))
    assert by_cell.generalizes_to == "other countries and topics like these"


def test_verdicts_on_one_trace_are_not_independent() -> None:
    hits, verdicts = np.full(200, 4), np.full(200, 8)
    share = share_over_units(hits, verdicts, UNITS, independent_cases=np.full(200, 2))
    exact = stats.binomtest(200, 400).proportion_ci(0.95, "exact")
    assert (share.cells_ci_low, share.cells_ci_high) == pytest.approx((exact.low, exact.high))
    at_most_all = share_over_units(hits, verdicts, UNITS, independent_cases=np.full(200, 99))
    assert at_most_all == share_over_units(hits, verdicts, UNITS)


def test_without_a_hit_the_design_effect_is_borrowed_or_each_unit_is_one_case() -> None:
    rng, none = np.random.default_rng(4), np.zeros(200)
    some = rng.binomial(CASES, expit(0.5 * rng.standard_normal(20)[COUNTRY] + rng.standard_normal(10)[TOPIC] - 1.5))
    single = share_over_units(none, CASES, UNITS)
    assert (single.ci_low, single.ci_high) == pytest.approx((0.0, 1 - 0.025 ** (1 / 10)))
    design_effect = known(pooled_design_effect([(none, CASES, UNITS), (some, CASES, UNITS)]))
    assert design_effect > 2
    [borrowed, _] = shares_over_units([ShareTable(none, CASES, UNITS), ShareTable(some, CASES, UNITS)])
    assert borrowed.ci_high == pytest.approx(1 - 0.025 ** (design_effect / 1000))
    [all_hits] = shares_over_units([ShareTable(CASES, CASES, UNITS)])
    assert (all_hits.ci_low, all_hits.ci_high) == pytest.approx((0.025 ** (1 / 10), 1.0))


@pytest.mark.parametrize("n_items_with_hits", [0, 3, 4, 5, 12])
def test_a_single_row_has_the_interval_of_its_share_alone(n_items_with_hits: int) -> None:
    items = {"item": np.arange(20)}
    hits, cases = np.where(np.arange(20) < n_items_with_hits, 3, 0), np.full(20, 4)
    single_row = share_over_units(hits, cases, items)
    assert single_row.ci_high is not None
    assert shares_over_units([ShareTable(hits, cases, items)]) == [single_row]
    assert shares_over_units([ShareTable(hits, cases, items), ShareTable([0], [0], {"item": [0]})])[0] == single_row


def test_the_design_effect_of_independent_cases_is_near_one_and_never_below() -> None:
    rng = np.random.default_rng(5)
    effects = [pooled_design_effect([(rng.binomial(5, 0.2, 200), CASES, UNITS) for _ in range(4)]) for _ in range(30)]
    # Countries and topics both contain the variance of cells, half of which is subtracted: 1.5 on average.
    assert 1.2 < np.mean([effect or 0.0 for effect in effects]) < 1.8
    level = np.full(200, 1)
    assert pooled_design_effect([(level, CASES, UNITS)]) == 1.0  # cells do not differ
    assert pooled_design_effect([(np.zeros(200), CASES, UNITS)]) is None


def test_cases_in_few_countries_or_topics_have_no_interval_for_others() -> None:
    hits = np.zeros(200)
    hits[COUNTRY < 4] = 1
    share = share_over_units(hits, CASES, UNITS)
    assert (share.ci_low, share.ci_high) == (None, None)
    assert (
        share.reason == "they occur in fewer than 5 countries, too few for an interval for other countries and topics"
    )
    assert share.cells_ci_low is not None
    misses = share_over_units(CASES - hits, CASES, UNITS)
    assert misses.reason == (
        "the exceptions occur in fewer than 5 countries, too few for an interval for other countries and topics"
    )
    both = share_over_units((COUNTRY < 2) & (TOPIC < 2), CASES, UNITS, design_effect=3.0)
    assert both.reason == (
        "they occur in fewer than 5 countries and fewer than 5 topics, too few for an interval for other countries and "
        "topics"
    )
    items = share_over_units([1, 1, 0, 0, 0, 0, 0], np.full(7, 4), {"item": range(7)})
    assert (items.ci_low, items.ci_high) == pytest.approx(clopper_pearson(2 / 28, 7)), "an item counts as one case"


def test_few_units_have_no_interval_for_others() -> None:
    share = share_over_units([1, 2, 3], [4, 4, 4], {"country": ["a", "b", "c"], "topic": ["t", "t", "u"]})
    assert share.reason == (
        "an interval needs at least 5 countries and 5 topics, but there are 3 countries and 2 topics"
    )
    assert (share.value, share.n, share.resampled, share.generalizes_to) == (0.5, 12, (), None)
    exact = stats.binomtest(6, 12).proportion_ci(0.95, "exact")
    assert (share.cells_ci_low, share.cells_ci_high) == pytest.approx((exact.low, exact.high))


def test_empty_and_wrong_columns() -> None:
    assert share_over_units([0], [0], {"item": ["a"]}, empty_reason="no verdict").reason == "no verdict"
    with pytest.raises(ValueError, match="hits at most totals"):
        share_over_units([3], [2], {"item": ["a"]})
    with pytest.raises(ValueError, match="labels of item"):
        share_over_units([1], [2], {"item": ["a", "b"]})
    with pytest.raises(ValueError, match="values must be from 0"):
        mean_over_units([0.5, 1.5], {"item": ["a", "b"]}, (0.0, 1.0))


def test_an_unbounded_mean_over_one_kind_of_units_has_students_interval() -> None:
    values = np.random.default_rng(6).standard_normal(12)
    mean = mean_over_units(values, {"topic": range(12)})
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert (mean.ci_low, mean.ci_high) == pytest.approx((expected.low, expected.high))
    assert mean.generalizes_to == "other topics like these"


def test_no_interval_is_narrower_than_by_the_variance_within_all_groups() -> None:
    spread, alike, few = np.array([-0.9, 0.5, 0.2, -0.4, 0.6]), 0.3 + 0.001 * np.arange(6), np.array([0.1, 0.9])
    groups, level = [spread, alike, few], 0.99
    means = [mean_over_units(group, {"topic": range(len(group))}, confidence_level=level) for group in groups]
    widened = widen_by_common_variance(means, groups, level, (-1.0, 0.5))
    pooled = (spread.var() * 5 + alike.var() * 6) / 9
    half_width = stats.t.ppf(0.995, 9) * np.sqrt(pooled / 6)
    assert (widened[1].ci_low, widened[1].ci_high) == pytest.approx((alike.mean() - half_width, 0.5))
    assert alike.mean() + half_width > 0.5
    assert (widened[0], widened[2]) == (means[0], means[2])  # wide enough; without an interval
    assert widen_by_common_variance(means[2:], groups[2:], level, (-1.0, 1.0)) == means[2:]


def test_a_bounded_mean_is_a_share_of_the_range() -> None:
    hits = np.array([3, 0, 4, 2, 1, 4, 2])
    share = share_over_units(hits, np.full(7, 4), {"item": range(7)})
    mean = mean_over_units(2 * hits / 4 - 1, {"item": range(7)}, (-1.0, 1.0))
    assert mean.value == pytest.approx(2 * (share.value or 0) - 1)
    assert (mean.ci_low, mean.ci_high) == pytest.approx((2 * (share.ci_low or 0) - 1, 2 * (share.ci_high or 0) - 1))


@pytest.mark.parametrize("rounding", [0.0, 2**-53, 2**-52, -(2**-52)])
@pytest.mark.parametrize("n_rounded", [1, 12])
def test_the_interval_of_a_mean_at_a_bound_does_not_depend_on_rounding(rounding: float, n_rounded: int) -> None:
    values = 1.0 - rounding * (np.arange(12) < n_rounded)
    mean = mean_over_units(values, {"question": np.arange(12)}, (-1.0, 1.0))
    assert (mean.value, mean.reason, mean.ci_high) == (1.0, None, 1.0)
    assert mean.ci_low == pytest.approx(2 * 0.025 ** (1 / 12) - 1)


def test_means_that_are_all_equal() -> None:
    inside = mean_over_units(np.full(6, 0.4), {"item": range(6)}, (0.0, 1.0))
    assert (inside.ci_low, inside.reason) == (None, CONSTANT_REASON)
    at_the_end = mean_over_units(np.full(6, 1.0), {"item": range(6)}, (0.0, 1.0))
    assert (at_the_end.ci_low, at_the_end.ci_high) == pytest.approx((0.025 ** (1 / 6), 1.0))
    # Every country and topic has the same mean, although cells differ.
    balanced = mean_over_units((COUNTRY + TOPIC) % 2, UNITS, (0.0, 1.0))
    assert (balanced.value, balanced.ci_low, balanced.n) == (0.5, None, 200)
    assert mean_over_units([np.nan], {"item": ["a"]}, empty_reason="no sample").reason == "no sample"
    assert mean_over_units([0.2, 0.4], {"item": ["a", "b"]}).reason == (
        "an interval needs at least 5 items, but there are 2 items"
    )


@given(st.floats(1, 5000), st.lists(st.floats(0, 1), min_size=2, max_size=2).map(sorted))
def test_ends_rise_with_the_hits_at_one_effective_size(n: float, shares: list[float]) -> None:
    smaller, larger = (clopper_pearson(share, n) for share in shares)
    assert smaller[0] <= larger[0] + 1e-9
    assert smaller[1] <= larger[1] + 1e-9


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 1000), min_size=2, max_size=8), st.integers(0, 2**32 - 1), st.floats(0.3, 3.0))
def test_ends_rise_with_the_hits_over_the_rows_of_a_figure(n_hits: list[int], seed: int, spread: float) -> None:
    """Whatever the hits' places: rows of 0 to 1,000 hits in 1,000 cases, spread unevenly over topics."""
    rng = np.random.default_rng(seed)
    weights = np.exp(spread * rng.standard_normal(10))[TOPIC]
    tables = []
    for k in n_hits:
        hits = np.zeros(200)
        drawn = rng.permuted(np.repeat(np.arange(200), 5))
        chosen = drawn[np.argsort(rng.exponential(size=1000) / weights[drawn])][:k]
        np.add.at(hits, chosen, 1)
        tables.append(ShareTable(hits, CASES, UNITS))
    rows = sorted(shares_over_units(tables), key=lambda share: share.value or 0.0)
    shown = [row for row in rows if row.ci_low is not None and row.ci_high is not None]
    assert all((a.ci_low or 0) <= (b.ci_low or 0) and (a.ci_high or 0) <= (b.ci_high or 0) for a, b in pairwise(shown))
    for row, table in zip(shares_over_units(tables), tables, strict=True):
        single = share_over_units(*table[:3], design_effect=pooled_design_effect(tables))
        assert (row.ci_low is None) == (single.ci_low is None)
        if single.ci_low is not None and single.ci_high is not None:  # intervals are only ever widened
            assert (row.ci_low or 0) <= single.ci_low + 1e-12
            assert (row.ci_high or 0) >= single.ci_high - 1e-12


@settings(max_examples=8, deadline=None)
@given(st.integers(5, 9), st.integers(5, 9), st.integers(1, 3))
def test_ends_rise_with_scattered_hits_of_one_row(n_countries: int, n_topics: int, n_cases: int) -> None:
    """One row alone, from 5 hits to 5 misses, where each hit is in another country and topic as far as there are any.

    Without a hit nothing shows how hits cluster, so that the interval is wider than that of a few; likewise for misses.
    """
    scattered = np.array(
        [
            ((i + shift) % n_countries, i % n_topics)
            for shift in range(n_countries)
            for i in range(lcm(n_countries, n_topics))
        ]
    )
    cells = np.array(list(dict.fromkeys(map(tuple, scattered))))
    assert len(cells) == n_countries * n_topics
    units, totals = {"country": cells[:, 0], "topic": cells[:, 1]}, np.full(len(cells), n_cases)
    n = int(totals.sum())
    hits = [k // len(cells) + (np.arange(len(cells)) < k % len(cells)) for k in range(n + 1)]
    shares = [share_over_units(row, totals, units) for row in hits]
    shown = [(share.ci_low or 0.0, share.ci_high or 1.0) for share in shares[5 : n - 4]]
    assert all(share.ci_low is not None for share in shares[5 : n - 4])
    assert all(low <= next_low and high <= next_high for (low, high), (next_low, next_high) in pairwise(shown))
    assert (shares[0].ci_high or 0) > shown[0][1]
    assert (shares[n].ci_low or 1) < shown[-1][0]


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_ends_for_these_cells_rise_with_each_hit_wherever_it_is(seed: int, is_verdicts: bool) -> None:
    rng = np.random.default_rng(seed)
    totals = rng.integers(0, 9, 35)
    units = {"country": np.repeat(np.arange(7), 5), "topic": np.tile(np.arange(5), 7)}
    n_traces = np.minimum(totals, 2) if is_verdicts else None
    hits, intervals = np.zeros(35), []
    for cell in [-1, *rng.permutation(np.repeat(np.arange(35), totals))]:
        hits[cell] += cell >= 0
        share = share_over_units(hits, totals, units, independent_cases=n_traces)
        intervals.append((known(share.cells_ci_low), known(share.cells_ci_high)))
    assert (intervals[0][0], intervals[-1][1]) == (0.0, 1.0)
    assert all(low <= next_low and high <= next_high for (low, high), (next_low, next_high) in pairwise(intervals))


def make_table(rng: np.random.Generator, share: float, n_countries: int, n_topics: int, spread: float) -> ShareTable:
    """Counts in a table of cells, with countries that differ in their share."""
    country, topic = (index.ravel() for index in np.indices((n_countries, n_topics)))
    totals = rng.integers(0, 4, len(country)) if share < 0.5 else np.full(len(country), 2)
    shares = np.clip(share + spread * rng.normal(size=n_countries)[country], 0, 1)
    return ShareTable(rng.binomial(totals, shares), totals, {"country": country, "topic": topic})


def test_a_share_of_independent_cases_has_clopper_and_pearsons_test() -> None:
    for hits, n, reference in ((10, 10, 0.5), (0, 12, 0.25), (12, 12, 0.9)):
        [p_value] = share_p_values([ShareTable([hits > i for i in range(n)], [1] * n, {"item": range(n)})], reference)
        tails = [binomtest(hits, n, reference, side).pvalue for side in ("greater", "less")]
        assert p_value == pytest.approx(min(1.0, 2 * min(tails)))


@pytest.mark.parametrize("seed", range(40))
def test_a_p_value_is_below_five_percent_where_the_interval_excludes_the_reference(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_countries, n_topics = int(rng.integers(4, 15)), int(rng.integers(5, 12))
    tables = [
        make_table(rng, share, n_countries, n_topics, 0.1 if 0 < share < 1 else 0.0)
        for share in rng.choice([0.0, 0.02, 0.3, 0.5, 0.6, 0.95, 1.0], 8)
    ]
    references = rng.choice([0.1, 0.25, 0.5], 8)
    p_values = share_p_values(tables, references)
    for share, p_value, reference in zip(shares_over_units(tables), p_values, references, strict=True):
        if share.ci_low is None or share.ci_high is None:
            assert p_value is None
        else:
            assert 0 <= known(p_value) <= 1
            assert (known(p_value) < 0.05) is not (share.ci_low <= reference <= share.ci_high)


def test_p_values_of_equal_shares_are_no_smaller_than_chance_allows() -> None:
    """Far below 0.05 too, as a correction for many tests needs; with few countries that differ in their shares."""
    rng = np.random.default_rng(1)
    p_values = [
        p_value
        for _ in range(60)
        for p_value in share_p_values([make_table(rng, 0.5, 6, 8, spread) for spread in (0.0, 0.1, 0.25) * 2], 0.5)
        if p_value is not None
    ]
    assert len(p_values) > 300
    for level in (0.05, 0.01, 0.0025):
        assert np.mean(np.array(p_values) < level) <= level


def test_impossible_references_and_rows_without_cases() -> None:
    table = ShareTable([1, 0] * 5, [1] * 10, {"item": range(10)})
    assert share_p_values([table], 0.0) == share_p_values([table], 1.0) == [0.0]
    assert share_p_values([ShareTable([0] * 9, [0] * 9, {"item": range(9)})], 0.5) == [None]
    assert share_p_values([], 0.5) == []
    for reference in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match="must be from 0 to 1"):
            share_p_values([table], reference)
