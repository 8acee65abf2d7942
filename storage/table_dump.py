"""All stored rows of an audit, table by table, for exports."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from sqlalchemy import Boolean, Float, Integer, RowMapping, Select, Table, select, union
from sqlmodel import SQLModel

from auditor.domain import Verdict
from auditor.domain.labels import LabelEntry
from auditor.domain.review_aspects import REVIEW_ASPECTS
from auditor.storage.database import Database
from auditor.storage.row_classes import AppendOnlyRow, DerivedRow, MutableRow
from auditor.storage.row_writing import table_of
from auditor.storage.tables import VERSION_TABLE

ColumnKind = Literal["integer", "number", "boolean", "text"]

_DATABASE_TABLE_DESCRIPTIONS = {
    "link": "the chain of hashes over all audits of the database",
}
SHARED_TABLES = ("answer", "attempt")
"""Tables that audits share; of these, the rows of the audit's calls are dumped."""
ASPECT_TABLES = (table_of(Verdict).name, table_of(LabelEntry).name)
"""Tables with a column of aspects as JSON."""


class DumpColumn(NamedTuple):
    """Name and type of a column."""

    name: str
    kind: ColumnKind
    nullable: bool


class DumpTable(NamedTuple):
    """Name, description and columns of a table, the columns in order."""

    name: str
    description: str
    columns: tuple[DumpColumn, ...]


def list_tables() -> list[DumpTable]:
    """List all tables that can have rows of an audit."""
    return [
        DumpTable(name, inspect.getdoc(row_class) or "", _table_columns(table_of(row_class)))
        for name, row_class in _audit_row_classes().items()
    ]


def dump_rows(db: Database, audit_id: int, table_name: str, batch_size: int = 10_000) -> Iterator[list[dict[str, Any]]]:
    """Yield the audit's rows of one table in order of its key, in batches of at most `batch_size`."""
    table = table_of(_audit_row_classes()[table_name])
    convert_row = _expand_aspects if table_name in ASPECT_TABLES else dict
    query = _audit_rows_query(table, audit_id).order_by(*table.primary_key)
    with db.read() as connection:
        for batch in (
            connection.execution_options(yield_per=batch_size).execute(query).mappings().partitions(batch_size)
        ):
            yield [convert_row(row) for row in batch]


def _expand_aspects(row: RowMapping) -> dict[str, Any]:
    """Replace the JSON of a row's aspects by a value for each review aspect: True, False, or None if not rated."""
    values = dict(row)
    ratings = json.loads(values.pop("aspects"))
    return values | {aspect.name: ratings.get(aspect.name) for aspect in REVIEW_ASPECTS}


def list_excluded_tables() -> dict[str, str]:
    """Descriptions by name of the tables that belong to the database and not to an audit."""
    excluded_classes = {
        name: row_class for name, row_class in _all_row_classes().items() if name not in _audit_row_classes()
    }
    descriptions = {
        name: _DATABASE_TABLE_DESCRIPTIONS.get(name) or (inspect.getdoc(row_class) or "")
        for name, row_class in excluded_classes.items()
    }
    return descriptions | {VERSION_TABLE: "the revision that the database is at"}


def _all_row_classes() -> dict[str, type[SQLModel]]:
    """Row classes of all tables of the database, by table name, in the order of `auditor.storage.tables`."""
    row_classes = {
        str(row_class.__tablename__): row_class
        for base in (AppendOnlyRow, MutableRow, DerivedRow)
        for row_class in base.__subclasses__()
    }
    return {name: row_classes[name] for name in SQLModel.metadata.tables}


def _audit_row_classes() -> dict[str, type[SQLModel]]:
    """Row classes by table name, of the tables with rows of an audit: its own, and `SHARED_TABLES`."""
    return {
        name: row_class
        for name, row_class in _all_row_classes().items()
        if name == "audit" or name in SHARED_TABLES or "audit_id" in table_of(row_class).c
    }


def _audit_rows_query(table: Table, audit_id: int) -> Select[Any]:
    """Select an audit's rows of a table; of a shared table, the rows of the calls that its other rows refer to."""
    if table.name == "audit":
        return select(table).where(table.c.id == audit_id)
    if table.name in SHARED_TABLES:
        return select(table).where(table.c.key.in_(union(*_call_key_queries(audit_id))))
    return select(table).where(table.c.audit_id == audit_id)


def is_call_key(column_name: str) -> bool:
    """Whether a column of this name holds keys of calls, by the naming convention of the tables."""
    return column_name == "key" or column_name.endswith("_key") or column_name.startswith("key_")


def _call_key_queries(audit_id: int) -> Iterator[Select[Any]]:
    """Yield a query for each column with call keys in the audit's own tables."""
    for row_class in _audit_row_classes().values():
        c = table_of(row_class).c
        for column in c:
            if is_call_key(column.name) and "audit_id" in c:
                yield select(column).where(c.audit_id == audit_id, column.is_not(None))


def _table_columns(table: Table) -> tuple[DumpColumn, ...]:
    """Columns of a dumped table; of verdicts and labels, a column for each review aspect in place of their JSON."""
    columns = tuple(DumpColumn(c.name, _column_kind(c.type), bool(c.nullable)) for c in table.columns)
    if table.name not in ASPECT_TABLES:
        return columns
    aspects = (DumpColumn(aspect.name, "boolean", nullable=True) for aspect in REVIEW_ASPECTS)
    return (*(column for column in columns if column.name != "aspects"), *aspects)


def _column_kind(column_type: object) -> ColumnKind:
    """Kind of a column by its SQLAlchemy type; `text` for all other types."""
    if isinstance(column_type, Boolean):
        return "boolean"
    if isinstance(column_type, Integer):
        return "integer"
    return "number" if isinstance(column_type, Float) else "text"
