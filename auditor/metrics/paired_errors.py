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


def error_bounds(first: ArrayLike, second: ArrayLike, truth: ArrayLike) -> tuple[float, float] | None:
    """Worst-case bounds of the second's MAE minus the first's, over all cells with a truth.

    A score in [-1, 1] is at most 1 + |truth| away from it; for each bound, missing scores get the smallest or the
    largest possible error (worst-case bounds: Manski, American Economic Review 80, 1990).

    Args:
        first, second, truth: shape (n,), scores in [-1, 1], nan where there is none.

    Returns:
        Smallest and largest difference; None where no cell has a truth.
    """
    a, b, y = (np.asarray(column, dtype=np.float64) for column in (first, second, truth))
    has_truth = ~np.isnan(y)
    if not has_truth.any():
        return None
    max_errors = 1 + np.abs(y[has_truth])
    # For each of a and b: the smallest and the largest possible absolute error on each cell.
    bounds = [
        (np.where(np.isnan(errors), 0.0, errors), np.where(np.isnan(errors), max_errors, errors))
        for errors in (np.abs(column - y)[has_truth] for column in (a, b))
    ]
    (a_low, a_high), (b_low, b_high) = bounds
    return float((b_low - a_high).mean()), float((b_high - a_low).mean())
