"""Correlations in two groups of countries, corrected for the different range of people's scores in them.

With equal errors r is smaller where people's scores vary less. Thorndike's case 2 (Personnel Selection, Wiley, 1949,
p. 173) gives the r that a group would have at another variance of the truth, if the slope and the residual variance of
the scores on the truth stay the same. Both groups are corrected to the mean of their variances, which is computed anew
in each replicate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics._complete_cases import Floats, complete_cases
from auditor.metrics._two_way_table import build_two_way_table
from auditor.metrics.estimate import Estimate
from auditor.metrics.jackknife import statistic_replicates, subtract_replicates, two_way_estimate
from auditor.metrics.jackknife_interval import FISHER_Z, IDENTITY, LOG


@dataclass(frozen=True, slots=True)
class GroupRegression:
    """The scores of one group of countries on people's scores.

    Attributes:
        corrected_r: r at the mean variance of people's scores in both groups, in [-1, 1].
        slope: change of the score for a change of people's score by 1.
        residual_sd: standard deviation of the scores around the regression line, with divisor n.
    """

    corrected_r: Estimate
    slope: Estimate
    residual_sd: Estimate


@dataclass(frozen=True, slots=True)
class RangeCorrection:
    """Both groups, and the gap of the corrected correlations: the second group minus the first."""

    first: GroupRegression
    second: GroupRegression
    gap: Estimate


def correct_range(r: ArrayLike, sd_ratio: ArrayLike) -> Floats:
    """r at another standard deviation of the variable on which cases were selected: Thorndike's case 2.

    Args:
        r: in [-1, 1].
        sd_ratio: standard deviation to which r is corrected, divided by that of the cases; above 0.
    """
    r, ratio = np.asarray(r, dtype=np.float64), np.asarray(sd_ratio, dtype=np.float64)
    corrected: Floats = r * ratio / np.sqrt(1 + r**2 * (ratio**2 - 1))
    return corrected


def range_corrected_gap(
    scores: ArrayLike, truth: ArrayLike, countries: ArrayLike, topics: ArrayLike, in_second: ArrayLike
) -> RangeCorrection:
    """The corrected correlations of two groups of countries, with 95% intervals over other countries and topics.

    Args:
        scores, truth: shape (n,), one value per cell; cells with a nan on either side are left out.
        countries, topics: shape (n,), labels of any kind.
        in_second: shape (n,), whether the cell's country is in the second group.

    Returns:
        Estimates without a value, with a reason, where scores or truth do not vary in a group.

    Raises:
        ValueError: shapes differ, a value is infinite, or a country is in both groups.
    """
    (x, y), is_complete = complete_cases(scores, truth)
    is_second = np.asarray(in_second, dtype=np.bool_)
    if is_second.shape != is_complete.shape:
        raise ValueError(f"in_second must have the shape {is_complete.shape}, but has {is_second.shape}")
    table = build_two_way_table(countries, topics, is_complete, (~is_second, is_second))
    centred = [values - values.mean() if len(values) else values for values in (x, y)]
    sums = np.stack([np.ones_like(x), *centred, centred[0] ** 2, centred[1] ** 2, centred[0] * centred[1]], axis=1)
    grid = table.to_grid(sums)
    both = np.zeros((*grid.shape[:2], 12))
    for group, members in enumerate(table.strata):
        both[members, :, 6 * group : 6 * group + 6] = grid[members]
    n = [int((is_second[is_complete] == group).sum()) for group in (False, True)]
    sides = [[statistic_replicates(_figure(group, figure), both, table) for figure in range(3)] for group in (0, 1)]
    first, second = (
        GroupRegression(
            *(
                replace(two_way_estimate(*side, table, transform, has_p_value=False), n=n[group])
                for side, transform in zip(sides[group], (FISHER_Z, IDENTITY, LOG), strict=True)
            )
        )
        for group in (0, 1)
    )
    return RangeCorrection(first, second, subtract_replicates([sides[1][0], sides[0][0]], table))


def _figure(group: int, figure: int) -> Callable[[Floats], Floats]:
    """The corrected r (0), the slope (1) or the residual SD (2) of a group, from sums of shape (replicates, 12)."""
    return lambda sums: _regress(sums)[group][figure]


def _regress(sums: Floats) -> list[tuple[Floats, Floats, Floats]]:
    """Corrected r, slope and residual SD of each group, from sums of shape (replicates, 12); nan where undefined."""
    variances, parts = [], []
    for group in (0, 1):
        n = np.maximum(sums[:, 6 * group], 1.0)
        mean_x, mean_y, xx, yy, xy = (sums[:, 6 * group + 1 : 6 * group + 6] / n[:, None]).T
        variance_x, variance_y, covariance = xx - mean_x**2, yy - mean_y**2, xy - mean_x * mean_y
        is_defined = (variance_x > 1e-12) & (variance_y > 1e-12)
        variances.append(np.where(is_defined, variance_y, np.nan))
        parts.append((variance_x, covariance))
    target = (variances[0] + variances[1]) / 2
    results = []
    for variance_y, (variance_x, covariance) in zip(variances, parts, strict=True):
        slope = covariance / variance_y
        residual = np.sqrt(np.maximum(variance_x - slope * covariance, 0.0))
        r = np.clip(covariance / np.sqrt(variance_x * variance_y), -1.0, 1.0)
        results.append((correct_range(r, np.sqrt(target / variance_y)), slope, residual))
    return results
