"""Draw plots as inline SVG. CSS classes refer to the colours and fonts of the page's stylesheet.

Every plot has a title and a description for screen readers; the page has the same figures as a table.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from markupsafe import Markup

from auditor.reports.number_format import format_number
from auditor.text_safety import escape_invisible

PLOT_WIDTH = 760
LABEL_WIDTH = 190
"""Width of the row labels to the left of an interval plot."""
ANNOTATION_WIDTH = 170
"""Width of the figures to the right of an interval plot."""
ROW_HEIGHT = 26
TOP_MARGIN = 10
AXIS_HEIGHT = 30
MAX_LABEL_LENGTH = 24
"""Characters of a row label that fit to the left of an interval plot."""
MAX_TEXT_LENGTH = 26
SCATTER_SIZE = 260
SCATTER_MARGIN = 30


@dataclass(frozen=True, slots=True)
class Axis:
    """A linear axis.

    Attributes:
        reference: position of the reference line, such as zero; None for no line.
    """

    low: float
    high: float
    ticks: Sequence[float]
    label: str
    reference: float | None = None

    def position(self, value: float, start_px: float, width_px: float) -> float:
        """Position of a value in pixels, on an axis from start_px of length width_px; values outside are clipped."""
        clipped = min(max(value, self.low), self.high)
        return start_px + width_px * (clipped - self.low) / (self.high - self.low)


CORRELATION_AXIS = Axis(-1, 1, (-1, -0.5, 0, 0.5, 1), "Pearson r", 0.0)
R_DIFFERENCE_AXIS = Axis(-1, 1, (-1, -0.5, 0, 0.5, 1), "Δr", 0.0)
SHARE_AXIS = Axis(0, 1, (0, 0.25, 0.5, 0.75, 1), "")


@dataclass(frozen=True, slots=True)
class IntervalMark:
    """One row of an interval plot; without a value only its label and annotation are drawn.

    Attributes:
        inner_interval: a second interval, drawn thicker.
    """

    label: str
    value: float | None
    low: float | None
    high: float | None
    annotation: str
    inner_interval: tuple[float | None, float | None] = (None, None)


def error_axis(values: Iterable[float | None], label: str) -> Axis:
    """Create an axis from 0 to a round number of at least the largest value."""
    largest = max((v for v in values if v is not None), default=0.0)
    high = next((h for h in (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.6) if h >= largest), 2.0)
    return Axis(0, high, [high * i / 4 for i in range(5)], label)


def difference_axis(values: Iterable[float | None], label: str) -> Axis:
    """Create an axis symmetric around 0, to a round number of at least the largest absolute value."""
    largest_magnitude = max((abs(v) for v in values if v is not None), default=0.0)
    high = next((h for h in (0.1, 0.2, 0.4, 0.6, 1.0) if h >= largest_magnitude), 2.0)
    return Axis(-high, high, [-high, -high / 2, 0.0, high / 2, high], label, 0.0)


def interval_plot(marks: Sequence[IntervalMark], axis: Axis, title: str, description: str) -> Markup:
    """Draw each mark as a row: its label, a dot with its interval, and its annotation."""
    height = TOP_MARGIN + ROW_HEIGHT * len(marks) + AXIS_HEIGHT
    plot_width = PLOT_WIDTH - LABEL_WIDTH - ANNOTATION_WIDTH
    elements = [_draw_grid(axis, plot_width, height)]
    elements += [
        _draw_mark(mark, axis, plot_width, TOP_MARGIN + ROW_HEIGHT * (i + 0.5)) for i, mark in enumerate(marks)
    ]
    return _draw_svg(PLOT_WIDTH, height, "interval", title, description, elements)


def _draw_grid(axis: Axis, plot_width: float, height: float) -> Markup:
    """Draw an axis: grid lines, tick labels, reference line and the axis' label."""
    bottom = height - AXIS_HEIGHT
    elements = []
    for tick in axis.ticks:
        x = axis.position(tick, LABEL_WIDTH, plot_width)
        elements.append(_draw_line(x, TOP_MARGIN, x, bottom, "grid"))
        elements.append(_draw_text(x, bottom + 15, _format_tick(tick), "tick middle"))
    if axis.reference is not None:
        x = axis.position(axis.reference, LABEL_WIDTH, plot_width)
        elements.append(_draw_line(x, TOP_MARGIN - 4, x, bottom, "reference"))
    if axis.label:
        elements.append(_draw_text(LABEL_WIDTH + plot_width + 26, bottom + 15, axis.label, "tick"))
    return Markup("").join(elements)


def _draw_mark(mark: IntervalMark, axis: Axis, plot_width: float, y: float) -> Markup:
    """Draw one row of an interval plot at height y."""
    elements = [
        _draw_text(LABEL_WIDTH - 14, y + 4, mark.label, "label end", MAX_LABEL_LENGTH),
        _draw_text(LABEL_WIDTH + plot_width + 14, y + 4, mark.annotation, "note"),
    ]
    for css_class, (low, high) in (("range", (mark.low, mark.high)), ("range inner", mark.inner_interval)):
        if low is not None and high is not None:
            elements.append(
                _draw_line(
                    axis.position(low, LABEL_WIDTH, plot_width),
                    y,
                    axis.position(high, LABEL_WIDTH, plot_width),
                    y,
                    css_class,
                )
            )
    if mark.value is not None:
        x = axis.position(mark.value, LABEL_WIDTH, plot_width)
        elements.append(
            Markup('<circle class="dot" cx="{}" cy="{}" r="4.5"/>').format(_format_coordinate(x), _format_coordinate(y))
        )
    return Markup("").join(elements)


def scatter_plot(points: Sequence[tuple[float, float, str]], title: str, description: str) -> Markup:
    """Draw the model's scores (y) against people's (x), both in [-1, 1], with the diagonal of equal scores.

    Args:
        points: people's score, the model's score, and a tooltip; an empty tooltip is left out.
    """
    plot_size = SCATTER_SIZE - 2 * SCATTER_MARGIN

    def to_pixels(x: float, y: float) -> tuple[str, str]:
        """Position of a pair of scores, formatted in pixels; y points up."""
        return _format_coordinate(SCATTER_MARGIN + plot_size * (x + 1) / 2), _format_coordinate(
            SCATTER_MARGIN + plot_size * (1 - y) / 2
        )

    elements = []
    for tick in (-1.0, -0.5, 0.0, 0.5, 1.0):
        position, css_class = SCATTER_MARGIN + plot_size * (tick + 1) / 2, "axis" if tick == 0 else "grid"
        elements += [
            _draw_line(position, SCATTER_MARGIN, position, SCATTER_MARGIN + plot_size, css_class),
            _draw_line(
                SCATTER_MARGIN, SCATTER_SIZE - position, SCATTER_MARGIN + plot_size, SCATTER_SIZE - position, css_class
            ),
        ]
        if tick != 0.5 and tick != -0.5:
            elements.append(_draw_text(position, SCATTER_MARGIN + plot_size + 16, _format_tick(tick), "tick middle"))
            elements.append(_draw_text(SCATTER_MARGIN - 6, SCATTER_SIZE - position + 4, _format_tick(tick), "tick end"))
    elements.append(
        _draw_line(SCATTER_MARGIN, SCATTER_MARGIN + plot_size, SCATTER_MARGIN + plot_size, SCATTER_MARGIN, "diagonal")
    )
    for x, y, tooltip in points:
        cx, cy = to_pixels(x, y)
        circle_end = (
            Markup("><title>{}</title></circle>").format(escape_invisible(tooltip)) if tooltip else Markup("/>")
        )
        elements.append(Markup('<circle cx="{}" cy="{}" r="3"').format(cx, cy) + circle_end)
    return _draw_svg(SCATTER_SIZE, SCATTER_SIZE, "scatter", title, description, elements)


class CallsAccuracyPoint(NamedTuple):
    """One point of a plot of accuracy against calls; accuracy is a correlation in [-1, 1]."""

    calls: float
    accuracy: float
    label: str


def calls_accuracy_plot(points: Sequence[CallsAccuracyPoint], accuracy_label: str, title: str) -> Markup:
    """Draw accuracy (y) against calls (x, logarithmic); points are numbered, with a legend to the right."""
    left_px, plot_width, height = 2 * SCATTER_MARGIN, PLOT_WIDTH / 2 - 2 * SCATTER_MARGIN, SCATTER_SIZE
    max_calls = max((point.calls for point in points), default=1.0)
    min_calls = min((point.calls for point in points), default=1.0)
    min_accuracy = min(0.0, *(point.accuracy for point in points)) if points else 0.0
    log_span = math.log(max_calls / min_calls) or 1.0
    elements = []
    for tick in (min_accuracy, (min_accuracy + 1) / 2, 1.0):
        y = TOP_MARGIN + (height - TOP_MARGIN - AXIS_HEIGHT) * (1 - (tick - min_accuracy) / (1 - min_accuracy))
        elements += [
            _draw_line(left_px, y, left_px + plot_width, y, "grid"),
            _draw_text(left_px - 6, y + 4, format_number(tick), "tick end"),
        ]
    for i, point in enumerate(points):
        x = left_px + 10 + (plot_width - 20) * math.log(point.calls / min_calls) / log_span
        y = TOP_MARGIN + (height - TOP_MARGIN - AXIS_HEIGHT) * (
            1 - (point.accuracy - min_accuracy) / (1 - min_accuracy)
        )
        elements.append(
            Markup('<circle class="dot" cx="{}" cy="{}" r="4.5"/>').format(_format_coordinate(x), _format_coordinate(y))
        )
        elements.append(_draw_text(x, y - 8, str(i + 1), "tick middle"))
        legend_line = f"{i + 1}  {point.label}: {point.calls:.0f} calls, {format_number(point.accuracy)}"
        elements.append(_draw_untruncated_text(left_px + plot_width + 24, TOP_MARGIN + 12 + 18 * i, legend_line))
    elements.append(
        _draw_untruncated_text(
            left_px, height - 8, f"{min_calls:.0f} calls to {max_calls:.0f}, logarithmic; up: {accuracy_label}"
        )
    )
    description = "; ".join(
        f"{point.label}: {point.calls:.0f} calls, {format_number(point.accuracy)}" for point in points
    )
    return _draw_svg(PLOT_WIDTH, height, "interval calls", title, description, elements)


def _draw_untruncated_text(x: float, y: float, text: str) -> Markup:
    """Draw a text that is never cut off, with its baseline at height y."""
    return Markup('<text class="note" x="{}" y="{}">{}</text>').format(
        _format_coordinate(x), _format_coordinate(y), escape_invisible(text)
    )


def stacked_bar(segments: Sequence[tuple[str, int]], title: str) -> Markup:
    """Draw one bar, split in proportion to counts.

    Args:
        segments: CSS class and count of each segment.
    """
    total = sum(n for _, n in segments)
    rectangles, x = [], 0.0
    for css_class, n in segments:
        width = PLOT_WIDTH * n / total if total else 0.0
        if width:
            rectangles.append(
                Markup('<rect class="{}" x="{}" y="0" width="{}" height="14"/>').format(
                    css_class, _format_coordinate(x), _format_coordinate(width)
                )
            )
        x += width
    return _draw_svg(PLOT_WIDTH, 14, "bar", title, "", rectangles)


def _draw_svg(
    width: float, height: float, css_class: str, title: str, description: str, elements: Iterable[Markup]
) -> Markup:
    """Wrap drawn elements in an <svg> of a size in pixels, with a title and a description for screen readers."""
    return Markup('<svg class="{}" viewBox="0 0 {} {}" role="img"><title>{}</title><desc>{}</desc>{}</svg>').format(
        css_class,
        _format_coordinate(width),
        _format_coordinate(height),
        escape_invisible(title),
        escape_invisible(description),
        Markup("").join(elements),
    )


def _draw_line(x1: float, y1: float, x2: float, y2: float, css_class: str) -> Markup:
    """Draw a line between two points, in pixels from the upper left corner."""
    return Markup('<line class="{}" x1="{}" y1="{}" x2="{}" y2="{}"/>').format(
        css_class, *map(_format_coordinate, (x1, y1, x2, y2))
    )


def _draw_text(x: float, y: float, text: str, css_class: str, max_length: int = MAX_TEXT_LENGTH) -> Markup:
    """Draw a text; a longer one than `max_length` is cut off and gets a tooltip with the full text."""
    visible_text = escape_invisible(text)
    if len(visible_text) > max_length:
        full_text, visible_text = visible_text, visible_text[: max_length - 1] + "…"
        tooltip = Markup("<title>{}</title>").format(full_text)
    else:
        tooltip = Markup("")
    return Markup('<text class="{}" x="{}" y="{}">{}{}</text>').format(
        css_class, _format_coordinate(x), _format_coordinate(y), tooltip, visible_text
    )


def _format_coordinate(value: float) -> str:
    """Format a coordinate with at most one decimal, so that equal plots give equal text."""
    return f"{value:.1f}".removesuffix(".0")


def _format_tick(value: float) -> str:
    """Format a tick's value: without decimals for a whole number, else with two."""
    return format_number(value, 0 if value == int(value) else 2)
