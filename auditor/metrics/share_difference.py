"""Difference of two shares of independent cases."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

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
