"""Jackknife replicates with one country, one topic or one cell left out, and the variances computed from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from auditor.metrics._complete_cases import Floats


@dataclass(frozen=True, slots=True)
class JackknifeReplicates:
    """A statistic without each country, each topic and each cell, shapes (countries,), (topics,) and (cells,)."""

    by_country: Floats
    by_topic: Floats
    by_cell: Floats

    @property
    def is_finite(self) -> bool:
        """Whether the statistic is defined whatever is left out."""
        return all(bool(np.isfinite(replicates).all()) for replicates in (self.by_country, self.by_topic, self.by_cell))


def jackknife_replicates(statistic: Callable[[Floats], Floats], grid: Floats, cells: Floats) -> JackknifeReplicates:
    """Recompute a statistic with each country, each topic and each cell left out.

    Args:
        statistic: from sums of moments over cells, shape (m, k), to the statistic, shape (m,).
        grid: moments laid out as (countries, topics, k); moments are the k numbers per cell that are summed.
        cells: the moments of the cells that exist, shape (n, k).
    """
    total = grid.sum((0, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        return JackknifeReplicates(*(statistic(total - left_out) for left_out in (grid.sum(1), grid.sum(0), cells)))


def jackknife_covariance(replicates: Sequence[Floats] | Floats) -> Floats:
    """Jackknife covariance matrix, shape (m, m), of m statistics with each of k units left out, shape (m, k)."""
    values = np.asarray(replicates, dtype=np.float64)
    k = values.shape[1]
    centred = values - values.mean(axis=1, keepdims=True)
    covariances: Floats = (k - 1) / k * (centred @ centred.T)
    return covariances


def variances_of_differences(covariances: Floats) -> Floats:
    """Variance of the difference of each two statistics, shape (m, m), from their covariance matrix."""
    variances = np.diag(covariances)
    return np.maximum(variances[:, None] + variances[None, :] - 2 * covariances, 0.0)


def two_way_variance(by_country: Floats, by_topic: Floats, by_cell: Floats) -> Floats:
    """Two-way cluster variance, V_country + V_topic - V_cell, but at least the larger of V_country and V_topic.

    The subtraction removes the variance of single cells, which both other terms contain.
    """
    return np.maximum(by_country + by_topic - by_cell, np.maximum(by_country, by_topic))
