"""Figures over clustered answers: against scipy where nothing is clustered, by simulation where it is."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from auditor.metrics.clustered import (
    ClusteredEstimate,
    area_under_curve,
    area_under_curve_within_items,
    clustered_difference,
    clustered_rank_correlation,
    clustered_share,
)
from auditor.metrics.proportion import proportion

RUNS = 300


def drawn(rng: np.random.Generator, items: int, each: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Support, right and item of answers to items of unequal ease, on which judges lean together."""
    item = np.repeat(np.arange(items), each)
    right = rng.random(items * each) < expit(rng.standard_normal(items))[item]
    support = rng.binomial(3, expit(0.8 * right - 0.2 + 0.7 * rng.standard_normal(items)[item]))
    return support, right, item


def test_a_share_of_single_answers_is_wilsons_but_for_the_t() -> None:
    rng = np.random.default_rng(1)
    hits = rng.integers(0, 2, 400)
    share, plain = clustered_share(hits, np.ones(400)), proportion(int(hits.sum()), 400)
    assert (share.value, share.n, share.clusters) == (plain.value, 400, 400)
    assert (share.ci_low, share.ci_high) == pytest.approx((plain.ci_low, plain.ci_high), abs=0.003)


def test_repeated_samples_of_an_item_add_no_precision() -> None:
    hits = np.array([1, 0, 1, 1, 0, 1, 0, 1, 1, 0])
    one, ten = clustered_share(hits, np.ones(10)), clustered_share(10 * hits, np.full(10, 10))
    assert (ten.value, ten.ci_low, ten.ci_high) == pytest.approx((one.value, one.ci_low, one.ci_high))


def test_the_interval_of_a_share_covers_what_it_says() -> None:
    rng, held = np.random.default_rng(2), 0
    truth = expit(1.5 + 1.5 * rng.standard_normal(400_000)).mean()
    for _ in range(RUNS):
        share = clustered_share(rng.binomial(5, expit(1.5 + 1.5 * rng.standard_normal(20))), np.full(20, 5))
        held += bool((share.ci_low or 0) <= truth <= (share.ci_high or 1))
    assert 0.91 <= held / RUNS <= 0.99


def test_a_difference_that_is_none_is_held_by_its_interval() -> None:
    rng, held = np.random.default_rng(3), 0
    for _ in range(RUNS):
        p = expit(1.5 * rng.standard_normal(20))
        difference = clustered_difference(rng.binomial(5, p), np.full(20, 5), rng.binomial(3, p), np.full(20, 3))
        assert difference.ci_low is not None
        assert difference.ci_high is not None
        held += difference.ci_low <= 0 <= difference.ci_high
    assert 0.91 <= held / RUNS <= 0.99


def test_the_area_is_mann_and_whitneys() -> None:
    support, right, item = drawn(np.random.default_rng(4), 30, 4)
    up, down = support[right], support[~right]
    u = stats.mannwhitneyu(up, down).statistic / (len(up) * len(down))
    assert area_under_curve(support, right, item).value == pytest.approx(u)
    pairs = [(a, b) for i in range(30) for a in support[right & (item == i)] for b in support[~right & (item == i)]]
    within = area_under_curve_within_items(support, right, item)
    assert within.value == pytest.approx(np.mean([(np.sign(int(a) - int(b)) + 1) / 2 for a, b in pairs]))
    assert within.n == len(pairs)


def test_the_interval_of_an_area_covers_what_it_says() -> None:
    rng, held = np.random.default_rng(5), 0
    truth = area_under_curve(*drawn(rng, 40_000, 4)).value or 0.0
    for _ in range(RUNS // 3):
        area = area_under_curve(*drawn(rng, 20, 4))
        held += bool((area.ci_low or 0) <= truth <= (area.ci_high or 1))
    assert 0.89 <= held / (RUNS // 3) <= 1.0


def test_the_rank_correlation_is_spearmans() -> None:
    rng = np.random.default_rng(6)
    x, item = rng.standard_normal(60), np.repeat(np.arange(12), 5)
    y = x + rng.standard_normal(60)
    rank_correlation = clustered_rank_correlation(x, y, item)
    assert rank_correlation.value == pytest.approx(stats.spearmanr(x, y).statistic)
    assert (rank_correlation.ci_low or 1) < (rank_correlation.value or 0) < (rank_correlation.ci_high or -1)


@pytest.mark.parametrize(
    ("estimate", "value", "reason"),
    [
        (clustered_share([], []), None, "nothing to count"),
        (clustered_share([1], [2]), 0.5, "one item alone"),
        (clustered_difference([1, 0], [1, 1], [0, 0], [0, 0]), None, "one side has no answer"),
        (clustered_difference([1, 0], [1, 1], [0, 0], [1, 1]), 0.5, "needs 5 items"),
        (clustered_difference([1] * 6, [1] * 6, [0] * 6, [1] * 6), 1.0, "no item differs"),
        (area_under_curve([], [], []), None, "no answer"),
        (area_under_curve([1, 2], [True, True], [0, 1]), None, "all answers are right"),
        (area_under_curve([1, 2], [False, False], [0, 1]), None, "all answers are wrong"),
        (area_under_curve([2, 1] * 6, [True, False] * 6, range(12)), 1.0, "at its end"),
        (area_under_curve_within_items([2, 1], [True, False], [0, 1]), None, "no item has both"),
        (clustered_rank_correlation([1, 1, 1], [1, 2, 3], [0, 1, 2]), None, "the same for all"),
    ],
)
def test_a_missing_estimate_has_a_reason(estimate: ClusteredEstimate, value: float | None, reason: str) -> None:
    assert estimate.value == value
    assert estimate.ci_low is None
    assert reason in (estimate.reason or "")


def test_all_right_still_has_a_width() -> None:
    share = clustered_share(np.full(10, 5), np.full(10, 5))
    assert share.value == share.ci_high == 1.0
    assert share.ci_low == pytest.approx(proportion(10, 10).ci_low)


def test_wrong_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match="0 <= hits <= counts"):
        clustered_share([2], [1])
    with pytest.raises(ValueError, match="one length"):
        area_under_curve([1], [True, False], [0, 1])
