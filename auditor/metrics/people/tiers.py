"""Tiers of models, intervals of their ranks, and which of them may be the best.

Models are compared on Fisher's z of a correlation, or on the logarithm of an error. The variance of a difference is the
jackknife's over countries plus that over topics.

- One model beats another if their difference is more than c standard errors, where c holds for all pairs simultaneously
  (`intervals.multiple_testing`). So some of several equal models are put in different tiers in at most about 5% of
  audits. The first tier has the models that no other beats; the next tier the models that no other beats except those
  of the tiers above.
- The interval of a rank leaves out the positions of the models that beat the model, or that it beats (Mogstad, Romano,
  Shaikh & Wilhelm, Review of Economic Studies 91, 2024).
- The interval of the difference from the best other model is that of multiple comparisons with the best (Hsu, Annals of
  Statistics 12, 1984; Hsu, Multiple Comparisons, 1996, ch. 4). It ends at 0 on one side, unless several models may be
  the best. An end at 0 includes a tie: it does not show that the model is worse than another.
- A model is significantly the best if it alone may be the best by that comparison. If there is no such model, all that
  no other model beats may be the best: the comparison with the best leaves out some of several equal models in 15% of
  audits, since it says of a model only that it is not better than all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics.intervals.estimate import Floats, complete_cases
from auditor.metrics.intervals.jackknife_interval import (
    IDENTITY,
    MIN_UNITS,
    Transform,
    jackknife_covariance,
    pairwise_variances,
)
from auditor.metrics.intervals.multiple_testing import CriticalValues, critical_values, divide_variance
from auditor.metrics.intervals.paired import recover_difference
from auditor.metrics.intervals.two_way import (
    STATISTIC_TRANSFORMS,
    UnitLabels,
    build_two_way_table,
    statistic_replicates,
)
from auditor.metrics.people.alignment import Statistic

TIE_TOLERANCE = 1e-12
"""Values that differ by no more are equal."""


@dataclass(frozen=True, slots=True)
class ModelTiers:
    """Models compared on the cells that all of them have, shape (models,) each; `reason` says why one is None.

    Attributes:
        values: the statistic of each; nan where it is undefined.
        n_countries: number of countries, or of zones where they are clustered.
        tiers: from 1, the best; None where there are too few countries or topics to compare.
        rank_low, rank_high: 95% intervals of the ranks, 1 being the best; they hold simultaneously.
        from_best: the statistic minus that of the best other model; None for a single model.
        from_best_low, from_best_high: 95% intervals of these differences; they hold simultaneously.
        may_be_best: True for the model that is significantly the best; without one, for all of the first tier. False
            for models that are significantly worse than another.
    """

    values: Floats
    n_cells: int
    n_countries: int
    n_topics: int
    tiers: NDArray[np.intp] | None = None
    rank_low: NDArray[np.intp] | None = None
    rank_high: NDArray[np.intp] | None = None
    from_best: Floats | None = None
    from_best_low: Floats | None = None
    from_best_high: Floats | None = None
    may_be_best: NDArray[np.bool_] | None = None
    reason: str | None = None
    units: tuple[str, str] = ("country", "topic")
    """Over which the intervals are: countries are clustered where their labels are those of zones."""


@dataclass(frozen=True, slots=True)
class _AllPairs:
    """Models compared on a scale on which the statistic is nearly normal.

    Attributes:
        values: of the transformed statistic, shape (models,).
        covariances: of these values, shape (models, models).
        sign: 1 if a larger statistic is better, else -1.
    """

    values: Floats
    covariances: Floats
    transform: Transform
    sign: int
    critical: CriticalValues

    @property
    def differences(self) -> Floats:
        """Row minus column, positive where the row's model is better, shape (models, models)."""
        differences: Floats = self.sign * (self.values[:, None] - self.values[None, :])
        return differences

    @property
    def std_errors(self) -> Floats:
        """Standard errors of the differences, shape (models, models)."""
        return np.sqrt(pairwise_variances(self.covariances))


def model_tiers(
    statistic: Statistic,
    scores: Sequence[ArrayLike],
    truth: ArrayLike,
    countries: ArrayLike | UnitLabels,
    topics: ArrayLike,
    *,
    larger_is_better: bool,
    n_rankings: int = 1,
) -> ModelTiers:
    """Group models into tiers, and find those that may be the best; the module describes the methods.

    Args:
        scores: one array of shape (n,) a model; cells in which any of them or the truth is nan are left out.
        truth, countries, topics: as for `paired_jackknife`.
        larger_is_better: True for a correlation, False for an error.
        n_rankings: rankings, such as those of regions, that hold together (Bonferroni).

    Raises:
        ValueError: shapes differ, or a value is infinite.
    """
    (*models, y), is_complete = complete_cases(*scores, truth)
    table = build_two_way_table(countries, topics, is_complete)
    n_units, units = (table.n_countries, table.n_topics), (table.row_unit, "topic")
    comparison = ModelTiers(np.full(len(models), np.nan), len(y), *n_units, units=units)
    if not len(y):
        return replace(comparison, reason="no cell has a score of all models")
    replicates = [
        statistic_replicates(statistic.value, table.to_grid(statistic.moments(model_scores, y)), table)
        for model_scores in models
    ]
    comparison = replace(comparison, values=np.array([value for value, _ in replicates]))
    if min(table.n_countries, table.n_topics) < MIN_UNITS:
        reason = f"a comparison needs at least {MIN_UNITS} countries and {MIN_UNITS} topics that all models share"
        return replace(comparison, reason=reason)
    by_country, by_topic = (np.stack([kinds[unit][0] for _, kinds in replicates]) for unit in units)
    transform, figures = _transform_figures(statistic, (comparison.values, by_country, by_topic))
    if not all(np.isfinite(array).all() for array in figures):
        return replace(comparison, reason="the figure of a model is undefined")
    if len(models) == 1:
        only = np.ones(1, dtype=np.intp)
        return replace(comparison, tiers=only, rank_low=only, rank_high=only, may_be_best=only.astype(np.bool_))
    pairs = _compare_all_pairs(figures[0], figures[1:], transform, 1 if larger_is_better else -1, n_rankings)
    return _rank_models(comparison, pairs)


def _transform_figures(statistic: Statistic, figures: Sequence[Floats]) -> tuple[Transform, Sequence[Floats]]:
    """The figures on the scale on which models are compared.

    A perfect model, whose logarithm or Fisher's z is infinite, can be compared on the statistic's own scale.

    Args:
        figures: the statistic of each model, and without each country and each topic.
    """
    transform = STATISTIC_TRANSFORMS.get(statistic, IDENTITY)
    with np.errstate(divide="ignore", invalid="ignore"):
        transformed = [transform.forward(array) for array in figures]
    return (transform, transformed) if all(np.isfinite(array).all() for array in transformed) else (IDENTITY, figures)


def _rank_models(comparison: ModelTiers, pairs: _AllPairs) -> ModelTiers:
    """Add the tiers, the intervals of ranks and the comparison with the best, for at least two models."""
    beats = pairs.differences > np.maximum(pairs.critical.all_pairs * pairs.std_errors, TIE_TOLERANCE)
    from_best, from_best_low, from_best_high, is_candidate = _compare_with_best(pairs, comparison.values)
    tiers = _assign_tiers(beats)
    return replace(
        comparison,
        tiers=tiers,
        rank_low=1 + beats.sum(axis=0),
        rank_high=len(beats) - beats.sum(axis=1),
        from_best=from_best,
        from_best_low=from_best_low,
        from_best_high=from_best_high,
        may_be_best=is_candidate if is_candidate.sum() == 1 else tiers == 1,
    )


def _compare_all_pairs(
    values: Floats, replicates_by_kind: Sequence[Floats], transform: Transform, sign: int, n_rankings: int
) -> _AllPairs:
    """Estimate the covariances of the models' statistics, and the critical values for their differences.

    Args:
        values: the transformed statistic of each model, shape (models,).
        replicates_by_kind: without each country, shape (models, countries), and without each topic.
        transform, sign: see `_AllPairs`.
        n_rankings: see `model_tiers`.
    """
    covariances = [jackknife_covariance(replicates) for replicates in replicates_by_kind]
    kinds = divide_variance(covariances, [(replicates.shape[1],) for replicates in replicates_by_kind])
    critical = critical_values(len(values), kinds, n_rankings)
    return _AllPairs(values, covariances[0] + covariances[1], transform, sign, critical)


def _assign_tiers(beats: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Tier of each model, from 1, shape (models,).

    Args:
        beats: whether the row's model is significantly better than the column's, shape (models, models).
    """
    tiers = np.zeros(len(beats), dtype=np.intp)
    tier = 0
    while (remaining := tiers == 0).any():
        tier += 1
        tiers[remaining & ~beats[remaining].any(axis=0)] = tier
    return tiers


def _compare_with_best(pairs: _AllPairs, figures: Floats) -> tuple[Floats, Floats, Floats, NDArray[np.bool_]]:
    """Difference of each model from the best other one, the ends of its interval, and which are not shown to be beaten.

    Differences are on the scale of the statistic, that of the model minus that of the best other, shape (models,) each.

    Args:
        figures: the statistic of each model, shape (models,).
    """
    std_errors, critical = np.sqrt(np.diag(pairs.covariances)), pairs.critical.with_one
    low, high = recover_difference(
        pairs.transform, pairs.values[:, None], pairs.values[None, :], (std_errors[:, None], std_errors[None, :]),
        pairs.covariances, critical,
    )  # fmt: skip
    if pairs.sign < 0:  # positive: the row's model is better
        low, high = -high, -low
    # The test is on the transformed scale; the ends are brought in line with it.
    low = np.where(pairs.differences > critical * pairs.std_errors, np.maximum(low, 0.0), np.minimum(low, 0.0))
    high = np.where(pairs.differences < -critical * pairs.std_errors, np.minimum(high, 0.0), np.maximum(high, 0.0))
    differences = pairs.sign * (figures[:, None] - figures[None, :])
    for comparisons in (differences, low, high):
        np.fill_diagonal(comparisons, np.inf)  # a model is not compared with itself
    is_worse = pairs.differences + critical * pairs.std_errors < -TIE_TOLERANCE
    is_candidate = np.asarray(np.logical_not(is_worse).all(axis=1), dtype=np.bool_)
    from_candidates = np.where(is_candidate[None, :], low, np.inf).min(axis=1)  # inf for the only candidate
    worst_case, best_case = np.minimum(0.0, from_candidates), np.maximum(0.0, high.min(axis=1))
    from_best = differences.min(axis=1)
    if pairs.sign > 0:
        return from_best, worst_case, best_case, is_candidate
    return -from_best, -best_case, -worst_case, is_candidate
