"""Intervals over other countries and topics by the two-way jackknife: the intervals that reports give.

A country, a topic and a cell are left out in turn. The variances over countries and over topics add up, minus the
variance over single cells, which both contain (Cameron, Gelbach & Miller, J. of Business & Economic Statistics 29,
2011, for regressions): V = max(V_country + V_topic - V_cell, V_country, V_topic), each by the jackknife (Efron &
Stein, Annals of Statistics 9, 1981). The interval is Student's with the smaller number of clusters minus 1 degrees of
freedom, on a scale on which the statistic is nearly normal: Fisher's z for r; -1/sqrt for MAE and RMSE, with one
degree of freedom less, since few topics rarely show how skewed their errors are. The method was chosen by simulation
(`benchmarks/bench_coverage.py`). Percentile intervals of the crossed bootstrap (`auditor.metrics.bootstrap`) covered
an MAE over 90 x 10 in 89% of runs.

The sampling error of the survey is included: it is part of the variation from cell to cell.
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
"""From the sums of moments in each grid, one array of shape (replicates, k) per grid, to the statistic (replicates,).

A grid holds the moments of one model's or one group's cells, shape (countries, topics, k); a difference has two.
"""


@dataclass(frozen=True, slots=True)
class NormalizingTransform:
    """A scale on which a statistic is nearly normal.

    Attributes:
        forward, inverse: to that scale and back.
        df_penalty: degrees of freedom to subtract.
    """

    forward: Callable[[Floats], Floats] = lambda v: v
    inverse: Callable[[Floats], Floats] = lambda v: v
    df_penalty: int = 0


def _inverse_root(v: Floats) -> Floats:
    """Inverse of -1/sqrt(v); inf for values of 0 or more, which it does not reach."""
    inverted: Floats = np.where(v < 0, np.minimum(v, -1e-150) ** -2.0, np.inf)
    return inverted


ROOT_TRANSFORM = NormalizingTransform(lambda v: -(v**-0.5), _inverse_root, df_penalty=1)
DIFFERENCE_TRANSFORMS = {PEARSON: NormalizingTransform(inverse=lambda v: np.clip(v, -2.0, 2.0))}
"""Transforms for the difference of two statistics: two correlations differ by at most 2."""
STATISTIC_TRANSFORMS = {PEARSON: NormalizingTransform(np.arctanh, np.tanh), MAE: ROOT_TRANSFORM, RMSE: ROOT_TRANSFORM}
"""Transforms for one statistic; others are used as they are."""


def crossed_jackknife(
    statistic: Statistic, scores: ArrayLike, truth: ArrayLike, countries: ArrayLike, topics: ArrayLike
) -> TwoWayEstimate:
    """A statistic of one model's scores against human scores, with its 95% interval over other countries and topics.

    Args:
        statistic: PEARSON, MAE, RMSE, BIAS or a similar one.
        scores, truth: shape (n,), one value per cell; cells with a nan on either side are left out.
        countries, topics: shape (n,), labels of any kind.

    Returns:
        The estimate; no interval, with a reason, for fewer than 5 countries or topics, or where the statistic is
        undefined with one of them left out.

    Raises:
        ValueError: shapes differ, or a value is infinite.
    """
    (x, y), is_complete = complete_cases(scores, truth)
    table = build_two_way_table(countries, topics, is_complete)
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
    """The statistic over one group of countries minus that over the other, as `crossed_jackknife`.

    Args:
        group: shape (n,), whether the cell's country is in the first group. The others as for `crossed_jackknife`.

    Raises:
        ValueError: as `crossed_jackknife`, or a country is in both groups.
    """
    (x, y), is_complete = complete_cases(scores, truth)
    in_first_group = np.asarray(group, dtype=np.bool_)
    if in_first_group.shape != is_complete.shape:
        raise ValueError(f"group must have the shape {is_complete.shape}, but has {in_first_group.shape}")
    table = build_two_way_table(countries, topics, is_complete, (in_first_group, ~in_first_group))
    grid = table.to_grid(statistic.moments(x, y))
    # One grid per group of countries, with the other group's cells set to 0.
    grids = [np.zeros_like(grid) for _ in table.strata]
    for group_grid, members in zip(grids, table.strata, strict=True):
        group_grid[members] = grid[members]
    transform = DIFFERENCE_TRANSFORMS.get(statistic, NormalizingTransform())
    return _jackknife_interval(
        lambda sums: statistic.value(sums[0]) - statistic.value(sums[1]), grids, table, transform
    )


def paired_jackknife(
    statistic: Statistic,
    first: ArrayLike,
    second: ArrayLike,
    truth: ArrayLike,
    countries: ArrayLike,
    topics: ArrayLike,
) -> TwoWayEstimate:
    """The statistic of one model minus that of another, over the cells that both have, with a two-sided p-value.

    Args:
        first, second: shape (n,), the scores of the two models. The others as for `crossed_jackknife`.
    """
    (a, b, y), is_complete = complete_cases(first, second, truth)
    table = build_two_way_table(countries, topics, is_complete)
    grids = [table.to_grid(statistic.moments(model_scores, y)) for model_scores in (a, b)]
    transform = DIFFERENCE_TRANSFORMS.get(statistic, NormalizingTransform())
    return _jackknife_interval(
        lambda sums: statistic.value(sums[0]) - statistic.value(sums[1]), grids, table, transform, is_difference=True
    )


def _jackknife_interval(
    compute_statistic: GridStatistic,
    grids: Sequence[Floats],
    table: TwoWayTable,
    transform: NormalizingTransform,
    *,
    is_difference: bool = False,
) -> TwoWayEstimate:
    """The statistic with its 95% jackknife interval.

    Args:
        compute_statistic: from sums of moments, one array of shape (replicates, k) per grid, to the statistic.
        grids: moments laid out as (countries, topics, k): one grid for a single statistic, two for a difference.
        table: the positions of the cells in the grids. Its strata are the groups of countries that are compared.
        transform: the scale on which the interval is symmetric.
        is_difference: also compute the two-sided p-value of the statistic being 0.

    Returns:
        The estimate; no interval, with a reason, where it cannot be computed.
    """
    n_cells, n_clusters = len(table.row_index), (table.n_countries, table.n_topics)
    if n_cells == 0:
        return TwoWayEstimate(None, None, None, *n_clusters, n_cells, 0, "no cell has all its values")
    estimate = float(compute_statistic([grid.sum((0, 1))[None] for grid in grids])[0])
    if np.isnan(estimate):
        return TwoWayEstimate(None, None, None, *n_clusters, n_cells, 0, "too few cells, or no variation among them")
    min_clusters = min(*map(len, table.strata), table.n_topics)
    if min_clusters < MIN_CLUSTERS:
        reason = f"an interval needs {MIN_CLUSTERS} countries{' a group' * (len(table.strata) > 1)} and topics"
        return TwoWayEstimate(estimate, None, None, *n_clusters, n_cells, 0, reason)
    with np.errstate(divide="ignore", invalid="ignore"):
        centre, variance = (
            float(transform.forward(np.array([estimate]))[0]),
            _jackknife_variance(compute_statistic, grids, table, transform),
        )
    if not np.isfinite(centre) or not np.isfinite(variance):
        return TwoWayEstimate(
            estimate, None, None, *n_clusters, n_cells, 0, "leaving a country or topic out leaves no value"
        )
    if variance <= 1e-24 * max(1.0, centre**2):
        return TwoWayEstimate(
            estimate, None, None, *n_clusters, n_cells, 0, "it is the same whatever is left out: no interval"
        )
    df = min(table.n_countries - len(table.strata), table.n_topics - 1) - transform.df_penalty
    half_width = float(stdtrit(df, 0.975)) * variance**0.5
    low, high = transform.inverse(np.array([centre - half_width, centre + half_width]))
    if not np.isfinite(high):
        return TwoWayEstimate(estimate, None, None, *n_clusters, n_cells, 0, "it varies too much for an interval")
    p_value = float(2 * stdtr(df, -abs(centre) / variance**0.5)) if is_difference else None
    return TwoWayEstimate(estimate, float(low), float(high), *n_clusters, n_cells, sum(n_clusters), p_value=p_value)


def _jackknife_variance(
    compute_statistic: GridStatistic, grids: Sequence[Floats], table: TwoWayTable, transform: NormalizingTransform
) -> float:
    """Two-way jackknife variance of the statistic on the transformed scale; arguments as for `_jackknife_interval`.

    Countries and cells are left out within each stratum, whose variances add up.
    """
    totals = [grid.sum((0, 1))[None] for grid in grids]

    def transform_replicates(left_out: Sequence[Floats]) -> Floats:
        """The transformed statistic with each unit (country, topic or cell) left out in turn, shape (units,).

        `left_out` has one array per grid, shape (units, k): the moments that each unit contributes to the sums.
        """
        return transform.forward(
            compute_statistic([total - group_left_out for total, group_left_out in zip(totals, left_out, strict=True)])
        )

    country_replicates = transform_replicates([grid.sum(1) for grid in grids])
    by_topic = _replicate_variance(transform_replicates([grid.sum(0) for grid in grids]))
    cell_replicates = transform_replicates([grid[table.row_index, table.column_index] for grid in grids])
    stratum_masks = [np.isin(table.row_index, members) for members in table.strata]
    by_country = sum(_replicate_variance(country_replicates[members]) for members in table.strata)
    by_cell = sum(_replicate_variance(cell_replicates[in_stratum]) for in_stratum in stratum_masks)
    return float(two_way_variance(*map(np.asarray, (by_country, by_topic, by_cell))))


def _replicate_variance(replicates: Floats) -> float:
    """Jackknife variance of a statistic from its values with one unit left out, shape (n,)."""
    return float(jackknife_covariance(replicates[None])[0, 0])
