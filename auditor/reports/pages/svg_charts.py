"""Plots as inline SVG: pure functions from numbers to markup. Colours and fonts are the page's own, by class.

Every plot has a title and a description for those who do not see it; the page gives the same figures as a table.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from markupsafe import Markup

from auditor.reports.pages.number_format import format_number
from auditor.text_safety import escape_invisible

PLOT_WIDTH = 760
LABEL_WIDTH = 190
"""Width of the names to the left of an interval plot."""
ANNOTATION_WIDTH = 170
"""Width of the figures to its right."""
ROW_HEIGHT = 26
TOP_MARGIN = 10
AXIS_HEIGHT = 30
MAX_LABEL_LENGTH = 24
"""Letters of a name that fit to the left of an interval plot."""
MAX_TEXT_LENGTH = 26
SCATTER_SIZE = 260
SCATTER_MARGIN = 30


@dataclass(frozen=True, slots=True)
class Axis:
    """A linear axis.

    Attributes:
        reference: where a line marks what values are compared with, such as zero.
    """

    low: float
    high: float
    ticks: Sequence[float]
    label: str
    reference: float | None = None

    def position(self, value: float, start_px: float, width_px: float) -> float:
        """Position of a value; what lies outside is put on the edge."""
        clipped = min(max(value, self.low), self.high)
        return start_px + width_px * (clipped - self.low) / (self.high - self.low)


CORRELATION_AXIS = Axis(-1, 1, (-1, -0.5, 0, 0.5, 1), "Pearson r", 0.0)
R_DIFFERENCE_AXIS = Axis(-1, 1, (-1, -0.5, 0, 0.5, 1), "Δr", 0.0)
SHARE_AXIS = Axis(0, 1, (0, 0.25, 0.5, 0.75, 1), "")


@dataclass(frozen=True, slots=True)
class IntervalMark:
    """One row of an interval plot; without a value only its name and note are drawn.

    Attributes:
        inner: ends of a narrower interval, drawn thicker.
    """

    label: str
    value: float | None
    low: float | None
    high: float | None
    annotation: str
    inner_interval: tuple[float | None, float | None] = (None, None)


def error_axis(values: Iterable[float | None], label: str) -> Axis:
    """An axis from 0 to a round number above all values."""
    top = max((v for v in values if v is not None), default=0.0)
    high = next((h for h in (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.6) if h >= top), 2.0)
    return Axis(0, high, [high * i / 4 for i in range(5)], label)


def difference_axis(values: Iterable[float | None], label: str) -> Axis:
    """An axis around 0, to a round number beyond all values."""
    most = max((abs(v) for v in values if v is not None), default=0.0)
    high = next((h for h in (0.1, 0.2, 0.4, 0.6, 1.0) if h >= most), 2.0)
    return Axis(-high, high, [-high, -high / 2, 0.0, high / 2, high], label, 0.0)


def interval_plot(marks: Sequence[IntervalMark], axis: Axis, title: str, description: str) -> Markup:
    """A dot and its interval for each row, on one axis."""
    height = TOP_MARGIN + ROW_HEIGHT * len(marks) + AXIS_HEIGHT
    plot = PLOT_WIDTH - LABEL_WIDTH - ANNOTATION_WIDTH
    parts = [_draw_grid(axis, plot, height)]
    parts += [_draw_mark(mark, axis, plot, TOP_MARGIN + ROW_HEIGHT * (i + 0.5)) for i, mark in enumerate(marks)]
    return _draw_svg(PLOT_WIDTH, height, "interval", title, description, parts)


def _draw_grid(axis: Axis, plot_width: float, height: float) -> Markup:
    bottom = height - AXIS_HEIGHT
    parts = []
    for tick in axis.ticks:
        x = axis.position(tick, LABEL_WIDTH, plot_width)
        parts.append(_draw_line(x, TOP_MARGIN, x, bottom, "grid"))
        parts.append(_draw_text(x, bottom + 15, _format_tick(tick), "tick middle"))
    if axis.reference is not None:
        x = axis.position(axis.reference, LABEL_WIDTH, plot_width)
        parts.append(_draw_line(x, TOP_MARGIN - 4, x, bottom, "reference"))
    if axis.label:
        parts.append(_draw_text(LABEL_WIDTH + plot_width + 26, bottom + 15, axis.label, "tick"))
    return Markup("").join(parts)


def _draw_mark(mark: IntervalMark, axis: Axis, plot_width: float, y: float) -> Markup:
    parts = [
        _draw_text(LABEL_WIDTH - 14, y + 4, mark.label, "label end", MAX_LABEL_LENGTH),
        _draw_text(LABEL_WIDTH + plot_width + 14, y + 4, mark.annotation, "note"),
    ]
    for name, (low, high) in (("range", (mark.low, mark.high)), ("range inner", mark.inner_interval)):
        if low is not None and high is not None:
            parts.append(
                _draw_line(
                    axis.position(low, LABEL_WIDTH, plot_width),
                    y,
                    axis.position(high, LABEL_WIDTH, plot_width),
                    y,
                    name,
                )
            )
    if mark.value is not None:
        x = axis.position(mark.value, LABEL_WIDTH, plot_width)
        parts.append(
            Markup('<circle class="dot" cx="{}" cy="{}" r="4.5"/>').format(_format_coordinate(x), _format_coordinate(y))
        )
    return Markup("").join(parts)


def scatter_plot(points: Sequence[tuple[float, float, str]], title: str, description: str) -> Markup:
    """Model against people, both in [-1, 1]; on the diagonal they are the same.

    Args:
        points: people's score, the model's score, and what a tooltip says; empty for none.
    """
    size = SCATTER_SIZE - 2 * SCATTER_MARGIN

    def place(x: float, y: float) -> tuple[str, str]:
        return _format_coordinate(SCATTER_MARGIN + size * (x + 1) / 2), _format_coordinate(
            SCATTER_MARGIN + size * (1 - y) / 2
        )

    parts = []
    for tick in (-1.0, -0.5, 0.0, 0.5, 1.0):
        at, name = SCATTER_MARGIN + size * (tick + 1) / 2, "axis" if tick == 0 else "grid"
        parts += [
            _draw_line(at, SCATTER_MARGIN, at, SCATTER_MARGIN + size, name),
            _draw_line(SCATTER_MARGIN, SCATTER_SIZE - at, SCATTER_MARGIN + size, SCATTER_SIZE - at, name),
        ]
        if tick != 0.5 and tick != -0.5:
            parts.append(_draw_text(at, SCATTER_MARGIN + size + 16, _format_tick(tick), "tick middle"))
            parts.append(_draw_text(SCATTER_MARGIN - 6, SCATTER_SIZE - at + 4, _format_tick(tick), "tick end"))
    parts.append(_draw_line(SCATTER_MARGIN, SCATTER_MARGIN + size, SCATTER_MARGIN + size, SCATTER_MARGIN, "diagonal"))
    for x, y, tip in points:
        cx, cy = place(x, y)
        inner = Markup("><title>{}</title></circle>").format(escape_invisible(tip)) if tip else Markup("/>")
        parts.append(Markup('<circle cx="{}" cy="{}" r="3"').format(cx, cy) + inner)
    return _draw_svg(SCATTER_SIZE, SCATTER_SIZE, "scatter", title, description, parts)


class CallsAccuracyPoint(NamedTuple):
    """A point of a plot of calls against accuracy; rho is in [-1, 1]."""

    calls: float
    accuracy: float
    label: str


def calls_accuracy_plot(points: Sequence[CallsAccuracyPoint], accuracy_label: str, title: str) -> Markup:
    """Calls across, on a logarithmic axis, and accuracy up; every point bears its number in the list beside it."""
    left, plot, height = 2 * SCATTER_MARGIN, PLOT_WIDTH / 2 - 2 * SCATTER_MARGIN, SCATTER_SIZE
    most = max((dot.calls for dot in points), default=1.0)
    least = min((dot.calls for dot in points), default=1.0)
    low = min(0.0, *(dot.accuracy for dot in points)) if points else 0.0
    span = math.log(most / least) or 1.0
    parts = []
    for tick in (low, (low + 1) / 2, 1.0):
        y = TOP_MARGIN + (height - TOP_MARGIN - AXIS_HEIGHT) * (1 - (tick - low) / (1 - low))
        parts += [
            _draw_line(left, y, left + plot, y, "grid"),
            _draw_text(left - 6, y + 4, format_number(tick), "tick end"),
        ]
    for i, dot in enumerate(points):
        x = left + 10 + (plot - 20) * math.log(dot.calls / least) / span
        y = TOP_MARGIN + (height - TOP_MARGIN - AXIS_HEIGHT) * (1 - (dot.accuracy - low) / (1 - low))
        parts.append(
            Markup('<circle class="dot" cx="{}" cy="{}" r="4.5"/>').format(_format_coordinate(x), _format_coordinate(y))
        )
        parts.append(_draw_text(x, y - 8, str(i + 1), "tick middle"))
        told = f"{i + 1}  {dot.label}: {dot.calls:.0f} calls, {format_number(dot.accuracy)}"
        parts.append(_draw_untruncated_text(left + plot + 24, TOP_MARGIN + 12 + 18 * i, told))
    parts.append(
        _draw_untruncated_text(left, height - 8, f"{least:.0f} calls to {most:.0f}, logarithmic; up: {accuracy_label}")
    )
    said = "; ".join(f"{dot.label}: {dot.calls:.0f} calls, {format_number(dot.accuracy)}" for dot in points)
    return _draw_svg(PLOT_WIDTH, height, "interval calls", title, said, parts)


def _draw_untruncated_text(x: float, y: float, text: str) -> Markup:
    return Markup('<text class="note" x="{}" y="{}">{}</text>').format(
        _format_coordinate(x), _format_coordinate(y), escape_invisible(text)
    )


def stacked_bar(segments: Sequence[tuple[str, int]], title: str) -> Markup:
    """One bar, split by counts.

    Args:
        parts: class of the colour, and count.
    """
    total = sum(n for _, n in segments)
    drawn, x = [], 0.0
    for name, n in segments:
        width = PLOT_WIDTH * n / total if total else 0.0
        if width:
            drawn.append(
                Markup('<rect class="{}" x="{}" y="0" width="{}" height="14"/>').format(
                    name, _format_coordinate(x), _format_coordinate(width)
                )
            )
        x += width
    return _draw_svg(PLOT_WIDTH, 14, "bar", title, "", drawn)


def _draw_svg(
    width: float, height: float, css_class: str, title: str, description: str, elements: Iterable[Markup]
) -> Markup:
    return Markup('<svg class="{}" viewBox="0 0 {} {}" role="img"><title>{}</title><desc>{}</desc>{}</svg>').format(
        css_class,
        _format_coordinate(width),
        _format_coordinate(height),
        escape_invisible(title),
        escape_invisible(description),
        Markup("").join(elements),
    )


def _draw_line(x1: float, y1: float, x2: float, y2: float, css_class: str) -> Markup:
    return Markup('<line class="{}" x1="{}" y1="{}" x2="{}" y2="{}"/>').format(
        css_class, *map(_format_coordinate, (x1, y1, x2, y2))
    )


def _draw_text(x: float, y: float, text: str, css_class: str, max_length: int = MAX_TEXT_LENGTH) -> Markup:
    shown = escape_invisible(text)
    if len(shown) > max_length:
        whole, shown = shown, shown[: max_length - 1] + "…"
        tip = Markup("<title>{}</title>").format(whole)
    else:
        tip = Markup("")
    return Markup('<text class="{}" x="{}" y="{}">{}{}</text>').format(
        css_class, _format_coordinate(x), _format_coordinate(y), tip, shown
    )


def _format_coordinate(value: float) -> str:
    """A coordinate: short, and the same in every run."""
    return f"{value:.1f}".removesuffix(".0")


def _format_tick(value: float) -> str:
    return format_number(value, 0 if value == int(value) else 2)
