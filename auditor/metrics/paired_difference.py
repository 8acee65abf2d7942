"""The mean difference of two measurements on the same cases, such as questions: an interval, and its p-value.

The interval is that of a mean between two bounds (`auditor.metrics.unit_means`). The p-value of no difference is the
level at which the interval of 1 minus this level ends at 0, so it is below 0.05 where the 95% interval excludes 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from math import exp, log

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics._complete_cases import complete_cases
from auditor.metrics._root import find_root
from auditor.metrics._special import betainc, ndtri, stdtrit
from auditor.metrics.estimate import Tested
from auditor.metrics.unit_means import BoundedMean, bounded_mean_over_units

MIN_LEVEL, MAX_LEVEL = 1e-12, 0.999
"""Levels of the intervals between which the p-value is searched."""


def paired_difference(
    first: ArrayLike, second: ArrayLike, units: Mapping[str, ArrayLike], *, bounds: tuple[float, float]
) -> Tested:
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
    mean = bounded_mean_over_units(b - a, paired_units, bounds, empty_reason="no pair has both values")
    p_value = None if mean.n_independent is None else _p_value(mean, -bounds[0] / (bounds[1] - bounds[0]))
    return Tested(**asdict(mean.estimate), p_value=p_value)


def _p_value(mean: BoundedMean, no_difference: float) -> float:
    """The level of the interval of the mean that ends at no difference, which is given as a share of the range.

    Student's quantile depends on the level, and so does the number of independent cases. With that of the 95% interval
    at all levels, 0.6% of the tests of 12 equal pairs would be below 0.003, and Holm's method needs such small levels.
    """
    share, n_independent, n_pairs = mean.share, mean.n_independent or 0.0, mean.estimate.n
    if share in (0.0, 1.0):  # then each pair counts as one case, at every level
        return _share_p_value(share, no_difference, n_independent)

    def p_value_at(level: float) -> float:
        few_units_factor = (ndtri(level / 2) / stdtrit(n_pairs - 1, level / 2)) ** 2
        return _share_p_value(share, no_difference, n_independent * few_units_factor)

    if p_value_at(MAX_LEVEL) >= MAX_LEVEL:
        return 1.0
    if p_value_at(MIN_LEVEL) <= MIN_LEVEL:
        return p_value_at(MIN_LEVEL)
    return exp(find_root(lambda x: p_value_at(exp(x)) - exp(x), log(MIN_LEVEL), log(MAX_LEVEL), tolerance=1e-12))


def _share_p_value(share: float, expected: float, n: float) -> float:
    """Two-sided p-value of Clopper & Pearson's interval of a share of n cases, against an expected share."""
    if share < expected:
        share, expected = 1 - share, 1 - expected
    return min(1.0, 2 * float(betainc(share * n, (1 - share) * n + 1, expected)))
