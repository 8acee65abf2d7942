"""Input checks shared by the metrics of distributions: shares of ordered answers, their cumulative sums and points."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics._complete_cases import Floats


def read_shares(shares: ArrayLike) -> Floats:
    """Divide shares or counts by their sum over the last axis.

    Args:
        shares: shape (..., K), at least 0. A row with a nan is missing: all its shares become nan.

    Raises:
        ValueError: fewer than two answers, a negative or infinite share, or a row that sums to 0.
    """
    values = np.asarray(shares, dtype=np.float64)
    if values.ndim == 0 or values.shape[-1] < 2:
        raise ValueError(f"shares need at least two answers in the last axis, but have the shape {values.shape}")
    if np.isinf(values).any() or (values < 0).any():
        raise ValueError("shares must be finite and at least 0")
    totals = values.sum(axis=-1, keepdims=True)
    if (totals == 0).any():
        raise ValueError("shares must not all be 0")
    divided: Floats = values / totals
    return divided


def cumulate(shares: ArrayLike) -> Floats:
    """Cumulative shares at the K - 1 cuts between neighbouring answers, shape (..., K - 1)."""
    cumulative: Floats = np.minimum(np.cumsum(read_shares(shares), axis=-1)[..., :-1], 1.0)
    return cumulative


def cut_widths(points: ArrayLike, n_points: int) -> Floats:
    """Distances between neighbouring points as shares of the whole scale, shape (K - 1,); they sum to 1.

    Args:
        points: shape (K,), the scores of the answers, increasing.

    Raises:
        ValueError: another number of points than of answers, or points that do not increase.
    """
    values = np.asarray(points, dtype=np.float64)
    if values.shape != (n_points,):
        raise ValueError(f"there must be one point for each of the {n_points} answers, but points have {values.shape}")
    widths = np.diff(values)
    if not (np.isfinite(values).all() and (widths > 0).all()):
        raise ValueError("points must be finite and increase from answer to answer")
    normalized: Floats = widths / (values[-1] - values[0])
    return normalized


def unit_points(points: ArrayLike, n_points: int) -> Floats:
    """The points rescaled to [0, 1], shape (K,). Raises ValueError as `cut_widths`."""
    return np.concatenate([[0.0], np.cumsum(cut_widths(points, n_points))])


def check_sizes(*sizes: ArrayLike) -> list[Floats]:
    """Sample sizes as arrays; inf means shares without sampling error.

    Raises:
        ValueError: a size is below 1.
    """
    arrays = [np.asarray(size, dtype=np.float64) for size in sizes]
    if any((array < 1).any() for array in arrays):
        raise ValueError("sample sizes must be at least 1")
    return arrays
