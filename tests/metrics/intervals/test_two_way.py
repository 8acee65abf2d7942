"""Intervals by leaving one out: written out by hand, degenerate tables, and how often they hold the truth."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from scipy import stats

from auditor.metrics.intervals.estimate import Floats
from auditor.metrics.intervals.jackknife_interval import IDENTITY, LOG
from auditor.metrics.intervals.two_way import (
    STATISTIC_TRANSFORMS,
    LeaveOutValue,
    UnitLabels,
    crossed_jackknife,
    gap_jackknife,
    leave_out_range,
    paired_jackknife,
    spearman_jackknife,
)
from auditor.metrics.people.alignment import BIAS, MAE, PEARSON, RMSE, Statistic, TwoWayEstimate
from tests.support.known import known
from tests.support.two_way_tables import World

NAN = float("nan")


def spread(values: list[float]) -> float:
    x = np.array(values)
    return (len(x) - 1) / len(x) * float(((x - x.mean()) ** 2).sum())


@pytest.mark.parametrize("missing", [0, 9])
def test_it_is_what_leaving_out_by_hand_gives(missing: int) -> None:
    w = World(3, 9, 7)
    x = w.first.copy()
    x[np.random.default_rng(0).permutation(x.size)[:missing]] = NAN

    def r(keep: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> float:
        inside = keep & ~np.isnan(x)
        return float(np.arctanh(stats.pearsonr(x[inside], w.truth[inside]).statistic))

    z = r(np.ones(x.size, dtype=np.bool_))
    without_country = [r(w.countries != c) for c in range(9)]
    without_topic = [r(w.topics != t) for t in range(7)]
    present = np.nonzero(~np.isnan(x))[0]
    cell = spread([r(np.arange(x.size) != i) for i in present])
    country, topic = spread(without_country), spread(without_topic)
    half = stats.t.ppf(0.975, 6) * max(country + topic - cell / 2, country, topic) ** 0.5
    estimate = crossed_jackknife(PEARSON, x, w.truth, w.countries, w.topics)
    assert estimate.ci_low == pytest.approx(np.tanh(z - half))
    assert estimate.ci_high == pytest.approx(np.tanh(z + half))
    assert estimate.p_value == pytest.approx(2 * stats.t.sf(abs(z) / (half / stats.t.ppf(0.975, 6)), 6))
    assert (estimate.n, estimate.resampled) == (63 - missing, ("country", "topic"))


def test_a_paired_p_value_says_what_the_interval_says() -> None:
    w = World(5, 12, 9)
    for second in (w.second, w.uneven):
        difference = paired_jackknife(MAE, w.first, second, w.truth, w.countries, w.topics)
        assert (known(difference.p_value) < 0.05) == (known(difference.ci_low) > 0 or known(difference.ci_high) < 0)
    same = paired_jackknife(MAE, w.first, w.first, w.truth, w.countries, w.topics)
    assert (same.value, same.ci_low) == (0.0, None)
    assert same.reason


def test_errors_of_different_size_are_compared_by_the_intervals_of_both() -> None:
    """Zou (Psychological Methods 12, 2007), with the variances of the logarithms of both errors and of their ratio."""
    w = World(5, 12, 9)
    small = w.truth + 0.1 * (w.first - w.truth)
    errors = {key: np.abs(scores - w.truth) for key, scores in (("small", small), ("large", w.second))}
    units = [(labels, np.unique(labels)) for labels in (w.countries, w.topics, np.arange(w.truth.size))]

    def variance(figure: Callable[[np.ndarray[tuple[int], np.dtype[np.bool_]]], float]) -> float:
        country, topic, cell = (spread([figure(labels != one) for one in names]) for labels, names in units)
        return max(country + topic - cell / 2, country, topic)

    def log_error(model: str, keep: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> float:
        return float(np.log(errors[model][keep].mean()))

    a, b = (variance(partial(log_error, model)) for model in errors)
    of_ratio = variance(lambda keep: log_error("small", keep) - log_error("large", keep))
    correlation = (a + b - of_ratio) / 2 / (a * b) ** 0.5
    quantile = stats.t.ppf(0.975, 8)
    x, y = (float(of.mean()) for of in errors.values())
    (x_low, x_high), (y_low, y_high) = (
        [value * np.exp(sign * quantile * of**0.5) for sign in (-1, 1)] for value, of in ((x, a), (y, b))
    )
    below, above = (
        (p**2 + q**2 - 2 * correlation * p * q) ** 0.5 for p, q in ((x - x_low, y_high - y), (x_high - x, y - y_low))
    )
    difference = paired_jackknife(MAE, small, w.second, w.truth, w.countries, w.topics, LOG)
    assert (difference.value, difference.ci_low, difference.ci_high) == pytest.approx(
        (x - y, x - y - below, x - y + above)
    )
    perfect = paired_jackknife(MAE, w.truth, w.second, w.truth, w.countries, w.topics, LOG)
    assert perfect == paired_jackknife(MAE, w.truth, w.second, w.truth, w.countries, w.topics)  # 0 has no logarithm


def test_two_correlations_are_at_most_two_apart() -> None:
    for seed in range(40):
        w = World(seed, 5, 5)
        difference = paired_jackknife(PEARSON, w.first, -w.second, w.truth, w.countries, w.topics)
        assert difference.ci_low is None or (
            difference.ci_high is not None and -2 <= difference.ci_low <= difference.ci_high <= 2
        )


def test_a_gap_has_its_sign_and_is_the_difference_of_the_groups() -> None:
    w = World(1, 14, 8)
    gap = gap_jackknife(MAE, w.uneven, w.truth, w.countries, w.topics, w.group)
    d = np.abs(w.uneven - w.truth)
    assert gap.value == pytest.approx(d[w.group].mean() - d[~w.group].mean())
    other = gap_jackknife(MAE, w.uneven, w.truth, w.countries, w.topics, ~w.group)
    assert other.ci_low == pytest.approx(-(gap.ci_high or 0))
    assert other.ci_high == pytest.approx(-(gap.ci_low or 0))


@pytest.mark.parametrize("statistic", [PEARSON, MAE, RMSE, BIAS])
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda w: (w.truth[:32], w.truth[:32], w.countries[:32], w.topics[:32]), "5 countries"),
        (lambda w: (w.truth * NAN, w.truth, w.countries, w.topics), "no cell"),
        (lambda w: (w.truth, w.truth, w.countries, w.topics), ""),
    ],
)
def test_what_has_no_interval_says_why(statistic: Statistic, change: object, reason: str) -> None:
    estimate = crossed_jackknife(statistic, *change(World(0, 9, 8)))  # type: ignore[operator]
    assert estimate.ci_low is None
    assert estimate.ci_high is None
    assert reason in (estimate.reason or "no reason")
    assert estimate.reason


def test_errors_have_intervals_above_zero() -> None:
    for seed in range(20):
        w = World(seed, 6, 5)
        for statistic in (MAE, RMSE):
            estimate = crossed_jackknife(statistic, w.first, w.truth, w.countries, w.topics)
            assert estimate.ci_low is None or 0 < estimate.ci_low < (estimate.value or 0) < (estimate.ci_high or 0)


def test_ties_are_ties_in_spite_of_rounding_errors() -> None:
    w = World(2, 8, 6)
    truth, tied = w.truth.round(1), w.first.round(1)
    noisy = tied + 1e-13 * np.random.default_rng(0).normal(size=tied.size)
    exact, rounded = (spearman_jackknife(scores, truth, w.countries, w.topics) for scores in (tied, noisy))
    assert exact == rounded
    assert exact.value == pytest.approx(stats.spearmanr(tied, truth).statistic)
    assert exact.value != stats.spearmanr(noisy, truth).statistic


def test_spearmans_interval_is_what_leaving_out_by_hand_gives() -> None:
    w = World(6, 8, 6)

    def rho(keep: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> float:
        return float(np.arctanh(stats.spearmanr(w.first[keep], w.truth[keep]).statistic))

    z = rho(np.ones(w.truth.size, dtype=np.bool_))
    without_country, without_topic = ([rho(labels != i) for i in set(labels)] for labels in (w.countries, w.topics))
    half = stats.t.ppf(0.975, 5) * (spread(without_country) + spread(without_topic)) ** 0.5
    estimate = spearman_jackknife(w.first, w.truth, w.countries, w.topics)
    assert (estimate.ci_low, estimate.ci_high) == pytest.approx((np.tanh(z - half), np.tanh(z + half)))


@pytest.mark.parametrize("jackknife", [spearman_jackknife, partial(crossed_jackknife, PEARSON)])
def test_a_perfect_correlation_has_no_interval(jackknife: Callable[..., TwoWayEstimate]) -> None:
    w = World(0, 6, 6)
    estimate = jackknife(w.truth, w.truth, w.countries, w.topics)
    assert estimate.value == pytest.approx(1.0)
    assert (estimate.ci_low, estimate.ci_high) == (None, None)
    assert estimate.reason


@pytest.mark.parametrize("statistic", [PEARSON, MAE, BIAS])
def test_zones_are_left_out_whole_and_no_variance_of_cells_is_subtracted(statistic: Statistic) -> None:
    w = World(3, 14, 9)
    zones = UnitLabels(w.countries % 7, "zone")
    transform = STATISTIC_TRANSFORMS.get(statistic, IDENTITY).forward

    def figure(keep: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> float:
        value = statistic.value(statistic.moments(w.first[keep], w.truth[keep]).sum(axis=0)[None])
        return float(transform(value)[0])

    variance = spread([figure(w.countries % 7 != zone) for zone in range(7)])
    variance += spread([figure(w.topics != topic) for topic in range(9)])
    estimate = crossed_jackknife(statistic, w.first, w.truth, zones, w.topics)
    assert known(estimate.interval).std_error == pytest.approx(variance**0.5)
    assert (known(estimate.interval).df, estimate.resampled) == (6, ("zone", "topic"))
    assert estimate.generalizes_to == "other cultural zones and topics like these"
    missing = w.first.copy()
    missing[w.countries % 7 == 3] = np.nan
    assert crossed_jackknife(statistic, missing, w.truth, zones, w.topics).interval.df == 5  # type: ignore[union-attr]
    paired = paired_jackknife(statistic, w.first, w.second, w.truth, zones, w.topics)
    assert (paired.interval.df, paired.resampled) == (6, ("zone", "topic"))  # type: ignore[union-attr]


def test_the_ends_are_the_plain_figures_without_one_group() -> None:
    rng = np.random.default_rng(0)
    truth, groups = rng.normal(size=60), np.array(["a", "b", "c", "d"] * 15)
    scores = truth + rng.normal(size=60)
    scores[5] = NAN
    functions: list[tuple[Statistic, Callable[[Floats, Floats], float]]] = [
        (PEARSON, lambda x, y: float(np.corrcoef(x, y)[0, 1])),
        (MAE, lambda x, y: float(np.abs(x - y).mean())),
        (BIAS, lambda x, y: float((x - y).mean())),
    ]
    for statistic, function in functions:
        expected = {}
        for group in "abcd":
            is_used = (groups != group) & ~np.isnan(scores)
            expected[group] = function(scores[is_used], truth[is_used])
        ends = known(leave_out_range(statistic, scores, truth, groups))
        for end, group in zip(
            ends, (min(expected, key=expected.__getitem__), max(expected, key=expected.__getitem__)), strict=True
        ):
            assert end.group == group
            assert end.value == pytest.approx(expected[group], abs=1e-12)


def test_one_group_or_no_value_has_no_range() -> None:
    assert leave_out_range(MAE, [0.1, 0.2], [0.0, 0.0], ["a", "a"]) is None
    assert leave_out_range(MAE, [NAN, 0.2], [0.0, 0.0], ["a", "b"]) is None
    assert leave_out_range(PEARSON, [0.1, 0.2], [0.0, 0.3], ["a", "b"]) is None
    both = leave_out_range(MAE, [0.25, 0.5], [0.0, 0.0], ["a", "b"])
    assert both == (LeaveOutValue(0.25, "b"), LeaveOutValue(0.5, "a"))
