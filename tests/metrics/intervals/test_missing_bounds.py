"""Bounds where scores are missing: written out, of correlations, and their intervals."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm, pearsonr, t

from auditor.metrics.intervals.estimate import Floats
from auditor.metrics.intervals.jackknife_interval import FISHER_Z, IDENTITY, JackknifeInterval, Transform
from auditor.metrics.intervals.missing_bounds import (
    NO_BOUNDS_REASON,
    NO_CELLS_REASON,
    ScoreRanges,
    bounded_difference,
    bounded_gap,
    bounded_statistic,
    extreme_correlation_scores,
    extreme_scores,
    imbens_manski_interval,
    planned_score_ranges,
)
from auditor.metrics.intervals.two_way import crossed_jackknife, gap_jackknife, paired_jackknife
from auditor.metrics.people.alignment import BIAS, MAE, PEARSON, Statistic
from tests.support.known import known

NAN = float("nan")
DF = 12


def evaluate(statistic: Statistic, scores: Floats, truth: Floats) -> float:
    """A statistic of scores against the truth."""
    return float(statistic.value(statistic.moments(scores, truth).sum(axis=0)[None])[0])


def test_ranges_written_out() -> None:
    ranges = planned_score_ranges([0.5, 0.5, NAN, 0.2, NAN], [4, 2, 0, 3, 0], [4, 5, 5, 2, 0])
    assert ranges.low == pytest.approx([0.5, (1.0 - 3) / 5, -1, 0.2, NAN], nan_ok=True)
    assert ranges.high == pytest.approx([0.5, (1.0 + 3) / 5, 1, 0.2, NAN], nan_ok=True)


def test_ranges_hold_the_mean_whatever_the_lost_samples_are() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        samples = rng.uniform(-1, 1, (2, 4))  # two languages with four planned samples each
        usable = rng.random((2, 4)) < 0.6
        means = [row[is_usable].mean() for row, is_usable in zip(samples, usable, strict=True) if is_usable.any()]
        if not means:
            continue
        low, high = planned_score_ranges([np.mean(means)], [usable.sum()], [8], has_groups=True)
        assert low[0] - 1e-12 <= samples.mean() <= high[0] + 1e-12
        pooled = planned_score_ranges([samples[usable].mean()], [usable.sum()], [8])
        assert pooled.low[0] - 1e-12 <= samples.mean() <= pooled.high[0] + 1e-12


def test_mae_bounds_written_out() -> None:
    truth = np.array([0.1, -0.4, 0.0, NAN])
    ranges = planned_score_ranges([0.5, NAN, 0.0, 0.1], [1, 0, 1, 1], [1, 1, 2, 1])
    extremes = known(extreme_scores(MAE, ranges, truth))
    errors = [np.abs(scores - truth)[:3] for scores in extremes]
    assert errors[0] == pytest.approx([0.4, 0.0, 0.0])
    assert errors[1] == pytest.approx([0.4, 1.4, 0.5])
    assert np.isnan(extremes[0][3])


@pytest.mark.parametrize("statistic", [PEARSON, MAE, BIAS])
def test_bounds_of_small_tables_are_those_found_by_trying_a_grid_of_scores(statistic: Statistic) -> None:
    rng = np.random.default_rng(1)
    for _ in range(5):
        truth = rng.uniform(-1, 1, 8)
        scores = np.clip(truth + rng.normal(0, 0.4, 8), -1, 1)
        usable = np.full(8, 5)
        usable[:3] = rng.integers(0, 5, 3)
        ranges = planned_score_ranges(np.where(usable > 0, scores, NAN), usable, np.full(8, 5))
        extremes = known(extreme_scores(statistic, ranges, truth))
        low, high = (evaluate(statistic, filled, truth) for filled in extremes)
        grids = [np.linspace(ranges.low[i], ranges.high[i], 9) for i in range(3)]
        tried = []
        for filling in itertools.product(*grids):
            filled = scores.copy()
            filled[:3] = filling
            tried.append(evaluate(statistic, filled, truth))
        assert low <= min(tried) + 1e-9
        assert high >= max(tried) - 1e-9
        assert low == pytest.approx(min(tried), abs=0.03)
        assert high == pytest.approx(max(tried), abs=0.03)


def test_gaps_and_differences_are_bounded_by_the_farthest_ends() -> None:
    rng = np.random.default_rng(2)
    countries, topics = np.repeat(np.arange(12), 6), np.tile(np.arange(6), 12)
    truth = rng.uniform(-1, 1, 72)
    first, second = (np.clip(truth + rng.normal(0, 0.3, 72), -1, 1) for _ in range(2))
    ranges, other_ranges = (
        planned_score_ranges(scores, rng.integers(2, 6, 72), np.full(72, 5)) for scores in (first, second)
    )
    group = countries < 5
    for statistic in (PEARSON, MAE):
        gap = bounded_gap(statistic, 0.1, ranges, truth, countries, topics, group)
        difference = bounded_difference(statistic, 0.1, ranges, other_ranges, truth, countries, topics)
        by_group = [
            extreme_scores(statistic, ScoreRanges(ranges.low[cells], ranges.high[cells]), truth[cells])
            for cells in (group, ~group)
        ]
        by_model = [extreme_scores(statistic, one, truth) for one in (ranges, other_ranges)]
        for estimate, sides, truths in (
            (gap, by_group, (truth[group], truth[~group])),
            (difference, by_model, (truth, truth)),
        ):
            values = [
                [evaluate(statistic, filled, y) for filled in side or ()] for side, y in zip(sides, truths, strict=True)
            ]
            assert estimate.bound_low == pytest.approx(values[0][0] - values[1][1])
            assert estimate.bound_high == pytest.approx(values[0][1] - values[1][0])
            assert (
                known(estimate.ci_low)
                < (estimate.bound_low or 0.0)
                < (estimate.bound_high or 0.0)
                < known(estimate.ci_high)
            )
            assert estimate.generalizes_to == "all planned samples, for other countries and topics like these"
        wider = bounded_gap(statistic, 0.1, ranges, truth, countries, topics, group, n_pairs=6)
        assert (wider.ci_low or 0.0) < (gap.ci_low or 0.0)


def test_without_a_loss_the_intervals_are_the_usual_ones() -> None:
    rng = np.random.default_rng(3)
    countries, topics = np.repeat(np.arange(10), 6), np.tile(np.arange(6), 10)
    truth = rng.uniform(-1, 1, 60)
    first, second = (np.clip(truth + rng.normal(0, 0.3, 60), -1, 1) for _ in range(2))
    places = (truth, countries, topics)
    ranges, other_ranges = (planned_score_ranges(scores, np.full(60, 3), np.full(60, 3)) for scores in (first, second))
    for statistic in (PEARSON, MAE):
        for bounded, usual in (
            (bounded_statistic(statistic, 0.0, ranges, *places), crossed_jackknife(statistic, first, *places)),
            (
                bounded_gap(statistic, 0.0, ranges, *places, countries < 5),
                gap_jackknife(statistic, first, *places, countries < 5),
            ),
            (
                bounded_difference(statistic, 0.0, ranges, other_ranges, *places),
                paired_jackknife(statistic, first, second, *places),
            ),
        ):
            assert (bounded.bound_low, bounded.bound_high) == pytest.approx((usual.value, usual.value))
            assert (bounded.ci_low, bounded.ci_high) == pytest.approx((usual.ci_low, usual.ci_high), abs=1e-6)


def test_total_loss_has_no_bounds_of_r_and_exact_bounds_of_mae() -> None:
    countries, topics = np.repeat(np.arange(6), 6), np.tile(np.arange(6), 6)
    truth = np.random.default_rng(4).uniform(-1, 1, 36)
    ranges = planned_score_ranges(np.full(36, NAN), np.zeros(36), np.full(36, 5))
    r = bounded_statistic(PEARSON, None, ranges, truth, countries, topics)
    assert (r.value, r.bound_low, r.ci_low, r.reason, r.n) == (None, None, None, NO_BOUNDS_REASON, 36)
    mae = bounded_statistic(MAE, None, ranges, truth, countries, topics)
    assert (mae.bound_low, mae.ci_low) == (0.0, 0.0)
    assert mae.bound_high == pytest.approx(float((1 + np.abs(truth)).mean()))
    assert mae.reason == "no sample has a usable score"
    none = bounded_statistic(MAE, None, ranges, np.full(36, NAN), countries, topics)
    assert (none.n, none.reason) == (0, NO_CELLS_REASON)


def test_few_topics_have_bounds_without_an_interval() -> None:
    countries, topics = np.repeat(np.arange(6), 3), np.tile(np.arange(3), 6)
    truth = np.random.default_rng(5).uniform(-1, 1, 18)
    ranges = planned_score_ranges(truth, np.full(18, 4), np.full(18, 5))
    mae = bounded_statistic(MAE, 0.0, ranges, truth, countries, topics)
    assert mae.bound_high is not None
    assert mae.ci_low is None
    assert "5 topics" in str(mae.reason)


# --- refusals not at random -------------------------------------------------------------------------------------


def _draw_table(rng: np.random.Generator, n: int, n_lost: int, slope: float) -> tuple[Floats, Floats, Floats]:
    """Ranges of scores and the truth; of some cells a share of the samples is lost."""
    truth = rng.uniform(-1, 1, n)
    scores = np.clip(slope * truth + rng.normal(0, rng.uniform(0.1, 0.6), n), -1, 1)
    lost_share = np.zeros(n)
    lost_share[rng.choice(n, n_lost, replace=False)] = rng.choice([0.2, 0.4, 0.6, 1.0], n_lost)
    return scores * (1 - lost_share) - lost_share, scores * (1 - lost_share) + lost_share, truth


def _correlations_of_all_ends(low: Floats, high: Floats, truth: Floats) -> list[float]:
    """r with every combination of the ends of the ranges."""
    lost = np.flatnonzero(high > low)
    correlations = []
    for is_high in itertools.product((False, True), repeat=len(lost)):
        scores = low.copy()
        scores[lost[list(is_high)]] = high[lost[list(is_high)]]
        correlations.append(float(np.corrcoef(scores, truth)[0, 1]))
    return correlations


def _local_minimum(low: Floats, high: Floats, truth: Floats, sign: float, rng: np.random.Generator) -> float:
    """The smallest r (sign 1) or the largest (sign -1) that a general optimizer finds from several starts."""

    def signed_correlation(scores: Floats) -> float:
        return sign * float(np.corrcoef(scores, truth)[0, 1])

    bounds = list(zip(low, high, strict=True))
    results = [minimize(signed_correlation, rng.uniform(low, high), bounds=bounds).fun for _ in range(3)]
    return sign * float(min(results))


def test_extreme_scores_are_those_found_by_trying_all_ends_and_by_a_general_optimizer() -> None:
    rng = np.random.default_rng(0)
    n_at_ends = 0
    for i in range(30):
        low, high, truth = _draw_table(rng, int(rng.integers(6, 26)), int(rng.integers(1, 5)), rng.uniform(-1, 1))
        extreme = known(extreme_correlation_scores(low, high, truth))
        at_ends = _correlations_of_all_ends(low, high, truth)
        for scores, sign, best_end in ((extreme.lowest, 1.0, min(at_ends)), (extreme.highest, -1.0, max(at_ends))):
            assert ((low - 1e-12 <= scores) & (scores <= high + 1e-12)).all()
            r = float(pearsonr(scores, truth)[0])
            assert sign * r <= sign * best_end + 1e-9
            if sign * r > 0:  # then some ends are the optimum, so that the search above found it
                assert r == pytest.approx(best_end, abs=1e-9)
                n_at_ends += 1
            elif i < 6:
                assert sign * r <= sign * _local_minimum(low, high, truth, sign, rng) + 1e-7
    assert n_at_ends > 9


def test_no_scores_within_the_ranges_of_a_larger_table_have_a_more_extreme_r() -> None:
    rng = np.random.default_rng(1)
    low, high, truth = _draw_table(rng, 300, 60, 0.8)
    extreme = known(extreme_correlation_scores(low, high, truth))
    smallest, largest = (pearsonr(scores, truth)[0] for scores in extreme)
    assert 0 < smallest < largest < 1
    for _ in range(100):
        scores = np.where(rng.random(300) < rng.uniform(0, 1), low, high)
        assert smallest <= pearsonr(scores, truth)[0] <= largest
        assert smallest <= pearsonr(rng.uniform(low, high), truth)[0] <= largest
    # Changing any two scores to their other ends does not lower the smallest r either.
    lost = np.flatnonzero(high > low)
    for i, j in itertools.combinations(lost[:20], 2):
        changed = extreme.lowest.copy()
        changed[[i, j]] = (low + high - changed)[[i, j]]
        assert pearsonr(changed, truth)[0] >= smallest - 1e-6


def test_without_a_loss_both_are_the_scores() -> None:
    scores, truth = np.array([0.1, 0.5, -0.2, 0.9]), np.array([0.0, 0.4, 0.1, 0.7])
    extreme = known(extreme_correlation_scores(scores, scores, truth))
    assert extreme.lowest == pytest.approx(scores)
    assert extreme.highest == pytest.approx(scores)


def test_scores_that_could_all_be_equal_have_no_extremes() -> None:
    truth = np.array([0.0, 0.4, 0.1])
    assert extreme_correlation_scores([-1, 0.2, -1], [1, 0.2, 1], truth) is None
    assert extreme_correlation_scores([-1, 0.2, 0.3], [1, 0.2, 0.3], [0.5, 0.5, 0.5]) is None
    nearly_equal = np.nextafter(0.2, 1)  # as 0.2 comes out of another number of samples
    assert extreme_correlation_scores([-1, 0.2, nearly_equal], [1, 0.2, nearly_equal], truth) is None


def bound(
    centre: float | None, std_error: float | None = 1.0, df: int = DF, transform: Transform = IDENTITY
) -> JackknifeInterval:
    """A bound with this centre and standard error."""
    if centre is None or std_error is None:
        return JackknifeInterval(None, None, reason="no standard error")

    def compute_ends(quantile: float) -> tuple[float, float]:
        low, high = transform.inverse(centre + np.array([-quantile, quantile]) * std_error)
        return float(low), float(high)

    return JackknifeInterval(None, None, centre, std_error, df, ends_at=compute_ends)


def test_without_a_loss_it_is_the_two_sided_interval() -> None:
    quantile = t.ppf(0.975, DF)
    assert imbens_manski_interval(bound(0.3), bound(0.3)) == pytest.approx((0.3 - quantile, 0.3 + quantile))


def test_far_apart_bounds_have_one_sided_ends() -> None:
    ends = imbens_manski_interval(bound(0.0, 0.1), bound(50.0, 0.2))
    assert ends == pytest.approx((-0.1 * t.ppf(0.95, DF), 50 + 0.2 * t.ppf(0.95, DF)))
    exact = imbens_manski_interval(bound(-np.inf, 0.0), bound(0.5, 0.1))
    assert exact == pytest.approx((-np.inf, 0.5 + 0.1 * t.ppf(0.95, DF)))


@pytest.mark.parametrize("width", [0.1, 0.5, 1.0, 3.0])
def test_the_quantile_solves_the_equation_of_the_paper(width: float) -> None:
    ends = known(imbens_manski_interval(bound(0.0, 0.5, df=10**7), bound(width, 1.0, df=10**7)))
    c = -ends[0] / 0.5
    assert norm.cdf(c + width) - norm.cdf(-c) == pytest.approx(0.95, abs=1e-6)
    assert ends[1] == pytest.approx(width + c)


def test_estimated_bounds_in_the_wrong_order_count_as_equal() -> None:
    quantile = t.ppf(0.975, DF)
    assert imbens_manski_interval(bound(0.2), bound(0.1)) == pytest.approx((0.2 - quantile, 0.1 + quantile))


def test_ends_are_on_the_scale_of_the_statistic_and_at_other_levels() -> None:
    low, high = bound(0.5, 0.1, transform=FISHER_Z), bound(0.5, 0.1, transform=FISHER_Z)
    half_width = 0.1 * t.ppf(0.995, DF)
    ends = imbens_manski_interval(low, high, confidence_level=0.99)
    assert ends == pytest.approx((np.tanh(0.5 - half_width), np.tanh(0.5 + half_width)))


def test_a_bound_without_an_error_gives_no_interval() -> None:
    assert imbens_manski_interval(bound(None, None), bound(1.0)) is None
    assert imbens_manski_interval(bound(1.0), bound(None, None)) is None


def test_it_covers_the_figure_wherever_it_lies_and_intervals_of_one_bound_do_not() -> None:
    rng = np.random.default_rng(0)
    for width in (0.0, 0.3, 2.0):
        for true_value in (0.0, width / 2, width):
            n_covered = n_naive = 0
            for error in rng.standard_normal(1000):
                # The bounds of one table err together.
                ends = known(imbens_manski_interval(bound(error, df=10**6), bound(width + error, df=10**6)))
                n_covered += ends[0] <= true_value <= ends[1]
                n_naive += abs(width / 2 + error - true_value) <= 1.96
            assert n_covered / 1000 >= 0.94
            if width == 2.0 and true_value != width / 2:
                assert n_naive / 1000 < 0.9  # the interval around the middle of the bounds
