"""Samples of one question: self-consistency, diversity of answers, and scores from log-probabilities."""

from __future__ import annotations

from math import lgamma

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics.distributions.distances import check_sizes, read_shares, unit_points
from auditor.metrics.intervals.estimate import Floats

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


def share_variance(shares: ArrayLike, points: ArrayLike, n: ArrayLike = np.inf) -> Floats:
    """Unbiased variance of answers on the scale rescaled to [0, 1].

    Args:
        shares: shape (..., K), shares or counts.
        points: shape (K,), increasing.
        n: number of answers, or the effective one, shape (...) or a number; inf for stated shares.

    Returns:
        Shape (...), at least 0; nan for a single answer.

    Raises:
        ValueError: invalid shares or points, or a size below 1.
    """
    divided, (sizes,) = read_shares(shares), check_sizes(n)
    values = unit_points(points, divided.shape[-1])
    means = divided @ values
    variances = np.maximum(divided @ values**2 - means**2, 0.0)
    with np.errstate(divide="ignore"):
        unbiased: Floats = variances / np.where(sizes > 1, 1 - 1 / sizes, np.nan)
    return unbiased


def variance_of_orders(up: ArrayLike, down: ArrayLike, points: ArrayLike) -> Floats:
    """Unbiased variance of answers that come from the scale in both orders, which weigh alike.

    The variance of the pooled shares lacks the variance of their mean, which is added.

    Args:
        up, down: shape (..., K), counts of answers, both from the scale's lower to its upper end.

    Returns:
        Shape (...); nan where an order has a single answer.
    """
    counts = [np.asarray(order, dtype=np.float64) for order in (up, down)]
    pooled = share_variance((read_shares(counts[0]) + read_shares(counts[1])) / 2, points)
    sizes = [order.sum(axis=-1) for order in counts]
    of_mean = [share_variance(order, points, size) / size for order, size in zip(counts, sizes, strict=True)]
    variances: Floats = pooled + (of_mean[0] + of_mean[1]) / 4
    return variances


def equal_answers(counts: ArrayLike) -> Floats:
    """Whether all answers of a cell are the same: shape (...), 1 or 0; nan for a missing row."""
    largest = read_shares(counts).max(axis=-1)
    return np.where(np.isnan(largest), np.nan, (largest > 1 - 1e-12).astype(np.float64))


def equal_answers_probability(shares: ArrayLike, m: int) -> Floats:
    """Probability that m people drawn at random all give one answer: the sum of p^m, shape (...)."""
    probabilities: Floats = (read_shares(shares) ** m).sum(axis=-1)
    return probabilities


def answer_entropy(counts: ArrayLike) -> Floats:
    """Shannon entropy of shares or counts in bits, shape (...), from 0 to log2 K."""
    divided = read_shares(counts)
    entropies: Floats = -(divided * np.log2(np.where(divided > 0, divided, 1.0))).sum(axis=-1)
    return entropies


def rarefied_entropy(shares: ArrayLike, m: int) -> Floats:
    """Expected entropy, in bits, of m answers that are drawn from shares.

    Entropies of samples of different sizes differ by bias alone, so a model's m answers are compared with m answers of
    people. Exact: the sum over answers and counts k of -(k/m) log2(k/m) times the binomial probability of k.

    Args:
        shares: shape (..., K).
        m: number of answers, at least 1.

    Returns:
        Shape (...), from 0 to log2 of the smaller of K and m.

    Raises:
        ValueError: invalid shares, or m below 1.
    """
    check_sizes(m)
    divided = read_shares(shares)
    part = np.arange(1, m + 1) / m
    terms = -part * np.log2(part)
    entropies: Floats = (_binomial_probabilities(np.arange(1, m + 1), m, divided[..., None]) @ terms).sum(axis=-1)
    return entropies


def _binomial_probabilities(counts: NDArray[np.intp], m: int, shares: Floats) -> Floats:
    """Probability of each count among m draws, by share; shapes are broadcast."""
    coefficients = np.array([lgamma(m + 1) - lgamma(k + 1) - lgamma(m - k + 1) for k in counts.tolist()])
    with np.errstate(divide="ignore", invalid="ignore"):
        missed = np.where(counts < m, (m - counts) * np.log1p(-shares), 0.0)
        probabilities: Floats = np.exp(coefficients + counts * np.log(shares) + missed)
    return probabilities


def min_max_scale(values: ArrayLike) -> Floats:
    """Scale values linearly to [-1, 1]: the smallest becomes -1, the largest +1 (EvalMORAAL, arXiv 2510.05942).

    The result depends on the values that are present, so use it within one model and one survey only. A value near 0
    means "in the middle of this model's range", not "neutral".

    Args:
        values: shape (n,); nan where there is none.

    Returns:
        Shape (n,), nan where there is no value; all nan where the values have no range.

    Raises:
        ValueError: another shape, or a value is infinite.
    """
    x = np.asarray(values, dtype=np.float64)
    if x.ndim != 1 or np.isinf(x).any():
        raise ValueError("values must have the shape (n,) and be finite, or nan where there is none")
    present = x[~np.isnan(x)]
    low, high = (present.min(), present.max()) if present.size else (0.0, 0.0)
    if high - low <= 1e-12 * max(1.0, abs(low), abs(high)):
        return np.full_like(x, np.nan)
    scaled: Floats = np.clip(2 * (x - low) / (high - low) - 1, -1.0, 1.0)
    return scaled
