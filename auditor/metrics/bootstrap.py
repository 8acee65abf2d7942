"""Two-way bootstrap intervals for statistics over country-topic cells, with countries and topics both resampled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics._complete_cases import Floats, complete_cases, is_constant
from auditor.metrics._two_way_table import TwoWayTable, build_two_way_table, weighted_sums
from auditor.metrics.jackknife_interval import JackknifeInterval

MIN_CLUSTERS = 5
"""Fewest countries, and fewest topics, for an interval: fewer show too little of how they differ."""

MAX_UNDEFINED_SHARE = 0.05
"""No interval when a larger share of resamples has no value, since the others say too little about the spread."""


@dataclass(frozen=True, slots=True)
class TwoWayEstimate:
    """An estimate with a 95% interval over other countries and topics; `reason` says why something is None.

    Attributes:
        p_value: two-sided, of a true value of 0, in [0, 1]; None where that is no question, as for an MAE.
        interval: the interval on the scale on which it was computed; None without one.
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
    interval: JackknifeInterval | None = None


@dataclass(frozen=True, slots=True)
class Statistic:
    """A statistic that is a function of sums over cells, so that a resample costs a few sums only.

    Attributes:
        moments: from scores and truth, shape (n,) each, to what is summed over cells, shape (n, k).
        value: from such sums, shape (replicates, k), to the statistic, shape (replicates,), nan where undefined.
    """

    moments: Callable[[Floats, Floats], Floats]
    value: Callable[[Floats], Floats]


def _product_moments(x: Floats, y: Floats) -> Floats:
    """Moments of Pearson's r, shape (n, 6): 1, u, v, u², v² and uv of the standardized columns."""
    u, v = _standardize(x), _standardize(y)
    return np.stack([np.ones_like(u), u, v, u * u, v * v, u * v], axis=1)


def _standardize(values: Floats) -> Floats:
    """Centre and scale, so that differences of two sums lose no digits; 0 for fewer than 3 values or equal ones."""
    if len(values) < 3 or is_constant(values):
        return np.zeros_like(values)
    centred: Floats = values - values.mean()
    scaled: Floats = centred / np.abs(centred).max()
    return scaled


def _correlation(sums: Floats) -> Floats:
    """Pearson's r from sums of `_product_moments`; nan where a side does not vary."""
    n = np.maximum(sums[:, 0], 1.0)
    mean_u, mean_v, uu, vv, uv = sums[:, 1:].T / n
    variance_u, variance_v = uu - mean_u * mean_u, vv - mean_v * mean_v
    defined = (variance_u > 1e-12) & (variance_v > 1e-12)
    r = (uv - mean_u * mean_v) / np.sqrt(np.where(defined, variance_u * variance_v, 1.0))
    return np.where(defined, np.clip(r, -1.0, 1.0), np.nan)


def _mean(sums: Floats) -> Floats:
    """The mean from sums of counts and values; nan where nothing is counted."""
    n = sums[:, 0]
    return np.where(n > 0, sums[:, 1] / np.where(n > 0, n, 1.0), np.nan)


def _with_count(values: Floats) -> Floats:
    """Moments of a mean, shape (n, 2): 1 and the value."""
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
    """A statistic of one model's scores against human scores, with a pigeonhole-bootstrap interval.

    The bootstrap is Owen's (Annals of Applied Statistics 1, 2007). Cells of one country, or of one topic, are
    correlated, so n cells carry less information than n independent ones. Countries and topics are each resampled with
    replacement, and a cell counts as often as its country times its topic was drawn. With many countries and few topics
    the interval is somewhat narrow: nominal 95% intervals for an MAE covered the truth in 89% of runs over 90 x 10, in
    92% over 55 x 19. Reports use `auditor.metrics.jackknife`.

    Args:
        statistic: PEARSON, MAE, RMSE, BIAS or a similar one.
        scores, truth: shape (n,), one value per cell; cells with a nan on either side are left out.
        countries, topics: shape (n,), labels of any kind.
        replicates, seed: of the bootstrap.

    Returns:
        The estimate with its 95% percentile interval; no interval, with a reason, for fewer than 5 countries or topics.

    Raises:
        ValueError: shapes differ, or a value is infinite.
    """
    (x, y), is_complete = complete_cases(scores, truth)
    table = build_two_way_table(countries, topics, is_complete)
    grid = table.to_grid(statistic.moments(x, y))
    return _percentile_interval(
        lambda country_weights, topic_weights: statistic.value(weighted_sums(grid, country_weights, topic_weights)),
        table,
        replicates,
        seed,
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
    """The statistic over one group of countries minus that over the other, with the interval of `crossed_interval`.

    Both groups have the same topics, so topics are resampled once for both; countries are resampled within their group.

    Args:
        group: shape (n,), whether the cell's country is in the first group. The others as for `crossed_interval`.

    Returns:
        first - second; None, with a reason, where either group has no value. `n_countries` counts both groups.

    Raises:
        ValueError: as `crossed_interval`, or a country is in both groups.
    """
    (x, y), is_complete = complete_cases(scores, truth)
    in_first_group = np.asarray(group, dtype=np.bool_)
    if in_first_group.shape != is_complete.shape:
        raise ValueError(f"group must have the shape {is_complete.shape}, but has {in_first_group.shape}")
    table = build_two_way_table(countries, topics, is_complete, (in_first_group, ~in_first_group))
    grid = table.to_grid(statistic.moments(x, y))

    def gap(country_weights: Floats, topic_weights: Floats) -> Floats:
        """The first group's value minus the second's in each resample, shape (replicates,)."""
        first_value, second_value = (
            statistic.value(weighted_sums(grid[members], country_weights[:, members], topic_weights))
            for members in table.strata
        )
        return first_value - second_value

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
    """The statistic of one model minus that of another, over the cells that both have, as `crossed_interval`.

    The p-value inverts the interval: twice the share of resamples on the rarer side of zero, with one added to both
    counts (Davison & Hinkley 1997, Bootstrap Methods, section 4.2), so that it is never zero. Its resolution is limited
    by the number of replicates: m tests need at least 40 m of them for the smallest to survive Holm's correction.

    Args:
        first, second: shape (n,), the scores of the two models. The others as for `crossed_interval`.
    """
    (a, b, y), is_complete = complete_cases(first, second, truth)
    table = build_two_way_table(countries, topics, is_complete)
    first_grid, second_grid = (table.to_grid(statistic.moments(model_scores, y)) for model_scores in (a, b))

    def difference(country_weights: Floats, topic_weights: Floats) -> Floats:
        """The first model's value minus the second's in each resample, shape (replicates,)."""
        return statistic.value(weighted_sums(first_grid, country_weights, topic_weights)) - statistic.value(
            weighted_sums(second_grid, country_weights, topic_weights)
        )

    return _percentile_interval(difference, table, replicates, seed, is_difference=True)


def _percentile_interval(
    compute_statistic: Callable[[Floats, Floats], Floats],
    table: TwoWayTable,
    replicates: int,
    seed: int,
    *,
    is_difference: bool = False,
) -> TwoWayEstimate:
    """The statistic with its 95% percentile interval over resampled countries and topics.

    Args:
        compute_statistic: from weights of countries and topics, shapes (replicates, countries) and (replicates,
            topics), to the statistic, shape (replicates,).
        table: the cells' countries and topics; its strata are the groups of countries that are compared.
        is_difference: also compute the two-sided p-value of the statistic being 0.
    """
    n_cells, n_clusters = len(table.row_index), (table.n_countries, table.n_topics)
    if n_cells == 0:
        return TwoWayEstimate(None, None, None, *n_clusters, n_cells, 0, "no cell has all its values")
    estimate = float(compute_statistic(np.ones((1, n_clusters[0])), np.ones((1, n_clusters[1])))[0])
    if np.isnan(estimate):
        return TwoWayEstimate(None, None, None, *n_clusters, n_cells, 0, "too few cells, or no variation among them")
    if min(*map(len, table.strata), table.n_topics) < MIN_CLUSTERS:
        reason = f"an interval needs {MIN_CLUSTERS} countries{' a group' * (len(table.strata) > 1)} and topics"
        return TwoWayEstimate(estimate, None, None, *n_clusters, n_cells, 0, reason)
    values = compute_statistic(*table.draw_weights(np.random.default_rng(seed), replicates))
    defined = values[~np.isnan(values)]
    if len(defined) < (1 - MAX_UNDEFINED_SHARE) * replicates:
        return TwoWayEstimate(
            estimate, None, None, *n_clusters, n_cells, 0, "too many resamples have no value: no interval"
        )
    low, high = np.quantile(defined, (0.025, 0.975))
    p_value = _bootstrap_p_value(defined) if is_difference else None
    return TwoWayEstimate(estimate, float(low), float(high), *n_clusters, n_cells, len(defined), p_value=p_value)


def _bootstrap_p_value(differences: Floats) -> float:
    """Two-sided p-value of no difference, from resampled differences, in (0, 1]."""
    n_rarer_side = min(int((differences <= 0).sum()), int((differences >= 0).sum()))
    return min(1.0, 2 * (n_rarer_side + 1) / (len(differences) + 1))
