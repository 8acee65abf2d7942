"""Tables with many columns are broken into several, with all cells in them once."""

from __future__ import annotations

from auditor.reports.document import Cell, Column, Reason, Row, Table
from auditor.reports.render.plain_text import split_table


def table_of(n_columns: int, *cells: Cell) -> Table:
    """A table with one row."""
    columns = [Column(f"c{i}", "number") for i in range(n_columns)]
    return Table("t", "Label", "Caption.", columns, [cells or range(n_columns)])


def test_a_table_that_fits_is_not_broken() -> None:
    table = table_of(5)
    assert split_table(table, 5) == [table]


def test_parts_are_even_and_each_starts_with_the_first_column() -> None:
    parts = split_table(table_of(8), 5)
    assert [[column.title for column in part.columns] for part in parts] == [
        ["c0", "c1", "c2", "c3", "c4"],
        ["c0", "c5", "c6", "c7"],
    ]
    assert [part.rows for part in parts] == [[Row([0, 1, 2, 3, 4])], [Row([0, 5, 6, 7])]]
    assert [part.caption for part in parts] == ["Caption.", "Label, continued."]


def test_a_reason_spans_its_columns_in_each_part() -> None:
    parts = split_table(table_of(7, 0, 1, Reason("few", 4), 6), 4)
    rows = [row.cells for part in parts for row in part.rows if isinstance(row, Row)]
    assert rows == [[0, 1, Reason("few", 2)], [0, Reason("few", 2), 6]]
