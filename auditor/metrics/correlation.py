"""Correlations with their intervals, and the difference of two that share a column."""

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
    take the pairs for independent; where cells share countries and topics, see `crossed_interval`.

    Args:
        x, y: shape (n,); pairs with nan on either side are dropped and counted.

    Returns:
        r in [-1, 1]; None with a reason for fewer than 3 pairs or a constant side. No interval for 3 pairs or |r| = 1.

    Raises:
        ValueError: shapes differ, or a value is infinite.
    """
    (a, b), keep = complete_cases(x, y)
    return _correlation(a, b, int((~keep).sum()), ranks=False)


def spearman(x: ArrayLike, y: ArrayLike) -> Correlation:
    """Spearman's rank correlation, ties at their mean rank.

    As `pearson`, but with the variance (1 + r²/2) / (n - 3) of Bonett and Wright (Psychometrika 65, 2000, 23-28) for
    Fisher's z: the plain one is too narrow for ranks.
    """
    (a, b), keep = complete_cases(x, y)
    return _correlation(_ranks(a), _ranks(b), int((~keep).sum()), ranks=True)


def dependent_correlation_difference(truth: ArrayLike, first: ArrayLike, second: ArrayLike) -> CorrelationDifference:
    """Whether `first` correlates better with `truth` than `second` does, on the same rows.

    Test: Williams' t (Steiger, Psychological Bulletin 87, 1980, eq. 7). Interval: Zou (Psychological Methods 12, 2007,
    eq. 15), which joins the Fisher intervals of both correlations.

    Args:
        truth, first, second: shape (n,); rows with a nan are dropped and counted.

    Returns:
        The difference, in [-2, 2]; None with a reason for fewer than 4 rows, a constant or a collinear column.

    Raises:
        ValueError: shapes differ, or a value is infinite.
    """
    columns, keep = complete_cases(truth, first, second)
    n, dropped = int(keep.sum()), int((~keep).sum())
    if n < 4:
        return CorrelationDifference(None, None, None, None, None, n, dropped, f"fewer than 4 rows ({n})")
    if any(is_constant(c) for c in columns):
        return CorrelationDifference(None, None, None, None, None, n, dropped, "a column is constant")
    r: Floats = np.corrcoef(np.stack(columns))
    j, k, h = float(r[0, 1]), float(r[0, 2]), float(r[1, 2])
    if float(np.linalg.det(r)) < 1e-12:
        reason = "a column is a linear function of the others: no test"
        return CorrelationDifference(j - k, None, None, None, None, n, dropped, reason)
    t = _williams_t(j, k, h, n)
    low, high = _zou_interval(j, k, h, n)
    return CorrelationDifference(j - k, t, _two_sided_p_value(t, n - 3), low, high, n, dropped)


def _correlation(x: Floats, y: Floats, dropped: int, *, ranks: bool) -> Correlation:
    n = len(x)
    reason = _undefined_reason(x, y)
    if reason is not None:
        return Correlation(None, None, None, None, n, dropped, reason)
    r = _product_moment(x, y)
    if 1 - abs(r) < 1e-14:
        return Correlation(r, 0.0, None, None, n, dropped, "|r| = 1: no interval")
    p = _two_sided_p_value(r * float(np.sqrt((n - 2) / ((1 - r) * (1 + r)))), n - 2)
    if n == 3:
        return Correlation(r, p, None, None, n, dropped, "an interval needs 4 pairs")
    low, high = _fisher_interval(r, n, 1 + r * r / 2 if ranks else 1.0)
    return Correlation(r, p, low, high, n, dropped)


def _undefined_reason(x: Floats, y: Floats) -> str | None:
    if len(x) < 3:
        return f"fewer than 3 pairs ({len(x)})"
    flat = [name for name, side in (("x", x), ("y", y)) if is_constant(side)]
    return f"{' and '.join(flat)} constant" if flat else None


def _ranks(values: Floats) -> Floats:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    middle: Floats = (np.cumsum(counts) - (counts - 1) / 2)[place]
    return middle


def _product_moment(x: Floats, y: Floats) -> float:
    # Lengths first, product later: the squares of small deviations would underflow.
    u, v = (_normalize(side - side.mean()) for side in (x, y))
    return float(np.clip(u @ v, -1, 1))


def _normalize(v: Floats) -> Floats:
    scaled: Floats = v / np.abs(v).max()
    unit: Floats = scaled / np.linalg.norm(scaled)
    return unit


def _two_sided_p_value(t: float, df: int) -> float:
    return float(2 * stdtr(df, -abs(t)))


def _fisher_interval(r: float, n: int, variance: float = 1.0) -> tuple[float, float]:
    half = Z_95 * float(np.sqrt(variance / (n - 3)))
    z = np.arctanh(r)
    return float(np.tanh(z - half)), float(np.tanh(z + half))


def _williams_t(j: float, k: float, h: float, n: int) -> float:
    det = 1 - j * j - k * k - h * h + 2 * j * k * h
    scale = 2 * det * (n - 1) / (n - 3) + ((j + k) / 2) ** 2 * (1 - h) ** 3
    return float((j - k) * np.sqrt((n - 1) * (1 + h) / scale))


def _zou_interval(j: float, k: float, h: float, n: int) -> tuple[float, float]:
    shared = ((h - j * k / 2) * (1 - j * j - k * k - h * h) + h**3) / ((1 - j * j) * (1 - k * k))
    (low_j, high_j), (low_k, high_k) = _fisher_interval(j, n), _fisher_interval(k, n)
    down, up = _zou_half_width(j - low_j, high_k - k, shared), _zou_half_width(high_j - j, k - low_k, shared)
    return j - k - down, j - k + up


def _zou_half_width(a: float, b: float, correlation: float) -> float:
    return float(np.sqrt(max(0.0, a * a + b * b - 2 * correlation * a * b)))
