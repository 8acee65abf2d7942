"""Walk over the blocks of a document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from auditor.reports.document.blocks import Block, Callout, Disclosure, Document, Figure, FigureGrid, Section


def iterate_blocks(document: Document) -> Iterator[Block]:
    """Yield every block of a document, each before the blocks within it, in reading order."""
    return _iterate_nested([*document.opening, *document.sections])


def iterate_figures(document: Document) -> Iterator[Figure]:
    """Yield every figure of a document, in reading order."""
    return (block for block in iterate_blocks(document) if isinstance(block, Figure))


def _iterate_nested(blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield blocks and, recursively, the blocks within them."""
    for block in blocks:
        yield block
        match block:
            case Section() | Callout() | Disclosure():
                yield from _iterate_nested(block.blocks)
            case FigureGrid():
                yield from block.figures
