"""Means of people's labels over all traces, of which people labelled a random sample and judges all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import hypot, inf, isfinite, sqrt
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics.intervals.estimate import NORMAL_QUANTILE, UPPER_QUANTILE, Estimate, Floats, is_constant
from auditor.metrics.intervals.special_functions import stdtrit
from auditor.metrics.intervals.unit_means import Labels, mean_over_units
from auditor.metrics.labels.labelled_traces import (
    EQUAL_REASON,
    THESE_TRACES,
    LabelledTraces,
    design_based_share,
    read_sample,
    student_estimate,
)

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


Target = Literal["finite", "super"]


def prediction_powered_mean(
    judge: ArrayLike,
    labels: ArrayLike,
    *,
    inclusion: ArrayLike | None = None,
    strata: ArrayLike | None = None,
    clusters: Labels | None = None,
    target: Target = "finite",
    bounds: tuple[float, float] = (-inf, inf),
) -> Estimate:
    """Estimate the mean of people's labels over all traces from a labelled sample and a judge's values.

    Args:
        judge: shape (traces,), the judge's verdicts or probabilities, on the scale of the labels.
        labels: shape (traces,); nan where a trace is not labelled. The labelled traces are a random sample.
        inclusion: shape (traces,), probability of each labelled trace to be in the sample, in (0, 1]; unlabelled
            traces may have nan. By default equal within a stratum.
        strata: shape (traces,), the stratum from which each trace was drawn.
        clusters: for each of one or two kinds of units, such as `country`, the unit of each trace, shape (traces,).
            Used by "super" only: how a sample was drawn does not depend on them.
        target: "finite" is the mean over these traces, "super" that over other traces, or over other units of
            `clusters`, like these.
        bounds: smallest and largest possible value of judge and labels, such as (0, 1) for verdicts.

    Returns:
        `n` counts labels. The interval is of 95%:

        - "finite": Student's with Σ(n_h - 1) degrees of freedom, one less where λ is estimated, with the design
          variance and the finite population correction. It is the value itself if every trace is labelled. With bounds
          it is at least as wide as the judge's errors in both directions require, of which few labels may show none.
        - "super": without strata and with equal inclusion that of `ppi_py.ppi_mean_ci`, which is normal: labelled
          traces are left out of the mean of the unlabelled. Else Student's, with the design variance plus that of
          the mean of all traces.
        - "super" with clusters: as for `intervals.jackknife_interval`, with at least 5 units of each kind.

        No value, with a reason, without labels in a stratum. No interval with one label in a stratum, or if the labels
        show no variation.

    Raises:
        ValueError: shapes differ, a value of the judge is missing, a value is infinite, an inclusion probability is out
            of its range, or the target is unknown; or a value is outside the bounds.
    """
    if target not in ("finite", "super"):
        raise ValueError(f"target must be 'finite' or 'super', but is {target!r}")
    if clusters is not None and not isinstance(clusters, Mapping):
        raise ValueError("clusters must map each kind of unit, such as 'country', to the unit of each trace")
    sample = read_sample(judge, labels, inclusion, strata)
    _check_bounds(sample, bounds)
    reason = sample.reason_against_value()
    if reason is not None:
        return Estimate(None, sample.n, reason=reason)
    if target == "finite":
        return _clip(_estimate_these_traces(sample, bounds), bounds)
    factor = _tune_factor(sample)
    if clusters:
        contributions = mean_over_units(_contributions(sample, factor), clusters, (-inf, inf))
        return _clip(replace(contributions, n=sample.n), bounds)
    return _clip(_estimate_other_traces(sample, factor), bounds)


def _check_bounds(sample: LabelledTraces, bounds: tuple[float, float]) -> None:
    """Raise ValueError for a value outside the bounds."""
    values = np.concatenate([sample.judge, sample.labels])
    if len(values) and (values.min() < bounds[0] or values.max() > bounds[1]):
        raise ValueError(f"judge and labels must be from {bounds[0]} to {bounds[1]}")


def _clip(estimate: Estimate, bounds: tuple[float, float]) -> Estimate:
    """Clip an estimate and its interval to the bounds."""
    figures = (estimate.value, estimate.ci_low, estimate.ci_high)
    value, low, high = (None if figure is None else min(max(figure, bounds[0]), bounds[1]) for figure in figures)
    return replace(estimate, value=value, ci_low=low, ci_high=high)


def _estimate_these_traces(sample: LabelledTraces, bounds: tuple[float, float]) -> Estimate:
    """The regression estimator, with Student's interval or, between bounds, one that is at least as wide."""
    factor = _tune_finite_factor(sample)
    residuals = sample.labels - factor * sample.labelled_judge
    value = float(factor * sample.judge.mean() + (sample.weights * residuals).sum() / sample.size)
    n_estimated = int(0 < factor < 1)
    variance = sample.total_variance(residuals) / sample.size**2
    estimate = student_estimate(value, variance, sample, n_estimated=n_estimated)
    width = bounds[1] - bounds[0]
    if not isfinite(width) or sample.is_census or sample.reason_against_interval() is not None:
        return estimate
    below, above = min(
        (_distances_between_bounds(sample, factor, base, bounds) for base in _list_bases(sample, bounds)), key=sum
    )
    low, high = value - width * below, value + width * above
    if estimate.ci_low is not None and estimate.ci_high is not None:
        low, high = min(low, estimate.ci_low), max(high, estimate.ci_high)
    return Estimate(value, sample.n, low, high, generalizes_to=THESE_TRACES)


def _tune_finite_factor(sample: LabelledTraces) -> float:
    """The factor λ of the judge for these traces: its regression coefficient within strata, limited to [0, 1].

    1 where the labels leave it open: all traces are labelled, or the judge does not vary in any stratum.
    """
    variance = 0.0 if sample.is_census or sample.df < 2 else sample.total_variance(sample.labelled_judge)
    if not variance > 0:
        return 1.0
    covariance = sample.total_covariance(sample.labels, sample.labelled_judge)
    return float(np.clip(covariance / variance, 0, 1))


def _list_bases(sample: LabelledTraces, bounds: tuple[float, float]) -> list[Floats]:
    """Bases that labels are compared with, shape (N,) each: the lower bound, the judge, and the bound next to it.

    The judge counts only where the errors vary no more than the labels: else it would narrow the interval by chance.
    """
    is_sampled = sample.is_labelled
    largest = sample.total_variance(sample.labels) * (1 + 1e-9)
    nearest = np.where(sample.judge > sum(bounds) / 2, bounds[1], bounds[0])
    helpful = [
        base for base in (nearest, sample.judge) if sample.total_variance(sample.labels - base[is_sampled]) <= largest
    ]
    return [np.full_like(sample.judge, bounds[0]), *helpful]


def _distances_between_bounds(
    sample: LabelledTraces, factor: float, base: Floats, bounds: tuple[float, float]
) -> tuple[float, float]:
    """Distances of the ends of an interval below and above the value, in widths of the bounds.

    The residual y - λ f is the error y - b of a base b, too low or too high, plus b - λ f. Each direction of errors has
    an interval as a share, and b - λ f Student's. The distances of ends from values are combined (Zou & Donner,
    Statistics in Medicine 27, 2008), which keeps the asymmetry of rare errors: both directions as independent, both
    terms with the correlation of their means (Zou, Psychological Methods 12, 2007).

    Args:
        base: shape (N,), see `_list_bases`.
    """
    width, labelled_base = bounds[1] - bounds[0], base[sample.is_labelled]
    errors, known = sample.labels - labelled_base, labelled_base - factor * sample.labelled_judge
    too_low, too_high = (
        _share_of_errors(sample, np.maximum(sign * errors, 0) / width, can_err)
        for sign, can_err in ((1, base < bounds[1]), (-1, base > bounds[0]))
    )
    error_below = hypot(too_low[0] - too_low[1], too_high[2] - too_high[0])
    error_above = hypot(too_low[2] - too_low[0], too_high[0] - too_high[1])
    known_error = sample.total_variance(known) ** 0.5
    if not known_error > 0:
        return error_below, error_above
    spread = sample.total_variance(errors) ** 0.5 * known_error
    correlation = sample.total_covariance(errors, known) / spread if spread > 0 else 0.0
    if not np.isin(base, bounds).all() or is_constant(base):
        correlation = max(correlation, 0.0)  # else both terms could cancel, and rare errors would be hidden
    of_known = float(stdtrit(sample.df, UPPER_QUANTILE)) * known_error / sample.size / width

    def combine(of_errors: float) -> float:
        return sqrt(max(of_errors**2 + of_known**2 + 2 * correlation * of_errors * of_known, 0.0))

    return combine(error_below), combine(error_above)


def _share_of_errors(sample: LabelledTraces, sizes: Floats, can_err: NDArray[np.bool_]) -> tuple[float, float, float]:
    """Mean size of errors in one direction, in [0, 1], with the ends of its interval as a share.

    Args:
        sizes: shape (n,), in [0, 1].
        can_err: shape (N,), whether a size above 0 is possible.
    """
    share = design_based_share(
        sample,
        sizes,
        np.ones_like(sizes),
        can_hit=can_err,
        can_miss=np.ones_like(sample.is_labelled),
        empty_reason=EQUAL_REASON,
    )
    return share.value or 0.0, share.ci_low or 0.0, share.ci_high or 0.0


def _is_simple(sample: LabelledTraces) -> bool:
    """Whether the labelled traces are a simple random sample of some, not all, of the traces."""
    return len(sample.stratum_sizes) == 1 and is_constant(sample.weights) and not sample.is_census


def _tune_factor(sample: LabelledTraces) -> float:
    """The factor λ of the judge's mean over all traces that minimizes the estimated variance over other traces.

    For a simple random sample of n of N traces it is λ of PPI++, in [0, 1], times N / (N - n), since the judge's mean
    is over all traces here, and there over the unlabelled ones: both give the same estimate.
    """
    judge = sample.labelled_judge
    if is_constant(sample.judge):
        return 0.0
    if _is_simple(sample):
        n, n_unlabelled = sample.n, sample.size - sample.n
        covariance = float(((sample.labels - sample.labels.mean()) * (judge - judge.mean())).mean())
        tuned = covariance / ((1 + n / n_unlabelled) * float(sample.judge.var(ddof=1)))
        return float(np.clip(tuned, 0, 1)) * sample.size / n_unlabelled
    variance = sample.total_variance(judge)
    return float(np.clip(sample.total_covariance(sample.labels, judge) / variance, 0, 1)) if variance > 0 else 0.0


def _contributions(sample: LabelledTraces, factor: float) -> Floats:
    """What each trace adds to the estimate, shape (traces,); their mean is the estimate.

    u_i = λ f_i + r_h + w_i (r_i - r_h), with r_i = y_i - λ f_i, its mean r_h in the stratum, and w_i = 0 where a trace
    is not labelled: the linearized form, since the weights depend on the number of labels of a stratum.
    """
    residuals = sample.labels - factor * sample.labelled_judge
    contributions = factor * sample.judge + sample.stratum_means(residuals)[sample.strata]
    contributions[sample.is_labelled] += sample.weights * sample.deviations(residuals)
    return contributions


def _estimate_other_traces(sample: LabelledTraces, factor: float) -> Estimate:
    """The mean over other traces like these, which are independent of each other."""
    value = float(_contributions(sample, factor).mean())
    residuals = sample.labels - factor * sample.labelled_judge
    if sample.n < 2 or sample.reason_against_interval() is not None:
        return Estimate(value, sample.n, reason=sample.reason_against_interval() or "an interval needs 2 labels")
    if _is_simple(sample):
        unlabelled = sample.judge[~sample.is_labelled]
        tuned = factor * len(unlabelled) / sample.size
        residuals = sample.labels - tuned * sample.labelled_judge
        variance = tuned**2 * unlabelled.var() / len(unlabelled) + residuals.var() / sample.n
        quantile = NORMAL_QUANTILE
    else:
        deviations = sample.labels - np.average(sample.labels, weights=sample.weights)
        variance = (
            sample.total_variance(residuals) / sample.size**2
            + (float(np.average(deviations**2, weights=sample.weights)) * sample.n / (sample.n - 1)) / sample.size
        )
        quantile = float(stdtrit(sample.df or sample.n - 1, UPPER_QUANTILE))
    if variance <= 0:
        return Estimate(value, sample.n, reason=EQUAL_REASON)
    half_width = quantile * float(variance) ** 0.5
    return Estimate(value, sample.n, value - half_width, value + half_width, resampled=("trace",))
