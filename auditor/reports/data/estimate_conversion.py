"""Convert results of `auditor.metrics` to the report's `Estimate`."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import numpy as np

from auditor.domain import Method
from auditor.metrics.bootstrap import TwoWayEstimate
from auditor.metrics.error import bias
from auditor.metrics.estimate import Estimate
from auditor.metrics.proportion import proportion
from auditor.metrics.two_way_means import CELLS_LABEL, TwoWayMean
from auditor.reports.data.report_source import FloatArray

RESCALED_SCORES_REASON = (
    "log-probability scores are stretched to the whole scale within each model, "
    "so their distance from people says nothing"
)


def has_rescaled_scores(method: str) -> bool:
    """Whether scores by a method are rescaled within each model, so that they can be ranked but not subtracted.

    A log-probability score depends on all other cells of its model, so its distance from people's score means nothing.
    """
    return method == Method.LOGPROB


class MetricEstimate(Protocol):
    """Interface of the results of `auditor.metrics` that have a value and a 95% confidence interval."""

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
    """Copy a metric's value, n, interval and reason into an `Estimate`."""
    return Estimate(
        value=metric.value,
        n=metric.n,
        ci_low=metric.ci_low,
        ci_high=metric.ci_high,
        reason=metric.reason,
    )


def interval_to_estimate(interval: TwoWayEstimate) -> Estimate:
    """Convert an estimate with a two-way interval over countries and topics; n counts cells."""
    return Estimate(
        value=interval.estimate,
        n=interval.n_cells,
        ci_low=interval.low,
        ci_high=interval.high,
        reason=interval.reason,
        resampled=() if interval.low is None else ("country", "topic"),
    )


def estimate_share(n_matching: int, n_total: int) -> Estimate:
    """Estimate the share n_matching / n_total, with Wilson's 95% interval."""
    return to_estimate(proportion(n_matching, n_total))


def estimate_mean(scores: FloatArray, missing_reason: str) -> Estimate:
    """Estimate the mean of the scores that are not nan, with Student's 95% interval.

    Args:
        scores: shape (n,).
        missing_reason: the estimate's reason if all scores are nan.
    """
    # The mean of the scores is their bias against zeros; n and the interval are the same.
    mean = bias(scores, np.zeros_like(scores))
    if not mean.n:
        return missing_estimate(missing_reason)
    estimate, all_equal = to_estimate(mean), mean.n > 1 and mean.ci_low is None
    return replace(estimate, reason="all values are equal: no interval") if all_equal else estimate


def clustered_to_estimate(metric: TwoWayMean, missing_reason: str) -> Estimate:
    """Convert a mean or share over cells that share countries and topics, and so are not independent.

    Args:
        metric: its interval is over cells where there are too few countries or topics; the reason then says so.
        missing_reason: the estimate's reason if the metric has no value.
    """
    if metric.value is None:
        return missing_estimate(missing_reason)
    estimate = to_estimate(metric)
    return replace(estimate, reason=f"interval over {CELLS_LABEL}") if metric.over == CELLS_LABEL else estimate


def missing_estimate(reason: str, n: int = 0) -> Estimate:
    """An estimate without a value, for a figure that could not be computed."""
    return Estimate(value=None, n=n, reason=reason)
