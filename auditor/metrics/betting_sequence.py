"""A confidence sequence for the mean of a finite population that is labelled one by one: valid however often one looks.

Waudby-Smith & Ramdas ("Confidence sequences for sampling without replacement", NeurIPS 2020; "Estimating means of
bounded random variables by betting", J. of the Royal Statistical Society B 86, 2024): if m is the mean, nobody can
expect to gain by betting on the next label, whose expectation is C_i(m) = (N m - S_{i-1}) / (N - i + 1). So a capital
of at least 1 / α is evidence against m (Ville's inequality). The bets are those of approximate growth (aGRAPA).

In a stratified sample the mean is Σ (N_h / N) m_h. The capital against it is the product of those of the strata, for
the vector of m_h with this mean that makes it smallest (Spertus, Sridhar & Stark, "Sequential stratified inference for
the mean", arXiv 2409.06680, 2024).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics._complete_cases import Floats
from auditor.metrics.confidence import SIGNIFICANCE_LEVEL

N_STEPS = 2000
"""Steps of the grid of means. The ends are rounded outwards, by at most one step for each stratum."""
MAX_BET = 0.75
"""Largest bet, as a share of the one that could lose the whole capital."""
PRIOR_MEAN, PRIOR_VARIANCE = 0.5, 0.25
"""Of a label before any is known; they count as one label."""


@dataclass(frozen=True, slots=True)
class SequenceInterval:
    """What is known of the mean so far; all figures in [0, 1].

    Attributes:
        value: the stratified mean of the labels; None without a label in a stratum.
        low, high: ends of the 95% confidence sequence.
        n: number of labels that are used.
    """

    value: float | None
    low: float
    high: float
    n: int

    @property
    def half_width(self) -> float:
        """Half of the distance of both ends."""
        return (self.high - self.low) / 2


def stratified_confidence_sequence(
    samples: Sequence[ArrayLike], sizes: Sequence[int], *, alpha: float = SIGNIFICANCE_LEVEL
) -> SequenceInterval:
    """Interval of the mean over a finite population from labels in random order within strata, at any time.

    A label that is nan, of a rater that is unsure, counts as 0 for the lower end and as 1 for the upper one.

    Args:
        samples: for each stratum, the labels so far in the order in which they were drawn, in [0, 1]; none left out.
        sizes: number N_h of units of each stratum, at least 1.
        alpha: the probability that the sequence ever misses the mean is at most this.

    Returns:
        `value` leaves nan out.

    Raises:
        ValueError: the numbers of strata differ, a sample is larger than its stratum, or a label is not in [0, 1].
    """
    labels = [np.asarray(sample, dtype=np.float64) for sample in samples]
    if not labels or len(labels) != len(sizes) or any(len(y) > n or n < 1 for y, n in zip(labels, sizes, strict=True)):
        raise ValueError("samples and sizes must have the same strata, each with at most as many labels as units")
    if any(((y < 0) | (y > 1)).any() for y in labels):
        raise ValueError("labels must be from 0 to 1, or nan where a rater is unsure")
    low = _find_ends([np.nan_to_num(y, nan=0.0) for y in labels], sizes, alpha)[0]
    high = _find_ends([np.nan_to_num(y, nan=1.0) for y in labels], sizes, alpha)[1]
    shares = np.asarray(sizes) / sum(sizes)
    known = [y[~np.isnan(y)] for y in labels]
    value = float(shares @ [y.mean() for y in known]) if all(len(y) for y in known) else None
    return SequenceInterval(value, low, high, sum(map(len, labels)))


def _find_ends(labels: Sequence[Floats], sizes: Sequence[int], alpha: float) -> tuple[float, float]:
    """The smallest and the largest mean against which the capital is below 1 / alpha."""
    total, step = sum(sizes), 1 / N_STEPS
    smallest = sum(float(y.sum()) for y in labels) / total
    unlabelled = (total - sum(map(len, labels))) / total
    capital = np.zeros(1)
    for y, size in zip(labels, sizes, strict=True):
        capital = _add_stratum(capital, _log_capital(y, size, step * total / size))
    possible = np.nonzero(capital < -np.log(alpha))[0]
    if not len(possible):
        return smallest, smallest + unlabelled
    low = smallest + possible[0] * step
    high = smallest + (possible[-1] + len(sizes)) * step
    return float(max(low, smallest)), float(min(high, smallest + unlabelled, 1.0))


def _log_capital(labels: Floats, size: int, step: float) -> Floats:
    """Smallest logarithm of the capital in each step of the stratum's possible means, shape (steps,)."""
    n_left = size - len(labels)
    smallest = float(labels.sum()) / size
    n_steps = max(1, int(np.ceil(n_left / size / step - 1e-9)))
    means = np.minimum(smallest + step * np.arange(n_steps + 1), smallest + n_left / size)
    log_capital, total = np.zeros_like(means), 0.0
    estimate, squares = PRIOR_MEAN, PRIOR_VARIANCE
    for i, label in enumerate(labels):
        expected = np.clip((size * means - total) / (size - i), 0.0, 1.0)
        gap = estimate - expected
        bet = gap / (squares / (i + 1) + gap**2)
        with np.errstate(divide="ignore"):
            bet = np.clip(bet, -MAX_BET / (1 - expected), MAX_BET / expected)
        log_capital += np.log1p(bet * (label - expected))
        total += float(label)
        updated = (PRIOR_MEAN + total) / (i + 2)
        squares += (float(label) - estimate) * (float(label) - updated)
        estimate = updated
    return np.minimum(log_capital[:-1], log_capital[1:])


def _add_stratum(first: Floats, second: Floats) -> Floats:
    """Smallest sum of both over all pairs of steps with the same sum of positions."""
    combined = np.full(len(first) + len(second) - 1, np.inf)
    shorter, longer = (first, second) if len(first) <= len(second) else (second, first)
    for i, value in enumerate(shorter):
        window = combined[i : i + len(longer)]
        np.minimum(window, longer + value, out=window)
    return combined
