"""Walk over the blocks of a document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from auditor.reports.document.blocks import Block, Callout, Disclosure, Document, FigureGrid, Section


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
