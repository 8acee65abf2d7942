"""Reliability diagram: how often a judge is right, against its stated confidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from auditor.reports.charts.theme import ACCENT, INK, MUTED, PAPER, VegaLiteSpec, build_spec
from auditor.reports.number_format import format_number, format_share

PLOT_SIZE_PX = 224
PADDING_PX = (52, 8, 14, 44)
TICKS = (0, 0.25, 0.5, 0.75, 1)
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


def reliability_diagram(points: Sequence[ReliabilityPoint]) -> VegaLiteSpec:
    """Specify the diagram: a dot for each bin, its band, and the diagonal of a confidence that is right."""
    diagonal: dict[str, object] = {
        "data": {"values": [{"confidence": 0, "share": 0}, {"confidence": 1, "share": 1}]},
        "mark": {"type": "line", "stroke": INK, "strokeWidth": 1, "strokeDash": [2, 3], "opacity": 0.7, "aria": False},
        "encoding": _axes(),
    }
    most = max((point.labels for point in points), default=1)
    values = [
        {
            "confidence": round(point.confidence, 4),
            "share": round(point.share_right, 4),
            "band_low": round(point.band_low, 4),
            "band_high": round(point.band_high, 4),
            "area": round(MIN_DOT_PX2 + (MAX_DOT_PX2 - MIN_DOT_PX2) * point.labels / most),
            "text": _describe(point),
        }
        for point in points
    ]
    axes = _axes()
    band: dict[str, object] = {
        "mark": {"type": "rule", "stroke": MUTED, "strokeWidth": 6, "opacity": 0.3, "aria": False},
        "encoding": {"x": axes["x"], "y": {**_axis("y"), "field": "band_low"}, "y2": {"field": "band_high"}},
    }
    dot: dict[str, object] = {
        "mark": {"type": "circle", "fill": ACCENT, "fillOpacity": 1, "opacity": 1, "stroke": PAPER, "strokeWidth": 1},
        "encoding": {
            **axes,
            "size": {"field": "area", "type": "quantitative", "scale": None},
            "description": {"field": "text", "type": "nominal"},
        },
    }
    left, top, right, bottom = PADDING_PX
    return build_spec(
        [diagonal, band, dot],
        width=PLOT_SIZE_PX,
        height=PLOT_SIZE_PX,
        padding=(left, top, right, bottom),
        data={"values": values},
    )


def _axes() -> dict[str, object]:
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
        "axis": {"values": list(TICKS), "grid": True, **title},
    }


def _describe(point: ReliabilityPoint) -> str:
    """Text alternative of a dot."""
    return (
        f"confidence {format_number(point.confidence)}: right on {format_share(point.share_right)} of {point.labels} "
        "labels"
    )
