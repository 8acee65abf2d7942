"""The level of all intervals and tests: intervals of 95%, tests at 5%."""

from __future__ import annotations

from math import sqrt

SIGNIFICANCE_LEVEL = 0.05
"""A p-value below it is reported as a difference."""
PAGE_ONE_LEVEL = 0.01
"""The level of tests whose findings stand on page one beside the answer: several families at 5% each would together
state something false on more than 10% of pages."""
CONFIDENCE_LEVEL = 1 - SIGNIFICANCE_LEVEL
LOWER_QUANTILE, UPPER_QUANTILE = SIGNIFICANCE_LEVEL / 2, 1 - SIGNIFICANCE_LEVEL / 2
"""Cumulative probabilities at the ends of a two-sided interval."""
NORMAL_QUANTILE = 1.959963984540054
"""The standard normal distribution's quantile at `UPPER_QUANTILE`, as a number: loading scipy takes half a second."""

MIN_DF = 4
"""The fewest degrees of freedom of an interval over units: it needs five of them."""
_STUDENT_QUANTILE = 2.7764451051977987
"""Quantile of Student's distribution with `MIN_DF` degrees of freedom at `UPPER_QUANTILE`."""


def bound_p_value(value: float, ci_low: float, ci_high: float, reference: float = 0.0) -> float:
    """Upper bound of the two-sided p-value that belongs to a 95% interval: it is 0.05 where the interval ends.

    The interval is taken as one of Student's with `MIN_DF` degrees of freedom, whose tails are the heaviest. An
    interval without length excludes any other value.

    Args:
        value: the estimate, between `ci_low` and `ci_high`.
        reference: the value under the null hypothesis.
    """
    distance = abs(value - reference)
    half_width = value - ci_low if value > reference else ci_high - value
    if distance == 0 or half_width <= 0:
        return 1.0 if distance == 0 else 0.0
    t = _STUDENT_QUANTILE * distance / half_width
    scale = 1 + t * t / MIN_DF  # the distribution function of 4 degrees of freedom is a polynomial of t / sqrt(scale)
    upper_tail = 0.5 - 0.375 * t / sqrt(scale) * (1 - t * t / scale / 12)
    return min(1.0, max(0.0, 2 * upper_tail))


def bonferroni_level(n_intervals: int) -> float:
    """The confidence level of each of `n_intervals` intervals that hold together at `CONFIDENCE_LEVEL` (Bonferroni)."""
    return 1 - SIGNIFICANCE_LEVEL / n_intervals
