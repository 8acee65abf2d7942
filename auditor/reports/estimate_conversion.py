"""From what `auditor.metrics` computes to what a report says."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from auditor.domain import Method
from auditor.metrics.bootstrap import Interval
from auditor.metrics.error import bias
from auditor.metrics.proportion import proportion
from auditor.metrics.two_way_means import CELLS, OverCells
from auditor.reports.measurement_schema import Estimate
from auditor.reports.report_source import Floats

STRETCHED = (
    "log-probability scores are stretched to the whole scale within each model, "
    "so their distance from people says nothing"
)


def is_stretched(method: str) -> bool:
    """Whether scores of a method have an order and no distance: one cell's value moves the scores of all others."""
    return method == Method.LOGPROB


class Measured(Protocol):
    """Any of the results of `auditor.metrics` with a value and an interval."""

    @property
    def value(self) -> float | None: ...
    @property
    def n(self) -> int: ...
    @property
    def ci_low(self) -> float | None: ...
    @property
    def ci_high(self) -> float | None: ...
    @property
    def reason(self) -> str | None: ...


def estimate(measured: Measured) -> Estimate:
    """The same in the report's words."""
    return Estimate(
        value=measured.value,
        n=measured.n,
        ci_low=measured.ci_low,
        ci_high=measured.ci_high,
        reason=measured.reason,
    )


def resampled(interval: Interval) -> Estimate:
    """A figure with its interval over countries and topics; n counts cells."""
    return Estimate(
        value=interval.estimate,
        n=interval.n_cells,
        ci_low=interval.low,
        ci_high=interval.high,
        reason=interval.reason,
    )


def share_of(part: int, whole: int) -> Estimate:
    """A share with Wilson's interval."""
    return estimate(proportion(part, whole))


def mean_of(values: Floats, none: str) -> Estimate:
    """A mean with Student's interval, of the values that are not nan; `none` says why there may be none."""
    measured = bias(values, np.zeros_like(values))
    if not measured.n:
        return unmeasured(none)
    found, same = estimate(measured), measured.n > 1 and measured.ci_low is None
    return found.model_copy(update={"reason": "all values are equal: no interval"}) if same else found


def clustered(measured: OverCells, none: str) -> Estimate:
    """A mean or share over cells that hang together; `none` says why there may be none."""
    if measured.value is None:
        return unmeasured(none)
    told = estimate(measured)
    return told.model_copy(update={"reason": f"interval over {CELLS}"}) if measured.over == CELLS else told


def unmeasured(reason: str, n: int = 0) -> Estimate:
    """An estimate that could not be made."""
    return Estimate(value=None, n=n, reason=reason)
