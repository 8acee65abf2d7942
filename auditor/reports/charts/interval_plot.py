"""Interval plot (forest plot): one row for each estimate, with its 95% confidence interval."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from auditor.reports.charts import theme
from auditor.reports.number_format import format_interval, format_number

PLOT_WIDTH_PX = 760
NARROW_PLOT_WIDTH_PX = 350
"""Width of the plot on a phone, with its texts in full size."""
ROW_HEIGHT_PX, TALL_ROW_HEIGHT_PX = 26, 42
LABEL_SHIFT_PX = -16
"""Height of a row whose label stands above its interval, and how far above."""
TOP_PX = 8
AXIS_HEIGHT_PX, AXIS_TITLE_HEIGHT_PX, TITLE_Y_PX = 24, 20, 37
MIN_LABEL_WIDTH_PX, MAX_LABEL_WIDTH_PX, MAX_NARROW_LABEL_WIDTH_PX = 60, 250, 100
MAX_NOTE_WIDTH_PX, MAX_NARROW_NOTE_WIDTH_PX = 230, 110
COLUMN_GAP_PX = 14
"""Space between the plot and the texts to its left and right."""
VALUE_WIDTH_PX, INTERVAL_GAP_PX = 38, 7
"""Width of the values to the right of the plot, and their distance from their intervals."""


@dataclass(frozen=True, slots=True)
class Axis:
    """The horizontal axis of an interval plot.

    Attributes:
        title: what is shown, with its unit or direction; empty for none.
        reference: position of the reference line, such as zero; None for no line.
        is_title_left: whether the title begins at the left end, not in the middle.
    """

    low: float
    high: float
    ticks: Sequence[float]
    title: str
    reference: float | None = None
    is_title_left: bool = False


CORRELATION_AXIS = Axis(-1, 1, (-1, -0.5, 0, 0.5, 1), "Pearson r (higher is better)", 0.0)
CORRELATION_DIFFERENCE_AXIS = Axis(-1, 1, (-1, -0.5, 0, 0.5, 1), "Difference in r", 0.0)
SHARE_AXIS = Axis(0, 1, (0, 0.25, 0.5, 0.75, 1), "")


@dataclass(frozen=True, slots=True)
class IntervalRow:
    """One row of an interval plot; without a value only its label and annotation are drawn.

    Attributes:
        annotation: text to the right; by default the value with its interval, or "not available".
    """

    label: str
    value: float | None
    ci_low: float | None = None
    ci_high: float | None = None
    annotation: str | None = None


def error_axis(values: Iterable[float | None], title: str) -> Axis:
    """Create an axis from 0 to a round number that is at least the largest value."""
    largest = max((value for value in values if value is not None), default=0.0)
    high = next((bound for bound in (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.6) if bound >= largest), 2.0)
    return Axis(0, high, [round(high * i / 4, 3) for i in range(5)], title)


def difference_axis(values: Iterable[float | None], title: str) -> Axis:
    """Create an axis symmetric around 0, to a round number that is at least the largest absolute value."""
    largest = max((abs(value) for value in values if value is not None), default=0.0)
    high = next((bound for bound in (0.1, 0.2, 0.4, 0.6, 1.0) if bound >= largest), 2.0)
    return Axis(-high, high, [-high, -high / 2, 0.0, high / 2, high], title, 0.0)


def interval_plot(rows: Sequence[IntervalRow], axis: Axis, *, is_narrow: bool = False) -> theme.VegaLiteSpec:
    """Specify a plot with a dot, an interval and an annotation for each row, in the order given.

    Values outside the axis are drawn at its end. If a label is too long for a column, all stand above their rows.

    Args:
        is_narrow: for screens of a phone, with fewer ticks and shorter labels.
    """
    if is_narrow:
        axis = replace(axis, ticks=[axis.ticks[0], axis.ticks[len(axis.ticks) // 2], axis.ticks[-1]])
    labels = [theme.clean_text(row.label) for row in rows]
    max_note_width = MAX_NARROW_NOTE_WIDTH_PX if is_narrow else MAX_NOTE_WIDTH_PX
    annotations = [_format_annotation(row, max_note_width) for row in rows]
    widest_label = max((theme.estimate_text_width(label, is_bold=True) for label in labels), default=0.0)
    is_above = widest_label > (MAX_NARROW_LABEL_WIDTH_PX if is_narrow else MAX_LABEL_WIDTH_PX)
    axis = replace(axis, is_title_left=is_above)
    plot_width = NARROW_PLOT_WIDTH_PX if is_narrow else PLOT_WIDTH_PX
    max_label_width = plot_width if is_above else math.ceil(max(widest_label, MIN_LABEL_WIDTH_PX))
    left = COLUMN_GAP_PX + (0 if is_above else max_label_width)
    intervals_width = max((theme.estimate_text_width(interval) for _, interval, _ in annotations), default=0)
    notes_width = max((theme.estimate_text_width(note) for _, _, note in annotations), default=0)
    right = COLUMN_GAP_PX + math.ceil(
        max(VALUE_WIDTH_PX + (INTERVAL_GAP_PX + intervals_width if intervals_width else 0), notes_width)
    )
    width = plot_width - left - right
    values = [
        {
            "row": i,
            "label": (visible_label := theme.truncate_to_width(label, max_label_width, is_bold=True)),
            "full_label": label if visible_label != label else "",
            **{name: getattr(row, name) for name in ("value", "ci_low", "ci_high")},
            **dict(zip(("number", "interval", "note"), annotation, strict=True)),
        }
        for i, (row, label, annotation) in enumerate(zip(rows, labels, annotations, strict=True))
    ]
    return theme.build_spec(
        [*_reference_layers(axis), *_interval_layers(axis), *_text_layers(width, is_above=is_above)],
        width=width,
        height=(TALL_ROW_HEIGHT_PX if is_above else ROW_HEIGHT_PX) * max(len(rows), 1),
        padding=(left, TOP_PX, right, AXIS_HEIGHT_PX + (AXIS_TITLE_HEIGHT_PX if axis.title else 0)),
        data={"values": values},
    )


def _format_annotation(row: IntervalRow, max_note_width: float) -> tuple[str, str, str]:
    """Format the text to the right of a row: number and interval, or a note in place of both."""
    if row.annotation is not None or row.value is None:
        note = "not available" if row.annotation is None else theme.clean_text(row.annotation)
        return "", "", theme.truncate_to_width(note, max_note_width)
    has_interval = row.ci_low is not None and row.ci_high is not None
    interval = f"({format_interval(row.ci_low, row.ci_high)})" if has_interval else ""
    return format_number(row.value), interval, ""


def _x_encoding(axis: Axis) -> dict[str, object]:
    """Encoding of values on the horizontal axis."""
    return {
        "type": "quantitative",
        "scale": {"domain": [axis.low, axis.high], "clamp": True, "nice": False, "zero": False},
        "axis": {
            "values": list(axis.ticks),
            "title": theme.clean_text(axis.title) or None,
            "titleY": TITLE_Y_PX,
            "titleAnchor": "start" if axis.is_title_left else "middle",
            "grid": True,
        },
    }


_Y: Mapping[str, object] = {"field": "row", "type": "ordinal", "axis": None, "scale": {"padding": 0}}


def _reference_layers(axis: Axis) -> list[dict[str, object]]:
    """The reference line, if the axis has one."""
    if axis.reference is None:
        return []
    mark = {"type": "rule", "stroke": theme.INK, "strokeDash": [2, 3]}
    return [{"data": {"values": [{}]}, "mark": mark, "encoding": {"x": {"datum": axis.reference, **_x_encoding(axis)}}}]


def _interval_layers(axis: Axis) -> list[dict[str, object]]:
    """The intervals and, above them, the dots."""
    line = {"type": "rule", "stroke": theme.ACCENT, "strokeCap": "round", "strokeWidth": 2.5, "opacity": 0.6}
    interval_layer: dict[str, object] = {
        "transform": [{"filter": "isValid(datum.ci_low) && isValid(datum.ci_high)"}],
        "mark": line,
        "encoding": {"x": {"field": "ci_low", **_x_encoding(axis)}, "x2": {"field": "ci_high"}, "y": _Y},
    }
    dot = {
        "type": "circle",
        "size": 64,
        "fill": theme.ACCENT,
        "fillOpacity": 1,
        "stroke": theme.PAPER,
        "strokeWidth": 1.5,
    }
    dot_layer: dict[str, object] = {
        "transform": [{"filter": "isValid(datum.value)"}],
        "mark": {**dot, "opacity": 1, "aria": False},
        "encoding": {"x": {"field": "value", **_x_encoding(axis)}, "y": _Y},
    }
    return [interval_layer, dot_layer]


def _text_layers(width: float, *, is_above: bool) -> list[dict[str, object]]:
    """Labels to the left of the plot, or above their rows; annotations to the right."""

    def column(field: str, x: float, description: str = "", **mark: object) -> dict[str, object]:
        """The texts of one field in a column at x pixels, with the text alternative in another field."""
        text: dict[str, object] = {"field": field, "type": "nominal"}
        alternative: dict[str, object] = (
            {"description": {"field": description, "type": "nominal"}} if description else {}
        )
        return {
            "transform": [{"filter": f"datum.{field}"}],
            "mark": {"type": "text", **mark},
            "encoding": {"x": {"value": x}, "y": _Y, "text": text, **alternative},
        }

    start = width + COLUMN_GAP_PX
    place = {"align": "left", "dy": LABEL_SHIFT_PX + theme.TEXT_SHIFT_PX} if is_above else {"align": "right"}
    return [
        column("label", -COLUMN_GAP_PX, "full_label", fontWeight=600, aria=True, **place),
        column("number", start + VALUE_WIDTH_PX, align="right"),
        column("interval", start + VALUE_WIDTH_PX + INTERVAL_GAP_PX, align="left", fill=theme.MUTED),
        column("note", start, align="left", fill=theme.MUTED),
    ]
