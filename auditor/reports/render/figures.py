"""Draw Vega-Lite specifications: as inline SVG for a page, and as SVG, PNG and PDF files.

A figure keeps the CSS variables of the page's theme; a file has the colours of the light theme. vl-convert is loaded
when the first figure is drawn, and never fetches anything.
"""

from __future__ import annotations

import json
import math
import re
import struct
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from auditor.reports.charts import theme
from auditor.reports.charts.world_map import WORLD_DATASET, load_topology
from auditor.reports.document import Figure
from auditor.reports.render.compact_svg import (
    SVG_NAMESPACE,
    compact_view,
    draw_map_layers,
    format_coordinate,
    group_specs,
    is_map,
    join_specs,
    split_views,
    without_map_layers,
)
from auditor.text_safety import escape_invisible

VEGA_LITE_VERSION = "5.21"
MIN_SHARED_PATH_LENGTH = 30
"""A path that is drawn repeatedly is shared if its text is at least this long."""
MIN_FONT_SIZE_PX = 9
"""A figure is scrolled rather than shrunk further on a narrow screen."""
FILE_MARK = "Drawn by auditor"
"""A comment in all files of figures, by which an export recognizes those that it may replace."""
PNG_HEADER_LENGTH = 33
"""Bytes of a PNG file's signature and first chunk, after which there may be a comment."""
PNG_SCALE = 2
"""Pixels for each unit of the SVG."""
_VARIABLE_PATTERN = re.compile(r"var\(--([\w-]+)\)")


def render_page_svgs(figures: Sequence[Figure], id_prefix: str = "figure") -> tuple[str, list[str]]:
    """Draw all figures of a page at once, which is several times faster than one by one.

    Args:
        figures: any number of figures of `auditor.reports.charts`, which fix their layout: width, height and padding.
        id_prefix: all ids in the figures start with it.

    Returns:
        An invisible `<svg>` with the shapes that are drawn repeatedly, to be put once at the start of the page's body
        (empty if there are none); and an `<svg>` for each figure.

    Raises:
        ValueError: a specification is not valid, or has a number that is not finite.
    """
    svgs = _draw_figures(figures, id_prefix)
    counts = Counter(path.get("d", "") for svg in svgs for path in svg.iter("path"))
    repeated_paths = [path for path, n in counts.items() if n > 1 and len(path) >= MIN_SHARED_PATH_LENGTH]
    shared_paths = {path: f"{id_prefix}-p{i}" for i, path in enumerate(repeated_paths, 1)}
    for svg in svgs:
        _use_shared_paths(svg, shared_paths)
    definitions = ""
    if shared_paths:
        invisible = {"width": "0", "height": "0", "style": "position:absolute", "aria-hidden": "true"}
        definitions_svg = Element("svg", invisible)
        paths = SubElement(definitions_svg, "defs")
        for path, path_id in shared_paths.items():
            SubElement(paths, "path", {"id": path_id, "d": path})
        definitions = _to_markup(definitions_svg)
    return definitions, [_to_markup(svg) for svg in svgs]


def export_spec(spec: Mapping[str, object]) -> bytes:
    """Write the specification as JSON, with the colours of the light theme on white."""
    indent = None if is_map(spec) else 1  # shapes have tens of thousands of numbers
    marked_spec = {**_complete_spec(spec), "usermeta": {"comment": FILE_MARK}}
    return (_to_json(marked_spec, indent) + "\n").encode()


def export_svg(spec: Mapping[str, object]) -> bytes:
    """Draw a self-contained SVG file, with the colours of the light theme on white."""
    return f"{_convert('vegalite_to_svg', _complete_spec(spec))}\n<!-- {FILE_MARK} -->\n".encode()


def export_png(spec: Mapping[str, object]) -> bytes:
    """Draw a PNG file with two pixels for each unit of the SVG, with the colours of the light theme on white."""
    png = bytes(_convert("vegalite_to_png", _complete_spec(spec), scale=PNG_SCALE))
    chunk = b"tEXtComment\0" + FILE_MARK.encode()
    comment = struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk))
    return png[:PNG_HEADER_LENGTH] + comment + png[PNG_HEADER_LENGTH:]


def export_pdf(spec: Mapping[str, object]) -> bytes:
    """Draw a PDF file, with the colours of the light theme on white.

    It looks the same each time, but its bytes may differ: the library writes a file's parts in any order.
    """
    return bytes(_convert("vegalite_to_pdf", _complete_spec(spec))) + f"\n% {FILE_MARK}\n".encode()


def _convert(function: str, spec: object, **options: object) -> Any:
    """Call a function of vl-convert, which may fetch nothing."""
    import vl_convert  # takes half a second and 84 MB, which a report without figures does not need

    convert = getattr(vl_convert, function)
    return convert(_to_json(spec), vl_version=VEGA_LITE_VERSION, allowed_base_urls=[], **options)


def _to_json(spec: object, indent: int | None = None) -> str:
    """Write a specification as JSON."""
    return json.dumps(spec, ensure_ascii=False, allow_nan=False, indent=indent)


def _complete_spec(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Replace CSS variables by the colours of the light theme, on a white background, and add the shapes of a map.

    Texts are left as they are, and so are data but for their field `color`.
    """

    def resolve(key: str, value: Any) -> Any:
        """Replace the CSS variables in the value of a key; a title may have any text."""
        if isinstance(value, str):
            match = _VARIABLE_PATTERN.fullmatch(value)
            return theme.LIGHT_COLORS[match[1]] if match else value
        if key == "data" and "values" in value:
            rows = [{**row, "color": resolve("", row["color"])} if "color" in row else row for row in value["values"]]
            return {**value, "values": rows}
        if isinstance(value, Mapping):
            return {name: item if name == "title" else resolve(name, item) for name, item in value.items()}
        return [resolve(key, item) for item in value] if isinstance(value, (list, tuple)) else value

    datasets = {"datasets": {WORLD_DATASET: load_topology()}} if is_map(spec) else {}
    return {key: resolve(key, value) for key, value in spec.items()} | {"background": "white"} | datasets


def _draw_figures(figures: Sequence[Figure], id_prefix: str) -> list[Element]:
    """Draw figures in as few conversions as possible; those that differ only in the layers of a map are drawn once."""
    specs = [without_map_layers(figure.spec) for figure in figures]
    keys = [json.dumps(spec) for spec in specs]
    views: dict[str, tuple[Element, Mapping[str, Element]]] = {}
    for group in group_specs(list(dict(zip(keys, specs, strict=True)).values())):
        root = ElementTree.fromstring(_convert("vegalite_to_svg", join_specs(group)))
        definitions = {item.get("id", ""): item for defs in root.iter(f"{SVG_NAMESPACE}defs") for item in defs}
        for spec, view in zip(group, split_views(root), strict=True):
            views[json.dumps(spec)] = view, definitions
    return [
        _build_svg(figure, *views[key], f"{id_prefix}-{i}")
        for i, (figure, key) in enumerate(zip(figures, keys, strict=True), 1)
    ]


def _build_svg(figure: Figure, view: Element, definitions: Mapping[str, Element], id_prefix: str) -> Element:
    """Build the inline `<svg>` of a figure from its part of the drawing, which starts at the upper left axis corner."""
    spec: Mapping[str, Any] = figure.spec
    padding = spec["padding"]
    width = spec["width"] + padding["left"] + padding["right"]
    height = spec["height"] + padding["top"] + padding["bottom"]
    group = compact_view(view, definitions, id_prefix)
    group[:0] = draw_map_layers(spec)
    font_sizes = [float(size) for element in group.iter() if (size := element.get("font-size"))]
    attributes = {
        "class": "chart",
        "role": "img",
        "aria-labelledby": f"{id_prefix}-t {id_prefix}-s",
        "width": format_coordinate(width),
        "viewBox": " ".join(map(format_coordinate, (-padding["left"], -padding["top"], width, height))),
        "font-family": theme.FONT_FAMILY,
    }
    if font_sizes:
        attributes["style"] = f"min-width:{math.ceil(width * MIN_FONT_SIZE_PX / min(font_sizes))}px"
    svg = Element("svg", attributes)
    for tag, element_id, text in (("title", "t", figure.title), ("desc", "s", figure.description)):
        SubElement(svg, tag, {"id": f"{id_prefix}-{element_id}"}).text = escape_invisible(text)
    svg.append(group)
    return svg


def _use_shared_paths(svg: Element, shared_paths: Mapping[str, str]) -> None:
    """Replace the paths of a figure that are shared by references to them."""
    for path in svg.iter("path"):
        if (path_id := shared_paths.get(path.get("d", ""))) is not None:
            path.tag = "use"
            del path.attrib["d"]
            path.attrib = {"href": f"#{path_id}", **path.attrib}


def _to_markup(svg: Element) -> str:
    """Write an element as markup; outside of tags `>` is escaped, so that only tags are shortened."""
    return ElementTree.tostring(svg, encoding="unicode").replace(" />", "/>")
