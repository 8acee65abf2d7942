"""Estimates as the study judges them."""

from __future__ import annotations

from auditor.metrics.intervals.estimate import Estimate
from benchmarks.coverage.rule import Interval


def to_interval(estimate: Estimate) -> Interval:
    """The value and the ends of an estimate."""
    return float("nan") if estimate.value is None else estimate.value, estimate.ci_low, estimate.ci_high
