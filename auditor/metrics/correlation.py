"""Correlations with confidence intervals, and the difference of two correlations that share a column."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtr

from auditor.metrics._complete_cases import Z_95, Floats, complete_cases, is_constant


@dataclass(frozen=True, slots=True)
class Correlation:
    """A correlation over `n` complete pairs; `reason` says why `r`, or its interval, is None."""

    r: float | None
    p_value: float | None
    ci_low: float | None
    ci_high: float | None
    n: int
    n_dropped: int
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class CorrelationDifference:
    """r(truth, first) - r(truth, second), with Williams' t (n - 3 degrees of freedom) and a 95% interval."""

    difference: float | None
    t: float | None
    p_value: float | None
    ci_low: float | None
    ci_high: float | None
    n: int
    n_dropped: int
    reason: str | None = None


def pearson(x: ArrayLike, y: ArrayLike) -> Correlation:
    """Pearson's product-moment correlation.

    The p-value is of the two-sided t test against 0, the 95% interval from Fisher's z with variance 1 / (n - 3). Both
    assume independent pairs; where cells share countries and topics, see `crossed_jackknife`.

    Args:
        x, y: shape (n,); pairs with nan on either side are dropped and counted.

    Returns:
        r in [-1, 1]; None with a reason for fewer than 3 pairs or a constant side. No interval for 3 pairs or |r| = 1.

    Raises:
        ValueError: shapes differ, or a value is infinite.
    """
    (a, b), is_complete = complete_cases(x, y)
    return _correlation(a, b, int((~is_complete).sum()), ranks=False)


def spearman(x: ArrayLike, y: ArrayLike) -> Correlation:
    """Spearman's rank correlation; ties have their mean rank.

    As `pearson`, but Fisher's z has the variance (1 + r²/2) / (n - 3) of Bonett and Wright (Psychometrika 65, 2000,
    23-28): the usual one gives intervals that are too narrow for ranks.
    """
    (a, b), is_complete = complete_cases(x, y)
    return _correlation(_ranks(a), _ranks(b), int((~is_complete).sum()), ranks=True)


def dependent_correlation_difference(truth: ArrayLike, first: ArrayLike, second: ArrayLike) -> CorrelationDifference:
    """Test whether `first` correlates better with `truth` than `second` does, on the same rows.

    Test: Williams' t (Steiger, Psychological Bulletin 87, 1980, eq. 7). Interval: Zou (Psychological Methods 12, 2007,
    eq. 15), which combines the Fisher intervals of both correlations.

    Args:
        truth, first, second: shape (n,); rows with a nan are dropped and counted.

    Returns:
        The difference, in [-2, 2]; None with a reason for fewer than 4 rows, a constant or a collinear column.

    Raises:
        ValueError: shapes differ, or a value is infinite.
    """
    columns, is_complete = complete_cases(truth, first, second)
    n, n_dropped = int(is_complete.sum()), int((~is_complete).sum())
    if n < 4:
        return CorrelationDifference(None, None, None, None, None, n, n_dropped, f"fewer than 4 rows ({n})")
    if any(is_constant(column) for column in columns):
        return CorrelationDifference(None, None, None, None, None, n, n_dropped, "a column is constant")
    r: Floats = np.corrcoef(np.stack(columns))
    j, k, h = float(r[0, 1]), float(r[0, 2]), float(r[1, 2])
    if float(np.linalg.det(r)) < 1e-12:
        reason = "a column is a linear function of the others: no test"
        return CorrelationDifference(j - k, None, None, None, None, n, n_dropped, reason)
    t = _williams_t(j, k, h, n)
    low, high = _zou_interval(j, k, h, n)
    return CorrelationDifference(j - k, t, _two_sided_p_value(t, n - 3), low, high, n, n_dropped)


def _correlation(x: Floats, y: Floats, n_dropped: int, *, ranks: bool) -> Correlation:
    """Pearson's r of complete pairs with its t test and Fisher interval; `ranks` selects the variance for ranks."""
    n = len(x)
    reason = _undefined_reason(x, y)
    if reason is not None:
        return Correlation(None, None, None, None, n, n_dropped, reason)
    r = _product_moment(x, y)
    if 1 - abs(r) < 1e-14:
        return Correlation(r, 0.0, None, None, n, n_dropped, "|r| = 1: no interval")
    p = _two_sided_p_value(r * float(np.sqrt((n - 2) / ((1 - r) * (1 + r)))), n - 2)
    if n == 3:
        return Correlation(r, p, None, None, n, n_dropped, "an interval needs 4 pairs")
    low, high = _fisher_interval(r, n, 1 + r * r / 2 if ranks else 1.0)
    return Correlation(r, p, low, high, n, n_dropped)


def _undefined_reason(x: Floats, y: Floats) -> str | None:
    """Why r is undefined: fewer than 3 pairs, or a constant side; None where it is defined."""
    if len(x) < 3:
        return f"fewer than 3 pairs ({len(x)})"
    constant_sides = [name for name, side in (("x", x), ("y", y)) if is_constant(side)]
    return f"{' and '.join(constant_sides)} constant" if constant_sides else None


def _ranks(values: Floats) -> Floats:
    """Midranks, from 1: equal values share the mean of their ranks."""
    _, value_index, counts = np.unique(values, return_inverse=True, return_counts=True)
    midranks: Floats = (np.cumsum(counts) - (counts - 1) / 2)[value_index]
    return midranks


def _product_moment(x: Floats, y: Floats) -> float:
    """Pearson's r, clipped to [-1, 1]."""
    # Scaled to unit length before the product: the squares of small deviations would underflow.
    u, v = (_normalize(column - column.mean()) for column in (x, y))
    return float(np.clip(u @ v, -1, 1))


def _normalize(v: Floats) -> Floats:
    """The vector scaled to length 1."""
    scaled: Floats = v / np.abs(v).max()
    unit: Floats = scaled / np.linalg.norm(scaled)
    return unit


def _two_sided_p_value(t: float, df: int) -> float:
    """Two-sided p-value of Student's t with `df` degrees of freedom."""
    return float(2 * stdtr(df, -abs(t)))


def _fisher_interval(r: float, n: int, variance: float = 1.0) -> tuple[float, float]:
    """95% interval of r from Fisher's z, whose variance is `variance` / (n - 3)."""
    half_width = Z_95 * float(np.sqrt(variance / (n - 3)))
    z = np.arctanh(r)
    return float(np.tanh(z - half_width)), float(np.tanh(z + half_width))


def _williams_t(j: float, k: float, h: float, n: int) -> float:
    """Williams' t for two dependent correlations (Steiger 1980, eq. 7).

    Args:
        j, k: correlations of the truth with the first and the second column.
        h: correlation of these two columns.
        n: number of rows.
    """
    det = 1 - j * j - k * k - h * h + 2 * j * k * h
    scale = 2 * det * (n - 1) / (n - 3) + ((j + k) / 2) ** 2 * (1 - h) ** 3
    return float((j - k) * np.sqrt((n - 1) * (1 + h) / scale))


def _zou_interval(j: float, k: float, h: float, n: int) -> tuple[float, float]:
    """Zou's 95% interval of j - k (2007, eq. 15); arguments as for `_williams_t`."""
    correlation = ((h - j * k / 2) * (1 - j * j - k * k - h * h) + h**3) / ((1 - j * j) * (1 - k * k))
    (low_j, high_j), (low_k, high_k) = _fisher_interval(j, n), _fisher_interval(k, n)
    lower_width, upper_width = (
        _zou_half_width(j - low_j, high_k - k, correlation),
        _zou_half_width(high_j - j, k - low_k, correlation),
    )
    return j - k - lower_width, j - k + upper_width


def _zou_half_width(a: float, b: float, correlation: float) -> float:
    """Distance from the difference to one end, from the distances a and b of the single intervals' ends."""
    return float(np.sqrt(max(0.0, a * a + b * b - 2 * correlation * a * b)))
