"""Distances of distributions of answers with their sampling error, and the effect of the scale's order."""

from __future__ import annotations

from math import isfinite
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics.intervals.estimate import LOWER_QUANTILE, UPPER_QUANTILE, Estimate, Floats
from auditor.metrics.intervals.special_functions import ndtr


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


DEFAULT_ITEM_CORRELATION = 0.3
"""Correlation of a person's answers to two questions, on the scale of a latent normal variable."""
N_FLOOR_DRAWS = 200
N_RESPONDENTS = 2000
"""Simulated respondents of a country, from whose answers the sampling errors of its shares are drawn."""


def wasserstein(p: ArrayLike, q: ArrayLike, points: ArrayLike) -> Floats:
    """Wasserstein-1 distance of answers on one ordered scale, as a share of the length of the scale.

    Sum over cuts of |F - G| times the distance of the neighbouring points, divided by the length of the scale, where F
    and G are cumulative shares (Santurkar et al., arXiv 2303.17548, subtract the same figure from 1).

    Args:
        p, q: shape (..., K), shares or counts; a row with a nan is missing.
        points: shape (K,), the scores of the answers, increasing.

    Returns:
        Shape (...), in [0, 1]: 0 for equal shares, 1 where all answers are at opposite ends; nan for a missing row.

    Raises:
        ValueError: invalid shares or points, or shapes that do not match.
    """
    first, second = cumulate(p), cumulate(q)
    distances: Floats = np.abs(first - second) @ cut_widths(points, first.shape[-1] + 1)
    return distances


def sampling_floor(p: ArrayLike, points: ArrayLike, n: ArrayLike, m: ArrayLike = np.inf) -> Floats:
    """Expected Wasserstein distance of two samples that were both drawn from `p`.

    By the normal approximation: sum over cuts of sqrt(2 F (1 - F) (1/n + 1/m) / pi) times the cut's width.

    Args:
        p: shape (..., K), shares.
        n, m: sizes of the two samples, shape (...) or a number; inf for shares that are stated instead of sampled.

    Returns:
        Shape (...), in [0, 1].

    Raises:
        ValueError: invalid shares or points, or a size below 1.
    """
    cumulative = cumulate(p)
    first_size, second_size = check_sizes(n, m)
    variances = cumulative * (1 - cumulative) * np.asarray(1 / first_size + 1 / second_size)[..., None]
    floors: Floats = np.sqrt(2 * variances / np.pi) @ cut_widths(points, cumulative.shape[-1] + 1)
    return floors


def mean_sampling_floor(
    p: ArrayLike,
    points: ArrayLike,
    n: ArrayLike,
    m: float,
    countries: ArrayLike,
    *,
    item_correlation: float = DEFAULT_ITEM_CORRELATION,
    seed: int = 0,
) -> Estimate:
    """Mean distance over cells that a perfect sampler of people would have, with the 95% band of this mean.

    The band draws respondents, each of whom answers all questions of the country: cells of one country share their
    sampling error, and a band over independent cells would be too narrow. Answers of one respondent are correlated by
    a Gaussian copula.

    Args:
        p: shape (cells, K), people's shares; rows with a nan are left out.
        n: people's effective sample size, a number or shape (cells,).
        m: number of the model's answers per cell; inf for stated shares.
        countries: shape (cells,), labels of any kind.
        item_correlation: of one respondent's latent answers to two questions, in [0, 1).

    Returns:
        `n` counts cells; the interval is that of other samples of the same cells.

    Raises:
        ValueError: as `sampling_floor`, or shapes differ.
    """
    shares = read_shares(p)
    complete = ~np.isnan(shares).any(axis=-1)
    if not complete.any():
        return Estimate(None, 0, reason="no cell has shares")
    sizes, labels = np.broadcast_to(np.asarray(n, dtype=np.float64), complete.shape), np.asarray(countries)
    if labels.shape != complete.shape:
        raise ValueError(f"countries must have the shape {complete.shape}, but have {labels.shape}")
    shares, sizes, labels = shares[complete], sizes[complete], labels[complete]
    floor = float(sampling_floor(shares, points, sizes, m).mean())
    widths, rng = cut_widths(points, shares.shape[-1]), np.random.default_rng(seed)
    totals = np.zeros(N_FLOOR_DRAWS)
    for country in np.unique(labels):
        cells = labels == country
        errors = _draw_people_errors(shares[cells], sizes[cells], item_correlation, rng)
        errors = errors + _draw_model_errors(shares[cells], m, rng)
        totals += (np.abs(errors) @ widths).sum(axis=1)
    low, high = np.quantile(totals / len(labels), (LOWER_QUANTILE, UPPER_QUANTILE))
    return Estimate(floor, len(labels), float(low), float(high), resampled=("sample",))


def _draw_people_errors(shares: Floats, sizes: Floats, correlation: float, rng: np.random.Generator) -> Floats:
    """Sampling errors of the cumulative shares of one country, shape (draws, cells, cuts), correlated over cells.

    Multiplier bootstrap: sums over simulated respondents of their deviations, each times a standard normal number.
    """
    cumulative = cumulate(shares)
    common = rng.standard_normal((N_RESPONDENTS, 1))
    single = rng.standard_normal((N_RESPONDENTS, len(shares)))
    ranks = ndtr(np.sqrt(correlation) * common + np.sqrt(1 - correlation) * single)
    deviations = (ranks[:, :, None] <= cumulative) - cumulative
    multipliers = rng.standard_normal((N_FLOOR_DRAWS, N_RESPONDENTS))
    multipliers -= multipliers.mean(axis=1, keepdims=True)
    sums = multipliers @ deviations.reshape(N_RESPONDENTS, -1)
    errors: Floats = sums.reshape(N_FLOOR_DRAWS, *cumulative.shape) / np.sqrt(N_RESPONDENTS * sizes)[:, None]
    return errors


def _draw_model_errors(shares: Floats, m: float, rng: np.random.Generator) -> Floats | float:
    """Sampling errors of the cumulative shares of a model that draws m independent answers in each cell."""
    if not isfinite(m):
        return 0.0
    counts = rng.multinomial(int(m), shares, size=(N_FLOOR_DRAWS, len(shares)))
    errors: Floats = cumulate(counts) - cumulate(shares)
    return errors


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


def total_variation(p: ArrayLike, q: ArrayLike) -> Floats:
    """Total variation distance: half the sum of absolute differences.

    Args:
        p, q: shape (..., K), shares or counts.

    Returns:
        Shape (...), in [0, 1]; nan for a row with a nan.

    Raises:
        ValueError: invalid shares, or shapes that do not match.
    """
    distances: Floats = np.abs(read_shares(p) - read_shares(q)).sum(axis=-1) / 2
    return distances


def jensen_shannon(p: ArrayLike, q: ArrayLike) -> Floats:
    """Jensen-Shannon distance in bits: the root of the divergence with logarithms of base 2.

    Figures in nats, scipy's default, are smaller by the factor sqrt(ln 2) = 0.83.

    Args:
        p, q: shape (..., K), shares or counts.

    Returns:
        Shape (...), in [0, 1]; nan for a row with a nan.

    Raises:
        ValueError: invalid shares, or shapes that do not match.
    """
    first, second = read_shares(p), read_shares(q)
    middle = (first + second) / 2
    divergence = (_relative_entropy(first, middle) + _relative_entropy(second, middle)) / 2
    distances: Floats = np.sqrt(np.clip(divergence, 0.0, 1.0))
    return distances


def _relative_entropy(p: Floats, q: Floats) -> Floats:
    """Kullback-Leibler divergence in bits, where q is above 0 wherever p is."""
    is_positive = p > 0
    ratios = np.divide(p, q, out=np.ones_like(p), where=is_positive)
    summands: Floats = (p * np.log2(ratios)).sum(axis=-1)
    return summands


class OrderEffect(NamedTuple):
    """Effects of the order per cell, each of shape (...).

    Attributes:
        shift: by how much of the scale answers move towards the end that is shown first, in [-1, 1]; below 0 they move
            towards the last. Unbiased at any number of answers.
        distance: Wasserstein distance of the answers in both orders, in [0, 1].
        floor: the distance that sampling alone would cause; 0 for stated shares.
    """

    shift: Floats
    distance: Floats
    floor: Floats


def order_effect(
    up: ArrayLike, down: ArrayLike, points: ArrayLike, n_up: ArrayLike = np.inf, n_down: ArrayLike = np.inf
) -> OrderEffect:
    """Compare answers on the scale from low to high with those on the scale from high to low.

    Args:
        up, down: shape (..., K), shares or counts in the two orders, both from the scale's lower to its upper end.
        points: shape (K,), increasing.
        n_up, n_down: number of answers in each order; inf for stated shares.

    Raises:
        ValueError: invalid shares or points, or a size below 1.
    """
    first, second = read_shares(up), read_shares(down)
    # Half of the difference of the means: each order moves answers by the effect, in opposite directions.
    shift: Floats = (second - first) @ unit_points(points, first.shape[-1]) / 2
    return OrderEffect(
        shift, wasserstein(first, second, points), sampling_floor((first + second) / 2, points, n_up, n_down)
    )
