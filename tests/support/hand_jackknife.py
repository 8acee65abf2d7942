"""The jackknife's variance, by recomputing a figure without each unit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Labels = NDArray[np.intp]


def jackknife_variance(recompute: Callable[[NDArray[np.bool_]], float], labels: Labels) -> float:
    """Variance over the units of `labels`; `recompute` returns the figure of the rows that are not left out."""
    without = np.array([recompute(labels != unit) for unit in np.unique(labels)])
    return float((len(without) - 1) * without.var())


def two_way_variance(
    recompute: Callable[[NDArray[np.bool_]], float], country: Labels, topic: Labels, cell: Labels | None = None
) -> float:
    """Variance over countries and over topics, less half of that over cells (by default the rows)."""
    cells = np.arange(len(country)) if cell is None else cell
    by_country, by_topic, by_cell = (jackknife_variance(recompute, labels) for labels in (country, topic, cells))
    return max(by_country + by_topic - by_cell / 2, by_country, by_topic)
