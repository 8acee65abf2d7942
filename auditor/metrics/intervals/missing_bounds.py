"""Figures of which some observations are lost: worst-case bounds, and intervals that cover the figure nevertheless."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics.intervals.estimate import CONFIDENCE_LEVEL, BoundedEstimate, Floats, bonferroni_level
from auditor.metrics.intervals.jackknife_interval import ROUNDING_ERROR, JackknifeInterval
from auditor.metrics.intervals.special_functions import find_root, stdtr, stdtrit
from auditor.metrics.intervals.two_way import UnitLabels, crossed_jackknife, gap_jackknife, paired_jackknife
from auditor.metrics.people.alignment import BIAS, MAE, PEARSON, Statistic, TwoWayEstimate


def imbens_manski_interval(
    low: JackknifeInterval, high: JackknifeInterval, confidence_level: float = CONFIDENCE_LEVEL
) -> tuple[float, float] | None:
    """Compute the interval that covers the figure itself, wherever it lies between its bounds.

    Imbens & Manski (Econometrica 72, 2004, equations 6 and 7): low - c s_low to high + c s_high, where c solves
    F(c + (high - low) / max(s_low, s_high)) - F(-c) = 0.95. It is the two-sided interval where both bounds are equal,
    and one-sided at each end where they are far apart, since the figure can be near one of them only. It is valid for
    all widths, since estimated bounds are never in the wrong order (Stoye, Econometrica 77, 2009, lemma 3). F is
    Student's distribution here, as in all intervals over few units.

    Args:
        low, high: the jackknife intervals of the bounds, on one scale; centre -inf or inf for a bound that is exact.
        confidence_level: of the interval.

    Returns:
        The ends; None where a bound has no standard error.
    """
    if low.ends_at is None or high.ends_at is None:
        return None
    if low.centre is None or high.centre is None or low.std_error is None or high.std_error is None:
        return None
    std_error, df = max(low.std_error, high.std_error), min(low.df, high.df)
    width = max(high.centre - low.centre, 0.0) / std_error if std_error > 0 else np.inf
    quantile: float = find_root(
        lambda c: stdtr(df, c + width) - stdtr(df, -c) - confidence_level,
        stdtrit(df, confidence_level) - 1e-6,  # the one-sided and the two-sided quantile
        stdtrit(df, (1 + confidence_level) / 2) + 1e-6,
    )
    return low.ends_at(quantile)[0], high.ends_at(quantile)[1]


N_BISECTIONS = 40
MAX_STEPS = 60
"""Steps of a factor e within which the multiplier k is searched for."""

MAX_FEW_CELLS = 400
"""Up to so many cells, 4 bisections are computed in one array operation, since its overhead is the larger part of its
time; beyond, 2."""

ScoresForMean = Callable[[float, float | Floats], Floats]
"""From the multiplier k and the mean of the scores to the scores that minimize r if k and the mean are right.

For means of shape (m, 1), the scores have the shape (m, n)."""


class ExtremeScores(NamedTuple):
    """Scores within their ranges, shape (n,), with the smallest and with the largest r."""

    lowest: Floats
    highest: Floats


def extreme_correlation_scores(low: ArrayLike, high: ArrayLike, truth: ArrayLike) -> ExtremeScores | None:
    """Find the scores within their ranges that have the smallest and the largest correlation with the truth.

    Args:
        low, high: shape (n,), the smallest and the largest possible score of each cell, in [-1, 1]; equal where the
            score is known.
        truth: shape (n,).

    Returns:
        The scores; None where r is undefined for some scores of the box: all could be equal, or the truth is constant.
    """
    return _find_extreme_scores(*(np.asarray(column, dtype=np.float64).tobytes() for column in (low, high, truth)))


@functools.lru_cache(maxsize=8)  # a region's own bounds and those of its gap to another one rest on the same scores
def _find_extreme_scores(low: bytes, high: bytes, truth: bytes) -> ExtremeScores | None:
    """The result of `extreme_correlation_scores`, from the bytes of its arrays."""
    lows, highs, y = map(np.frombuffer, (low, high, truth))
    centred = y - y.mean()
    if lows.max() <= highs.min() + ROUNDING_ERROR or centred @ centred <= 1e-12:
        return None
    slopes = centred / np.sqrt(centred @ centred)
    return ExtremeScores(_minimize(lows, highs, slopes), _minimize(lows, highs, -slopes))


def _minimize(lows: Floats, highs: Floats, slopes: Floats) -> Floats:
    """Scores with the smallest r; `slopes` is the standardized truth."""
    start = np.where(slopes > 0, lows, highs)  # the smallest covariance
    middles = (lows + highs) / 2
    if slopes @ start <= 0:
        return _solve(start, slopes, lambda k, mean: np.clip(mean - slopes / k, lows, highs), jumps=False)[-1]
    candidates = _solve(start, slopes, lambda k, mean: np.where(slopes > k * (middles - mean), lows, highs), jumps=True)
    improved = [_improve_ends(lows, highs, slopes, scores) for scores in candidates]
    return min(improved, key=lambda scores: _correlate(slopes, scores))


def _solve(start: Floats, slopes: Floats, scores_at: ScoresForMean, *, jumps: bool) -> list[Floats]:
    """Find the multiplier k that equals |S| / V of its scores.

    Args:
        jumps: whether the scores jump as k grows; then no k may solve it.

    Returns:
        The starting scores and those next to the solution, since scores at the ends of ranges jump there; for scores
        that do not jump, the last are the solution.
    """
    sign = 1.0 if slopes @ start > 0 else -1.0

    def excess(log_k: float) -> float:
        scores = _scores_with_own_mean(scores_at, log_k)[0]
        return float(np.exp(log_k) - sign * (slopes @ scores) / _sum_of_squares(scores))

    if abs(slopes @ start) < 1e-12:
        return [start]
    low = high = float(np.log(abs(slopes @ start) / _sum_of_squares(start)))
    for _ in range(MAX_STEPS):
        if excess(low) <= 0:
            break
        low -= 1.0
    for _ in range(MAX_STEPS):
        if excess(high) >= 0:
            break
        high += 1.0
    if jumps:
        for _ in range(N_BISECTIONS):
            middle = (low + high) / 2
            low, high = (middle, high) if excess(middle) < 0 else (low, middle)
    else:
        low = high = find_root(excess, low, high)
    return [start, *(scores for log_k in (low, high) for scores in _scores_with_own_mean(scores_at, log_k))]


def _scores_with_own_mean(scores_at: ScoresForMean, log_k: float) -> tuple[Floats, Floats]:
    """Scores whose mean is the one they were computed for: from just below that mean and from just above it.

    The mean of the scores less the mean they were computed for falls as the latter grows, perhaps by a jump.
    """
    k, low, high = float(np.exp(log_k)), -1.0, 1.0
    n_at_once = 4 if scores_at(k, low).size <= MAX_FEW_CELLS else 2
    points = np.arange(1, 2**n_at_once) / 2**n_at_once
    for _ in range(N_BISECTIONS // n_at_once):
        # All means that the next bisections could try, and whether the scores' mean is above each of them.
        means = low + (high - low) * points
        is_above = scores_at(k, means[:, None]).mean(axis=1) > means
        left, right = 0, len(means) + 1
        while right - left > 1:
            middle = (left + right) // 2
            left, right = (middle, right) if is_above[middle - 1] else (left, middle)
        low, high = (means[left - 1] if left else low), (means[right - 1] if right <= len(means) else high)
    return scores_at(k, low), scores_at(k, high)


def _improve_ends(lows: Floats, highs: Floats, slopes: Floats, scores: Floats) -> Floats:
    """Move single scores to the other end of their range, the most useful one first, while that lowers r."""
    x = scores.copy()
    while True:
        other_ends = lows + highs - x
        changes = other_ends - x
        sums_of_squares = x @ x + other_ends**2 - x**2 - (x.sum() + changes) ** 2 / len(x)
        r = (slopes @ x + slopes * changes) / np.sqrt(np.maximum(sums_of_squares, 1e-15))
        best = int(np.argmin(r))
        if r[best] >= _correlate(slopes, x) - 1e-12:
            return x
        x[best] = other_ends[best]


def _sum_of_squares(scores: Floats) -> float:
    """Sum of squared deviations from the mean."""
    centred = scores - scores.mean()
    return float(centred @ centred)


def _correlate(slopes: Floats, scores: Floats) -> float:
    """Pearson's r with the truth."""
    return float(slopes @ scores / np.sqrt(_sum_of_squares(scores)))


POSSIBLE_VALUES: Mapping[Statistic, tuple[float, float]] = {PEARSON: (-1.0, 1.0), MAE: (0.0, 2.0), BIAS: (-2.0, 2.0)}
"""Smallest and largest possible value of each statistic of scores in [-1, 1]."""
DIFFERENCE_VALUES = (-2.0, 2.0)
"""Smallest and largest possible difference of two of these statistics."""
NO_BOUNDS_REASON = "so many samples are lost that the cells could all have the same score, for which r is not defined"
NO_CELLS_REASON = "no cell has a score of people"
NO_SCORES_REASON = "no sample has a usable score"


class ScoreRanges(NamedTuple):
    """Smallest and largest mean of each cell over all planned samples, shape (n,); nan where none is planned."""

    low: Floats
    high: Floats


def planned_score_ranges(
    scores: ArrayLike, usable: ArrayLike, planned: ArrayLike, *, has_groups: ArrayLike = False
) -> ScoreRanges:
    """Bound each cell's mean over all planned samples, if the lost ones may have any score in [-1, 1].

    Args:
        scores: shape (n,), means of the usable samples, in [-1, 1]; nan where there is none.
        usable: shape (n,), numbers of usable samples.
        planned: shape (n,), numbers of planned samples; at least as many as usable ones are taken as planned.
        has_groups: shape (n,) or one value, whether a score is a mean of means of groups (languages) with equal numbers
            of planned samples. Which group lost samples is not known, so the bounds are then wider: a lost sample may
            differ by 2 from the mean of its group.
    """
    means = np.asarray(scores, dtype=np.float64)
    n_usable = np.where(np.isnan(means), 0.0, np.nan_to_num(np.asarray(usable, dtype=np.float64)))
    n_planned = np.maximum(np.nan_to_num(np.asarray(planned, dtype=np.float64)), n_usable)
    lost_share = np.where(n_planned > 0, 1.0 - n_usable / np.where(n_planned > 0, n_planned, 1.0), np.nan)
    known_part = np.nan_to_num(means) * (1.0 - lost_share)
    grouped = np.asarray(has_groups, dtype=np.bool_) & ~np.isnan(means)
    return ScoreRanges(
        np.where(grouped, np.maximum(means - 2 * lost_share, -1.0), known_part - lost_share),
        np.where(grouped, np.minimum(means + 2 * lost_share, 1.0), known_part + lost_share),
    )


def bounded_statistic(
    statistic: Statistic,
    value: float | None,
    ranges: ScoreRanges,
    truth: ArrayLike,
    countries: ArrayLike | UnitLabels,
    topics: ArrayLike,
) -> BoundedEstimate:
    """Bound a statistic of one model's scores against people's, with its interval over other countries and topics.

    Args:
        statistic: PEARSON, MAE or BIAS.
        value: the statistic over the cells with a score, to be bounded.
        ranges: of the model's scores, shape (n,).
        truth, countries, topics: shape (n,).
    """
    extremes = extreme_scores(statistic, ranges, truth)
    if extremes is None:
        return _without_bounds(value, ranges, truth)
    low, high = (crossed_jackknife(statistic, scores, truth, countries, topics) for scores in extremes)
    return _combine(value, low, high, POSSIBLE_VALUES[statistic])


def bounded_gap(
    statistic: Statistic,
    value: float | None,
    ranges: ScoreRanges,
    truth: ArrayLike,
    countries: ArrayLike | UnitLabels,
    topics: ArrayLike,
    group: ArrayLike,
    n_pairs: int = 1,
) -> BoundedEstimate:
    """Bound the statistic over one group of countries minus that over the other, as `bounded_statistic`.

    Args:
        group: shape (n,), whether the cell's country is in the first group.
        n_pairs: number of pairs of groups from which these two were selected; the interval holds for all (Bonferroni).
    """
    y, in_first_group = np.asarray(truth, dtype=np.float64), np.asarray(group, dtype=np.bool_)
    low_scores, high_scores = np.full_like(y, np.nan), np.full_like(y, np.nan)
    for members, largest_is_high in ((in_first_group, True), (~in_first_group, False)):
        extremes = extreme_scores(statistic, ScoreRanges(ranges.low[members], ranges.high[members]), y[members])
        if extremes is None:
            return _without_bounds(value, ranges, truth)
        low_scores[members], high_scores[members] = extremes if largest_is_high else extremes[::-1]
    low, high = (gap_jackknife(statistic, scores, y, countries, topics, group) for scores in (low_scores, high_scores))
    return _combine(value, low, high, DIFFERENCE_VALUES, bonferroni_level(n_pairs))


def bounded_difference(
    statistic: Statistic,
    value: float | None,
    first: ScoreRanges,
    second: ScoreRanges,
    truth: ArrayLike,
    countries: ArrayLike | UnitLabels,
    topics: ArrayLike,
) -> BoundedEstimate:
    """Bound the statistic of one model minus that of another, as `bounded_statistic`.

    Args:
        first, second: ranges of the two models' scores, shape (n,); cells that one was not to be asked are left out.
    """
    y = np.where(np.isnan(first.low) | np.isnan(second.low), np.nan, np.asarray(truth, dtype=np.float64))
    first_extremes, second_extremes = (extreme_scores(statistic, ranges, y) for ranges in (first, second))
    if first_extremes is None or second_extremes is None:
        return _without_bounds(value, first, y)
    low = paired_jackknife(statistic, first_extremes[0], second_extremes[1], y, countries, topics)
    high = paired_jackknife(statistic, first_extremes[1], second_extremes[0], y, countries, topics)
    return _combine(value, low, high, DIFFERENCE_VALUES)


def extreme_scores(statistic: Statistic, ranges: ScoreRanges, truth: ArrayLike) -> tuple[Floats, Floats] | None:
    """Scores within their ranges that make the statistic smallest and largest, shape (n,); nan in cells without either.

    None where the statistic could be undefined, or there is no cell.
    """
    y = np.asarray(truth, dtype=np.float64)
    is_known = ~np.isnan(y) & ~np.isnan(ranges.low)
    if not is_known.any():
        return None
    low, high, y = ranges.low[is_known], ranges.high[is_known], y[is_known]
    extremes: tuple[Floats, Floats] | None = (low, high)
    if statistic is PEARSON:
        extremes = extreme_correlation_scores(low, high, y)
    elif statistic is MAE:
        extremes = (np.clip(y, low, high), np.where(np.abs(low - y) > np.abs(high - y), low, high))
    return extremes and (_spread(extremes[0], is_known), _spread(extremes[1], is_known))


def _spread(scores: Floats, is_known: NDArray[np.bool_]) -> Floats:
    """Scores of all cells, from those of the known cells; nan elsewhere."""
    spread = np.full(len(is_known), np.nan)
    spread[is_known] = scores
    return spread


def _without_bounds(value: float | None, ranges: ScoreRanges, truth: ArrayLike) -> BoundedEstimate:
    """An estimate without bounds and interval, with the reason."""
    n = int((~np.isnan(np.asarray(truth, dtype=np.float64)) & ~np.isnan(ranges.low)).sum())
    return BoundedEstimate(value, n, reason=NO_BOUNDS_REASON if n else NO_CELLS_REASON)


def _combine(
    value: float | None,
    low: TwoWayEstimate,
    high: TwoWayEstimate,
    possible: tuple[float, float],
    confidence_level: float = CONFIDENCE_LEVEL,
) -> BoundedEstimate:
    """The bounds and the interval of the figure between them.

    Args:
        low, high: the statistic on the tables that make it smallest and largest.
        possible: smallest and largest possible value, to which the interval is clipped.
    """
    exact_ends = (_exact_at(low, possible[0], -np.inf), _exact_at(high, possible[1], np.inf))
    ends = imbens_manski_interval(*exact_ends, confidence_level)
    reason = None if value is not None else NO_SCORES_REASON
    if ends is None:
        ends_reason = low.reason or high.reason or reason
        return BoundedEstimate(value, low.n, reason=ends_reason, bound_low=low.value, bound_high=high.value)
    return BoundedEstimate(
        value,
        low.n,
        ci_low=max(ends[0], possible[0]),
        ci_high=min(ends[1], possible[1]),
        reason=reason,
        resampled=low.resampled or high.resampled or ("country", "topic"),
        bound_low=low.value,
        bound_high=high.value,
    )


def _exact_at(bound: TwoWayEstimate, possible_end: float, centre: float) -> JackknifeInterval:
    """The jackknife interval of a bound; exact, without an error, where the bound is the end of the possible values."""
    interval = bound.interval or JackknifeInterval(None, None, reason=bound.reason)
    if interval.centre is None and bound.value is not None and abs(bound.value - possible_end) < 1e-12:
        return JackknifeInterval(
            possible_end, possible_end, centre, 0.0, df=10**6, ends_at=lambda _: (possible_end, possible_end)
        )
    return interval
