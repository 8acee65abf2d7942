"""Check tables that other packages build: a cell of another type than its column's stops a report, or is lost in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from auditor.metrics.intervals.estimate import Estimate
from auditor.reports.document.blocks import (
    Code,
    Document,
    Footnoted,
    Link,
    LowerBound,
    Printed,
    Reason,
    Row,
    Section,
    Strong,
    Table,
    iterate_blocks,
)
from auditor.reports.document.columns import Column, CountShare, Name

_TEXTS = (str, list, tuple, Name, Strong, Code, Link)
_FIGURES = (int, float, Estimate, Footnoted, Printed, CountShare, LowerBound)
_CELL_TYPES: Mapping[str, tuple[type, ...]] = {
    "name": _TEXTS,
    "text": _TEXTS,
    "number": _FIGURES,
    "estimate": _FIGURES,
    "interval": (Estimate, Footnoted),
    "share": _FIGURES,
    "bar": (list, tuple),
}


_CSV_CELL_TYPES = {
    kind: (*_TEXTS, *_FIGURES) if kind in ("name", "text", "number", "share") else types
    for kind, types in _CELL_TYPES.items()
}
"""In CSV, texts and figures are written alike, but in columns that become several."""


def iterate_tables(section: Section) -> Iterator[Table]:
    """Every table of a section."""
    return (block for block in iterate_blocks(Document("", "", "", [section])) if isinstance(block, Table))


def find_table_problem(table: Table) -> str | None:
    """What keeps a table from being shown in every form, as the end of a sentence; None if nothing does."""
    return _find_problem(table, _CELL_TYPES)


def find_csv_problem(table: Table) -> str | None:
    """What keeps a table from being written as CSV, as the end of a sentence; None if nothing does."""
    return _find_problem(table, _CSV_CELL_TYPES)


def _find_problem(table: Table, cell_types: Mapping[str, tuple[type, ...]]) -> str | None:
    """What is wrong with a table, or with a cell of another type than those of its column's kind."""
    if not isinstance(table.id, str) or not re.fullmatch(r"[\w-]+", table.id):
        return f"the id '{table.id}' has other characters than letters, digits, - and _"
    for column in table.columns:
        if not isinstance(column, Column) or column.kind not in cell_types:
            return f"the table '{table.id}' has the column {column!r}, which is no Column of a known kind"
    for number, row in enumerate(table.rows, start=1):
        cells = row.cells if isinstance(row, Row) else row
        if problem := _find_row_problem(cells, table.columns, cell_types):
            return f"row {number} of the table '{table.id}' {problem}"
    return None


def _find_row_problem(cells: Any, columns: Sequence[Column], cell_types: Mapping[str, tuple[type, ...]]) -> str | None:
    """What is wrong with a row; None if nothing is."""
    if not isinstance(cells, list | tuple):
        return f"is of the type {type(cells).__name__}, not a list of cells"
    width = sum(cell.columns if isinstance(cell, Reason) else 1 for cell in cells)
    if width != len(columns):
        return f"has {width} cells for {len(columns)} columns"
    if width > len(cells):  # a reason that spans several columns
        return None
    for cell, column in zip(cells, columns, strict=True):
        is_known = cell is None or isinstance(cell, (Reason, *cell_types[column.kind]))
        is_no_figure = isinstance(cell, bool) or (isinstance(cell, float) and cell != cell)
        if not is_known or (is_no_figure and cell_types is _CELL_TYPES):
            return f"has {cell!r} of the type {type(cell).__name__} in a column of the kind '{column.kind}'"
    return None
