"""Rows of the tables: values in the types of their columns, rows whose key exists, and the records of rows."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from sqlalchemy import Column, ColumnElement, Connection, Insert, Table, delete, insert, select

from auditor.domain.records import is_stored
from auditor.errors import UnstorableError
from auditor.storage.row_classes import conversion_of, row_class_of

R = TypeVar("R")


def table_of(record_class: type) -> Table:
    """Return the SQLAlchemy Core table of a class of records, or of a row class."""
    row_class = row_class_of(record_class) if is_stored(record_class) else record_class
    table = row_class.__table__  # type: ignore[attr-defined]
    assert isinstance(table, Table)
    return table


def select_records(
    connection: Connection,
    record_class: type[R],
    *conditions: ColumnElement[bool],
    order_by: Iterable[ColumnElement[Any]] = (),
    limit: int | None = None,
) -> list[R]:
    """Load the records of a class that meet all conditions on the columns of their table."""
    table, conversion = table_of(record_class), conversion_of(record_class)
    query = select(*(table.c[name] for name in conversion.column_names)).where(*conditions)
    return list(map(conversion.to_record, connection.execute(query.order_by(*order_by).limit(limit))))


def coerce_values(record_class: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Convert values to their columns' types, so that they equal what is read back (0.0, not 0, in a float column).

    Raises:
        UnstorableError: a column cannot hold its value, such as a number that is not finite.
    """
    columns = _columns_by_name(record_class)
    return {name: value if value is None else _coerce_value(columns[name], value) for name, value in values.items()}


@functools.cache
def _columns_by_name(record_class: type) -> dict[str, Column[Any]]:
    """Columns by name, in a plain dict: SQLAlchemy's collection takes longer than the conversion of a value."""
    return dict(table_of(record_class).c.items())


def make_storable(record_class: type[Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Convert values like `coerce_values`, but replace those that cannot be stored.

    Such a number becomes None; characters that cannot be encoded become backslash escapes.
    """
    columns = table_of(record_class).c
    return {name: _coerce_or_replace(columns[name], value) for name, value in values.items()}


def _coerce_or_replace(column: Column[Any], value: Any) -> Any:
    """Convert a value like `_coerce_value`, but replace one that cannot be stored; see `make_storable`."""
    if isinstance(value, str):
        value = value.encode("utf-8", "backslashreplace").decode("utf-8")
    try:
        value = None if value is None else _coerce_value(column, value)
    except UnstorableError:
        return None
    is_too_large = isinstance(value, int) and not -(2**31) <= value < 2**31  # PostgreSQL's INTEGER; SQLite's has 64 bit
    return None if is_too_large else value


def _coerce_value(column: Column[Any], value: Any) -> Any:
    """Convert a value to its column's type. Raises UnstorableError if this is not possible."""
    kind = column.type.python_type
    try:
        value = kind(value)
    except (TypeError, ValueError, OverflowError):
        raise _unstorable_value_error(column) from None
    if kind is float:
        if not math.isfinite(value):
            raise _unstorable_value_error(column)
        return value + 0.0  # SQLite stores -0.0 as 0.0
    return value.replace("\0", "\\x00") if kind is str else value  # as `tables.ServerText` does


def _unstorable_value_error(column: Column[Any]) -> UnstorableError:
    """Build the error for a value that a column cannot hold."""
    message = f"the value of '{column.name}' cannot be stored in the table '{column.table.name}'."
    return UnstorableError(message, "Correct it in its source, then run the same command again.")


def insert_new(connection: Connection, record_class: type[Any], values: list[dict[str, Any]]) -> None:
    """Insert rows; a row whose key exists is skipped."""
    if values:
        connection.execute(_insert_statement(connection, record_class).on_conflict_do_nothing(), values)


def replace_rows(connection: Connection, record_class: type[Any], audit_id: int, values: list[dict[str, Any]]) -> None:
    """Insert rows in place of all that an audit has of this class."""
    table = table_of(record_class)
    connection.execute(delete(table).where(table.c.audit_id == audit_id))
    if values:
        connection.execute(insert(table), values)


def insert_rows(connection: Connection, record_class: type[Any], values: list[dict[str, Any]]) -> None:
    """Insert rows whose keys are new."""
    if values:
        connection.execute(insert(table_of(record_class)), values)


def upsert(
    connection: Connection,
    record_class: type[Any],
    values: list[dict[str, Any]],
    column_names: Iterable[str] | None = None,
) -> None:
    """Insert rows; a row whose key exists is replaced.

    Args:
        column_names: of the columns that are replaced, also by nothing; None for those that the rows have.
    """
    if not values:
        return
    table = table_of(record_class)
    key_names = [column.name for column in table.primary_key]
    statement = _insert_statement(connection, record_class)
    updates = {name: statement.excluded[name] for name in column_names or values[0] if name not in key_names}
    connection.execute(statement.on_conflict_do_update(index_elements=key_names, set_=updates), values)


def _insert_statement(connection: Connection, record_class: type) -> Any:
    """Build an INSERT of the database's dialect, which, unlike SQLAlchemy's own, supports ON CONFLICT."""
    # Imported on first use: a dialect imports all of its drivers, which takes time.
    if connection.dialect.name == "postgresql":
        from sqlalchemy.dialects.postgresql import insert
    else:
        from sqlalchemy.dialects.sqlite import insert  # type: ignore[assignment]
    statement: Insert = insert(table_of(record_class))
    return statement
