"""Break a table with many columns into several, each with the first column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from math import ceil

from auditor.reports.document import Cell, Reason, Table
from auditor.reports.render.cell_format import iterate_rows


def split_table(table: Table, max_columns: int) -> list[Table]:
    """Break a table into tables with at most `max_columns` columns; only the first has the caption."""
    n_other_columns = len(table.columns) - 1
    if n_other_columns < max_columns:
        return [table]
    n_parts = ceil(n_other_columns / (max_columns - 1))
    part_size = ceil(n_other_columns / n_parts)
    indices_by_part = [
        [0, *range(start, min(start + part_size, n_other_columns + 1))]
        for start in range(1, n_other_columns + 1, part_size)
    ]
    parts = [
        replace(
            table,
            columns=[table.columns[i] for i in indices],
            rows=[replace(row, cells=_select_cells(row.cells, indices)) for row in iterate_rows(table)],
        )
        for indices in indices_by_part
    ]
    return [parts[0], *(replace(part, caption=f"{table.label}, continued.") for part in parts[1:])]


def _select_cells(cells: Sequence[Cell], column_indices: Sequence[int]) -> list[Cell]:
    """The cells of some columns; a reason spans those of its columns that are selected."""
    cell_by_column = [i for i, cell in enumerate(cells) for _ in range(cell.columns if isinstance(cell, Reason) else 1)]
    selected: list[Cell] = []
    for i, group in groupby(cell_by_column[column_index] for column_index in column_indices):
        cell = cells[i]
        selected.append(Reason(cell.text, len(list(group))) if isinstance(cell, Reason) else cell)
    return selected
