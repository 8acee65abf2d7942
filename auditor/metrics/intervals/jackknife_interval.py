"""The interval of a statistic over clustered observations: units such as countries and topics are left out in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from itertools import accumulate, chain, pairwise
from math import inf, isfinite, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics.intervals.estimate import (
    CONFIDENCE_LEVEL,
    LOWER_QUANTILE,
    NORMAL_QUANTILE,
    PLURAL_BY_UNIT,
    UPPER_QUANTILE,
    Estimate,
    Floats,
    complete_cases,
)
from auditor.metrics.intervals.special_functions import betaincinv, expit, logit, stdtr, stdtrit

MIN_UNITS = 5
"""Fewest units of each kind for an interval: fewer show too little of how they differ."""
BOUNDARY_REASON = "it is at the end of its range, where its uncertainty cannot be estimated"
UNDEFINED_REASON = "the figure is undefined without one of the units: no interval"
ROUNDING_ERROR = 1e-12
"""Statistics of scores and shares that are closer to 0 than this are 0: they differ from it by rounding only."""
CONSTANT_REASON = "the figure is the same whichever unit is left out, so its uncertainty cannot be estimated"

Replicates = Mapping[str, Floats | Sequence[Floats]]
"""For each kind of unit, such as `country`, the statistic without each unit, shape (units,).

Units in strata (groups of countries that are compared with each other) have one array per stratum.
"""


@dataclass(frozen=True, slots=True)
class Transform:
    """A scale on which a statistic is nearly normal.

    Attributes:
        forward, inverse: to that scale and back, increasing.
    """

    forward: Callable[[Floats], Floats] = lambda v: v
    inverse: Callable[[Floats], Floats] = lambda v: v


IDENTITY = Transform()
FISHER_Z = Transform(np.arctanh, np.tanh)
"""For correlations."""
LOGIT = Transform(logit, expit)
"""For probabilities, such as an area under a ROC curve."""
LOG = Transform(np.log, lambda v: np.exp(np.minimum(v, 300.0)))  # its square is finite, too
"""For statistics above 0, such as a mean absolute error."""


@dataclass(frozen=True, slots=True)
class JackknifeInterval:
    """An interval, of 95% unless asked otherwise; `reason` says why there is none.

    Attributes:
        centre, std_error: of the statistic, on the transformed scale.
        df: degrees of freedom of Student's distribution.
        p_value: two-sided, of a true value of 0 on the transformed scale.
        ends_at: the ends of the interval for another number of standard errors, not clipped to any bounds.
    """

    low: float | None
    high: float | None
    centre: float | None = None
    std_error: float | None = None
    df: int = 0
    p_value: float | None = None
    reason: str | None = None
    ends_at: Callable[[float], tuple[float, float]] | None = field(default=None, compare=False)


def jackknife_interval(
    value: float,
    replicates: Replicates,
    transform: Transform = IDENTITY,
    bounds: tuple[float, float] = (-inf, inf),
    cells: Floats | Sequence[Floats] | None = None,
    confidence_level: float = CONFIDENCE_LEVEL,
) -> JackknifeInterval:
    """Compute the interval of a statistic from its values without each unit.

    Args:
        value: the statistic over all observations.
        replicates: see `Replicates`, on the scale of `value`.
        cells: of two kinds of units, the statistic without each cell (combination of units), shape (cells,), in the
            strata of the first kind; without it no variance is subtracted, which is conservative.
        confidence_level: of the interval; see `bonferroni_level` for intervals that hold together.
        transform: the scale on which the interval is symmetric.
        bounds: smallest and largest possible value; the ends are clipped to them.

    Returns:
        No interval, with a reason, for fewer than 5 units of a kind, where the statistic is undefined with a unit left
        out, or where it is the same whatever is left out.
    """
    strata = {unit: _as_strata(arrays) for unit, arrays in replicates.items()}
    n_units = {unit: [len(stratum) for stratum in arrays] for unit, arrays in strata.items()}
    reason = too_few_reason(n_units)
    if reason is not None:
        return JackknifeInterval(None, None, reason=reason)
    strata_by_kind = [*strata.values(), [] if cells is None else _as_strata(cells)]
    transformed = _transform_together(transform, value, strata_by_kind)
    centre = float(transformed[0])
    if isfinite(value) and not isfinite(centre):
        return JackknifeInterval(None, None, reason=BOUNDARY_REASON)
    if not np.isfinite(transformed[1:]).all():
        return JackknifeInterval(None, None, reason=UNDEFINED_REASON)
    *variances, cell_variance = map(jackknife_variance, _split_like(strata_by_kind, transformed[1:]))
    variance = float(combine_variances(variances, cell_variance))
    if variance <= 1e-24 * max(1.0, centre**2):
        return JackknifeInterval(None, None, reason=CONSTANT_REASON)
    std_error = variance**0.5
    df = min(map(min, n_units.values())) - 1

    def compute_ends(quantile: float) -> tuple[float, float]:
        steps = np.array([-quantile, quantile])
        low, high = transform.inverse(centre + steps * std_error)
        return float(low), float(high)

    low, high = compute_ends(float(stdtrit(df, (1 + confidence_level) / 2)))
    p_value = float(2 * stdtr(df, -abs(centre) / std_error))
    return JackknifeInterval(
        max(bounds[0], low), min(bounds[1], high), centre, std_error, df, p_value, ends_at=compute_ends
    )


def _transform_together(transform: Transform, value: float, strata_by_kind: Sequence[Sequence[Floats]]) -> Floats:
    """The value and all replicates on the transformed scale, as one array: a call of numpy costs more than a number."""
    flat = np.concatenate([[value], *chain.from_iterable(strata_by_kind)])
    with np.errstate(divide="ignore", invalid="ignore"):
        return transform.forward(np.where(np.abs(flat) < ROUNDING_ERROR, 0.0, flat))


def _split_like(strata_by_kind: Sequence[Sequence[Floats]], values: Floats) -> Iterator[list[Floats]]:
    """Split the values into strata of the same lengths, and yield those of each kind of unit."""
    start = 0
    for strata in strata_by_kind:
        ends = list(accumulate(map(len, strata), initial=start))
        yield [values[i:j] for i, j in pairwise(ends)]
        start = ends[-1]


def combine_variances(by_kind: Sequence[ArrayLike], by_cell: ArrayLike = 0.0) -> Floats:
    """The variance of a statistic from its variances over each kind of unit and over cells (see the module).

    Args:
        by_kind: variances over countries, over topics; or arrays of such variances, one for each of several statistics.
        by_cell: variance over cells, of the same shape; 0 where it is not known.
    """
    variances = [np.asarray(variance, dtype=np.float64) for variance in by_kind]
    combined: Floats = sum(variances) - np.asarray(by_cell) / 2
    return reduce(np.maximum, variances, combined)


def estimate_from_replicates(
    value: float,
    n: int,
    replicates: Replicates,
    transform: Transform = IDENTITY,
    bounds: tuple[float, float] = (-inf, inf),
    cells: Floats | Sequence[Floats] | None = None,
    confidence_level: float = CONFIDENCE_LEVEL,
) -> Estimate:
    """A statistic as an `Estimate`, with the interval of `jackknife_interval`; `resampled` names the kinds of units.

    Args:
        n: number of observations. The others as for `jackknife_interval`.
    """
    interval = jackknife_interval(value, replicates, transform, bounds, cells, confidence_level)
    if interval.low is None or interval.high is None:
        return Estimate(value, n, reason=interval.reason)
    return Estimate(value, n, interval.low, interval.high, resampled=tuple(replicates))


def too_few_reason(n_units: Mapping[str, Sequence[int]]) -> str | None:
    """Why there is no interval over these units; None where each kind, in each stratum, has at least 5.

    Args:
        n_units: for each kind of unit, the number of units in each stratum.
    """
    too_few = {unit: min(counts) for unit, counts in n_units.items() if min(counts) < MIN_UNITS}
    if not too_few:
        return None
    needed = " and ".join(
        f"{MIN_UNITS} {PLURAL_BY_UNIT[unit]}{' in each group' if len(counts) > 1 else ''}"
        for unit, counts in n_units.items()
    )
    available = " and ".join(f"{n} {PLURAL_BY_UNIT[unit] if n != 1 else unit}" for unit, n in too_few.items())
    verb = "is" if next(iter(too_few.values())) == 1 else "are"  # as the first unit listed
    return f"an interval needs at least {needed}, but there {verb} {available}"


def jackknife_covariance(replicates: Sequence[Floats] | Floats) -> Floats:
    """Jackknife covariance matrix, shape (m, m), of m statistics with each of k units left out, shape (m, k)."""
    values = np.asarray(replicates, dtype=np.float64)
    k = values.shape[1]
    centred = values - values.mean(axis=1, keepdims=True)
    covariances: Floats = (k - 1) / k * (centred @ centred.T)
    return covariances


def pairwise_variances(covariances: Floats) -> Floats:
    """Variance of the difference of each two statistics, shape (m, m), from their covariance matrix."""
    variances = np.diag(covariances)
    return np.maximum(variances[:, None] + variances[None, :] - 2 * covariances, 0.0)


def jackknife_variance(strata: Sequence[Floats]) -> float:
    """Jackknife variance of a statistic over the units of one kind: the sum over its strata."""
    variance = 0.0
    for stratum in strata:
        k = len(stratum)
        centred = stratum - stratum.sum() / k
        variance += (k - 1) / k * float(centred @ centred)
    return variance


def _as_strata(arrays: Floats | Sequence[Floats]) -> list[NDArray[np.float64]]:
    """The replicates of one kind of unit as a list of strata."""
    return [arrays] if isinstance(arrays, np.ndarray) and arrays.ndim == 1 else [np.asarray(a) for a in arrays]


MAX_COUNTED_LABEL = 1_000_000
"""Whole numbers up to this one are numbered without sorting them."""
Labels = Mapping[str, ArrayLike]
"""For each kind of unit, such as `country`, the unit of each row, shape (n,)."""
COUNTRIES_AND_TOPICS = ("country", "topic")
"""Units of which a few with cases tell too little of the others. Items and the like are independent draws: a share has
at most the variance of one case per item (Hoeffding, Annals of Mathematical Statistics 27, 1956)."""
MAX_EXACT_CASES, MIN_APPROXIMATE_HITS = 1e8, 100
"""With more cases and hits the exact interval is that of Wilson to 2%, and scipy's `betaincinv` may be wrong or nan."""
UnitIndex = Mapping[str, NDArray[np.intp]]


@dataclass(frozen=True)
class UnitCounts:
    """Hits and cases per row, shape (n,), with the units of each row; all rows have cases.

    Attributes:
        n_independent: number of cases that are independent given their cells.
    """

    hits: Floats
    totals: Floats
    units: UnitIndex
    n_independent: float

    @cached_property
    def n(self) -> float:
        """Number of cases."""
        return float(self.totals.sum())

    @cached_property
    def share(self) -> float:
        """Share of the hits."""
        return min(1.0, float(self.hits.sum() / self.totals.sum()))

    @cached_property
    def n_units(self) -> dict[str, int]:
        """Number of units of each kind."""
        return count_units(self.units)

    @property
    def has_enough_units(self) -> bool:
        """Whether there are at least 5 units of each kind."""
        return min(self.n_units.values()) >= MIN_UNITS

    @property
    def rarer(self) -> Floats:
        """Hits per row, or misses where these are rarer."""
        return self.hits if self.share <= 0.5 else self.totals - self.hits

    @cached_property
    def variance(self) -> float:
        """Variance of the share over units."""
        return ratio_variance(self.hits, self.totals, self.units)

    def reason_against_interval(self) -> str | None:
        """Why there is no interval over other units; None where there is one."""
        reason = too_few_reason({unit: [n] for unit, n in self.n_units.items()})
        if reason is not None or self.share in (0.0, 1.0):
            return reason
        few = [PLURAL_BY_UNIT[unit] for unit in self._units_with_few_cases() if unit in COUNTRIES_AND_TOPICS]
        if not few:
            return None
        others = " and ".join(PLURAL_BY_UNIT[unit] for unit in self.units)
        counted = "they occur" if self.share <= 0.5 else "the exceptions occur"
        units = " and ".join(f"fewer than {MIN_UNITS} {plural}" for plural in few)
        return f"{counted} in {units}, too few for an interval for other {others}"

    def _units_with_few_cases(self) -> list[str]:
        """Kinds of units of which fewer than 5 have a case of the rarer of hits and misses."""
        has_case = self.rarer > 0
        n_units = {unit: np.count_nonzero(np.bincount(labels[has_case])) for unit, labels in self.units.items()}
        return [unit for unit, n in n_units.items() if n < MIN_UNITS]

    def interval(self, design_effect: float | None, confidence_level: float = CONFIDENCE_LEVEL) -> tuple[float, float]:
        """The interval over other units, where there is no reason against it; arguments as for `effective_cases`."""
        n_effective = self.effective_cases(design_effect, confidence_level)
        return clopper_pearson(self.share, n_effective, confidence_level)

    def effective_cases(self, design_effect: float | None, confidence_level: float = CONFIDENCE_LEVEL) -> float:
        """Number of independent cases at which the interval is computed, where there is no reason against it.

        Args:
            design_effect: how many times the variance is at least that of independent cases.
            confidence_level: of the interval.
        """
        fewest = min(self.n_units.values())
        if design_effect is None and self._units_with_few_cases():
            return min(self.n, float(fewest))
        if self.share in (0.0, 1.0):
            return self.n / max(1.0, design_effect or 1.0)
        binomial_variance = self.share * (1 - self.share) / self.n
        largest_effect = max(1.0, self.variance / binomial_variance, design_effect or 0.0)
        return self.n / largest_effect * few_units_factor(fewest, confidence_level)


def read_counts(
    hits: ArrayLike, totals: ArrayLike, units: Labels, independent_cases: ArrayLike | None = None
) -> UnitCounts:
    """Check the columns, drop rows without a case, and number the units.

    Args:
        hits, totals, units, independent_cases: as for `auditor.metrics.intervals.unit_means.share_over_units`.

    Raises:
        ValueError: shapes differ, or not 0 <= hits <= totals.
    """
    independent = totals if independent_cases is None else independent_cases
    (hit_counts, case_counts, independent_counts), is_complete = complete_cases(hits, totals, independent)
    if (hit_counts < 0).any() or (hit_counts > case_counts * (1 + 1e-12)).any():
        raise ValueError("hits and totals must be counts, hits at most totals")
    has_cases = case_counts > 0
    is_complete[is_complete] = has_cases
    n_independent = float(np.minimum(independent_counts, case_counts)[has_cases].sum())
    return UnitCounts(hit_counts[has_cases], case_counts[has_cases], index_units(units, is_complete), n_independent)


def index_units(units: Labels, included: NDArray[np.bool_]) -> dict[str, NDArray[np.intp]]:
    """Number the units of the included rows, for each kind; ValueError if the labels have another shape."""
    index = {}
    for unit, labels in units.items():
        unit_labels = np.asarray(labels)
        if unit_labels.shape != included.shape:
            raise ValueError(f"the labels of {unit} must have the shape {included.shape}, as the values have")
        index[unit] = number_labels(unit_labels[included])
    return index


def number_labels(labels: ArrayLike) -> NDArray[np.intp]:
    """Number each distinct label in sorted order, from 0 without gaps, shape (n,).

    Small whole numbers are counted instead of sorted: a report numbers the units of the same rows many times.
    """
    values = np.asarray(labels)
    if values.dtype.kind != "i" or not values.size or values.min() < 0 or values.max() > MAX_COUNTED_LABEL:
        return np.unique(values, return_inverse=True)[1]
    is_used = np.zeros(int(values.max()) + 1, dtype=np.bool_)
    is_used[values] = True
    numbers: NDArray[np.intp] = (np.cumsum(is_used) - 1)[values]
    return numbers


def count_units(units: UnitIndex) -> dict[str, int]:
    """Number of units of each kind, which are numbered from 0 without gaps."""
    return {unit: int(labels.max(initial=-1)) + 1 for unit, labels in units.items()}


def cell_index(units: UnitIndex) -> NDArray[np.intp]:
    """Number of each row's combination of units, from 0 without gaps, shape (n,)."""
    combined = np.zeros(1, dtype=np.intp)
    for labels in units.values():
        combined = combined * (int(labels.max(initial=0)) + 1) + labels
    return number_labels(combined)


def ratio_variance(numerators: Floats, denominators: Floats, units: UnitIndex) -> float:
    """Jackknife variance of a ratio of sums over units of one or two kinds.

    Args:
        numerators, denominators: shape (n,), of each row; denominators are positive.
        units: at least two units of each kind.
    """
    numerator, denominator = numerators.sum(), denominators.sum()

    def variance_over(labels: NDArray[np.intp]) -> float:
        without_unit = (numerator - np.bincount(labels, numerators)) / (denominator - np.bincount(labels, denominators))
        return jackknife_variance([without_unit])

    by_cell = variance_over(cell_index(units)) if len(units) > 1 else 0.0
    return float(combine_variances([variance_over(labels) for labels in units.values()], by_cell))


def few_units_factor(n_units: int, confidence_level: float = CONFIDENCE_LEVEL) -> float:
    """What an effective number of cases is multiplied by because its variance is estimated from few units: (z / t)²."""
    quantile = UPPER_QUANTILE if confidence_level == CONFIDENCE_LEVEL else (1 + confidence_level) / 2
    return float(stdtrit(np.inf, quantile) / stdtrit(n_units - 1, quantile)) ** 2


def _wilson(share: float, n: float, confidence_level: float) -> tuple[float, float]:
    """The interval of Wilson for a share of n cases."""
    z = NORMAL_QUANTILE if confidence_level == CONFIDENCE_LEVEL else float(stdtrit(np.inf, (1 + confidence_level) / 2))
    spread = z * sqrt(share * (1 - share) / n + z**2 / (4 * n * n))
    centre, factor = share + z**2 / (2 * n), 1 + z**2 / n
    return (centre - spread) / factor, (centre + spread) / factor


def clopper_pearson(share: float, n: float, confidence_level: float = CONFIDENCE_LEVEL) -> tuple[float, float]:
    """The interval of Clopper & Pearson for a share of n > 0 cases; hits and n may be fractions.

    That of Wilson for very many cases.
    """
    hits = share * n
    if n > MAX_EXACT_CASES and min(hits, n - hits) > MIN_APPROXIMATE_HITS:
        return _wilson(share, n, confidence_level)
    lower, upper = LOWER_QUANTILE, UPPER_QUANTILE
    if confidence_level != CONFIDENCE_LEVEL:
        lower, upper = (1 - confidence_level) / 2, (1 + confidence_level) / 2
    low = 0.0 if share == 0 else float(betaincinv(hits, n - hits + 1, lower))
    high = 1.0 if share == 1 else float(betaincinv(hits + 1, n - hits, upper))
    return low, high


class UnitReplicates(NamedTuple):
    """A statistic with units left out in turn, as `estimate_from_replicates` takes it.

    Attributes:
        units: for each kind of unit, the statistic without each of its units.
        cells: of two kinds of units, the statistic without each combination; None for one kind.
    """

    units: dict[str, Floats]
    cells: Floats | None

    def minus(self, other: UnitReplicates) -> UnitReplicates:
        """The replicates of the difference of two statistics of the same rows."""
        cells = None if self.cells is None or other.cells is None else self.cells - other.cells
        return UnitReplicates({unit: values - other.units[unit] for unit, values in self.units.items()}, cells)


def replicate_over_units(
    moments: Floats, value: Callable[[Floats], Floats], units: Mapping[str, ArrayLike]
) -> UnitReplicates:
    """Compute a statistic without each unit and each cell.

    Args:
        moments: shape (n, k), what is summed over rows.
        value: from sums, shape (replicates, k), to the statistic, shape (replicates,), nan where undefined.
        units: for each of one or two kinds of units, such as `country`, the unit of each row, shape (n,).

    Raises:
        ValueError: labels of another shape.
    """
    unit_index = index_units(units, np.ones(len(moments), dtype=np.bool_))
    replicates = {unit: value(_sums_without_units(moments, labels)) for unit, labels in unit_index.items()}
    cells = value(_sums_without_units(moments, cell_index(unit_index))) if len(unit_index) > 1 else None
    return UnitReplicates(replicates, cells)


def leave_one_out_sums(moments: Floats, labels: ArrayLike) -> Floats:
    """Sums of the observations' moments without each unit, in the sorted order of the labels.

    Args:
        moments: shape (n, k), numbers per observation whose sums determine a statistic.
        labels: shape (n,), the unit of each observation, of any kind.

    Returns:
        Shape (units, k).
    """
    return _sums_without_units(moments, number_labels(labels))


def _sums_without_units(moments: Floats, unit_index: NDArray[np.intp]) -> Floats:
    """As `leave_one_out_sums`, of units that are numbered from 0 without gaps."""
    by_unit = np.array([np.bincount(unit_index, column) for column in moments.T])
    left_out: Floats = moments.sum(axis=0) - by_unit.T
    return left_out


def recompute_without_units(statistic: Callable[[NDArray[np.bool_]], ArrayLike], labels: ArrayLike) -> Floats:
    """Compute a statistic anew without each unit, in the sorted order of the labels.

    Args:
        statistic: from the mask of the included rows, shape (n,), to one or several figures.
        labels: shape (n,), the unit of each row.

    Returns:
        Shape (units,), or (units, figures).
    """
    unit_index = number_labels(labels)
    return np.array([statistic(unit_index != unit) for unit in range(int(unit_index.max(initial=-1)) + 1)])
