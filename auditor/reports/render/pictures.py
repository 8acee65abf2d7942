"""What stands for figures and heat maps in the forms without pictures: their titles, and where the numbers are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from auditor.reports.document import Block, Disclosure, Document, Figure, FigureGrid, HeatMap, Table
from auditor.reports.document.traversal import iterate_blocks

MAX_TITLES = 4


def label_tables(document: Document) -> dict[str, str]:
    """Labels of the tables that have the numbers of a figure, by id; these tables are printed with their label."""
    blocks = list(iterate_blocks(document))
    table_ids = {block.table_id for block in blocks if isinstance(block, Figure)}
    return {block.id: block.label for block in blocks if isinstance(block, Table) and block.id in table_ids}


def group_pictures(blocks: Sequence[Block]) -> Iterable[tuple[bool, list[Block]]]:
    """Group consecutive blocks by whether they are pictures, or disclosures of nothing but pictures."""
    return ((is_picture, list(group)) for is_picture, group in groupby(blocks, _is_picture))


def _is_picture(block: Block) -> bool:
    """Whether the block shows nothing but figures and heat maps."""
    if isinstance(block, Disclosure):
        return bool(block.blocks) and all(map(_is_picture, block.blocks))
    return isinstance(block, Figure | FigureGrid | HeatMap)


def describe_pictures(blocks: Sequence[Block], table_labels: dict[str, str]) -> str:
    """Name the figures and heat maps that only the page shows, and the tables that have their numbers."""
    titles: list[str] = []
    tables: list[str] = []
    for block in blocks:
        for picture in _iterate_pictures(block):
            titles.append(picture.label if isinstance(picture, HeatMap) else picture.title)
            if isinstance(picture, Figure) and picture.table_id in table_labels:
                tables.append(f"“{table_labels[picture.table_id]}”")
    table_names = list(dict.fromkeys(tables))
    if not titles:
        return ""
    if len(titles) > MAX_TITLES:
        titles[MAX_TITLES:] = [f"and {len(titles) - MAX_TITLES} more"]
    reference = f" For the numbers see the table{'s' * (len(table_names) > 1)} {', '.join(table_names)}."
    return f"Shown in the HTML report: {'; '.join(titles)}.{reference if table_names else ''}"


def _iterate_pictures(block: Block) -> Iterable[Figure | HeatMap]:
    """The figures and heat maps of a block that shows nothing else."""
    match block:
        case Figure() | HeatMap():
            yield block
        case FigureGrid():
            yield from block.figures
        case Disclosure():
            for nested_block in block.blocks:
                yield from _iterate_pictures(nested_block)
