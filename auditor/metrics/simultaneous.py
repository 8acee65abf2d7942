"""Critical values for comparisons of several models, or groups, with each other.

A difference is compared with c standard errors. If every difference is compared with 1.96 standard errors, 20 equal
models almost always seem to differ. Here c is the 95% quantile of the largest studentized difference, by simulation.

Differences have standard errors of their own, each from few units, and the largest of many is the one whose standard
error is too small by chance. A common denominator for all pairs, as in the multivariate Student distribution with the
estimated covariances (Tukey's method), therefore splits 20 equal models in 6 to 13% of audits (docs/coverage.md). The
simulation draws the standard errors too: models with independent normal effects of the units, nearly the least
favourable case. Only the division of the variance between the kinds of units is taken from the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from typing import NamedTuple

import numpy as np

from auditor.metrics._complete_cases import Floats
from auditor.metrics._special import stdtr, stdtrit
from auditor.metrics.confidence import CONFIDENCE_LEVEL, UPPER_QUANTILE

N_DRAWS = 5_000
CHUNK_SIZE = 250
"""Draws that are held in memory at once."""
MIN_SHARE = 0.8
"""Smallest share of the variance that is ascribed to the kind with the fewest units.

Pairs differ in how their variance is divided; this is the share for the pairs whose standard errors are least certain.
"""
SHARE_STEP = 0.05
"""Shares are rounded up to multiples, so that few simulations are needed."""


@dataclass(frozen=True, slots=True)
class CriticalValues:
    """Numbers of standard errors for 95% intervals that hold simultaneously.

    Attributes:
        all_pairs: for all differences between two series.
        with_one: for the differences of one series from all others (Dunnett's problem).
    """

    all_pairs: float
    with_one: float


@dataclass(frozen=True, slots=True)
class UnitKind:
    """A source of variance of several series: the units of one kind, such as countries.

    Attributes:
        n_units: of each series where each has units of its own (groups of countries); else one number for all.
        share: share of the variance between series.
    """

    n_units: tuple[int, ...]
    share: float


def critical_values(n_series: int, kinds: Sequence[UnitKind]) -> CriticalValues:
    """Critical values for the differences between several series, by simulation.

    Student's quantile with one degree of freedom less than the fewest units is a lower limit; it is exact for two
    series with units in common.

    Args:
        n_series: number of models or groups, at least 2.
        kinds: the sources of variance, such as countries and topics; see `divide_variance`.
    """
    fewest = min(min(kind.n_units) for kind in kinds)
    student = float(stdtrit(fewest - 1, UPPER_QUANTILE))
    if n_series == 2 and all(len(kind.n_units) == 1 for kind in kinds):
        return CriticalValues(student, student)
    simulated = _simulate(n_series, tuple((kind.n_units, kind.share) for kind in kinds))
    return CriticalValues(
        max(student, float(np.quantile(simulated.largest, CONFIDENCE_LEVEL))), max(student, simulated.with_one)
    )


def all_pairs_p_value(statistic: float, n_series: int, kinds: Sequence[UnitKind]) -> float:
    """Two-sided p-value of no difference between any two series, for one difference in standard errors.

    It is below 0.05 where the difference exceeds the critical value for all pairs, and at least 1 / `N_DRAWS`.

    Args:
        statistic: the difference, which may be the largest one. The others as for `critical_values`.
    """
    fewest = min(min(kind.n_units) for kind in kinds)
    student = float(2 * stdtr(fewest - 1, -abs(statistic)))
    if n_series == 2 and all(len(kind.n_units) == 1 for kind in kinds):
        return student
    largest = _simulate(n_series, tuple((kind.n_units, kind.share) for kind in kinds)).largest
    share_below = float(np.interp(abs(statistic), largest, np.linspace(0.0, 1.0, len(largest))))
    return max(student, 1 - share_below, 1 / N_DRAWS)


def divide_variance(covariances: Sequence[Floats], n_units: Sequence[tuple[int, ...]]) -> list[UnitKind]:
    """Divide the variance between series among two kinds of units.

    Args:
        covariances: of the series, over the units of each kind, shape (series, series) each.
        n_units: see `UnitKind`.

    Returns:
        The kinds with shares that add up to 1; that of the kind with the fewest units is at least `MIN_SHARE`.
    """
    # The variance between series: what is common to all cancels in differences.
    variances = [float(np.trace(covariance) - covariance.mean() * len(covariance)) for covariance in covariances]
    smaller = 0 if min(n_units[0]) <= min(n_units[1]) else 1
    total = sum(variances)
    share = max(MIN_SHARE, variances[smaller] / total if total > 0 else 1.0)
    share = min(1.0, ceil(share / SHARE_STEP - 1e-9) * SHARE_STEP)
    return [UnitKind(n, share if kind == smaller else 1 - share) for kind, n in enumerate(n_units)]


class _Simulation(NamedTuple):
    """Studentized differences of equal series.

    Attributes:
        largest: shape (N_DRAWS,), sorted, the largest between two series in each draw.
        with_one: 95% quantile of the largest of one series from the others.
    """

    largest: Floats
    with_one: float


@lru_cache(maxsize=512)
def _simulate(n_series: int, kinds: tuple[tuple[tuple[int, ...], float], ...]) -> _Simulation:
    """Simulate equal series."""
    rng = np.random.default_rng(0)
    largest = np.concatenate(
        [_draw_largest_differences(rng, n_series, kinds) for _ in range(0, N_DRAWS, CHUNK_SIZE)], axis=0
    )
    return _Simulation(np.sort(largest.max(axis=1)), float(np.quantile(largest, CONFIDENCE_LEVEL)))


def _draw_largest_differences(
    rng: np.random.Generator, n_series: int, kinds: Sequence[tuple[tuple[int, ...], float]]
) -> Floats:
    """The largest studentized difference of each series from any other, shape (CHUNK_SIZE, series)."""
    covariances = np.zeros((CHUNK_SIZE, n_series, n_series))
    diagonal = np.arange(n_series)
    for n_units, share in kinds:
        if share <= 0:
            continue
        if len(n_units) == 1:  # units in common: the series' covariance is estimated too
            effects = rng.standard_normal((CHUNK_SIZE, n_series, n_units[0] - 1))
            covariances += share / (n_units[0] - 1) * (effects @ effects.transpose(0, 2, 1))
        else:
            df = np.array(n_units) - 1
            covariances[:, diagonal, diagonal] += share * rng.chisquare(df, (CHUNK_SIZE, n_series)) / df
    variances = covariances[:, diagonal, diagonal]
    of_differences = variances[:, :, None] + variances[:, None, :] - 2 * covariances
    of_differences[:, diagonal, diagonal] = np.inf
    estimates = rng.standard_normal((CHUNK_SIZE, n_series))
    distances = np.abs(estimates[:, :, None] - estimates[:, None, :])
    largest: Floats = (distances / np.sqrt(of_differences)).max(axis=2)
    return largest
