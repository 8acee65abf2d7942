"""Interval plot (forest plot): one row for each estimate, with its 95% confidence interval."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from auditor.reports.charts.theme import VegaLiteSpec


@dataclass(frozen=True, slots=True)
class Axis:
    """The horizontal axis of an interval plot.

    Attributes:
        title: what is shown, with its unit or direction; empty for none.
        reference: position of the reference line, such as zero; None for no line.
    """

    low: float
    high: float
    ticks: Sequence[float]
    title: str
    reference: float | None = None


CORRELATION_AXIS = Axis(-1, 1, (-1, -0.5, 0, 0.5, 1), "Pearson r (higher is better)", 0.0)
CORRELATION_DIFFERENCE_AXIS = Axis(-1, 1, (-1, -0.5, 0, 0.5, 1), "Difference in r", 0.0)
SHARE_AXIS = Axis(0, 1, (0, 0.25, 0.5, 0.75, 1), "")


@dataclass(frozen=True, slots=True)
class IntervalRow:
    """One row of an interval plot; without a value only its label and annotation are drawn.

    Attributes:
        inner_low, inner_high: ends of a second interval, drawn thicker and fainter, such as Fisher's.
        annotation: text to the right; by default the value with its interval, or "not available".
    """

    label: str
    value: float | None
    ci_low: float | None = None
    ci_high: float | None = None
    inner_low: float | None = None
    inner_high: float | None = None
    annotation: str | None = None


def error_axis(values: Iterable[float | None], title: str) -> Axis:
    """Create an axis from 0 to a round number that is at least the largest value."""
    raise NotImplementedError


def difference_axis(values: Iterable[float | None], title: str) -> Axis:
    """Create an axis symmetric around 0, to a round number that is at least the largest absolute value."""
    raise NotImplementedError


def interval_plot(rows: Sequence[IntervalRow], axis: Axis) -> VegaLiteSpec:
    """Specify a plot with a dot, an interval and an annotation for each row, in the order given.

    Values outside the axis are drawn at its end.
    """
    raise NotImplementedError
