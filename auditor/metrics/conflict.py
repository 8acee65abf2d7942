"""Conflicts between models on one cell, and votes that settle them."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtr, stdtrit

from auditor.metrics.error import IntervalEstimate

ConflictKindName = Literal["binary", "outlier", "gradient"]

ZERO_TOLERANCE = 1e-12
"""By so little a mean of a few decimal fractions may miss what it is."""
DIFFERENCE_DIGITS, MIN_THRESHOLD = 9, 1e-9
MAX_THRESHOLD = 2.0


class ConflictingPair(NamedTuple):
    """Two models, by position, that conflict, and how."""

    left: int
    right: int
    kind: ConflictKindName


def find_conflicts(scores: ArrayLike, threshold: float) -> list[ConflictingPair]:
    """Pairs of models whose scores on a cell differ by at least the threshold.

    A pair is `binary` when its scores lie on opposite sides of zero; else `outlier` when one of the two conflicts with
    every other model while all the others, at least two of them, agree among themselves; else `gradient`.

    Args:
        scores: shape (models,), in [-1, 1]; nan where a model has no score, which conflicts with nothing.
        threshold: least absolute difference that is a conflict, in (0, 2].

    Returns:
        Pairs with left < right, in order.

    Raises:
        ValueError: the threshold is not in (0, 2].
    """
    if not 0 < threshold <= 2:
        raise ValueError(f"threshold must be in (0, 2], but got {threshold!r}")
    values = np.asarray(scores, dtype=float)
    # Scores come from means of decimal fractions: 0.38 apart must not fail to be by a rounding error.
    differs = np.abs(values[:, None] - values[None, :]) >= threshold - ZERO_TOLERANCE
    alone = _outlier_mask(differs, ~np.isnan(values))
    return [
        ConflictingPair(int(i), int(j), _classify_conflict(values[i], values[j], bool(alone[i] or alone[j])))
        for i, j in zip(*np.nonzero(np.triu(differs, 1)), strict=True)
    ]


def have_opposite_signs(left: ArrayLike, right: ArrayLike) -> NDArray[np.bool_]:
    """Whether two scores lie on opposite sides of zero, of the same shape; zero is on neither, and nan is not.

    What is nearer to zero than rounding is zero: the mean of 0.1, 0.2 and -0.3 is 2e-17.
    """
    sides = [np.where(np.abs(x) < ZERO_TOLERANCE, 0.0, np.sign(x)) for x in (np.asarray(left), np.asarray(right))]
    found: NDArray[np.bool_] = sides[0] * sides[1] < 0
    return found


def _classify_conflict(left: float, right: float, has_outlier: bool) -> ConflictKindName:
    if have_opposite_signs(left, right):
        return "binary"
    return "outlier" if has_outlier else "gradient"


def _outlier_mask(conflicts: NDArray[np.bool_], present: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which models conflict with every other one, while the rest, of two or more, agree among themselves."""
    n = int(present.sum())
    degree = conflicts.sum(axis=1)
    edges = int(np.triu(conflicts, 1).sum())
    alone: NDArray[np.bool_] = present & (degree == n - 1)
    return alone if n >= 3 and edges == n - 1 else np.zeros_like(present)


def third_quartile(differences: ArrayLike) -> IntervalEstimate:
    """What three in four of an audit's differences do not exceed: a threshold that the audit sets itself.

    The value interpolates between neighbours (Hyndman and Fan, American Statistician 50, 1996, type 7). The 95%
    interval lies between two order statistics with binomial ranks (Conover, Practical Nonparametric Statistics, 3rd
    ed. 1999, sec. 3.2). It takes the differences for independent: those of one cell are not, so it is too narrow.

    Args:
        differences: any shape, of either sign, of which the size counts, to 1e-9; nan is dropped and counted.

    Returns:
        At least 0; None with a reason for no differences. No interval for fewer than 13.

    Raises:
        ValueError: a difference is infinite.
    """
    sizes = np.abs(np.asarray(differences, dtype=np.float64)).ravel()
    if np.isinf(sizes).any():
        raise ValueError("differences must be finite, or nan where a score is missing, but one is infinite")
    known = np.sort(np.round(sizes[~np.isnan(sizes)], DIFFERENCE_DIGITS))
    n, dropped = len(known), int(np.isnan(sizes).sum())
    if n == 0:
        return IntervalEstimate(None, 0, dropped, None, None, "no differences")
    value = float(np.quantile(known, 0.75))
    below = bdtr(np.arange(n), n, 0.75)  # below[k]: the chance that at most k of them lie under the true quartile
    low, high = int(np.searchsorted(below, 0.025, side="right")) - 1, int(np.searchsorted(below, 0.975))
    if low < 0 or high >= n:
        return IntervalEstimate(value, n, dropped, None, None, "too few differences for an interval")
    return IntervalEstimate(value, n, dropped, float(known[low]), float(known[high]))


def auto_threshold(quartile: float | None) -> float:
    """The threshold that an audit sets itself, by the third quartile of its differences; in (0, 2].

    Where there is no difference, or three in four are none, every pair would be a conflict: then it is 2, which only
    opposite extremes reach.
    """
    return MAX_THRESHOLD if quartile is None or quartile < MIN_THRESHOLD else quartile


def is_within_noise(
    difference: float, variances: tuple[float | None, float | None], sample_sizes: tuple[int, int]
) -> bool | None:
    """Whether two means differ by no more than their own samples' noise would have them, at the 5% level.

    Welch's test (Biometrika 34, 1947, 28-35); it knows nothing of what other prompts or another day would change.

    Args:
        difference: of the means.
        variances: of the samples behind each (n - 1 in the denominator); None where it is not known.
        sizes: samples behind each.

    Returns:
        None where a variance is not known, or both are 0 and so is their estimate of the noise.
    """
    (first, second), (n, m) = variances, sample_sizes
    if first is None or second is None or min(n, m) < 2:
        return None
    u, v = first / n, second / m
    if u + v == 0:
        return None
    freedom = (u + v) ** 2 / (u * u / (n - 1) + v * v / (m - 1))
    return bool(abs(difference) <= float(stdtrit(freedom, 0.975)) * float(np.sqrt(u + v)))


def settle(votes_left: int, votes_right: int, seats: int) -> Literal["left", "right"] | None:
    """The side that a strict majority of the assigned seats upholds.

    Abstentions and failures stay in the denominator: a panel that did not answer has settled nothing.

    Args:
        votes_left, votes_right: valid votes for either side.
        seats: votes that were assigned, cast or not.

    Returns:
        The winning side; None on a tie or when too few votes are valid.

    Raises:
        ValueError: a number is negative, or there are more votes than seats.
    """
    if min(votes_left, votes_right, seats) < 0 or votes_left + votes_right > seats:
        raise ValueError(f"{votes_left} + {votes_right} votes do not fit {seats} seats")
    if 2 * votes_left > seats:
        return "left"
    return "right" if 2 * votes_right > seats else None


def judge_vote(valid_left: int, given_left: int, valid_right: int, given_right: int) -> Literal["left", "right"] | None:
    """One judge's vote in a conflict: for the side of whose traces it found the larger share VALID.

    Shares, and not counts, so that a side does not win by having more traces, nor through a judge who finds all VALID.

    Returns:
        The side; None (an abstention) when the shares are equal or the judge has no verdict on one side.
    """
    if given_left == 0 or given_right == 0:
        return None
    left, right = valid_left * given_right, valid_right * given_left
    if left == right:
        return None
    return "left" if left > right else "right"
