"""Legends: swatches and texts at fixed positions, in pixels from the upper left corner between the axes.

Vega's own legends are placed by the measured width of their texts, which depends on the fonts that are installed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from auditor.reports.charts.theme import MUTED

LEGEND_FONT_SIZE_PX = 11
_PIXELS: Mapping[str, object] = {"type": "quantitative", "scale": None, "axis": None}


@dataclass(frozen=True, slots=True)
class Swatch:
    """A rectangle in a colour of the plot; x and y are its upper left corner."""

    x: float
    y: float
    width: float
    height: float
    color: str
    opacity: float = 1.0


@dataclass(frozen=True, slots=True)
class LegendText:
    """A text; y is its middle, and x its start, middle or end."""

    text: str
    x: float
    y: float


def swatch_layer(swatches: Sequence[Swatch], **mark: object) -> dict[str, object]:
    """Specify a layer of swatches; `mark` has other properties of their mark."""
    values = [
        {"x": s.x, "x2": s.x + s.width, "y": s.y, "y2": s.y + s.height, "color": s.color, "opacity": s.opacity}
        for s in swatches
    ]
    return {
        "data": {"values": values},
        "mark": {"type": "rect", "aria": False, "opacity": 1, **mark},
        "encoding": {
            **{channel: {"field": channel, **_PIXELS} for channel in ("x", "y")},
            **{channel: {"field": channel} for channel in ("x2", "y2")},
            "fill": {"field": "color", "type": "nominal", "scale": None},
            "fillOpacity": {"field": "opacity", "type": "quantitative", "scale": None},
        },
    }


def text_layer(texts: Sequence[LegendText], **mark: object) -> dict[str, object]:
    """Specify a layer of texts; `mark` has other properties of their mark, such as `align`."""
    return {
        "data": {"values": [{"x": text.x, "y": text.y, "text": text.text} for text in texts]},
        "mark": {"type": "text", "fontSize": LEGEND_FONT_SIZE_PX, "fill": MUTED, **mark},
        "encoding": {
            **{channel: {"field": channel, **_PIXELS} for channel in ("x", "y")},
            "text": {"field": "text", "type": "nominal"},
        },
    }
