"""The interval of a share over the items of a few item sets, which covers other items, but not other sets.

A case, such as a pair, is about several items, and cases with a common item are correlated. So each item is left out in
turn with all its cases: the jackknife of a graph's nodes, which is conservative (Lin, Lunde & Sarkar, ICML 2020). As in
`auditor.metrics.averaging`, the interval is Clopper & Pearson's at the number of independent cases with this variance.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from auditor.metrics._unit_counts import clopper_pearson, few_units_factor
from auditor.metrics.averaging import Averaging
from auditor.metrics.case_counts import CaseCounts
from auditor.metrics.estimate import Estimate
from auditor.metrics.jackknife_interval import jackknife_covariance, too_few_reason

Floats = NDArray[np.float64]


def share_over_items(counts: Sequence[CaseCounts], names: Sequence[str], averaged: Averaging) -> Estimate:
    """Estimate a share with an interval over other items of the same sets; `n` counts cases.

    Args:
        counts: one entry per set and wording, each with decided cases.
        names: the set of each entry; an item is left out of all wordings of its set at once.
        averaged: over the sets, or pooled.
    """
    tables = [entry.by_item for entry in counts if entry.by_item is not None]
    groups = [[i for i, name in enumerate(names) if name == group] for group in dict.fromkeys(names)]
    hits, totals = np.array([entry.hits for entry in counts]), np.array([float(entry.n) for entry in counts])
    value, n = _average(hits, totals, groups, averaged), sum(entry.n for entry in counts)
    if len(tables) < len(counts):
        return Estimate(value, n, reason="no interval over other items, since questions are repeated")
    n_items = [len(tables[group[0]]) for group in groups]
    reason = too_few_reason({"item": n_items})
    if reason is not None:
        return Estimate(value, n, reason=reason)
    # Independent cases of a share that is the same in all of them: no two with a common item.
    n_effective = float(sum(n // counts[0].case_size for n in n_items))
    if 0.0 < value < 1.0:
        replicates = [_leave_items_out(hits, totals, tables, groups, group, averaged) for group in groups]
        if not all(np.isfinite(stratum).all() for stratum in replicates):
            return Estimate(value, n, reason="all cases of a set have an item in common: no interval")
        variance = sum(float(jackknife_covariance(stratum[None])[0, 0]) for stratum in replicates)
        n_effective = float(totals.sum())
        if variance >= 1e-24:
            n_effective = value * (1 - value) / variance * few_units_factor(min(n_items))
    return Estimate(value, n, *clopper_pearson(value, n_effective), resampled=("item",))


def _average(hits: Floats, totals: Floats, groups: Sequence[Sequence[int]], averaged: Averaging) -> float:
    """The share over all sets: pooled, or the mean over sets of the mean over their wordings."""
    if averaged == "pooled":
        return float(hits.sum() / totals.sum())
    shares = hits / totals
    return float(np.mean([shares[list(group)].mean() for group in groups]))


def _leave_items_out(
    hits: Floats,
    totals: Floats,
    tables: Sequence[Floats],
    groups: Sequence[Sequence[int]],
    group: Sequence[int],
    averaged: Averaging,
) -> Floats:
    """The share over all sets without each item of one set, shape (items,); nan where no case is left."""
    without_hits = np.stack([hits[i] - tables[i][:, 0] for i in group])
    without_totals = np.stack([totals[i] - tables[i][:, 1] for i in group])
    with np.errstate(divide="ignore", invalid="ignore"):
        if averaged == "pooled":
            other_hits, other_totals = (np.delete(column, group).sum() for column in (hits, totals))
            pooled: Floats = (other_hits + without_hits.sum(axis=0)) / (other_totals + without_totals.sum(axis=0))
            return pooled
        other_sets = sum(float((hits[list(other)] / totals[list(other)]).mean()) for other in groups if other != group)
        means: Floats = (other_sets + (without_hits / without_totals).mean(axis=0)) / len(groups)
        return means
