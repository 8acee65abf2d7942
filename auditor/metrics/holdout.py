"""Whether peer agreement predicts agreement with people on held-out cells and held-out models."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from auditor.metrics._complete_cases import Z_95, Floats
from auditor.metrics.correlation import pearson

HOLDOUT_SHARE = 0.2
"""Share of the cells that are held out in each split."""
MIN_CELLS, MIN_MODELS = 3, 4
MAX_UNDEFINED_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class HoldoutEstimate:
    """An estimate with its 95% interval over models; `reason` says why something is None."""

    value: float | None
    n: int
    ci_low: float | None = None
    ci_high: float | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class PeerHoldout:
    """How well peer agreement predicts correlation with people.

    Attributes:
        models: models with verdicts and enough scores.
        splits: splits in which the correlation is defined.
        unseen_cells: correlation over models of peer agreement on 80% of the cells with r against people on the others,
            averaged over splits; n counts models. The interval is Fisher's for that number of models: all splits are
            of the same models, so more splits do not make up for few models.
        error: absolute error of a left-out model's r as predicted from its peer agreement by the line through the
            other models; n counts models.
        error_of_mean: the same for the mean r of the other models as the prediction.
        gain: error_of_mean - error, paired by model; above 0 where peer agreement has predictive value.
    """

    models: int
    splits: int
    unseen_cells: HoldoutEstimate
    error: HoldoutEstimate
    error_of_mean: HoldoutEstimate
    gain: HoldoutEstimate


def cross_validate_peer_agreement(
    valid_counts: ArrayLike,
    verdict_counts: ArrayLike,
    scores: ArrayLike,
    truth: ArrayLike,
    *,
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
        truth: shape (cells,), human scores; nan where there is none.
        n_splits, seed: of the splits of the cells.

    Raises:
        ValueError: shapes do not fit, or a cell has more VALID verdicts than verdicts.
    """
    valid, totals, score_table = (
        np.asarray(table, dtype=np.float64) for table in (valid_counts, verdict_counts, scores)
    )
    human_scores = np.asarray(truth, dtype=np.float64)
    if (
        not valid.shape == totals.shape == score_table.shape
        or human_scores.shape != score_table.shape[1:]
        or np.any(valid > totals)
    ):
        raise ValueError("tables must be (models, cells) alike, truth (cells,), and no more VALID than given")
    has_truth = ~np.isnan(human_scores)
    valid, totals, score_table, human_scores = (
        valid[:, has_truth],
        totals[:, has_truth],
        score_table[:, has_truth],
        human_scores[has_truth],
    )
    usable = (totals.sum(axis=1) > 0) & ((~np.isnan(score_table)).sum(axis=1) >= MIN_CELLS)
    valid, totals, score_table = valid[usable], totals[usable], score_table[usable]
    n_usable = len(valid)
    if n_usable < MIN_MODELS:
        undefined = HoldoutEstimate(
            None, n_usable, reason=f"fewer than {MIN_MODELS} models with verdicts and scores ({n_usable})"
        )
        return PeerHoldout(n_usable, 0, undefined, undefined, undefined, undefined)
    correlations = _split_correlations(valid, totals, score_table, human_scores, n_splits, seed)
    return PeerHoldout(
        n_usable,
        len(correlations),
        _mean_correlation(correlations, n_splits, n_usable),
        *_leave_one_model_out(valid, totals, score_table, human_scores),
    )


def _split_correlations(
    valid_counts: Floats, verdict_counts: Floats, scores: Floats, truth: Floats, n_splits: int, seed: int
) -> Floats:
    """The correlation over models in each split where it is defined, shape (splits,).

    It is between peer agreement on the larger part of the cells and r with people on the held-out part.
    """
    rng = np.random.default_rng(seed)
    n_cells = scores.shape[1]
    n_held_out = max(MIN_CELLS, round(HOLDOUT_SHARE * n_cells))
    correlations = []
    for _ in range(n_splits if n_held_out < n_cells else 0):
        held_out = np.zeros(n_cells, dtype=np.bool_)
        held_out[rng.choice(n_cells, n_held_out, replace=False)] = True
        r = pearson(
            _peer_agreement_rates(valid_counts[:, ~held_out], verdict_counts[:, ~held_out]),
            _human_correlations(scores[:, held_out], truth[held_out]),
        ).r
        if r is not None:
            correlations.append(r)
    return np.array(correlations)


def _peer_agreement_rates(valid_counts: Floats, verdict_counts: Floats) -> Floats:
    """Share of VALID verdicts on each model's traces, shape (models,); nan without verdicts."""
    n_verdicts = verdict_counts.sum(axis=1)
    return np.where(n_verdicts > 0, valid_counts.sum(axis=1) / np.maximum(n_verdicts, 1), np.nan)


def _human_correlations(scores: Floats, truth: Floats) -> Floats:
    """Pearson's r of each model's scores with the truth, shape (models,); nan where it is undefined."""
    return np.array([np.nan if (r := pearson(model_scores, truth).r) is None else r for model_scores in scores])


def _mean_correlation(correlations: Floats, n_splits: int, n_models: int) -> HoldoutEstimate:
    """Mean of the splits' correlations with Fisher's interval for `n_models`; None if too few splits have one."""
    if len(correlations) < MAX_UNDEFINED_SHARE * n_splits or not len(correlations):
        return HoldoutEstimate(
            None, n_models, reason="too few splits have a correlation: too few cells, or models too alike"
        )
    value = float(correlations.mean())
    if 1 - abs(value) < 1e-12:
        return HoldoutEstimate(value, n_models, reason="|r| = 1: no interval")
    half_width = Z_95 / sqrt(n_models - 3)
    z = np.arctanh(value)
    return HoldoutEstimate(value, n_models, float(np.tanh(z - half_width)), float(np.tanh(z + half_width)))


def _leave_one_model_out(
    valid_counts: Floats, verdict_counts: Floats, scores: Floats, truth: Floats
) -> tuple[HoldoutEstimate, HoldoutEstimate, HoldoutEstimate]:
    """Predict each model's r from the other models: by a line through peer agreement, and by their mean.

    Returns:
        Mean absolute error of the line, that of the mean, and the gain: the second minus the first, paired.
    """
    x, y = _peer_agreement_rates(valid_counts, verdict_counts), _human_correlations(scores, truth)
    defined = ~np.isnan(x) & ~np.isnan(y)
    x, y = x[defined], y[defined]
    if len(x) < MIN_MODELS:
        undefined = HoldoutEstimate(
            None, len(x), reason=f"fewer than {MIN_MODELS} models whose r is defined ({len(x)})"
        )
        return undefined, undefined, undefined
    line_errors, mean_errors = np.empty(len(x)), np.empty(len(x))
    for i in range(len(x)):
        other_x, other_y = np.delete(x, i), np.delete(y, i)
        sum_of_squares = ((other_x - other_x.mean()) ** 2).sum()
        slope = (
            ((other_x - other_x.mean()) * (other_y - other_y.mean())).sum() / sum_of_squares
            if sum_of_squares > 1e-12
            else 0.0
        )
        line_errors[i] = abs(other_y.mean() + slope * (x[i] - other_x.mean()) - y[i])
        mean_errors[i] = abs(other_y.mean() - y[i])
    return _mean_estimate(line_errors, 0.0), _mean_estimate(mean_errors, 0.0), _mean_estimate(mean_errors - line_errors)


def _mean_estimate(values: Floats, lower_bound: float = -np.inf) -> HoldoutEstimate:
    """The mean with Student's interval, whose lower end is clipped at `lower_bound`."""
    n, value = len(values), float(values.mean())
    std_error = float(values.std(ddof=1)) / sqrt(n)
    if std_error == 0:
        return HoldoutEstimate(value, n, reason="the same for every model: no interval")
    half_width = float(stdtrit(n - 1, 0.975)) * std_error
    return HoldoutEstimate(value, n, max(value - half_width, lower_bound), value + half_width)
