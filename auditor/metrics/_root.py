"""A root of a function in an interval: scipy's are in `scipy.optimize`, whose import takes 0.2 s."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

MAX_ITERATIONS = 100
RELATIVE_TOLERANCE = 4 * sys.float_info.epsilon


def find_root(function: Callable[[float], float], low: float, high: float, tolerance: float = 2e-12) -> float:
    """Find a root by Brent's method (Brent, Algorithms for Minimization without Derivatives, 1973, chapter 4).

    Each step is inverse quadratic interpolation, or bisection where that would converge slowly.

    Args:
        function: continuous, with values of different signs at `low` and `high`, or zero at one of them.
        low, high: ends of the interval.
        tolerance: largest absolute error of the root, beside a relative one of 9e-16.

    Raises:
        ValueError: the function has the same sign at both ends.
        RuntimeError: the method does not converge, as at a root where the function is flat.
    """
    previous, best = float(low), float(high)
    value_previous, value_best = float(function(previous)), float(function(best))
    if value_previous == 0:
        return previous
    if value_best == 0:
        return best
    if _same_sign(value_previous, value_best):
        raise ValueError(f"the function has the same sign at {low} and {high}")
    opposite, value_opposite = previous, value_previous
    step = step_before = best - previous
    for _ in range(MAX_ITERATIONS):
        if value_previous != 0 and not _same_sign(value_previous, value_best):
            opposite, value_opposite = previous, value_previous
            step = step_before = best - previous
        if abs(value_opposite) < abs(value_best):
            previous, best, opposite = best, opposite, best
            value_previous, value_best, value_opposite = value_best, value_opposite, value_best
        half_tolerance = (tolerance + RELATIVE_TOLERANCE * abs(best)) / 2
        to_middle = (opposite - best) / 2
        if value_best == 0 or abs(to_middle) < half_tolerance:
            return best
        interpolated = math.inf
        if abs(step_before) > half_tolerance and abs(value_best) < abs(value_previous):
            points = (previous, best, opposite), (value_previous, value_best, value_opposite)
            interpolated = _interpolation_step(*points)
        if 2 * abs(interpolated) < min(abs(step_before), 3 * abs(to_middle) - half_tolerance):
            step_before, step = step, interpolated
        else:
            step_before = step = to_middle
        previous, value_previous = best, value_best
        best += step if abs(step) > half_tolerance else math.copysign(half_tolerance, to_middle)
        value_best = float(function(best))
    raise RuntimeError(f"no root was found in {MAX_ITERATIONS} steps")


def _same_sign(a: float, b: float) -> bool:
    """Whether two values have the same sign."""
    return (a < 0) == (b < 0)


def _interpolation_step(points: tuple[float, float, float], values: tuple[float, float, float]) -> float:
    """The step from the second point to the root of the line or parabola through the points."""
    (previous, best, opposite), (value_previous, value_best, value_opposite) = points, values
    if previous == opposite:
        return -value_best * (best - previous) / (value_best - value_previous)
    slope_previous = (value_previous - value_best) / (previous - best)
    slope_opposite = (value_opposite - value_best) / (opposite - best)
    numerator = value_opposite * slope_opposite - value_previous * slope_previous
    return -value_best * numerator / (slope_opposite * slope_previous * (value_opposite - value_previous))
