"""Tables of records, of which each column shows an attribute, and tables of estimates by two names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeVar, cast

from auditor.reports.document import Cell, Column, ColumnKind, Name, Row, Table, Text
from auditor.reports.number_format import NumberStyle

Record = TypeVar("Record")
DerivedCells = Mapping[str, Callable[[Record], Cell]]
"""Functions that compute the cells of columns, by key."""
MAX_LONG_TABLE_ROWS = 10
"""Rows that pages show of a long table whose worst rows come first."""
ADJUSTED_P_COLUMN = Column("p (adjusted)", "number", "adjusted_p_value", style="p_value")


def tabulate(
    table_id: str,
    label: str,
    caption: Text,
    records: Iterable[Record],
    columns: Sequence[Column],
    derived: DerivedCells[Record] | None = None,
    total: Record | None = None,
    max_rows: int | None = None,
) -> Table:
    """Build a table with one row for each record; each column shows the attribute that its `key` names.

    Args:
        columns: a key may be a path of attributes, such as "score.mae"; by default it is the title in lower case with
            underscores. Attributes of None are None.
        derived: functions that compute the cells of columns, by key, in place of an attribute.
        total: the record of the total row, if there is one.
        max_rows: see `Table`.

    Raises:
        AttributeError: a key is neither derived nor an attribute of the records.
    """
    keys = [column.key or str(column.title).lower().replace(" ", "_") for column in columns]
    getters = [(derived or {}).get(key) or partial(_get_attribute, path=key) for key in keys]
    rows: list[Row] = [Row([get_cell(record) for get_cell in getters]) for record in records]
    if total is not None:
        rows.append(Row([get_cell(total) for get_cell in getters], is_total=True))
    return Table(table_id, label, caption, columns, rows, max_rows=max_rows)


def make_columns(kind: ColumnKind, titles: Mapping[str, str], style: NumberStyle = "decimal") -> list[Column]:
    """Columns of one kind, from their titles by key."""
    return [Column(title, kind, key, style=style) for key, title in titles.items()]


def _get_attribute(record: object, path: str) -> Cell:
    """The attribute at a path such as "score.mae"; None where an object on the path is None."""
    for name in path.split("."):
        record = None if record is None else getattr(record, name)
    return cast(Cell, record)


def tabulate_matrix(
    table_id: str,
    label: str,
    caption: Text,
    first_column: Column,
    cells: Mapping[str, Mapping[str, Cell]],
    column_names: Iterable[str] = (),
    style: NumberStyle = "decimal",
    max_rows: int | None = None,
) -> Table:
    """Build a table of estimates with one row and one column for each name, such as a country and a model.

    Args:
        first_column: has the names of the rows.
        cells: by row, then by column; those that a row lacks are missing values.
        column_names: by default all columns of the cells, in the order of their first cell.
        max_rows: see `Table`.
    """
    names = list(column_names) or list(dict.fromkeys(name for row in cells.values() for name in row))
    columns = [first_column, *(Column(Name(name), "estimate", style=style) for name in names)]
    rows = [[name, *(by_column.get(column) for column in names)] for name, by_column in cells.items()]
    return Table(table_id, label, caption, columns, rows, max_rows=max_rows)
