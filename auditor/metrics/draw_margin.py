"""The error of a share of subsets that is due to the draw of subsets and of orders, not to the items or the sets."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.metrics.averaging import AVERAGINGS, Averaging
from auditor.metrics.checked_subsets import CheckedSubsets
from auditor.metrics.confidence import NORMAL_QUANTILE
from auditor.metrics.proportion import wilson_interval

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


class DrawnShares(NamedTuple):
    """The subsets of one set, shape (subsets,) each.

    Attributes:
        acyclic: share of a subset's draws without a cycle; nan without a draw that counts.
        n_draws: number of its draws that count.
    """

    acyclic: Floats
    n_draws: Ints


def estimate_margin(
    checked_sets: Sequence[CheckedSubsets], shares: Sequence[DrawnShares], names: Sequence[str]
) -> dict[Averaging, float]:
    """Half-width of the 95% interval of the mean share over other draws, by how the sets are averaged.

    Sets with one name, which are wordings of one set, have the same draws: their errors are added, not averaged.

    Args:
        checked_sets, shares, names: one entry for each set and wording.
    """
    n_subsets = np.array([int((entry.n_draws > 0).sum()) for entry in shares])
    errors = np.array([_standard_error(*entry) for entry in zip(checked_sets, shares, strict=True)])
    measured = [name for name, n in zip(names, n_subsets, strict=True) if n]
    if not measured:
        return dict.fromkeys(AVERAGINGS, 0.0)
    of_set = np.array([1 / (len(set(measured)) * measured.count(name)) if name in measured else 0.0 for name in names])
    weights: dict[Averaging, Floats] = {"instances": of_set * (n_subsets > 0), "pooled": n_subsets / n_subsets.sum()}
    is_sampled = not all(checked.exhaustive for checked in checked_sets)
    if not errors.any():  # all subsets alike: Wilson's interval has a width if others were not drawn
        low, high = wilson_interval(1.0, float(n_subsets.sum()))
        return dict.fromkeys(AVERAGINGS, (high - low) / 2 if is_sampled else 0.0)
    groups = np.unique(np.asarray(names), return_inverse=True)[1]
    return {
        averaged: NORMAL_QUANTILE * sqrt(float((np.bincount(groups, weights[averaged] * errors) ** 2).sum()))
        for averaged in AVERAGINGS
    }


def _standard_error(checked: CheckedSubsets, shares: DrawnShares) -> float:
    """Standard error of one set's mean share over other draws; 0 without a subset.

    If all subsets are checked, at most their orders are drawn. Else each subset has one draw of orders, and the
    variance between subsets has both parts; that the sample may be a large part of all subsets is left out, which is
    safe.
    """
    values, n_draws = (column[shares.n_draws > 0] for column in shares)
    if not len(values) or checked.all_orders:
        return 0.0
    if checked.exhaustive:
        within = values * (1 - values) / np.maximum(n_draws - 1, 1)
        return sqrt(float(within.sum())) / len(values)
    return sqrt(float(values.var(ddof=1)) / len(values)) if len(values) > 1 else 0.0
