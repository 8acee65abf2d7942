"""Shares and means of cases that share countries and topics, or items, with intervals and p-values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from math import inf, isfinite, nan
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics.intervals.estimate import (
    CONFIDENCE_LEVEL,
    CONSTANT_TOLERANCE,
    Estimate,
    Floats,
    ShareEstimate,
    TestedShare,
    complete_cases,
    is_constant,
)
from auditor.metrics.intervals.jackknife_interval import (
    CONSTANT_REASON,
    Labels as Labels,
    UnitCounts,
    UnitIndex,
    clopper_pearson,
    count_units,
    estimate_from_replicates,
    few_units_factor,
    index_units,
    ratio_variance,
    read_counts,
    replicate_over_units,
    too_few_reason,
)
from auditor.metrics.intervals.special_functions import betainc, stdtrit


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


def shares_over_units(
    tables: Sequence[ShareTable],
    *,
    empty_reason: str = "nothing to count",
    confidence_level: float = CONFIDENCE_LEVEL,
) -> list[ShareEstimate]:
    """Estimate the shares of rows of one figure, such as one per model, with the design effect pooled over them.

    A single row with cases has nothing to be pooled with: its interval is that of `share_over_units`.
    Among rows with the same number of cases, a larger share never has a smaller end of its interval: intervals are
    widened where the rows' own design effects would say otherwise.

    Args:
        tables: one per row.
        empty_reason: the reason given where a row has no case at all.
        confidence_level: of the intervals over other units, such as `bonferroni_level`.
    """
    counts = [read_counts(*table) for table in tables]
    design_effect = _pool_design_effects(counts) if sum(row.n > 0 for row in counts) > 1 else None
    shares = [_estimate_share(row, design_effect, empty_reason, confidence_level) for row in counts]
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
    values: ArrayLike,
    units: Labels,
    bounds: tuple[float, float] = (-inf, inf),
    *,
    empty_reason: str = "no value",
    confidence_level: float = CONFIDENCE_LEVEL,
) -> Estimate:
    """Estimate the mean of one value per row, such as a cell, with an interval over other units.

    Args:
        values: shape (n,); nan where there is none.
        units: the units that are resampled, of one or two kinds.
        bounds: smallest and largest possible value. With both, the interval is that of a share of the range; else
            Student's.
        empty_reason: the reason given where there is no value at all.
        confidence_level: of the interval, such as `bonferroni_level`.

    Returns:
        `n` counts values. There is no interval, with a reason, below 5 units of a kind or where all values are equal.
        Where all are equal to one of two bounds, each unit counts as one case.

    Raises:
        ValueError: shapes differ, or a value is infinite or outside the bounds.
    """
    if isfinite(bounds[1] - bounds[0]):
        return bounded_mean_over_units(
            values, units, bounds, empty_reason=empty_reason, confidence_level=confidence_level
        ).estimate
    present, unit_index = _read_values(values, units, bounds)
    reason = _reason_against_interval(present, unit_index, bounds) if len(present) else empty_reason
    if reason is not None:
        return Estimate(float(present.mean()) if len(present) else None, len(present), reason=reason)
    moments = np.stack([present, np.ones_like(present)], axis=1)
    replicates = replicate_over_units(moments, lambda sums: sums[:, 0] / sums[:, 1], unit_index)
    return estimate_from_replicates(
        float(present.mean()),
        len(present),
        replicates.units,
        bounds=bounds,
        cells=replicates.cells,
        confidence_level=confidence_level,
    )


def widen_by_common_variance(
    means: Sequence[Estimate], values: Sequence[Floats], confidence_level: float, bounds: tuple[float, float]
) -> list[Estimate]:
    """The means of several groups, no interval of which is narrower than by the variance within all groups together.

    At the level of many intervals that hold together, Student's of few values is far too narrow where these are nearly
    equal by chance, as bounded and skewed values often are.

    Args:
        means: of the groups; those without an interval are returned as they are.
        values: of each group, shape (n,).
        confidence_level: of the intervals, such as `bonferroni_level`.
        bounds: smallest and largest possible mean.
    """
    tested = [group for mean, group in zip(means, values, strict=True) if mean.ci_low is not None]
    df = sum(len(group) - 1 for group in tested)
    if not df:
        return list(means)
    variance = sum(float(((group - group.mean()) ** 2).sum()) for group in tested) / df
    step = float(stdtrit(df, (1 + confidence_level) / 2)) * variance**0.5
    return [_widen(mean, step / max(1, mean.n) ** 0.5, bounds) for mean in means]


def _widen(mean: Estimate, half_width: float, bounds: tuple[float, float]) -> Estimate:
    """The mean with an interval at least this wide on both sides, within the bounds."""
    if mean.value is None or mean.ci_low is None or mean.ci_high is None:
        return mean
    low, high = max(bounds[0], mean.value - half_width), min(bounds[1], mean.value + half_width)
    return replace(mean, ci_low=min(mean.ci_low, low), ci_high=max(mean.ci_high, high))


class BoundedMean(NamedTuple):
    """A mean of values between two bounds, and the figures that its interval is computed from.

    Attributes:
        share: the mean as a share of the range, in [0, 1]; nan without a value.
        n_independent: number of independent cases that would give the share the same variance, not yet reduced for few
            units; None without an interval.
    """

    estimate: Estimate
    share: float
    n_independent: float | None


def bounded_mean_over_units(
    values: ArrayLike,
    units: Labels,
    bounds: tuple[float, float],
    *,
    empty_reason: str = "no value",
    confidence_level: float = CONFIDENCE_LEVEL,
) -> BoundedMean:
    """As `mean_over_units` with two finite bounds, with the figures that the interval is computed from."""
    present, unit_index = _read_values(values, units, bounds)
    if not len(present):
        return BoundedMean(Estimate(None, 0, reason=empty_reason), nan, None)
    width = bounds[1] - bounds[0]
    shares = (present - bounds[0]) / width
    mean, share, n = float(present.mean()), float(shares.mean()), len(present)
    reason = _reason_against_interval(present, unit_index, bounds)
    if reason is not None:
        return BoundedMean(Estimate(mean, n, reason=reason), share, None)
    fewest = min(count_units(unit_index).values())
    n_independent, factor = float(fewest), 1.0
    if 0 < share < 1:
        variance = ratio_variance(shares, np.ones_like(shares), unit_index)
        if variance <= 1e-24:
            return BoundedMean(Estimate(mean, n, reason=CONSTANT_REASON), share, None)
        n_independent, factor = share * (1 - share) / variance, few_units_factor(fewest, confidence_level)
    low, high = (bounds[0] + width * end for end in clopper_pearson(share, n_independent * factor, confidence_level))
    return BoundedMean(Estimate(mean, n, low, high, resampled=tuple(unit_index)), share, n_independent)


def _read_values(values: ArrayLike, units: Labels, bounds: tuple[float, float]) -> tuple[Floats, UnitIndex]:
    """The values there are, clipped to the bounds, and the units of each; ValueError as for `mean_over_units`.

    Values that differ from a bound by rounding only are on it: a mean of 1 - 1e-16 has the interval of a mean of 1.
    """
    (present,), is_present = complete_cases(values)
    if len(present):
        tolerance = 1e-6 * max(1.0, float(np.abs(present).max()))
        if present.min() < bounds[0] - tolerance or present.max() > bounds[1] + tolerance:
            raise ValueError(f"values must be from {bounds[0]} to {bounds[1]}")
    clipped = np.clip(present, *bounds)
    for bound in filter(isfinite, bounds):
        clipped[np.abs(clipped - bound) <= CONSTANT_TOLERANCE * max(1.0, abs(bound))] = bound
    return clipped, index_units(units, is_present)


def _reason_against_interval(values: Floats, units: UnitIndex, bounds: tuple[float, float]) -> str | None:
    """Why there is no interval of a mean of at least one value; None where there is one."""
    reason = too_few_reason({unit: [count] for unit, count in count_units(units).items()})
    if reason is None and is_constant(values) and float(values.mean()) not in bounds:
        return CONSTANT_REASON
    return reason


def _estimate_share(
    counts: UnitCounts, design_effect: float | None, empty_reason: str, confidence_level: float = CONFIDENCE_LEVEL
) -> ShareEstimate:
    """Estimate a share; arguments as for `share_over_units` and `shares_over_units`."""
    if not counts.n:
        return ShareEstimate(None, 0, reason=empty_reason)
    n, cells_interval = round(counts.n), clopper_pearson(counts.share, counts.n_independent)
    reason = counts.reason_against_interval()
    if reason is not None:
        return ShareEstimate(counts.share, n, None, None, reason, (), None, *cells_interval)
    interval = counts.interval(design_effect, confidence_level)
    return ShareEstimate(counts.share, n, *interval, None, tuple(counts.units), None, *cells_interval)


def _pool_design_effects(counts: Sequence[UnitCounts]) -> float | None:
    """The pooled design effect of these shares; see `pooled_design_effect`."""
    usable = [c for c in counts if c.n and 0 < c.share < 1 and c.has_enough_units]
    if not usable:
        return None
    binomial_variance = sum(c.share * (1 - c.share) / c.n for c in usable)
    return max(1.0, sum(c.variance for c in usable) / binomial_variance)


def _widen_to_monotone(shares: list[ShareEstimate], rows: Sequence[int]) -> None:
    """Widen the intervals of these rows, in place, so that both ends rise with the share."""
    ordered = sorted(rows, key=lambda i: shares[i].value or 0.0)
    highs = np.maximum.accumulate([shares[i].ci_high or 0.0 for i in ordered])
    lows = np.minimum.accumulate([shares[i].ci_low or 0.0 for i in ordered][::-1])[::-1]
    for i, low, high in zip(ordered, lows, highs, strict=True):
        shares[i] = replace(shares[i], ci_low=float(low), ci_high=float(high))


def share_p_values(tables: Sequence[ShareTable], references: ArrayLike) -> list[float | None]:
    """Two-sided p-values of the shares of rows of one figure, such as one per judge, against reference shares.

    Args:
        tables: one per row, as for `shares_over_units`.
        references: one for all rows, or shape (rows,); in [0, 1].

    Returns:
        One per row: below 0.05 where the 95% interval excludes the reference; None where there is no interval.

    Raises:
        ValueError: a reference is not in [0, 1]; or as `shares_over_units`.
    """
    by_row = np.broadcast_to(np.asarray(references, dtype=np.float64), len(tables))
    if not ((by_row >= 0) & (by_row <= 1)).all():
        raise ValueError("reference shares must be from 0 to 1")
    counts, design_effect = [read_counts(*table) for table in tables], pooled_design_effect(tables)
    p_values: list[float | None] = [None] * len(tables)
    tested = [i for i, row in enumerate(counts) if row.n and row.reason_against_interval() is None]
    for n in {round(counts[i].n) for i in tested}:
        # Among rows with as many cases, both ends of the interval rise with the share: some intervals are widened.
        rows = sorted((i for i in tested if round(counts[i].n) == n), key=lambda i: counts[i].share)
        shares = np.array([counts[i].share for i in rows])
        n_effective = np.array([counts[i].effective_cases(design_effect) for i in rows])
        for position, i in enumerate(rows):
            upper, _ = _tail_probabilities(shares[position:], n_effective[position:], by_row[i])
            _, lower = _tail_probabilities(shares[: position + 1], n_effective[: position + 1], by_row[i])
            p_values[i] = min(1.0, 2 * float(min(upper.max(), lower.max())))
    return p_values


def compare_shares(tables: Sequence[ShareTable], references: ArrayLike) -> list[TestedShare]:
    """Estimate shares and test them against reference shares; see `shares_over_units` and `share_p_values`."""
    columns = zip(shares_over_units(tables), share_p_values(tables, references), strict=True)
    return [TestedShare(**asdict(share), p_value=p_value) for share, p_value in columns]


def _tail_probabilities(
    shares: NDArray[np.float64], n: NDArray[np.float64], reference: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Probabilities of at least, and of at most, this share of n cases if the true share is the reference.

    Args:
        shares, n: shape (rows,); hits and cases may be fractions.
    """
    hits, misses = shares * n, (1 - shares) * n
    with np.errstate(invalid="ignore"):  # without hits, or without misses, the first probability is 1
        at_least = np.where(hits == 0, 1.0, betainc(hits, misses + 1, reference))
        at_most = np.where(misses == 0, 1.0, betainc(misses, hits + 1, 1 - reference))
    return at_least, at_most
