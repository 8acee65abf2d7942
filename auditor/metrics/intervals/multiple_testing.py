"""Several tests or comparisons at once: adjusted p-values, critical values, and the largest of several gaps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics.intervals.estimate import CONFIDENCE_LEVEL, Floats, Tested, bonferroni_level, complete_cases
from auditor.metrics.intervals.jackknife_interval import (
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
from auditor.metrics.intervals.paired import recover_difference
from auditor.metrics.intervals.special_functions import stdtr, stdtrit
from auditor.metrics.intervals.two_way import TwoWayTable, build_two_way_table, statistic_replicates
from auditor.metrics.people.alignment import PEARSON, Statistic

AnyTested = TypeVar("AnyTested", bound=Tested)


def holm(p_values: ArrayLike, weights: ArrayLike | None = None) -> Floats:
    """P-values adjusted for multiple testing (Holm, Scandinavian J. of Statistics 6, 1979).

    The adjustment controls the probability of any false finding, however the tests depend on each other.

    Args:
        p_values: shape (m,), in [0, 1]; nan where there was no test, which is not counted.
        weights: shape (m,), above 0, fixed whatever the p-values are: tests with a larger one need a smaller effect
            (section 4 of the paper). Equal ones without it.

    Returns:
        Shape (m,), each at least as large as before; nan stays nan.

    Raises:
        ValueError: not one-dimensional, or a value outside [0, 1]; a weight that is not above 0, or too few weights.
    """
    p, order = _sort_tests(p_values)
    shares = np.ones_like(p) if weights is None else np.asarray(weights, dtype=np.float64)
    if shares.shape != p.shape or not np.all(shares > 0):
        raise ValueError("weights must be above 0, one for each p-value")
    order = order[np.argsort(p[order] / shares[order], kind="stable")]
    adjusted = np.full_like(p, np.nan)
    remaining = np.cumsum(shares[order][::-1])[::-1]
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] / shares[order] * remaining), 1.0)
    return adjusted


def intersection_union(p_values: ArrayLike) -> float:
    """P-value of a claim that several comparisons must all support (Berger, Technometrics 24, 1982, 295-300).

    The claim is at the 5% level if each comparison is: the largest p-value needs no adjustment for their number.

    Args:
        p_values: shape (m,), in [0, 1], each of one comparison.

    Returns:
        The largest p-value; nan where one is nan, or there is none.

    Raises:
        ValueError: not one-dimensional, or a value outside [0, 1].
    """
    p, _ = _sort_tests(p_values)
    return float(p.max()) if len(p) and not np.isnan(p).any() else float("nan")


def adjust_tests(tests: Iterable[AnyTested], family: str, weights: Sequence[float] | None = None) -> list[AnyTested]:
    """Copy the tests with p-values adjusted for all of them (Holm): any false finding has a probability of 5%.

    Estimates without a p-value are not counted, and have no adjusted one. The weights are those of `holm`.
    """
    members = list(tests)
    adjusted = holm([np.nan if test.p_value is None else test.p_value for test in members], weights)
    return [
        replace(test, adjusted_p_value=None if np.isnan(p_value) else float(p_value), test_family=family)
        for test, p_value in zip(members, adjusted, strict=True)
    ]


def benjamini_yekutieli(p_values: ArrayLike) -> Floats:
    """P-values adjusted for multiple testing (Benjamini & Yekutieli, Annals of Statistics 29, 2001, theorem 1.3).

    The adjustment controls the expected share of false findings among all, however the tests depend on each other.

    Args, Returns, Raises: as for `holm`.
    """
    p, order = _sort_tests(p_values)
    adjusted = np.full_like(p, np.nan)
    ranks = np.arange(1, len(order) + 1)
    scaled = p[order] * len(order) * (1 / ranks).sum() / ranks
    adjusted[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    return adjusted


def _sort_tests(p_values: ArrayLike) -> tuple[Floats, NDArray[np.intp]]:
    """Check p-values; return them, and the positions of those that are not nan, from the smallest to the largest."""
    p = np.asarray(p_values, dtype=np.float64)
    if p.ndim != 1 or np.any((p < 0) | (p > 1)):
        raise ValueError("p-values must be one-dimensional and in [0, 1]")
    tested = np.nonzero(~np.isnan(p))[0]
    return p, tested[np.argsort(p[tested], kind="stable")]


N_DRAWS = 5_000
CHUNK_SIZE = 250
"""Draws that are held in memory at once."""
MIN_SHARE = 0.8
"""Smallest share of the variance that is ascribed to the kind with the fewest units.

Pairs differ in how their variance is divided; this is the share for the pairs whose standard errors are least certain.
"""
SHARE_STEP = 0.05
"""Shares are rounded up to multiples, so that few simulations are needed."""


@dataclass(frozen=True, slots=True)
class CriticalValues:
    """Numbers of standard errors for 95% intervals that hold simultaneously.

    Attributes:
        all_pairs: for all differences between two series.
        with_one: for the differences of one series from all others (Dunnett's problem).
    """

    all_pairs: float
    with_one: float


@dataclass(frozen=True, slots=True)
class UnitKind:
    """A source of variance of several series: the units of one kind, such as countries.

    Attributes:
        n_units: of each series where each has units of its own (groups of countries); else one number for all.
        share: share of the variance between series.
    """

    n_units: tuple[int, ...]
    share: float


def critical_values(n_series: int, kinds: Sequence[UnitKind], n_comparisons: int = 1) -> CriticalValues:
    """Critical values for the differences between several series, by simulation.

    Student's quantile with one degree of freedom less than the fewest units is a lower limit; it is exact for two
    series with units in common.

    Args:
        n_series: number of models or groups, at least 2.
        kinds: the sources of variance, such as countries and topics; see `divide_variance`.
        n_comparisons: such sets of differences for which the intervals hold together (Bonferroni).
    """
    fewest = min(min(kind.n_units) for kind in kinds)
    level = bonferroni_level(n_comparisons)
    student = float(stdtrit(fewest - 1, (1 + level) / 2))
    if n_series == 2 and all(len(kind.n_units) == 1 for kind in kinds):
        return CriticalValues(student, student)
    simulated = _simulate(n_series, tuple((kind.n_units, kind.share) for kind in kinds), level)
    return CriticalValues(max(student, float(np.quantile(simulated.largest, level))), max(student, simulated.with_one))


def all_pairs_p_value(statistic: float, n_series: int, kinds: Sequence[UnitKind]) -> float:
    """Two-sided p-value of no difference between any two series, for one difference in standard errors.

    It is below 0.05 where the difference exceeds the critical value for all pairs, and at least 1 / `N_DRAWS`.

    Args:
        statistic: the difference, which may be the largest one. The others as for `critical_values`.
    """
    fewest = min(min(kind.n_units) for kind in kinds)
    student = float(2 * stdtr(fewest - 1, -abs(statistic)))
    if n_series == 2 and all(len(kind.n_units) == 1 for kind in kinds):
        return student
    largest = _simulate(n_series, tuple((kind.n_units, kind.share) for kind in kinds)).largest
    share_below = float(np.interp(abs(statistic), largest, np.linspace(0.0, 1.0, len(largest))))
    return max(student, 1 - share_below, 1 / N_DRAWS)


def divide_variance(covariances: Sequence[Floats], n_units: Sequence[tuple[int, ...]]) -> list[UnitKind]:
    """Divide the variance between series among two kinds of units.

    Args:
        covariances: of the series, over the units of each kind, shape (series, series) each.
        n_units: see `UnitKind`.

    Returns:
        The kinds with shares that add up to 1; that of the kind with the fewest units is at least `MIN_SHARE`.
    """
    # The variance between series: what is common to all cancels in differences.
    variances = [float(np.trace(covariance) - covariance.mean() * len(covariance)) for covariance in covariances]
    smaller = 0 if min(n_units[0]) <= min(n_units[1]) else 1
    total = sum(variances)
    share = max(MIN_SHARE, variances[smaller] / total if total > 0 else 1.0)
    share = min(1.0, ceil(share / SHARE_STEP - 1e-9) * SHARE_STEP)
    return [UnitKind(n, share if kind == smaller else 1 - share) for kind, n in enumerate(n_units)]


class _Simulation(NamedTuple):
    """Studentized differences of equal series.

    Attributes:
        largest: shape (N_DRAWS,), sorted, the largest between two series in each draw.
        with_one: quantile of the largest of one series from the others, at the confidence level.
    """

    largest: Floats
    with_one: float


@lru_cache(maxsize=512)
def _simulate(
    n_series: int, kinds: tuple[tuple[tuple[int, ...], float], ...], level: float = CONFIDENCE_LEVEL
) -> _Simulation:
    """Simulate equal series."""
    rng = np.random.default_rng(0)
    largest = np.concatenate(
        [_draw_largest_differences(rng, n_series, kinds) for _ in range(0, N_DRAWS, CHUNK_SIZE)], axis=0
    )
    return _Simulation(np.sort(largest.max(axis=1)), float(np.quantile(largest, level)))


def _draw_largest_differences(
    rng: np.random.Generator, n_series: int, kinds: Sequence[tuple[tuple[int, ...], float]]
) -> Floats:
    """The largest studentized difference of each series from any other, shape (CHUNK_SIZE, series)."""
    covariances = np.zeros((CHUNK_SIZE, n_series, n_series))
    diagonal = np.arange(n_series)
    for n_units, share in kinds:
        if share <= 0:
            continue
        if len(n_units) == 1:  # units in common: the series' covariance is estimated too
            effects = rng.standard_normal((CHUNK_SIZE, n_series, n_units[0] - 1))
            covariances += share / (n_units[0] - 1) * (effects @ effects.transpose(0, 2, 1))
        else:
            df = np.array(n_units) - 1
            covariances[:, diagonal, diagonal] += share * rng.chisquare(df, (CHUNK_SIZE, n_series)) / df
    variances = covariances[:, diagonal, diagonal]
    of_differences = variances[:, :, None] + variances[:, None, :] - 2 * covariances
    of_differences[:, diagonal, diagonal] = np.inf
    estimates = rng.standard_normal((CHUNK_SIZE, n_series))
    distances = np.abs(estimates[:, :, None] - estimates[:, None, :])
    largest: Floats = (distances / np.sqrt(of_differences)).max(axis=2)
    return largest


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
    intervals of all pairs hold simultaneously, and so does that of the largest gap;
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
