"""Reduce Vega's SVG to what a page needs: shapes, texts and tooltips, in few bytes.

Only the attributes in a list are taken over, so that no link, script, style or reference to another file gets through.
Vega's tooltips need its scripts; its text alternative of a mark (`aria-label`) becomes the mark's tooltip instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from xml.etree.ElementTree import Element, SubElement

from auditor.reports.render.figure_batches import SVG_NAMESPACE, font_size
from auditor.reports.render.svg_paths import format_coordinate, round_coordinates, shorten_path

MIN_MARKER_RUN = 20
"""Number of equal symbols in sequence from which on they are drawn as the markers of one line."""
_DRAWN_TAGS = frozenset(("g", "path", "rect", "line", "circle", "text", "tspan"))
_INHERITED_ATTRIBUTES = (
    "fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "stroke-linecap",
    "text-anchor", "font-size", "font-weight", "font-style",
)  # fmt: skip
_COORDINATES = frozenset(("transform", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "height"))
_ATTRIBUTES = frozenset((*_INHERITED_ATTRIBUTES, *_COORDINATES, "d", "opacity", "clip-path"))
_MARKER_ATTRIBUTES = ("marker-start", "marker-mid", "marker-end")
_DEFAULT_VALUES = {"opacity": "1", "fill-opacity": "1", "text-anchor": "start", "font-weight": "normal"}
_TRANSLATE_PATTERN = re.compile(r"translate\([-\d.e]+,[-\d.e]+\)")
_REFERENCE_PATTERN = re.compile(r"url\(#([^)]+)\)")


def compact_view(view: Element, definitions: Mapping[str, Element], id_prefix: str) -> Element:
    """Copy a group of Vega's SVG without what is invisible or only for scripts, with coordinates to one decimal.

    Args:
        view: a group that was drawn by `figure_batches.join_specs`; it is not changed.
        definitions: elements of the drawing's `<defs>` by id.
        id_prefix: ids in the copy start with it.
    """
    compacted = _Compactor(id_prefix).compact(view, "g")
    compacted.attrib = {"fill": "none"}  # as in the root group of Vega's drawing
    _number_ids(compacted, definitions, id_prefix)
    return compacted


class _Compactor:
    """Copies elements; counts the markers of one figure."""

    def __init__(self, id_prefix: str) -> None:
        """Start with no markers."""
        self._marker_ids = (f"{id_prefix}-m{i}" for i in count(1))

    def compact(self, element: Element, tag: str) -> Element:
        """Copy an element of Vega's SVG; `tag` is its tag without the namespace."""
        compacted = Element(tag, _compact_attributes(element, tag))
        for run in _split_runs(element):
            symbol = self.compact(run[0], run[0].tag.removeprefix(SVG_NAMESPACE))
            if len(run) >= MIN_MARKER_RUN:
                compacted.extend(self._draw_markers(symbol, run))
            elif symbol.tag == "g" and not (len(symbol) and symbol.attrib):
                compacted.extend(list(symbol))
            else:
                compacted.append(symbol)
                compacted.extend(self.compact(other, symbol.tag) for other in run[1:])
        if element.text and element.text.strip():
            compacted.text = element.text
        if tag != "g" and (tooltip := element.get("aria-label")):
            title = Element("title")
            title.text = tooltip
            compacted.insert(0, title)
        _move_common_attributes(compacted)
        return compacted

    def _draw_markers(self, symbol: Element, run: Sequence[Element]) -> list[Element]:
        """A marker with the shape of equal symbols, and an invisible line through their positions that has it.

        A marker is drawn at each position, so that symbols that overlap add up as before.
        """
        marker_id = next(self._marker_ids)
        marker = Element("marker", {"id": marker_id, "overflow": "visible", "markerUnits": "userSpaceOnUse"})
        SubElement(marker, "path", {name: value for name, value in symbol.items() if name != "transform"})
        positions = " ".join(map(_position, run))
        line = {"d": f"M{positions}", "fill": "none", "stroke": "none"}
        return [marker, Element("path", line | dict.fromkeys(_MARKER_ATTRIBUTES, f"url(#{marker_id})"))]


def _split_runs(parent: Element) -> list[list[Element]]:
    """Split the visible children of an element into runs of symbols that differ only in their position.

    Any other child is a run of its own, and so is a symbol with a tooltip.
    """
    runs: list[list[Element]] = []
    previous: dict[str, str] | None = None
    for child in _iterate_visible(parent):
        attributes: dict[str, str] | None = None
        if child.tag == f"{SVG_NAMESPACE}path" and "aria-label" not in child.attrib:
            attributes = dict(child.attrib)
            if not _TRANSLATE_PATTERN.fullmatch(attributes.pop("transform", "")):
                attributes = None
        if attributes is not None and attributes == previous:
            runs[-1].append(child)
        else:
            runs.append([child])
        previous = attributes
    return runs


def _iterate_visible(parent: Element) -> Iterator[Element]:
    """Children of an element of Vega's SVG that draw something."""
    for child in parent:
        tag, attributes = child.tag.removeprefix(SVG_NAMESPACE), child.attrib
        if tag not in _DRAWN_TAGS or attributes.get("display") == "none" or attributes.get("opacity") == "0":
            continue
        is_unpainted = attributes.get("fill", "none") == "none" and attributes.get("stroke", "none") == "none"
        if (tag == "path" and is_unpainted) or (tag == "text" and not "".join(child.itertext()).strip()):
            continue
        yield child


def _position(symbol: Element) -> str:
    """The point to which a symbol is moved, as SVG writes it in a path."""
    x, y = symbol.attrib["transform"].removeprefix("translate(").removesuffix(")").split(",")
    return f"{format_coordinate(float(x))} {format_coordinate(float(y))}"


def _compact_attributes(element: Element, tag: str) -> dict[str, str]:
    """The attributes of an element that a page needs; those with their default value are left out."""
    attributes: dict[str, str] = {}
    for name, value in element.attrib.items():
        if name == "d":
            attributes[name] = shorten_path(value)
        elif name in _COORDINATES:
            attributes[name] = round_coordinates(value)
        elif name in _ATTRIBUTES and value != _DEFAULT_VALUES.get(name):
            attributes[name] = value
    if attributes.get("transform") == "translate(0,0)":
        del attributes["transform"]
    if tag == "text":
        attributes["font-size"] = font_size(element)
    if attributes.get("stroke", "none") == "none" or attributes.get("stroke-width") == "0":
        attributes = {name: value for name, value in attributes.items() if not name.startswith("stroke-")}
    return attributes


def _move_common_attributes(group: Element) -> None:
    """Move attributes that all children of a group have in common to the group, whose children inherit them."""
    children = [child for child in group if child.tag not in ("title", "marker")]
    if len(children) < 2:
        return
    for name in _INHERITED_ATTRIBUTES:
        value = children[0].get(name)
        if value is None or name in group.attrib or any(child.get(name) != value for child in children):
            continue
        group.set(name, value)
        for child in children:
            del child.attrib[name]


def _number_ids(group: Element, definitions: Mapping[str, Element], id_prefix: str) -> None:
    """Copy the definitions that a group refers to, such as clip paths, into it, with ids of its own.

    Vega counts its ids on from drawing to drawing.
    """
    new_ids: dict[str, str] = {}
    for element in list(group.iter()):
        for name, value in element.attrib.items():
            for old_id in definitions.keys() & _REFERENCE_PATTERN.findall(value):
                new_ids.setdefault(old_id, f"{id_prefix}-d{len(new_ids) + 1}")
                element.set(name, value.replace(f"#{old_id})", f"#{new_ids[old_id]})"))
    for old_id, new_id in new_ids.items():
        definition = _copy_definition(definitions[old_id])
        definition.set("id", new_id)
        group.insert(0, definition)


def _copy_definition(element: Element) -> Element:
    """Copy a definition, without the namespace in its tags."""
    attributes = {name: round_coordinates(value) for name, value in element.items()}
    copied = Element(element.tag.removeprefix(SVG_NAMESPACE), attributes)
    copied.extend(map(_copy_definition, element))
    return copied
