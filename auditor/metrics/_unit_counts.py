"""Hits and cases per row with the units of the rows: the variance of their share over units, and its interval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics._complete_cases import Floats, complete_cases
from auditor.metrics._special import betaincinv, stdtrit
from auditor.metrics.confidence import CONFIDENCE_LEVEL, LOWER_QUANTILE, NORMAL_QUANTILE, UPPER_QUANTILE
from auditor.metrics.estimate import PLURAL_BY_UNIT
from auditor.metrics.jackknife_interval import (
    MIN_UNITS,
    combine_variances,
    jackknife_covariance,
    too_few_reason,
)

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
        return [unit for unit, labels in self.units.items() if len(np.unique(labels[self.rarer > 0])) < MIN_UNITS]

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
        hits, totals, units, independent_cases: as for `auditor.metrics.unit_means.share_over_units`.

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
        index[unit] = np.unique(unit_labels[included], return_inverse=True)[1]
    return index


def count_units(units: UnitIndex) -> dict[str, int]:
    """Number of units of each kind, which are numbered from 0 without gaps."""
    return {unit: int(labels.max(initial=-1)) + 1 for unit, labels in units.items()}


def cell_index(units: UnitIndex) -> NDArray[np.intp]:
    """Number of each row's combination of units, from 0 without gaps, shape (n,)."""
    combined = np.zeros(1, dtype=np.intp)
    for labels in units.values():
        combined = combined * (int(labels.max(initial=0)) + 1) + labels
    return np.unique(combined, return_inverse=True)[1]


def ratio_variance(numerators: Floats, denominators: Floats, units: UnitIndex) -> float:
    """Jackknife variance of a ratio of sums over units of one or two kinds.

    Args:
        numerators, denominators: shape (n,), of each row; denominators are positive.
        units: at least two units of each kind.
    """
    numerator, denominator = numerators.sum(), denominators.sum()

    def variance_over(labels: NDArray[np.intp]) -> float:
        without_unit = (numerator - np.bincount(labels, numerators)) / (denominator - np.bincount(labels, denominators))
        return float(jackknife_covariance(without_unit[None])[0, 0])

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
