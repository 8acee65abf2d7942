"""Declare how a record is stored: its table at the class, its key and columns at the fields.

    @stored("trace", indexes={"ix_trace_cell": ("audit_id", "country", "topic")})
    @dataclass(frozen=True, slots=True)
    class Trace:
        model: Key[str]
        cell: Key[Cell]
        sample: Key[int]
        outcome: Outcome
        text: LongText[str | None] = None
        key: Annotated[str | None, CallKey(Purpose.DIRECT, "model")] = None

`auditor.storage.row_classes` makes the table and the conversions from this. A field whose type is a named tuple or
another frozen dataclass has the columns of its fields. A new field needs nothing else but a migration, which
`make revision` writes; it stands last, since migrations append columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import ModuleType
from typing import Annotated, Any, TypeVar

from auditor.domain.terms import Purpose

T = TypeVar("T")


class RowPolicy(Enum):
    """What may happen to the rows of a table."""

    APPEND_ONLY = "append-only"
    """They are never changed or deleted; in a team's database, no role has the right to."""
    MUTABLE = "mutable"
    """A run changes or deletes them, and they cannot be rebuilt from the ledger."""
    DERIVED = "derived"
    """A run rebuilds them from the ledger; they are deleted when the audit's configuration changes."""


class RowOwner(Enum):
    """Whose the rows of a table are, and which columns they have for it besides the fields of their record."""

    AUDIT = "audit"
    """An audit's, and deleted with it: `audit_id` is the first column of the key."""
    AUDIT_LOG = "audit log"
    """Numbered entries of an audit's log, which keep the audit: `id` is the key, `audit_id` the second column."""
    AUDIT_NUMBERED = "audit numbered"
    """The same, but they are deleted with the audit, whose column has an index."""
    PROBE = "probe"
    """A probe's, in a table that probes share: `audit_id` and `probe` are the first columns of the key."""
    DATABASE = "database"
    """All audits', or the record has the columns as fields: no column is added."""
    DATABASE_NUMBERED = "database numbered"
    """All audits', numbered: `id` is the key."""


class ColumnMark(Enum):
    """What a field's annotation says of its column."""

    KEY = "key"
    LONG_TEXT = "long text"
    NULLABLE = "nullable"
    UNIQUE = "unique"
    INDEXED = "indexed"
    NOT_STORED = "not stored"
    OWNERS = "owner's"


Key = Annotated[T, ColumnMark.KEY]
"""A field of the primary key; None is stored as an empty text."""
LongText = Annotated[T, ColumnMark.LONG_TEXT]
"""A field in a column of the type TEXT instead of VARCHAR."""
Nullable = Annotated[T, ColumnMark.NULLABLE]
"""A field whose column may be NULL although its type is not optional; NULL is read as the field's default, if any."""
Unique = Annotated[T, ColumnMark.UNIQUE]
"""A field with a value that no other row has."""
Indexed = Annotated[T, ColumnMark.INDEXED]
"""A field with an index of its own."""
NotStored = Annotated[T, ColumnMark.NOT_STORED]
"""A field without a column: a record that is read has its default."""
Owners = Annotated[T, ColumnMark.OWNERS]
"""A field with the value of a column that the table's owner adds, such as `id`: it is read, and not written."""


@dataclass(frozen=True, slots=True)
class StoredAs:
    """Mark of a field whose column has another name than the field, or another text than its type has by itself.

    Attributes:
        name: of the column; None for that of the field.
        write, read: functions that convert a value to its text and back; None as the type says.
    """

    name: str | None = None
    write: Callable[[Any], str] | None = None
    read: Callable[[str], Any] | None = None


@dataclass(frozen=True, slots=True)
class CallKey:
    """Mark of a field with keys of calls, which count towards the audit's cost.

    Attributes:
        purpose: of the calls; None for the purpose of the probe that the column `probe` names.
        name_column: column of the same table with the name of the model that was called.
    """

    purpose: Purpose | None
    name_column: str


@dataclass(frozen=True, slots=True)
class References:
    """Mark of a field with the id of a row in another table.

    Attributes:
        column: as `table.column`.
        is_owned: whether the row is deleted with the row that it refers to.
    """

    column: str
    is_owned: bool = False


@dataclass(frozen=True, slots=True)
class TableDeclaration:
    """How the records of a class are stored.

    Attributes:
        name: of the table.
        policy, owner: see these classes.
        position: index of a column `position`, which keeps the order of an audit's records; None without one.
        indexes: columns of each index, by its name.
        first_columns: names of the table's first columns, if their order is not that of the fields; others follow.
    """

    name: str
    policy: RowPolicy = RowPolicy.DERIVED
    owner: RowOwner = RowOwner.AUDIT
    position: int | None = None
    indexes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    first_columns: tuple[str, ...] = ()


_DECLARATIONS: dict[type, TableDeclaration] = {}


def stored(
    name: str,
    policy: RowPolicy = RowPolicy.DERIVED,
    owner: RowOwner = RowOwner.AUDIT,
    *,
    position: int | None = None,
    indexes: Mapping[str, tuple[str, ...]] | None = None,
    first_columns: tuple[str, ...] = (),
) -> Callable[[type[T]], type[T]]:
    """Class decorator: the records of a dataclass are stored in a table of this name; see `TableDeclaration`."""

    def declare(record_class: type[T]) -> type[T]:
        _DECLARATIONS[record_class] = TableDeclaration(name, policy, owner, position, indexes or {}, first_columns)
        return record_class

    return declare


def is_stored(record_class: object) -> bool:
    """Whether this is a class with a `stored` declaration."""
    return isinstance(record_class, type) and record_class in _DECLARATIONS


def list_stored(module: ModuleType) -> list[type]:
    """The classes with a `stored` declaration that a module defines, in order."""
    return [value for value in vars(module).values() if is_stored(value) and value.__module__ == module.__name__]


def table_declaration(record_class: type) -> TableDeclaration:
    """The declaration of a class of records. Raises TypeError if it has none."""
    declaration = _DECLARATIONS.get(record_class)
    if declaration is None:
        raise TypeError(f"{record_class.__name__} has no declaration of its table: decorate it with @stored(...)")
    return declaration
