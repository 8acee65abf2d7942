"""The interval of a difference between two statistics that are nearly normal on another scale, such as correlations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from auditor.metrics._complete_cases import Floats
from auditor.metrics.jackknife_interval import Transform


@dataclass(frozen=True, slots=True)
class DifferenceEnds:
    """Ends of an interval of the first statistic minus the second."""

    low: Floats
    high: Floats


def recover_difference(
    transform: Transform,
    first: Floats,
    second: Floats,
    std_errors: tuple[Floats, Floats],
    covariance: Floats,
    quantile: float,
) -> DifferenceEnds:
    """Interval of the difference of two statistics from the intervals of both.

    Zou's method of variance estimates recovery (Psychological Methods 12, 2007, eq. 15 for dependent correlations):
    the distance of each end from the difference is recovered from the distances of the ends of both intervals. A
    difference on the transformed scale cannot simply be transformed back: it says nothing about the level of the two.
    Where the interval of the difference on the transformed scale excludes 0, so does the result, and conversely.

    Args:
        transform: the scale on which both statistics are nearly normal.
        first, second: the transformed statistics, of any shapes that broadcast.
        std_errors: of the first and of the second, on the transformed scale.
        covariance: of the first and the second, on the transformed scale.
        quantile: number of standard errors, such as Student's quantile.
    """
    (first_low, first_value, first_high), (second_low, second_value, second_high) = (
        [transform.inverse(centre + steps * std_error) for steps in (-quantile, 0.0, quantile)]
        for centre, std_error in zip((first, second), std_errors, strict=True)
    )
    product = std_errors[0] * std_errors[1]
    correlation = np.clip(np.divide(covariance, product, out=np.zeros_like(product), where=product > 0), -1.0, 1.0)

    def join_distances(a: Floats, b: Floats) -> Floats:
        """Distance of an end from the difference, given those of the ends of both intervals from their statistics."""
        distance: Floats = np.sqrt(np.maximum(a**2 + b**2 - 2 * correlation * a * b, 0.0))
        return distance

    difference = first_value - second_value
    low = difference - join_distances(first_value - first_low, second_high - second_value)
    high = difference + join_distances(first_high - first_value, second_value - second_low)
    variance = std_errors[0] ** 2 + std_errors[1] ** 2 - 2 * covariance
    half_width = quantile * np.sqrt(np.maximum(variance, 0.0))
    return DifferenceEnds(
        np.where(first - second - half_width > 0, np.maximum(low, 0.0), np.minimum(low, 0.0)),
        np.where(first - second + half_width < 0, np.minimum(high, 0.0), np.maximum(high, 0.0)),
    )
