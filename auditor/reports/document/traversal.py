"""Walk over the blocks of a document."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from auditor.reports.document.blocks import (
    Block,
    Callout,
    Disclosure,
    Document,
    FigureGrid,
    List,
    ListItem,
    Paragraph,
    Section,
)
from auditor.reports.document.inline import Code, Link, Name, Strong, Text


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


MIN_REPEATED_WORDS = 8
"""Shorter texts may occur again."""


def drop_repeated(sections: Sequence[Section]) -> list[Section]:
    """The sections without the paragraphs and items of lists that an earlier section has in the same words.

    A subsection or list that has nothing else is dropped with them; a section is not.
    """
    seen: set[str] = set()
    remaining = []
    for section in sections:
        texts: list[str] = []
        remaining.append(replace(section, blocks=_drop_texts(section.blocks, seen, texts)))
        seen.update(texts)
    return remaining


def _drop_texts(blocks: Sequence[Block], seen: Collection[str], texts: list[str]) -> list[Block]:
    """Blocks without the texts that were seen; texts of the others are added to `texts`."""
    remaining: list[Block] = []
    for block in blocks:
        match block:
            case Paragraph() if _is_repeated(block.content, seen, texts):
                continue
            case List():
                items = [
                    item
                    for item in block.items
                    if not _is_repeated(item.content if isinstance(item, ListItem) else item, seen, texts)
                ]
                if not items:
                    continue
                block = replace(block, items=items)
            case Section():
                inner = _drop_texts(block.blocks, seen, texts)
                if not inner or (len(inner) < len(block.blocks) and _are_notes(inner)):
                    continue
                block = replace(block, blocks=inner)
        remaining.append(block)
    return remaining


def _are_notes(blocks: Sequence[Block]) -> bool:
    """Whether blocks only explain others."""
    return all(isinstance(block, Paragraph) and block.role == "note" for block in blocks)


def _is_repeated(content: Text, seen: Collection[str], texts: list[str]) -> bool:
    """Whether a text of some length was seen; one that was not is added to `texts`."""
    text = flatten_inline(content)
    if len(text.split()) >= MIN_REPEATED_WORDS and text in seen:
        return True
    texts.append(text)
    return False


def flatten_inline(text: Text) -> str:
    """The characters of a text, without its markup."""
    match text:
        case str():
            return text
        case Strong():
            return flatten_inline(text.content)
        case Name() | Code() | Link():
            return text.text
    return "".join(map(flatten_inline, text))


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
