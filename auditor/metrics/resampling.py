"""Means over questions, which could have been others: intervals, and a test for paired differences.

Percentiles of a bootstrap of few questions are too narrow (over 5 they hold the mean in 85 of 100 runs), so below
`MIN_BOOTSTRAP` of them the interval is Student's. Where all questions say the same, neither sees how they might differ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from auditor.metrics._complete_cases import is_constant
from auditor.metrics.share import mean_share

Floats = NDArray[np.float64]

MIN_QUESTIONS = 5
"""With fewer too little is seen of how questions differ."""
MIN_BOOTSTRAP = 20
"""With fewer the bootstrap's percentiles are too narrow."""
_BLOCK_SIZE = 2_000_000
"""Numbers drawn at a time."""


@dataclass(frozen=True, slots=True)
class MeanEstimate:
    """A mean over `n` questions with a 95% interval; `reason` says why something is None."""

    value: float | None
    n: int
    ci_low: float | None
    ci_high: float | None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class PairedDifference(MeanEstimate):
    """The mean of second less first over `n` pairs; `p_value` is of the two-sided sign-flip test against 0."""

    p_value: float | None = None


def bootstrap_mean(
    values: ArrayLike, *, replicates: int = 2000, seed: int = 0, bounds: tuple[float, float] = (-np.inf, np.inf)
) -> MeanEstimate:
    """A mean with its percentile interval over questions drawn with replacement (Efron, Annals of Statistics 7, 1979).

    Below 20 questions the interval is Student's.

    Args:
        values: shape (n,), one a question; nan where there is none, which is left out.
        replicates, seed: of the bootstrap.
        bounds: what a value can be at least and at most; ends are cut there.

    Returns:
        No interval, with a reason, below 5 questions or where all have one value; None without any.

    Raises:
        ValueError: not one-dimensional, or a value is infinite.
    """
    kept = _drop_missing(values)
    n = len(kept)
    if n == 0:
        return MeanEstimate(None, 0, None, None, "no question has a value")
    mean = float(kept.mean())
    if n < MIN_QUESTIONS:
        return MeanEstimate(mean, n, None, None, f"an interval needs {MIN_QUESTIONS} questions")
    if is_constant(kept):
        return MeanEstimate(mean, n, None, None, "all questions have the same value: no interval")
    if n < MIN_BOOTSTRAP:
        half = float(stdtrit(n - 1, 0.975) * kept.std(ddof=1) / np.sqrt(n))
        return MeanEstimate(mean, n, max(bounds[0], mean - half), min(bounds[1], mean + half))
    rng = np.random.default_rng(seed)
    block = max(1, _BLOCK_SIZE // n)
    means = np.concatenate(
        [
            kept[rng.integers(0, n, (min(block, replicates - start), n))].mean(axis=1)
            for start in range(0, replicates, block)
        ]
    )
    low, high = np.quantile(means, (0.025, 0.975))
    return MeanEstimate(mean, n, float(low), float(high))


def paired_difference(
    first: ArrayLike, second: ArrayLike, *, replicates: int = 2000, flips: int = 10_000, seed: int = 0
) -> PairedDifference:
    """The mean of second less first on the same questions, with an interval and a test.

    The test flips the signs of the differences at random: under the hypothesis that nothing changes, either sign is as
    likely (Fisher, The Design of Experiments, 1935, section 21). p counts the observed assignment too.

    Args:
        first, second: shape (n,); pairs with a nan are left out.
        replicates, flips, seed: of the bootstrap and of the test.

    Raises:
        ValueError: shapes differ, not one-dimensional, or a value is infinite.
    """
    a, b = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if a.shape != b.shape:
        raise ValueError(f"first and second must have one shape, but have {a.shape} and {b.shape}")
    differences = _drop_missing(b - a)
    mean = bootstrap_mean(differences, replicates=replicates, seed=seed)
    if mean.value is None:
        return PairedDifference(None, 0, None, None, "no question has both values")
    n = len(differences)
    rng = np.random.default_rng(seed)
    block = max(1, _BLOCK_SIZE // n)
    observed = abs(float(differences.sum()))
    slack = 1e-12 * float(np.abs(differences).sum())
    extreme = 0
    for start in range(0, flips, block):
        signs = rng.integers(0, 2, (min(block, flips - start), n)) * 2 - 1
        extreme += int((np.abs(signs @ differences) >= observed - slack).sum())
    p = (extreme + 1) / (flips + 1)
    return PairedDifference(mean.value, n, mean.ci_low, mean.ci_high, mean.reason, p)


def bootstrap_share(hits: ArrayLike, totals: ArrayLike, *, replicates: int = 2000, seed: int = 0) -> MeanEstimate:
    """The share of all hits in all totals, with its interval over questions (see `ratio_interval`).

    Judgements on one question hang together, so that their number alone would make the interval too narrow.

    Args:
        hits, totals: shape (n,), counts of each question; a question without judgements is left out.
        replicates, seed: of the bootstrap.

    Returns:
        `n` counts judgements; no interval, with a reason, below 5 questions.

    Raises:
        ValueError: shapes differ, or not 0 <= hits <= totals.
    """
    part, whole = np.asarray(hits, dtype=float), np.asarray(totals, dtype=float)
    if part.shape != whole.shape or part.ndim != 1 or (part < 0).any() or (part > whole).any():
        raise ValueError("hits and totals must be counts of one shape (n,), hits at most totals")
    part, whole = part[whole > 0], whole[whole > 0]
    n, questions = int(whole.sum()), len(whole)
    if n == 0:
        return MeanEstimate(None, 0, None, None, "no judgement is valid")
    value = float(part.sum() / whole.sum())
    if questions < MIN_QUESTIONS:
        return MeanEstimate(value, n, None, None, f"an interval needs {MIN_QUESTIONS} questions")
    low, high = ratio_interval(part, whole, replicates=replicates, seed=seed)
    return MeanEstimate(value, n, low, high)


def ratio_interval(hits: Floats, totals: Floats, *, replicates: int = 2000, seed: int = 0) -> tuple[float, float]:
    """The 95% interval of sum(hits) / sum(totals) over other clusters than these.

    Percentiles of a bootstrap of whole clusters; below 20 of them Student's, from the ratio with one left out. Where
    all clusters have one share there is no spread to see: Wilson's for as many cases as there are clusters.

    Args:
        hits, totals: shape (n,) from 2 clusters on, 0 <= hits <= totals, totals positive.

    Returns:
        Both in [0, 1].
    """
    n, value = len(hits), float(hits.sum() / totals.sum())
    if is_constant(hits / totals):
        same = mean_share(round(n * value, 9), n)
        return same.ci_low or 0.0, 1.0 if same.ci_high is None else same.ci_high
    if n < MIN_BOOTSTRAP:
        without = (hits.sum() - hits) / (totals.sum() - totals)
        variance = (n - 1) / n * float(((without - without.mean()) ** 2).sum())
        half = float(stdtrit(n - 1, 0.975)) * variance**0.5
        return max(0.0, value - half), min(1.0, value + half)
    rng = np.random.default_rng(seed)
    block = max(1, _BLOCK_SIZE // n)
    shares = []
    for start in range(0, replicates, block):
        drawn = rng.integers(0, n, (min(block, replicates - start), n))
        shares.append(hits[drawn].sum(axis=1) / totals[drawn].sum(axis=1))
    low, high = np.quantile(np.concatenate(shares), (0.025, 0.975))
    return float(low), float(high)


def _drop_missing(values: ArrayLike) -> Floats:
    numbers = np.asarray(values, dtype=float)
    if numbers.ndim != 1:
        raise ValueError(f"values must be one-dimensional, but have the shape {numbers.shape}")
    if np.isinf(numbers).any():
        raise ValueError("values must be finite, or nan where there is none")
    kept: Floats = numbers[~np.isnan(numbers)]
    return kept
