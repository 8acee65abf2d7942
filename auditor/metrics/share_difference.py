"""Differences of two shares of independent cases, or of the same cases, with Newcombe's intervals."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics.proportion import proportion


@dataclass(frozen=True, slots=True)
class ShareDifference:
    """A difference of two shares with a 95% interval; `reason` says why something is None.

    Attributes:
        n: cases that it is computed from.
        n_exposed: those of them on the first side of the difference.
    """

    value: float | None
    n: int
    n_exposed: int
    ci_low: float | None
    ci_high: float | None
    reason: str | None = None


def difference_of_shares(hits: int, n: int, other_hits: int, other_n: int) -> ShareDifference:
    """One share minus another, with Newcombe's interval (Statistics in Medicine 17, 1998, 873-890, method 10).

    It combines the Wilson intervals of both, so it has a width even where a share is 0 or 1.

    Raises:
        ValueError: more hits than cases, or a negative number.
    """
    first, second = proportion(hits, n), proportion(other_hits, other_n)
    bounds = [first.value, first.ci_low, first.ci_high, second.value, second.ci_low, second.ci_high]
    defined_bounds = [bound for bound in bounds if bound is not None]
    if len(defined_bounds) < len(bounds):
        return ShareDifference(None, n + other_n, n, None, None, "one side has no verdict")
    p, low, high, q, other_low, other_high = defined_bounds  # each share with its interval
    lower_width, upper_width = (
        sqrt((p - low) ** 2 + (other_high - q) ** 2),
        sqrt((high - p) ** 2 + (q - other_low) ** 2),
    )
    return ShareDifference(p - q, n + other_n, n, p - q - lower_width, p - q + upper_width)


def difference_of_paired_shares(both: int, first: int, second: int, neither: int) -> ShareDifference:
    """One share minus another over the same cases (Newcombe, Statistics in Medicine 17, 1998, 2635-2650, method 10).

    As `difference_of_shares`, with the correlation of the pairs taken into account.

    Args:
        both, first, second, neither: cases that count in both shares, in one only, in neither.

    Raises:
        ValueError: a number is negative.
    """
    n = both + first + second + neither
    first_share, second_share = proportion(both + first, n), proportion(both + second, n)
    bounds = [
        first_share.value,
        first_share.ci_low,
        first_share.ci_high,
        second_share.value,
        second_share.ci_low,
        second_share.ci_high,
    ]
    defined_bounds = [bound for bound in bounds if bound is not None]
    if len(defined_bounds) < len(bounds):
        return ShareDifference(None, n, n, None, None, "no case")
    p, low, high, q, other_low, other_high = defined_bounds  # each share with its interval
    phi = _phi_coefficient(both, first, second, neither)
    lower_width, upper_width = (
        _newcombe_half_width(p - low, other_high - q, phi),
        _newcombe_half_width(high - p, q - other_low, phi),
    )
    return ShareDifference(p - q, n, n, p - q - lower_width, p - q + upper_width)


def _phi_coefficient(a: int, b: int, c: int, d: int) -> float:
    """Phi of the table [[a, b], [c, d]], a positive one with Newcombe's continuity correction; 0 where undefined."""
    denominator = sqrt((a + b) * (c + d) * (a + c) * (b + d))
    numerator: float = a * d - b * c
    if numerator > 0:
        numerator = max(numerator - (a + b + c + d) / 2, 0)
    return numerator / denominator if denominator else 0.0


def _newcombe_half_width(x: float, y: float, phi: float) -> float:
    """Distance from a difference of two shares to one end of its interval.

    Args:
        x, y: distances from each share to the end of its own interval.
        phi: correlation of the pairs.
    """
    return sqrt(max(0.0, x * x - 2 * phi * x * y + y * y))


def verdict_drift(before: ArrayLike, after: ArrayLike) -> ShareDifference:
    """How much more lenient a judge is in a second run on the same traces; paired, so trace quality cancels out.

    Args:
        before, after: shape (traces,), 1, 0 or nan.
    """
    first_run, second_run = (np.asarray(x, dtype=np.float64) for x in (before, after))
    judged_twice = ~np.isnan(first_run) & ~np.isnan(second_run)
    valid_before, valid_after = first_run[judged_twice] == 1, second_run[judged_twice] == 1
    outcome_masks = (
        (valid_after & valid_before),
        (valid_after & ~valid_before),
        (~valid_after & valid_before),
        (~valid_after & ~valid_before),
    )
    return difference_of_paired_shares(*(int(mask.sum()) for mask in outcome_masks))
