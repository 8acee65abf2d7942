"""Intervals over other countries and other topics by leaving one out: those that a report gives.

A country, a topic and a cell are left out in turn. What countries and what topics vary adds up, less what both count
of the single cells (Cameron, Gelbach & Miller, J. of Business & Economic Statistics 29, 2011, for regressions):
V = max(V_country + V_topic - V_cell, V_country, V_topic), each by the jackknife (Efron & Stein, Annals of Statistics 9,
1981). The interval is Student's with the smaller number of clusters less 1, on a scale on which the figure is nearly
normal: Fisher's z for r; -1/sqrt for MAE and RMSE, with one degree of freedom less, since few topics rarely show how
skewed their errors are. Chosen by simulation: `benchmarks/bench_coverage.py` holds the study. Percentile intervals of
the crossed bootstrap (`auditor.metrics.bootstrap`) held an MAE over 90 x 10 in 89% of runs.

What a survey's own sampling error adds is in these intervals already: it is part of what differs from cell to cell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtr, stdtrit

from auditor.metrics._complete_cases import Floats, complete_cases
from auditor.metrics._jackknife_replicates import jackknife_covariance, two_way_variance
from auditor.metrics._two_way_table import TwoWayTable, build_two_way_table
from auditor.metrics.bootstrap import MAE, MIN_CLUSTERS, PEARSON, RMSE, Statistic, TwoWayEstimate

GridStatistic = Callable[[Sequence[Floats]], Floats]


@dataclass(frozen=True, slots=True)
class NormalizingTransform:
    """On which a figure is nearly normal: there and back, and degrees of freedom given up."""

    forward: Callable[[Floats], Floats] = lambda v: v
    inverse: Callable[[Floats], Floats] = lambda v: v
    df_penalty: int = 0


def _inverse_root(v: Floats) -> Floats:
    below: Floats = np.where(v < 0, np.minimum(v, -1e-150) ** -2.0, np.inf)
    return below


ROOT_TRANSFORM = NormalizingTransform(lambda v: -(v**-0.5), _inverse_root, df_penalty=1)
DIFFERENCE_TRANSFORMS = {PEARSON: NormalizingTransform(inverse=lambda v: np.clip(v, -2.0, 2.0))}
"""Of two figures; two correlations are at most 2 apart."""
STATISTIC_TRANSFORMS = {PEARSON: NormalizingTransform(np.arctanh, np.tanh), MAE: ROOT_TRANSFORM, RMSE: ROOT_TRANSFORM}


def crossed_jackknife(
    statistic: Statistic, scores: ArrayLike, truth: ArrayLike, countries: ArrayLike, topics: ArrayLike
) -> TwoWayEstimate:
    """A figure of one model against people, with its 95% interval over other countries and other topics.

    Args:
        statistic: PEARSON, MAE, RMSE, BIAS or one like them.
        scores, truth: shape (n,), a cell each; cells with a nan on either side are left out.
        countries, topics: shape (n,), labels of any kind.

    Returns:
        No interval, with a reason, over fewer than 5 countries or topics, or where leaving one out leaves no value.

    Raises:
        ValueError: shapes differ, or a value is infinite.
    """
    (x, y), keep = complete_cases(scores, truth)
    table = build_two_way_table(countries, topics, keep)
    grid = table.to_grid(statistic.moments(x, y))
    return _jackknife_interval(
        lambda sums: statistic.value(sums[0]),
        [grid],
        table,
        STATISTIC_TRANSFORMS.get(statistic, NormalizingTransform()),
    )


def gap_jackknife(
    statistic: Statistic,
    scores: ArrayLike,
    truth: ArrayLike,
    countries: ArrayLike,
    topics: ArrayLike,
    group: ArrayLike,
) -> TwoWayEstimate:
    """The statistic over one group of countries less that over the other, as `crossed_jackknife`.

    Args:
        group: shape (n,), whether the cell's country is in the first group. The rest as for `crossed_jackknife`.

    Raises:
        ValueError: as `crossed_jackknife`, or a country is in both groups.
    """
    (x, y), keep = complete_cases(scores, truth)
    first = np.asarray(group, dtype=np.bool_)
    if first.shape != keep.shape:
        raise ValueError(f"group must have the shape {keep.shape}, but has {first.shape}")
    table = build_two_way_table(countries, topics, keep, (first, ~first))
    grid = table.to_grid(statistic.moments(x, y))
    grids = [np.zeros_like(grid) for _ in table.strata]
    for part, members in zip(grids, table.strata, strict=True):
        part[members] = grid[members]
    scale = DIFFERENCE_TRANSFORMS.get(statistic, NormalizingTransform())
    return _jackknife_interval(lambda sums: statistic.value(sums[0]) - statistic.value(sums[1]), grids, table, scale)


def paired_jackknife(
    statistic: Statistic,
    first: ArrayLike,
    second: ArrayLike,
    truth: ArrayLike,
    countries: ArrayLike,
    topics: ArrayLike,
) -> TwoWayEstimate:
    """The statistic of one model less that of another, over the cells that both have, with a two-sided p-value.

    Args:
        first, second: shape (n,), the scores of either model. The rest as for `crossed_jackknife`.
    """
    (a, b, y), keep = complete_cases(first, second, truth)
    table = build_two_way_table(countries, topics, keep)
    grids = [table.to_grid(statistic.moments(x, y)) for x in (a, b)]
    scale = DIFFERENCE_TRANSFORMS.get(statistic, NormalizingTransform())
    return _jackknife_interval(
        lambda sums: statistic.value(sums[0]) - statistic.value(sums[1]), grids, table, scale, is_difference=True
    )


def _jackknife_interval(
    compute_statistic: GridStatistic,
    grids: Sequence[Floats],
    table: TwoWayTable,
    transform: NormalizingTransform,
    *,
    is_difference: bool = False,
) -> TwoWayEstimate:
    n, sizes = len(table.row_index), (table.n_countries, table.n_topics)
    if n == 0:
        return TwoWayEstimate(None, None, None, *sizes, n, 0, "no cell has all its values")
    estimate = float(compute_statistic([g.sum((0, 1))[None] for g in grids])[0])
    if np.isnan(estimate):
        return TwoWayEstimate(None, None, None, *sizes, n, 0, "too few cells, or no variation among them")
    least = min(*map(len, table.strata), table.n_topics)
    if least < MIN_CLUSTERS:
        reason = f"an interval needs {MIN_CLUSTERS} countries{' a group' * (len(table.strata) > 1)} and topics"
        return TwoWayEstimate(estimate, None, None, *sizes, n, 0, reason)
    with np.errstate(divide="ignore", invalid="ignore"):
        centre, variance = (
            float(transform.forward(np.array([estimate]))[0]),
            _jackknife_variance(compute_statistic, grids, table, transform),
        )
    if not np.isfinite(centre) or not np.isfinite(variance):
        return TwoWayEstimate(estimate, None, None, *sizes, n, 0, "leaving a country or topic out leaves no value")
    if variance <= 1e-24 * max(1.0, centre**2):
        return TwoWayEstimate(estimate, None, None, *sizes, n, 0, "it is the same whatever is left out: no interval")
    freedom = min(table.n_countries - len(table.strata), table.n_topics - 1) - transform.df_penalty
    half = float(stdtrit(freedom, 0.975)) * variance**0.5
    low, high = transform.inverse(np.array([centre - half, centre + half]))
    if not np.isfinite(high):
        return TwoWayEstimate(estimate, None, None, *sizes, n, 0, "it varies too much for an interval")
    p_value = float(2 * stdtr(freedom, -abs(centre) / variance**0.5)) if is_difference else None
    return TwoWayEstimate(estimate, float(low), float(high), *sizes, n, sum(sizes), p_value=p_value)


def _jackknife_variance(
    compute_statistic: GridStatistic, grids: Sequence[Floats], table: TwoWayTable, transform: NormalizingTransform
) -> float:
    totals = [g.sum((0, 1))[None] for g in grids]

    def without(parts: Sequence[Floats]) -> Floats:
        return transform.forward(compute_statistic([total - part for total, part in zip(totals, parts, strict=True)]))

    country = without([g.sum(1) for g in grids])
    topic = _replicate_variance(without([g.sum(0) for g in grids]))
    cell = without([g[table.row_index, table.column_index] for g in grids])
    places = [np.isin(table.row_index, members) for members in table.strata]
    by_country = sum(_replicate_variance(country[members]) for members in table.strata)
    by_cell = sum(_replicate_variance(cell[place]) for place in places)
    return float(two_way_variance(*map(np.asarray, (by_country, topic, by_cell))))


def _replicate_variance(replicates: Floats) -> float:
    """The jackknife's variance, from the figures with one left out."""
    return float(jackknife_covariance(replicates[None])[0, 0])
