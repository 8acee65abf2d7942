"""The two groups of countries that are furthest apart, and how far that is once the choosing is allowed for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics._complete_cases import Floats, complete
from auditor.metrics._jackknife_replicates import LeftOut, crossed, left_out, scatter
from auditor.metrics._two_way_table import Table, table_of
from auditor.metrics.bootstrap import MIN_CLUSTERS, Interval, Statistic

LEVEL = 0.95
DRAWS = 5_000
FEW = f"an interval needs two groups of {MIN_CLUSTERS} countries, and as many topics"


@dataclass(frozen=True, slots=True)
class WidestGap:
    """The widest gap among several groups.

    Attributes:
        low_group, high_group: the groups with the smallest and the largest figure; empty where there are not two.
        interval: high less low; its 95% interval holds for all pairs of the compared groups at once.
        compared: groups that the two were picked from.
        left_out: groups with too few countries to be compared.
    """

    low_group: str
    high_group: str
    interval: Interval
    compared: int
    left_out: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Group:
    """One group's figure, and the same with parts left out."""

    name: str
    countries: int
    cells: int
    value: float
    without: LeftOut


def widest_gap(
    statistic: Statistic,
    scores: ArrayLike,
    truth: ArrayLike,
    countries: ArrayLike,
    topics: ArrayLike,
    groups: ArrayLike,
    *,
    seed: int = 0,
) -> WidestGap:
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
    (x, y), keep = complete(scores, truth)
    labels = np.asarray(groups, dtype=np.str_)
    if labels.shape != keep.shape:
        raise ValueError(f"groups must have the shape {keep.shape}, but has {labels.shape}")
    sizes = {str(g): len(np.unique(np.asarray(countries)[keep & (labels == g)])) for g in np.unique(labels[keep])}
    large = [g for g, n in sizes.items() if n >= MIN_CLUSTERS]
    compared = large if len(large) > 1 else list(sizes)
    cells = keep & np.isin(labels, compared)
    table = table_of(countries, topics, cells, [cells & (labels == g) for g in compared])
    moments = statistic.moments(x[cells[keep]], y[cells[keep]])
    rest = tuple(g for g in sizes if g not in compared)
    found = _groups(statistic, table, moments, compared)
    if len(found) < 2:
        nothing = Interval(None, None, None, 0, table.n_topics, 0, 0, "fewer than two groups have a value")
        return WidestGap("", "", nothing, len(found), rest)
    order = sorted(range(len(found)), key=lambda i: found[i].value)
    pair = (order[0], order[-1])
    interval = _interval(found, pair, table.n_topics, seed) if len(large) > 1 else _apart(found, pair, table.n_topics)
    return WidestGap(found[pair[0]].name, found[pair[1]].name, interval, len(found), rest)


def _groups(statistic: Statistic, table: Table, moments: Floats, names: Sequence[str]) -> list[_Group]:
    grid, found = table.grid(moments), []
    for name, members in zip(names, table.strata, strict=False):  # without any name there is one empty stratum
        inside = np.isin(table.row, members)
        part, cells = grid[members], grid[table.row[inside], table.column[inside]]
        value = float(statistic.value(part.sum((0, 1))[None])[0])
        without = left_out(statistic.value, part, cells)
        if not np.isnan(value):
            found.append(_Group(name, len(members), len(cells), value, without))
    return found


def _apart(
    groups: Sequence[_Group],
    pair: tuple[int, int],
    topics: int,
    half: float | None = None,
    reason: str | None = FEW,
) -> Interval:
    low, high = (groups[i] for i in pair)
    gap, used = high.value - low.value, 0 if half is None else DRAWS
    least, most = (None, None) if half is None else (gap - half, gap + half)
    counts = (low.countries + high.countries, topics, low.cells + high.cells)
    return Interval(gap, least, most, *counts, used, reason)


def _interval(groups: Sequence[_Group], pair: tuple[int, int], topics: int, seed: int) -> Interval:
    """A pair's interval that holds together with all others', or why there is none."""
    if topics < MIN_CLUSTERS:
        return _apart(groups, pair, topics)
    if not all(g.without.is_finite for g in groups):
        return _apart(groups, pair, topics, reason="leaving a country or topic out leaves no value")
    country, cell = (
        np.array([scatter(part[None])[0, 0] for part in parts])
        for parts in ([g.without.country for g in groups], [g.without.cell for g in groups])
    )
    topic = scatter([g.without.topic for g in groups])
    # Groups have topics in common, but neither countries nor cells.
    covariances = topic + np.diag(crossed(country, np.diag(topic), cell) - np.diag(topic))
    freedom = min(sum(g.countries for g in groups) - len(groups), topics - 1)
    half = _range(covariances, freedom, seed)
    if half <= 1e-12:
        return _apart(groups, pair, topics, reason="it is the same whatever is left out: no interval")
    return _apart(groups, pair, topics, half, None)


def _range(covariances: Floats, freedom: int, seed: int) -> float:
    """What the largest less the smallest of some figures without a true difference stays below in 95 of 100 draws."""
    rng = np.random.default_rng(seed)
    values, vectors = np.linalg.eigh(covariances)
    normal = rng.standard_normal((DRAWS, len(values))) * np.sqrt(np.maximum(values, 0.0))
    drawn = (normal @ vectors.T) / np.sqrt(rng.chisquare(freedom, (DRAWS, 1)) / freedom)
    return float(np.quantile(np.ptp(drawn, axis=1), LEVEL))
