"""Scores brought onto people's scale, with the error that this leaves on ratings it has not seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import isotonic_regression

from auditor.metrics._complete_cases import Floats, complete_cases, is_constant
from auditor.metrics.error import IntervalEstimate, bias, mae

MIN_RATINGS = 30
"""A monotone curve through fewer points follows their noise."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """A rising curve from scores to people's ratings; `reason` says why there is none.

    Attributes:
        knots, values: shape (points,), both rising; empty when there is no curve.
        error_before, error_after: mean absolute error of the scores as they are, and of the curve on held-out ratings.
        gain: error_before - error_after, pair by pair: the curve helps when its interval lies above 0.
    """

    knots: Floats
    values: Floats
    error_before: IntervalEstimate
    error_after: IntervalEstimate
    gain: IntervalEstimate
    n: int
    n_dropped: int
    reason: str | None = None

    def predict(self, scores: ArrayLike) -> Floats:
        """Calibrated scores, of the same shape: linear between knots, flat beyond them; nan stays nan.

        Raises:
            ValueError: there is no curve; the message gives the reason.
        """
        if self.reason is not None:
            raise ValueError(f"there is no calibration to apply: {self.reason}")
        return _interpolate(self.knots, self.values, np.asarray(scores, dtype=np.float64))


def calibrate(
    scores: ArrayLike, ratings: ArrayLike, *, groups: ArrayLike | None = None, folds: int = 5, seed: int = 0
) -> Calibration:
    """Isotonic regression of people's ratings on scores (Zadrozny and Elkan, KDD 2002, 694-699).

    The error afterwards is cross-validated: each rating is compared with a curve fitted without its fold.

    Args:
        scores: shape (n,), what is to be calibrated.
        ratings: shape (n,), what people said, on the scale that is wanted. Pairs with a nan are dropped and counted.
        groups: shape (n,), integers: pairs of one group are never on both sides of a split. None: each is its own.
        folds: parts of the cross-validation, from 2 to 30.
        seed: of the split into folds.

    Returns:
        No curve, with a reason, for fewer than 30 pairs, for fewer groups than folds, or when all scores or all ratings
        are equal.

    Raises:
        ValueError: shapes differ, a value is infinite, or folds are out of range.
    """
    if not 2 <= folds <= MIN_RATINGS:
        raise ValueError(f"folds must be from 2 to {MIN_RATINGS}, but got {folds!r}")
    (x, y), keep = complete_cases(scores, ratings)
    dropped = int((~keep).sum())
    before = mae(x, y)
    of = np.arange(len(keep)) if groups is None else np.asarray(groups)
    if of.shape != keep.shape:
        raise ValueError(f"groups must have the shape of scores, {keep.shape}, but have {of.shape}")
    group = np.unique(of[keep], return_inverse=True)[1]
    reason = _undefined_reason(x, y) or _too_few_groups_reason(group, folds)
    if reason is not None:
        unknown = IntervalEstimate(None, len(x), 0, None, None, reason)
        return Calibration(np.empty(0), np.empty(0), before, unknown, unknown, len(x), dropped, reason)
    unseen = _cross_validated_predictions(x, y, group, folds, np.random.default_rng(seed))
    knots, values = _fit_isotonic(x, y)
    gain = bias(np.abs(x - y), np.abs(unseen - y))
    return Calibration(knots, values, before, mae(unseen, y), gain, len(x), dropped)


def _undefined_reason(x: Floats, y: Floats) -> str | None:
    if len(x) < MIN_RATINGS:
        return f"calibration needs {MIN_RATINGS} ratings, but there are {len(x)}"
    flat = [name for name, side in (("scores", x), ("ratings", y)) if is_constant(side)]
    return f"all {' and all '.join(flat)} are equal" if flat else None


def _too_few_groups_reason(group: NDArray[np.intp], folds: int) -> str | None:
    n = int(group.max()) + 1
    return f"calibration needs {folds} separate groups of ratings, but there are {n}" if n < folds else None


def _cross_validated_predictions(
    x: Floats, y: Floats, group: NDArray[np.intp], folds: int, rng: np.random.Generator
) -> Floats:
    fold = rng.permutation(np.arange(group.max() + 1) % folds)[group]
    unseen = np.empty_like(x)
    for i in range(folds):
        unseen[fold == i] = _interpolate(*_fit_isotonic(x[fold != i], y[fold != i]), x[fold == i])
    return unseen


def _fit_isotonic(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Knots and values; scores that are equal share one knot, at the mean of their ratings."""
    knots, place, counts = np.unique(x, return_inverse=True, return_counts=True)
    means = np.bincount(place, weights=y) / counts
    values: Floats = isotonic_regression(means, weights=counts).x
    return knots, values


def _interpolate(knots: Floats, values: Floats, scores: Floats) -> Floats:
    curve: Floats = np.interp(scores, knots, values)
    return curve
