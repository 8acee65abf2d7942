"""Ranks, roots and special functions; scipy is imported at first use, since it takes half a second to load."""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics.intervals.estimate import Floats

PACKAGE = "scipy.special"
COMPILED_MODULE = "_ufuncs"
"""Private module of the package with its compiled functions."""
KNOWN_VALUES: Mapping[str, tuple[tuple[float, ...], float]] = {
    "stdtr": ((5, 1.2), 0.8580544716469487),
    "stdtrit": ((5, 0.9), 1.4758840488244815),
    "nctdtr": ((5, 0.5, 1.2), 0.725943773230301),
    "ndtr": ((0.3,), 0.6179114221889526),
    "ndtri": ((0.3,), -0.5244005127080409),
    "betainc": ((2, 3, 0.4), 0.5248),
    "betaincinv": ((2, 3, 0.4), 0.3291665033784079),
    "expit": ((0.3,), 0.574442516811659),
    "logit": ((0.3,), -0.8472978603872034),
}
"""Arguments and value of each function."""
KNOWN_TOLERANCE = 1e-9
"""Relative; between versions, values differ by up to 1e-10."""


@cache
def _load() -> ModuleType:
    """The module with the functions: the compiled one if it can be imported alone and has the functions as known.

    While the package's place in `sys.modules` is taken, no other thread may import it, so the package is imported where
    there are other threads.
    """
    if PACKAGE in sys.modules or threading.active_count() > 1:
        return import_module(PACKAGE)
    compiled = _import_compiled()
    return compiled if compiled is not None and _has_known_values(compiled) else import_module(PACKAGE)


def _import_compiled() -> ModuleType | None:
    """Import the compiled module without the code of its package; None if there is no such module."""
    import scipy

    package = ModuleType(PACKAGE)
    package.__path__ = [f"{path}/special" for path in scipy.__path__]
    sys.modules[PACKAGE] = package
    try:
        return import_module(f"{PACKAGE}.{COMPILED_MODULE}")
    except ImportError:
        return None
    finally:
        del sys.modules[PACKAGE]


def _has_known_values(module: ModuleType) -> bool:
    """Whether a module has all functions, with the values of `KNOWN_VALUES`."""
    functions = {name: getattr(module, name, None) for name in KNOWN_VALUES}
    try:
        return all(
            function is not None and math.isclose(function(*arguments), value, rel_tol=KNOWN_TOLERANCE)
            for function, (arguments, value) in zip(functions.values(), KNOWN_VALUES.values(), strict=True)
        )
    except (TypeError, ValueError):
        return False


def stdtr(df: Any, t: Any) -> Any:
    """Cumulative distribution function of Student's t with `df` degrees of freedom."""
    return _load().stdtr(df, t)


def stdtrit(df: Any, p: Any) -> Any:
    """Quantile `p` of Student's t with `df` degrees of freedom."""
    return _load().stdtrit(df, p)


def nctdtr(df: Any, noncentrality: Any, t: Any) -> Any:
    """Cumulative distribution function of the noncentral t distribution."""
    return _load().nctdtr(df, noncentrality, t)


def ndtr(x: Any) -> Any:
    """Cumulative distribution function of the standard normal distribution."""
    return _load().ndtr(x)


def ndtri(p: Any) -> Any:
    """Quantile `p` of the standard normal distribution."""
    return _load().ndtri(p)


def betainc(a: Any, b: Any, x: Any) -> Any:
    """Regularized incomplete beta function."""
    return _load().betainc(a, b, x)


def betaincinv(a: Any, b: Any, y: Any) -> Any:
    """Inverse of the regularized incomplete beta function."""
    return _load().betaincinv(a, b, y)


def expit(x: Any) -> Any:
    """Logistic function, the inverse of `logit`."""
    return _load().expit(x)


def logit(p: Any) -> Any:
    """Log-odds of a probability in [0, 1]."""
    return _load().logit(p)


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


def average_ranks(values: ArrayLike) -> Floats:
    """Ranks from 1; equal values get the mean of their ranks.

    Args:
        values: flattened; without nan.

    Returns:
        Shape (number of values,).
    """
    _, positions, counts = np.unique(np.ravel(values), return_inverse=True, return_counts=True)
    mean_ranks: Floats = np.cumsum(counts) - (counts - 1) / 2
    return mean_ranks[positions]
