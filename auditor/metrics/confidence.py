"""The level of all intervals and tests: intervals of 95%, tests at 5%."""

from __future__ import annotations

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


def bonferroni_level(n_intervals: int) -> float:
    """The confidence level of each of `n_intervals` intervals that hold together at `CONFIDENCE_LEVEL` (Bonferroni)."""
    return 1 - SIGNIFICANCE_LEVEL / n_intervals
