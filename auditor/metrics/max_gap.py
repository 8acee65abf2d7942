"""The two groups of countries that are furthest apart, and how far that is once the choosing is allowed for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics._complete_cases import Floats, complete_cases
from auditor.metrics._jackknife_replicates import (
    JackknifeReplicates,
    jackknife_covariance,
    jackknife_replicates,
    two_way_variance,
)
from auditor.metrics._two_way_table import TwoWayTable, build_two_way_table
from auditor.metrics.bootstrap import MIN_CLUSTERS, Statistic, TwoWayEstimate

CONFIDENCE_LEVEL = 0.95
N_DRAWS = 5_000
TOO_FEW_REASON = f"an interval needs two groups of {MIN_CLUSTERS} countries, and as many topics"


@dataclass(frozen=True, slots=True)
class MaxGapEstimate:
    """The widest gap among several groups.

    Attributes:
        low_group, high_group: the groups with the smallest and the largest figure; empty where there are not two.
        interval: high less low; its 95% interval holds for all pairs of the compared groups at once.
        compared: groups that the two were picked from.
        left_out: groups with too few countries to be compared.
    """

    low_group: str
    high_group: str
    interval: TwoWayEstimate
    compared: int
    left_out: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _GroupEstimate:
    """One group's figure, and the same with parts left out."""

    name: str
    n_countries: int
    n_cells: int
    value: float
    replicates: JackknifeReplicates


def widest_gap(
    statistic: Statistic,
    scores: ArrayLike,
    truth: ArrayLike,
    countries: ArrayLike,
    topics: ArrayLike,
    groups: ArrayLike,
    *,
    seed: int = 0,
) -> MaxGapEstimate:
    """The largest difference of a figure between two of several groups of countries.

    Whoever picks the widest of many gaps picks the luckiest too: an interval for that pair alone would be too sure.
    The half-width here is what the range of all groups' figures stays below in 95 of 100 draws where none truly differs
    (Tukey's method, The Collected Works VIII, 1994), drawn from the multivariate Student distribution that the
    jackknife's covariances of the groups describe. So all pairs' intervals hold together, the widest one's among them;
    of many groups that truly differ, the pair that was picked has more than it needs.

    Args:
        groups: shape (n,), the label of the cell's group. Groups of fewer than 5 countries are left out where at least
            two larger ones are there; otherwise all are compared, with no interval. The rest as in `crossed_jackknife`.
        seed: of the draws.

    Raises:
        ValueError: as `crossed_jackknife`, or a country is in two groups.
    """
    (x, y), keep = complete_cases(scores, truth)
    labels = np.asarray(groups, dtype=np.str_)
    if labels.shape != keep.shape:
        raise ValueError(f"groups must have the shape {keep.shape}, but has {labels.shape}")
    sizes = {str(g): len(np.unique(np.asarray(countries)[keep & (labels == g)])) for g in np.unique(labels[keep])}
    large = [g for g, n in sizes.items() if n >= MIN_CLUSTERS]
    compared = large if len(large) > 1 else list(sizes)
    cells = keep & np.isin(labels, compared)
    table = build_two_way_table(countries, topics, cells, [cells & (labels == g) for g in compared])
    moments = statistic.moments(x[cells[keep]], y[cells[keep]])
    rest = tuple(g for g in sizes if g not in compared)
    found = _estimate_groups(statistic, table, moments, compared)
    if len(found) < 2:
        nothing = TwoWayEstimate(None, None, None, 0, table.n_topics, 0, 0, "fewer than two groups have a value")
        return MaxGapEstimate("", "", nothing, len(found), rest)
    order = sorted(range(len(found)), key=lambda i: found[i].value)
    pair = (order[0], order[-1])
    interval = (
        _simultaneous_interval(found, pair, table.n_topics, seed)
        if len(large) > 1
        else _gap_estimate(found, pair, table.n_topics)
    )
    return MaxGapEstimate(found[pair[0]].name, found[pair[1]].name, interval, len(found), rest)


def _estimate_groups(
    statistic: Statistic, table: TwoWayTable, moments: Floats, group_names: Sequence[str]
) -> list[_GroupEstimate]:
    grid, found = table.to_grid(moments), []
    for name, members in zip(group_names, table.strata, strict=False):  # without any name there is one empty stratum
        inside = np.isin(table.row_index, members)
        part, cells = grid[members], grid[table.row_index[inside], table.column_index[inside]]
        value = float(statistic.value(part.sum((0, 1))[None])[0])
        without = jackknife_replicates(statistic.value, part, cells)
        if not np.isnan(value):
            found.append(_GroupEstimate(name, len(members), len(cells), value, without))
    return found


def _gap_estimate(
    groups: Sequence[_GroupEstimate],
    pair: tuple[int, int],
    n_topics: int,
    half_width: float | None = None,
    reason: str | None = TOO_FEW_REASON,
) -> TwoWayEstimate:
    low, high = (groups[i] for i in pair)
    gap, used = high.value - low.value, 0 if half_width is None else N_DRAWS
    least, most = (None, None) if half_width is None else (gap - half_width, gap + half_width)
    counts = (low.n_countries + high.n_countries, n_topics, low.n_cells + high.n_cells)
    return TwoWayEstimate(gap, least, most, *counts, used, reason)


def _simultaneous_interval(
    groups: Sequence[_GroupEstimate], pair: tuple[int, int], n_topics: int, seed: int
) -> TwoWayEstimate:
    """A pair's interval that holds together with all others', or why there is none."""
    if n_topics < MIN_CLUSTERS:
        return _gap_estimate(groups, pair, n_topics)
    if not all(g.replicates.is_finite for g in groups):
        return _gap_estimate(groups, pair, n_topics, reason="leaving a country or topic out leaves no value")
    country, cell = (
        np.array([jackknife_covariance(part[None])[0, 0] for part in parts])
        for parts in ([g.replicates.by_country for g in groups], [g.replicates.by_cell for g in groups])
    )
    topic = jackknife_covariance([g.replicates.by_topic for g in groups])
    # Groups have topics in common, but neither countries nor cells.
    covariances = topic + np.diag(two_way_variance(country, np.diag(topic), cell) - np.diag(topic))
    freedom = min(sum(g.n_countries for g in groups) - len(groups), n_topics - 1)
    half = _studentized_range(covariances, freedom, seed)
    if half <= 1e-12:
        return _gap_estimate(groups, pair, n_topics, reason="it is the same whatever is left out: no interval")
    return _gap_estimate(groups, pair, n_topics, half, None)


def _studentized_range(covariances: Floats, df: int, seed: int) -> float:
    """What the largest less the smallest of some figures without a true difference stays below in 95 of 100 draws."""
    rng = np.random.default_rng(seed)
    values, vectors = np.linalg.eigh(covariances)
    normal = rng.standard_normal((N_DRAWS, len(values))) * np.sqrt(np.maximum(values, 0.0))
    drawn = (normal @ vectors.T) / np.sqrt(rng.chisquare(df, (N_DRAWS, 1)) / df)
    return float(np.quantile(np.ptp(drawn, axis=1), CONFIDENCE_LEVEL))
