"""Colours, fonts and sizes that all plots share.

A colour is a CSS variable of the page's stylesheet, so that plots follow the page's light or dark theme. The layout of
a plot is fixed by its specification: no autosize, a padding, no legends of Vega's, and texts with an alphabetic
baseline, whose position does not depend on their size. So a plot does not depend on the fonts that are installed, and
`auditor.reports.render` can draw many at once without measuring texts.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence

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
