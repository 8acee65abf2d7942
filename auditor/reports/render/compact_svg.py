"""Reduce Vega's SVG to what a page needs: shapes, texts and tooltips, in few bytes.

Only the attributes in a list are taken over, so that no link, script, style or reference to another file gets through.
Vega's tooltips need its scripts; its text alternative of a mark (`aria-label`) becomes the mark's tooltip instead.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from xml.etree.ElementTree import Element, SubElement

from auditor.reports.render.svg_paths import round_coordinates, shorten_path

SVG_NAMESPACE = "{http://www.w3.org/2000/svg}"
MIN_MARKER_RUN = 20
"""Number of equal symbols in sequence from which on they are drawn as the markers of one line."""
_DRAWN_TAGS = frozenset(("g", "path", "rect", "line", "circle", "text", "tspan"))
_INHERITED_ATTRIBUTES = (
    "fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "stroke-linecap",
    "text-anchor", "font-size", "font-weight", "font-style", "font-family",
)  # fmt: skip
_ATTRIBUTES = frozenset(
    (
        *_INHERITED_ATTRIBUTES, "opacity", "transform", "clip-path",
        "d", "x", "y", "x1", "x2", "y1", "y2", "dx", "dy", "cx", "cy", "r", "rx", "ry", "width", "height",
    )
)  # fmt: skip
_COORDINATES = frozenset(("transform", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "height"))
_TRANSLATE_PATTERN = re.compile(r"translate\((-?[\d.]+),(-?[\d.]+)\)")
_REFERENCE_PATTERN = re.compile(r"url\(#([^)]+)\)")


def compact_group(group: Element, font_family: str) -> Element:
    """Copy a group of Vega's SVG without what is invisible or only for scripts, with coordinates to one decimal.

    Args:
        group: an element of Vega's SVG; it is not changed.
        font_family: the font of the page's figures, which texts need not repeat.
    """
    compacted = Element("g", _compact_attributes(group, font_family))
    for child in group:
        tag = child.tag.removeprefix(SVG_NAMESPACE)
        if tag not in _DRAWN_TAGS or _is_invisible(child, tag):
            continue
        compacted_child = compact_group(child, font_family)
        compacted_child.tag = tag
        if tag == "g" and not compacted_child.attrib and compacted_child.find("title") is None:
            compacted.extend(list(compacted_child))
        elif tag != "g" or len(compacted_child):
            compacted.append(compacted_child)
    if group.text and group.text.strip():
        compacted.text = group.text
    if (tooltip := group.get("aria-label")) and group.get("aria-hidden") != "true":
        title = Element("title")
        title.text = tooltip
        compacted.insert(0, title)
    _move_common_attributes(compacted)
    return compacted


def _is_invisible(element: Element, tag: str) -> bool:
    """Whether an element of Vega's SVG draws nothing."""
    if element.get("display") == "none" or element.get("opacity") == "0":
        return True
    if tag == "text":
        return not "".join(element.itertext()).strip()
    is_unpainted = element.get("fill", "none") == "none" and element.get("stroke", "none") == "none"
    return tag == "path" and is_unpainted


def _compact_attributes(element: Element, font_family: str) -> dict[str, str]:
    """The attributes of an element that a page needs; those with their default value are left out."""
    defaults = {"opacity": "1", "transform": "translate(0,0)", "font-family": font_family, "text-anchor": "start"}
    attributes = {
        name: shorten_path(value) if name == "d" else round_coordinates(value) if name in _COORDINATES else value
        for name, value in element.attrib.items()
        if name in _ATTRIBUTES
    }
    if "font-size" in attributes:
        attributes["font-size"] = attributes["font-size"].removesuffix("px")
    if attributes.get("stroke", "none") == "none" or attributes.get("stroke-width") == "0":
        attributes = {name: value for name, value in attributes.items() if not name.startswith("stroke-")}
    return {name: value for name, value in attributes.items() if value != defaults.get(name)}


def _move_common_attributes(group: Element) -> None:
    """Move attributes that all children of a group have in common to the group, whose children inherit them."""
    children = [child for child in group if child.tag != "title"]
    if len(children) < 2:
        return
    for name in _INHERITED_ATTRIBUTES:
        values = {child.get(name) for child in children}
        if name not in group.attrib and len(values) == 1 and (value := values.pop()) is not None:
            group.set(name, value)
            for child in children:
                del child.attrib[name]


def merge_equal_symbols(group: Element, id_prefix: str) -> None:
    """Replace long runs of symbols that differ only in their position by one line each, with the symbol as marker.

    A marker draws each symbol on its own, so that overlapping ones add up as before. Symbols with a tooltip stay.
    """
    numbers = iter(range(1, 1_000_000))
    for parent in list(group.iter("g")):
        runs = _split_runs(parent)
        if all(len(run) < MIN_MARKER_RUN for run in runs):
            continue
        for child in list(parent):
            parent.remove(child)
        for run in runs:
            is_merged = len(run) >= MIN_MARKER_RUN
            parent.extend(_marker_line(run, f"{id_prefix}-m{next(numbers)}") if is_merged else run)


def _split_runs(parent: Element) -> list[list[Element]]:
    """Split the children of an element into runs of symbols that differ only in their position."""
    runs: list[list[Element]] = []
    previous_key = None
    for child in parent:
        attributes = {name: value for name, value in child.attrib.items() if name != "transform"}
        is_symbol = child.tag == "path" and not len(child) and _TRANSLATE_PATTERN.fullmatch(child.get("transform", ""))
        key = tuple(sorted(attributes.items())) if is_symbol else None
        if key is not None and key == previous_key:
            runs[-1].append(child)
        else:
            runs.append([child])
        previous_key = key
    return runs


def _marker_line(symbols: list[Element], marker_id: str) -> list[Element]:
    """A marker with the shape of equal symbols, and an invisible line through their positions that has it."""
    reference = f"url(#{marker_id})"
    marker = Element("marker", {"id": marker_id, "overflow": "visible", "markerUnits": "userSpaceOnUse"})
    SubElement(marker, "path", {name: value for name, value in symbols[0].attrib.items() if name != "transform"})
    positions = (_translation(symbol) for symbol in symbols)
    line = {"d": "M" + " ".join(f"{x} {y}" for x, y in positions), "fill": "none", "stroke": "none"}
    line |= {f"marker-{place}": reference for place in ("start", "mid", "end")}
    return [marker, Element("path", line)]


def _translation(element: Element) -> tuple[str, str]:
    """The x and y by which an element is moved, as text."""
    match = _TRANSLATE_PATTERN.fullmatch(element.get("transform", ""))
    return (match[1], match[2]) if match else ("0", "0")


def number_ids(group: Element, definitions: Mapping[str, Element], id_prefix: str) -> None:
    """Copy the definitions that a group refers to, such as clip paths, into it, and give them ids of their own.

    Args:
        definitions: elements of Vega's `<defs>` by id. Vega counts their ids on from figure to figure.
    """
    new_ids: dict[str, str] = {}
    for element in list(group.iter()):
        for name, value in element.attrib.items():
            for old_id in _REFERENCE_PATTERN.findall(value):
                new_ids.setdefault(old_id, f"{id_prefix}-d{len(new_ids) + 1}")
                element.set(name, value.replace(f"#{old_id})", f"#{new_ids[old_id]})"))
    for old_id, new_id in new_ids.items():
        definition = _copy_definition(definitions[old_id])
        definition.set("id", new_id)
        group.insert(0, definition)


def _copy_definition(element: Element) -> Element:
    """Copy a definition, without the namespace in its tags."""
    copied = Element(element.tag.removeprefix(SVG_NAMESPACE), {k: round_coordinates(v) for k, v in element.items()})
    copied.extend(map(_copy_definition, element))
    return copied
