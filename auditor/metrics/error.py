"""Errors of scores against the truth, with intervals: MAE, RMSE and bias."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from auditor.metrics._complete_cases import Floats, complete_cases, is_constant


@dataclass(frozen=True, slots=True)
class IntervalEstimate:
    """A mean over `n` complete pairs with a 95% interval; `reason` says why something is None."""

    value: float | None
    n: int
    n_dropped: int
    ci_low: float | None
    ci_high: float | None
    reason: str | None = None


def mae(x: ArrayLike, y: ArrayLike) -> IntervalEstimate:
    """Mean absolute difference, in the units of the scores, with Student's interval for a mean, clipped at 0.

    The interval assumes independent pairs; where cells share countries and topics, see `crossed_jackknife`.

    Args:
        x, y: shape (n,); pairs with nan on either side are dropped and counted.

    Returns:
        At least 0; None with a reason for no pairs. No interval for one pair, or when all differences are equal.

    Raises:
        ValueError: shapes differ, or a value is infinite.
    """
    (a, b), is_complete = complete_cases(x, y)
    return _mean_estimate(np.abs(a - b), int((~is_complete).sum()), lower_bound=0.0)


def rmse(x: ArrayLike, y: ArrayLike) -> IntervalEstimate:
    """Root of the mean squared difference, in the units of the scores.

    The interval is Student's for the mean of the squares, clipped at 0, with the root taken of both ends. The root is
    monotone, so both intervals have the same coverage. With heavy tails and few pairs that is less than 95%.

    Args, Returns, Raises: as `mae`.
    """
    (a, b), is_complete = complete_cases(x, y)
    mean_square = _mean_estimate((a - b) ** 2, int((~is_complete).sum()), lower_bound=0.0)
    roots = (
        None if end is None else float(np.sqrt(end))
        for end in (mean_square.value, mean_square.ci_low, mean_square.ci_high)
    )
    value, low, high = roots
    return IntervalEstimate(value, mean_square.n, mean_square.n_dropped, low, high, mean_square.reason)


def bias(x: ArrayLike, y: ArrayLike) -> IntervalEstimate:
    """Mean of x - y, with Student's interval: positive where x is the more permissive.

    Args, Returns, Raises: as `mae`, but of either sign.
    """
    (a, b), is_complete = complete_cases(x, y)
    return _mean_estimate(a - b, int((~is_complete).sum()), lower_bound=-np.inf)


def _mean_estimate(values: Floats, n_dropped: int, lower_bound: float) -> IntervalEstimate:
    """The mean of the values with Student's 95% interval, whose lower end is clipped at `lower_bound`."""
    n = len(values)
    if n == 0:
        return IntervalEstimate(None, 0, n_dropped, None, None, "no pairs")
    value = float(values.mean())
    if n == 1:
        return IntervalEstimate(value, n, n_dropped, None, None, "an interval needs 2 pairs")
    if is_constant(values):
        return IntervalEstimate(value, n, n_dropped, None, None, "all differences are equal: no interval")
    half_width = float(stdtrit(n - 1, 0.975) * values.std(ddof=1) / np.sqrt(n))
    return IntervalEstimate(value, n, n_dropped, max(lower_bound, value - half_width), value + half_width)
