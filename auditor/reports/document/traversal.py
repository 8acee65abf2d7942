"""Walk over the blocks of a document."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from auditor.reports.document.blocks import Block, Callout, Disclosure, Document, FigureGrid, Section
from auditor.reports.document.inline import Code


def iterate_blocks(document: Document) -> Iterator[Block]:
    """Every block of a document in reading order, each before the blocks within it."""
    return _iterate_nested([*document.opening, *document.sections])


def _iterate_nested(blocks: Sequence[Block]) -> Iterator[Block]:
    """Every block of a sequence, each before the blocks within it."""
    for block in blocks:
        yield block
        match block:
            case Section() | Callout() | Disclosure():
                yield from _iterate_nested(block.blocks)
            case FigureGrid():
                yield from block.figures


def map_code(node: Any, function: Callable[[str], str]) -> Any:
    """A document, or a part of one, in which a function changed the text of each `Code`; the same if none changed."""
    if isinstance(node, Code):
        text = function(node.text)
        return node if text == node.text else Code(text)
    if isinstance(node, (list, tuple)):
        parts = [map_code(part, function) for part in node]
        is_same = all(new is old for new, old in zip(parts, node, strict=True))
        return node if is_same or hasattr(node, "_fields") else type(node)(parts)
    if not is_dataclass(node) or isinstance(node, type):
        return node
    values = {field.name: getattr(node, field.name) for field in fields(node) if field.init}
    changes = {name: new for name, old in values.items() if (new := map_code(old, function)) is not old}
    return replace(node, **changes) if changes else node
