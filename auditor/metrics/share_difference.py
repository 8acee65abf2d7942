"""Difference of two shares of independent cases."""

from __future__ import annotations

from math import sqrt

from auditor.metrics.estimate import Estimate
from auditor.metrics.proportion import proportion


def difference_of_shares(hits: int, n: int, other_hits: int, other_n: int) -> Estimate:
    """One share minus another, with Newcombe's interval (Statistics in Medicine 17, 1998, 873-890, method 10).

    It combines the Wilson intervals of both, so it has a width even where a share is 0 or 1. `n` counts the cases of
    both.

    Raises:
        ValueError: more hits than cases, or a negative number.
    """
    first, second = proportion(hits, n), proportion(other_hits, other_n)
    bounds = [first.value, first.ci_low, first.ci_high, second.value, second.ci_low, second.ci_high]
    defined_bounds = [bound for bound in bounds if bound is not None]
    if len(defined_bounds) < len(bounds):
        return Estimate(None, n + other_n, reason="one side has no verdict")
    p, low, high, q, other_low, other_high = defined_bounds  # each share with its interval
    lower_width, upper_width = (
        sqrt((p - low) ** 2 + (other_high - q) ** 2),
        sqrt((high - p) ** 2 + (q - other_low) ** 2),
    )
    return Estimate(p - q, n + other_n, p - q - lower_width, p - q + upper_width)
