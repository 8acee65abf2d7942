"""Consistency of a model with itself, over its samples for one question."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics._complete_cases import Floats


def self_consistency(embeddings: ArrayLike) -> float:
    """Mean pairwise cosine of the reasoning embeddings (EvalMORAAL, arXiv 2510.05942).

    Args:
        embeddings: shape (k, d); rows need not be normalised. A row with a nan, or of zeros, has no direction and
            counts as a missing sample.

    Returns:
        In [-1, 1], 1 when all rows have the same direction; nan with fewer than two rows that have one.

    Raises:
        ValueError: another shape, or a value is infinite.
    """
    rows = np.asarray(embeddings, dtype=np.float64)
    if rows.ndim != 2:
        raise ValueError(f"embeddings must have the shape (k, d), but got {rows.shape}")
    return float(self_consistencies(rows[None])[0])


def self_consistencies(embeddings: NDArray[np.floating], block: int = 256) -> Floats:
    """`self_consistency` of many questions at once, `block` of them in memory at a time.

    Args:
        embeddings: shape (q, k, d); pad with nan where a question has fewer samples than k.
        block: questions computed together.

    Returns:
        Shape (q,).

    Raises:
        ValueError: as `self_consistency`.
    """
    if embeddings.ndim != 3:
        raise ValueError(f"embeddings must have the shape (q, k, d), but got {embeddings.shape}")
    values = np.empty(len(embeddings))
    for start in range(0, len(embeddings), block):
        block_slice = slice(start, start + block)
        values[block_slice] = _mean_cosine(np.asarray(embeddings[block_slice], dtype=np.float64))
    return values


def _mean_cosine(rows: Floats) -> Floats:
    """Mean pairwise cosine of the rows, shape (..., k, d) to (...).

    The sum of all cosines of k unit rows u is |sum of u|², of which k are on the diagonal.
    """
    if np.isinf(rows).any():
        raise ValueError("embeddings must be finite, or nan where a sample is missing, but one holds an infinity")
    # Scaled first: squares of very small or very large numbers would underflow or overflow.
    largest = np.abs(rows).max(axis=-1, keepdims=True, initial=0.0)
    has_direction = largest > 0
    rows = np.where(has_direction, rows / np.where(has_direction, largest, 1.0), 0.0)
    unit_rows = rows / np.where(has_direction, np.linalg.norm(rows, axis=-1, keepdims=True), 1.0)
    n_present = has_direction.sum(axis=(-1, -2))
    n_pairs = n_present * (n_present - 1)
    cosine_sum = (unit_rows.sum(axis=-2) ** 2).sum(axis=-1) - n_present
    return np.where(n_pairs > 0, np.clip(cosine_sum / np.maximum(n_pairs, 1), -1.0, 1.0), np.nan)


def score_variance(scores: ArrayLike) -> Floats:
    """Sample variance (divisor n - 1) of the scores of each cell's samples, in squared units of the score.

    Args:
        scores: shape (..., k); nan where a sample has no score.

    Returns:
        Shape (...); nan with fewer than two scores.
    """
    values, present, n = _fill_missing(scores)
    mean = values.sum(axis=-1) / np.maximum(n, 1)
    sum_of_squares = (np.where(present, values - mean[..., None], 0.0) ** 2).sum(axis=-1)
    return np.where(n >= 2, sum_of_squares / np.maximum(n - 1, 1), np.nan)


def sign_agreement(scores: ArrayLike) -> Floats:
    """Share of a cell's samples that have its most frequent sign: negative, zero or positive.

    Args, Returns: as `score_variance`, in [1/3, 1].
    """
    values, present, n = _fill_missing(scores)
    counts_by_sign = [(present & (np.sign(values) == sign)).sum(axis=-1) for sign in (-1, 0, 1)]
    return np.where(n >= 2, np.maximum.reduce(counts_by_sign) / np.maximum(n, 1), np.nan)


def straddles_zero(scores: ArrayLike) -> Floats:
    """Whether a cell's samples lie on both sides of zero: 1.0 or 0.0; a score of zero is on neither side.

    Args, Returns: as `score_variance`. The mean without nan is the share of cells whose samples disagree on the sign.
    """
    values, _, n = _fill_missing(scores)
    return np.where(n >= 2, (values < 0).any(axis=-1) & (values > 0).any(axis=-1), np.nan)


def _fill_missing(scores: ArrayLike) -> tuple[Floats, NDArray[np.bool_], NDArray[np.int_]]:
    """The scores with 0 for missing ones, the mask of those present, and their number."""
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim == 0 or np.isinf(values).any():
        raise ValueError("scores must have the shape (..., k) and be finite, or nan where a sample has none")
    present = ~np.isnan(values)
    return np.where(present, values, 0.0), present, present.sum(axis=-1)
