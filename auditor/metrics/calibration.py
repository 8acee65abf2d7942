"""Calibration of scores to the scale of human ratings, with the cross-validated error that remains."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics._complete_cases import Floats, complete_cases, is_constant
from auditor.metrics._unit_counts import Labels
from auditor.metrics.estimate import Estimate
from auditor.metrics.unit_means import mean_over_units

MIN_RATINGS = 30
"""Fewest pairs of score and rating for a curve: a monotone curve through fewer points follows their noise."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """A non-decreasing curve from scores to human ratings; `reason` says why there is none.

    Attributes:
        knots, values: shape (points,): knots increase, values do not decrease; empty when there is no curve.
        error_before, error_after: mean absolute error of the uncalibrated scores, and of the curve on held-out ratings.
        gain: error_before - error_after, paired: the curve helps when the interval lies above 0.
    """

    knots: Floats
    values: Floats
    error_before: Estimate
    error_after: Estimate
    gain: Estimate
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
    scores: ArrayLike,
    ratings: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    units: Labels | None = None,
    folds: int = 5,
    seed: int = 0,
) -> Calibration:
    """Isotonic regression of human ratings on scores (Zadrozny and Elkan, KDD 2002, 694-699).

    The error after calibration is cross-validated: each rating is compared with a curve fitted without its fold.

    Args:
        scores: shape (n,), the scores to calibrate.
        ratings: shape (n,), human ratings, on the target scale. Pairs with a nan are dropped and counted.
        groups: shape (n,), integers: pairs of one group are never on both sides of a split. By default each pair is a
            group.
        units: what the intervals of the errors are over: for each kind of unit, such as `country`, the unit of each
            pair, shape (n,). By default each pair is a unit.
        folds: number of folds of the cross-validation, from 2 to 30.
        seed: of the split into folds.

    Returns:
        No curve, with a reason, for fewer than 30 pairs, for fewer groups than folds, or when all scores or all ratings
        are equal.

    Raises:
        ValueError: shapes differ, a value is infinite, or folds are out of range.
    """
    if not 2 <= folds <= MIN_RATINGS:
        raise ValueError(f"folds must be from 2 to {MIN_RATINGS}, but got {folds!r}")
    (x, y), is_complete = complete_cases(scores, ratings)
    n_dropped = int((~is_complete).sum())
    pair_units: Labels = {"pair": np.arange(len(is_complete))} if units is None else units
    used_units = {unit: np.asarray(labels)[is_complete] for unit, labels in pair_units.items()}

    def mean(errors: Floats, lower_bound: float = 0.0) -> Estimate:
        """Mean of one error per pair, with an interval over units."""
        return mean_over_units(errors, used_units, (lower_bound, np.inf), empty_reason="no pair")

    error_before = mean(np.abs(x - y))
    group_index = _number_groups(groups, is_complete)
    reason = _undefined_reason(x, y) or _too_few_groups_reason(group_index, folds)
    if reason is not None:
        undefined = Estimate(None, len(x), reason=reason)
        return Calibration(np.empty(0), np.empty(0), error_before, undefined, undefined, len(x), n_dropped, reason)
    held_out_predictions = _cross_validated_predictions(x, y, group_index, folds, np.random.default_rng(seed))
    knots, values = _fit_isotonic(x, y)
    held_out_errors = np.abs(held_out_predictions - y)
    gain = mean(np.abs(x - y) - held_out_errors, -np.inf)
    return Calibration(knots, values, error_before, mean(held_out_errors), gain, len(x), n_dropped)


def _number_groups(groups: ArrayLike | None, is_complete: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Number of each complete pair's group; ValueError for labels of another shape."""
    group_labels = np.arange(len(is_complete)) if groups is None else np.asarray(groups)
    if group_labels.shape != is_complete.shape:
        raise ValueError(f"groups must have the shape of scores, {is_complete.shape}, but have {group_labels.shape}")
    return np.unique(group_labels[is_complete], return_inverse=True)[1]


def _undefined_reason(x: Floats, y: Floats) -> str | None:
    """Why there is no curve: too few ratings, or all scores or ratings are equal; None where there is one."""
    if len(x) < MIN_RATINGS:
        return f"calibration needs {MIN_RATINGS} ratings, but there are {len(x)}"
    constant_columns = [name for name, column in (("scores", x), ("ratings", y)) if is_constant(column)]
    return f"all {' and all '.join(constant_columns)} are equal" if constant_columns else None


def _too_few_groups_reason(group: NDArray[np.intp], folds: int) -> str | None:
    """Why the ratings cannot be split into folds; None where they can."""
    n_groups = int(group.max()) + 1
    return (
        f"calibration needs {folds} separate groups of ratings, but there are {n_groups}" if n_groups < folds else None
    )


def _cross_validated_predictions(
    x: Floats, y: Floats, group: NDArray[np.intp], folds: int, rng: np.random.Generator
) -> Floats:
    """Calibrated scores, shape (n,), each from a curve fitted without its fold; groups stay together."""
    fold = rng.permutation(np.arange(group.max() + 1) % folds)[group]
    predictions = np.empty_like(x)
    for i in range(folds):
        predictions[fold == i] = _interpolate(*_fit_isotonic(x[fold != i], y[fold != i]), x[fold == i])
    return predictions


def _fit_isotonic(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Knots and values of the isotonic curve; equal scores share one knot, at the mean of their ratings."""
    knots, knot_index, counts = np.unique(x, return_inverse=True, return_counts=True)
    means = np.bincount(knot_index, weights=y) / counts
    return knots, _pool_adjacent_violators(means, counts)


def _pool_adjacent_violators(means: Floats, weights: NDArray[np.intp]) -> Floats:
    """The closest non-decreasing values by weighted least squares: neighbours in the wrong order get their mean."""
    # Blocks of equal values: mean, weight, number of means in it.
    blocks: list[tuple[float, float, int]] = []
    for mean, weight, size in zip(means.tolist(), weights.tolist(), [1] * len(means), strict=True):
        while blocks and blocks[-1][0] >= mean:
            last_mean, last_weight, last_size = blocks.pop()
            mean = (last_weight * last_mean + weight * mean) / (last_weight + weight)
            weight, size = weight + last_weight, size + last_size
        blocks.append((mean, weight, size))
    return np.repeat([mean for mean, _, _ in blocks], [size for _, _, size in blocks])


def _interpolate(knots: Floats, values: Floats, scores: Floats) -> Floats:
    """The curve at the scores: linear between knots, constant beyond them; nan stays nan."""
    interpolated: Floats = np.interp(scores, knots, values)
    return interpolated
