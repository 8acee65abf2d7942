"""Trade-off plot: accuracy against cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from auditor.reports.charts import theme
from auditor.reports.number_format import format_interval, format_number

PLOT_WIDTH_PX, PLOT_HEIGHT_PX = 760, 320
LEFT_PX, TOP_PX, RIGHT_PX, BOTTOM_PX = 62, 10, 12, 48
MAX_SERIES_WIDTH_PX = 170
"""Width of the names of series, to the right of the plot."""
SERIES_HEIGHT_PX, SWATCH_SIZE_PX = 20, 10
MIN_RADIUS_PX, MAX_RADIUS_PX = 4, 11
MAX_INTERVALS = 5
"""Number of intervals between ticks of an axis."""
_COUNT_LABEL = "replace(format(datum.value, ',.6~g'), regexp(',', 'g'), '\u202f')"


@dataclass(frozen=True, slots=True)
class TradeoffPoint:
    """One setting or method.

    Attributes:
        label: drawn beside the dot, such as the setting's value.
        series: dots of one series have one colour and are joined by a line, such as those of one model; empty for none.
        ci_low, ci_high: interval of the accuracy.
        spread: drawn as the size of the dot; None for the smallest.
    """

    label: str
    cost: float
    accuracy: float
    series: str = ""
    ci_low: float | None = None
    ci_high: float | None = None
    spread: float | None = None


@dataclass(frozen=True, slots=True)
class _AxisScale:
    """A scale from numbers to pixels."""

    low: float
    high: float
    ticks: Sequence[float]
    is_log: bool = False

    def share(self, value: float) -> float:
        """Position of a number between the ends, from 0 to 1."""
        transform: Callable[[float], float] = math.log if self.is_log else float
        return (transform(value) - transform(self.low)) / (transform(self.high) - transform(self.low))

    def encoding(self, field: str, **axis: object) -> dict[str, object]:
        """Encoding of a field of the data on this scale."""
        scale: dict[str, object] = {
            "type": "log" if self.is_log else "linear",
            "domain": [self.low, self.high],
            "nice": False,
        }
        ticks: dict[str, object] = {"values": list(self.ticks), "grid": True}
        return {"field": field, "type": "quantitative", "scale": {**scale, "zero": False}, "axis": {**ticks, **axis}}


def tradeoff_plot(
    points: Sequence[TradeoffPoint],
    *,
    cost_title: str,
    accuracy_title: str,
    log_cost: bool = False,
    joins_points: bool = True,
) -> theme.VegaLiteSpec:
    """Specify a plot of accuracy (up) against cost (right), or of any other two figures.

    Args:
        points: those of one series in the order in which the line joins them.
        log_cost: a logarithmic axis of cost.
        joins_points: whether a line joins the points of a series.

    Raises:
        ValueError: a cost on a logarithmic axis is not positive.
    """
    series = [name for name in dict.fromkeys(point.series for point in points) if name]
    names = [theme.truncate_to_width(theme.clean_text(name), MAX_SERIES_WIDTH_PX) for name in series]
    legend_width = round(max(map(theme.estimate_text_width, names))) + 44 if len(names) > 1 else 0
    width, height = PLOT_WIDTH_PX - LEFT_PX - RIGHT_PX - legend_width, PLOT_HEIGHT_PX - TOP_PX - BOTTOM_PX
    costs = [point.cost for point in points]
    if log_cost and min(costs, default=1) <= 0:
        raise ValueError("Costs on a logarithmic axis must be positive.")
    bounds = [x for p in points for x in (p.accuracy, p.ci_low, p.ci_high) if x is not None] or [0.0]
    scales = (_log_scale(costs) if log_cost else _linear_scale([0.0, *costs]), _linear_scale(bounds))
    rows = _rows(points, {name: theme.SERIES_COLORS[i % len(theme.SERIES_COLORS)] for i, name in enumerate(series)})
    axes = {
        "x": scales[0].encoding("cost", title=theme.clean_text(cost_title), titleY=38, labelExpr=_COUNT_LABEL),
        "y": scales[1].encoding("accuracy", title=theme.clean_text(accuracy_title), titleX=-46),
    }
    dots = [
        theme.Dot(
            scales[0].share(p.cost) * width,
            (1 - scales[1].share(p.accuracy)) * height,
            radius,
            theme.clean_text(p.label),
        )
        for p, radius in zip(points, _radii(points), strict=True)
    ]
    layers = [
        *_point_layers(axes)[0 if joins_points else 1 :],
        theme.text_layer(theme.place_labels(dots, width, height), align="left"),
    ]
    if legend_width:
        layers += _legend_layers(names, width + 24)
    padding = (LEFT_PX, TOP_PX, RIGHT_PX + legend_width, BOTTOM_PX)
    return theme.build_spec(layers, width=width, height=height, padding=padding, data={"values": rows})


def round_ticks(low: float, high: float) -> list[float]:
    """Choose at most six tick values from low to high, in steps of 1, 2 or 5 times a power of ten."""
    # The largest power of ten below a fifth of the span, times the first factor that suffices.
    power = 10.0 ** math.floor(math.log10((high - low) / MAX_INTERVALS))
    step = next(step for n in (1, 2, 5, 10) if (step := n * power) >= (high - low) / MAX_INTERVALS)
    return [round(i * step, 12) for i in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _linear_scale(values: Sequence[float]) -> _AxisScale:
    """A scale of these values, with a margin of 6% so that no dot lies on the frame; it starts at 0 if they do."""
    low, high = min(values), max(values)
    margin = 0.06 * (high - low) or 0.06 * abs(high) or 1.0
    low, high = (0.0 if low == 0 else low - margin), high + margin
    return _AxisScale(low, high, round_ticks(low, high))


def _log_scale(values: Sequence[float]) -> _AxisScale:
    """A logarithmic scale of these positive values, with ticks at 1, 2 and 5 times powers of ten."""
    low, high = min(values, default=1.0), max(values, default=1.0)
    margin = (high / low) ** 0.06 if high > low else 2.0
    low, high = low / margin, high * margin
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [n * 10.0**power for power in powers for n in (1, 2, 5) if low <= n * 10.0**power <= high]
    return _AxisScale(low, high, ticks, is_log=True)


def _radii(points: Sequence[TradeoffPoint]) -> list[float]:
    """Radius of each dot: the area grows with the spread."""
    largest = max((point.spread or 0.0 for point in points), default=0.0)
    if not largest:
        return [MIN_RADIUS_PX + 1.0] * len(points)
    growth = MAX_RADIUS_PX**2 - MIN_RADIUS_PX**2
    return [round(math.sqrt(MIN_RADIUS_PX**2 + growth * (p.spread or 0.0) / largest), 2) for p in points]


def _rows(points: Sequence[TradeoffPoint], colors: Mapping[str, str]) -> list[dict[str, object]]:
    """Data of the points, with the text alternative of each."""
    rows: list[dict[str, object]] = []
    for point, radius in zip(points, _radii(points), strict=True):
        name = ", ".join(theme.clean_text(text) for text in (point.series, point.label) if text)
        has_interval = point.ci_low is not None and point.ci_high is not None
        interval = f" ({format_interval(point.ci_low, point.ci_high)})" if has_interval else ""
        rows.append(
            {
                "series": theme.clean_text(point.series),
                "cost": point.cost,
                "accuracy": point.accuracy,
                "ci_low": point.ci_low,
                "ci_high": point.ci_high,
                "size": round(4 * radius**2, 1),
                "color": colors.get(point.series, theme.SERIES_COLORS[0]),
                "text": f"{name}: {format_number(point.accuracy)}{interval}",
            }
        )
    return rows


def _point_layers(axes: Mapping[str, Mapping[str, object]]) -> list[dict[str, object]]:
    """The lines that join each series, the intervals, and above them the dots."""
    color: dict[str, object] = {"field": "color", "type": "nominal", "scale": None}
    lines: dict[str, object] = {
        "transform": [{"filter": "datum.series"}],
        "mark": {"type": "line", "strokeWidth": 1.5, "opacity": 0.45, "aria": False},
        "encoding": {**axes, "stroke": color, "detail": {"field": "series"}, "order": {"value": None}},
    }
    intervals: dict[str, object] = {
        "transform": [{"filter": "isValid(datum.ci_low) && isValid(datum.ci_high)"}],
        "mark": {"type": "rule", "strokeWidth": 2, "opacity": 0.4, "strokeCap": "round"},
        "encoding": {**axes, "y": {**axes["y"], "field": "ci_low"}, "y2": {"field": "ci_high"}, "stroke": color},
    }
    dots: dict[str, object] = {
        "mark": {"type": "circle", "opacity": 1, "fillOpacity": 0.85, "stroke": theme.PAPER, "strokeWidth": 1},
        "encoding": {
            **axes,
            "fill": color,
            "size": {"field": "size", "type": "quantitative", "scale": None},
            "description": {"field": "text", "type": "nominal"},
        },
    }
    return [lines, intervals, dots]


def _legend_layers(names: Sequence[str], x: float) -> list[dict[str, object]]:
    """The names of the series with their colours, one below the other."""
    middles = [SERIES_HEIGHT_PX * (i + 0.5) for i in range(len(names))]
    swatches = [
        theme.Swatch(
            x, y - SWATCH_SIZE_PX / 2, SWATCH_SIZE_PX, SWATCH_SIZE_PX, theme.SERIES_COLORS[i % len(theme.SERIES_COLORS)]
        )
        for i, y in enumerate(middles)
    ]
    texts = [theme.LegendText(name, x + SWATCH_SIZE_PX + 6, y) for name, y in zip(names, middles, strict=True)]
    return [
        theme.swatch_layer(swatches, cornerRadius=SWATCH_SIZE_PX / 2),
        theme.text_layer(texts, align="left", fontSize=theme.FONT_SIZE_PX),
    ]
