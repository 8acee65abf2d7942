"""What all plots share: colours, fonts and sizes, legends, and labels that do not cover each other."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from auditor.text_safety import escape_invisible

VegaLiteSpec = dict[str, object]
"""A Vega-Lite specification of a plot, with its data."""

VEGA_LITE_SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
FONT_FAMILY = "Inter, system-ui, -apple-system, Segoe UI, Roboto, Helvetica Neue, Liberation Sans, Arial, sans-serif"
FONT_SIZE_PX = 12
INK, MUTED, RULE, FAINT, PAPER, ACCENT = (
    f"var(--{name})" for name in ("ink", "muted", "rule", "faint", "paper", "accent")
)
DIFFERENCE_COLORS = tuple(f"var(--{name})" for name in ("n4", "n3", "n2", "n1", "z", "p1", "p2", "p3", "p4"))
"""From much stricter to much more permissive; distinguishable with any colour vision."""
ERROR_COLORS = DIFFERENCE_COLORS[4:]
SERIES_COLORS = tuple(f"var(--c{i})" for i in range(1, 11))
LIGHT_COLORS: Mapping[str, str] = {
    "paper": "#fcfbf8", "ink": "#1d1c1a", "muted": "#625d54", "rule": "#dcd6ca", "faint": "#ebe6db",
    "accent": "#0f5a66",
    "n4": "#35408f", "n3": "#5d69b4", "n2": "#aab3dc", "n1": "#dcdff0", "z": "#f1eee6",
    "p1": "#fae1c3", "p2": "#f2b872", "p3": "#c8710f", "p4": "#8f430a",
    "c1": "#0f5a66", "c2": "#c8710f", "c3": "#5d69b4", "c4": "#b2406b", "c5": "#8d8a2b", "c6": "#77706a",
    "c7": "#3f8f5b", "c8": "#9a5fb0", "c9": "#b9ad97", "c10": "#2f2c28",
}  # fmt: skip
"""Colours of the page's light theme by CSS variable, for files that are drawn outside of a page."""

DIAGONAL_MARK: Mapping[str, object] = {
    "type": "line", "stroke": INK, "strokeWidth": 1, "strokeDash": [2, 3], "opacity": 0.7, "aria": False,
}  # fmt: skip
"""Where two measures of a plot are equal."""
TICK_FORMAT = ".2~f"
TEXT_SHIFT_PX = 4
"""Distance of a text's baseline from its middle."""
_AXIS_CONFIG: Mapping[str, object] = {
    "aria": False,
    "domain": False,
    "ticks": False,
    "gridColor": FAINT,
    "labelColor": MUTED,
    "labelFontSize": FONT_SIZE_PX - 1,
    "labelOverlap": False,
    "labelBound": False,
    "labelFlush": False,
    "labelBaseline": "alphabetic",
    "format": TICK_FORMAT,
    "titleColor": MUTED,
    "titleFontSize": FONT_SIZE_PX,
    "titleFontWeight": "normal",
    "titleBaseline": "alphabetic",
}
_CONFIG: Mapping[str, object] = {
    "font": FONT_FAMILY,
    "view": {"stroke": None},
    "axis": _AXIS_CONFIG,
    "axisX": {"labelPadding": 15},
    "axisY": {"labelPadding": 6, "labelOffset": TEXT_SHIFT_PX},
    "mark": {"invalid": None},
    "text": {"fontSize": FONT_SIZE_PX, "fill": INK, "baseline": "alphabetic", "dy": TEXT_SHIFT_PX, "aria": False},
    "rule": {"aria": False},
    "rect": {"aria": False},
}
_NARROW_CHARACTERS = frozenset("fijlrtI.,:;'|!()[]{}/ -")
_WIDE_CHARACTERS = frozenset("mwMW@%—…+−")
_BOLD_WIDTH_FACTOR = 1.1


def build_spec(
    layers: Sequence[Mapping[str, object]],
    *,
    width: float,
    height: float,
    padding: tuple[float, float, float, float],
    **properties: object,
) -> VegaLiteSpec:
    """Build a layered specification with the shared theme and a fixed layout.

    Args:
        width, height: of the area between the axes, in pixels.
        padding: space at the left, top, right and bottom of that area, in pixels.
        properties: others of the top level, such as `data` and `projection`.
    """
    left, top, right, bottom = padding
    return {
        "$schema": VEGA_LITE_SCHEMA,
        "width": width,
        "height": height,
        "padding": {"left": left, "top": top, "right": right, "bottom": bottom},
        "autosize": "none",
        "background": None,
        "config": _CONFIG,
        "layer": list(layers),
        **properties,
    }


def clean_text(text: str) -> str:
    """Put a text on one line, with invisible characters and line breaks made visible or replaced by spaces."""
    return " ".join(escape_invisible(text).split())


def estimate_text_width(text: str, font_size_px: float = FONT_SIZE_PX, *, is_bold: bool = False) -> float:
    """Estimate the width of a text in pixels, from the widths of characters in DejaVu Sans, a wide system font."""
    return font_size_px * (_BOLD_WIDTH_FACTOR if is_bold else 1.0) * sum(map(_character_width, text))


def truncate_to_width(text: str, width_px: float, *, is_bold: bool = False) -> str:
    """Cut off the end of a text that is wider than a number of pixels, and end it with an ellipsis."""
    if estimate_text_width(text, is_bold=is_bold) <= width_px:
        return text
    while text and estimate_text_width(text + "…", is_bold=is_bold) > width_px:
        text = text[:-1]
    return text.rstrip() + "…"


def _character_width(char: str) -> float:
    """Estimated width of a character, as a fraction of the font size."""
    if unicodedata.combining(char):
        return 0.0
    if unicodedata.east_asian_width(char) in "WF":
        return 1.0
    if char in _NARROW_CHARACTERS:
        return 0.38
    return 0.9 if char in _WIDE_CHARACTERS else 0.7 if char.isupper() else 0.63


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


GAP_PX = 4
"""Space between a dot and its label."""


class Dot(NamedTuple):
    """A dot with its label; in pixels."""

    x: float
    y: float
    radius: float
    label: str


class _Box(NamedTuple):
    """A rectangle in pixels."""

    left: float
    top: float
    right: float
    bottom: float

    def overlap(self, other: _Box) -> float:
        """Area that two rectangles have in common."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.bottom, other.bottom) - max(self.top, other.top)
        return max(width, 0.0) * max(height, 0.0)


def place_labels(dots: Sequence[Dot], width: float, height: float) -> list[LegendText]:
    """Choose for each label the place around its dot that covers least of the dots, other labels and the margin.

    Args:
        dots: in the order in which their labels are placed.
        width, height: of the plot, in pixels.

    Returns:
        The labels, left-aligned.
    """
    dot_boxes = [_Box(dot.x - dot.radius, dot.y - dot.radius, dot.x + dot.radius, dot.y + dot.radius) for dot in dots]
    obstacles = [*dot_boxes, *_margins(width, height)]
    labels = []
    for dot in dots:
        box = min(_candidates(dot), key=lambda candidate: sum(map(candidate.overlap, obstacles)))
        obstacles.append(box)
        labels.append(LegendText(dot.label, round(box.left, 1), round((box.top + box.bottom) / 2, 1)))
    return labels


def _candidates(dot: Dot) -> list[_Box]:
    """Places for a label around its dot, the best first: right, left, above, below, and the corners."""
    width = estimate_text_width(dot.label, LEGEND_FONT_SIZE_PX)
    distance, half_height = dot.radius + GAP_PX, LEGEND_FONT_SIZE_PX * 0.6
    starts = {"right": dot.x + distance, "left": dot.x - distance - width, "center": dot.x - width / 2}
    middles = {
        "beside": dot.y,
        "above": dot.y - distance - half_height / 2,
        "below": dot.y + distance + half_height / 2,
    }
    places = [("right", "beside"), ("left", "beside"), ("center", "above"), ("center", "below")]
    places += [(start, middle) for start in ("right", "left") for middle in ("above", "below")]
    return [
        _Box(starts[start], middles[middle] - half_height, starts[start] + width, middles[middle] + half_height)
        for start, middle in places
    ]


def _margins(width: float, height: float) -> list[_Box]:
    """The area outside of the plot at its left, right, upper and lower edge."""
    far = 1000.0
    return [
        _Box(-far, -far, 0, height + far),
        _Box(width, -far, width + far, height + far),
        _Box(-far, -far, width + far, 0),
        _Box(-far, height, width + far, height + far),
    ]
