"""SQLModel row classes and conversions of records, made from their declarations (`auditor.domain.records`)."""

from __future__ import annotations

import functools
import json
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from datetime import datetime
from enum import StrEnum
from inspect import getdoc, isclass, signature
from operator import attrgetter
from types import NoneType, UnionType
from typing import Annotated, Any, Generic, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from sqlalchemy import (
    Boolean,
    Column,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    Text,
    TypeDecorator,
)
from sqlalchemy.ext.declarative import DeferredReflection
from sqlalchemy.types import TypeEngine
from sqlmodel import Field, SQLModel

from auditor.domain import Purpose, canonical_json
from auditor.domain.records import (
    CallKey,
    ColumnMark,
    References,
    RowOwner,
    RowPolicy,
    table_declaration,
)

R = TypeVar("R")


class _Row(DeferredReflection, SQLModel):
    """Base of all rows.

    Rows are written and read by SQLAlchemy Core (`row_writing.table_of`), without pydantic and without its ORM: no
    validator is built, and a mapping that is deferred is never made. Both would take time at every start.
    """

    model_config = {"defer_build": True}


class AppendOnlyRow(_Row):
    """Base of rows that are never changed or deleted; in a team's database, no role has the right to."""


class MutableRow(_Row):
    """Base of rows that a run changes or deletes, and that cannot be rebuilt from the ledger."""


class DerivedRow(_Row):
    """Base of an audit's rows that a run rebuilds from the ledger; they are deleted when its configuration changes."""


ROW_BASES: Mapping[RowPolicy, type[SQLModel]] = {
    RowPolicy.APPEND_ONLY: AppendOnlyRow,
    RowPolicy.MUTABLE: MutableRow,
    RowPolicy.DERIVED: DerivedRow,
}


class ServerText(TypeDecorator[str]):
    """Text column for PostgreSQL: compared byte by byte, as in SQLite, and with NUL, which it refuses, as `\\x00`."""

    impl = String
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else value.replace("\0", "\\x00")


_COLUMN_TYPES: Mapping[type, TypeEngine[Any]] = {
    bool: Boolean(), int: Integer(), float: Float(), bytes: LargeBinary(),
}  # fmt: skip
_WORDS = String().with_variant(ServerText(collation="C"), "postgresql")
_LONG_TEXT = Text().with_variant(ServerText(collation="C"), "postgresql")


def call_key_column(purpose: Purpose | None, name_column: str) -> Any:
    """A column with keys of calls, which count towards the audit's cost; see `CallKey`."""
    return Field(default=None, sa_column_kwargs={"info": {CallKey: CallKey(purpose, name_column)}})


def audit_id_column() -> Column[int]:
    """Part of a primary key: the audit that a row belongs to, and is deleted with."""
    return Column(ForeignKey("audit.id", ondelete="CASCADE"), primary_key=True)


@functools.cache
def row_class_of(record_class: type) -> type[SQLModel]:
    """The SQLModel class of the rows of a record, with its table; made by the first call.

    This is all that a new table needs besides a migration: the frozen dataclass with its `stored` declaration, in a
    module that `auditor.storage.tables` or a probe lists. `row_writing.table_of` returns the table for queries, and
    `records` has the functions that write and read.

    Raises:
        TypeError: the class has no declaration, or a field has a type that cannot be stored.
    """
    declaration = table_declaration(record_class)
    columns = {column.name: column for column in make_columns(record_class)}
    namespace = {
        "__module__": __name__,
        "__qualname__": f"{record_class.__name__}Row",
        "__doc__": (getdoc(record_class) or "").partition("\n\nAttributes:")[0],
        "__tablename__": declaration.name,
        "__table_args__": tuple(Index(name, *names) for name, names in declaration.indexes.items()),
        "__annotations__": dict.fromkeys(columns, Any),
        **{name: Field(sa_column=column) for name, column in columns.items()},
    }
    name, bases = f"{record_class.__name__}Row", (ROW_BASES[declaration.policy],)
    row_class: type[SQLModel] = types.new_class(name, bases, {"table": True}, lambda body: body.update(namespace))
    return row_class


def make_columns(record_class: type) -> list[Column[Any]]:
    """The columns of a record's table in their order, as `make revision` compares them with a database's.

    Raises:
        TypeError: the class has no declaration, or a field has a type that cannot be stored.
    """
    declaration = table_declaration(record_class)
    columns: list[Column[Any]] = []
    if declaration.owner in (RowOwner.AUDIT, RowOwner.PROBE):
        columns.append(Column("audit_id", ForeignKey("audit.id", ondelete="CASCADE"), primary_key=True))
    elif declaration.owner is RowOwner.AUDIT_LOG:
        columns.append(Column("id", Integer(), primary_key=True))
        columns.append(Column("audit_id", ForeignKey("audit.id"), nullable=False))
    if declaration.owner is RowOwner.PROBE:
        columns.append(Column("probe", _WORDS, primary_key=True))
    for record_field in _stored_fields(record_class):
        columns += record_field.make_columns()
    if declaration.position is not None:
        columns.insert(declaration.position, Column("position", Integer(), nullable=False))
    return columns


# --- fields -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _StoredField:
    """A field of a record: its type without `None` and marks, and what these said.

    Attributes:
        default: of the field; None if it has none.
    """

    name: str
    type: Any
    is_optional: bool
    marks: tuple[Any, ...]
    default: Any

    @property
    def parts(self) -> Mapping[str, Any]:
        """Types of the parts of a named tuple, which has a column for each, by name; empty for another type."""
        return get_type_hints(self.type) if isclass(self.type) and hasattr(self.type, "_fields") else {}

    @property
    def paths(self) -> list[str]:
        """Attributes of a record with the values of the columns."""
        return [f"{self.name}.{part}" for part in self.parts] or [self.name]

    @property
    def column_names(self) -> list[str]:
        return list(self.parts) or [self.name]

    def make_columns(self) -> Iterator[Column[Any]]:
        """Yield the column of the field, or those of the parts of its type."""
        is_key = ColumnMark.KEY in self.marks
        for name, part_type in (self.parts or {self.name: self.type}).items():
            foreign_keys = [
                ForeignKey(mark.column, ondelete="CASCADE" if mark.is_owned else None)
                for mark in self.marks
                if isinstance(mark, References)
            ]
            yield Column(
                name,
                self._column_type(part_type),
                *foreign_keys,
                primary_key=is_key,
                nullable=not is_key and (self.is_optional or ColumnMark.NULLABLE in self.marks),
                unique=ColumnMark.UNIQUE in self.marks or None,
                index=ColumnMark.INDEXED in self.marks or None,
                default=self.default if isinstance(self.default, str | int | float) else None,
                info={type(mark): mark for mark in self.marks if isinstance(mark, CallKey)},
            )

    def _column_type(self, value_type: Any) -> TypeEngine[Any]:
        if column_type := _COLUMN_TYPES.get(value_type):
            return column_type
        if (
            value_type is Any
            or get_origin(value_type) in (Literal, Mapping, tuple)
            or issubclass(value_type, str | datetime)
        ):
            return _LONG_TEXT if ColumnMark.LONG_TEXT in self.marks else _WORDS
        raise TypeError(f"values of the type {value_type} cannot be stored: field '{self.name}'")

    @property
    def write(self) -> Callable[[Any], Any] | None:
        """Function that converts a value to that of its column; None if it is stored as it is."""
        if self.type is Any:
            return canonical_json
        if get_origin(self.type) is Mapping:
            return lambda value: canonical_json(dict(value))
        if get_origin(self.type) is tuple:
            return lambda value: canonical_json(list(value))
        return (lambda value: value.isoformat(timespec="milliseconds")) if self.type is datetime else None

    @property
    def read(self) -> Callable[[Any], Any] | None:
        """Function that converts the value of the column back; None if it stays as it is."""
        if self.type is Any or get_origin(self.type) is Mapping:
            return json.loads
        if get_origin(self.type) is tuple:
            return lambda value: tuple(json.loads(value))
        if self.type is datetime:
            return datetime.fromisoformat
        if isclass(self.type) and issubclass(self.type, StrEnum):
            return {member.value: member for member in self.type}.__getitem__
        return None


def _stored_fields(record_class: type[Any]) -> Sequence[_StoredField]:
    """The fields of a record that have columns, in order."""
    hints = get_type_hints(record_class, include_extras=True)
    stored_fields = []
    for record_field in fields(record_class):
        value_type, is_optional, marks = _split_hint(hints[record_field.name])
        default = None if record_field.default is MISSING else record_field.default
        if ColumnMark.NOT_STORED not in marks:
            stored_fields.append(_StoredField(record_field.name, value_type, is_optional, marks, default))
    return stored_fields


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
        column_names: of a record's fields, in the order of `to_record`'s values; those of its owner are not among them.
    """

    def __init__(self, record_class: type[R]) -> None:
        self._record_class = record_class
        stored_fields = _stored_fields(record_class)
        self.column_names = [name for stored in stored_fields for name in stored.column_names]
        paths = [path for stored in stored_fields for path in stored.paths]
        get_values = attrgetter(*paths)
        self._get_values = get_values if len(paths) > 1 else lambda record: (get_values(record),)
        self._field_names = [stored.name for stored in stored_fields]
        self._is_positional = self._field_names == list(signature(record_class).parameters)
        self._writers = [(stored.name, stored.write) for stored in stored_fields if stored.write]
        readers = enumerate(stored.read for stored in stored_fields)
        self._readers = [(i, read) for i, read in readers if read]
        self._defaults = [
            (i, stored.default)
            for i, stored in enumerate(stored_fields)
            if ColumnMark.NULLABLE in stored.marks and stored.default is not None
        ]
        self._tuples = [
            (self.column_names.index(stored.column_names[0]), len(stored.parts), stored.type)
            for stored in reversed(stored_fields)  # an earlier one does not move a later one
            if stored.parts
        ]

    def to_rows(self, records: Iterable[R], **owner: int | str) -> list[dict[str, Any]]:
        """Convert records to rows: values by column, after the same values of the owner's columns for each."""
        names, owner_values = (*owner, *self.column_names), tuple(owner.values())
        rows = [dict(zip(names, (*owner_values, *self._get_values(record)), strict=True)) for record in records]
        for name, write in self._writers:
            for row in rows:
                if row[name] is not None:
                    row[name] = write(row[name])
        return rows

    def to_record(self, row: Sequence[Any]) -> R:
        """Convert the values of `column_names` to a record."""
        values = list(row)
        for start, length, tuple_class in self._tuples:
            values[start : start + length] = [tuple_class(*values[start : start + length])]
        for i, read in self._readers:
            if values[i] is not None:
                values[i] = read(values[i])
        for i, default in self._defaults:
            if values[i] is None:
                values[i] = default
        if self._is_positional:
            return self._record_class(*values)
        return self._record_class(**dict(zip(self._field_names, values, strict=True)))


_conversions: dict[type, RecordConversion[Any]] = {}


def conversion_of(record_class: type[R]) -> RecordConversion[R]:
    """The conversion of a class of records; made by the first call."""
    if record_class not in _conversions:
        _conversions[record_class] = RecordConversion(record_class)
    return _conversions[record_class]
