"""Worst-case bounds of a figure over all possible values of the lost samples, and intervals for the figure.

Where samples are lost, as by refusals, the figure over all planned samples is not known: the lost ones may differ from
the others in any way. The figure lies between bounds (Manski, American Economic Review 80, 1990), which are the figure
itself on two tables: the lost samples are filled in so that it becomes smallest, and so that it becomes largest. Each
bound has the two-way jackknife's standard error with these scores held fixed, which is right to first order: where the
figure is smallest, its derivative with respect to the scores is 0 (Milgrom & Segal, Econometrica 70, 2002).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics._complete_cases import Floats
from auditor.metrics._two_way_table import UnitLabels
from auditor.metrics.cell_statistics import BIAS, MAE, PEARSON, Statistic, TwoWayEstimate
from auditor.metrics.confidence import CONFIDENCE_LEVEL, bonferroni_level
from auditor.metrics.correlation_bounds import extreme_correlation_scores
from auditor.metrics.estimate import BoundedEstimate
from auditor.metrics.imbens_manski import imbens_manski_interval
from auditor.metrics.jackknife import crossed_jackknife, gap_jackknife, paired_jackknife
from auditor.metrics.jackknife_interval import JackknifeInterval

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
