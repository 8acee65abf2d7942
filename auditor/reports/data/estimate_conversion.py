"""Convert results of `auditor.metrics` to the report's `Estimate`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol, TypeVar

from auditor.domain import Method
from auditor.metrics.cell_statistics import TwoWayEstimate
from auditor.metrics.estimate import Estimate
from auditor.metrics.proportion import proportion

AnyEstimate = TypeVar("AnyEstimate", bound=Estimate)

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


def estimate_share(n_matching: int, n_total: int, unit: str = "") -> Estimate:
    """Estimate the share n_matching / n_total of independent cases, with Wilson's 95% interval.

    Args:
        unit: what a case is, such as `item`, as the interval is over other cases.
    """
    estimate = to_estimate(proportion(n_matching, n_total))
    return replace(estimate, resampled=(unit,)) if unit and estimate.ci_low is not None else estimate


def missing_estimate(reason: str, n: int = 0) -> Estimate:
    """An estimate without a value, for a figure that could not be computed."""
    return Estimate(value=None, n=n, reason=reason)


def replace_reason(estimate: AnyEstimate, labels: Mapping[str, str]) -> AnyEstimate:
    """The estimate with its reason in the words of `labels`, by the metric's reason; unchanged if it has no label."""
    return replace(estimate, reason=labels.get(estimate.reason or "", estimate.reason))
