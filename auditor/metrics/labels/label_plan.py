"""Which units people label, how many, and what a confidence sequence says while they label."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, inf

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics.intervals.estimate import NORMAL_QUANTILE, SIGNIFICANCE_LEVEL, UPPER_QUANTILE, Floats
from auditor.metrics.intervals.special_functions import ndtri, stdtrit

DEFAULT_MIN_PER_STRATUM = 10
"""Fewest sampled units of a stratum, or all of it: an interval needs a variance within each stratum."""
_LOW_BITS = 2.0**20


def allocate_sample(
    stratum_sizes: ArrayLike, n: int, *, min_per_stratum: int = DEFAULT_MIN_PER_STRATUM
) -> NDArray[np.intp]:
    """Divide a sample among strata in proportion to their sizes, with a minimum.

    Every stratum gets the minimum first. The others go one by one to the stratum with the largest N_h / (2 n_h + 1),
    the method of Sainte-Laguë. Unlike rounded quotas, a larger sample never takes a unit from a stratum (Balinski and
    Young, Fair Representation, 2nd ed. 2001, ch. 4).

    Args:
        stratum_sizes: number of units N_h of each stratum, shape (strata,).
        n: size of the sample.
        min_per_stratum: fewest units of a stratum; a smaller stratum is taken in full.

    Returns:
        Sample size n_h of each stratum, shape (strata,). The sum is n, or more if the minimum demands it, or the size
        of the population if that is smaller.

    Raises:
        ValueError: a size, n or the minimum is negative.
    """
    sizes = np.asarray(stratum_sizes, dtype=np.intp)
    if n < 0 or min_per_stratum < 0 or (sizes < 0).any():
        raise ValueError("sizes, n and min_per_stratum must be at least 0")
    allocated = np.minimum(sizes, min_per_stratum)
    if n >= sizes.sum():
        return sizes
    queue = [(-size / (2 * taken + 1), h) for h, (size, taken) in enumerate(zip(sizes, allocated, strict=True))]
    heapq.heapify(queue)
    for _ in range(n - int(allocated.sum())):
        while allocated[queue[0][1]] >= sizes[queue[0][1]]:
            heapq.heappop(queue)
        _, h = queue[0]
        allocated[h] += 1
        heapq.heapreplace(queue, (-sizes[h] / (2 * allocated[h] + 1), h))
    return allocated


def draw_stratified_sample(
    strata: ArrayLike,
    random_numbers: ArrayLike,
    n: int,
    *,
    min_per_stratum: int = DEFAULT_MIN_PER_STRATUM,
    drawn: Sequence[int] = (),
) -> NDArray[np.intp]:
    """Draw units of every stratum, in an order that mixes the strata.

    The first labels of a sample are then spread over the strata like the whole, and each stratum is labelled in random
    order, so that labelling may stop at any time.

    Args:
        strata: number of each unit's stratum, from 0 without gaps, shape (N,).
        random_numbers: a random number of each unit, uniform on [0, 1), shape (N,).
        n: size of the sample.
        min_per_stratum: fewest units of a stratum, as in `allocate_sample`.
        drawn: positions of the units of an earlier, smaller sample of the same units.

    Returns:
        Positions of the units that are drawn in addition to `drawn`, in labelling order.

    Raises:
        ValueError: shapes differ, a random number is outside [0, 1), or `n` is negative.
    """
    stratum, numbers = np.asarray(strata, dtype=np.intp), np.asarray(random_numbers, dtype=np.float64)
    if stratum.shape != numbers.shape or stratum.ndim != 1:
        raise ValueError("strata and random_numbers must have the same shape (N,)")
    if not ((numbers >= 0) & (numbers < 1)).all():
        raise ValueError("random numbers must be in [0, 1)")
    is_drawn = np.zeros(len(stratum), dtype=bool)
    is_drawn[list(drawn)] = True
    n_allocated = allocate_sample(np.bincount(stratum), n, min_per_stratum=min_per_stratum)
    n_new = np.maximum(n_allocated - np.bincount(stratum[is_drawn], minlength=len(n_allocated)), 0)
    candidates = np.lexsort((numbers, stratum))
    candidates = candidates[~is_drawn[candidates]]
    first = np.searchsorted(stratum[candidates], np.arange(len(n_new)))
    rank = np.arange(len(candidates)) - first[stratum[candidates]]
    is_new = rank < n_new[stratum[candidates]]
    new, rank = candidates[is_new], rank[is_new]
    # The low bits are independent of the order within the stratum: without jitter, strata would take turns in a
    # pattern from which a rater could guess the stratum.
    jitter = numbers[new] * _LOW_BITS % 1
    places: NDArray[np.intp] = new[np.argsort((rank + jitter) / n_new[stratum[new]], kind="stable")]
    return places


DEFAULT_POWER = 0.8


def labels_for_half_width(half_width: float, sd: float, n_traces: float = inf) -> int:
    """Labels for a 95% interval of a mean over these traces: n = n₀ / (1 + n₀ / N), n₀ = (t sd / half-width)².

    Cochran, Sampling Techniques, 3rd ed. 1977, section 4.6, with Student's t of n - 1 degrees of freedom.

    Args:
        half_width: of the interval, above 0.
        sd: standard deviation of what is labelled within strata, such as of people's label minus the judge's verdict;
            at most 0.5 of a label within the strata of a verdict.
        n_traces: number of traces, all of which are as many labels as can be.

    Raises:
        ValueError: the half-width is not above 0, or sd is negative.
    """
    if not half_width > 0 or sd < 0:
        raise ValueError(f"half_width must be above 0 and sd at least 0, but they are {half_width!r} and {sd!r}")
    n, quantile = 2, NORMAL_QUANTILE
    for _ in range(50):
        base = (quantile * sd / half_width) ** 2
        needed = max(2, ceil(base / (1 + base / n_traces)))
        if needed <= n:
            break
        n, quantile = needed, float(stdtrit(needed - 1, UPPER_QUANTILE))
    return int(min(n, n_traces))


def labels_for_difference(difference: float, sd: float, *, n_comparisons: int = 1, power: float = DEFAULT_POWER) -> int:
    """Labels of each of two groups to show a difference of two means: 2 sd² ((z₁ + z₂) / difference)².

    z₁ is the two-sided quantile of 5% divided by the number of comparisons (Bonferroni), z₂ that of the power.

    Args:
        difference: the smallest one to be shown, above 0.
        sd: standard deviation within each group.

    Raises:
        ValueError: the difference is not above 0, or another argument is out of its range.
    """
    if not difference > 0 or sd < 0:
        raise ValueError(f"difference must be above 0 and sd at least 0, but they are {difference!r} and {sd!r}")
    quantiles = detectable_difference(1.0, n_comparisons=n_comparisons, power=power)
    return max(2, ceil(2 * (sd * quantiles / difference) ** 2))


def detectable_difference(std_error: float, *, n_comparisons: int = 1, power: float = DEFAULT_POWER) -> float:
    """The difference that a test shows with a probability of `power`: std_error (z₁ + z₂), as for the labels.

    Args:
        std_error: of the difference.

    Raises:
        ValueError: an argument is out of its range.
    """
    if std_error < 0 or n_comparisons < 1 or not 0 < power < 1:
        raise ValueError("std_error must be at least 0, n_comparisons at least 1 and power between 0 and 1")
    return std_error * float(ndtri(1 - SIGNIFICANCE_LEVEL / n_comparisons / 2) + ndtri(power))


def half_width_floor(sd_by_unit: Mapping[str, float], n_by_unit: Mapping[str, int]) -> float:
    """Half-width of a 95% interval over other units that no number of labels passes: t √Σ sd² / n.

    Args:
        sd_by_unit: for each kind of unit, such as `topic`, the standard deviation over its units of the mean of what is
            labelled.
        n_by_unit: number of units of each kind, at least 2.

    Returns:
        With t of the smallest number of units minus 1; for 19 topics with a standard deviation of 0.10 it is 0.048.

    Raises:
        ValueError: the kinds differ, there are none, or a kind has fewer than 2 units.
    """
    if not sd_by_unit or set(sd_by_unit) != set(n_by_unit) or min(n_by_unit.values()) < 2:
        raise ValueError("sd_by_unit and n_by_unit must have the same kinds of units, each of at least 2 units")
    variance = sum(sd**2 / n_by_unit[unit] for unit, sd in sd_by_unit.items())
    return float(stdtrit(min(n_by_unit.values()) - 1, UPPER_QUANTILE) * float(variance) ** 0.5)


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
    low, high = _find_ends([np.nan_to_num(y, nan=0.0) for y in labels], sizes, alpha)
    if any(np.isnan(y).any() for y in labels):
        _, high = _find_ends([np.nan_to_num(y, nan=1.0) for y in labels], sizes, alpha)
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
        second = _log_capital(y, size, step * total / size)
        shorter, longer = (capital, second) if len(capital) <= len(second) else (second, capital)
        capital = np.full(len(capital) + len(second) - 1, np.inf)
        for i, value in enumerate(shorter):
            window = capital[i : i + len(longer)]
            np.minimum(window, longer + value, out=window)
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
    smallest_by_step: Floats = np.minimum(log_capital[:-1], log_capital[1:])
    return smallest_by_step
