"""The words, blocks and cells of a document’s nodes, for tests of what a report says."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import TypeVar

from auditor.metrics.intervals.estimate import Estimate
from auditor.reports.document import Block, Cell, Document, Figure, List, ListItem, Reason, Row, Section, Table
from auditor.reports.document.blocks import iterate_blocks


def text_of(node: object) -> str:
    """All texts of a node and of the nodes in it, joined without spaces; plots and numbers are left out."""
    if isinstance(node, str):
        return node
    if isinstance(node, Estimate):
        return node.reason or ""
    if is_dataclass(node):
        return "".join(text_of(getattr(node, field.name)) for field in fields(node))
    return "".join(map(text_of, node)) if isinstance(node, Sequence) else ""


def iterate_nodes(node: object) -> Iterator[object]:
    """A node and all nodes in it, in order."""
    yield node
    if isinstance(node, Sequence) and not isinstance(node, str):
        for item in node:
            yield from iterate_nodes(item)
    elif is_dataclass(node) and not isinstance(node, Mapping):
        for field in fields(node):
            yield from iterate_nodes(getattr(node, field.name))


def tables_of(node: object) -> dict[str, Table]:
    """The tables within a node, by id."""
    return {block.id: block for block in iterate_nodes(node) if isinstance(block, Table)}


def findings_of(node: object) -> list[tuple[str, str]]:
    """Text and status of each finding within a node."""
    lists = [block for block in iterate_nodes(node) if isinstance(block, List) and block.is_findings]
    return [
        (text_of(item.content), item.status) for block in lists for item in block.items if isinstance(item, ListItem)
    ]


def assert_consistent(node: object) -> None:
    """Check ids, links from figures to tables, the width of rows, and that no text has a Python value in it."""
    blocks = list(iterate_nodes(node))
    ids = [(type(block), block.id) for block in blocks if isinstance(block, Section | Table | Figure)]
    assert len(ids) == len(set(ids))
    tables = [block for block in blocks if isinstance(block, Table)]
    for figure in (block for block in blocks if isinstance(block, Figure)):
        assert figure.description
        assert figure.table_id in {table.id for table in tables}
    for table in tables:
        for row in table.rows:
            widths = [
                cell.columns if isinstance(cell, Reason) else 1 for cell in (row.cells if isinstance(row, Row) else row)
            ]
            assert sum(widths) == len(table.columns), table.id
    texts = [block for block in blocks if isinstance(block, str)]
    assert not [text for text in texts if re.search(r"\b(None|nan)\b", text)]


BlockT = TypeVar("BlockT", bound=Block)


def blocks_of(section: Section, kind: type[BlockT]) -> list[BlockT]:
    """The blocks of one type in a section, at any depth."""
    return [block for block in iterate_blocks(Document("", "", "", [section])) if isinstance(block, kind)]


def titled_cells_of(table: Table) -> list[dict[str, Cell]]:
    """The cells of each row of a table by the titles of their columns."""
    titles = [text_of(column.title) for column in table.columns]
    return [dict(zip(titles, cells, strict=True)) for cells in cells_of(table)]


def cells_of(table: Table) -> list[Sequence[Cell]]:
    """The cells of each row of a table, the total row included."""
    return [row.cells if isinstance(row, Row) else row for row in table.rows]
