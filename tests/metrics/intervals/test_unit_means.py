"""Shares and means over units: against scipy where cases are independent, by simulation where they are not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from auditor.metrics.intervals.estimate import Estimate, proportion
from auditor.metrics.intervals.jackknife_interval import CONSTANT_REASON, clopper_pearson
from auditor.metrics.intervals.unit_means import (
    ShareTable,
    mean_over_units,
    pooled_design_effect,
    share_over_units,
    shares_over_units,
)

COUNTRY, TOPIC = np.repeat(np.arange(20), 10), np.tile(np.arange(10), 20)
UNITS = {"country": COUNTRY, "topic": TOPIC}
CASES = np.full(200, 5)


def draw_hits(rng: np.random.Generator, sds: tuple[float, float], level: float, cases: np.ndarray) -> np.ndarray:
    """Hits in cells of 20 countries and 10 topics, whose effects on the log odds have these standard deviations."""
    log_odds = sds[0] * rng.standard_normal(20)[COUNTRY] + sds[1] * rng.standard_normal(10)[TOPIC]
    return rng.binomial(cases, expit(level + log_odds))


def covers(estimate: Estimate, truth: float) -> bool:
    assert estimate.ci_low is not None
    assert estimate.ci_high is not None
    return estimate.ci_low <= truth <= estimate.ci_high


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


@pytest.mark.parametrize("sds", [(0.0, 0.0), (0.5, 0.8), (1.0, 1.0)])
@pytest.mark.parametrize("level", [-2.5, 0.0])
def test_the_interval_of_a_share_covers_the_population(sds: tuple[float, float], level: float) -> None:
    rng = np.random.default_rng(2)
    spread = (sds[0] ** 2 + sds[1] ** 2) ** 0.5
    truth = float(expit(level + spread * stats.norm.ppf((np.arange(20_000) + 0.5) / 20_000)).mean())
    cases = rng.integers(0, 9, 200)  # unequal, and some cells without a case
    shares = [share_over_units(draw_hits(rng, sds, level, cases), cases, UNITS) for _ in range(300)]
    assert np.mean([covers(share, truth) for share in shares]) > 0.92
    if max(sds) >= 0.5:
        naive = [proportion(round((share.value or 0) * share.n), share.n) for share in shares]
        covered = [(interval.ci_low or 0) <= truth <= (interval.ci_high or 1) for interval in naive]
        assert np.mean(covered) < 0.75, "an interval of independent cases must fail here"


def test_the_interval_for_these_cells_covers_their_own_share() -> None:
    rng = np.random.default_rng(3)
    p = expit(-1 + 0.5 * rng.standard_normal(20)[COUNTRY] + rng.standard_normal(10)[TOPIC])
    n_covered = 0
    for _ in range(400):
        share = share_over_units(rng.binomial(5, p), CASES, UNITS)
        n_covered += (share.cells_ci_low or 0) <= p.mean() <= (share.cells_ci_high or 1)
    assert n_covered / 400 > 0.93


def test_without_a_hit_the_design_effect_is_borrowed_or_each_unit_is_one_case() -> None:
    none, some = np.zeros(200), draw_hits(np.random.default_rng(4), (0.5, 1.0), -1.5, CASES)
    single = share_over_units(none, CASES, UNITS)
    assert (single.ci_low, single.ci_high) == pytest.approx((0.0, 1 - 0.025 ** (1 / 10)))
    design_effect = pooled_design_effect([(none, CASES, UNITS), (some, CASES, UNITS)])
    assert design_effect is not None
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


def test_a_bounded_mean_is_a_share_of_the_range() -> None:
    hits = np.array([3, 0, 4, 2, 1, 4, 2])
    share = share_over_units(hits, np.full(7, 4), {"item": range(7)})
    mean = mean_over_units(2 * hits / 4 - 1, {"item": range(7)}, (-1.0, 1.0))
    assert mean.value == pytest.approx(2 * (share.value or 0) - 1)
    assert (mean.ci_low, mean.ci_high) == pytest.approx((2 * (share.ci_low or 0) - 1, 2 * (share.ci_high or 0) - 1))


@pytest.mark.parametrize("level", [-3.0, 0.0])
def test_the_interval_of_a_bounded_mean_covers_the_population(level: float) -> None:
    rng = np.random.default_rng(7)
    spread = (0.3**2 + 0.5**2 + 0.5**2) ** 0.5
    truth = float(expit(level + spread * stats.norm.ppf((np.arange(20_000) + 0.5) / 20_000)).mean())
    covered, naive_covered = [], []
    for _ in range(300):
        log_odds = 0.3 * rng.standard_normal(20)[COUNTRY] + 0.5 * rng.standard_normal(10)[TOPIC]
        values = expit(level + log_odds + 0.5 * rng.standard_normal(200))
        covered.append(covers(mean_over_units(values, UNITS, (0.0, 1.0)), truth))
        naive_covered.append(covers(mean_over_units(values, {"cell": range(200)}, (0.0, 1.0)), truth))
    assert np.mean(covered) > 0.92
    assert np.mean(naive_covered) < 0.75


@pytest.mark.parametrize("n_topics", [5, 10, 19])
def test_the_interval_of_a_countrys_mean_absolute_error_covers(n_topics: int) -> None:
    rng, truth = np.random.default_rng(8), 0.3 * np.sqrt(2 / np.pi)
    covered = [
        covers(mean_over_units(np.abs(0.3 * rng.standard_normal(n_topics)), {"topic": range(n_topics)}, (0, 2)), truth)
        for _ in range(1000)
    ]
    assert np.mean(covered) > 0.93


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
