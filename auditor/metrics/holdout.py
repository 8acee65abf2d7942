"""Whether peer agreement foretells agreement with people on cells, and models, that it was not seen on."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from auditor.metrics._complete_cases import Z_95, Floats
from auditor.metrics.correlation import pearson

HOLDOUT_SHARE = 0.2
"""Share of the cells that are held out."""
MIN_CELLS, MIN_MODELS = 3, 4
MAX_UNDEFINED_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class HoldoutEstimate:
    """A figure with its 95% interval over models; `reason` says why something is None."""

    value: float | None
    n: int
    ci_low: float | None = None
    ci_high: float | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class PeerHoldout:
    """What peers foretell.

    Attributes:
        models, splits: models with all that is needed, and splits in which a correlation is defined.
        unseen_cells: mean over splits of the correlation over models of peer agreement on 80% of the cells with r
            against people on the others; n counts models. Its interval is Fisher's for so many models: splits are of
            the same models, and many of them do not make up for few.
        error, error_of_mean: of a left-out model's r, as the line through the others foretells it from its peers, and
            as their mean does; n counts models.
        gain: the second less the first, paired by model; above 0 where peers foretell something.
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
    """Split the cells 80 to 20 many times, and leave out each model in turn.

    Args:
        valid, given: shape (models, cells): verdicts VALID on a model's traces on a cell, and all verdicts.
        scores: shape (models, cells), nan where a model has none.
        truth: shape (cells,), what people say; nan where they were not asked.
        splits, seed: of the cells.

    Raises:
        ValueError: shapes do not fit, or more VALID than given.
    """
    v, g, s = (np.asarray(a, dtype=np.float64) for a in (valid_counts, verdict_counts, scores))
    t = np.asarray(truth, dtype=np.float64)
    if not v.shape == g.shape == s.shape or t.shape != s.shape[1:] or np.any(v > g):
        raise ValueError("tables must be (models, cells) alike, truth (cells,), and no more VALID than given")
    asked = ~np.isnan(t)
    v, g, s, t = v[:, asked], g[:, asked], s[:, asked], t[asked]
    kept = (g.sum(axis=1) > 0) & ((~np.isnan(s)).sum(axis=1) >= MIN_CELLS)
    v, g, s = v[kept], g[kept], s[kept]
    n = len(v)
    if n < MIN_MODELS:
        none = HoldoutEstimate(None, n, reason=f"fewer than {MIN_MODELS} models with verdicts and scores ({n})")
        return PeerHoldout(n, 0, none, none, none, none)
    known = _split_correlations(v, g, s, t, n_splits, seed)
    return PeerHoldout(n, len(known), _mean_correlation(known, n_splits, n), *_leave_one_model_out(v, g, s, t))


def _split_correlations(
    valid_counts: Floats, verdict_counts: Floats, scores: Floats, truth: Floats, n_splits: int, seed: int
) -> Floats:
    """The correlation of each split in which it is defined."""
    rng = np.random.default_rng(seed)
    cells = scores.shape[1]
    held = max(MIN_CELLS, round(HOLDOUT_SHARE * cells))
    found = []
    for _ in range(n_splits if held < cells else 0):
        unseen = np.zeros(cells, dtype=np.bool_)
        unseen[rng.choice(cells, held, replace=False)] = True
        r = pearson(
            _peer_agreement_rates(valid_counts[:, ~unseen], verdict_counts[:, ~unseen]),
            _human_correlations(scores[:, unseen], truth[unseen]),
        ).r
        if r is not None:
            found.append(r)
    return np.array(found)


def _peer_agreement_rates(valid_counts: Floats, verdict_counts: Floats) -> Floats:
    n = verdict_counts.sum(axis=1)
    return np.where(n > 0, valid_counts.sum(axis=1) / np.maximum(n, 1), np.nan)


def _human_correlations(scores: Floats, truth: Floats) -> Floats:
    return np.array([np.nan if (r := pearson(row, truth).r) is None else r for row in scores])


def _mean_correlation(correlations: Floats, n_splits: int, n_models: int) -> HoldoutEstimate:
    if len(correlations) < MAX_UNDEFINED_SHARE * n_splits or not len(correlations):
        return HoldoutEstimate(
            None, n_models, reason="too few splits have a correlation: too few cells, or models too alike"
        )
    value = float(correlations.mean())
    if 1 - abs(value) < 1e-12:
        return HoldoutEstimate(value, n_models, reason="|r| = 1: no interval")
    half = Z_95 / sqrt(n_models - 3)
    z = np.arctanh(value)
    return HoldoutEstimate(value, n_models, float(np.tanh(z - half)), float(np.tanh(z + half)))


def _leave_one_model_out(
    valid_counts: Floats, verdict_counts: Floats, scores: Floats, truth: Floats
) -> tuple[HoldoutEstimate, HoldoutEstimate, HoldoutEstimate]:
    """Errors of both forecasts of each model's r from the other models, and what peers gain."""
    x, y = _peer_agreement_rates(valid_counts, verdict_counts), _human_correlations(scores, truth)
    known = ~np.isnan(x) & ~np.isnan(y)
    x, y = x[known], y[known]
    if len(x) < MIN_MODELS:
        none = HoldoutEstimate(None, len(x), reason=f"fewer than {MIN_MODELS} models whose r is defined ({len(x)})")
        return none, none, none
    line, mean = np.empty(len(x)), np.empty(len(x))
    for i in range(len(x)):
        a, b = np.delete(x, i), np.delete(y, i)
        spread = ((a - a.mean()) ** 2).sum()
        slope = ((a - a.mean()) * (b - b.mean())).sum() / spread if spread > 1e-12 else 0.0
        line[i] = abs(b.mean() + slope * (x[i] - a.mean()) - y[i])
        mean[i] = abs(b.mean() - y[i])
    return _mean_estimate(line, 0.0), _mean_estimate(mean, 0.0), _mean_estimate(mean - line)


def _mean_estimate(values: Floats, lower_bound: float = -np.inf) -> HoldoutEstimate:
    """Student's interval, cut at the least value that there can be."""
    n, value = len(values), float(values.mean())
    error = float(values.std(ddof=1)) / sqrt(n)
    if error == 0:
        return HoldoutEstimate(value, n, reason="the same for every model: no interval")
    half = float(stdtrit(n - 1, 0.975)) * error
    return HoldoutEstimate(value, n, max(value - half, lower_bound), value + half)
