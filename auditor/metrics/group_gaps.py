"""Slope of a model's gaps between two groups on people's gaps, corrected for the sampling error of people's gaps.

Sampling error in people's gaps makes an ordinary slope too small, so its variance is subtracted from the denominator
(Fuller, Measurement Error Models, 1987, section 1.2). The slope is a ratio of two estimates; its interval is Fieller's
(J. of the Royal Statistical Society B 16, 1954), with the variances of the jackknife over countries and topics.
"""

from __future__ import annotations

from functools import partial
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics._complete_cases import Floats, complete_cases
from auditor.metrics._special import stdtrit
from auditor.metrics.confidence import UPPER_QUANTILE
from auditor.metrics.estimate import Estimate
from auditor.metrics.jackknife_interval import (
    CONSTANT_REASON,
    UNDEFINED_REASON,
    jackknife_covariance,
    too_few_reason,
)
from auditor.metrics.unit_means import Labels
from auditor.metrics.unit_replicates import UnitReplicates, replicate_over_units

MIN_RELIABILITY = 0.3
"""Least share of the variation of people's gaps that is no sampling error, for a slope."""


def gap_slope(
    people: ArrayLike,
    model: ArrayLike,
    people_variance: ArrayLike,
    units: Labels,
    *,
    intercept: bool = False,
) -> Estimate:
    """Slope of a model's gaps on people's: 1 is the right size, above 1 a stereotype, below 0 the wrong direction.

    Through the origin, sum(people * model) / sum(people^2 - variance), a gap that is exaggerated by one factor in all
    cells is found even if people's gap is the same everywhere. With an intercept the slope is about the variation of
    gaps between cells only.

    Args:
        people, model: shape (n,), the mean of the first group minus that of the second in each cell; cells with a nan
            are left out.
        people_variance: shape (n,), sampling variance of people's gap.
        units: the country and the topic of each cell.
        intercept: centre both sides.

    Returns:
        `n` counts cells. There is no value, with a reason, without cells, where the reliability of people's gaps is
        below 0.3, or where the interval of the denominator holds 0; no interval below 5 countries or topics.

    Raises:
        ValueError: shapes differ, a value is infinite, or a variance is below 0.
    """
    (x, y, variance), is_complete = complete_cases(people, model, people_variance)
    if (variance < 0).any():
        raise ValueError("people_variance must be at least 0")
    n, fewest = len(x), 3 if intercept else 1
    if n < fewest:
        return Estimate(None, n, reason="too few cells have the gaps of people and model")
    moments = np.stack([np.ones_like(x), x, y, x * y, x * x, variance], axis=1)
    totals = moments.sum(axis=0)[None]
    numerator, denominator = (
        float(part[0]) for part in (_numerators(totals, intercept), _denominators(totals, intercept))
    )
    reason = _reason_against_slope(denominator, float(variance.mean()))
    if reason is not None:
        return Estimate(None, n, reason=reason)
    included = {unit: np.asarray(labels)[is_complete] for unit, labels in units.items()}
    replicates = [
        replicate_over_units(moments, partial(part, intercept=intercept), included)
        for part in (_numerators, _denominators)
    ]
    return _fieller_estimate(numerator, denominator, n, replicates)


def gap_reliability(people: ArrayLike, people_variance: ArrayLike, *, intercept: bool = False) -> float:
    """Share of the variation of people's gaps that is no sampling error: 1 - mean variance / mean square.

    Args:
        people, people_variance: as for `gap_slope`.
        intercept: the variation around the mean instead of around 0.

    Returns:
        At most 1; below 0 where gaps vary less than sampling alone makes them; nan without variation.
    """
    (x, variance), _ = complete_cases(people, people_variance)
    variation = (x.var() if intercept else (x**2).mean()) if len(x) else 0.0
    return float(1 - variance.mean() / variation) if variation > 0 else float("nan")


def _numerators(sums: Floats, intercept: bool) -> Floats:
    """Mean product of both gaps, or their covariance, from sums of the moments."""
    n = np.maximum(sums[:, 0], 1.0)
    products: Floats = sums[:, 3] / n - (sums[:, 1] / n * sums[:, 2] / n if intercept else 0.0)
    return products


def _denominators(sums: Floats, intercept: bool) -> Floats:
    """Mean square of people's gaps, or their variance, less the mean sampling variance."""
    n = np.maximum(sums[:, 0], 1.0)
    squares: Floats = (sums[:, 4] - sums[:, 5]) / n - ((sums[:, 1] / n) ** 2 if intercept else 0.0)
    return squares


def _reason_against_slope(denominator: float, noise: float) -> str | None:
    """Why people's gaps are too uncertain for a slope; None where they are not."""
    variation = denominator + noise
    if variation <= 1e-24:
        return "people’s gaps do not vary"
    reliability = denominator / variation
    if reliability < MIN_RELIABILITY:
        return (
            f"the reliability of people’s gaps is {max(reliability, 0.0):.2f}, below {MIN_RELIABILITY}: "
            "most of them is sampling error"
        )
    return None


def _fieller_estimate(numerator: float, denominator: float, n: int, replicates: list[UnitReplicates]) -> Estimate:
    """The ratio with its interval, or why there is none; `replicates` of the numerator and of the denominator."""
    slope = numerator / denominator
    kinds = replicates[0].units
    reason = too_few_reason({unit: [len(values)] for unit, values in kinds.items()})
    if reason is not None:
        return Estimate(slope, n, reason=reason)
    by_kind = [np.stack([part.units[unit] for part in replicates]) for unit in kinds]
    if not all(np.isfinite(values).all() for values in by_kind):
        return Estimate(slope, n, reason=UNDEFINED_REASON)
    quantile = float(stdtrit(min(values.shape[1] for values in by_kind) - 1, UPPER_QUANTILE))
    covariances = [jackknife_covariance(values) for values in by_kind]
    # The variance of a combination of both parts is the largest of these forms, as in `combine_variances`.
    forms = [*covariances]
    if len(covariances) > 1:
        cells = [part.cells for part in replicates if part.cells is not None]
        forms.append(sum(covariances) - jackknife_covariance(np.stack(cells)) / 2)
    spread = quantile * sqrt(max(float(form[1, 1]) for form in forms))
    if denominator <= spread:
        return Estimate(None, n, reason="the interval of people’s gaps holds 0, so a slope is undetermined")
    ends = [end for form in forms for end in _fieller_ends(numerator, denominator, form, quantile)]
    if not ends or max(ends) - min(ends) <= 1e-12:
        return Estimate(slope, n, reason=CONSTANT_REASON)
    return Estimate(slope, n, min(ends), max(ends), resampled=tuple(kinds))


def _fieller_ends(numerator: float, denominator: float, covariance: Floats, quantile: float) -> list[float]:
    """Both slopes b at which numerator - b * denominator is `quantile` standard errors from 0; none where no slope is.

    Args:
        covariance: of numerator and denominator, shape (2, 2).
    """
    critical = quantile**2
    a = denominator**2 - critical * covariance[1, 1]
    b = numerator * denominator - critical * covariance[0, 1]
    c = numerator**2 - critical * covariance[0, 0]
    discriminant = b * b - a * c
    if discriminant < 0:
        return []
    return [float((b + sign * sqrt(discriminant)) / a) for sign in (-1, 1)]
