"""Intervals over the items of a few sets: by hand, and by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from auditor.metrics.intervals.items import AVERAGINGS, Averaging, CaseCounts, share_over_items
from auditor.metrics.logic.consistency import commutativity


def judge(rng: np.random.Generator, n: int, sharpness: float = 4.0) -> np.ndarray:
    """Answers that depend on how far apart two items are, with a preference for the item shown first."""
    quality = rng.normal(size=n)
    probability = expit(sharpness * (quality[:, None] - quality[None, :]) + 0.5)
    return np.asarray(rng.random((n, n)) < probability, dtype=float)


@pytest.mark.parametrize("averaged", AVERAGINGS)
def test_each_item_is_left_out_with_all_its_pairs(averaged: Averaging) -> None:
    rng = np.random.default_rng(0)
    answers = [judge(rng, n, 1.0) for n in (7, 9)]
    counts = [commutativity(values) for values in answers]
    shares = [entry.value or 0.0 for entry in counts]
    n_pairs = [entry.n for entry in counts]

    def total(values: list[float], sizes: list[int]) -> float:
        return float(np.mean(values) if averaged == "instances" else np.average(values, weights=sizes))

    variance = 0.0
    for position, values in enumerate(answers):
        replicates = []
        for item in range(len(values)):
            left = commutativity(np.delete(np.delete(values, item, 0), item, 1))
            changed, sizes = list(shares), list(n_pairs)
            changed[position], sizes[position] = left.value or 0.0, left.n
            replicates.append(total(changed, sizes))
        k = len(values)
        variance += (k - 1) / k * float(((np.array(replicates) - np.mean(replicates)) ** 2).sum())
    value = total(shares, n_pairs)
    size = value * (1 - value) / variance * (stats.norm.ppf(0.975) / stats.t.ppf(0.975, 6)) ** 2
    interval = share_over_items(counts, ["a", "b"], averaged)
    assert interval.value == pytest.approx(value)
    assert (interval.n, interval.resampled) == (sum(n_pairs), ("item",))
    assert interval.ci_low == pytest.approx(stats.beta.ppf(0.025, value * size, size * (1 - value) + 1), abs=1e-9)
    assert interval.ci_high == pytest.approx(stats.beta.ppf(0.975, value * size + 1, size * (1 - value)), abs=1e-9)


def test_wordings_of_a_set_share_its_items() -> None:
    counts = commutativity(judge(np.random.default_rng(1), 10, 1.0))
    one, three = share_over_items([counts], ["a"], "pooled"), share_over_items([counts] * 3, ["a"] * 3, "pooled")
    assert (three.ci_low, three.ci_high) == pytest.approx((one.ci_low, one.ci_high))
    three_sets = share_over_items([counts] * 3, ["a", "b", "c"], "pooled")
    assert (three_sets.ci_high or 0) - (three_sets.ci_low or 0) < 0.75 * ((one.ci_high or 0) - (one.ci_low or 0))


def test_a_share_without_spread_counts_pairs_without_a_common_item() -> None:
    truth = (np.arange(9)[:, None] < np.arange(9)[None, :]).astype(float)
    interval = share_over_items([commutativity(truth)], ["a"], "pooled")
    assert interval.ci_low == pytest.approx(
        0.025 ** (1 / 4)
    )  # four pairs of nine items; Clopper and Pearson without a miss
    assert interval.ci_high == 1.0


def test_too_few_items_say_so() -> None:
    truth = (np.arange(4)[:, None] < np.arange(4)[None, :]).astype(float)
    assert share_over_items([commutativity(truth)], ["a"], "pooled").reason == (
        "an interval needs at least 5 items, but there are 4 items"
    )
    assert "since questions are repeated" in str(share_over_items([CaseCounts(2.5, 3)], ["a"], "pooled").reason)


@pytest.mark.parametrize("n_items", [8, 14])
def test_other_items_are_covered(n_items: int) -> None:
    rng = np.random.default_rng(3)
    truth = np.mean([commutativity(judge(rng, n_items)).value for _ in range(4000)])
    n_runs, covered = 250, 0.0
    for _ in range(n_runs):
        interval = share_over_items([commutativity(judge(rng, n_items))], ["a"], "pooled")
        assert interval.ci_low is not None
        assert interval.ci_high is not None
        covered += interval.ci_low <= truth <= interval.ci_high
    assert covered / n_runs > 0.94  # the jackknife of a graph's nodes is conservative
