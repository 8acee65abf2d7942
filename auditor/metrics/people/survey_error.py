"""Figures corrected for the sampling error of people's scores, for noise of few samples, and for different ranges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics.intervals.estimate import Estimate, Floats, complete_cases, is_constant
from auditor.metrics.intervals.jackknife_interval import FISHER_Z, IDENTITY, LOG
from auditor.metrics.intervals.special_functions import ndtr
from auditor.metrics.intervals.two_way import (
    UnitLabels,
    build_two_way_table,
    jackknife_sums,
    replicate_statistics,
    select_labels,
    subtract_replicates,
    two_way_estimate,
)
from auditor.metrics.people.alignment import MAE, TwoWayEstimate

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
        corrected += weight * folded_mean(difference, multiple**0.5 * error)
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


def folded_mean(mean: Floats, sd: Floats) -> Floats:
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


MIN_CELLS = 4
ABOVE_ONE_REASON = "the corrected correlation is above 1, so the correction is not reliable"


@dataclass(frozen=True, slots=True)
class CorrectedCorrelation(Estimate):
    """A correlation without sampling noise, in [-1, 1]; `n` counts cells."""

    reliability: float | None = None
    """Share of the variance of the cells' means that is not noise, at most 1; None where unknown."""


def crossed_corrected(
    scores: ArrayLike,
    truth: ArrayLike,
    variances: ArrayLike,
    samples: ArrayLike,
    countries: ArrayLike | UnitLabels,
    topics: ArrayLike,
) -> CorrectedCorrelation:
    """Pearson's r of cell means with the truth, estimated for an unlimited number of samples a cell.

    Sampling that stops early when samples agree underestimates the noise, which makes the correction too small. The
    interval is over other countries and topics, as that of `crossed_jackknife`, on Fisher's z. It includes the
    uncertainty about the noise.

    Args:
        scores: shape (n,), means of the samples; a cell with a nan in scores or truth is left out.
        truth, countries, topics: shape (n,).
        variances: shape (n,), of the samples of a cell (n - 1 in the denominator); nan where there is one sample only,
            for which the pooled variance of the other cells is used.
        samples: shape (n,), number of samples of each cell.

    Returns:
        None with a reason for fewer than 4 cells, a constant side, no cell with two samples, no variance beyond the
        noise, or a corrected r of 1 or more.

    Raises:
        ValueError: shapes differ, or a value is infinite.
    """
    moments, is_complete, reason = _cell_moments(scores, truth, variances, samples)
    if moments is None:
        return CorrectedCorrelation(None, int(is_complete.sum()), reason=reason)
    reliability = float(_reliability(moments.sum(axis=0)[None])[0])
    country, topic = (select_labels(labels, is_complete) for labels in (countries, topics))
    z = jackknife_sums(moments, _corrected_fisher_z, country, topic)
    if z.value is None:
        reason = ABOVE_ONE_REASON if reliability > 0 else "no variance beyond sampling noise"
        return CorrectedCorrelation(None, z.n, reason=reason, reliability=reliability)
    low, high = (None if end is None else float(np.tanh(end)) for end in (z.ci_low, z.ci_high))
    return CorrectedCorrelation(float(np.tanh(z.value)), z.n, low, high, z.reason, z.resampled, reliability=reliability)


def _cell_moments(
    scores: ArrayLike, truth: ArrayLike, variances: ArrayLike, samples: ArrayLike
) -> tuple[Floats | None, NDArray[np.bool_], str | None]:
    """The moments that are summed over cells, shape (n, 7), the mask of complete cells, and a reason if there are none.

    Columns: 1, u, v, u², v², uv and the noise variance, u and v being standardized scores and truth.
    """
    (x, y), is_complete = complete_cases(scores, truth)
    variance, size = (np.asarray(column, dtype=np.float64) for column in (variances, samples))
    if variance.shape != is_complete.shape or size.shape != is_complete.shape:
        raise ValueError(f"variances and samples must have the shape {is_complete.shape}, as the scores have")
    variance, size = variance[is_complete], size[is_complete]
    if np.isinf(variance).any():
        raise ValueError("variances must be finite, or nan where there is one sample only, but one is infinite")
    if len(x) < MIN_CELLS:
        return None, is_complete, f"fewer than {MIN_CELLS} cells ({len(x)})"
    constant_sides = [name for name, side in (("x", x), ("y", y)) if is_constant(side)]
    if constant_sides:
        return None, is_complete, f"{' and '.join(constant_sides)} constant"
    has_variance = ~np.isnan(variance)
    if not has_variance.any():
        return None, is_complete, "no cell has two samples"
    pooled = np.average(variance[has_variance], weights=np.maximum(size[has_variance] - 1, 1))
    noise = np.where(has_variance, variance, pooled) / np.maximum(size, 1)
    score_scale = np.abs(x - x.mean()).max()
    u, v = (x - x.mean()) / score_scale, (y - y.mean()) / np.abs(y - y.mean()).max()
    return np.stack([np.ones_like(u), u, v, u * u, v * v, u * v, noise / score_scale**2], axis=1), is_complete, None


def _variance_components(sums: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Variance of the means, variance of the truth, their covariance, and the noise variance, all with divisor n.

    Args:
        sums: shape (replicates, 7), sums over cells of the columns of `_cell_moments`; column 0 is the number of cells.
    """
    n = np.maximum(sums[:, 0], 2.0)
    mean_u, mean_v, uu, vv, uv, noise = sums[:, 1:].T / n
    return uu - mean_u * mean_u, vv - mean_v * mean_v, uv - mean_u * mean_v, noise * (n - 1) / n


def _reliability(sums: Floats) -> Floats:
    """Share of the variance of the cells' means that is not noise; nan where the means do not vary."""
    variance, _, _, noise = _variance_components(sums)
    reliability: Floats = 1 - noise / np.where(variance > 1e-12, variance, np.nan)
    return reliability


def _corrected_fisher_z(sums: Floats) -> Floats:
    """Fisher's z of the corrected r; nan where r is undefined or 1 or more."""
    variance, truth_variance, covariance, noise = _variance_components(sums)
    noise_free_product = (variance - noise) * truth_variance
    r = covariance / np.sqrt(np.where(noise_free_product > 1e-12, noise_free_product, np.nan))
    z: Floats = np.arctanh(np.where(np.abs(r) < 1 - 1e-12, r, np.nan))
    return z


@dataclass(frozen=True, slots=True)
class GroupRegression:
    """The scores of one group of countries on people's scores.

    Attributes:
        corrected_r: r at the mean variance of people's scores in both groups, in [-1, 1].
        slope: change of the score for a change of people's score by 1.
        residual_sd: standard deviation of the scores around the regression line, with divisor n.
    """

    corrected_r: Estimate
    slope: Estimate
    residual_sd: Estimate


@dataclass(frozen=True, slots=True)
class RangeCorrection:
    """Both groups, and the gap of the corrected correlations: the second group minus the first."""

    first: GroupRegression
    second: GroupRegression
    gap: Estimate


def correct_range(r: ArrayLike, sd_ratio: ArrayLike) -> Floats:
    """r at another standard deviation of the variable on which cases were selected: Thorndike's case 2.

    Args:
        r: in [-1, 1].
        sd_ratio: standard deviation to which r is corrected, divided by that of the cases; above 0.
    """
    r, ratio = np.asarray(r, dtype=np.float64), np.asarray(sd_ratio, dtype=np.float64)
    corrected: Floats = r * ratio / np.sqrt(1 + r**2 * (ratio**2 - 1))
    return corrected


def range_corrected_gap(
    scores: ArrayLike, truth: ArrayLike, countries: ArrayLike, topics: ArrayLike, in_second: ArrayLike
) -> RangeCorrection:
    """The corrected correlations of two groups of countries, with 95% intervals over other countries and topics.

    Args:
        scores, truth: shape (n,), one value per cell; cells with a nan on either side are left out.
        countries, topics: shape (n,), labels of any kind.
        in_second: shape (n,), whether the cell's country is in the second group.

    Returns:
        Estimates without a value, with a reason, where scores or truth do not vary in a group.

    Raises:
        ValueError: shapes differ, a value is infinite, or a country is in both groups.
    """
    (x, y), is_complete = complete_cases(scores, truth)
    is_second = np.asarray(in_second, dtype=np.bool_)
    if is_second.shape != is_complete.shape:
        raise ValueError(f"in_second must have the shape {is_complete.shape}, but has {is_second.shape}")
    table = build_two_way_table(countries, topics, is_complete, (~is_second, is_second))
    centred = [values - values.mean() if len(values) else values for values in (x, y)]
    sums = np.stack([np.ones_like(x), *centred, centred[0] ** 2, centred[1] ** 2, centred[0] * centred[1]], axis=1)
    grid = table.to_grid(sums)
    both = np.zeros((*grid.shape[:2], 12))
    for group, members in enumerate(table.strata):
        both[members, :, 6 * group : 6 * group + 6] = grid[members]
    n = [int((is_second[is_complete] == group).sum()) for group in (False, True)]
    figures = replicate_statistics(_regress, both, table)
    sides = [figures[:3], figures[3:]]
    first, second = (
        GroupRegression(
            *(
                replace(two_way_estimate(*side, table, transform, has_p_value=False), n=n[group])
                for side, transform in zip(sides[group], (FISHER_Z, IDENTITY, LOG), strict=True)
            )
        )
        for group in (0, 1)
    )
    return RangeCorrection(first, second, subtract_replicates([sides[1][0], sides[0][0]], table))


def _regress(sums: Floats) -> list[Floats]:
    """Corrected r, slope and residual SD of the first group, then of the second; nan where undefined.

    Args:
        sums: shape (replicates, 12).
    """
    variances, parts = [], []
    for group in (0, 1):
        n = np.maximum(sums[:, 6 * group], 1.0)
        mean_x, mean_y, xx, yy, xy = (sums[:, 6 * group + 1 : 6 * group + 6] / n[:, None]).T
        variance_x, variance_y, covariance = xx - mean_x**2, yy - mean_y**2, xy - mean_x * mean_y
        is_defined = (variance_x > 1e-12) & (variance_y > 1e-12)
        variances.append(np.where(is_defined, variance_y, np.nan))
        parts.append((variance_x, covariance))
    target = (variances[0] + variances[1]) / 2
    results: list[Floats] = []
    for variance_y, (variance_x, covariance) in zip(variances, parts, strict=True):
        slope = covariance / variance_y
        residual = np.sqrt(np.maximum(variance_x - slope * covariance, 0.0))
        r = np.clip(covariance / np.sqrt(variance_x * variance_y), -1.0, 1.0)
        results += [correct_range(r, np.sqrt(target / variance_y)), slope, residual]
    return results
