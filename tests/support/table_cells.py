"""The cells of a document's tables as plain values, to be compared with a record."""

from __future__ import annotations

from typing import Any

from auditor.metrics.intervals.estimate import Estimate
from auditor.reports.document import (
    BarSegment,
    Cell,
    CountShare,
    Document,
    Footnoted,
    LowerBound,
    Printed,
    Reason,
    Row,
    Table,
)
from auditor.reports.document.blocks import iterate_blocks
from tests.reports.sections.node_text import text_of

N_ROWS = 3
"""Rows of each table that are compared: the cells of the others come from the same columns."""
VOLATILE_COLUMNS = {("environment", "Value"), ("capabilities", "litellm"), ("judge-errors", "Change")}
"""Columns with times or versions, or with a change over the order in which verdicts arrived."""


def list_cells(document: Document) -> dict[str, dict[str, Any]]:
    """The titles of the columns, the number of rows and the first rows of each table of a document, by its id."""
    return {block.id: _describe(block) for block in iterate_blocks(document) if isinstance(block, Table)}


def _describe(table: Table) -> dict[str, Any]:
    titles = [text_of(column.title) for column in table.columns]
    rows = [row.cells if isinstance(row, Row) else row for row in table.rows[:N_ROWS]]
    is_stable = [(table.id, title) not in VOLATILE_COLUMNS for title in titles]
    values = [[_to_value(cell) for i, cell in enumerate(row) if i >= len(titles) or is_stable[i]] for row in rows]
    return {
        "columns": [title for title, keep in zip(titles, is_stable, strict=True) if keep],
        "n_rows": len(table.rows),
        "rows": values,
    }


def _to_value(cell: Cell) -> Any:
    """A cell in JSON: an estimate as its value, ends and n."""
    match cell:
        case float():
            return float(f"{cell:.9g}")
        case None | int() | str():
            return cell
        case Estimate():
            return [*map(_to_value, (cell.value, cell.ci_low, cell.ci_high)), cell.n]
        case Footnoted():
            return [_to_value(cell.figure), cell.marks]
        case CountShare():
            return [cell.n, cell.total]
        case LowerBound():
            return [_to_value(cell.value)]
        case Printed() | Reason():
            return cell.text if isinstance(cell.text, str) else text_of(cell.text)
        case [BarSegment(), *_]:
            return [[segment.series, segment.n] for segment in cell if isinstance(segment, BarSegment)]
        case _:
            return text_of(cell)
