"""Statistics over answers to items: against scipy where nothing is clustered, by hand and by simulation where it is."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit
from statsmodels.stats.proportion import proportion_confint

from auditor.metrics.intervals.estimate import Estimate
from auditor.metrics.intervals.items import (
    AVERAGINGS,
    Averaging,
    CaseCounts,
    area_under_curve,
    area_under_curve_within_items,
    averaged_share,
    correlation_over_items,
    count_by_item,
    instance_values,
    share_difference_over_items,
    share_over_items,
)
from auditor.metrics.logic.consistency import commutativity
from tests.support.known import known


def test_instances_count_the_same_or_by_their_cases() -> None:
    hits, totals = [9, 1, 2, 3, 4], [10, 2, 2, 4, 5]
    labels = {"set": list("abcde")}
    assert averaged_share(hits, totals, labels, "instances").value == pytest.approx((0.9 + 0.5 + 1 + 0.75 + 0.8) / 5)
    assert averaged_share(hits, totals, labels, "instances").n == 5
    pooled = averaged_share(hits, totals, labels, "pooled")
    assert pooled.value == pytest.approx(19 / 23)
    assert (pooled.n, pooled.averaged) == (23, "pooled")
    assert pooled.resampled == ("set",)
    assert pooled.generalizes_to == "other item sets like these"


def test_rows_of_one_instance_are_averaged_first() -> None:
    hits, totals, labels = [1, 3, 4, 0], [2, 3, 4, 0], ["a", "a", "b", "c"]
    np.testing.assert_allclose(instance_values(hits, totals, labels), [0.75, 1.0])
    figure = averaged_share(hits, totals, {"question": labels}, "instances")
    assert figure.value == pytest.approx(0.875)
    assert figure.n == 2
    assert figure.reason == "an interval needs at least 5 questions, but there are 2 questions"


def test_the_interval_is_clopper_and_pearsons_at_the_effective_number_of_cases() -> None:
    """By hand: the variance of a mean is s^2 / n, and Student's quantile reduces the number of cases."""
    values = np.array([0.5, 0.75, 0.25, 1.0, 0.6, 0.4])
    figure = averaged_share(values * 20, np.full(6, 20), {"set": range(6)}, "instances")
    mean, variance = values.mean(), values.var(ddof=1) / 6
    size = mean * (1 - mean) / variance * (stats.norm.ppf(0.975) / stats.t.ppf(0.975, 5)) ** 2
    expected = (
        stats.beta.ppf(0.025, mean * size, size - mean * size + 1),
        stats.beta.ppf(0.975, mean * size + 1, size - mean * size),
    )
    assert (figure.ci_low, figure.ci_high) == pytest.approx(expected, abs=1e-9)
    pooled = averaged_share(values * 20, np.full(6, 20), {"set": range(6)}, "pooled")
    assert (pooled.value, pooled.ci_low, pooled.ci_high) == pytest.approx((mean, *expected), abs=1e-9)


@pytest.mark.parametrize("averaged", AVERAGINGS)
def test_instances_without_a_miss_count_as_one_case_each(averaged: Averaging) -> None:
    figure = averaged_share([30] * 6, [30] * 6, {"set": range(6)}, averaged)
    assert (figure.value, figure.ci_high) == (1.0, 1.0)
    assert figure.ci_low == pytest.approx(proportion_confint(6, 6, method="beta")[0], abs=1e-9)
    # A single miss does not make the interval shorter.
    one_miss = averaged_share([30, 30, 30, 30, 30, 29], [30] * 6, {"set": range(6)}, averaged)
    assert known(one_miss.ci_low) <= known(figure.ci_low)


def test_what_cannot_be_estimated_has_a_reason() -> None:
    assert averaged_share([], [], {"set": []}, "pooled", empty_reason="not asked").reason == "not asked"
    assert averaged_share([0], [0], {"set": ["a"]}, "instances").value is None
    with pytest.raises(ValueError, match="hits at most totals"):
        averaged_share([3], [2], {"set": ["a"]}, "pooled")
    with pytest.raises(ValueError, match="one shape"):
        averaged_share([1, 2], [2, 2], {"set": ["a"]}, "pooled")


def test_an_item_has_the_cases_that_it_is_part_of() -> None:
    triples = np.array([[0, 1, 2], [1, 2, 3]])
    by_item = count_by_item(triples, np.array([1.0, 0.5]), 5)
    assert by_item.tolist() == [[1, 1], [1.5, 2], [1.5, 2], [0.5, 1], [0, 0]]


def test_the_share_is_of_decided_cases() -> None:
    assert CaseCounts(3.0, 4, ties=6, lost=2).value == 0.75
    assert CaseCounts(0.0, 0, ties=6).value is None


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


def draw_answers(rng: np.random.Generator, items: int, each: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Support, correctness and item of answers to items of unequal difficulty, on which judges agree too often."""
    item = np.repeat(np.arange(items), each)
    right = rng.random(items * each) < expit(rng.standard_normal(items))[item]
    support = rng.binomial(3, expit(0.8 * right - 0.2 + 0.7 * rng.standard_normal(items)[item]))
    return support, right, item


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


def test_an_area_is_tested_against_one_half_by_its_interval() -> None:
    p_values = []
    for seed in range(40):
        support, right, item = draw_answers(np.random.default_rng(seed), 20, 4)
        for area in (area_under_curve(support, right, item), area_under_curve_within_items(support, right, item)):
            p_values.append(known(area.p_value))
            is_excluded = not known(area.ci_low) <= 0.5 <= known(area.ci_high)
            assert is_excluded == (p_values[-1] < 0.05)
    assert min(p_values) < 0.05 < max(p_values)


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
