"""The smallest and the largest correlation with people that scores within known ranges can have.

There is no closed form. For r of scores x and truth y, let S be the covariance of x with y, standardized, and V the
sum of (x - mean of x)^2, so that r = S / sqrt(V). Its smallest value over a box of ranges is found in one of two ways:

- Some scores of the box have S <= 0. There r is quasi-convex, since {S <= t sqrt(V)} is convex for t <= 0, and its
  minimum is exact: the scores are mean - y / k, clipped to the ranges, with k = -S / V (the derivative of r is then 0).
- All scores of the box have S > 0. There r is quasi-concave, so every score is at an end of its range. With the chord
  of each range in place of x^2, which makes V its concave envelope over the box, the problem is quasi-convex too; the
  solution has its scores at the ends by the sign of y - k (middle of the range - mean), with k = S / V. From there,
  single scores change their end while that lowers r. In the tests, which try all ends, the result is the minimum.

The largest r is minus the smallest with -y.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics._complete_cases import Floats

N_BISECTIONS = 40
MAX_STEPS = 60
"""Steps of a factor e within which the multiplier k is searched for."""

MAX_FEW_CELLS = 400
"""Up to so many cells, 4 bisections are computed in one array operation, since its overhead is the larger part of its
time; beyond, 2."""

ScoresForMean = Callable[[float, float | Floats], Floats]
"""From the multiplier k and the mean of the scores to the scores that minimize r if k and the mean are right.

For means of shape (m, 1), the scores have the shape (m, n)."""


class ExtremeScores(NamedTuple):
    """Scores within their ranges, shape (n,), with the smallest and with the largest r."""

    lowest: Floats
    highest: Floats


def extreme_correlation_scores(low: ArrayLike, high: ArrayLike, truth: ArrayLike) -> ExtremeScores | None:
    """Find the scores within their ranges that have the smallest and the largest correlation with the truth.

    Args:
        low, high: shape (n,), the smallest and the largest possible score of each cell, in [-1, 1]; equal where the
            score is known.
        truth: shape (n,).

    Returns:
        The scores; None where r is undefined for some scores of the box: all could be equal, or the truth is constant.
    """
    lows, highs, y = (np.asarray(column, dtype=np.float64) for column in (low, high, truth))
    centred = y - y.mean()
    if lows.max() <= highs.min() or centred @ centred <= 1e-12:
        return None
    slopes = centred / np.sqrt(centred @ centred)
    return ExtremeScores(_minimize(lows, highs, slopes), _minimize(lows, highs, -slopes))


def _minimize(lows: Floats, highs: Floats, slopes: Floats) -> Floats:
    """Scores with the smallest r; `slopes` is the standardized truth."""
    start = np.where(slopes > 0, lows, highs)  # the smallest covariance
    middles = (lows + highs) / 2
    if slopes @ start <= 0:
        return _solve(start, slopes, lambda k, mean: np.clip(mean - slopes / k, lows, highs))[-1]
    candidates = _solve(start, slopes, lambda k, mean: np.where(slopes > k * (middles - mean), lows, highs))
    improved = [_improve_ends(lows, highs, slopes, scores) for scores in candidates]
    return min(improved, key=lambda scores: _correlate(slopes, scores))


def _solve(start: Floats, slopes: Floats, scores_at: ScoresForMean) -> list[Floats]:
    """Find the multiplier k that equals |S| / V of its scores.

    Returns:
        The starting scores and those next to the solution, since scores at the ends of ranges jump there; for scores
        that do not jump, the last are the solution.
    """
    sign = 1.0 if slopes @ start > 0 else -1.0

    def excess(log_k: float) -> float:
        scores = _scores_with_own_mean(scores_at, log_k)[0]
        return float(np.exp(log_k) - sign * (slopes @ scores) / _sum_of_squares(scores))

    if abs(slopes @ start) < 1e-12:
        return [start]
    low = high = float(np.log(abs(slopes @ start) / _sum_of_squares(start)))
    for _ in range(MAX_STEPS):
        if excess(low) <= 0:
            break
        low -= 1.0
    for _ in range(MAX_STEPS):
        if excess(high) >= 0:
            break
        high += 1.0
    for _ in range(N_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) < 0 else (low, middle)
    return [start, *(scores for log_k in (low, high) for scores in _scores_with_own_mean(scores_at, log_k))]


def _scores_with_own_mean(scores_at: ScoresForMean, log_k: float) -> tuple[Floats, Floats]:
    """Scores whose mean is the one they were computed for: from just below that mean and from just above it.

    The mean of the scores less the mean they were computed for falls as the latter grows, perhaps by a jump.
    """
    k, low, high = float(np.exp(log_k)), -1.0, 1.0
    n_at_once = 4 if scores_at(k, low).size <= MAX_FEW_CELLS else 2
    points = np.arange(1, 2**n_at_once) / 2**n_at_once
    for _ in range(N_BISECTIONS // n_at_once):
        # All means that the next bisections could try, and whether the scores' mean is above each of them.
        means = low + (high - low) * points
        is_above = scores_at(k, means[:, None]).mean(axis=1) > means
        left, right = 0, len(means) + 1
        while right - left > 1:
            middle = (left + right) // 2
            left, right = (middle, right) if is_above[middle - 1] else (left, middle)
        low, high = (means[left - 1] if left else low), (means[right - 1] if right <= len(means) else high)
    return scores_at(k, low), scores_at(k, high)


def _improve_ends(lows: Floats, highs: Floats, slopes: Floats, scores: Floats) -> Floats:
    """Move single scores to the other end of their range, the most useful one first, while that lowers r."""
    x = scores.copy()
    while True:
        other_ends = lows + highs - x
        changes = other_ends - x
        sums_of_squares = x @ x + other_ends**2 - x**2 - (x.sum() + changes) ** 2 / len(x)
        r = (slopes @ x + slopes * changes) / np.sqrt(np.maximum(sums_of_squares, 1e-15))
        best = int(np.argmin(r))
        if r[best] >= _correlate(slopes, x) - 1e-12:
            return x
        x[best] = other_ends[best]


def _sum_of_squares(scores: Floats) -> float:
    """Sum of squared deviations from the mean."""
    centred = scores - scores.mean()
    return float(centred @ centred)


def _correlate(slopes: Floats, scores: Floats) -> float:
    """Pearson's r with the truth."""
    return float(slopes @ scores / np.sqrt(_sum_of_squares(scores)))
