"""Errors of scores against the truth, with intervals: MAE, RMSE and bias."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics._complete_cases import Floats, complete_cases, is_constant
from auditor.metrics._special import stdtrit
from auditor.metrics.confidence import UPPER_QUANTILE
from auditor.metrics.estimate import Estimate


def mae(x: ArrayLike, y: ArrayLike) -> Estimate:
    """Mean absolute difference, in the units of the scores, with Student's interval for a mean, clipped at 0.

    The interval assumes independent pairs; where cells share countries and topics, see `crossed_jackknife`.

    Args:
        x, y: shape (n,); pairs with nan on either side are left out.

    Returns:
        At least 0; None with a reason for no pairs. No interval for one pair, or when all differences are equal.

    Raises:
        ValueError: shapes differ, or a value is infinite.
    """
    (a, b), _ = complete_cases(x, y)
    return _mean_estimate(np.abs(a - b), lower_bound=0.0)


def rmse(x: ArrayLike, y: ArrayLike) -> Estimate:
    """Root of the mean squared difference, in the units of the scores.

    The interval is Student's for the mean of the squares, clipped at 0, with the root taken of both ends. The root is
    monotone, so both intervals have the same coverage. With heavy tails and few pairs that is less than 95%.

    Args, Returns, Raises: as `mae`.
    """
    (a, b), _ = complete_cases(x, y)
    mean_square = _mean_estimate((a - b) ** 2, lower_bound=0.0)
    value, low, high = (
        None if end is None else float(np.sqrt(end))
        for end in (mean_square.value, mean_square.ci_low, mean_square.ci_high)
    )
    return Estimate(value, mean_square.n, low, high, mean_square.reason)


def bias(x: ArrayLike, y: ArrayLike) -> Estimate:
    """Mean of x - y, with Student's interval: positive where x is the more permissive.

    Args, Returns, Raises: as `mae`, but of either sign.
    """
    (a, b), _ = complete_cases(x, y)
    return _mean_estimate(a - b, lower_bound=-np.inf)


def _mean_estimate(values: Floats, lower_bound: float) -> Estimate:
    """The mean of the values with Student's 95% interval, whose lower end is clipped at `lower_bound`."""
    n = len(values)
    if n == 0:
        return Estimate(None, 0, reason="no pairs")
    value = float(values.mean())
    if n == 1:
        return Estimate(value, n, reason="an interval needs 2 pairs")
    if is_constant(values):
        return Estimate(value, n, reason="all differences are equal: no interval")
    half_width = float(stdtrit(n - 1, UPPER_QUANTILE) * values.std(ddof=1) / np.sqrt(n))
    return Estimate(value, n, max(lower_bound, value - half_width), value + half_width)
