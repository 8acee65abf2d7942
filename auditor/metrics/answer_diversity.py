"""How diverse answers are: their variance against people's, and whether a model gives one answer again and again."""

from __future__ import annotations

from math import lgamma

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics._complete_cases import Floats
from auditor.metrics._shares import check_sizes, read_shares, unit_points


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
