"""Correlations with confidence intervals, and the difference of two correlations that share a column."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics._complete_cases import CONSTANT_TOLERANCE, Floats, complete_cases, is_constant
from auditor.metrics._special import stdtr
from auditor.metrics.confidence import NORMAL_QUANTILE
from auditor.metrics.estimate import Tested


def pearson(x: ArrayLike, y: ArrayLike) -> Tested:
    """Pearson's product-moment correlation.

    The p-value is of the two-sided t test against 0, the 95% interval from Fisher's z with variance 1 / (n - 3). Both
    assume independent pairs; where cells share countries and topics, see `crossed_jackknife`.

    Args:
        x, y: shape (n,); pairs with nan on either side are left out.

    Returns:
        r in [-1, 1]; None with a reason for fewer than 3 pairs or a constant side. No interval for 3 pairs or |r| = 1.

    Raises:
        ValueError: shapes differ, or a value is infinite.
    """
    (a, b), _ = complete_cases(x, y)
    return _correlation(a, b, ranks=False)


def spearman(x: ArrayLike, y: ArrayLike) -> Tested:
    """Spearman's rank correlation; ties have their mean rank.

    As `pearson`, but Fisher's z has the variance (1 + r²/2) / (n - 3) of Bonett and Wright (Psychometrika 65, 2000,
    23-28): the usual one gives intervals that are too narrow for ranks.
    """
    (a, b), _ = complete_cases(x, y)
    return _correlation(_ranks(a), _ranks(b), ranks=True)


def pearson_by_row(x: ArrayLike, y: ArrayLike) -> Floats:
    """Pearson's r of each row, as `pearson` computes it for one.

    Args:
        x, y: shapes that broadcast to (..., n); pairs with nan on either side are left out.

    Returns:
        Shape (...); nan where `pearson` has no value.
    """
    columns = np.broadcast_arrays(np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64))
    is_pair = ~np.isnan(columns[0]) & ~np.isnan(columns[1])
    n = is_pair.sum(axis=-1)
    is_defined, product = n >= 3, np.ones(is_pair.shape)
    for column in columns:
        highest, lowest = (
            extreme(column, axis=-1, where=is_pair, initial=initial)
            for extreme, initial in ((np.max, -np.inf), (np.min, np.inf))
        )
        is_defined &= highest - lowest > CONSTANT_TOLERANCE * np.maximum(np.abs(highest), np.abs(lowest))
        mean = column.sum(axis=-1, where=is_pair) / np.maximum(n, 1)
        centered = np.where(is_pair, column - mean[..., None], 0.0)
        scaled = centered / np.where(is_defined, np.abs(centered).max(axis=-1, initial=0.0), 1.0)[..., None]
        product *= scaled / np.where(is_defined, np.linalg.norm(scaled, axis=-1), 1.0)[..., None]
    r: Floats = np.where(is_defined, np.clip(product.sum(axis=-1), -1, 1), np.nan)
    return r


def dependent_correlation_difference(truth: ArrayLike, first: ArrayLike, second: ArrayLike) -> Tested:
    """Test whether `first` correlates better with `truth` than `second` does, on the same rows.

    Test: Williams' t (Steiger, Psychological Bulletin 87, 1980, eq. 7). Interval: Zou (Psychological Methods 12, 2007,
    eq. 15), which combines the Fisher intervals of both correlations.

    Args:
        truth, first, second: shape (n,); rows with a nan are left out.

    Returns:
        The difference, in [-2, 2]; None with a reason for fewer than 4 rows, a constant or a collinear column.

    Raises:
        ValueError: shapes differ, or a value is infinite.
    """
    columns, _ = complete_cases(truth, first, second)
    n = len(columns[0])
    if n < 4:
        return Tested(None, n, reason=f"fewer than 4 rows ({n})")
    if any(is_constant(column) for column in columns):
        return Tested(None, n, reason="a column is constant")
    r: Floats = np.corrcoef(np.stack(columns))
    j, k, h = float(r[0, 1]), float(r[0, 2]), float(r[1, 2])
    if float(np.linalg.det(r)) < 1e-12:
        reason = "a column is a linear function of the others: no test"
        return Tested(j - k, n, reason=reason)
    p_value = _two_sided_p_value(_williams_t(j, k, h, n), n - 3)
    return Tested(j - k, n, *_zou_interval(j, k, h, n), p_value=p_value)


def _correlation(x: Floats, y: Floats, *, ranks: bool) -> Tested:
    """Pearson's r of complete pairs with its t test and Fisher interval; `ranks` selects the variance for ranks."""
    n = len(x)
    reason = _undefined_reason(x, y)
    if reason is not None:
        return Tested(None, n, reason=reason)
    r = _product_moment(x, y)
    if 1 - abs(r) < 1e-14:
        return Tested(r, n, reason="|r| = 1: no interval", p_value=0.0)
    p = _two_sided_p_value(r * float(np.sqrt((n - 2) / ((1 - r) * (1 + r)))), n - 2)
    if n == 3:
        return Tested(r, n, reason="an interval needs 4 pairs", p_value=p)
    return Tested(r, n, *_fisher_interval(r, n, 1 + r * r / 2 if ranks else 1.0), p_value=p)


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
    half_width = NORMAL_QUANTILE * float(np.sqrt(variance / (n - 3)))
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
