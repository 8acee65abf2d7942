"""Consistency of a model with itself, over its samples for one question, and between questions, as by chance."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics._complete_cases import Floats

LENGTH_TOLERANCE = 0.1
"""Largest relative difference of the lengths of two texts that are compared: longer texts are more alike."""
MAX_PARTNERS = 10
"""Texts that each text is compared with, so that the cost is linear in the number of texts."""
TRIES_PER_PARTNER = 4


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


def similarity_to_other_cells(
    embeddings: ArrayLike,
    countries: ArrayLike,
    topics: ArrayLike,
    lengths: ArrayLike,
    *,
    same_topic: bool,
    rng: np.random.Generator,
) -> Floats:
    """Mean cosine of each text to texts about other countries: the level that self-consistency has by chance.

    Each text is compared with at most `MAX_PARTNERS` others, drawn at random from those of another country, of the same
    topic or of another one, whose lengths differ by at most `LENGTH_TOLERANCE` of its length.

    Args:
        embeddings: shape (n, d), unit rows.
        countries, topics: labels, shape (n,).
        lengths: of the texts in any unit, shape (n,).
        same_topic: whether texts are compared within topics; else only with those of other topics.
        rng: draws the partners.

    Returns:
        Shape (n,), in [-1, 1]; nan for a text without a partner. Each value depends on the partners, too:
        `influences` has the figures whose spread is that of the mean.
    """
    rows, sizes = np.asarray(embeddings, dtype=np.float64), np.asarray(lengths, dtype=np.float64)
    country_labels, topic_labels = np.asarray(countries), np.asarray(topics)
    similarities = np.full(len(rows), np.nan)
    groups = [np.flatnonzero(topic_labels == topic) for topic in np.unique(topic_labels)] if same_topic else None
    for group in groups or [np.arange(len(rows))]:
        order = group[np.argsort(sizes[group], kind="stable")]
        starts = np.searchsorted(sizes[order], sizes[order] * (1 - LENGTH_TOLERANCE), side="left")
        ends = np.searchsorted(sizes[order], sizes[order] * (1 + LENGTH_TOLERANCE), side="right")
        for row, start, end in zip(order, starts, ends, strict=True):
            drawn = start + rng.choice(end - start, min(end - start, MAX_PARTNERS * TRIES_PER_PARTNER), replace=False)
            partners = order[drawn]
            is_other = country_labels[partners] != country_labels[row]
            if not same_topic:
                is_other &= topic_labels[partners] != topic_labels[row]
            partners = partners[is_other][:MAX_PARTNERS]
            if len(partners):
                similarities[row] = rows[partners].mean(axis=0) @ rows[row]
    clipped: Floats = np.clip(similarities, -1.0, 1.0)
    return clipped


def influences(similarities: ArrayLike, groups: ArrayLike | None = None) -> Floats:
    """Values whose mean is that of similarities to other cells, and whose spread gives its standard error.

    A text enters the mean twice: by its own similarity, and by those of the texts that are compared with it. The value
    of a text is twice its similarity minus the mean, as for every U-statistic of pairs (Hoeffding 1948).

    Args:
        similarities: shape (n,), from `similarity_to_other_cells`; nan where there is none.
        groups: labels of the groups within which texts are compared, shape (n,); without them all are compared.

    Returns:
        Shape (n,); nan where there is no similarity.
    """
    values = np.asarray(similarities, dtype=np.float64)
    labels = np.zeros(len(values), dtype=np.intp) if groups is None else np.unique(groups, return_inverse=True)[1]
    present = ~np.isnan(values)
    counts = np.bincount(labels, weights=present)
    sums = np.bincount(labels, weights=np.where(present, values, 0.0))
    group_means: Floats = sums / np.maximum(counts, 1)
    return 2 * values - group_means[labels]


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
