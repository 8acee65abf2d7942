"""Interval plots of labelled estimates, with the figures in words."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.metrics.estimate import Estimate
from auditor.reports.charts.interval_plot import Axis, IntervalRow, difference_axis, interval_plot
from auditor.reports.document import Figure, Text
from auditor.reports.number_format import format_estimate

LabelledEstimate = tuple[str, Estimate]


def build_interval_figure(
    figure_id: str,
    title: str,
    rows: Sequence[LabelledEstimate],
    axis: Axis | str,
    *,
    table_id: str,
    caption: Text = "",
    description: str = "",
) -> Figure:
    """Build an interval plot with a row for each estimate, described by the figures in words.

    Args:
        axis: the axis, or the title of one that is symmetric around 0 and fits the values.
        table_id: the table that has the figures.
        description: the figures in words; by default each label with its estimate.
    """
    if isinstance(axis, str):
        axis = difference_axis((end for _, row in rows for end in (row.value, row.ci_low, row.ci_high)), axis)
    intervals = [IntervalRow(label, row.value, row.ci_low, row.ci_high) for label, row in rows]
    spec, narrow_spec = (interval_plot(intervals, axis, is_narrow=is_narrow) for is_narrow in (False, True))
    description = description or "; ".join(f"{label} {format_estimate(estimate)}" for label, estimate in rows)
    return Figure(figure_id, spec, title, description, caption, table_id, narrow_spec)
