"""Intervals of differences: of independent estimates, and of statistics that are nearly normal on another scale."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics._complete_cases import Floats
from auditor.metrics._root import find_root
from auditor.metrics._special import ndtr, ndtri, stdtr, stdtrit
from auditor.metrics.confidence import CONFIDENCE_LEVEL, NORMAL_QUANTILE, SIGNIFICANCE_LEVEL
from auditor.metrics.estimate import Estimate, Tested
from auditor.metrics.jackknife_interval import Transform

MAX_QUANTILE = 1e4
"""Number of standard errors beyond which a p-value is not computed."""


def subtract_independent(first: Estimate, second: Estimate) -> Tested:
    """The first estimate minus the second, of independent samples, with the interval recovered from both of theirs.

    Zou & Donner, Statistics in Medicine 27, 2008; for shares with Wilson's intervals it is method 10 of Newcombe
    (Statistics in Medicine 17, 1998).

    Returns:
        `n` is the sum of both. The p-value of no difference is normal, with the standard error on the side of 0, so
        that it is below 0.05 where the interval excludes 0. No interval, with a reason, where one of both has none.
    """
    n, population = first.n + second.n, first.generalizes_to
    if first.value is None or second.value is None:
        return Tested(None, n, reason=first.reason if first.value is None else second.reason)
    value = first.value - second.value
    ends = (first.ci_low, first.ci_high, second.ci_low, second.ci_high)
    if None in ends:
        return Tested(value, n, reason=first.reason if None in ends[:2] else second.reason)
    first_low, first_high, second_low, second_high = (end or 0.0 for end in ends)
    below = ((first.value - first_low) ** 2 + (second_high - second.value) ** 2) ** 0.5
    above = ((first_high - first.value) ** 2 + (second.value - second_low) ** 2) ** 0.5
    distance = below if value > 0 else above
    p_value = float(2 * ndtr(-abs(value) * NORMAL_QUANTILE / distance)) if distance > 0 else None
    reason = first.reason or second.reason
    return Tested(value, n, value - below, value + above, reason, generalizes_to=population, p_value=p_value)


def widen_for_choice(estimate: Estimate, n_compared: int) -> Estimate:
    """Widen an interval so that it holds for the largest of several differences (Bonferroni, on the normal scale)."""
    if estimate.value is None or estimate.ci_low is None or estimate.ci_high is None:
        return estimate
    factor = float(ndtri(1 - SIGNIFICANCE_LEVEL / n_compared / 2)) / NORMAL_QUANTILE
    low, high = (estimate.value + factor * (end - estimate.value) for end in (estimate.ci_low, estimate.ci_high))
    return replace(estimate, ci_low=low, ci_high=high)


def recover_difference(
    transform: Transform,
    first: ArrayLike,
    second: ArrayLike,
    std_errors: tuple[ArrayLike, ArrayLike],
    covariance: ArrayLike,
    quantile: float,
) -> tuple[Floats, Floats]:
    """Interval of the difference of two statistics from the intervals of both.

    Zou's method of variance estimates recovery (Psychological Methods 12, 2007): the distance of each end from the
    difference is recovered from the distances of the ends of both intervals. The interval of the difference on the
    transformed scale could not be transformed back, since it does not say at which level the two are.

    Args:
        transform: the scale on which both statistics are nearly normal.
        first, second: the transformed statistics, of any shapes that broadcast.
        std_errors: of the first and of the second, on the transformed scale.
        covariance: of the first and the second, on the transformed scale.
        quantile: number of standard errors, such as Student's quantile.

    Returns:
        The lower and the upper end for the first statistic minus the second.
    """
    (first_low, first_value, first_high), (second_low, second_value, second_high) = (
        [transform.inverse(np.asarray(centre) + steps * np.asarray(std_error)) for steps in (-quantile, 0.0, quantile)]
        for centre, std_error in zip((first, second), std_errors, strict=True)
    )
    product = np.multiply(*std_errors)
    correlation = np.clip(np.divide(covariance, product, out=np.zeros(np.shape(product)), where=product > 0), -1.0, 1.0)

    def join_distances(a: Floats, b: Floats) -> Floats:
        """Distance of an end from the difference, given those of the ends of both intervals from their statistics."""
        distance: Floats = np.sqrt(np.maximum(a**2 + b**2 - 2 * correlation * a * b, 0.0))
        return distance

    difference = first_value - second_value
    low = difference - join_distances(first_value - first_low, second_high - second_value)
    high = difference + join_distances(first_high - first_value, second_value - second_low)
    return low, high


def recover_difference_with_p_value(
    transform: Transform,
    statistics: tuple[float, float],
    std_errors: tuple[float, float],
    covariance: float,
    df: int,
    confidence_level: float = CONFIDENCE_LEVEL,
) -> tuple[float, float, float]:
    """Ends of the interval of `recover_difference`, and the p-value of no difference that belongs to it.

    The p-value is that of the interval that ends at 0, so it is below 0.05 where the 95% interval excludes 0.

    Args:
        statistics: the first and the second, on the transformed scale.
        df: degrees of freedom of Student's distribution. The others as for `recover_difference`.
    """

    def compute_ends(quantile: float) -> tuple[float, float]:
        low, high = recover_difference(transform, *statistics, std_errors, covariance, quantile)
        return float(low), float(high)

    ends = compute_ends(float(stdtrit(df, (1 + confidence_level) / 2)))
    if statistics[0] == statistics[1]:
        return (*ends, 1.0)
    near_end = 0 if statistics[0] > statistics[1] else 1
    if (compute_ends(MAX_QUANTILE)[near_end] > 0) == (near_end == 0):
        return (*ends, 0.0)
    quantile = float(find_root(lambda q: compute_ends(q)[near_end], 0.0, MAX_QUANTILE, tolerance=1e-10))
    return (*ends, float(2 * stdtr(df, -quantile)))
