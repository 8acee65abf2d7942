"""Figures with one country, one topic or one cell left out: what the jackknife's variances and covariances rest on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from auditor.metrics._complete_cases import Floats


@dataclass(frozen=True, slots=True)
class JackknifeReplicates:
    """One figure without each country, each topic and each cell, shapes (countries,), (topics,) and (cells,)."""

    by_country: Floats
    by_topic: Floats
    by_cell: Floats

    @property
    def is_finite(self) -> bool:
        return all(bool(np.isfinite(part).all()) for part in (self.by_country, self.by_topic, self.by_cell))


def jackknife_replicates(statistic: Callable[[Floats], Floats], grid: Floats, cells: Floats) -> JackknifeReplicates:
    """A figure of sums, with each part of them left out.

    Args:
        value: from sums, shape (m, k), to the figure, shape (m,).
        grid: moments laid out as (countries, topics, k).
        cells: the same of the cells that are there, shape (n, k).
    """
    total = grid.sum((0, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        return JackknifeReplicates(*(statistic(total - part) for part in (grid.sum(1), grid.sum(0), cells)))


def jackknife_covariance(replicates: Sequence[Floats] | Floats) -> Floats:
    """The jackknife's covariances, shape (m, m), of m figures with each of k parts left out, shape (m, k)."""
    values = np.asarray(replicates, dtype=np.float64)
    k = values.shape[1]
    centred = values - values.mean(axis=1, keepdims=True)
    found: Floats = (k - 1) / k * (centred @ centred.T)
    return found


def variances_of_differences(covariances: Floats) -> Floats:
    """Variances of the differences of any two, shape (m, m)."""
    own = np.diag(covariances)
    return np.maximum(own[:, None] + own[None, :] - 2 * covariances, 0.0)


def two_way_variance(by_country: Floats, by_topic: Floats, by_cell: Floats) -> Floats:
    """What countries and topics vary together, less what both count of the cells; never less than either alone."""
    return np.maximum(by_country + by_topic - by_cell, np.maximum(by_country, by_topic))
