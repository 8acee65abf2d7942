"""Difference of the absolute errors of two series of scores against one truth, on the cells that both have."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics._complete_cases import complete_cases, is_constant
from auditor.metrics._special import stdtr, stdtrit
from auditor.metrics.confidence import UPPER_QUANTILE
from auditor.metrics.estimate import Tested
from auditor.metrics.jackknife_interval import MIN_UNITS


def paired_error(first: ArrayLike, second: ArrayLike, truth: ArrayLike, unit: str) -> Tested:
    """The second's mean absolute error minus the first's, with Student's interval and paired t test.

    Each cell is a unit of its own: suitable for one topic over countries or one country over topics, not for a whole
    table.

    Args:
        first, second, truth: shape (n,); a cell with a nan in any is left out.
        unit: what a cell is one of: `country` for one topic over countries, `topic` for one country over topics.

    Returns:
        The difference, below 0 where the second is closer to the truth; None with a reason without any cell. No
        interval and no test for fewer than 5 cells, or where all differences are equal.

    Raises:
        ValueError: shapes differ, or a value is infinite.
    """
    (a, b, y), _ = complete_cases(first, second, truth)
    d = np.abs(b - y) - np.abs(a - y)
    n = len(d)
    if n == 0:
        return Tested(None, 0, reason="no cell has both scores")
    value = float(d.mean())
    if n < MIN_UNITS:
        return Tested(value, n, reason=f"an interval needs {MIN_UNITS} cells")
    if is_constant(d):
        return Tested(value, n, reason="all differences are equal: no interval")
    std_error = float(d.std(ddof=1) / np.sqrt(n))
    half_width = float(stdtrit(n - 1, UPPER_QUANTILE)) * std_error
    p_value = float(2 * stdtr(n - 1, -abs(value) / std_error))
    return Tested(value, n, value - half_width, value + half_width, resampled=(unit,), p_value=p_value)
