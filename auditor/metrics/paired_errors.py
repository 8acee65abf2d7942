"""Difference of the absolute errors of two series of scores against one truth, on the cells that both have."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtr, stdtrit

from auditor.metrics._complete_cases import complete_cases, is_constant
from auditor.metrics.jackknife_interval import MIN_UNITS


@dataclass(frozen=True, slots=True)
class PairedError:
    """A mean difference of errors with a 95% interval; `reason` says why something is None.

    Attributes:
        value: mean of the second's absolute error minus the first's: below 0 where the second is closer to the truth.
        p_value: two-sided, of no difference.
    """

    value: float | None
    n: int
    ci_low: float | None
    ci_high: float | None
    p_value: float | None
    reason: str | None = None


def paired_error(first: ArrayLike, second: ArrayLike, truth: ArrayLike) -> PairedError:
    """The second's mean absolute error minus the first's, with Student's interval and paired t test.

    Each cell is a unit of its own: suitable for one topic over countries or one country over topics, not for a whole
    table.

    Args:
        first, second, truth: shape (n,); a cell with a nan in any is left out.

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
        return PairedError(None, 0, None, None, None, "no cell that both have a score on")
    value = float(d.mean())
    if n < MIN_UNITS:
        return PairedError(value, n, None, None, None, f"an interval needs {MIN_UNITS} cells")
    if is_constant(d):
        return PairedError(value, n, None, None, None, "all differences are equal: no interval")
    std_error = float(d.std(ddof=1) / np.sqrt(n))
    half_width = float(stdtrit(n - 1, 0.975)) * std_error
    return PairedError(
        value, n, value - half_width, value + half_width, float(2 * stdtr(n - 1, -abs(value) / std_error))
    )
