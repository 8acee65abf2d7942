"""Differences of two measurements on the same cases, and of independent estimates, with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import exp, log
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics.intervals.estimate import (
    CONFIDENCE_LEVEL,
    NORMAL_QUANTILE,
    SIGNIFICANCE_LEVEL,
    UPPER_QUANTILE,
    Estimate,
    Floats,
    Tested,
    complete_cases,
    is_constant,
)
from auditor.metrics.intervals.jackknife_interval import (
    MIN_UNITS,
    JackknifeInterval,
    Labels,
    Transform,
    UnitIndex,
    UnitReplicates,
    count_units,
    index_units,
    jackknife_interval,
    ratio_variance,
    replicate_over_units,
    too_few_reason,
)
from auditor.metrics.intervals.special_functions import betainc, find_root, ndtr, ndtri, stdtr, stdtrit
from auditor.metrics.intervals.unit_means import BoundedMean, bounded_mean_over_units

MAX_QUANTILE = 1e4
"""Number of standard errors beyond which a p-value is not computed."""


def subtract_independent(first: Estimate, second: Estimate) -> Tested:
    """The first estimate minus the second, of independent samples, with the interval recovered from both of theirs.

    Zou & Donner, Statistics in Medicine 27, 2008; for shares with Wilson's intervals it is method 10 of Newcombe
    (Statistics in Medicine 17, 1998).

    Returns:
        `n` is the sum of both. The p-value of no difference is normal, with the standard error on the side of 0, so
        that it is below 0.05 where the interval excludes 0. No interval, with a reason, where one of both has none.
    """
    n, population = first.n + second.n, first.generalizes_to
    if first.value is None or second.value is None:
        return Tested(None, n, reason=first.reason if first.value is None else second.reason)
    value = first.value - second.value
    ends = (first.ci_low, first.ci_high, second.ci_low, second.ci_high)
    if None in ends:
        return Tested(value, n, reason=first.reason if None in ends[:2] else second.reason)
    first_low, first_high, second_low, second_high = (end or 0.0 for end in ends)
    below = ((first.value - first_low) ** 2 + (second_high - second.value) ** 2) ** 0.5
    above = ((first_high - first.value) ** 2 + (second.value - second_low) ** 2) ** 0.5
    distance = below if value > 0 else above
    p_value = float(2 * ndtr(-abs(value) * NORMAL_QUANTILE / distance)) if distance > 0 else None
    reason = first.reason or second.reason
    return Tested(value, n, value - below, value + above, reason, generalizes_to=population, p_value=p_value)


def widen_for_choice(estimate: Estimate, n_compared: int) -> Estimate:
    """Widen an interval so that it holds for the largest of several differences (Bonferroni, on the normal scale)."""
    if estimate.value is None or estimate.ci_low is None or estimate.ci_high is None:
        return estimate
    factor = float(ndtri(1 - SIGNIFICANCE_LEVEL / n_compared / 2)) / NORMAL_QUANTILE
    low, high = (estimate.value + factor * (end - estimate.value) for end in (estimate.ci_low, estimate.ci_high))
    return replace(estimate, ci_low=low, ci_high=high)


def recover_difference(
    transform: Transform,
    first: ArrayLike,
    second: ArrayLike,
    std_errors: tuple[ArrayLike, ArrayLike],
    covariance: ArrayLike,
    quantile: float,
) -> tuple[Floats, Floats]:
    """Interval of the difference of two statistics from the intervals of both.

    Zou's method of variance estimates recovery (Psychological Methods 12, 2007): the distance of each end from the
    difference is recovered from the distances of the ends of both intervals. The interval of the difference on the
    transformed scale could not be transformed back, since it does not say at which level the two are.

    Args:
        transform: the scale on which both statistics are nearly normal.
        first, second: the transformed statistics, of any shapes that broadcast.
        std_errors: of the first and of the second, on the transformed scale.
        covariance: of the first and the second, on the transformed scale.
        quantile: number of standard errors, such as Student's quantile.

    Returns:
        The lower and the upper end for the first statistic minus the second.
    """
    return _recover_ends(transform, (first, second), std_errors, _correlate(std_errors, covariance), quantile)


def _correlate(std_errors: tuple[ArrayLike, ArrayLike], covariance: ArrayLike) -> Floats:
    """The correlation of two statistics in [-1, 1]; 0 where one does not vary."""
    product = np.multiply(*std_errors)
    correlation = np.divide(covariance, product, out=np.zeros(np.shape(product)), where=product > 0)
    return np.clip(correlation, -1.0, 1.0)


def _recover_ends(
    transform: Transform,
    statistics: tuple[ArrayLike, ArrayLike],
    std_errors: tuple[ArrayLike, ArrayLike],
    correlation: Floats,
    quantile: float,
) -> tuple[Floats, Floats]:
    """The ends that `recover_difference` returns, for a known correlation of the statistics."""
    steps = np.array([-quantile, 0.0, quantile])
    (first_low, first_value, first_high), (second_low, second_value, second_high) = (
        transform.inverse(centre + steps.reshape(-1, *(1,) * max(centre.ndim, std_error.ndim)) * std_error)
        for centre, std_error in zip(map(np.asarray, statistics), map(np.asarray, std_errors), strict=True)
    )

    def join_distances(a: Floats, b: Floats) -> Floats:
        """Distance of an end from the difference, given those of the ends of both intervals from their statistics."""
        distance: Floats = np.sqrt(np.maximum(a**2 + b**2 - 2 * correlation * a * b, 0.0))
        return distance

    difference = first_value - second_value
    low = difference - join_distances(first_value - first_low, second_high - second_value)
    high = difference + join_distances(first_high - first_value, second_value - second_low)
    return low, high


def recover_difference_with_p_value(
    transform: Transform,
    statistics: tuple[float, float],
    std_errors: tuple[float, float],
    covariance: float,
    df: int,
    confidence_level: float = CONFIDENCE_LEVEL,
) -> tuple[float, float, float]:
    """Ends of the interval of `recover_difference`, and the p-value of no difference that belongs to it.

    The p-value is that of the interval that ends at 0, so it is below 0.05 where the 95% interval excludes 0.

    Args:
        statistics: the first and the second, on the transformed scale.
        df: degrees of freedom of Student's distribution. The others as for `recover_difference`.
    """

    correlation = _correlate(std_errors, covariance)

    def compute_ends(quantile: float) -> tuple[float, float]:
        low, high = _recover_ends(transform, statistics, std_errors, correlation, quantile)
        return float(low), float(high)

    ends = compute_ends(float(stdtrit(df, (1 + confidence_level) / 2)))
    if statistics[0] == statistics[1]:
        return (*ends, 1.0)
    near_end = 0 if statistics[0] > statistics[1] else 1
    if (compute_ends(MAX_QUANTILE)[near_end] > 0) == (near_end == 0):
        return (*ends, 0.0)
    quantile = float(find_root(lambda q: compute_ends(q)[near_end], 0.0, MAX_QUANTILE, tolerance=1e-15))
    return (*ends, float(2 * stdtr(df, -quantile)))


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


def paired_error(first: ArrayLike, second: ArrayLike, truth: ArrayLike, unit: str) -> Tested:
    """The second's mean absolute error minus the first's, with Student's interval and paired t test.

    Each cell is a unit of its own: suitable for one topic over countries or one country over topics, not for a whole
    table.

    Args:
        first, second, truth: shape (n,); a cell with a nan in any is left out.
        unit: what a cell is one of: `country` for one topic over countries, `topic` for one country over topics.

    Returns:
        The difference, below 0 where the second is closer to the truth; None with a reason without any cell. No
        interval and no test for fewer than 5 cells, or where all differences are equal.

    Raises:
        ValueError: shapes differ, or a value is infinite.
    """
    (a, b, y), _ = complete_cases(first, second, truth)
    d = np.abs(b - y) - np.abs(a - y)
    n = len(d)
    if n == 0:
        return Tested(None, 0, reason="no cell has both scores")
    value = float(d.mean())
    if n < MIN_UNITS:
        return Tested(value, n, reason=f"an interval needs {MIN_UNITS} cells")
    if is_constant(d):
        return Tested(value, n, reason="all differences are equal: no interval")
    std_error = float(d.std(ddof=1) / np.sqrt(n))
    half_width = float(stdtrit(n - 1, UPPER_QUANTILE)) * std_error
    p_value = float(2 * stdtr(n - 1, -abs(value) / std_error))
    return Tested(value, n, value - half_width, value + half_width, resampled=(unit,), p_value=p_value)


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
