"""Scatter plots: a model's scores against people's, and a judge's accuracy against its stated confidence."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from auditor.reports.charts import theme
from auditor.reports.number_format import format_count, format_number, format_share

MAX_POINTS = 2000
"""With more points than this, squares are coloured by their number of points instead."""
MAX_TOOLTIPS_PER_PAGE = 4000
"""With more points in all scatter plots of a page, they are drawn without tooltips, to keep the page small."""
N_BINS = 32
"""Number of squares along each axis."""
PLOT_SIZE_PX = 224
PADDING_PX = (52, 8, 14, 44)
LEGEND_HEIGHT_PX, LEGEND_TOP_PX, LEGEND_TITLE_WIDTH_PX = 32, -34, 92
N_COUNT_CLASSES = 5
TICKS = (-1, -0.5, 0, 0.5, 1)


@dataclass(frozen=True, slots=True)
class ScorePair:
    """People's and the model's score of one cell, both in [-1, 1].

    Attributes:
        tooltip: names the cell, such as "Japan, divorce"; the scores are appended. Empty for no tooltip.
    """

    people: float
    model: float
    tooltip: str = ""


def scatter_plot(pairs: Sequence[ScorePair]) -> theme.VegaLiteSpec:
    """Specify a plot of the model's scores (up) against people's (right), with the diagonal of equal scores."""
    diagonal: dict[str, object] = {
        "data": {"values": [{"people": -1, "model": -1}, {"people": 1, "model": 1}]},
        "mark": theme.DIAGONAL_MARK,
        "encoding": _axes(),
    }
    left, top, right, bottom = PADDING_PX
    if len(pairs) > MAX_POINTS:
        layers, top = [*_bin_layers(pairs), diagonal], top + LEGEND_HEIGHT_PX
    else:
        layers = [diagonal, _point_layer(pairs)]
    return theme.build_spec(layers, width=PLOT_SIZE_PX, height=PLOT_SIZE_PX, padding=(left, top, right, bottom))


def _axes() -> dict[str, object]:
    """Encoding of people's scores to the right and the model's scores upwards."""
    axis: dict[str, object] = {
        "values": list(TICKS),
        "grid": True,
        "labelExpr": "abs(datum.value) === 0.5 ? '' : datum.label",
        "gridColor": {"condition": {"test": "datum.value === 0", "value": theme.RULE}, "value": theme.FAINT},
    }
    return {
        channel: {
            "field": field,
            "type": "quantitative",
            "scale": {"domain": [-1, 1], "nice": False},
            "axis": {**axis, **title},
        }
        for channel, field, title in (
            ("x", "people", {"title": "People’s score", "titleY": 34}),
            ("y", "model", {"title": "Model’s score", "titleX": -36}),
        )
    }


def _point_layer(pairs: Sequence[ScorePair]) -> dict[str, object]:
    """A dot for each pair, smaller and paler where there are many."""
    values = [
        {"people": round(pair.people, 4), "model": round(pair.model, 4), "cell": _describe(pair)} for pair in pairs
    ]
    has_tooltips = any(pair.tooltip for pair in pairs)
    description: dict[str, object] = {"description": {"field": "cell", "type": "nominal"}} if has_tooltips else {}
    size, opacity = (36, 0.55) if len(pairs) <= 300 else (16, 0.4)
    dot = {
        "type": "circle",
        "fill": theme.ACCENT,
        "size": size,
        "opacity": 1,
        "fillOpacity": opacity,
        "aria": has_tooltips,
    }
    return {"data": {"values": values}, "mark": dot, "encoding": {**_axes(), **description}}


def _describe(pair: ScorePair) -> str:
    """Text alternative of a pair: its cell with both scores; empty if it has no tooltip."""
    if not pair.tooltip:
        return ""
    return f"{theme.clean_text(pair.tooltip)}: people {format_number(pair.people)}, model {format_number(pair.model)}"


def _bin_layers(pairs: Sequence[ScorePair]) -> list[dict[str, object]]:
    """A square for each bin with pairs, stronger in colour the more there are, and a legend above the plot."""
    counts = Counter((_bin(pair.people), _bin(pair.model)) for pair in pairs)
    # Each class starts at a constant multiple of the one before: a few bins hold most pairs.
    largest = max(counts.values())
    class_starts = sorted({math.ceil(largest ** (i / N_COUNT_CLASSES)) for i in range(N_COUNT_CLASSES)})
    opacities = [round(0.2 + 0.8 * i / len(class_starts), 2) for i in range(1, len(class_starts) + 1)]
    values = [
        {
            "people": _bin_center(column),
            "model": _bin_center(row),
            "cells": n,
            "opacity": opacities[bisect_right(class_starts, n) - 1],
        }
        for (column, row), n in sorted(counts.items(), key=lambda item: (item[1], item[0]))
    ]
    square = {"type": "square", "fill": theme.ACCENT, "size": (PLOT_SIZE_PX / N_BINS) ** 2, "opacity": 1, "aria": False}
    opacity = {"fillOpacity": {"field": "opacity", "type": "quantitative", "scale": None}}
    bins: dict[str, object] = {"data": {"values": values}, "mark": square, "encoding": {**_axes(), **opacity}}
    band_width = (PLOT_SIZE_PX - LEGEND_TITLE_WIDTH_PX) / len(class_starts)
    edges = [LEGEND_TITLE_WIDTH_PX + i * band_width for i in range(len(class_starts))]
    bands = [
        theme.Swatch(x, LEGEND_TOP_PX, band_width, 8, theme.ACCENT, opacity)
        for x, opacity in zip(edges, opacities, strict=True)
    ]
    labels = [
        theme.LegendText(format_count(start), x, LEGEND_TOP_PX + 16)
        for x, start in zip(edges, class_starts, strict=True)
    ]
    title = theme.LegendText("Cells, at least", 0, LEGEND_TOP_PX + 16)
    return [bins, theme.swatch_layer(bands), theme.text_layer([title, *labels], align="left")]


def _bin(score: float) -> int:
    """Index of the bin of a score along an axis; scores outside of [-1, 1] are in the outer bins."""
    return min(max(int((score + 1) / 2 * N_BINS), 0), N_BINS - 1)


def _bin_center(index: int) -> float:
    """Score in the middle of a bin."""
    return round((2 * index + 1) / N_BINS - 1, 4)


SHARE_TICKS = (0, 0.25, 0.5, 0.75, 1)
MIN_DOT_PX2, MAX_DOT_PX2 = 24, 160
"""Areas of the dots of bins with the fewest and the most labels."""


@dataclass(frozen=True, slots=True)
class ReliabilityPoint:
    """One bin of the diagram; all figures but `labels` in [0, 1].

    Attributes:
        confidence: mean stated confidence.
        share_right: share of its verdicts that people agree with.
        band_low, band_high: 95% of such shares if the stated confidence were right.
    """

    confidence: float
    share_right: float
    band_low: float
    band_high: float
    labels: int


def reliability_diagram(points: Sequence[ReliabilityPoint]) -> theme.VegaLiteSpec:
    """Specify the diagram: a dot for each bin, its band, and the diagonal of a confidence that is right."""
    diagonal: dict[str, object] = {
        "data": {"values": [{"confidence": 0, "share": 0}, {"confidence": 1, "share": 1}]},
        "mark": theme.DIAGONAL_MARK,
        "encoding": _share_axes(),
    }
    most = max((point.labels for point in points), default=1)
    values = [
        {
            "confidence": round(point.confidence, 4),
            "share": round(point.share_right, 4),
            "band_low": round(point.band_low, 4),
            "band_high": round(point.band_high, 4),
            "area": round(MIN_DOT_PX2 + (MAX_DOT_PX2 - MIN_DOT_PX2) * point.labels / most),
            "text": _describe_reliability(point),
        }
        for point in points
    ]
    axes = _share_axes()
    band: dict[str, object] = {
        "mark": {"type": "rule", "stroke": theme.MUTED, "strokeWidth": 6, "opacity": 0.3, "aria": False},
        "encoding": {"x": axes["x"], "y": {**_axis("y"), "field": "band_low"}, "y2": {"field": "band_high"}},
    }
    dot: dict[str, object] = {
        "mark": {
            "type": "circle",
            "fill": theme.ACCENT,
            "fillOpacity": 1,
            "opacity": 1,
            "stroke": theme.PAPER,
            "strokeWidth": 1,
        },
        "encoding": {
            **axes,
            "size": {"field": "area", "type": "quantitative", "scale": None},
            "description": {"field": "text", "type": "nominal"},
        },
    }
    left, top, right, bottom = PADDING_PX
    return theme.build_spec(
        [diagonal, band, dot],
        width=PLOT_SIZE_PX,
        height=PLOT_SIZE_PX,
        padding=(left, top, right, bottom),
        data={"values": values},
    )


def _share_axes() -> dict[str, object]:
    """Encoding of confidence to the right and shares upwards."""
    return {"x": _axis("x"), "y": _axis("y")}


def _axis(channel: str) -> dict[str, object]:
    """Encoding of one axis from 0 to 1."""
    field, title = (
        ("confidence", {"title": "Stated confidence", "titleY": 34})
        if channel == "x"
        else ("share", {"title": "Share right", "titleX": -36})
    )
    return {
        "field": field,
        "type": "quantitative",
        "scale": {"domain": [0, 1], "nice": False},
        "axis": {"values": list(SHARE_TICKS), "grid": True, **title},
    }


def _describe_reliability(point: ReliabilityPoint) -> str:
    """Text alternative of a dot."""
    return (
        f"confidence {format_number(point.confidence)}: right on {format_share(point.share_right)} of {point.labels} "
        "labels"
    )
