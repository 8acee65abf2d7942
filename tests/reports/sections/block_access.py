"""Blocks and cells of a section, for tests of what a report says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from auditor.reports.document import Block, Cell, Document, Row, Section, Table
from auditor.reports.document.blocks import iterate_blocks

BlockT = TypeVar("BlockT", bound=Block)


def blocks_of(section: Section, kind: type[BlockT]) -> list[BlockT]:
    """The blocks of one type in a section, at any depth."""
    return [block for block in iterate_blocks(Document("", "", "", [section])) if isinstance(block, kind)]


def cells_of(table: Table) -> list[Sequence[Cell]]:
    """The cells of each row of a table, the total row included."""
    return [row.cells if isinstance(row, Row) else row for row in table.rows]
