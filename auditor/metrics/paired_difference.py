"""The mean difference of two measurements on the same cases, such as questions: an interval, and its p-value.

The interval is that of a mean between two bounds (`auditor.metrics.unit_means`). The p-value of no difference is the
level at which the interval of 1 minus this level ends at 0, so it is below 0.05 where the 95% interval excludes 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, log

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import betainc, ndtri, stdtrit

from auditor.metrics._complete_cases import Floats, complete_cases
from auditor.metrics._unit_counts import ratio_variance
from auditor.metrics.estimate import Estimate
from auditor.metrics.unit_means import mean_over_units

MIN_LEVEL, MAX_LEVEL = 1e-12, 0.999
"""Levels of the intervals between which the p-value is searched."""


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """The mean of second minus first over pairs.

    Attributes:
        p_value: two-sided, of no difference; None without an interval.
    """

    estimate: Estimate
    p_value: float | None


def paired_difference(
    first: ArrayLike, second: ArrayLike, units: Mapping[str, ArrayLike], *, bounds: tuple[float, float]
) -> PairedDifference:
    """The mean of second minus first on the same cases, with an interval and its p-value.

    Args:
        first, second: shape (n,); pairs with a nan are left out.
        units: the kind of unit that is resampled, such as `question`, and the unit of each pair, all different.
        bounds: smallest and largest possible difference, finite, one below 0 and one above.

    Returns:
        No interval and no p-value, with a reason, below 5 pairs or where all differences are equal.

    Raises:
        ValueError: shapes differ, a value is infinite or a difference outside the bounds, or the bounds are as above.
    """
    if not -np.inf < bounds[0] < 0 < bounds[1] < np.inf:
        raise ValueError(f"bounds must be finite, one below 0 and one above, but are {bounds}")
    (a, b), is_paired = complete_cases(first, second)
    paired_units = {unit: np.asarray(labels)[is_paired] for unit, labels in units.items()}
    mean = mean_over_units(b - a, paired_units, bounds, empty_reason="no pair has both values")
    return PairedDifference(mean, None if mean.ci_low is None else _p_value(b - a, bounds))


def _p_value(differences: Floats, bounds: tuple[float, float]) -> float:
    """The level of the interval that ends at 0, of differences that have an interval.

    Student's quantile depends on the level, and so does the number of independent cases. With that of the 95% interval
    at all levels, 0.6% of the tests of 12 equal pairs would be below 0.003, and Holm's method needs such small levels.
    """
    width, n_pairs = bounds[1] - bounds[0], len(differences)
    shares = np.clip((differences - bounds[0]) / width, 0.0, 1.0)
    share, no_difference = float(shares.mean()), -bounds[0] / width
    if share in (0.0, 1.0):  # then each pair counts as one case, at every level
        return _share_p_value(share, no_difference, n_pairs)
    n_cases = share * (1 - share) / ratio_variance(shares, np.ones_like(shares), {"pair": np.arange(n_pairs)})

    def p_value_at(level: float) -> float:
        few_units_factor = (ndtri(level / 2) / stdtrit(n_pairs - 1, level / 2)) ** 2
        return _share_p_value(share, no_difference, n_cases * few_units_factor)

    if p_value_at(MAX_LEVEL) >= MAX_LEVEL:
        return 1.0
    if p_value_at(MIN_LEVEL) <= MIN_LEVEL:
        return p_value_at(MIN_LEVEL)
    return exp(brentq(lambda x: p_value_at(exp(x)) - exp(x), log(MIN_LEVEL), log(MAX_LEVEL), xtol=1e-12))


def _share_p_value(share: float, expected: float, n: float) -> float:
    """Two-sided p-value of Clopper & Pearson's interval of a share of n cases, against an expected share."""
    if share < expected:
        share, expected = 1 - share, 1 - expected
    return min(1.0, 2 * float(betainc(share * n, (1 - share) * n + 1, expected)))
