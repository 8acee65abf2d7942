"""Agreement with people themselves, of whom a survey asked a sample: figures corrected for its sampling error.

The sampling error of people's scores makes MAE and RMSE larger, r and concordance smaller than they are against the
population, and no interval over countries and topics contains that bias.

- MAE: simulation extrapolation without simulation (Cook & Stefanski, J. of the American Statistical Association 89,
  1994): with more normal error the expected absolute difference is the mean of a folded normal variable (Leone, Nelson
  & Nottingham, Technometrics 3, 1961). A cubic through 0, 0.5, 1, 1.5 and 2 times the error variance is extrapolated to
  -1 times. It is linear in the cells, so the corrected MAE is a mean over cells, and has the interval of one.
- RMSE: the mean of the squared differences minus the squared standard errors.
- r and concordance: the mean squared standard error is subtracted from the variance of people's scores (Spearman's
  correction for attenuation, on people's side).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics._complete_cases import Floats, complete_cases
from auditor.metrics._special import ndtr
from auditor.metrics._two_way_table import UnitLabels, select_labels
from auditor.metrics.cell_statistics import MAE, TwoWayEstimate
from auditor.metrics.estimate import Estimate
from auditor.metrics.jackknife import jackknife_sums

ERROR_MULTIPLES = np.array([0.0, 0.5, 1.0, 1.5, 2.0])
"""Multiples of the error variance that is added, at which the extrapolation is fitted."""
EXTRAPOLATION_DEGREE = 3
NO_ERROR_REASON = "the sampling error of people’s scores is not known"
OVERCORRECTED_REASON = "the sampling error of people’s scores is larger than the figure, so it cannot be corrected"


@dataclass(frozen=True, slots=True)
class CorrectedAgreement:
    """Figures against the population that was surveyed, each with its interval; over the cells with a known error."""

    mae: Estimate
    rmse: Estimate
    pearson_r: Estimate
    concordance: Estimate


def correct_for_survey_error(
    scores: ArrayLike,
    truth: ArrayLike,
    standard_errors: ArrayLike,
    countries: ArrayLike | UnitLabels,
    topics: ArrayLike,
) -> CorrectedAgreement:
    """MAE, RMSE, r and Lin's concordance corrected for the sampling error of people's scores.

    The intervals are over other countries and topics, as those of `crossed_jackknife`. They hold if the standard errors
    are right: too small ones correct too little.

    Args:
        scores, truth: shape (n,), one value per cell.
        standard_errors: shape (n,), of `truth`, at least 0. Cells with a nan in any of the three are left out.
        countries, topics: shape (n,), labels of any kind.

    Returns:
        Estimates without a value, with a reason, where no error is known or the correction is larger than the figure.

    Raises:
        ValueError: shapes differ, a value is infinite, or a standard error is below 0.
    """
    (x, y, error), is_complete = complete_cases(scores, truth, standard_errors)
    if (error < 0).any():
        raise ValueError("standard errors must not be below 0")
    if not len(x):
        missing = TwoWayEstimate(None, 0, reason=NO_ERROR_REASON)
        return CorrectedAgreement(missing, missing, missing, missing)
    country, topic = (select_labels(labels, is_complete) for labels in (countries, topics))
    count, u, v = np.ones_like(x), x - y.mean(), y - y.mean()
    absolute = np.stack([count, extrapolate_absolute(x - y, error)], axis=1)
    squared = np.stack([count, (x - y) ** 2 - error**2], axis=1)
    products = np.stack([count, u, v, u * u, v * v, u * v, error**2], axis=1)
    return CorrectedAgreement(
        _clip(jackknife_sums(absolute, _mean, country, topic), lambda value: value),
        _clip(jackknife_sums(squared, _mean, country, topic), lambda value: value**0.5),
        _bound(jackknife_sums(products, _corrected_correlation, country, topic)),
        _bound(jackknife_sums(products, _corrected_concordance, country, topic)),
    )


def extrapolate_absolute(differences: ArrayLike, standard_errors: ArrayLike) -> Floats:
    """Absolute differences without the error of one side, shape (n,); single values may be below 0.

    Args:
        differences: shape (n,), scores minus people's scores.
        standard_errors: shape (n,), of people's scores, at least 0.
    """
    difference, error = (np.asarray(values, dtype=np.float64) for values in (differences, standard_errors))
    fit = np.linalg.pinv(np.vander(ERROR_MULTIPLES, EXTRAPOLATION_DEGREE + 1))
    weights = np.vander([-1.0], EXTRAPOLATION_DEGREE + 1)[0] @ fit
    corrected = np.zeros_like(difference)
    for weight, multiple in zip(weights, ERROR_MULTIPLES, strict=True):
        corrected += weight * _folded_mean(difference, multiple**0.5 * error)
    return corrected


def sampling_floor_of_mae(standard_errors: ArrayLike) -> float:
    """The MAE that is expected of a model that knows the population exactly: sqrt(2/π) times the mean standard error.

    A model with a clearly smaller MAE repeats this survey's sample, for example its published table.

    Returns:
        nan where no standard error is known; nan values are left out.
    """
    errors = np.asarray(standard_errors, dtype=np.float64)
    known = errors[~np.isnan(errors)]
    return float((2 / np.pi) ** 0.5 * known.mean()) if len(known) else float("nan")


def _folded_mean(mean: Floats, sd: Floats) -> Floats:
    """The mean of the absolute value of a normal variable; the absolute mean where the SD is 0."""
    safe_sd = np.where(sd > 0, sd, 1.0)
    z = mean / safe_sd
    folded = safe_sd * (2 / np.pi) ** 0.5 * np.exp(-(z**2) / 2) + mean * (1 - 2 * ndtr(-z))
    return np.where(sd > 0, folded, np.abs(mean))


def _mean(sums: Floats) -> Floats:
    """The mean from sums of counts and values; nan where nothing is counted."""
    return MAE.value(sums)


def _clip(estimate: TwoWayEstimate, transform: Callable[[float], float]) -> TwoWayEstimate:
    """An estimate whose value and ends are at least 0, transformed; its interval is made before that."""
    value, low, high = (
        None if end is None else transform(max(0.0, end)) for end in (estimate.value, estimate.ci_low, estimate.ci_high)
    )
    return replace(estimate, value=value, ci_low=low, ci_high=high)


def _bound(estimate: TwoWayEstimate) -> TwoWayEstimate:
    """A corrected correlation with ends in [-1, 1]; without a value if it is 1 or more.

    Its interval is symmetric: on Fisher's z that of a correlation near 1 is twice as wide as needed (docs/coverage.md).
    """
    if estimate.value is None or abs(estimate.value) >= 1:
        return TwoWayEstimate(None, estimate.n, reason=OVERCORRECTED_REASON)
    low, high = (None if end is None else min(1.0, max(-1.0, end)) for end in (estimate.ci_low, estimate.ci_high))
    return replace(estimate, ci_low=low, ci_high=high)


def _components(sums: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Variance of the scores, corrected variance of people's scores, covariance and bias, all with divisor n."""
    n = np.maximum(sums[:, 0], 2.0)
    mean_u, mean_v, uu, vv, uv, noise = sums[:, 1:].T / n
    return uu - mean_u**2, vv - mean_v**2 - noise * (n - 1) / n, uv - mean_u * mean_v, mean_u - mean_v


def _corrected_correlation(sums: Floats) -> Floats:
    """The corrected r, which may be above 1; nan where a side does not vary beyond its error."""
    variance, people_variance, covariance, _ = _components(sums)
    is_defined = (variance > 1e-12) & (people_variance > 1e-12)
    r = covariance / np.sqrt(np.where(is_defined, variance * people_variance, 1.0))
    return np.where(is_defined, r, np.nan)


def _corrected_concordance(sums: Floats) -> Floats:
    """The corrected concordance, which may be above 1; nan where people do not vary beyond their error."""
    variance, people_variance, covariance, bias = _components(sums)
    denominator = variance + people_variance + bias**2
    is_defined = (denominator > 1e-12) & (people_variance > 1e-12)
    concordance = 2 * covariance / np.where(is_defined, denominator, 1.0)
    return np.where(is_defined, concordance, np.nan)
