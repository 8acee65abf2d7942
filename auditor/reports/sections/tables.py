"""Tables of records: each column shows one attribute."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import TypeVar

from auditor.reports.document import Cell, Column, Row, Table, Text

Record = TypeVar("Record")


def tabulate(
    table_id: str,
    label: str,
    caption: Text,
    records: Iterable[Record],
    columns: Sequence[Column],
    derived: Mapping[str, Callable[[Record], Cell]] | None = None,
    total: Record | None = None,
) -> Table:
    """Build a table with one row for each record; each column shows the attribute that its `key` names.

    Args:
        columns: a key may be a path of attributes, such as "score.mae".
        derived: functions that compute the cells of columns, by key, in place of an attribute.
        total: the record of the total row, if there is one.

    Raises:
        AttributeError: a key is neither derived nor an attribute of the records.
    """
    getters = [(derived or {}).get(column.key) or attrgetter(column.key) for column in columns]
    rows: list[Row] = [Row([get_cell(record) for get_cell in getters]) for record in records]
    if total is not None:
        rows.append(Row([get_cell(total) for get_cell in getters], is_total=True))
    return Table(table_id, label, caption, columns, rows)
