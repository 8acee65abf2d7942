"""Tables made from the declarations of records, and values in the types of their columns."""

from __future__ import annotations

import functools
import json
import math
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import datetime
from enum import StrEnum
from inspect import isclass, signature
from operator import attrgetter
from types import NoneType, UnionType
from typing import Annotated, Any, Generic, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import sqlalchemy as sa
from sqlalchemy.types import TypeEngine

from auditor.domain import canonical_json
from auditor.domain.records import (
    CallKey,
    ColumnMark,
    References,
    RowOwner,
    StoredAs,
    table_declaration,
)
from auditor.errors import StorageError, UnstorableError

R = TypeVar("R")


METADATA = sa.MetaData()
"""Of the tables that were used so far; `auditor.storage.schema.load_metadata` makes the others."""


class ServerText(sa.TypeDecorator[str]):
    """Text column for PostgreSQL: compared byte by byte, as in SQLite, and with NUL, which it refuses, as `\\x00`."""

    impl = sa.String
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: sa.Dialect) -> str | None:
        return _escape_nul(value)

    def bind_processor(self, dialect: sa.Dialect) -> Callable[[str | None], str | None]:
        """The function that converts each value; that of the base class takes three times as long."""
        return _escape_nul


def _escape_nul(value: str | None) -> str | None:
    """Replace NUL characters of a text by the four characters `\\x00`."""
    return value if value is None or "\0" not in value else value.replace("\0", "\\x00")


_COLUMN_TYPES: Mapping[type, TypeEngine[Any]] = {
    bool: sa.Boolean(), int: sa.Integer(), float: sa.Float(), bytes: sa.LargeBinary(),
}  # fmt: skip
_WORDS = sa.String().with_variant(ServerText(collation="C"), "postgresql")
_LONG_TEXT = sa.Text().with_variant(ServerText(collation="C"), "postgresql")


_tables: dict[type, sa.Table] = {}
_TABLES_LOCK = threading.Lock()
"""Held while a table is made, since a report runs queries in several threads."""


def table_of(record_class: type[Any]) -> sa.Table:
    """The SQLAlchemy Core table of a class of records; made by the first call, since no command needs all tables.

    This is all that a new table needs besides a migration: the frozen dataclass with its `stored` declaration, in a
    module that `auditor.storage.schema` or a probe lists. `records` has the functions that write and read.

    Raises:
        TypeError: the class has no declaration, or a field has a type that cannot be stored.
    """
    if record_class not in _tables:
        with _TABLES_LOCK:
            if record_class not in _tables:
                declaration = table_declaration(record_class)
                indexes = [sa.Index(name, *names) for name, names in declaration.indexes.items()]
                columns = make_columns(record_class)
                _tables[record_class] = sa.Table(declaration.name, METADATA, *columns, *indexes)
    return _tables[record_class]


def make_columns(record_class: type) -> list[sa.Column[Any]]:
    """The columns of a record's table in their order, as `make revision` compares them with a database's.

    Raises:
        TypeError: the class has no declaration, or a field has a type that cannot be stored.
    """
    declaration = table_declaration(record_class)
    columns = list(_OWNER_COLUMNS[declaration.owner]())
    layout = _Layout.of(record_class)
    columns += [stored.make_column() for stored in layout.fields if ColumnMark.OWNERS not in stored.marks]
    columns.sort(key=lambda column: (*declaration.first_columns, column.name).index(column.name))
    if declaration.position is not None:
        columns.insert(declaration.position, sa.Column("position", sa.Integer(), nullable=False))
    return columns


def _id_column() -> sa.Column[Any]:
    return sa.Column("id", sa.Integer(), primary_key=True)


def _audit_column(*, is_owned: bool = True, is_key: bool = True, is_indexed: bool = False) -> sa.Column[Any]:
    """Column of the audit that a row belongs to; `is_owned`: the row is deleted with it."""
    audit = sa.ForeignKey("audit.id", ondelete="CASCADE" if is_owned else None)
    # Its type is stated: one taken from the other column is unknown until that table is made.
    return sa.Column("audit_id", sa.Integer(), audit, primary_key=is_key, nullable=False, index=is_indexed or None)


_OWNER_COLUMNS: Mapping[RowOwner, Callable[[], Sequence[sa.Column[Any]]]] = {
    RowOwner.AUDIT: lambda: [_audit_column()],
    RowOwner.AUDIT_LOG: lambda: [_id_column(), _audit_column(is_owned=False, is_key=False)],
    RowOwner.AUDIT_NUMBERED: lambda: [_id_column(), _audit_column(is_key=False, is_indexed=True)],
    RowOwner.PROBE: lambda: [_audit_column(), sa.Column("probe", _WORDS, primary_key=True)],
    RowOwner.DATABASE: lambda: [],
    RowOwner.DATABASE_NUMBERED: lambda: [_id_column()],
}


# --- fields -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _StoredField:
    """A field with one column: its type without `None` and marks, and what these said.

    Attributes:
        path: attribute of the record with the value, such as `cell.country`.
        default: of the field; None if it has none.
    """

    path: str
    type: Any
    is_optional: bool
    marks: tuple[Any, ...]
    default: Any

    @property
    def _stored_as(self) -> StoredAs:
        return next((mark for mark in self.marks if isinstance(mark, StoredAs)), StoredAs())

    @functools.cached_property
    def column_name(self) -> str:
        return self._stored_as.name or self.path.rpartition(".")[2]

    @functools.cached_property
    def is_key(self) -> bool:
        return ColumnMark.KEY in self.marks

    def make_column(self) -> sa.Column[Any]:
        """Make the field's column."""
        foreign_keys = [
            sa.ForeignKey(mark.column, ondelete="CASCADE" if mark.is_owned else None)
            for mark in self.marks
            if isinstance(mark, References)
        ]
        return sa.Column(
            self.column_name,
            self._column_type,
            *foreign_keys,
            primary_key=self.is_key,
            nullable=not self.is_key and (self.is_optional or ColumnMark.NULLABLE in self.marks),
            unique=ColumnMark.UNIQUE in self.marks or None,
            index=ColumnMark.INDEXED in self.marks or None,
            info={type(mark): mark for mark in self.marks if isinstance(mark, CallKey)},
        )

    @property
    def _column_type(self) -> TypeEngine[Any]:
        if column_type := _COLUMN_TYPES.get(self.type):
            return column_type
        if (
            self._stored_as.write
            or self.type is Any
            or get_origin(self.type) in (Literal, Mapping, tuple)
            or issubclass(self.type, str | datetime)
        ):
            return _LONG_TEXT if ColumnMark.LONG_TEXT in self.marks else _WORDS
        raise TypeError(f"values of the type {self.type} cannot be stored: field '{self.path}'")

    def write_all(self, values: Sequence[Any]) -> Sequence[Any]:
        """Convert values to those of the column."""
        if self.is_key and self.is_optional:
            return [value or "" for value in values]
        if self._write is None:
            return values
        return [None if value is None else self._write(value) for value in values]

    @functools.cached_property
    def _write(self) -> Callable[[Any], Any] | None:
        """Function that converts a value to that of its column; None if it is stored as it is."""
        if self._stored_as.write:
            return self._stored_as.write
        if self.type is Any:
            return canonical_json
        if get_origin(self.type) is Mapping:
            return lambda value: canonical_json(dict(value))
        if get_origin(self.type) is tuple:
            return lambda value: canonical_json(list(value))
        return (lambda value: value.isoformat(timespec="milliseconds")) if self.type is datetime else None

    @property
    def is_json(self) -> bool:
        """Whether a value is stored as JSON."""
        is_plain = self._stored_as.read is None and self._stored_as.write is None
        return is_plain and (self.type is Any or get_origin(self.type) in (Mapping, tuple))

    @property
    def read(self) -> Callable[[Any], Any] | None:
        """Function that converts the value of the column back; None if it stays as it is."""
        if self._stored_as.read:
            return self._stored_as.read
        if self.type is Any or get_origin(self.type) is Mapping:
            return json.loads
        if get_origin(self.type) is tuple:
            return lambda value: tuple(json.loads(value))
        if self.type is datetime:
            return datetime.fromisoformat
        if isclass(self.type) and issubclass(self.type, StrEnum):
            return _Members(self.column_name, self.type).__getitem__
        return None


class _Members(dict[str, StrEnum]):
    """Members of an enumeration by the values of its column."""

    def __init__(self, column_name: str, members: type[StrEnum]) -> None:
        super().__init__((member.value, member) for member in members)
        self._column_name = column_name
        self._members = members

    def __missing__(self, value: str) -> StrEnum:
        if declared := [member for member in self._members if member.value == value]:  # by a probe, since then
            self[value] = declared[0]
            return declared[0]
        raise StorageError(
            f"a row of the database has the unknown {self._column_name} '{value}'.",
            "Name the row with `auditor verify`. If a newer version of auditor wrote it, update auditor; else restore "
            "a backup.",
        )


@dataclass(frozen=True)
class _Layout:
    """The fields of a record that have columns, those of its parts among them, in order.

    Attributes:
        parts: of each part, the index of its first field, the number of its own fields, and what makes it of their
            values; parts of parts before them, and later ones first, so that no replaced part moves another.
        make: what makes the record of the values of its own fields.
    """

    fields: Sequence[_StoredField]
    parts: Sequence[tuple[int, int, Callable[..., Any]]]
    make: Callable[..., Any]

    @classmethod
    def of(cls, record_class: type[Any], prefix: str = "", outer_marks: tuple[Any, ...] = ()) -> _Layout:
        """The layout of a class; `prefix` and `outer_marks` are the path and the marks of a part."""
        stored_fields: list[_StoredField] = []
        parts: list[tuple[int, int, Callable[..., Any]]] = []
        names = []
        for name, hint, default in _iter_fields(record_class):
            value_type, is_optional, marks = _split_hint(hint)
            if ColumnMark.NOT_STORED in marks:
                continue
            names.append(name)
            marks = (*outer_marks, *marks)
            is_record = isclass(value_type) and (is_dataclass(value_type) or hasattr(value_type, "_fields"))
            if is_record and not any(isinstance(mark, StoredAs) and mark.write for mark in marks):
                part, start = cls.of(value_type, f"{prefix}{name}.", marks), len(stored_fields)
                parts += [(start + first, n_fields, make) for first, n_fields, make in part.parts]
                parts.append((start, part.n_fields, part.make))
                stored_fields += part.fields
            else:
                stored_fields.append(_StoredField(prefix + name, value_type, is_optional, marks, default))
        parts.sort(key=lambda part: -part[0])
        is_positional = names == list(signature(record_class).parameters)
        make = record_class if is_positional else lambda *values: record_class(**dict(zip(names, values, strict=True)))
        return cls(stored_fields, parts, make)

    @property
    def n_fields(self) -> int:
        """Number of the record's own fields."""
        return len(self.fields) - sum(n_fields - 1 for _, n_fields, _ in self.parts)


def _iter_fields(record_class: type[Any]) -> Iterator[tuple[str, Any, Any]]:
    """Yield name, annotation and default, None without one, of each field of a dataclass or a named tuple."""
    hints = get_type_hints(record_class, include_extras=True)
    if is_dataclass(record_class):
        for record_field in fields(record_class):
            default = None if record_field.default is MISSING else record_field.default
            yield record_field.name, hints[record_field.name], default
    else:
        for name in record_class._fields:
            yield name, hints[name], record_class._field_defaults.get(name)


def _split_hint(hint: Any) -> tuple[Any, bool, tuple[Any, ...]]:
    """Split an annotation into the type of values, whether None is one too, and the marks."""
    is_optional, marks = False, ()
    while True:
        if get_origin(hint) is Annotated:
            hint, marks = hint.__origin__, (*marks, *hint.__metadata__)
        elif get_origin(hint) in (Union, UnionType):
            is_optional = True
            [hint] = [part for part in get_args(hint) if part is not NoneType]
        else:
            return hint, is_optional, marks


# --- conversions ------------------------------------------------------------------------------------------------


class RecordConversion(Generic[R]):
    """Converts records of a class to rows and back.

    Attributes:
        column_names: of a record's fields, in the order of `to_record`'s values.
    """

    def __init__(self, record_class: type[R]) -> None:
        layout = self._layout = _Layout.of(record_class)
        self.column_names = [stored.column_name for stored in layout.fields]
        self._make, self._parts = layout.make, layout.parts
        self._written = [stored for stored in layout.fields if ColumnMark.OWNERS not in stored.marks]
        paths = [stored.path for stored in self._written]
        get_values = attrgetter(*paths)
        self._get_values = get_values if len(paths) > 1 else lambda record: (get_values(record),)
        readers = enumerate(stored.read for stored in layout.fields)
        self._readers = [(i, read) for i, read in readers if read]
        self._defaults = [
            (i, stored.default)
            for i, stored in enumerate(layout.fields)
            if ColumnMark.NULLABLE in stored.marks and stored.default is not None
        ]
        self._key_texts = [i for i, stored in enumerate(layout.fields) if stored.is_key and stored.is_optional]

    @property
    def members_by_column(self) -> dict[str, type[StrEnum]]:
        """The enumerations whose values are in columns, by the name of the column."""
        return {
            stored.column_name: stored.type
            for stored in self._layout.fields
            if isclass(stored.type) and issubclass(stored.type, StrEnum)
        }

    @property
    def json_types_by_column(self) -> dict[str, type]:
        """What the JSON in columns of texts is, by the name of the column: a dict, a list, or any object."""
        json_types = {Mapping: dict, tuple: list}
        return {
            stored.column_name: json_types.get(get_origin(stored.type), object)
            for stored in self._layout.fields
            if stored.is_json
        }

    def to_rows(self, records: Iterable[R], **owner: int | str) -> list[dict[str, Any]]:
        """Convert records to rows: values by column, after the same values of the owner's columns for each.

        Optional columns that are empty in all rows are left out, which saves time when they are inserted.
        """
        rows = list(map(self._get_values, records))
        columns: dict[str, Sequence[Any]] = {name: [value] * len(rows) for name, value in owner.items()}
        for stored, values in zip(self._written, zip(*rows, strict=True), strict=False):
            if stored.is_key or values[0] is not None or values.count(None) < len(rows):
                columns[stored.column_name] = stored.write_all(values)
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def to_record(self, row: Sequence[Any]) -> R:
        """Convert the values of `column_names` to a record."""
        values = list(row)
        for i, read in self._readers:
            if values[i] is not None:
                values[i] = read(values[i])
        for i, default in self._defaults:
            if values[i] is None:
                values[i] = default
        for i in self._key_texts:
            values[i] = values[i] or None
        for start, n_fields, make in self._parts:
            values[start : start + n_fields] = [make(*values[start : start + n_fields])]
        record: R = self._make(*values)
        return record


_conversions: dict[type, RecordConversion[Any]] = {}


def conversion_of(record_class: type[R]) -> RecordConversion[R]:
    """The conversion of a class of records; made by the first call."""
    if record_class not in _conversions:
        _conversions[record_class] = RecordConversion(record_class)
    return _conversions[record_class]


def select_records(
    connection: sa.Connection,
    record_class: type[R],
    *conditions: sa.ColumnElement[bool],
    order_by: Iterable[sa.ColumnElement[Any]] = (),
    limit: int | None = None,
) -> list[R]:
    """Load the records of a class that meet all conditions on the columns of their table."""
    table, conversion = table_of(record_class), conversion_of(record_class)
    query = sa.select(*(table.c[name] for name in conversion.column_names)).where(*conditions)
    return list(map(conversion.to_record, connection.execute(query.order_by(*order_by).limit(limit))))


def coerce_values(record_class: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Convert values to their columns' types, so that they equal what is read back (0.0, not 0, in a float column).

    Raises:
        UnstorableError: a column cannot hold its value, such as a number that is not finite.
    """
    columns = _columns_by_name(record_class)
    return {name: value if value is None else _coerce_value(*columns[name], value) for name, value in values.items()}


@functools.cache
def _columns_by_name(record_class: type) -> dict[str, tuple[sa.Column[Any], type]]:
    """Columns with their Python types, by name: to ask SQLAlchemy takes longer than the conversion of a value."""
    return {name: (column, column.type.python_type) for name, column in table_of(record_class).c.items()}


def make_storable(record_class: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Convert values like `coerce_values`, but replace those that cannot be stored.

    Such a number becomes None; characters that cannot be encoded become backslash escapes.
    """
    columns = _columns_by_name(record_class)
    return {name: _coerce_or_replace(*columns[name], value) for name, value in values.items()}


def _coerce_or_replace(column: sa.Column[Any], kind: type, value: Any) -> Any:
    """Convert a value like `_coerce_value`, but replace one that cannot be stored; see `make_storable`."""
    if isinstance(value, str):
        value = value.encode("utf-8", "backslashreplace").decode("utf-8")
    try:
        value = None if value is None else _coerce_value(column, kind, value)
    except UnstorableError:
        return None
    is_too_large = isinstance(value, int) and not -(2**31) <= value < 2**31  # PostgreSQL's INTEGER; SQLite's has 64 bit
    return None if is_too_large else value


def _coerce_value(column: sa.Column[Any], kind: type, value: Any) -> Any:
    """Convert a value to its column's Python type. Raises UnstorableError if this is not possible."""
    if type(value) is not kind:
        try:
            value = kind(value)
        except (TypeError, ValueError, OverflowError):
            raise _unstorable_value_error(column) from None
    if kind is float:
        if not math.isfinite(value):
            raise _unstorable_value_error(column)
        return value + 0.0  # SQLite stores -0.0 as 0.0
    return _escape_nul(value) if kind is str else value  # as `ServerText` does


def _unstorable_value_error(column: sa.Column[Any]) -> UnstorableError:
    """Build the error for a value that a column cannot hold."""
    message = f"the value of '{column.name}' cannot be stored in the table '{column.table.name}'."
    return UnstorableError(message, "Correct it in its source, then run the same command again.")


def insert_new(connection: sa.Connection, record_class: type, values: list[dict[str, Any]]) -> None:
    """Insert rows; a row whose key exists is skipped."""
    if values:
        connection.execute(_insert_statement(record_class, connection.dialect.name).on_conflict_do_nothing(), values)


def replace_rows(
    connection: sa.Connection, record_class: type[Any], audit_id: int, values: list[dict[str, Any]]
) -> None:
    """Insert rows in place of all that an audit has of this class."""
    table = table_of(record_class)
    connection.execute(sa.delete(table).where(table.c.audit_id == audit_id))
    if values:
        connection.execute(sa.insert(table), values)


def insert_rows(connection: sa.Connection, record_class: type, values: list[dict[str, Any]]) -> None:
    """Insert rows whose keys are new."""
    if values:
        connection.execute(_plain_insertion(record_class), values)


def insert_exact(connection: sa.Connection, record_class: type, rows: list[dict[str, Any]]) -> None:
    """Insert rows with the same columns and new keys, whose values are as `coerce_values` returns them.

    SQLAlchemy's conversion of a row takes longer than its way to a PostgreSQL server, so it is left out there.
    """
    if rows and connection.dialect.name == "postgresql":
        connection.exec_driver_sql(_driver_insertion(record_class, connection.dialect, tuple(rows[0])), rows)
    elif rows:
        connection.execute(_plain_insertion(record_class), rows)


@functools.cache
def _plain_insertion(record_class: type) -> sa.Insert:
    return sa.insert(table_of(record_class))


@functools.lru_cache
def _driver_insertion(record_class: type, dialect: sa.Dialect, column_names: tuple[str, ...]) -> str:
    """The text of an INSERT of one row, with the driver's placeholders and without RETURNING."""
    return str(_plain_insertion(record_class).inline().compile(dialect=dialect, column_keys=list(column_names)))


MAX_UPSERTED_ROWS = 2_000
"""Rows that go to a server as one text, which may have 1 GB at most."""


def upsert(
    connection: sa.Connection,
    record_class: type,
    values: list[dict[str, Any]],
    column_names: Iterable[str] | None = None,
) -> None:
    """Insert rows; a row whose key exists is replaced.

    Args:
        column_names: of the columns that are replaced, also by nothing; None for those that the rows have.
    """
    if not values:
        return
    if len(values) > MAX_UPSERTED_ROWS:
        for start in range(0, len(values), MAX_UPSERTED_ROWS):
            upsert(
                connection, record_class, values[start : start + MAX_UPSERTED_ROWS], column_names or tuple(values[0])
            )
        return
    names, dialect = tuple(column_names or values[0]), connection.dialect.name
    if dialect == "postgresql" and len(values) > 1 and (text := _rows_as_json(record_class, values)) is not None:
        connection.execute(_upsert_from_json(record_class, names, tuple(values[0])), {"rows": text})
    else:
        connection.execute(_upsert_statement(_insert_statement(record_class, dialect), names), values)


def _rows_as_json(record_class: type, rows: list[dict[str, Any]]) -> str | None:
    """Rows as JSON, of those with the same key the last one; None if JSON or PostgreSQL's JSON lacks one of the values.

    A server that gets all rows as one text takes a third of the time of a statement for each, and so does psycopg.
    """
    key_names = [column.name for column in table_of(record_class).primary_key]
    rows_by_key = {tuple(row[name] for name in key_names): row for row in rows}
    try:
        text = json.dumps(list(rows_by_key.values()), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError):
        return None
    return None if "\\u0000" in text else text


# Statements are cached: SQLAlchemy takes longer to build one than SQLite to execute it.
@functools.cache
def _upsert_statement(insertion: Any, column_names: tuple[str, ...]) -> Any:
    """Let an INSERT replace some columns of a row whose key exists."""
    key_names = [column.name for column in insertion.table.primary_key]
    updates = {name: insertion.excluded[name] for name in column_names if name not in key_names}
    return insertion.on_conflict_do_update(index_elements=key_names, set_=updates)


@functools.cache
def _upsert_from_json(record_class: type, column_names: tuple[str, ...], row_names: tuple[str, ...]) -> Any:
    """Build an upsert of the rows in the JSON bound to `rows`, which have the columns `row_names`."""
    from sqlalchemy.dialects.postgresql import JSON

    c = table_of(record_class).c
    json_rows = sa.func.json_to_recordset(sa.cast(sa.bindparam("rows", type_=sa.Text()), JSON))
    source = json_rows.table_valued(*(sa.column(name, c[name].type) for name in row_names)).render_derived(
        with_types=True
    )
    insertion = _insert_statement(record_class, "postgresql").from_select(row_names, sa.select(*source.c))
    return _upsert_statement(insertion, column_names)


@functools.cache
def _insert_statement(record_class: type, dialect: str) -> Any:
    """Build an INSERT of the database's dialect, which, unlike SQLAlchemy's own, supports ON CONFLICT."""
    # Imported on first use: a dialect imports all of its drivers, which takes time.
    if dialect == "postgresql":
        from sqlalchemy.dialects.postgresql import insert
    else:
        from sqlalchemy.dialects.sqlite import insert  # type: ignore[assignment]
    statement: sa.Insert = insert(table_of(record_class))
    return statement
