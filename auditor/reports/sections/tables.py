"""Tables of records, of which each column shows an attribute, and tables of estimates by two names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import compress
from types import NoneType, UnionType
from typing import Any, TypeVar, cast, get_args, get_type_hints

from auditor.metrics.estimate import Estimate, Tested
from auditor.reports.data.report_model import ReportModel, list_publications
from auditor.reports.document import Cell, Column, ColumnKind, CountShare, Inline, Name, Row, Table, Text
from auditor.reports.number_format import NumberStyle

Record = TypeVar("Record")
DerivedCells = Mapping[str, Callable[[Record], Cell]]
"""Functions that compute the cells of columns, by key."""
MAX_LONG_TABLE_ROWS = 5
"""Rows that pages show of a long table whose worst rows come first."""


def tabulate(
    table_id: str,
    label: str,
    caption: Text,
    records: Iterable[Record],
    columns: type[ReportModel] | Sequence[Column],
    derived: DerivedCells[Record] | None = None,
    total: Record | None = None,
    max_rows: int | None = None,
    more_columns: Sequence[Column] = (),
) -> Table:
    """Build a table with one row for each record; each column shows the attribute that its `path` or `key` names.

    Args:
        columns: the class of the records, whose fields have columns for this table; or the columns. A path may lead
            through several attributes, such as "score.mae", and is by default the title in lower case with underscores.
            Attributes of None are None.
        derived: functions that compute the cells of columns, by key, in place of an attribute.
        total: the record of the total row, if there is one.
        max_rows: see `Table`.
        more_columns: columns after those of the class.

    Raises:
        AttributeError: a key is neither derived nor an attribute of the records.
    """
    shown = [*(list_columns(columns, table_id) if isinstance(columns, type) else columns), *more_columns]
    getters = [_make_getter(column, derived or {}) for column in shown]
    cells = [[get_cell(record) for get_cell in getters] for record in (*records, *([] if total is None else [total]))]
    is_shown = [not column.is_optional or any(row[i] is not None for row in cells) for i, column in enumerate(shown)]
    rows = [Row(list(compress(row, is_shown))) for row in cells]
    if total is not None:
        rows[-1] = replace(rows[-1], is_total=True)
    shown = list(compress(shown, is_shown))
    return Table(table_id, label, _add_notes(caption, shown), shown, rows, max_rows=max_rows)


def list_columns(row_class: type[ReportModel], table_id: str = "", prefix: str = "") -> list[Column]:
    """The columns of a table that annotate the fields of its row class, in the order of the fields.

    Args:
        prefix: path of the row in the records of the table, with a dot at its end; empty if it is the record.
    """
    shown = (column for column in _read_columns(row_class) if column.table in ("", table_id))
    return [replace(column, path=f"{prefix}{column.path}") for column in shown]


@cache
def _read_columns(row_class: type[ReportModel]) -> list[Column]:
    """The columns that annotate the fields of a class, with the kind, key and path of the attribute that each shows."""
    columns = []
    for name, field in row_class.model_fields.items():
        for column in field.metadata:
            if isinstance(column, Column):
                kind = _infer_kind(field.annotation, column.part) if column.kind == "text" else column.kind
                path = column.path or (f"{name}.{column.part}" if column.part else name)
                publication = list_publications(row_class).get(name)
                published_key = publication.keys.get(column.part) if publication and not publication.base else None
                columns.append(replace(column, kind=kind, key=column.key or published_key or path, path=path))
    return columns


def _infer_kind(annotation: Any, path: str) -> ColumnKind:
    """The kind of the cells of a field's type, or of the type of an attribute of its value."""
    for name in filter(None, path.split(".")):
        owner = _drop_none(annotation)
        attribute = getattr(owner, name, None)
        annotation = get_type_hints(attribute.fget)["return"] if isinstance(attribute, property) else None
        annotation = annotation or get_type_hints(owner)[name]
    cell_type = _drop_none(annotation)
    if not isinstance(cell_type, type):
        return "text"
    if issubclass(cell_type, CountShare):
        return "share"
    is_number = issubclass(cell_type, (int, float)) and cell_type is not bool
    return "estimate" if issubclass(cell_type, Estimate) else "number" if is_number else "text"


def _drop_none(annotation: Any) -> Any:
    """The type of an annotation that also allows None."""
    types = [option for option in get_args(annotation) if option is not NoneType]
    return types[0] if isinstance(annotation, UnionType) and len(types) == 1 else annotation


def _make_getter(column: Column, derived: DerivedCells[Any]) -> Callable[[Any], Cell]:
    """The function that returns a record's cell in a column."""
    key = column.key or str(column.title).lower().replace(" ", "_")
    return derived.get(key) or partial(_get_attribute, path=column.path or key)


def _add_notes(caption: Text, columns: Sequence[Column]) -> Text:
    """The caption, followed by what the columns mean."""
    parts = [caption] if isinstance(caption, Inline) else list(caption)
    notes = [f" {column.title}: {column.note}." for column in columns if column.note]
    return [*parts, *notes] if notes else caption


def sort_by_p_value(records: Iterable[Record], get_test: Callable[[Record], Tested]) -> list[Record]:
    """The records by adjusted p-value, smallest first; those without one are the last."""
    p_values = ((get_test(record).adjusted_p_value, record) for record in records)
    return [record for _, record in sorted(p_values, key=lambda pair: 2.0 if pair[0] is None else pair[0])]


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
