"""Tiers of models: which do not differ significantly from the best, and intervals for their ranks."""

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
from auditor.metrics.bootstrap import MAX_UNDEFINED_SHARE, MIN_CLUSTERS, Statistic
from auditor.metrics.multiple_testing import holm

TIE_TOLERANCE = 1e-12
"""Values that differ by no more are equal."""
SIGNIFICANCE_LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class ModelTiers:
    """Models compared on the cells that all of them have, shape (models,) each; `reason` says why one is None.

    Attributes:
        values: the statistic of each; nan where it is undefined.
        tiers: from 1, the best; None where there are too few countries or topics to compare.
        rank_low, rank_high: 95% interval of each rank, 1 being the best.
        share_best: share of resamples of countries and topics in which it is the best; ties share it equally.
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
    """Group models into tiers, by the paired differences of `paired_jackknife`.

    The first tier is the best model and all that do not differ significantly from it: the paired difference from the
    best has a p-value of at least 0.05 after Holm's correction for the number of models compared with it. The best of
    the others begins the next tier. A model in a lower tier is therefore significantly worse than the best of each tier
    above, though a model with a lower value may be in a higher tier if its difference is less certain.

    The rank interval excludes the positions of models that differ significantly, with Holm's correction for all others
    (Mogstad, Romano, Shaikh & Wilhelm, Review of Economic Studies 91, 2024).

    Args:
        scores: one array of shape (n,) a model; cells in which any of them or the truth is nan are left out.
        truth, countries, topics: as for `paired_jackknife`.
        larger_is_better: True for a correlation, False for an error.
        replicates, seed: of the resamples for `share_best`.

    Raises:
        ValueError: shapes differ, or a value is infinite.
    """
    (*models, y), is_complete = complete_cases(*scores, truth)
    table = build_two_way_table(countries, topics, is_complete)
    counts = (len(y), table.n_countries, table.n_topics)
    grids = [table.to_grid(statistic.moments(model_scores, y)) for model_scores in models]

    def compute_estimates(country_weights: Floats, topic_weights: Floats) -> Floats:
        """The statistic of each model in each resample, shape (replicates, models)."""
        return np.stack(
            [statistic.value(weighted_sums(grid, country_weights, topic_weights)) for grid in grids], axis=1
        )

    if not len(y):
        undefined = np.full(len(models), np.nan)
        return ModelTiers(undefined, None, None, None, None, *counts, "no cell has a score of all models")
    estimates = compute_estimates(np.ones((1, table.n_countries)), np.ones((1, table.n_topics)))[0]
    if min(table.n_countries, table.n_topics) < MIN_CLUSTERS:
        reason = f"tiers need {MIN_CLUSTERS} countries and topics that all models have"
        return ModelTiers(estimates, None, None, None, None, *counts, reason)
    resampled = compute_estimates(*table.draw_weights(np.random.default_rng(seed), replicates))
    resampled = resampled[~np.isnan(resampled).any(axis=1)]
    p_values = None if np.isnan(estimates).any() else _pairwise_p_values(statistic, estimates, grids, table)
    if p_values is None or len(resampled) < (1 - MAX_UNDEFINED_SHARE) * replicates:
        return ModelTiers(estimates, None, None, None, None, *counts, "the figure of a model is undefined")
    goodness = estimates if larger_is_better else -estimates
    resampled_goodness = resampled if larger_is_better else -resampled
    is_best = resampled_goodness >= resampled_goodness.max(axis=1, keepdims=True) - TIE_TOLERANCE
    share_best = (is_best / is_best.sum(axis=1, keepdims=True)).mean(axis=0)
    return ModelTiers(
        estimates, _assign_tiers(goodness, p_values), *_rank_intervals(goodness, p_values), share_best, *counts
    )


def _pairwise_p_values(
    statistic: Statistic, estimates: Floats, grids: Sequence[Floats], table: TwoWayTable
) -> Floats | None:
    """Two-sided p-values of no difference, shape (models, models); None where a jackknife replicate is undefined."""
    replicates = [
        jackknife_replicates(statistic.value, grid, grid[table.row_index, table.column_index]) for grid in grids
    ]
    if not all(model_replicates.is_finite for model_replicates in replicates):
        return None
    replicates_by_part = (
        [model_replicates.by_country for model_replicates in replicates],
        [model_replicates.by_topic for model_replicates in replicates],
        [model_replicates.by_cell for model_replicates in replicates],
    )
    std_errors = np.sqrt(
        two_way_variance(
            *(variances_of_differences(jackknife_covariance(part_replicates)) for part_replicates in replicates_by_part)
        )
    )
    distances = np.abs(estimates[:, None] - estimates[None, :])
    df = min(table.n_countries, table.n_topics) - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        p_values = 2 * stdtr(df, -distances / std_errors)
    tie_adjusted: Floats = np.where(
        distances <= TIE_TOLERANCE, 1.0, p_values
    )  # a standard error of 0 with unequal values gives p = 0: they differ equally everywhere
    return tie_adjusted


def _assign_tiers(goodness: Floats, p_values: Floats) -> NDArray[np.intp]:
    """Tier of each model, from 1, shape (models,).

    Args:
        goodness: shape (models,), larger is better.
        p_values: shape (models, models), not adjusted.
    """
    tiers = np.zeros(len(goodness), dtype=np.intp)
    order, tier = list(np.argsort(-goodness, kind="stable")), 0
    while order:
        tier += 1
        best, others = order[0], order[1:]
        compared = list(zip(others, holm(p_values[best, others]), strict=True))
        tiers[[best, *(model for model, p_value in compared if p_value >= SIGNIFICANCE_LEVEL)]] = tier
        order = [model for model, p_value in compared if p_value < SIGNIFICANCE_LEVEL]
    return tiers


def _rank_intervals(goodness: Floats, p_values: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Lower and upper end of each model's rank, 1 being the best; arguments as for `_assign_tiers`."""
    n_models = len(goodness)
    low, high = np.ones(n_models, dtype=np.intp), np.full(n_models, n_models, dtype=np.intp)
    for i in range(n_models):
        others = np.delete(np.arange(n_models), i)
        distinct = others[holm(p_values[i, others]) < SIGNIFICANCE_LEVEL]
        low[i] += (goodness[distinct] > goodness[i]).sum()
        high[i] -= (goodness[distinct] < goodness[i]).sum()
    return low, high
