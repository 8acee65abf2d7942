"""Two series of scores against one truth: how much nearer the one is than the other, on the cells that both have."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtr, stdtrit

from auditor.metrics._complete_cases import complete_cases, is_constant


@dataclass(frozen=True, slots=True)
class PairedError:
    """A mean difference of errors with a 95% interval; `reason` says why something is None.

    Attributes:
        value: mean of the second's absolute error less the first's: below 0 where the second is nearer.
        p_value: two-sided, of no difference.
    """

    value: float | None
    n: int
    ci_low: float | None
    ci_high: float | None
    p_value: float | None
    reason: str | None = None


def paired_error(first: ArrayLike, second: ArrayLike, truth: ArrayLike) -> PairedError:
    """The second's mean absolute error less the first's, with Student's interval and paired test.

    Takes the cells for independent: fit for one topic over countries or one country over topics, not for the table.

    Args:
        first, second, truth: shape (n,); a cell with a nan in any is left out.

    Returns:
        None with a reason for no cells; no interval and no test for one, or where all differences are equal.

    Raises:
        ValueError: shapes differ, or a value is infinite.
    """
    (a, b, y), _ = complete_cases(first, second, truth)
    d = np.abs(b - y) - np.abs(a - y)
    n = len(d)
    if n == 0:
        return PairedError(None, 0, None, None, None, "no cell that both have a score on")
    value = float(d.mean())
    if n == 1:
        return PairedError(value, n, None, None, None, "an interval needs 2 cells")
    if is_constant(d):
        return PairedError(value, n, None, None, None, "all differences are equal: no interval")
    spread = float(d.std(ddof=1) / np.sqrt(n))
    half = float(stdtrit(n - 1, 0.975)) * spread
    return PairedError(value, n, value - half, value + half, float(2 * stdtr(n - 1, -abs(value) / spread)))


def error_bounds(first: ArrayLike, second: ArrayLike, truth: ArrayLike) -> tuple[float, float] | None:
    """The second's MAE less the first's over all cells with a truth, whatever the missing scores would have been.

    A score in [-1, 1] is at most 1 + |truth| away; the ends put each missing score where it helps or hurts most
    (worst-case bounds: Manski, American Economic Review 80, 1990).

    Args:
        first, second, truth: shape (n,), scores in [-1, 1], nan where there is none.

    Returns:
        Least and largest difference; None where no cell has a truth.
    """
    a, b, y = (np.asarray(v, dtype=np.float64) for v in (first, second, truth))
    asked = ~np.isnan(y)
    if not asked.any():
        return None
    most = 1 + np.abs(y[asked])
    ends = [
        (np.where(np.isnan(e), 0.0, e), np.where(np.isnan(e), most, e)) for e in (np.abs(v - y)[asked] for v in (a, b))
    ]
    (a_low, a_high), (b_low, b_high) = ends
    return float((b_low - a_high).mean()), float((b_high - a_low).mean())
