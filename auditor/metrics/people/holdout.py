"""Whether peer agreement predicts agreement with people on held-out cells and held-out models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics.intervals.correlation import pearson_by_row
from auditor.metrics.intervals.estimate import NORMAL_QUANTILE, PLURAL_BY_UNIT, Estimate, Floats
from auditor.metrics.intervals.jackknife_interval import (
    IDENTITY,
    LOG,
    estimate_from_replicates,
    recompute_without_units,
)
from auditor.metrics.people.over_models import MIN_INTERVAL_UNITS, average_families

HOLDOUT_SHARE = 0.2
"""Share of the cells that are held out in each split."""
MIN_CELLS, MIN_MODELS = 3, 4
MAX_UNDEFINED_SHARE = 0.5
MAX_BLOCK_VALUES = 500_000
"""Scores of held-out cells that are correlated together; bounds the memory."""


@dataclass(frozen=True, slots=True)
class PeerHoldout:
    """How well peer agreement predicts correlation with people.

    Intervals are over models, or over families where models of one family are averaged; n counts these.

    Attributes:
        models: models with verdicts and enough scores.
        splits: splits in which the correlation is defined.
        unseen_cells: correlation over models of peer agreement on 80% of the cells with r against people on the others,
            averaged over splits. The interval is Fisher's for that number of models, from 8 on: all splits are of the
            same models, so more splits do not make up for few models.
        error: absolute error of a left-out model's r as predicted from its peer agreement by the line through the
            other models.
        error_of_mean: the same for the mean r of the other models as the prediction.
        gain: error_of_mean - error, paired by model; above 0 where peer agreement has predictive value.
    """

    models: int
    splits: int
    unseen_cells: Estimate
    error: Estimate
    error_of_mean: Estimate
    gain: Estimate


def cross_validate_peer_agreement(
    valid_counts: ArrayLike,
    verdict_counts: ArrayLike,
    scores: ArrayLike,
    truth: ArrayLike | None,
    *,
    families: Sequence[str | None] | None = None,
    n_splits: int = 500,
    seed: int = 0,
) -> PeerHoldout:
    """Measure how well peer agreement predicts agreement with people, on held-out cells and on held-out models.

    The cells are split 80 to 20 many times, and each model is left out in turn. Peer agreement is the share of VALID
    among the verdicts on a model's traces.

    Args:
        valid_counts, verdict_counts: shape (models, cells): VALID verdicts, and all verdicts, on a model's traces on a
            cell.
        scores: shape (models, cells), nan where a model has none.
        truth: shape (cells,), human scores; nan where there is none. None if `scores` are shares of right answers to
            the items of a task: then accuracy takes the place of r.
        families: of the models, None where unknown; models of one family are not independent, and are averaged.
        n_splits, seed: of the splits of the cells.

    Raises:
        ValueError: shapes do not fit, or a cell has more VALID verdicts than verdicts.
    """
    valid, totals, score_table, human_scores = _read_tables(valid_counts, verdict_counts, scores, truth)
    usable = (totals.sum(axis=1) > 0) & ((~np.isnan(score_table)).sum(axis=1) >= MIN_CELLS)
    valid, totals, score_table = valid[usable], totals[usable], score_table[usable]
    n_usable = len(valid)
    groups = _ModelGroups([families[i] if families else None for i in np.nonzero(usable)[0].tolist()])
    if groups.n < MIN_MODELS:
        reason = f"fewer than {MIN_MODELS} {PLURAL_BY_UNIT[groups.unit]} with verdicts and scores ({groups.n})"
        undefined = Estimate(None, groups.n, reason=reason)
        return PeerHoldout(n_usable, 0, undefined, undefined, undefined, undefined)
    correlations = _split_correlations(valid, totals, score_table, human_scores, groups, n_splits, seed)
    return PeerHoldout(
        n_usable,
        len(correlations),
        _mean_correlation(correlations, n_splits, groups),
        *_leave_one_model_out(valid, totals, score_table, human_scores, groups),
    )


def _read_tables(
    valid_counts: ArrayLike, verdict_counts: ArrayLike, scores: ArrayLike, truth: ArrayLike | None
) -> tuple[Floats, Floats, Floats, Floats | None]:
    """The tables as arrays, over cells with a truth; ValueError as for `cross_validate_peer_agreement`."""
    valid, totals, score_table = (
        np.asarray(table, dtype=np.float64) for table in (valid_counts, verdict_counts, scores)
    )
    human_scores = None if truth is None else np.asarray(truth, dtype=np.float64)
    if (
        not valid.shape == totals.shape == score_table.shape
        or (human_scores is not None and human_scores.shape != score_table.shape[1:])
        or np.any(valid > totals)
    ):
        raise ValueError("tables must be (models, cells) alike, truth (cells,), and no more VALID than given")
    if human_scores is None:
        return valid, totals, score_table, None
    has_truth = ~np.isnan(human_scores)
    return valid[:, has_truth], totals[:, has_truth], score_table[:, has_truth], human_scores[has_truth]


@dataclass(frozen=True, slots=True)
class _ModelGroups:
    """The families of models, or the models themselves where no family has two."""

    families: Sequence[str | None]

    @property
    def n(self) -> int:
        """Number of families; a model of an unknown family is one of its own."""
        return len(self.average(np.zeros(len(self.families))))

    @property
    def unit(self) -> str:
        """What is counted, a key of `PLURAL_BY_UNIT`."""
        return "family" if self.n < len(self.families) else "model"

    def average(self, values: Floats) -> Floats:
        """Means of one value per model over the models of each family; nan where one is nan."""
        return average_families(values, self.families)


def _split_correlations(
    valid_counts: Floats,
    verdict_counts: Floats,
    scores: Floats,
    truth: Floats | None,
    groups: _ModelGroups,
    n_splits: int,
    seed: int,
) -> Floats:
    """The correlation over models in each split where it is defined, shape (splits,).

    It is between peer agreement on the larger part of the cells and r with people on the held-out part.
    """
    rng = np.random.default_rng(seed)
    n_cells = scores.shape[1]
    n_held_out = max(MIN_CELLS, round(HOLDOUT_SHARE * n_cells))
    if n_held_out >= n_cells or not n_splits:
        return np.zeros(0)
    # Cells that are held out in each split, shape (splits, held-out cells).
    held_out = np.sort([rng.choice(n_cells, n_held_out, replace=False) for _ in range(n_splits)], axis=1)
    is_used = np.ones((n_splits, n_cells))
    np.put_along_axis(is_used, held_out, 0.0, axis=1)
    rates = groups.average(_to_rates(valid_counts @ is_used.T, verdict_counts @ is_used.T))
    blocks = np.array_split(held_out, max(1, scores.shape[0] * held_out.size // MAX_BLOCK_VALUES))
    correlations = pearson_by_row(
        rates.T,
        groups.average(
            np.concatenate(
                [_measure_quality(scores[:, block], None if truth is None else truth[block]) for block in blocks],
                axis=1,
            )
        ).T,
    )
    return correlations[~np.isnan(correlations)]


def _measure_quality(scores: Floats, truth: Floats | None) -> Floats:
    """Pearson's r with the truth over the last axis, or the mean without nan; nan where undefined."""
    if truth is not None:
        return pearson_by_row(scores, truth)
    n_scores = (~np.isnan(scores)).sum(axis=-1)
    return np.where(n_scores > 0, np.nansum(scores, axis=-1) / np.maximum(n_scores, 1), np.nan)


def _to_rates(n_valid: Floats, n_verdicts: Floats) -> Floats:
    """Shares of VALID verdicts; nan without verdicts."""
    return np.where(n_verdicts > 0, n_valid / np.maximum(n_verdicts, 1), np.nan)


def _mean_correlation(correlations: Floats, n_splits: int, groups: _ModelGroups) -> Estimate:
    """Mean of the splits' correlations with Fisher's interval; None if too few splits have one."""
    n, unit = groups.n, groups.unit
    if len(correlations) < MAX_UNDEFINED_SHARE * n_splits or not len(correlations):
        return Estimate(None, n, reason="too few splits have a correlation: too few cells, or models too alike")
    value = float(correlations.mean())
    if n < MIN_INTERVAL_UNITS:
        return Estimate(
            value, n, reason=f"too few {PLURAL_BY_UNIT[unit]}: an interval needs at least {MIN_INTERVAL_UNITS}"
        )
    if 1 - abs(value) < 1e-12:
        return Estimate(value, n, reason="|r| = 1: no interval")
    half_width = NORMAL_QUANTILE / sqrt(n - 3)
    z = np.arctanh(value)
    return Estimate(value, n, float(np.tanh(z - half_width)), float(np.tanh(z + half_width)), resampled=(unit,))


def _leave_one_model_out(
    valid_counts: Floats, verdict_counts: Floats, scores: Floats, truth: Floats | None, groups: _ModelGroups
) -> tuple[Estimate, Estimate, Estimate]:
    """Predict each model's r from the other models: by a line through peer agreement, and by their mean.

    Returns:
        Mean absolute error of the line, that of the mean, and the gain: the second minus the first, paired.
    """
    x = groups.average(_to_rates(valid_counts.sum(axis=1), verdict_counts.sum(axis=1)))
    y = groups.average(_measure_quality(scores, truth))
    defined = ~np.isnan(x) & ~np.isnan(y)
    x, y, plural = x[defined], y[defined], PLURAL_BY_UNIT[groups.unit]
    if len(x) < MIN_MODELS:
        undefined = Estimate(None, len(x), reason=f"fewer than {MIN_MODELS} {plural} whose r is defined ({len(x)})")
        return undefined, undefined, undefined
    figures = _prediction_errors(x, y)
    without = recompute_without_units(lambda included: _prediction_errors(x[included], y[included]), np.arange(len(x)))
    line, mean, gain = (
        estimate_from_replicates(value, len(x), {groups.unit: replicates}, transform)
        for value, replicates, transform in zip(figures, without.T, (LOG, LOG, IDENTITY), strict=True)
    )
    return line, mean, gain


def _prediction_errors(x: Floats, y: Floats) -> tuple[float, float, float]:
    """Mean absolute error of predicting each y from the others, by a line through x and by their mean, and the gain."""
    n = len(x)
    other_x, other_y = (np.tile(values, (n, 1))[~np.eye(n, dtype=np.bool_)].reshape(n, n - 1) for values in (x, y))
    mean_x, mean_y = other_x.mean(axis=1), other_y.mean(axis=1)
    sum_of_squares = ((other_x - mean_x[:, None]) ** 2).sum(axis=1)
    products = ((other_x - mean_x[:, None]) * (other_y - mean_y[:, None])).sum(axis=1)
    is_defined = sum_of_squares > 1e-12
    slope = np.where(is_defined, products / np.where(is_defined, sum_of_squares, 1.0), 0.0)
    line_error = float(np.abs(mean_y + slope * (x - mean_x) - y).mean())
    mean_error = float(np.abs(mean_y - y).mean())
    return line_error, mean_error, mean_error - line_error
