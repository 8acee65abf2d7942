"""Differences of two shares over the same cases, such as one judge's verdicts before and after a change of the trace.

The difference is the mean over cases of +1 (gained), -1 (lost) and 0. Cases that share a country or a topic are not
independent, so the interval is the jackknife's over units (`auditor.metrics.jackknife_interval`). Where nearly all
cases are alike, and the others lie in fewer than 5 units of a kind, its variance is unreliable, and 0 without others.
The interval is then that of Bonett & Price (J. of Educational and Behavioral Statistics 37, 2012, 479-488), who add a
gained and a lost case, with the variance times the design effect and with Student's quantile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics._complete_cases import Floats
from auditor.metrics._special import stdtr, stdtrit
from auditor.metrics._unit_counts import Labels, UnitIndex, count_units, index_units, ratio_variance
from auditor.metrics.confidence import UPPER_QUANTILE
from auditor.metrics.estimate import Tested
from auditor.metrics.jackknife_interval import MIN_UNITS, JackknifeInterval, jackknife_interval, too_few_reason
from auditor.metrics.unit_replicates import UnitReplicates, replicate_over_units


class PairedTable(NamedTuple):
    """Paired cases of one row of a figure, such as one judge.

    Attributes:
        gained, lost: shape (n,), cases of each row that count in the second share only, and in the first only.
        totals: shape (n,), all cases of each row.
        units: for each kind of unit, such as `country`, the unit of each row, shape (n,).
    """

    gained: ArrayLike
    lost: ArrayLike
    totals: ArrayLike
    units: Labels


def pair_verdicts(before: ArrayLike, after: ArrayLike, units: Labels) -> PairedTable:
    """Pair two series of verdicts.

    Args:
        before, after: shape (n,), 1, 0 or nan; cases with a nan are left out.
        units: the units of the cases.
    """
    first, second = (np.asarray(verdicts, dtype=np.float64) for verdicts in (before, after))
    is_paired = ~np.isnan(first) & ~np.isnan(second)
    return PairedTable(is_paired & (second > first), is_paired & (second < first), is_paired, units)


def paired_difference_over_units(table: PairedTable, *, design_effect: float | None = None) -> Tested:
    """Estimate the second share minus the first, with an interval over other units.

    Args:
        table: the paired cases.
        design_effect: how many times the variance is that of independent cases, pooled over rows of the same figure;
            used where it is larger than that of these cases.

    Returns:
        In [-1, 1], with the p-value of no difference; `n` counts cases. No interval, with a reason, below 5 units of a
        kind.

    Raises:
        ValueError: shapes differ, or gained and lost are not counts that sum to at most the totals.
    """
    counts = _read_counts(table)
    if not counts.n:
        return Tested(None, 0, reason="nothing to compare")
    reason = too_few_reason({unit: [n] for unit, n in counts.n_units.items()})
    if reason is not None:
        return Tested(counts.difference, counts.n, reason=reason)
    interval = _count_interval(counts, design_effect)
    if counts.has_enough_exceptions:
        replicates = counts.replicates()
        jackknifed = jackknife_interval(counts.difference, replicates.units, bounds=(-1.0, 1.0), cells=replicates.cells)
        interval = interval if jackknifed.reason else jackknifed
    resampled = tuple(counts.units)
    return Tested(
        counts.difference, counts.n, interval.low, interval.high, resampled=resampled, p_value=interval.p_value
    )


def constant_difference_interval(value: float, n_units: int) -> JackknifeInterval:
    """The interval of a difference that is the same on all cases: each unit of the fewer kind counts as one case.

    Args:
        value: the difference, in [-1, 1].
        n_units: number of units, at least two.
    """
    return _bonett_price_interval((max(value, 0.0), max(-value, 0.0)), float(n_units), 1.0, n_units)


def _count_interval(counts: _PairedCounts, design_effect: float | None) -> JackknifeInterval:
    """The interval of Bonett & Price with the variance times the design effect; see the module's docstring."""
    fewest = min(counts.n_units.values())
    effect, n = 1.0, float(counts.n)
    if counts.binomial_variance:
        effect = max(1.0, counts.variance() / counts.binomial_variance, design_effect or 0.0)
    else:  # all cases are alike: other rows say how many are independent, or else each unit counts as one
        n = n / max(1.0, design_effect) if design_effect else min(n, float(fewest))
    return _bonett_price_interval((counts.gained_share, counts.lost_share), n, effect, fewest)


def _bonett_price_interval(shares: tuple[float, float], n: float, effect: float, n_units: int) -> JackknifeInterval:
    """The interval of the difference of two shares, gained and lost, with one case of each added.

    Args:
        n: number of cases; effect: what the variance is multiplied by; n_units: units of the fewer kind.
    """
    gained, lost = ((share * n + 1) / (n + 2) for share in shares)
    centre, value = gained - lost, shares[0] - shares[1]
    std_error = float(np.sqrt(effect * (gained + lost - centre**2) / (n + 2)))
    half_width = float(stdtrit(n_units - 1, UPPER_QUANTILE)) * std_error
    low, high = max(-1.0, centre - half_width), min(1.0, centre + half_width)
    p_value = float(2 * stdtr(n_units - 1, -abs(centre) / std_error))
    return JackknifeInterval(min(low, value), max(high, value), centre, std_error, n_units - 1, p_value)


def paired_differences_over_units(tables: Sequence[PairedTable]) -> list[Tested]:
    """Estimate the differences of rows of one figure, such as one per judge, with the design effect pooled over them.

    The pooled design effect is the ratio of the sum of the rows' variances to the sum of those of independent cases.
    """
    usable = [
        counts
        for counts in map(_read_counts, tables)
        if counts.n and counts.binomial_variance and too_few_reason({u: [n] for u, n in counts.n_units.items()}) is None
    ]
    design_effect = (
        sum(counts.variance() for counts in usable) / sum(counts.binomial_variance for counts in usable)
        if usable
        else None
    )
    return [paired_difference_over_units(table, design_effect=design_effect) for table in tables]


@dataclass(frozen=True, slots=True)
class _PairedCounts:
    """Counts of paired cases by row; each row has a case."""

    gained: Floats
    lost: Floats
    totals: Floats
    units: UnitIndex

    @property
    def n(self) -> int:
        """Number of cases."""
        return round(float(self.totals.sum()))

    @property
    def gained_share(self) -> float:
        """Share of the cases that count in the second share only."""
        return float(self.gained.sum() / self.totals.sum())

    @property
    def lost_share(self) -> float:
        """Share of the cases that count in the first share only."""
        return float(self.lost.sum() / self.totals.sum())

    @property
    def difference(self) -> float:
        """The second share minus the first."""
        return float((self.gained.sum() - self.lost.sum()) / self.totals.sum())

    @property
    def binomial_variance(self) -> float:
        """The variance of the difference if cases were independent; 0 where all cases agree."""
        return max(0.0, self.gained_share + self.lost_share - self.difference**2) / self.n

    @property
    def n_units(self) -> dict[str, int]:
        """Number of units of each kind."""
        return count_units(self.units)

    @property
    def has_enough_exceptions(self) -> bool:
        """Whether the cases that differ from most others are in at least 5 units of each kind."""
        kinds = [self.gained, self.lost, self.totals - self.gained - self.lost]
        exceptions = self.totals - kinds[int(np.argmax([kind.sum() for kind in kinds]))]
        return min(len(np.unique(labels[exceptions > 0])) for labels in self.units.values()) >= MIN_UNITS

    def replicates(self) -> UnitReplicates:
        """The difference without each unit and each cell."""
        moments = np.stack([self.gained - self.lost, self.totals], axis=1)
        return replicate_over_units(moments, lambda sums: sums[:, 0] / sums[:, 1], self.units)

    def variance(self) -> float:
        """The jackknife variance of the difference over units."""
        return ratio_variance(self.gained - self.lost, self.totals, self.units)


def _read_counts(table: PairedTable) -> _PairedCounts:
    """Check a table and drop its rows without a case; ValueError as for `paired_difference_over_units`."""
    gained, lost, totals = (np.asarray(c, dtype=np.float64) for c in (table.gained, table.lost, table.totals))
    if gained.ndim != 1 or not gained.shape == lost.shape == totals.shape:
        raise ValueError(
            f"gained, lost and totals must have one shape (n,), but have {gained.shape}, {lost.shape}, {totals.shape}"
        )
    if (np.minimum(gained, lost) < 0).any() or (gained + lost > totals * (1 + 1e-12)).any():
        raise ValueError("gained and lost must be counts, together at most the totals")
    has_cases = totals > 0
    return _PairedCounts(gained[has_cases], lost[has_cases], totals[has_cases], index_units(table.units, has_cases))
