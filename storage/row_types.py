"""Base classes and common columns of the row classes.

A table's base class says what may happen to its rows: `AppendOnlyRow`, `MutableRow` or `DerivedRow`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import Column, Dialect, ForeignKey, String, TypeDecorator
from sqlalchemy.ext.declarative import DeferredReflection
from sqlmodel import Field, SQLModel

from auditor.domain import Purpose


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


class CallReference(NamedTuple):
    """What a column with keys of calls says of them.

    Attributes:
        purpose: of the calls; None for the purpose of the probe that the table's column `probe` names.
        name_column: column of the same table with the name of the model that was called.
    """

    purpose: Purpose | None
    name_column: str


CALL_REFERENCE = "call"
"""Key of a column's `CallReference` in `Column.info`."""


def call_key_column(purpose: Purpose | None, name_column: str) -> Any:
    """A column with keys of calls, which count towards the audit's cost; see `CallReference`."""
    return Field(default=None, sa_column_kwargs={"info": {CALL_REFERENCE: CallReference(purpose, name_column)}})


def audit_id_column() -> Column[int]:
    """Part of a primary key: the audit that a row belongs to, and is deleted with."""
    return Column(ForeignKey("audit.id", ondelete="CASCADE"), primary_key=True)


class ServerText(TypeDecorator[str]):
    """Text column for PostgreSQL: compared byte by byte, as in SQLite, and with NUL, which it refuses, as `\\x00`."""

    impl = String
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else value.replace("\0", "\\x00")
