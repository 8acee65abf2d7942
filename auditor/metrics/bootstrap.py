"""Intervals for figures over a table of countries and topics, both of which could have been others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics._complete_cases import Floats, complete_cases, is_constant
from auditor.metrics._two_way_table import TwoWayTable, build_two_way_table, weighted_sums

MIN_CLUSTERS = 5
"""With fewer countries or topics a bootstrap sees too little of how they differ."""

MAX_UNDEFINED_SHARE = 0.05
"""Above this share of resamples without a value, the rest say too little about the spread."""


@dataclass(frozen=True, slots=True)
class TwoWayEstimate:
    """A figure with a 95% interval over other countries and other topics; `reason` says why something is None.

    Attributes:
        p_value: of a paired difference: two-sided, of there being none, in (0, 1]; None for all else.
    """

    estimate: float | None
    low: float | None
    high: float | None
    n_countries: int
    n_topics: int
    n_cells: int
    replicates: int
    reason: str | None = None
    p_value: float | None = None


@dataclass(frozen=True, slots=True)
class Statistic:
    """A figure that sums over cells determine, so that a resample costs a few sums.

    Attributes:
        moments: from scores and truth, shape (n,) each, to what is summed over cells, shape (n, k).
        value: from such sums, shape (replicates, k), to the figure, shape (replicates,), nan where undefined.
    """

    moments: Callable[[Floats, Floats], Floats]
    value: Callable[[Floats], Floats]


def _product_moments(x: Floats, y: Floats) -> Floats:
    u, v = _standardize(x), _standardize(y)
    return np.stack([np.ones_like(u), u, v, u * u, v * v, u * v], axis=1)


def _standardize(values: Floats) -> Floats:
    """Centred and scaled, so that no digits are lost in the difference of two sums."""
    if len(values) < 3 or is_constant(values):
        return np.zeros_like(values)
    centred: Floats = values - values.mean()
    scaled: Floats = centred / np.abs(centred).max()
    return scaled


def _correlation(sums: Floats) -> Floats:
    n = np.maximum(sums[:, 0], 1.0)
    mu, mv, uu, vv, uv = sums[:, 1:].T / n
    su, sv = uu - mu * mu, vv - mv * mv
    defined = (su > 1e-12) & (sv > 1e-12)
    r = (uv - mu * mv) / np.sqrt(np.where(defined, su * sv, 1.0))
    return np.where(defined, np.clip(r, -1.0, 1.0), np.nan)


def _mean(sums: Floats) -> Floats:
    n = sums[:, 0]
    return np.where(n > 0, sums[:, 1] / np.where(n > 0, n, 1.0), np.nan)


def _with_count(values: Floats) -> Floats:
    return np.stack([np.ones_like(values), values], axis=1)


PEARSON = Statistic(_product_moments, _correlation)
MAE = Statistic(lambda x, y: _with_count(np.abs(x - y)), _mean)
RMSE = Statistic(lambda x, y: _with_count((x - y) ** 2), lambda sums: np.sqrt(_mean(sums)))
BIAS = Statistic(lambda x, y: _with_count(x - y), _mean)


def crossed_interval(
    statistic: Statistic,
    scores: ArrayLike,
    truth: ArrayLike,
    countries: ArrayLike,
    topics: ArrayLike,
    *,
    replicates: int = 2000,
    seed: int = 0,
) -> TwoWayEstimate:
    """A figure of one model against people, by the pigeonhole bootstrap (Owen, Annals of Applied Statistics 1, 2007).

    Cells of one country, or of one topic, go up and down together, so the n cells are worth fewer than n. Countries and
    topics are each resampled with replacement, and a cell counts as often as its country times its topic was drawn.
    With many countries and few topics it is somewhat narrow: of nominal 95% intervals for an MAE over 90 x 10, 89% held
    the truth, over 55 x 19 92% (`benchmarks/bench_coverage.py`): reports use `auditor.metrics.jackknife`.

    Args:
        statistic: PEARSON, MAE, RMSE, BIAS or one like them.
        scores, truth: shape (n,), a cell each; cells with a nan on either side are left out.
        countries, topics: shape (n,), labels of any kind.
        replicates, seed: of the bootstrap.

    Returns:
        The 95% percentile interval; none, with a reason, over fewer than 5 countries or topics.

    Raises:
        ValueError: shapes differ, or a value is infinite.
    """
    (x, y), keep = complete_cases(scores, truth)
    table = build_two_way_table(countries, topics, keep)
    cells = table.to_grid(statistic.moments(x, y))
    return _percentile_interval(
        lambda rows, columns: statistic.value(weighted_sums(cells, rows, columns)), table, replicates, seed
    )


def gap_interval(
    statistic: Statistic,
    scores: ArrayLike,
    truth: ArrayLike,
    countries: ArrayLike,
    topics: ArrayLike,
    group: ArrayLike,
    *,
    replicates: int = 2000,
    seed: int = 0,
) -> TwoWayEstimate:
    """The statistic over one group of countries less that over the other, as `crossed_interval`.

    Both groups are asked the same topics, so these are drawn once for both; countries are drawn within their group.

    Args:
        group: shape (n,), whether the cell's country is in the first group. The rest as for `crossed_interval`.

    Returns:
        first - second; none, with a reason, where either group has no value. `n_countries` counts both groups.

    Raises:
        ValueError: as `crossed_interval`, or a country is in both groups.
    """
    (x, y), keep = complete_cases(scores, truth)
    first = np.asarray(group, dtype=np.bool_)
    if first.shape != keep.shape:
        raise ValueError(f"group must have the shape {keep.shape}, but has {first.shape}")
    table = build_two_way_table(countries, topics, keep, (first, ~first))
    cells = table.to_grid(statistic.moments(x, y))

    def gap(rows: Floats, columns: Floats) -> Floats:
        one, other = (statistic.value(weighted_sums(cells[part], rows[:, part], columns)) for part in table.strata)
        return one - other

    return _percentile_interval(gap, table, replicates, seed)


def paired_interval(
    statistic: Statistic,
    first: ArrayLike,
    second: ArrayLike,
    truth: ArrayLike,
    countries: ArrayLike,
    topics: ArrayLike,
    *,
    replicates: int = 2000,
    seed: int = 0,
) -> TwoWayEstimate:
    """The statistic of one model less that of another, over the cells that both have, as `crossed_interval`.

    Its p-value inverts the interval: twice the share of resamples on the rarer side of zero, of which one more is
    counted than was drawn (Davison & Hinkley 1997, Bootstrap Methods, section 4.2), so that it is never zero. It is as
    fine as the replicates allow: m tests need at least 40 m of them for the smallest to survive Holm's correction.

    Args:
        first, second: shape (n,), the scores of either model. The rest as for `crossed_interval`.
    """
    (a, b, y), keep = complete_cases(first, second, truth)
    table = build_two_way_table(countries, topics, keep)
    one, other = (table.to_grid(statistic.moments(x, y)) for x in (a, b))

    def difference(rows: Floats, columns: Floats) -> Floats:
        return statistic.value(weighted_sums(one, rows, columns)) - statistic.value(weighted_sums(other, rows, columns))

    return _percentile_interval(difference, table, replicates, seed, is_difference=True)


def holm(p_values: ArrayLike) -> Floats:
    """P-values adjusted for being many (Holm, Scandinavian J. of Statistics 6, 1979): the family's error rate is held.

    Args:
        p_values: shape (m,), in [0, 1]; nan where there was no test, which does not count as one.

    Returns:
        Shape (m,), none smaller than it was; nan stays nan.

    Raises:
        ValueError: not one-dimensional, or a value outside [0, 1].
    """
    p = np.asarray(p_values, dtype=np.float64)
    if p.ndim != 1 or np.any((p < 0) | (p > 1)):
        raise ValueError("p-values must be one-dimensional and in [0, 1]")
    tests = np.nonzero(~np.isnan(p))[0]
    order = tests[np.argsort(p[tests])]
    adjusted = np.full_like(p, np.nan)
    steps = np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * steps), 1.0)
    return adjusted


def _percentile_interval(
    compute_statistic: Callable[[Floats, Floats], Floats],
    table: TwoWayTable,
    replicates: int,
    seed: int,
    *,
    is_difference: bool = False,
) -> TwoWayEstimate:
    n, sizes = len(table.row_index), (table.n_countries, table.n_topics)
    if n == 0:
        return TwoWayEstimate(None, None, None, *sizes, n, 0, "no cell has all its values")
    estimate = float(compute_statistic(np.ones((1, sizes[0])), np.ones((1, sizes[1])))[0])
    if np.isnan(estimate):
        return TwoWayEstimate(None, None, None, *sizes, n, 0, "too few cells, or no variation among them")
    if min(*map(len, table.strata), table.n_topics) < MIN_CLUSTERS:
        reason = f"an interval needs {MIN_CLUSTERS} countries{' a group' * (len(table.strata) > 1)} and topics"
        return TwoWayEstimate(estimate, None, None, *sizes, n, 0, reason)
    values = compute_statistic(*table.draw_weights(np.random.default_rng(seed), replicates))
    defined = values[~np.isnan(values)]
    if len(defined) < (1 - MAX_UNDEFINED_SHARE) * replicates:
        return TwoWayEstimate(estimate, None, None, *sizes, n, 0, "too many resamples have no value: no interval")
    low, high = np.quantile(defined, (0.025, 0.975))
    p_value = _bootstrap_p_value(defined) if is_difference else None
    return TwoWayEstimate(estimate, float(low), float(high), *sizes, n, len(defined), p_value=p_value)


def _bootstrap_p_value(differences: Floats) -> float:
    rarer = min(int((differences <= 0).sum()), int((differences >= 0).sum()))
    return min(1.0, 2 * (rarer + 1) / (len(differences) + 1))
