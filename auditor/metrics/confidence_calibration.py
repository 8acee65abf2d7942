"""Whether a judge that says 80% is right in 80% of the cases, from a random sample that people labelled.

The expected calibration error (ECE) is the mean over bins of |share - mean probability|, weighted by the bins' cases
(Naeini, Cooper & Hauskrecht, AAAI 2015; Guo et al., ICML 2017). It is above 0 by chance even under perfect calibration,
so its distribution there is simulated: labels are drawn with the judge's own probabilities (Bröcker & Smith, Weather
and Forecasting 22, 2007).

Slope and intercept are those of a logistic regression of the labels on the log-odds of the probability (Cox, Biometrika
45, 1958): 1 and 0 under perfect calibration. A slope below 1 is overconfidence. The intercept is that at slope 1, above
0 where the probabilities are too low (Van Calster et al., BMC Medicine 17, 2019).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics._complete_cases import Floats, is_constant
from auditor.metrics._labelled_traces import LabelledTraces, read_sample, student_estimate
from auditor.metrics._special import expit, logit
from auditor.metrics.confidence import LOWER_QUANTILE, UPPER_QUANTILE
from auditor.metrics.estimate import Estimate

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
