"""The two groups of countries that are furthest apart, and how far that is once the choosing is allowed for."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics._crossed import table_of, weigh
from auditor.metrics._pairs import Floats, complete
from auditor.metrics.bootstrap import MAX_UNDEFINED, MIN_CLUSTERS, Interval, Statistic

LEVEL = 0.95
FEW: str | None = f"an interval needs two groups of {MIN_CLUSTERS} countries, and as many topics"


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


def widest_gap(
    statistic: Statistic,
    scores: ArrayLike,
    truth: ArrayLike,
    countries: ArrayLike,
    topics: ArrayLike,
    groups: ArrayLike,
    *,
    replicates: int = 2000,
    seed: int = 0,
) -> WidestGap:
    """The largest difference of a figure between two of several groups of countries.

    Whoever picks the widest of many gaps picks the luckiest too: an interval for that pair alone would be too sure.
    Here the largest deviation of any pair, in units of its own spread, is bootstrapped (max-t: Westfall & Young 1993,
    Resampling-Based Multiple Testing), so that all pairs' intervals hold together, the widest one's among them.

    Args:
        groups: shape (n,), the label of the cell's group. Groups of fewer than 5 countries are left out where at least
            two larger ones are there; otherwise all are compared, with no interval. The rest as for `crossed_interval`.

    Raises:
        ValueError: as `crossed_interval`, or a country is in two groups.
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
    grid = table.grid(statistic.moments(x[cells[keep]], y[cells[keep]]))

    def values(rows: Floats, columns: Floats) -> Floats:
        return np.stack([statistic.value(weigh(grid[s], rows[:, s], columns)) for s in table.strata], axis=1)

    left_out = tuple(g for g in sizes if g not in compared)
    estimates = values(np.ones((1, table.n_countries)), np.ones((1, table.n_topics)))[0] if compared else np.empty(0)
    known = np.nonzero(~np.isnan(estimates))[0]
    if len(known) < 2:
        nothing = Interval(None, None, None, 0, table.n_topics, 0, 0, "fewer than two groups have a value")
        return WidestGap("", "", nothing, len(known), left_out)
    ends = (int(np.argmin(estimates[known])), int(np.argmax(estimates[known])))
    low, high = (compared[known[end]] for end in ends)
    n_cells = int(np.isin(labels[cells], (low, high)).sum())
    drawn = values(*table.draw(np.random.default_rng(seed), replicates))[:, known]
    gap, half, used, reason = float(np.ptp(estimates[known])), None, 0, FEW
    if len(large) > 1 and table.n_topics >= MIN_CLUSTERS:
        half, used, reason = _half_width(drawn, ends)
    least, most = (None, None) if half is None else (gap - half, gap + half)
    counts = (sizes[low] + sizes[high], table.n_topics, n_cells, used)
    return WidestGap(low, high, Interval(gap, least, most, *counts, reason), len(known), left_out)


def _half_width(drawn: Floats, pair: tuple[int, int]) -> tuple[float | None, int, str | None]:
    """Half the width of a pair's interval that holds together with all others', its resamples, or why there is none."""
    defined = drawn[~np.isnan(drawn).any(axis=1)]
    if len(defined) < (1 - MAX_UNDEFINED) * len(drawn):
        return None, len(defined), "too many resamples have no value: no interval"
    centred = defined - defined.mean(axis=0)
    spread = {
        p: float((centred[:, p[0]] - centred[:, p[1]]).std())
        for p in itertools.combinations(range(centred.shape[1]), 2)
    }
    deviation = np.zeros(len(defined))
    for (i, j), s in spread.items():
        if s > 0:
            deviation = np.maximum(deviation, np.abs(centred[:, i] - centred[:, j]) / s)
    one, other = sorted(pair)
    return float(np.quantile(deviation, LEVEL)) * spread[one, other], len(defined), None
