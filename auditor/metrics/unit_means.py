"""Shares and means of cases that share countries and topics, or items, with 95% intervals over these units.

A share is the sum of hits over the sum of cases. Its interval is Korn & Graubard's (Survey Methodology 24, 1998): that
of Clopper & Pearson (Biometrika 26, 1934) at the number of independent cases that would give the same variance,
reduced for the few units that the variance is estimated from. It stays in [0, 1], and is not symmetric near the ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, stdtrit

from auditor.metrics._complete_cases import Floats, complete_cases
from auditor.metrics.estimate import PLURAL_BY_UNIT, Estimate, ShareEstimate
from auditor.metrics.jackknife_interval import (
    MIN_UNITS,
    estimate_from_replicates,
    jackknife_covariance,
    leave_one_out_sums,
    too_few_reason,
)

Labels = Mapping[str, ArrayLike]
"""For each kind of unit, such as `country`, the unit of each row, shape (n,)."""


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
        units: the units that are resampled; rows may repeat a combination of units.
        design_effect: how many times the variance is that of independent cases, pooled over rows of the same figure
            (`pooled_design_effect`). It is used where it is larger than that of these hits, and without hits or misses.
        independent_cases: shape (n,), how many of each row's cases are independent given its cell, such as the number
            of traces where `totals` counts verdicts. Without it all are.
        empty_reason: the reason given where there is no case at all.

    Returns:
        `n` counts cases. The interval over other units is None, with a reason, below 5 units of a kind, and where the
        hits (or the misses, where these are rarer) are in 1 to 4 units of a kind.

    Raises:
        ValueError: shapes differ, or not 0 <= hits <= totals.
    """
    counts = _read_counts(ShareTable(hits, totals, units, independent_cases))
    if not counts.n:
        return ShareEstimate(None, 0, reason=empty_reason)
    cells_interval = clopper_pearson(counts.share, counts.n_independent)
    reason = counts.reason_against_interval()
    if reason is not None:
        return ShareEstimate(counts.share, round(counts.n), None, None, reason, (), None, *cells_interval)
    interval = clopper_pearson(counts.share, counts.effective_size(design_effect))
    return ShareEstimate(counts.share, round(counts.n), *interval, None, tuple(units), None, *cells_interval)


def shares_over_units(tables: Sequence[ShareTable], *, empty_reason: str = "nothing to count") -> list[ShareEstimate]:
    """Estimate the shares of rows of one figure, such as one per model, with the design effect pooled over them.

    Among rows with the same number of cases a larger share has no smaller end of its interval: where the rows' own
    design effects would say otherwise, intervals are widened.

    Args:
        tables: one per row.
        empty_reason: the reason given where a row has no case at all.
    """
    design_effect = pooled_design_effect(tables)
    shares = [
        share_over_units(
            table.hits,
            table.totals,
            table.units,
            design_effect=design_effect,
            independent_cases=table.independent_cases,
            empty_reason=empty_reason,
        )
        for table in tables
    ]
    for n in {share.n for share in shares}:
        _widen_to_monotone(shares, [i for i, share in enumerate(shares) if share.n == n and share.ci_low is not None])
    return shares


def pooled_design_effect(tables: Sequence[ShareTable | tuple[ArrayLike, ArrayLike, Labels]]) -> float | None:
    """How many times the variances of several shares are those of independent cases: a ratio of sums, at least 1.

    Args:
        tables: (hits, totals, units) of each share.

    Returns:
        None where no share is between 0 and 1 with at least 5 units of each kind.
    """
    counts = [_read_counts(ShareTable(*table)) for table in tables]
    usable = [c for c in counts if c.n and 0 < c.share < 1 and c.has_enough_units]
    if not usable:
        return None
    binomial_variance = sum(c.share * (1 - c.share) / c.n for c in usable)
    return max(1.0, sum(c.variance() for c in usable) / binomial_variance)


def mean_over_units(
    values: ArrayLike, units: Labels, bounds: tuple[float, float] = (-inf, inf), *, empty_reason: str = "no value"
) -> Estimate:
    """Estimate the mean of one value per row, such as a cell, with an interval over other units.

    Args:
        values: shape (n,); nan where there is none.
        units: the units that are resampled.
        bounds: smallest and largest possible value.
        empty_reason: the reason given where there is no value at all.

    Returns:
        `n` counts values. No interval, with a reason, below 5 units of a kind or where leaving out units changes
        nothing.

    Raises:
        ValueError: shapes differ, or a value is infinite.
    """
    (present,), is_present = complete_cases(values)
    if not len(present):
        return Estimate(None, 0, reason=empty_reason)
    moments = np.stack([present, np.ones_like(present)], axis=1)
    replicates = {}
    for unit, labels in units.items():
        sums = leave_one_out_sums(moments, np.asarray(labels)[is_present])
        with np.errstate(invalid="ignore"):
            replicates[unit] = sums[:, 0] / sums[:, 1]
    return estimate_from_replicates(float(present.mean()), len(present), replicates, bounds=bounds)


def clopper_pearson(share: float, n: float) -> tuple[float, float]:
    """The 95% interval of Clopper & Pearson for a share of n > 0 cases; hits and n may be fractions."""
    hits = share * n
    low = 0.0 if share == 0 else float(betaincinv(hits, n - hits + 1, 0.025))
    high = 1.0 if share == 1 else float(betaincinv(hits + 1, n - hits, 0.975))
    return min(low, share), max(high, share)


@dataclass(frozen=True, slots=True)
class _Counts:
    """Hits and cases per row, with their units; all rows have cases."""

    hits: Floats
    totals: Floats
    units: Mapping[str, NDArray[np.intp]]
    n_independent: float

    @property
    def n(self) -> float:
        """Number of cases."""
        return float(self.totals.sum())

    @property
    def share(self) -> float:
        """Share of the hits."""
        return min(1.0, float(self.hits.sum() / self.totals.sum()))

    @property
    def n_units(self) -> dict[str, int]:
        """Number of units of each kind."""
        return {unit: len(np.unique(labels)) for unit, labels in self.units.items()}

    @property
    def has_enough_units(self) -> bool:
        """Whether there are at least 5 units of each kind."""
        return min(self.n_units.values()) >= MIN_UNITS

    def reason_against_interval(self) -> str | None:
        """Why there is no interval over other units; None where there is one."""
        reason = too_few_reason({unit: [n] for unit, n in self.n_units.items()})
        if reason is not None or self.share in (0.0, 1.0):
            return reason
        rarer = self.hits if self.share <= 0.5 else self.totals - self.hits
        few = [
            PLURAL_BY_UNIT[unit] for unit, labels in self.units.items() if len(np.unique(labels[rarer > 0])) < MIN_UNITS
        ]
        if not few:
            return None
        others = " and ".join(PLURAL_BY_UNIT[unit] for unit in self.units)
        counted = "cases" if self.share <= 0.5 else "exceptions"
        return f"the {counted} are in fewer than {MIN_UNITS} {' and '.join(few)}: no interval for other {others}"

    def variance(self) -> float:
        """The jackknife variance of the share, added up over the kinds of units."""
        moments = np.stack([self.hits, self.totals], axis=1)
        total = 0.0
        for labels in self.units.values():
            sums = leave_one_out_sums(moments, labels)
            total += float(jackknife_covariance((sums[:, 0] / sums[:, 1])[None])[0, 0])
        return total

    def effective_size(self, design_effect: float | None) -> float:
        """Number of independent cases whose interval is that of the share over other units.

        Args:
            design_effect: see `share_over_units`.
        """
        fewest = min(self.n_units.values())
        if self.share in (0.0, 1.0):
            return min(self.n, float(fewest)) if design_effect is None else self.n / max(1.0, design_effect)
        binomial_variance = self.share * (1 - self.share) / self.n
        largest_effect = max(1.0, self.variance() / binomial_variance, design_effect or 0.0)
        few_units_factor = float(stdtrit(max(self.n - 1, 1), 0.975) / stdtrit(fewest - 1, 0.975)) ** 2
        return self.n / largest_effect * min(1.0, few_units_factor)


def _read_counts(table: ShareTable) -> _Counts:
    """Check a table and drop its rows without a case; ValueError as for `share_over_units`."""
    independent = table.totals if table.independent_cases is None else table.independent_cases
    (hits, totals, independent_cases), is_complete = complete_cases(table.hits, table.totals, independent)
    if (hits < 0).any() or (hits > totals * (1 + 1e-12)).any():
        raise ValueError("hits and totals must be counts, hits at most totals")
    has_cases = totals > 0
    units = {}
    for unit, labels in table.units.items():
        unit_labels = np.asarray(labels)
        if unit_labels.shape != is_complete.shape:
            raise ValueError(f"the labels of {unit} must have the shape {is_complete.shape}, as the hits have")
        units[unit] = np.unique(unit_labels[is_complete][has_cases], return_inverse=True)[1]
    n_independent = float(np.minimum(independent_cases, totals)[has_cases].sum())
    return _Counts(hits[has_cases], totals[has_cases], units, n_independent)


def _widen_to_monotone(shares: list[ShareEstimate], rows: Sequence[int]) -> None:
    """Widen the intervals of these rows, in place, so that both ends rise with the share."""
    ordered = sorted(rows, key=lambda i: shares[i].value or 0.0)
    highs = np.maximum.accumulate([shares[i].ci_high or 0.0 for i in ordered])
    lows = np.minimum.accumulate([shares[i].ci_low or 0.0 for i in ordered][::-1])[::-1]
    for i, low, high in zip(ordered, lows, highs, strict=True):
        shares[i] = replace(shares[i], ci_low=float(low), ci_high=float(high))
