"""Shares and means of cases that share countries and topics, or items, with 95% intervals over these units.

A share is the sum of hits over the sum of cases. Its interval is Korn & Graubard's (Survey Methodology 24, 1998): that
of Clopper & Pearson (Biometrika 26, 1934) at the number of independent cases that would give the same variance,
reduced for the few units that the variance is estimated from. It stays in [0, 1], and is not symmetric near the ends.
A mean of values between two bounds has the same interval, as a share of the range.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf, isfinite
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics._complete_cases import Floats, complete_cases, is_constant
from auditor.metrics._unit_counts import Labels as Labels
from auditor.metrics._unit_counts import (
    UnitCounts,
    UnitIndex,
    cell_index,
    clopper_pearson,
    count_units,
    few_units_factor,
    index_units,
    ratio_variance,
    read_counts,
)
from auditor.metrics.estimate import Estimate, ShareEstimate
from auditor.metrics.jackknife_interval import (
    CONSTANT_REASON,
    estimate_from_replicates,
    leave_one_out_sums,
    too_few_reason,
)


class ShareTable(NamedTuple):
    """The arguments of `share_over_units` for one row of a figure, such as one model or judge."""

    hits: ArrayLike
    totals: ArrayLike
    units: Labels
    independent_cases: ArrayLike | None = None


def share_over_units(
    hits: ArrayLike,
    totals: ArrayLike,
    units: Labels,
    *,
    design_effect: float | None = None,
    independent_cases: ArrayLike | None = None,
    empty_reason: str = "nothing to count",
) -> ShareEstimate:
    """Estimate the share of hits in all cases, with an interval for these cells and one for other units.

    Args:
        hits, totals: shape (n,), the hits and the cases of each row, such as a cell; hits may be fractions. Rows with a
            nan or without a case are left out.
        units: the units that are resampled, of one or two kinds; rows may repeat a combination of units.
        design_effect: how many times the variance is that of independent cases, pooled over rows of the same figure
            (`pooled_design_effect`). It is used where it is larger than that of these hits, and without hits or misses.
        independent_cases: shape (n,), how many of each row's cases are independent given its cell, such as the number
            of traces where `totals` counts verdicts. Without it all are.
        empty_reason: the reason given where there is no case at all.

    Returns:
        `n` counts cases. There is no interval over other units, with a reason, below 5 units of a kind, and where the
        hits (or the misses, where these are rarer) are in 1 to 4 countries or topics. Where there are none, or they are
        in 1 to 4 units of another kind, each unit counts as one case if there is no design effect.

    Raises:
        ValueError: shapes differ, or not 0 <= hits <= totals.
    """
    counts = read_counts(hits, totals, units, independent_cases)
    return _estimate_share(counts, design_effect, empty_reason)


def shares_over_units(tables: Sequence[ShareTable], *, empty_reason: str = "nothing to count") -> list[ShareEstimate]:
    """Estimate the shares of rows of one figure, such as one per model, with the design effect pooled over them.

    Among rows with the same number of cases, a larger share never has a smaller end of its interval: intervals are
    widened where the rows' own design effects would say otherwise.

    Args:
        tables: one per row.
        empty_reason: the reason given where a row has no case at all.
    """
    counts = [read_counts(*table) for table in tables]
    design_effect = _pool_design_effects(counts)
    shares = [_estimate_share(row, design_effect, empty_reason) for row in counts]
    for n in {share.n for share in shares}:
        _widen_to_monotone(shares, [i for i, share in enumerate(shares) if share.n == n and share.ci_low is not None])
    return shares


def pooled_design_effect(
    tables: Sequence[ShareTable | tuple[ArrayLike, ArrayLike, Labels]],
) -> float | None:
    """How many times the variances of several shares are those of independent cases: a ratio of sums, at least 1.

    Args:
        tables: (hits, totals, units) of each share.

    Returns:
        None where no share is between 0 and 1 with at least 5 units of each kind.
    """
    return _pool_design_effects([read_counts(*table) for table in tables])


def mean_over_units(
    values: ArrayLike, units: Labels, bounds: tuple[float, float] = (-inf, inf), *, empty_reason: str = "no value"
) -> Estimate:
    """Estimate the mean of one value per row, such as a cell, with an interval over other units.

    Args:
        values: shape (n,); nan where there is none.
        units: the units that are resampled, of one or two kinds.
        bounds: smallest and largest possible value. With both, the interval is that of a share of the range; else
            Student's.
        empty_reason: the reason given where there is no value at all.

    Returns:
        `n` counts values. There is no interval, with a reason, below 5 units of a kind or where all values are equal.
        Where all are equal to one of two bounds, each unit counts as one case.

    Raises:
        ValueError: shapes differ, or a value is infinite or outside the bounds.
    """
    (present,), is_present = complete_cases(values)
    if not len(present):
        return Estimate(None, 0, reason=empty_reason)
    tolerance = 1e-6 * max(1.0, float(np.abs(present).max()))
    if present.min() < bounds[0] - tolerance or present.max() > bounds[1] + tolerance:
        raise ValueError(f"values must be from {bounds[0]} to {bounds[1]}")
    present = np.clip(present, *bounds)
    unit_index, mean, n = index_units(units, is_present), float(present.mean()), len(present)
    reason = too_few_reason({unit: [count] for unit, count in count_units(unit_index).items()})
    if reason is None and is_constant(present) and mean not in bounds:
        reason = CONSTANT_REASON
    if reason is not None:
        return Estimate(mean, n, reason=reason)
    if not isfinite(bounds[1] - bounds[0]):
        return _unbounded_mean(present, unit_index, bounds)
    return _bounded_mean(present, unit_index, bounds)


def _estimate_share(counts: UnitCounts, design_effect: float | None, empty_reason: str) -> ShareEstimate:
    """Estimate a share; arguments as for `share_over_units`."""
    if not counts.n:
        return ShareEstimate(None, 0, reason=empty_reason)
    n, cells_interval = round(counts.n), clopper_pearson(counts.share, counts.n_independent)
    reason = counts.reason_against_interval()
    if reason is not None:
        return ShareEstimate(counts.share, n, None, None, reason, (), None, *cells_interval)
    interval = counts.interval(design_effect)
    return ShareEstimate(counts.share, n, *interval, None, tuple(counts.units), None, *cells_interval)


def _pool_design_effects(counts: Sequence[UnitCounts]) -> float | None:
    """The pooled design effect of these shares; see `pooled_design_effect`."""
    usable = [c for c in counts if c.n and 0 < c.share < 1 and c.has_enough_units]
    if not usable:
        return None
    binomial_variance = sum(c.share * (1 - c.share) / c.n for c in usable)
    return max(1.0, sum(c.variance for c in usable) / binomial_variance)


def _bounded_mean(values: Floats, units: UnitIndex, bounds: tuple[float, float]) -> Estimate:
    """The mean with its interval as a share of the range between two bounds."""
    width = bounds[1] - bounds[0]
    shares = (values - bounds[0]) / width
    mean, fewest = float(shares.mean()), min(count_units(units).values())
    n_effective = float(fewest)
    if 0 < mean < 1:
        variance = ratio_variance(shares, np.ones_like(shares), units)
        if variance <= 1e-24:
            return Estimate(float(values.mean()), len(values), reason=CONSTANT_REASON)
        n_effective = mean * (1 - mean) / variance * few_units_factor(fewest)
    low, high = (bounds[0] + width * end for end in clopper_pearson(mean, n_effective))
    return Estimate(float(values.mean()), len(values), low, high, resampled=tuple(units))


def _unbounded_mean(values: Floats, units: UnitIndex, bounds: tuple[float, float]) -> Estimate:
    """The mean with Student's interval; its ends are clipped to the bounds."""
    moments = np.stack([values, np.ones_like(values)], axis=1)

    def means_without(labels: ArrayLike) -> Floats:
        sums = leave_one_out_sums(moments, labels)
        means: Floats = sums[:, 0] / sums[:, 1]
        return means

    replicates = {unit: means_without(labels) for unit, labels in units.items()}
    cells = means_without(cell_index(units)) if len(units) > 1 else None
    return estimate_from_replicates(float(values.mean()), len(values), replicates, bounds=bounds, cells=cells)


def _widen_to_monotone(shares: list[ShareEstimate], rows: Sequence[int]) -> None:
    """Widen the intervals of these rows, in place, so that both ends rise with the share."""
    ordered = sorted(rows, key=lambda i: shares[i].value or 0.0)
    highs = np.maximum.accumulate([shares[i].ci_high or 0.0 for i in ordered])
    lows = np.minimum.accumulate([shares[i].ci_low or 0.0 for i in ordered][::-1])[::-1]
    for i, low, high in zip(ordered, lows, highs, strict=True):
        shares[i] = replace(shares[i], ci_low=float(low), ci_high=float(high))
