"""The interval of every statistic over clustered observations: units such as countries and topics are left out in turn.

Observations that share a country or a topic are correlated, so an interval over cells would be too narrow. For each
kind of unit the statistic is recomputed without each of its units. The variances over the kinds add up; each contains
the variance over single cells. Subtracting that once (Cameron, Gelbach & Miller, J. of Business & Economic Statistics
29, 2011) is right on average, but its error makes intervals of differences too short; not subtracting it makes them too
wide, by up to a factor of 1.4 where cells vary more than countries and topics. So half of it is subtracted:
V = max(V_country + V_topic - V_cell / 2, V_country, V_topic), a compromise chosen by simulation (docs/coverage.md).
The variances are the jackknife's (Efron & Stein, Annals of Statistics 9, 1981). The quantile is Student's with the
smallest number of units minus 1 degrees of freedom, on a scale on which the statistic is nearly normal. The centre is
the statistic itself: the jackknife's correction for bias made correlations worse and errors no better.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics._complete_cases import Floats
from auditor.metrics._special import expit, logit, stdtr, stdtrit
from auditor.metrics.confidence import CONFIDENCE_LEVEL
from auditor.metrics.estimate import PLURAL_BY_UNIT, Estimate

MIN_UNITS = 5
"""Fewest units of each kind for an interval: fewer show too little of how they differ."""
BOUNDARY_REASON = "it is at the end of its range, where its uncertainty cannot be estimated"
UNDEFINED_REASON = "the figure is undefined without one of the units: no interval"
ROUNDING_ERROR = 1e-12
"""Statistics of scores and shares that are closer to 0 than this are 0: they differ from it by rounding only."""
CONSTANT_REASON = "the figure is the same whichever unit is left out, so its uncertainty cannot be estimated"

Replicates = Mapping[str, Floats | Sequence[Floats]]
"""For each kind of unit, such as `country`, the statistic without each unit, shape (units,).

Units in strata (groups of countries that are compared with each other) have one array per stratum.
"""


@dataclass(frozen=True, slots=True)
class Transform:
    """A scale on which a statistic is nearly normal.

    Attributes:
        forward, inverse: to that scale and back, increasing.
    """

    forward: Callable[[Floats], Floats] = lambda v: v
    inverse: Callable[[Floats], Floats] = lambda v: v


IDENTITY = Transform()
FISHER_Z = Transform(np.arctanh, np.tanh)
"""For correlations."""
LOGIT = Transform(logit, expit)
"""For probabilities, such as an area under a ROC curve."""
LOG = Transform(np.log, np.exp)
"""For statistics above 0, such as a mean absolute error."""


@dataclass(frozen=True, slots=True)
class JackknifeInterval:
    """An interval, of 95% unless asked otherwise; `reason` says why there is none.

    Attributes:
        centre, std_error: of the statistic, on the transformed scale.
        df: degrees of freedom of Student's distribution.
        p_value: two-sided, of a true value of 0 on the transformed scale.
        ends_at: the ends of the interval for another number of standard errors, not clipped to any bounds.
    """

    low: float | None
    high: float | None
    centre: float | None = None
    std_error: float | None = None
    df: int = 0
    p_value: float | None = None
    reason: str | None = None
    ends_at: Callable[[float], tuple[float, float]] | None = field(default=None, compare=False)


def jackknife_interval(
    value: float,
    replicates: Replicates,
    transform: Transform = IDENTITY,
    bounds: tuple[float, float] = (-inf, inf),
    cells: Floats | Sequence[Floats] | None = None,
    confidence_level: float = CONFIDENCE_LEVEL,
) -> JackknifeInterval:
    """Compute the interval of a statistic from its values without each unit.

    Args:
        value: the statistic over all observations.
        replicates: see `Replicates`, on the scale of `value`.
        cells: of two kinds of units, the statistic without each cell (combination of units), shape (cells,), in the
            strata of the first kind; without it no variance is subtracted, which is conservative.
        confidence_level: of the interval; see `bonferroni_level` for intervals that hold together.
        transform: the scale on which the interval is symmetric.
        bounds: smallest and largest possible value; the ends are clipped to them.

    Returns:
        No interval, with a reason, for fewer than 5 units of a kind, where the statistic is undefined with a unit left
        out, or where it is the same whatever is left out.
    """
    strata = {unit: _as_strata(arrays) for unit, arrays in replicates.items()}
    reason = too_few_reason({unit: [len(stratum) for stratum in arrays] for unit, arrays in strata.items()})
    if reason is not None:
        return JackknifeInterval(None, None, reason=reason)
    with np.errstate(divide="ignore", invalid="ignore"):
        transformed_value = float(transform.forward(_drop_rounding_errors(np.array([value])))[0])
        by_kind = [
            [transform.forward(_drop_rounding_errors(stratum)) for stratum in arrays] for arrays in strata.values()
        ]
        cell_strata = [] if cells is None else _as_strata(cells)
        by_cell = [transform.forward(_drop_rounding_errors(stratum)) for stratum in cell_strata]
    transformed = [stratum for arrays in by_kind for stratum in arrays]
    if np.isfinite(value) and not np.isfinite(transformed_value):
        return JackknifeInterval(None, None, reason=BOUNDARY_REASON)
    if not all(np.isfinite(stratum).all() for stratum in transformed + by_cell):
        return JackknifeInterval(None, None, reason=UNDEFINED_REASON)
    variance = float(combine_variances([jackknife_variance(arrays) for arrays in by_kind], jackknife_variance(by_cell)))
    if variance <= 1e-24 * max(1.0, transformed_value**2):
        return JackknifeInterval(None, None, reason=CONSTANT_REASON)
    centre, std_error = transformed_value, variance**0.5
    df = min(map(len, transformed)) - 1

    def compute_ends(quantile: float) -> tuple[float, float]:
        steps = np.array([-quantile, quantile])
        low, high = transform.inverse(centre + steps * std_error)
        return float(low), float(high)

    low, high = compute_ends(float(stdtrit(df, (1 + confidence_level) / 2)))
    p_value = float(2 * stdtr(df, -abs(centre) / std_error))
    return JackknifeInterval(
        max(bounds[0], low), min(bounds[1], high), centre, std_error, df, p_value, ends_at=compute_ends
    )


def combine_variances(by_kind: Sequence[ArrayLike], by_cell: ArrayLike = 0.0) -> Floats:
    """The variance of a statistic from its variances over each kind of unit and over cells (see the module).

    Args:
        by_kind: variances over countries, over topics; or arrays of such variances, one for each of several statistics.
        by_cell: variance over cells, of the same shape; 0 where it is not known.
    """
    stacked = np.stack([np.asarray(variance, dtype=np.float64) for variance in by_kind])
    combined: Floats = stacked.sum(axis=0) - np.asarray(by_cell) / 2
    floored: Floats = np.maximum(combined, stacked.max(axis=0))
    return floored


def estimate_from_replicates(
    value: float,
    n: int,
    replicates: Replicates,
    transform: Transform = IDENTITY,
    bounds: tuple[float, float] = (-inf, inf),
    cells: Floats | Sequence[Floats] | None = None,
    confidence_level: float = CONFIDENCE_LEVEL,
) -> Estimate:
    """A statistic as an `Estimate`, with the interval of `jackknife_interval`; `resampled` names the kinds of units.

    Args:
        n: number of observations. The others as for `jackknife_interval`.
    """
    interval = jackknife_interval(value, replicates, transform, bounds, cells, confidence_level)
    if interval.low is None or interval.high is None:
        return Estimate(value, n, reason=interval.reason)
    return Estimate(value, n, interval.low, interval.high, resampled=tuple(replicates))


def too_few_reason(n_units: Mapping[str, Sequence[int]]) -> str | None:
    """Why there is no interval over these units; None where each kind, in each stratum, has at least 5.

    Args:
        n_units: for each kind of unit, the number of units in each stratum.
    """
    too_few = {unit: min(counts) for unit, counts in n_units.items() if min(counts) < MIN_UNITS}
    if not too_few:
        return None
    needed = " and ".join(
        f"{MIN_UNITS} {PLURAL_BY_UNIT[unit]}{' in each group' if len(counts) > 1 else ''}"
        for unit, counts in n_units.items()
    )
    available = " and ".join(f"{n} {PLURAL_BY_UNIT[unit] if n != 1 else unit}" for unit, n in too_few.items())
    verb = "is" if next(iter(too_few.values())) == 1 else "are"  # as the first unit listed
    return f"an interval needs at least {needed}, but there {verb} {available}"


def jackknife_covariance(replicates: Sequence[Floats] | Floats) -> Floats:
    """Jackknife covariance matrix, shape (m, m), of m statistics with each of k units left out, shape (m, k)."""
    values = np.asarray(replicates, dtype=np.float64)
    k = values.shape[1]
    centred = values - values.mean(axis=1, keepdims=True)
    covariances: Floats = (k - 1) / k * (centred @ centred.T)
    return covariances


def pairwise_variances(covariances: Floats) -> Floats:
    """Variance of the difference of each two statistics, shape (m, m), from their covariance matrix."""
    variances = np.diag(covariances)
    return np.maximum(variances[:, None] + variances[None, :] - 2 * covariances, 0.0)


def jackknife_variance(strata: Sequence[Floats]) -> float:
    """Jackknife variance of a statistic over the units of one kind: the sum over its strata."""
    return sum(float(jackknife_covariance(stratum[None])[0, 0]) for stratum in strata)


def _drop_rounding_errors(values: Floats) -> Floats:
    """The values, with 0 in the place of those that differ from it by rounding only."""
    return np.where(np.abs(values) < ROUNDING_ERROR, 0.0, values)


def _as_strata(arrays: Floats | Sequence[Floats]) -> list[NDArray[np.float64]]:
    """The replicates of one kind of unit as a list of strata."""
    return [arrays] if isinstance(arrays, np.ndarray) and arrays.ndim == 1 else [np.asarray(a) for a in arrays]
