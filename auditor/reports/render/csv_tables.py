"""Render a table as CSV, with figures in full precision."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from typing import cast

from auditor.metrics.estimate import Estimate, ShareEstimate
from auditor.reports.document import Cell, Column, CountShare, Footnoted, LowerBound, Name, Printed, Reason, Table, Text
from auditor.reports.render.cell_format import iterate_rows
from auditor.reports.render.text_layout import flatten_text
from auditor.text_safety import escape_csv_cell

CsvValue = str | int | float | None


def render_csv(table: Table) -> str:
    """Render the table as CSV; missing figures are empty, and formulas in texts are escaped.

    An estimate has a column for its value, and others for the lower and upper end of its interval (`_low`, `_high`)
    and, if it is shown, its n (`_n`); where shares have a second interval, for the cells that were measured, also
    `_cells_low` and `_cells_high`. A share is a fraction. Bars are left out.
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    two_intervals = _columns_with_two_intervals(table)
    writer.writerow(
        [name for i, column in enumerate(table.columns) for name in _column_names(column, i, i in two_intervals)]
    )
    for row in iterate_rows(table):
        values: list[CsvValue] = []
        column_index = 0
        for cell in row.cells:
            n_columns = cell.columns if isinstance(cell, Reason) else 1
            for i, column in enumerate(table.columns[column_index : column_index + n_columns], column_index):
                values += _cell_values(cell, column, i in two_intervals)
            column_index += n_columns
        writer.writerow(["" if value is None else escape_csv_cell(value) for value in values])
    return buffer.getvalue()


def column_key(column: Column, index: int) -> str:
    """Name of a column in CSV: its key, else its title; a name from outside stays as it is."""
    if column.key:
        return column.key
    title = flatten_text(column.title)
    key = title if isinstance(column.title, Name) else re.sub(r"\W+", "_", title.lower()).strip("_")
    return key or f"column_{index + 1}"


def _columns_with_two_intervals(table: Table) -> set[int]:
    """Positions of the columns with shares that have an interval for the cells that were measured."""
    positions = set()
    for row in iterate_rows(table):
        column_index = 0
        for cell in row.cells:
            if isinstance(cell, ShareEstimate) and cell.cells_ci_low is not None:
                positions.add(column_index)
            column_index += cell.columns if isinstance(cell, Reason) else 1
    return positions


def _column_names(column: Column, index: int, has_two_intervals: bool) -> list[str]:
    """Names of the CSV columns of a column; none for bars."""
    key = str(escape_csv_cell(column_key(column, index)))
    if column.kind == "bar":
        return []
    interval_key = column.interval_key or key
    if column.kind == "interval":
        return [f"{interval_key}_low", f"{interval_key}_high"]
    if column.kind != "estimate":
        return [key]
    names = [key, f"{interval_key}_low", f"{interval_key}_high", *([f"{key}_n"] if column.show_n else [])]
    return [*names, f"{interval_key}_cells_low", f"{interval_key}_cells_high"] if has_two_intervals else names


def _cell_values(cell: Cell, column: Column, has_two_intervals: bool) -> Sequence[CsvValue]:
    """Values of the CSV columns of a cell, as many as `_column_names`."""
    n_values = len(_column_names(column, 0, has_two_intervals))
    if column.kind == "bar":
        return []
    match cell:
        case None | Reason():
            return [None] * n_values
        case Footnoted():
            return _cell_values(cell.figure, column, has_two_intervals)
        case Printed():
            return [cell.text, *[None] * (n_values - 1)]
        case Estimate() if column.kind == "interval":
            return [cell.ci_low, cell.ci_high]
        case Estimate():
            values = [cell.value, cell.ci_low, cell.ci_high, *([cell.n] if column.show_n else [])]
            cells_ends = [cell.cells_ci_low, cell.cells_ci_high] if isinstance(cell, ShareEstimate) else [None, None]
            return [*values, *cells_ends][:n_values]
        case CountShare():
            return [cell.n / cell.total if cell.total else None]
        case LowerBound():
            return [f">= {cell.value}"]
        case int() | float():
            return [cell]
    return [flatten_text(cast(Text, cell))]
