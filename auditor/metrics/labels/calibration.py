"""Calibration of scores to people's ratings, and of judges' stated confidence to their accuracy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics.intervals.estimate import (
    LOWER_QUANTILE,
    UPPER_QUANTILE,
    Estimate,
    Floats,
    complete_cases,
    is_constant,
)
from auditor.metrics.intervals.jackknife_interval import Labels
from auditor.metrics.intervals.special_functions import expit, logit
from auditor.metrics.intervals.unit_means import mean_over_units
from auditor.metrics.labels.labelled_traces import LabelledTraces, read_sample, student_estimate

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


MIN_LABELS = 30
"""Fewest labels for these figures, as for `calibrate`."""
MIN_PROBABILITY = 0.005
"""Probabilities closer to 0 or 1 are taken as this far from it in the regression, where their log-odds are infinite."""
ROUNDING_ERROR = 1e-9
"""Probabilities this close below the end of a bin belong to the bin above."""
MAX_ITERATIONS = 50
MAX_COEFFICIENT = 50.0
"""A coefficient beyond it does not exist: the labels are separated by the probability."""
SEPARATED_REASON = "the labels are 1 above a probability and 0 below it, or all equal: the regression has no solution"
CONSTANT_REASON = "all probabilities are equal: no slope"


def _published_names(names: dict[str, str]) -> dict[str, object]:
    """How pydantic serializes a class whose attributes have other names in JSON; this module does not import it."""
    return {"alias_generator": lambda name: names.get(name, name), "serialize_by_alias": True, "allow_inf_nan": False}


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """A bin of the reliability diagram."""

    __pydantic_config__: ClassVar[dict[str, object]] = _published_names(
        {"n": "labels", "mean_probability": "mean_confidence", "share": "share_right"}
    )

    low: float
    high: float
    """Ends of the bin, in [0, 1]; the last one contains 1."""
    n: int
    """Number of labels in it."""
    mean_probability: float
    """Weighted mean of the probabilities."""
    share: float
    """Weighted share of labels that are 1, such as verdicts that people agree with."""
    band_low: float
    band_high: float
    """95% of these shares under perfect calibration."""


@dataclass(frozen=True, slots=True)
class ConfidenceCalibration:
    """Calibration of probabilities; figures are None, with a reason, where there are none."""

    __pydantic_config__: ClassVar[dict[str, object]] = _published_names({"n": "labels"})

    error: float | None
    """Expected calibration error, in [0, 1]; lower is better. It is above 0 by chance: compare it with the band."""
    error_if_calibrated: float | None
    """Its mean under perfect calibration, with as many labels."""
    error_band_low: float | None
    error_band_high: float | None
    """95% of its values under perfect calibration."""
    p_value: float | None
    """Of perfect calibration: share of simulations with an error at least as large."""
    slope: Estimate
    """1 under perfect calibration; below 1 the probabilities are too extreme. The interval is for these traces."""
    intercept: Estimate
    """0 under perfect calibration; above 0 the probabilities are too low."""
    bins: tuple[ReliabilityBin, ...]
    """Those with a label."""
    n: int
    """Number of labels."""
    reason: str | None = None


def confidence_calibration_error(
    probabilities: ArrayLike,
    labels: ArrayLike,
    *,
    inclusion: ArrayLike | None = None,
    strata: ArrayLike | None = None,
    n_bins: int = 10,
    n_resamples: int = 2000,
    seed: int = 0,
) -> ConfidenceCalibration:
    """Measure the calibration of a judge's probabilities over all traces from a labelled random sample.

    Args:
        probabilities: shape (traces,), in [0, 1], that the label is 1: that a trace is VALID, or that the verdict is
            right.
        labels: shape (traces,), in [0, 1]; nan where a trace is not labelled. A share of raters that say 1 is the
            label of a random one of them; the band is that of single raters, so it is wider than needed.
        inclusion, strata: as for `prediction_powered_mean`.
        n_bins: number of bins of equal width, from 2 to 100.
        n_resamples: number of simulations of perfect calibration.
        seed: of the simulations.

    Returns:
        No figures, with a reason, for fewer than 30 labels or without labels in a stratum. No slope if all
        probabilities are equal; no slope or intercept if the labels are separated by them.

    Raises:
        ValueError: as for `prediction_powered_mean`; a probability is not in [0, 1], a label is not, or
            n_bins or n_resamples is out of its range.
    """
    sample = read_sample(probabilities, labels, inclusion, strata)
    if ((sample.judge < 0) | (sample.judge > 1)).any() or ((sample.labels < 0) | (sample.labels > 1)).any():
        raise ValueError("probabilities and labels must be from 0 to 1")
    if not 2 <= n_bins <= 100 or n_resamples < 1:
        raise ValueError(f"n_bins must be from 2 to 100 and n_resamples above 0, but got {n_bins} and {n_resamples}")
    reason = sample.reason_against_value()
    if sample.n < MIN_LABELS:
        reason = f"calibration needs {MIN_LABELS} labels, but there are {sample.n}"
    if reason is not None:
        undefined = Estimate(None, sample.n, reason=reason)
        return ConfidenceCalibration(None, None, None, None, None, undefined, undefined, (), sample.n, reason)
    probability = sample.labelled_judge
    bin_index = np.minimum((probability * n_bins + ROUNDING_ERROR).astype(np.intp), n_bins - 1)
    used, bin_rows = np.unique(bin_index, return_inverse=True)
    membership = (np.arange(len(used))[:, None] == bin_rows) * sample.weights  # shape (bins, n)
    totals = membership.sum(axis=1)
    shares, means = membership @ sample.labels / totals, membership @ probability / totals
    error = float(np.abs(shares - means) @ totals / totals.sum())
    simulated_shares = _simulate_shares(probability, membership / totals[:, None], n_resamples, seed)
    simulated_errors = np.abs(simulated_shares - means) @ totals / totals.sum()
    bands = np.quantile(simulated_shares, (LOWER_QUANTILE, UPPER_QUANTILE), axis=0)
    low, high = (float(end) for end in np.quantile(simulated_errors, (LOWER_QUANTILE, UPPER_QUANTILE)))
    bins = tuple(
        ReliabilityBin(b / n_bins, (b + 1) / n_bins, int((bin_index == b).sum()), *(float(v) for v in row))
        for b, row in zip(used.tolist(), zip(means, shares, *bands, strict=True), strict=True)
    )
    p_value = float((1 + (simulated_errors >= error - 1e-12).sum()) / (1 + n_resamples))
    slope, intercept = _fit_slope(sample), _fit_intercept(sample)
    return ConfidenceCalibration(
        error, float(simulated_errors.mean()), low, high, p_value, slope, intercept, bins, sample.n
    )


def _simulate_shares(probability: Floats, weights: Floats, n_resamples: int, seed: int) -> Floats:
    """Shares of 1 in each bin under perfect calibration, shape (n_resamples, bins)."""
    rng = np.random.default_rng(seed)
    draws = rng.random((n_resamples, len(probability))) < probability
    shares: Floats = draws @ weights.T
    return shares


def _fit_slope(sample: LabelledTraces) -> Estimate:
    """The slope of the labels on the log-odds of the probability."""
    log_odds = _log_odds(sample)
    if is_constant(log_odds):
        return Estimate(None, sample.n, reason=CONSTANT_REASON)
    return _fit_logistic(sample, np.stack([log_odds, np.ones_like(log_odds)], axis=1), np.zeros_like(log_odds))


def _fit_intercept(sample: LabelledTraces) -> Estimate:
    """The intercept at slope 1."""
    log_odds = _log_odds(sample)
    return _fit_logistic(sample, np.ones((sample.n, 1)), log_odds)


def _log_odds(sample: LabelledTraces) -> Floats:
    """Log-odds of the probabilities of the labelled traces."""
    log_odds: Floats = logit(np.clip(sample.labelled_judge, MIN_PROBABILITY, 1 - MIN_PROBABILITY))
    return log_odds


def _fit_logistic(sample: LabelledTraces, predictors: NDArray[np.float64], offset: Floats) -> Estimate:
    """First coefficient of a weighted logistic regression by Newton's method.

    The variance is that of Binder (International Statistical Review 51, 1983): the design variance of the weighted
    total of each trace's influence on the coefficient.
    """
    coefficients = np.zeros(predictors.shape[1])
    for _ in range(MAX_ITERATIONS):
        fitted = expit(predictors @ coefficients + offset)
        scores = predictors * (sample.labels - fitted)[:, None]
        information = (predictors * (sample.weights * fitted * (1 - fitted))[:, None]).T @ predictors
        if np.linalg.cond(information) > 1e12 or not information.any():
            return Estimate(None, sample.n, reason=SEPARATED_REASON)
        step = np.linalg.solve(information, sample.weights @ scores)
        if np.abs(step).max() < 1e-10:
            influence = scores @ np.linalg.inv(information)[0]
            return student_estimate(float(coefficients[0]), sample.total_variance(influence), sample)
        coefficients = coefficients + step
        if np.abs(coefficients).max() > MAX_COEFFICIENT:
            break
    return Estimate(None, sample.n, reason=SEPARATED_REASON)
