"""A difference between shares of VALID that may show a judge's bias, with the kind of evidence that it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics._complete_cases import Floats
from auditor.metrics.estimate import Tested
from auditor.metrics.jackknife_interval import CONSTANT_REASON, ROUNDING_ERROR, jackknife_interval
from auditor.metrics.paired_shares import constant_difference_interval
from auditor.metrics.unit_replicates import UnitReplicates, replicate_over_units

Evidence = Literal["experiment", "truth", "panel", "association"]
Labels = Mapping[str, ArrayLike]
"""For each kind of unit, such as `country`, the unit of each trace, shape (traces,)."""


@dataclass(frozen=True, slots=True)
class JudgeDifference(Tested):
    """A difference between shares of VALID, with the kind of evidence that it is.

    0.1 is ten percentage points.
    """

    evidence: Evidence = "association"
    """`experiment`: the same text was altered at random, so the difference is caused by the alteration. `truth`:
    compared with the known truth of the same answers. `panel`: compared with the median judge on the same traces; it
    is a bias if more than half of the judges have none. `association`: traces differ in other ways too, such as
    quality, so the difference is no evidence of a bias."""
    label_error_ci_low: float | None = None
    """Lower end of an interval that holds even if up to 10% of the truths are wrong; null unless compared with them."""
    label_error_ci_high: float | None = None


def difference_from_replicates(value: float, n: int, replicates: UnitReplicates, evidence: Evidence) -> JudgeDifference:
    """A difference with its interval and p-value, by the jackknife over the units of `replicates`.

    A difference that is the same whichever unit is left out, such as that of a judge that says INVALID where all others
    say VALID, has the interval of `constant_difference_interval`.
    """
    interval = jackknife_interval(value, replicates.units, bounds=(-1.0, 1.0), cells=replicates.cells)
    if interval.reason == CONSTANT_REASON and abs(value) > ROUNDING_ERROR:
        interval = constant_difference_interval(value, min(map(len, replicates.units.values())))
    if interval.low is None or interval.high is None:
        return JudgeDifference(value, n, reason=interval.reason, evidence=evidence)
    return JudgeDifference(
        value,
        n,
        interval.low,
        interval.high,
        resampled=tuple(replicates.units),
        evidence=evidence,
        p_value=interval.p_value,
    )


def missing_difference(reason: str, evidence: Evidence = "association", n: int = 0) -> JudgeDifference:
    """A difference that could not be computed."""
    return JudgeDifference(None, n, reason=reason, evidence=evidence)


def length_association(verdicts: ArrayLike, is_longer: ArrayLike, units: Labels) -> list[JudgeDifference]:
    """For each judge, its share of VALID on longer traces minus that on shorter ones.

    This is an association: an unbiased judge has one wherever longer traces are better or worse than shorter ones.

    Args:
        verdicts: shape (judges, traces): 1 VALID, 0 INVALID, nan no verdict.
        is_longer: shape (traces,): 1 for the longer half of an author's traces, 0 for the shorter, nan for neither.
        units: the units that are resampled.
    """
    longer = np.asarray(is_longer, dtype=np.float64)
    return [difference_of_means(row, longer, units, "association") for row in as_verdict_table(verdicts)]


def difference_of_means(values: Floats, exposed: Floats, units: Labels, evidence: Evidence) -> JudgeDifference:
    """Mean of the values where `exposed` is 1 minus that where it is 0, with an interval over units.

    Args:
        values: shape (traces,); nan is left out.
        exposed: shape (traces,): 1, 0, or nan for traces on neither side.
    """
    is_used = ~np.isnan(values) & ~np.isnan(exposed)
    first, second = exposed[is_used] == 1, exposed[is_used] == 0
    n = int(is_used.sum())
    if not first.any() or not second.any():
        return missing_difference("one side has no verdict", evidence, n)
    used_values = values[is_used]
    # Per trace: its value and whether it counts, on the first side, then on the second.
    moments = np.stack([used_values * first, first, used_values * second, second], axis=1).astype(np.float64)
    return _estimate(moments, _difference, n, _select(units, is_used), evidence)


def mean_value(values: Floats, units: Labels, evidence: Evidence) -> JudgeDifference:
    """Mean of differences by trace, with an interval over units.

    Args:
        values: shape (traces,); nan is left out.
    """
    is_used = ~np.isnan(values)
    n = int(is_used.sum())
    if not n:
        return missing_difference("no verdict is usable", evidence)
    moments = np.stack([values[is_used], np.ones(n)], axis=1)
    return _estimate(moments, _ratio, n, _select(units, is_used), evidence)


def _estimate(
    moments: Floats, statistic: Callable[[Floats], Floats], n: int, units: Labels, evidence: Evidence
) -> JudgeDifference:
    """A statistic of sums of the traces' moments, shape (traces, k), with an interval over units."""
    value = float(statistic(moments.sum(axis=0)[None])[0])
    return difference_from_replicates(value, n, replicate_over_units(moments, statistic, units), evidence)


def _select(units: Labels, is_used: NDArray[np.bool_]) -> dict[str, NDArray[np.generic]]:
    """The units of some traces."""
    return {unit: np.asarray(labels)[is_used] for unit, labels in units.items()}


def _ratio(sums: Floats) -> Floats:
    """Mean from sums of the values and numbers of traces, shape (replicates, 2); nan without a trace."""
    with np.errstate(divide="ignore", invalid="ignore"):
        mean: Floats = sums[:, 0] / sums[:, 1]
    return mean


def _difference(sums: Floats) -> Floats:
    """Difference of two means from sums of the moments, shape (replicates, 4); nan where one side is empty."""
    return _ratio(sums[:, :2]) - _ratio(sums[:, 2:])


def as_verdict_table(verdicts: ArrayLike) -> NDArray[np.float64]:
    """Verdicts as a float array, shape (judges, traces); ValueError for another shape or an infinite value."""
    table = np.asarray(verdicts, dtype=np.float64)
    if table.ndim != 2 or np.isinf(table).any():
        raise ValueError("verdicts must be a table (judges, traces) of 1, 0 and nan")
    return table
