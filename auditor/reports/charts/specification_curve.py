"""Specification curves: the error of each model in every design, sorted, with the choices of the design below.

All positions are pixels from the upper left corner between the axes, since each model has an order of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from auditor.reports.charts import theme
from auditor.reports.charts.interval_plot import NARROW_PLOT_WIDTH_PX, PLOT_WIDTH_PX
from auditor.reports.charts.tradeoff_plot import round_ticks
from auditor.reports.number_format import format_interval, format_number

LEFT_PX, NARROW_LEFT_PX = 128, 92
KEY_WIDTH_PX = 250
TITLE_HEIGHT_PX, CURVE_HEIGHT_PX, ROW_HEIGHT_PX, GAP_PX = 22, 96, 16, 20
SWATCH_SIZE_PX, TEXT_GAP_PX = 9, 5
EDGE_PX = 4
_PIXELS = {"type": "quantitative", "scale": None, "axis": None}


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """One design of a model.

    Attributes:
        levels: index of the level of each factor; 0 is the level of the audit.
        is_audit: whether it is the audit's design.
    """

    name: str
    value: float
    ci_low: float | None
    ci_high: float | None
    levels: tuple[int, ...]
    is_audit: bool = False


@dataclass(frozen=True, slots=True)
class Curve:
    """The designs of one model."""

    model: str
    points: Sequence[CurvePoint]


@dataclass(frozen=True, slots=True)
class _Layout:
    """Sizes in pixels.

    Attributes:
        width: of the designs; left: of the names of factors.
        n_factors: rows below each curve.
        low, high: ends of the axis of errors.
    """

    width: float
    left: float
    n_factors: int
    low: float
    high: float
    is_narrow: bool
    n_curves: int

    @property
    def panel_height(self) -> float:
        """Height of one model."""
        return TITLE_HEIGHT_PX + CURVE_HEIGHT_PX + EDGE_PX + ROW_HEIGHT_PX * self.n_factors + GAP_PX

    def y(self, panel: int, value: float) -> float:
        """Position of an error."""
        share = (self.high - min(max(value, self.low), self.high)) / (self.high - self.low)
        return round(panel * self.panel_height + TITLE_HEIGHT_PX + share * CURVE_HEIGHT_PX, 2)

    def row_y(self, panel: int, row: int) -> float:
        """Middle of a factor's row."""
        top = panel * self.panel_height + TITLE_HEIGHT_PX + CURVE_HEIGHT_PX + EDGE_PX
        return top + ROW_HEIGHT_PX * (row + 0.5)

    def key_y(self, row: int) -> float:
        """Middle of a factor's row in a key below all curves."""
        return self.n_curves * self.panel_height + ROW_HEIGHT_PX * (row + 0.5)


def specification_curves(
    curves: Sequence[Curve], factors: Sequence[tuple[str, Sequence[str]]], *, is_narrow: bool = False
) -> theme.VegaLiteSpec:
    """Specify the curves of all models, one below the other, on one axis of errors.

    Args:
        curves: of at least one model, each with at least one point.
        factors: name and names of levels; the first level is the audit's.
        is_narrow: for screens of a phone: the key of levels is below the curves instead of beside each.
    """
    bounds = [x for curve in curves for p in curve.points for x in (p.value, p.ci_low, p.ci_high) if x is not None]
    margin = 0.04 * (max(bounds) - min(bounds)) or 0.02
    left = NARROW_LEFT_PX if is_narrow else LEFT_PX
    width = (NARROW_PLOT_WIDTH_PX if is_narrow else PLOT_WIDTH_PX - KEY_WIDTH_PX) - left - EDGE_PX
    ends = (max(0.0, min(bounds) - margin), max(bounds) + margin)
    layout = _Layout(width, left, len(factors), *ends, is_narrow, len(curves))
    key = list(_place_key(layout, factors, len(curves)))
    return theme.build_spec(
        [
            *_grid_layers(layout, len(curves)),
            theme.swatch_layer([*_place_cells(layout, curves), *(swatch for swatch, _ in key)], cornerRadius=2),
            *_point_layers(layout, curves),
            theme.text_layer(_place_titles(layout, curves), align="left", fontWeight=600, fill=theme.INK),
            theme.text_layer(_place_names(layout, factors, len(curves)), align="right"),
            theme.text_layer([text for _, text in key], align="left"),
        ],
        width=width,
        height=math.ceil(len(curves) * layout.panel_height + (ROW_HEIGHT_PX * len(factors) if is_narrow else 0)),
        padding=(left, 0, EDGE_PX if is_narrow else KEY_WIDTH_PX + EDGE_PX, EDGE_PX),
    )


def _x(layout: _Layout, i: int, n: int) -> float:
    """Middle of a design's column."""
    return round(layout.width * (i + 0.5) / n, 2)


def _grid_layers(layout: _Layout, n_curves: int) -> list[dict[str, object]]:
    """Lines and labels of the axis of errors."""
    ticks = round_ticks(layout.low, layout.high)
    lines = [{"x": 0, "x2": layout.width, "y": layout.y(panel, tick)} for panel in range(n_curves) for tick in ticks]
    rule: dict[str, object] = {
        "data": {"values": lines},
        "mark": {"type": "rule", "stroke": theme.FAINT},
        "encoding": {"x": {"field": "x", **_PIXELS}, "x2": {"field": "x2"}, "y": {"field": "y", **_PIXELS}},
    }
    labels = [theme.LegendText(f"{tick:g}", -6, layout.y(panel, tick)) for panel in range(n_curves) for tick in ticks]
    return [rule, theme.text_layer(labels, align="right")]


def _place_cells(layout: _Layout, curves: Sequence[Curve]) -> Iterator[theme.Swatch]:
    """The level of each factor in each design, in the order of the curve."""
    for panel, curve in enumerate(curves):
        step = layout.width / len(curve.points)
        size = min(step - 2, ROW_HEIGHT_PX - 4)
        for i, point in enumerate(curve.points):
            for row, level in enumerate(point.levels):
                x, y = _x(layout, i, len(curve.points)) - size / 2, layout.row_y(panel, row) - size / 2
                yield theme.Swatch(round(x, 2), round(y, 2), size, size, _color(level))


def _color(level: int) -> str:
    """Colour of a level: pale for the audit's."""
    return theme.RULE if level == 0 else theme.SERIES_COLORS[(level - 1) % len(theme.SERIES_COLORS)]


def _point_layers(layout: _Layout, curves: Sequence[Curve]) -> list[dict[str, object]]:
    """The intervals, and above them the dots; the audit's design is ringed."""
    rows = [
        {
            "x": _x(layout, i, len(curve.points)),
            "y": layout.y(panel, point.value),
            "low": None if point.ci_low is None else layout.y(panel, point.ci_low),
            "high": None if point.ci_high is None else layout.y(panel, point.ci_high),
            "color": theme.INK if point.is_audit else theme.ACCENT,
            "size": 74 if point.is_audit else 42,
            "text": _describe(curve.model, point),
        }
        for panel, curve in enumerate(curves)
        for i, point in enumerate(curve.points)
    ]
    color = {"field": "color", "type": "nominal", "scale": None}
    interval: dict[str, object] = {
        "data": {"values": rows},
        "transform": [{"filter": "isValid(datum.low) && isValid(datum.high)"}],
        "mark": {"type": "rule", "strokeWidth": 2, "strokeCap": "round", "opacity": 0.45},
        "encoding": {
            "x": {"field": "x", **_PIXELS},
            "y": {"field": "low", **_PIXELS},
            "y2": {"field": "high"},
            "stroke": color,
        },
    }
    dot: dict[str, object] = {
        "data": {"values": rows},
        "mark": {"type": "circle", "opacity": 1, "fillOpacity": 1, "stroke": theme.PAPER, "strokeWidth": 1},
        "encoding": {
            **{channel: {"field": channel, **_PIXELS} for channel in ("x", "y")},
            "fill": color,
            "size": {"field": "size", "type": "quantitative", "scale": None},
            "description": {"field": "text", "type": "nominal"},
        },
    }
    return [interval, dot]


def _describe(model: str, point: CurvePoint) -> str:
    """Text alternative of a dot."""
    interval = "" if point.ci_low is None else f" ({format_interval(point.ci_low, point.ci_high)})"
    return f"{theme.clean_text(model)}, {theme.clean_text(point.name)}: {format_number(point.value)}{interval}"


def _place_titles(layout: _Layout, curves: Sequence[Curve]) -> list[theme.LegendText]:
    """The name of each model above its curve."""
    return [
        theme.LegendText(
            theme.truncate_to_width(theme.clean_text(curve.model), layout.width, is_bold=True),
            0,
            panel * layout.panel_height + 8,
        )
        for panel, curve in enumerate(curves)
    ]


def _place_names(
    layout: _Layout, factors: Sequence[tuple[str, Sequence[str]]], n_curves: int
) -> list[theme.LegendText]:
    """The name of each factor to the left of its row, and of its levels where these are below the curves."""
    names = [theme.truncate_to_width(theme.clean_text(name), layout.left - 12) for name, _ in factors]
    panels = n_curves + layout.is_narrow
    return [
        theme.LegendText(name, -6, layout.key_y(row) if panel == n_curves else layout.row_y(panel, row))
        for panel in range(panels)
        for row, name in enumerate(names)
    ]


def _place_key(
    layout: _Layout, factors: Sequence[tuple[str, Sequence[str]]], n_curves: int
) -> Iterator[tuple[theme.Swatch, theme.LegendText]]:
    """The levels of each factor with their colours: beside its row, or below all curves on narrow screens."""
    start, end = (0.0, layout.width) if layout.is_narrow else (layout.width + 10, layout.width + KEY_WIDTH_PX)
    for panel in range(1 if layout.is_narrow else n_curves):
        for row, (_, levels) in enumerate(factors):
            x, y = start, layout.key_y(row) if layout.is_narrow else layout.row_y(panel, row)
            for i, level in enumerate(levels):
                room = (end - x) / (len(levels) - i) - SWATCH_SIZE_PX - 3 * TEXT_GAP_PX
                text = theme.truncate_to_width(theme.clean_text(level), room)
                swatch = theme.Swatch(round(x, 2), y - SWATCH_SIZE_PX / 2, SWATCH_SIZE_PX, SWATCH_SIZE_PX, _color(i))
                x += SWATCH_SIZE_PX + TEXT_GAP_PX
                yield swatch, theme.LegendText(text, round(x, 2), y)
                x += theme.estimate_text_width(text, theme.LEGEND_FONT_SIZE_PX) + 2 * TEXT_GAP_PX
