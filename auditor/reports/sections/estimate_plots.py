"""Interval plots of labelled estimates, with the figures in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from auditor.metrics.estimate import Estimate
from auditor.reports.charts.interval_plot import Axis, IntervalRow, interval_plot
from auditor.reports.document import Figure, Text
from auditor.reports.number_format import format_estimate

LabelledEstimate = tuple[str, Estimate]


def build_interval_figure(
    figure_id: str,
    title: str,
    rows: Sequence[LabelledEstimate],
    axis: Axis,
    *,
    table_id: str,
    caption: Text = "",
) -> Figure:
    """Build an interval plot with a row for each estimate, described by the figures in words.

    Args:
        table_id: the table that has the figures.
    """
    spec = interval_plot([build_interval_row(*row) for row in rows], axis)
    return Figure(figure_id, spec, title, describe_estimates(rows), caption, table_id)


def build_interval_row(label: str, estimate: Estimate) -> IntervalRow:
    """Convert a labelled estimate to a row of an interval plot."""
    return IntervalRow(label, estimate.value, estimate.ci_low, estimate.ci_high)


def describe_estimates(rows: Iterable[LabelledEstimate]) -> str:
    """List labelled estimates with their intervals, for those who do not see a plot."""
    return "; ".join(f"{label} {format_estimate(estimate)}" for label, estimate in rows)
