"""From what `auditor.metrics` computes to what a report says."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from auditor.domain import Method
from auditor.metrics.bootstrap import TwoWayEstimate
from auditor.metrics.error import bias
from auditor.metrics.proportion import proportion
from auditor.metrics.two_way_means import CELLS_LABEL, TwoWayMean
from auditor.reports.measurement_schema import Estimate
from auditor.reports.report_source import FloatArray

RESCALED_SCORES_REASON = (
    "log-probability scores are stretched to the whole scale within each model, "
    "so their distance from people says nothing"
)


def has_rescaled_scores(method: str) -> bool:
    """Whether scores of a method have an order and no distance: one cell's value moves the scores of all others."""
    return method == Method.LOGPROB


class MetricEstimate(Protocol):
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


def to_estimate(metric: MetricEstimate) -> Estimate:
    """The same in the report's words."""
    return Estimate(
        value=metric.value,
        n=metric.n,
        ci_low=metric.ci_low,
        ci_high=metric.ci_high,
        reason=metric.reason,
    )


def interval_to_estimate(interval: TwoWayEstimate) -> Estimate:
    """A figure with its interval over countries and topics; n counts cells."""
    return Estimate(
        value=interval.estimate,
        n=interval.n_cells,
        ci_low=interval.low,
        ci_high=interval.high,
        reason=interval.reason,
    )


def estimate_share(n_matching: int, n_total: int) -> Estimate:
    """A share with Wilson's interval."""
    return to_estimate(proportion(n_matching, n_total))


def estimate_mean(scores: FloatArray, missing_reason: str) -> Estimate:
    """A mean with Student's interval, of the values that are not nan; `none` says why there may be none."""
    measured = bias(scores, np.zeros_like(scores))
    if not measured.n:
        return missing_estimate(missing_reason)
    found, same = to_estimate(measured), measured.n > 1 and measured.ci_low is None
    return found.model_copy(update={"reason": "all values are equal: no interval"}) if same else found


def clustered_to_estimate(metric: TwoWayMean, missing_reason: str) -> Estimate:
    """A mean or share over cells that hang together; `none` says why there may be none."""
    if metric.value is None:
        return missing_estimate(missing_reason)
    told = to_estimate(metric)
    return told.model_copy(update={"reason": f"interval over {CELLS_LABEL}"}) if metric.over == CELLS_LABEL else told


def missing_estimate(reason: str, n: int = 0) -> Estimate:
    """An estimate that could not be made."""
    return Estimate(value=None, n=n, reason=reason)
