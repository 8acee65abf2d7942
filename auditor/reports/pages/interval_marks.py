"""Figures with their intervals as the rows of a plot, and as the words beside it."""

from __future__ import annotations

from collections.abc import Iterable

from auditor.reports.measurement_schema import Estimate
from auditor.reports.pages.number_format import interval, number, with_interval
from auditor.reports.pages.svg_charts import Mark


def note(value: float | None, low: float | None, high: float | None) -> str:
    if value is None:
        return "not measurable"
    return number(value) if low is None or high is None else f"{number(value)}  ({interval(low, high)})"


def mark(label: str, estimate: Estimate) -> Mark:
    value, low, high = estimate.value, estimate.ci_low, estimate.ci_high
    return Mark(label, value, low, high, note(value, low, high))


def told(rows: Iterable[tuple[str, Estimate]]) -> str:
    return "; ".join(f"{label} {with_interval(estimate)}" for label, estimate in rows)
