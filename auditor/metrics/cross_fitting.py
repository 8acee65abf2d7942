"""Predictions of people's labels from a judge's votes and confidence, learnt on other labels than those corrected.

Each label is predicted by a regression that has not seen it, so the residuals are as large as on traces without a label
(Zrnic & Candès, PNAS 121, 2024, "Cross-prediction-powered inference"). A correction by these residuals has an interval
that contains the uncertainty of what was learnt.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics._complete_cases import Floats

DEFAULT_FOLDS = 5
RIDGE = 1.0
"""Penalty of standardized coefficients: as much as one label, so that predictors without variation do no harm."""


def cross_fit_predictions(
    features: ArrayLike,
    labels: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    n_folds: int = DEFAULT_FOLDS,
    seed: int = 0,
) -> Floats:
    """Predict labels by ridge regression, each labelled trace by a fit on the other folds.

    Args:
        features: shape (traces, features), known of all traces.
        labels: shape (traces,), in [0, 1]; nan where a trace is not labelled.
        weights: shape (traces,), of the labelled traces, such as 1 / inclusion probability; by default equal.
        n_folds: number of folds of the labelled traces, at least 2.
        seed: of the division into folds.

    Returns:
        Shape (traces,), in [0, 1]. A trace without a label has the mean of the predictions of all folds.

    Raises:
        ValueError: shapes differ, a feature is not finite, or there are fewer labels than folds.
    """
    x, y = np.asarray(features, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    w = np.ones_like(y) if weights is None else np.asarray(weights, dtype=np.float64)
    if x.ndim != 2 or y.shape != x.shape[:1] or w.shape != y.shape:
        raise ValueError(
            f"features must have the shape (traces, features), labels and weights (traces,), but they have {x.shape}, "
            f"{y.shape} and {w.shape}"
        )
    if not np.isfinite(x).all():
        raise ValueError("features must be finite")
    labelled = np.nonzero(~np.isnan(y))[0]
    if not 2 <= n_folds <= len(labelled):
        raise ValueError(f"n_folds must be from 2 to the number of labels, {len(labelled)}, but is {n_folds}")
    folds = np.random.default_rng(seed).permutation(len(labelled)) % n_folds
    sd = x.std(axis=0)
    standardized = (x - x.mean(axis=0)) / np.where(sd > 0, sd, 1.0)
    by_fold = np.empty((n_folds, len(y)))
    for fold in range(n_folds):
        rows = labelled[folds != fold]
        by_fold[fold] = _predict(standardized, standardized[rows], y[rows], w[rows])
    predictions: Floats = by_fold.mean(axis=0)
    predictions[labelled] = by_fold[folds, labelled]
    return np.clip(predictions, 0.0, 1.0)


def _predict(x: Floats, x_fit: Floats, y_fit: Floats, weights: Floats) -> Floats:
    """Predictions at x of a weighted ridge regression with an unpenalized intercept; weights are scaled to mean 1."""
    scaled = weights / weights.mean()
    centre, mean = np.average(x_fit, axis=0, weights=scaled), float(np.average(y_fit, weights=scaled))
    deviations = x_fit - centre
    information = (deviations * scaled[:, None]).T @ deviations + RIDGE * np.eye(x.shape[1])
    coefficients = np.linalg.solve(information, deviations.T @ (scaled * (y_fit - mean)))
    predictions: Floats = mean + (x - centre) @ coefficients
    return predictions
