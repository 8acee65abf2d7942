"""Draw several Vega-Lite specifications in one conversion, and take the drawing apart.

A conversion costs more than the figures in it. vl-convert lays out each text to measure it, which takes a tenth of a
millisecond a character and is of no use for figures with a fixed layout: texts have size 0 in the conversion, and their
size in place of their font.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree.ElementTree import Element

SVG_NAMESPACE = "{http://www.w3.org/2000/svg}"
_TOP_LEVEL_KEYS = frozenset(("$schema", "autosize", "background", "config", "padding"))
_CHANNELS = ("x", "y", "color", "fill", "stroke", "opacity", "fillOpacity", "size", "shape")
_FONT_KEYS = {"fontSize": "font", "labelFontSize": "labelFont", "titleFontSize": "titleFont"}
_VIEW_PATTERN = re.compile(r"(?:^| )concat_(\d+)_group$")

Spec = Mapping[str, Any]


def group_specs(specs: Sequence[Spec]) -> list[list[Spec]]:
    """Group the specifications that can be drawn in one conversion: those with the same configuration."""
    groups: dict[str, list[Spec]] = {}
    for spec in specs:
        groups.setdefault(json.dumps(spec["config"]), []).append(spec)
    return list(groups.values())


def join_specs(specs: Sequence[Spec]) -> dict[str, object]:
    """Put specifications below each other in one; nothing else changes in how they are drawn."""
    views = [{key: value for key, value in spec.items() if key not in _TOP_LEVEL_KEYS} for spec in specs]
    return {
        "vconcat": [_without_font_sizes(view) for view in views],
        "config": _without_font_sizes(specs[0]["config"]),
        "background": None,
        "autosize": "none",
        "padding": 0,
        "spacing": 0,
        "bounds": "flush",
        "resolve": {"scale": dict.fromkeys(_CHANNELS, "independent")},
    }


def split_views(root: Element) -> list[Element]:
    """The drawing of each specification in the SVG of the joined one."""
    views: dict[int, Element] = {}
    for group in root.iter(f"{SVG_NAMESPACE}g"):
        if match := _VIEW_PATTERN.search(group.get("class", "")):
            views[int(match[1])] = group[0]
    return [views[i] for i in range(len(views))]


def _without_font_sizes(value: Any) -> Any:
    """Set all font sizes in a part of a specification to 0, and the fonts to the sizes; data are left as they are."""
    if isinstance(value, Mapping):
        fonts = {_FONT_KEYS[key]: str(size) for key, size in value.items() if key in _FONT_KEYS}
        return {
            key: 0 if key in _FONT_KEYS else item if key == "data" else _without_font_sizes(item)
            for key, item in value.items()
        } | fonts
    return [_without_font_sizes(item) for item in value] if isinstance(value, list) else value


def font_size(text: Element) -> str:
    """Font size in pixels of a text that was drawn by `join_specs`."""
    size = text.get("font-size", "").removesuffix("px")
    return text.get("font-family", "") if size == "0" else size
