"""The largest gap between groups of countries, with an interval that accounts for the selection of the pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics._complete_cases import Floats, complete_cases
from auditor.metrics._jackknife_replicates import JackknifeReplicates, jackknife_covariance, jackknife_replicates
from auditor.metrics._two_way_table import TwoWayTable, build_two_way_table
from auditor.metrics.bootstrap import MIN_CLUSTERS, PEARSON, Statistic, TwoWayEstimate
from auditor.metrics.jackknife import correlation_difference_transform
from auditor.metrics.jackknife_interval import FISHER_Z, IDENTITY, combine_variances

CONFIDENCE_LEVEL = 0.95
N_DRAWS = 5_000
"""Number of draws from which the quantile for a simultaneous interval is computed."""
TOO_FEW_REASON = f"an interval needs two groups of {MIN_CLUSTERS} countries, and as many topics"


@dataclass(frozen=True, slots=True)
class MaxGapEstimate:
    """The largest gap among several groups.

    Attributes:
        low_group, high_group: the groups with the smallest and the largest value, or the given pair; empty with fewer
            than two groups.
        interval: high minus low; its 95% interval holds simultaneously for all pairs of the compared groups.
        compared: number of groups from which the two were selected.
        left_out: groups with too few countries to be compared.
    """

    low_group: str
    high_group: str
    interval: TwoWayEstimate
    compared: int
    left_out: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _GroupEstimate:
    """The statistic of one group, and on the transformed scale its value and its jackknife replicates."""

    name: str
    n_countries: int
    n_cells: int
    value: float
    transformed_value: float
    replicates: JackknifeReplicates


def widest_gap(
    statistic: Statistic,
    scores: ArrayLike,
    truth: ArrayLike,
    countries: ArrayLike,
    topics: ArrayLike,
    groups: ArrayLike,
    *,
    pair: tuple[str, str] | None = None,
    seed: int = 0,
) -> MaxGapEstimate:
    """The largest difference of a statistic between two of several groups of countries.

    The largest of several gaps is biased upwards, so an interval for that pair alone would be too narrow. The
    half-width used here is the 95% quantile of the range of all groups' estimates if no group truly differs (Tukey's
    method, The Collected Works VIII, 1994), drawn from the multivariate Student distribution with the jackknife
    covariances of the groups. The intervals of all pairs therefore hold simultaneously, including the largest gap's;
    with many groups that truly differ, the interval of the selected pair is conservative. Correlations are compared on
    Fisher's z.

    Args:
        groups: shape (n,), the label of the cell's group. Groups of fewer than 5 countries are left out if at least two
            larger ones exist; otherwise all are compared, with no interval. The others as in `crossed_jackknife`.
        pair: the two groups to compare, low and high, where they were selected by another statistic; the interval holds
            for all pairs nevertheless. None for those with the smallest and the largest value.
        seed: of the draws.

    Raises:
        ValueError: as `crossed_jackknife`, or a country is in two groups.
    """
    (x, y), is_complete = complete_cases(scores, truth)
    labels = np.asarray(groups, dtype=np.str_)
    if labels.shape != is_complete.shape:
        raise ValueError(f"groups must have the shape {is_complete.shape}, but has {labels.shape}")
    n_countries_by_group = {
        str(group): len(np.unique(np.asarray(countries)[is_complete & (labels == group)]))
        for group in np.unique(labels[is_complete])
    }
    large_groups = [group for group, n in n_countries_by_group.items() if n >= MIN_CLUSTERS]
    compared = large_groups if len(large_groups) > 1 else list(n_countries_by_group)
    in_compared_group = is_complete & np.isin(labels, compared)
    table = build_two_way_table(
        countries, topics, in_compared_group, [in_compared_group & (labels == group) for group in compared]
    )
    moments = statistic.moments(x[in_compared_group[is_complete]], y[in_compared_group[is_complete]])
    left_out = tuple(group for group in n_countries_by_group if group not in compared)
    estimates = _estimate_groups(statistic, table, moments, compared)
    names = [estimate.name for estimate in estimates]
    if len(estimates) < 2 or not set(pair or ()) <= set(names):
        undefined = TwoWayEstimate(None, None, None, 0, table.n_topics, 0, 0, "fewer than two groups have a value")
        return MaxGapEstimate("", "", undefined, len(estimates), left_out)
    order = sorted(range(len(estimates)), key=lambda i: estimates[i].value)
    positions = (order[0], order[-1]) if pair is None else (names.index(pair[0]), names.index(pair[1]))
    interval = (
        _simultaneous_interval(statistic, estimates, positions, table.n_topics, seed)
        if len(large_groups) > 1
        else _gap_estimate(estimates, positions, table.n_topics)
    )
    return MaxGapEstimate(names[positions[0]], names[positions[1]], interval, len(estimates), left_out)


def _estimate_groups(
    statistic: Statistic, table: TwoWayTable, moments: Floats, group_names: Sequence[str]
) -> list[_GroupEstimate]:
    """The statistic and its jackknife replicates for each group in which it is defined.

    Args:
        table: positions of the cells; its strata are the groups, in the order of `group_names`.
        moments: shape (n, k), of the cells (see `Statistic.moments`).
    """
    grid, estimates = table.to_grid(moments), []
    transform = FISHER_Z if statistic is PEARSON else IDENTITY
    for name, members in zip(group_names, table.strata, strict=False):  # without groups there is one empty stratum
        in_group = np.isin(table.row_index, members)
        group_grid, group_cells = grid[members], grid[table.row_index[in_group], table.column_index[in_group]]
        value = statistic.value(group_grid.sum((0, 1))[None])
        with np.errstate(divide="ignore"):
            transformed_value = float(transform.forward(value)[0])
        replicates = jackknife_replicates(
            lambda sums: transform.forward(statistic.value(sums)), group_grid, group_cells
        )
        if not np.isnan(value[0]):
            estimates.append(
                _GroupEstimate(name, len(members), len(group_cells), float(value[0]), transformed_value, replicates)
            )
    return estimates


def _gap_estimate(
    groups: Sequence[_GroupEstimate],
    pair: tuple[int, int],
    n_topics: int,
    ends: tuple[float, float] | None = None,
    reason: str | None = TOO_FEW_REASON,
) -> TwoWayEstimate:
    """The gap between a pair of groups, with an interval if its ends are given.

    Args:
        pair: positions in `groups` of the group with the lower value and of that with the higher value.
        ends: of the interval; None for no interval, which needs a `reason`.
    """
    low_group, high_group = (groups[i] for i in pair)
    counts = (low_group.n_countries + high_group.n_countries, n_topics, low_group.n_cells + high_group.n_cells)
    gap = high_group.value - low_group.value
    return TwoWayEstimate(gap, *(ends or (None, None)), *counts, N_DRAWS if ends else 0, reason)


def _simultaneous_interval(
    statistic: Statistic, groups: Sequence[_GroupEstimate], pair: tuple[int, int], n_topics: int, seed: int
) -> TwoWayEstimate:
    """The gap of a pair with an interval that holds simultaneously for all pairs, or the reason for none.

    Args:
        groups: all groups from which the pair was selected.
        pair: positions in `groups` of the group with the lower value and of that with the higher value.
        seed: of the simulation that gives the half-width.
    """
    if n_topics < MIN_CLUSTERS:
        return _gap_estimate(groups, pair, n_topics)
    if not all(group.replicates.is_finite for group in groups):
        return _gap_estimate(groups, pair, n_topics, reason="leaving a country or topic out leaves no value")
    country_variances, cell_variances = (
        np.array([jackknife_covariance(replicates[None])[0, 0] for replicates in replicates_by_group])
        for replicates_by_group in (
            [group.replicates.by_country for group in groups],
            [group.replicates.by_cell for group in groups],
        )
    )
    topic_covariances = jackknife_covariance([group.replicates.by_topic for group in groups])
    # Groups have topics in common, but neither countries nor cells.
    covariances = topic_covariances + np.diag(
        combine_variances([country_variances, np.diag(topic_covariances)], cell_variances) - np.diag(topic_covariances)
    )
    df = min(sum(group.n_countries for group in groups) - len(groups), n_topics - 1)
    half_width = _studentized_range(covariances, df, seed)
    if half_width <= 1e-12:
        return _gap_estimate(groups, pair, n_topics, reason="it is the same whatever is left out: no interval")
    low_group, high_group = (groups[i] for i in pair)
    transform = IDENTITY
    if statistic is PEARSON:
        transform = correlation_difference_transform(high_group.value, low_group.value)
    gap = high_group.transformed_value - low_group.transformed_value
    low, high = (float(end) for end in transform.inverse(np.array([gap - half_width, gap + half_width])))
    return _gap_estimate(groups, pair, n_topics, (low, high), None)


def _studentized_range(covariances: Floats, df: int, seed: int) -> float:
    """95% quantile of the range of several estimates that have no true difference, by simulation.

    Args:
        covariances: of the estimates, shape (m, m).
        df: degrees of freedom.
    """
    rng = np.random.default_rng(seed)
    eigenvalues, eigenvectors = np.linalg.eigh(covariances)
    normal_draws = rng.standard_normal((N_DRAWS, len(eigenvalues))) * np.sqrt(np.maximum(eigenvalues, 0.0))
    # Normal draws with these covariances, divided by the root of a chi-square draw over df: multivariate Student.
    student_draws = (normal_draws @ eigenvectors.T) / np.sqrt(rng.chisquare(df, (N_DRAWS, 1)) / df)
    return float(np.quantile(np.ptp(student_draws, axis=1), CONFIDENCE_LEVEL))
