"""Convert estimates to rows of an interval plot, and to the text beside it."""

from __future__ import annotations

from collections.abc import Iterable

from auditor.metrics.estimate import Estimate
from auditor.reports.number_format import format_estimate, format_interval, format_number
from auditor.reports.pages.svg_charts import IntervalMark


def format_mark_annotation(value: float | None, low: float | None, high: float | None) -> str:
    """Format a value and its interval for the right-hand side of an interval plot."""
    if value is None:
        return "not measurable"
    return (
        format_number(value)
        if low is None or high is None
        else f"{format_number(value)}  ({format_interval(low, high)})"
    )


def build_interval_mark(label: str, estimate: Estimate) -> IntervalMark:
    """Build a row of an interval plot from an estimate."""
    value, low, high = estimate.value, estimate.ci_low, estimate.ci_high
    return IntervalMark(label, value, low, high, format_mark_annotation(value, low, high))


def describe_estimates(labelled_estimates: Iterable[tuple[str, Estimate]]) -> str:
    """Join labelled estimates to a text for screen readers."""
    return "; ".join(f"{label} {format_estimate(estimate)}" for label, estimate in labelled_estimates)
