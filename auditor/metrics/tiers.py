"""Models in tiers: which can be told apart from the best, and how sure each one's rank is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtr

from auditor.metrics._complete_cases import Floats, complete_cases
from auditor.metrics._jackknife_replicates import (
    jackknife_covariance,
    jackknife_replicates,
    two_way_variance,
    variances_of_differences,
)
from auditor.metrics._two_way_table import TwoWayTable, build_two_way_table, weighted_sums
from auditor.metrics.bootstrap import MAX_UNDEFINED_SHARE, MIN_CLUSTERS, Statistic, holm

TIE_TOLERANCE = 1e-12
"""Figures that differ by no more are equal."""
SIGNIFICANCE_LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class ModelTiers:
    """Models by a figure over the cells that all of them have, shape (models,) each; `reason` says why one is None.

    Attributes:
        values: the figure of each; nan where it is undefined.
        tiers: from 1, the best; None where nothing can be told apart for want of countries or topics.
        rank_low, rank_high: 95% interval of each one's rank, 1 being the best.
        first: share of resamples of countries and topics in which it is the best; those that tie share it.
    """

    values: Floats
    tiers: NDArray[np.intp] | None
    rank_low: NDArray[np.intp] | None
    rank_high: NDArray[np.intp] | None
    share_best: Floats | None
    n_cells: int
    n_countries: int
    n_topics: int
    reason: str | None = None


def model_tiers(
    statistic: Statistic,
    scores: Sequence[ArrayLike],
    truth: ArrayLike,
    countries: ArrayLike,
    topics: ArrayLike,
    *,
    larger_is_better: bool,
    replicates: int = 2000,
    seed: int = 0,
) -> ModelTiers:
    """Models in tiers, by the paired differences of `paired_jackknife`.

    The first tier is the best model and all that cannot be told apart from it, wherever they stand: the paired
    difference from the best has a p-value of at least 0.05 after Holm's correction for the models that are compared
    with it. The best of the rest begins the next tier. A model in a lower tier is so shown to be worse than the best of
    each tier above it, though one that scores less may be in a higher tier, since less is known of it.

    The interval of a rank leaves out the places of those that a model is told apart from, corrected by Holm for all
    others (Mogstad, Romano, Shaikh & Wilhelm, Review of Economic Studies 91, 2024).

    Args:
        scores: one array of shape (n,) a model; cells in which any of them or the truth is nan are left out.
        truth, countries, topics: as for `paired_jackknife`.
        larger_is_better: True for a correlation, False for an error.
        replicates, seed: of the resamples that `first` counts.

    Raises:
        ValueError: shapes differ, or a value is infinite.
    """
    (*models, y), keep = complete_cases(*scores, truth)
    table = build_two_way_table(countries, topics, keep)
    sizes = (len(y), table.n_countries, table.n_topics)
    grids = [table.to_grid(statistic.moments(x, y)) for x in models]

    def values(rows: Floats, columns: Floats) -> Floats:
        return np.stack([statistic.value(weighted_sums(grid, rows, columns)) for grid in grids], axis=1)

    if not len(y):
        nothing = np.full(len(models), np.nan)
        return ModelTiers(nothing, None, None, None, None, *sizes, "no cell has a score of all models")
    found = values(np.ones((1, table.n_countries)), np.ones((1, table.n_topics)))[0]
    if min(table.n_countries, table.n_topics) < MIN_CLUSTERS:
        reason = f"tiers need {MIN_CLUSTERS} countries and topics that all models have"
        return ModelTiers(found, None, None, None, None, *sizes, reason)
    drawn = values(*table.draw_weights(np.random.default_rng(seed), replicates))
    drawn = drawn[~np.isnan(drawn).any(axis=1)]
    p = None if np.isnan(found).any() else _pairwise_p_values(statistic, found, grids, table)
    if p is None or len(drawn) < (1 - MAX_UNDEFINED_SHARE) * replicates:
        return ModelTiers(found, None, None, None, None, *sizes, "the figure of a model is undefined")
    goodness = found if larger_is_better else -found
    better = drawn if larger_is_better else -drawn
    best = better >= better.max(axis=1, keepdims=True) - TIE_TOLERANCE
    first = (best / best.sum(axis=1, keepdims=True)).mean(axis=0)
    return ModelTiers(found, _assign_tiers(goodness, p), *_rank_intervals(goodness, p), first, *sizes)


def _pairwise_p_values(
    statistic: Statistic, estimates: Floats, grids: Sequence[Floats], table: TwoWayTable
) -> Floats | None:
    """Two-sided, of no difference, shape (models, models); None where leaving one out leaves no value."""
    without = [jackknife_replicates(statistic.value, grid, grid[table.row_index, table.column_index]) for grid in grids]
    if not all(w.is_finite for w in without):
        return None
    parts = ([w.by_country for w in without], [w.by_topic for w in without], [w.by_cell for w in without])
    spread = np.sqrt(two_way_variance(*(variances_of_differences(jackknife_covariance(part)) for part in parts)))
    apart = np.abs(estimates[:, None] - estimates[None, :])
    freedom = min(table.n_countries, table.n_topics) - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        p = 2 * stdtr(freedom, -apart / spread)
    same: Floats = np.where(
        apart <= TIE_TOLERANCE, 1.0, p
    )  # and where the spread is nought, they differ the same everywhere
    return same


def _assign_tiers(goodness: Floats, p_values: Floats) -> NDArray[np.intp]:
    tiers = np.zeros(len(goodness), dtype=np.intp)
    order, tier = list(np.argsort(-goodness, kind="stable")), 0
    while order:
        tier += 1
        head, rest = order[0], order[1:]
        compared = list(zip(rest, holm(p_values[head, rest]), strict=True))
        tiers[[head, *(model for model, value in compared if value >= SIGNIFICANCE_LEVEL)]] = tier
        order = [model for model, value in compared if value < SIGNIFICANCE_LEVEL]
    return tiers


def _rank_intervals(goodness: Floats, p_values: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    m = len(goodness)
    low, high = np.ones(m, dtype=np.intp), np.full(m, m, dtype=np.intp)
    for i in range(m):
        others = np.delete(np.arange(m), i)
        told = others[holm(p_values[i, others]) < SIGNIFICANCE_LEVEL]
        low[i] += (goodness[told] > goodness[i]).sum()
        high[i] -= (goodness[told] < goodness[i]).sum()
    return low, high
