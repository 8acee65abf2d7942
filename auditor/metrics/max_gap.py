"""The largest gap between groups of countries, with an interval that accounts for the selection of the pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics._complete_cases import Floats, complete_cases
from auditor.metrics._two_way_table import TwoWayTable, build_two_way_table
from auditor.metrics.cell_statistics import PEARSON, Statistic
from auditor.metrics.difference_interval import recover_difference
from auditor.metrics.estimate import Tested
from auditor.metrics.jackknife import statistic_replicates
from auditor.metrics.jackknife_interval import (
    CONSTANT_REASON,
    FISHER_Z,
    IDENTITY,
    MIN_UNITS,
    UNDEFINED_REASON,
    combine_variances,
    jackknife_covariance,
    jackknife_variance,
    pairwise_variances,
)
from auditor.metrics.simultaneous import all_pairs_p_value, critical_values, divide_variance

TOO_FEW_REASON = f"an interval needs two groups of {MIN_UNITS} countries, and as many topics"


@dataclass(frozen=True, slots=True)
class MaxGap(Tested):
    """The largest gap among several groups: high minus low; `n` counts the cells of both.

    Its 95% interval holds simultaneously for all pairs of the compared groups, and so does its p-value of no gap.
    Correlations have no p-value.
    """

    low_group: str = ""
    """The group with the smallest value, or that of the given pair; empty with fewer than two groups."""
    high_group: str = ""
    compared: int = 0
    """Number of groups from which the two were selected."""
    left_out: tuple[str, ...] = ()
    """Groups with too few countries to be compared."""


@dataclass(frozen=True, slots=True)
class _GroupReplicates:
    """The statistic of one group, and its values without each of its countries, each topic, and each of its cells."""

    name: str
    value: float
    by_country: Floats
    by_topic: Floats
    by_cell: Floats


def widest_gap(
    statistic: Statistic,
    scores: ArrayLike,
    truth: ArrayLike,
    countries: ArrayLike,
    topics: ArrayLike,
    groups: ArrayLike,
    *,
    pair: tuple[str, str] | None = None,
) -> MaxGap:
    """The largest difference of a statistic between two of several groups of countries.

    The largest of several gaps is biased upwards, so an interval for that pair alone would be too narrow. Here the
    intervals of all pairs hold simultaneously (`auditor.metrics.simultaneous`), and so does that of the largest gap;
    with many groups that truly differ it is conservative. Groups have topics in common, but countries of their own.
    Correlations are compared on Fisher's z.

    Args:
        groups: shape (n,), the label of the cell's group. Groups of fewer than 5 countries are left out if at least two
            larger ones exist; otherwise all are compared, with no interval. The others as in `crossed_jackknife`.
        pair: the low and the high group, where they were selected by another statistic; the interval holds for all
            pairs nevertheless. None for the groups with the smallest and the largest value.

    Raises:
        ValueError: as `crossed_jackknife`, or a country is in two groups.
    """
    (x, y), is_complete = complete_cases(scores, truth)
    labels = np.asarray(groups, dtype=np.str_)
    if labels.shape != is_complete.shape:
        raise ValueError(f"groups must have the shape {is_complete.shape}, but has {labels.shape}")
    compared, left_out, n_large = _choose_groups(labels[is_complete], np.asarray(countries)[is_complete])
    in_compared_group = is_complete & np.isin(labels, compared)
    table = build_two_way_table(
        countries, topics, in_compared_group, [in_compared_group & (labels == group) for group in compared]
    )
    moments = statistic.moments(x[in_compared_group[is_complete]], y[in_compared_group[is_complete]])
    estimates = _estimate_groups(statistic, table, moments, compared)
    names = [estimate.name for estimate in estimates]
    if len(estimates) < 2 or not set(pair or ()) <= set(names):
        reason = "fewer than two groups have a value"
        return MaxGap(None, 0, reason=reason, compared=len(estimates), left_out=left_out)
    order = sorted(range(len(estimates)), key=lambda i: estimates[i].value)
    low_index, high_index = (order[0], order[-1]) if pair is None else map(names.index, pair)
    has_interval = n_large > 1 and table.n_topics >= MIN_UNITS
    test = _simultaneous_test(statistic, estimates, (high_index, low_index)) if has_interval else TOO_FEW_REASON
    gap = _describe_gap(estimates[low_index], estimates[high_index], test)
    return replace(gap, compared=len(estimates), left_out=left_out)


def _choose_groups(labels: NDArray[np.str_], countries: NDArray[np.generic]) -> tuple[list[str], tuple[str, ...], int]:
    """The groups to compare, those that are left out, and how many have at least 5 countries.

    Args:
        labels, countries: shape (n,), the group and the country of each cell with both scores.
    """
    n_countries = {str(group): len(np.unique(countries[labels == group])) for group in np.unique(labels)}
    large_groups = [group for group, n in n_countries.items() if n >= MIN_UNITS]
    compared = large_groups if len(large_groups) > 1 else list(n_countries)
    return compared, tuple(group for group in n_countries if group not in compared), len(large_groups)


def _describe_gap(low: _GroupReplicates, high: _GroupReplicates, test: _SimultaneousTest | str) -> MaxGap:
    """The gap between two groups, with its interval and p-value or the reason for none."""
    gap, n = high.value - low.value, len(low.by_cell) + len(high.by_cell)
    if isinstance(test, str):
        return MaxGap(gap, n, reason=test, low_group=low.name, high_group=high.name)
    units = ("country", "topic")
    return MaxGap(
        gap, n, test.low, test.high, resampled=units, p_value=test.p_value, low_group=low.name, high_group=high.name
    )


def _estimate_groups(
    statistic: Statistic, table: TwoWayTable, moments: Floats, group_names: Sequence[str]
) -> list[_GroupReplicates]:
    """The statistic and its jackknife replicates for each group in which it is defined.

    Args:
        table: positions of the cells; its strata are the groups, in the order of `group_names`.
        moments: shape (n, k), of the cells (see `Statistic.moments`).
    """
    grid, estimates = table.to_grid(moments), []
    for name, members in zip(group_names, table.strata, strict=False):  # without groups there is one empty stratum
        in_group = np.isin(table.row_index, members)
        group_table = TwoWayTable(
            np.searchsorted(members, table.row_index[in_group]), table.column_index[in_group],
            (np.arange(len(members)),), table.n_topics,
        )  # fmt: skip
        value, replicates = statistic_replicates(statistic.value, grid[members], group_table)
        if not np.isnan(value):
            estimates.append(
                _GroupReplicates(name, value, *(replicates[unit][0] for unit in ("country", "topic", "cell")))
            )
    return estimates


class _SimultaneousTest(NamedTuple):
    """Ends of an interval, and the p-value of no gap, that hold simultaneously for all pairs."""

    low: float
    high: float
    p_value: float | None


def _simultaneous_test(
    statistic: Statistic, groups: Sequence[_GroupReplicates], pair: tuple[int, int]
) -> _SimultaneousTest | str:
    """Interval and p-value of the gap of one pair that hold simultaneously for all pairs, or the reason for none.

    Args:
        groups: all groups from which the pair was selected.
        pair: positions in `groups` of the group with the higher value and of that with the lower value.
    """
    transform = FISHER_Z if statistic is PEARSON else IDENTITY
    with np.errstate(divide="ignore", invalid="ignore"):
        values = transform.forward(np.array([group.value for group in groups]))
        by_topic = transform.forward(np.stack([group.by_topic for group in groups]))
        by_country, by_cell = (
            [transform.forward(replicates) for replicates in replicates_by_group]
            for replicates_by_group in ([group.by_country for group in groups], [group.by_cell for group in groups])
        )
    if not all(np.isfinite(figures).all() for figures in (values, by_topic, *by_country, *by_cell)):
        return UNDEFINED_REASON
    # Groups have topics in common, but neither countries nor cells.
    topic_covariances = jackknife_covariance(by_topic)
    country_variances, cell_variances = (
        np.array([jackknife_variance([replicates]) for replicates in replicates_by_group])
        for replicates_by_group in (by_country, by_cell)
    )
    variances = combine_variances([country_variances, np.diag(topic_covariances)], cell_variances)
    high, low = pair
    variance = float(
        combine_variances(
            [country_variances[high] + country_variances[low], pairwise_variances(topic_covariances)[pair]],
            cell_variances[high] + cell_variances[low],
        )
    )
    if variance <= 1e-24:
        return CONSTANT_REASON
    n_units = (tuple(map(len, by_country)), (by_topic.shape[1],))
    kinds = divide_variance([np.diag(country_variances), topic_covariances], n_units)
    gap = (values[high], values[low])
    std_errors = (variances[high] ** 0.5, variances[low] ** 0.5)
    covariance = (variances[high] + variances[low] - variance) / 2
    critical = critical_values(len(groups), kinds).all_pairs
    ends = recover_difference(transform, *gap, std_errors, covariance, critical)
    gap_low, gap_high = map(float, ends)
    if transform is not IDENTITY or gap_low == gap_high:
        return _SimultaneousTest(gap_low, gap_high, None)
    n_std_errors = float(gap[0] - gap[1]) / ((gap_high - gap_low) / 2) * critical
    return _SimultaneousTest(gap_low, gap_high, all_pairs_p_value(n_std_errors, len(groups), kinds))
