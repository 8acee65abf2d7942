"""Wasserstein distance of answers on an ordered scale, and how large sampling alone makes it.

The distance of two samples of one distribution is above 0, by more the smaller the samples are: its sampling floor.
The floor is printed beside a distance and never subtracted from it, since noise does not add to a distance. For an
unbiased figure see `auditor.metrics.cumulative_distance`.
"""

from __future__ import annotations

from math import isfinite

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics._complete_cases import Floats
from auditor.metrics._shares import check_sizes, cumulate, cut_widths, read_shares
from auditor.metrics._special import ndtr
from auditor.metrics.confidence import LOWER_QUANTILE, UPPER_QUANTILE
from auditor.metrics.estimate import Estimate

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
