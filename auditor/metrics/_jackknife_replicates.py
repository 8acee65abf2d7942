"""Figures with one country, one topic or one cell left out: what the jackknife's variances and covariances rest on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from auditor.metrics._complete_cases import Floats


@dataclass(frozen=True, slots=True)
class LeftOut:
    """One figure without each country, each topic and each cell, shapes (countries,), (topics,) and (cells,)."""

    country: Floats
    topic: Floats
    cell: Floats

    @property
    def is_finite(self) -> bool:
        return all(bool(np.isfinite(part).all()) for part in (self.country, self.topic, self.cell))


def left_out(value: Callable[[Floats], Floats], grid: Floats, cells: Floats) -> LeftOut:
    """A figure of sums, with each part of them left out.

    Args:
        value: from sums, shape (m, k), to the figure, shape (m,).
        grid: moments laid out as (countries, topics, k).
        cells: the same of the cells that are there, shape (n, k).
    """
    total = grid.sum((0, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        return LeftOut(*(value(total - part) for part in (grid.sum(1), grid.sum(0), cells)))


def scatter(rows: Sequence[Floats] | Floats) -> Floats:
    """The jackknife's covariances, shape (m, m), of m figures with each of k parts left out, shape (m, k)."""
    values = np.asarray(rows, dtype=np.float64)
    k = values.shape[1]
    centred = values - values.mean(axis=1, keepdims=True)
    found: Floats = (k - 1) / k * (centred @ centred.T)
    return found


def of_differences(covariances: Floats) -> Floats:
    """Variances of the differences of any two, shape (m, m)."""
    own = np.diag(covariances)
    return np.maximum(own[:, None] + own[None, :] - 2 * covariances, 0.0)


def crossed(country: Floats, topic: Floats, cell: Floats) -> Floats:
    """What countries and topics vary together, less what both count of the cells; never less than either alone."""
    return np.maximum(country + topic - cell, np.maximum(country, topic))
