"""Statistics over answers to items: against scipy where nothing is clustered, by simulation where it is."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from auditor.metrics.intervals.estimate import Estimate
from auditor.metrics.intervals.items import (
    area_under_curve,
    area_under_curve_within_items,
    correlation_over_items,
    share_difference_over_items,
)

RUNS = 300


def draw_answers(rng: np.random.Generator, items: int, each: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Support, correctness and item of answers to items of unequal difficulty, on which judges agree too often."""
    item = np.repeat(np.arange(items), each)
    right = rng.random(items * each) < expit(rng.standard_normal(items))[item]
    support = rng.binomial(3, expit(0.8 * right - 0.2 + 0.7 * rng.standard_normal(items)[item]))
    return support, right, item


def covers(estimate: Estimate, truth: float) -> bool:
    assert estimate.ci_low is not None
    assert estimate.ci_high is not None
    assert estimate.generalizes_to == "other items like these"
    return estimate.ci_low <= truth <= estimate.ci_high


def test_the_interval_of_a_difference_covers_no_difference() -> None:
    rng, n_covered = np.random.default_rng(3), 0
    for _ in range(RUNS):
        p = expit(1.5 * rng.standard_normal(20))
        columns = rng.binomial(5, p), np.full(20, 5), rng.binomial(3, p), np.full(20, 3)
        n_covered += covers(share_difference_over_items(*columns), 0.0)
    assert 0.92 <= n_covered / RUNS <= 0.99


def test_a_difference_of_shares_by_hand() -> None:
    hits, other_hits, n = np.array([3, 1, 2, 4, 0, 3]), np.array([1, 1, 2, 3, 1, 0]), np.full(6, 4)
    difference = share_difference_over_items(hits, n, other_hits, n)
    by_item = (hits - other_hits) / 4  # with equal counts it is a paired t interval
    expected = stats.ttest_1samp(by_item, 0).confidence_interval(0.95)
    assert difference.value == pytest.approx(by_item.mean())
    assert difference.n == 48
    assert (difference.ci_low, difference.ci_high) == pytest.approx((expected.low, expected.high))


def test_the_area_is_mann_and_whitneys() -> None:
    support, right, item = draw_answers(np.random.default_rng(4), 30, 4)
    up, down = support[right], support[~right]
    u = stats.mannwhitneyu(up, down).statistic / (len(up) * len(down))
    assert area_under_curve(support, right, item).value == pytest.approx(u)
    pairs = [(a, b) for i in range(30) for a in support[right & (item == i)] for b in support[~right & (item == i)]]
    within = area_under_curve_within_items(support, right, item)
    assert within.value == pytest.approx(np.mean([(np.sign(int(a) - int(b)) + 1) / 2 for a, b in pairs]))
    assert within.n == len(pairs)


def test_the_interval_of_an_area_covers_the_population() -> None:
    rng, n_covered = np.random.default_rng(5), 0
    truth = area_under_curve(*draw_answers(rng, 40_000, 4)).value or 0.0
    for _ in range(RUNS // 3):
        n_covered += covers(area_under_curve(*draw_answers(rng, 20, 4)), truth)
    assert 0.92 <= n_covered / (RUNS // 3) <= 1.0


def test_correlations_are_those_of_scipy() -> None:
    rng = np.random.default_rng(6)
    x, item = rng.standard_normal(60), np.repeat(np.arange(12), 5)
    y = x + rng.standard_normal(60)
    for ranks, expected in ((True, stats.spearmanr(x, y).statistic), (False, stats.pearsonr(x, y).statistic)):
        correlation = correlation_over_items(x, y, item, ranks=ranks)
        assert correlation.value == pytest.approx(expected)
        assert correlation.resampled == ("item",)
        assert (correlation.ci_low or 1) < (correlation.value or 0) < (correlation.ci_high or -1)
    with_missing = correlation_over_items([*x, np.nan, 1.0], [*y, 1.0, np.nan], [*item, 12, 13])
    assert with_missing == correlation_over_items(x, y, item)


def test_the_interval_of_a_correlation_covers_the_population() -> None:
    rng, n_covered = np.random.default_rng(7), 0
    for _ in range(RUNS):
        x = rng.standard_normal(25)
        n_covered += covers(correlation_over_items(x, 0.6 * x + 0.8 * rng.standard_normal(25), range(25)), 0.6)
    assert 0.92 <= n_covered / RUNS <= 0.99


@pytest.mark.parametrize(
    ("estimate", "value", "reason"),
    [
        (share_difference_over_items([1, 0], [1, 1], [0, 0], [0, 0]), None, "one side has no answer"),
        (share_difference_over_items([1, 0], [1, 1], [0, 0], [1, 1]), 0.5, "needs at least 5 items"),
        (share_difference_over_items([1] * 6, [1] * 6, [0] * 6, [1] * 6), 1.0, "the same whichever unit is left out"),
        (share_difference_over_items([1] * 6, [1] * 6, [1] + [0] * 5, [1] + [0] * 5), 0.0, "is undefined without one"),
        (area_under_curve([], [], []), None, "no answer"),
        (area_under_curve([1, 2], [True, True], [0, 1]), None, "all answers are correct"),
        (area_under_curve([1, 2], [False, False], [0, 1]), None, "all answers are incorrect"),
        (area_under_curve([2, 1] * 6, [True, False] * 6, range(12)), 1.0, "end of its range"),
        (area_under_curve_within_items([2, 1], [True, False], [0, 1]), None, "no item has both"),
        (area_under_curve_within_items([], [], []), None, "no answer"),
        (correlation_over_items([1, 1, 1], [1, 2, 3], [0, 1, 2]), None, "first measure are the same"),
        (correlation_over_items([1, 2], [1, 2], [0, 1]), None, "fewer than 3"),
    ],
)
def test_a_missing_estimate_has_a_reason(estimate: Estimate, value: float | None, reason: str) -> None:
    assert estimate.value == value
    assert estimate.ci_low is None
    assert reason in (estimate.reason or "")


def test_more_items_than_groups_are_left_out_in_groups() -> None:
    rng = np.random.default_rng(8)
    x = rng.standard_normal(900)
    correlation = correlation_over_items(x, x + rng.standard_normal(900), range(900))
    fisher = stats.pearsonr(x, x + rng.standard_normal(900)).confidence_interval()
    assert (correlation.ci_high or 0) - (correlation.ci_low or 0) == pytest.approx(fisher.high - fisher.low, rel=0.15)


def test_wrong_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match="0 <= hits <= counts"):
        share_difference_over_items([2], [1], [0], [1])
    with pytest.raises(ValueError, match="same items"):
        share_difference_over_items([1], [1], [0, 1], [1, 1])
    with pytest.raises(ValueError, match="one length"):
        area_under_curve([1], [True, False], [0, 1])
