"""Plots of opinions: people against a model, gaps between groups, and where naming a group moves answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor

from auditor.reports.charts import theme

PLOT_WIDTH_PX, NARROW_PLOT_WIDTH_PX = 760, 350
MAX_LABEL_WIDTH_PX, MAX_NARROW_LABEL_WIDTH_PX = 300, 130
RIDGE_HEIGHT_PX, RIDGE_GAP_PX = 34, 12
LEGEND_HEIGHT_PX, AXIS_HEIGHT_PX = 26, 22
MARGIN_PX = 14
LABEL_GAP_PX = 16
STEP_HEIGHT_PX = 26
GAP_PLOT_SIZE_PX = 224
MAX_GAP_POINTS = 1000
PEOPLE_COLOR, MODEL_COLOR = theme.SERIES_COLORS[0], theme.SERIES_COLORS[1]
_PIXELS: Mapping[str, object] = {"type": "quantitative", "scale": None, "axis": None}


@dataclass(frozen=True, slots=True)
class Ridge:
    """One row of a ridge plot: shares of answers in the order of the scale."""

    label: str
    people: Sequence[float]
    model: Sequence[float]


@dataclass(frozen=True, slots=True)
class Step:
    """Mean answers on the scale from 0 to 1: a model's for the country and for the group, and those of its people."""

    label: str
    before: float
    after: float
    people: float


def ridge_plot(ridges: Sequence[Ridge], points: Sequence[str], *, is_narrow: bool = False) -> theme.VegaLiteSpec:
    """Specify a plot of one row for each cell: people's shares as an area, and the model's as a line.

    Heights are comparable between all rows.

    Args:
        points: names of the answers, from the low end of the scale.
    """
    left = _label_width([ridge.label for ridge in ridges], is_narrow=is_narrow)
    width = _width(is_narrow) - left - MARGIN_PX
    largest = max(max(*ridge.people, *ridge.model) for ridge in ridges) or 1.0
    step = width / (len(points) - 1)
    areas, lines, labels = [], [], []
    for i, ridge in enumerate(ridges):
        base = i * (RIDGE_HEIGHT_PX + RIDGE_GAP_PX) + RIDGE_HEIGHT_PX
        for k, (of_people, of_model) in enumerate(zip(ridge.people, ridge.model, strict=True)):
            x = round(k * step, 1)
            areas.append({"row": i, "x": x, "y": _height(base, of_people / largest), "base": base})
            lines.append({"row": i, "x": x, "y": _height(base, of_model / largest)})
        labels.append(_row_label(ridge.label, left, base - RIDGE_HEIGHT_PX / 2, is_narrow=is_narrow))
    height = len(ridges) * (RIDGE_HEIGHT_PX + RIDGE_GAP_PX)
    ticks = [
        theme.LegendText(name, i * step, height + AXIS_HEIGHT_PX / 2)
        for i, name in enumerate(points)
        if i in (0, len(points) - 1)
    ]
    layers = [
        _shape_layer("area", areas, {"fill": PEOPLE_COLOR, "fillOpacity": 0.3}, y2={"field": "base"}),
        _shape_layer("line", lines, {"stroke": MODEL_COLOR, "strokeWidth": 2}),
        theme.text_layer(labels, align="right", fontSize=theme.FONT_SIZE_PX, fill=theme.INK),
        theme.text_layer(ticks, align="center"),
        *_legend_layers(),
    ]
    return theme.build_spec(
        layers, width=width, height=height, padding=(left, LEGEND_HEIGHT_PX + 6, MARGIN_PX, AXIS_HEIGHT_PX)
    )


def steering_plot(steps: Sequence[Step], ends: tuple[str, str], *, is_narrow: bool = False) -> theme.VegaLiteSpec:
    """Specify a plot of one row for each group: an arrow from the answers for the country to those for the group.

    Args:
        ends: meanings of 0 and of 1.
    """
    left = _label_width([step.label for step in steps], is_narrow=is_narrow)
    width = _width(is_narrow) - left - MARGIN_PX
    low, high = _find_range(steps)
    rows, labels = [], []
    for i, step in enumerate(steps):
        y = (i + 0.5) * STEP_HEIGHT_PX
        before, after, people = (
            round((value - low) / (high - low) * width, 1) for value in (step.before, step.after, step.people)
        )
        angle = 90 if after >= before else -90
        rows.append({"y": y, "before": before, "after": after, "people": people, "angle": angle})
        labels.append(_row_label(step.label, left, y, is_narrow=is_narrow))
    height = len(steps) * STEP_HEIGHT_PX
    y_axis = {"y": {"field": "y", **_PIXELS}}
    layers: list[dict[str, object]] = [
        {
            "data": {"values": [{"y": row["y"], "x": 0, "x2": width} for row in rows]},
            "mark": {"type": "rule", "stroke": theme.FAINT},
            "encoding": {**y_axis, "x": {"field": "x", **_PIXELS}, "x2": {"field": "x2"}},
        },
        {
            "data": {"values": rows},
            "mark": {"type": "rule", "stroke": MODEL_COLOR, "strokeWidth": 2},
            "encoding": {**y_axis, "x": {"field": "before", **_PIXELS}, "x2": {"field": "after"}},
        },
        _point_layer(rows, "people", shape="diamond", fill=PEOPLE_COLOR, size=70),
        _point_layer(
            rows, "after", shape="triangle", fill=MODEL_COLOR, size=60,
            angle={"field": "angle", "type": "quantitative", "scale": None},
        ),
        theme.text_layer(labels, align="right", fontSize=theme.FONT_SIZE_PX, fill=theme.INK),
        theme.text_layer([theme.LegendText(_name_end(low, ends), 0, height + AXIS_HEIGHT_PX / 2)], align="left"),
        theme.text_layer([theme.LegendText(_name_end(high, ends), width, height + AXIS_HEIGHT_PX / 2)], align="right"),
        *_legend_layers(),
    ]  # fmt: skip
    return theme.build_spec(
        layers, width=width, height=height, padding=(left, LEGEND_HEIGHT_PX + 6, MARGIN_PX, AXIS_HEIGHT_PX)
    )


def gap_plot(people: Sequence[float], model: Sequence[float]) -> theme.VegaLiteSpec:
    """Specify a plot of the model's gap between two groups (up) against people's (right), with the line of slope 1.

    Of many cells at most `MAX_GAP_POINTS`, at equal distances in their order, are drawn.
    """
    largest = max((abs(gap) for gap in (*people, *model)), default=0.0)
    bound = next((limit for limit in (0.05, 0.1, 0.2, 0.4, 0.6, 0.8) if limit >= largest), 1.0)
    every = -(-len(people) // MAX_GAP_POINTS) or 1
    values = [{"people": a, "model": b} for a, b in zip(people[::every], model[::every], strict=True)]
    axis: dict[str, object] = {
        "values": [-bound, -bound / 2, 0, bound / 2, bound],
        "grid": True,
        "labelExpr": f"abs(datum.value) === {bound / 2} ? '' : datum.label",
        "gridColor": {"condition": {"test": "datum.value === 0", "value": theme.RULE}, "value": theme.FAINT},
    }
    axes = {
        channel: {
            "field": field,
            "type": "quantitative",
            "scale": {"domain": [-bound, bound], "nice": False},
            "axis": {**axis, **title},
        }
        for channel, field, title in (
            ("x", "people", {"title": "People’s gap", "titleY": 34}),
            ("y", "model", {"title": "Model’s gap", "titleX": -40}),
        )
    }
    ends = [{"people": -bound, "model": -bound}, {"people": bound, "model": bound}]
    size, opacity = (36, 0.55) if len(values) <= 300 else (16, 0.4)
    dot = {"type": "circle", "fill": theme.ACCENT, "size": size, "opacity": 1, "fillOpacity": opacity, "aria": False}
    layers: list[dict[str, object]] = [
        {"data": {"values": ends}, "mark": theme.DIAGONAL_MARK, "encoding": axes},
        {"data": {"values": values}, "mark": dot, "encoding": axes},
    ]
    return theme.build_spec(layers, width=GAP_PLOT_SIZE_PX, height=GAP_PLOT_SIZE_PX, padding=(56, 8, 14, 44))


def _width(is_narrow: bool) -> int:
    return NARROW_PLOT_WIDTH_PX if is_narrow else PLOT_WIDTH_PX


def _label_width(labels: Sequence[str], *, is_narrow: bool) -> int:
    """Space for the labels at the left, in pixels."""
    largest = MAX_NARROW_LABEL_WIDTH_PX if is_narrow else MAX_LABEL_WIDTH_PX
    return (
        ceil(min(largest, max(theme.estimate_text_width(theme.clean_text(label)) for label in labels))) + LABEL_GAP_PX
    )


def _row_label(label: str, left: int, y: float, *, is_narrow: bool) -> theme.LegendText:
    """The label of a row, cut to the space at the left."""
    largest = MAX_NARROW_LABEL_WIDTH_PX if is_narrow else MAX_LABEL_WIDTH_PX
    return theme.LegendText(theme.truncate_to_width(theme.clean_text(label), min(largest, left - LABEL_GAP_PX)), -10, y)


def _height(base: float, share: float) -> float:
    return round(base - share * RIDGE_HEIGHT_PX, 1)


def _find_range(steps: Sequence[Step]) -> tuple[float, float]:
    """The part of the scale that holds all answers, in tenths."""
    values = [value for step in steps for value in (step.before, step.after, step.people)]
    low, high = floor(min(values) * 10) / 10, ceil(max(values) * 10) / 10
    return (low, high) if high > low else (low, low + 0.1)


def _name_end(value: float, ends: tuple[str, str]) -> str:
    """The end of a plot's axis: the meaning of an end of the scale, or the share of the scale."""
    if value <= 0:
        return theme.clean_text(ends[0])
    return theme.clean_text(ends[1]) if value >= 1 else f"{value:.0%} of the scale"


def _shape_layer(
    kind: str, values: Sequence[Mapping[str, object]], style: Mapping[str, object], **encoding: object
) -> dict[str, object]:
    """A layer with one area or line for each row, in pixels."""
    return {
        "data": {"values": list(values)},
        "mark": {"type": kind, "aria": False, "interpolate": "monotone", **style},
        "encoding": {
            "x": {"field": "x", **_PIXELS},
            "y": {"field": "y", **_PIXELS},
            "detail": {"field": "row"},
            **encoding,
        },
    }


def _point_layer(
    rows: Sequence[Mapping[str, object]], field: str, *, shape: str, fill: str, size: int, **encoding: object
) -> dict[str, object]:
    """A layer of symbols at a field of each row."""
    return {
        "data": {"values": list(rows)},
        "mark": {
            "type": "point",
            "filled": True,
            "shape": shape,
            "fill": fill,
            "size": size,
            "opacity": 1,
            "aria": False,
        },
        "encoding": {"x": {"field": field, **_PIXELS}, "y": {"field": "y", **_PIXELS}, **encoding},
    }


def _legend_layers() -> Iterator[dict[str, object]]:
    """Yield the legend above the plot: people, and the model."""
    y, x_model = -LEGEND_HEIGHT_PX + 8, 34 + theme.estimate_text_width("people", theme.FONT_SIZE_PX)
    yield theme.swatch_layer(
        [theme.Swatch(0, y - 5, 12, 10, PEOPLE_COLOR, 0.6), theme.Swatch(x_model, y - 1.5, 16, 3, MODEL_COLOR)]
    )
    yield theme.text_layer(
        [theme.LegendText("people", 18, y), theme.LegendText("model", x_model + 22, y)], align="left", fill=theme.MUTED
    )
