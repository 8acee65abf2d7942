"""Squared distance of cumulative shares, corrected for the sampling error of both sides.

A perfect model has an expected distance of 0 at any sample size, so these figures may be averaged over cells and
compared between models with different numbers of answers. That of a single cell may be below 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics._complete_cases import Floats
from auditor.metrics._shares import check_sizes, cumulate, cut_widths, read_shares


def cut_variance(shares: ArrayLike, n: ArrayLike) -> Floats:
    """Unbiased variance of the cumulative shares of a sample: F (1 - F) / (n - 1).

    Args:
        shares: shape (..., K).
        n: sample size, or the effective one of a weighted sample, shape (...) or a number; inf for stated shares.

    Returns:
        Shape (..., K - 1); nan for a sample of one, whose variance is unknown.

    Raises:
        ValueError: invalid shares, or a size below 1.
    """
    cumulative, (sizes,) = cumulate(shares), check_sizes(n)
    degrees = np.where(sizes > 1, sizes - 1, np.nan)[..., None]
    variances: Floats = cumulative * (1 - cumulative) / degrees
    return variances


def mean_of_orders(up: ArrayLike, down: ArrayLike) -> tuple[Floats, Floats]:
    """Mean shares of answers on the scale in both orders, and the variance of their cumulative shares.

    Args:
        up, down: shape (..., K), counts of answers, both from the scale's lower to its upper end.

    Returns:
        Shares of shape (..., K), in which both orders weigh alike, and variances of shape (..., K - 1).

    Raises:
        ValueError: an order has no answer, or counts are negative.
    """
    counts = [np.asarray(order, dtype=np.float64) for order in (up, down)]
    variances: Floats = sum((cut_variance(order, order.sum(axis=-1)) for order in counts), np.zeros(1)) / 4
    return (read_shares(counts[0]) + read_shares(counts[1])) / 2, variances


def squared_distance(
    people: ArrayLike,
    model: ArrayLike,
    points: ArrayLike,
    people_variance: ArrayLike,
    model_variance: ArrayLike = 0.0,
) -> Floats:
    """Squared difference of the cumulative shares over the scale, less the variance that sampling adds to it.

    Sum over cuts of [(F - G)^2 - var F - var G] times the cut's width as a share of the scale.

    Args:
        people, model: shape (..., K), shares.
        points: shape (K,), increasing.
        people_variance, model_variance: shape (..., K - 1), variances of the cumulative shares (`cut_variance`); 0 for
            stated shares. The sampling errors of both sides must be independent.

    Returns:
        Shape (...), at most 1, negative where the distance is less than expected from sampling alone.

    Raises:
        ValueError: invalid shares or points, or shapes that do not match.
    """
    first, second = cumulate(people), cumulate(model)
    noise = np.asarray(people_variance, dtype=np.float64) + np.asarray(model_variance, dtype=np.float64)
    distances: Floats = ((first - second) ** 2 - noise) @ cut_widths(points, first.shape[-1] + 1)
    return distances
