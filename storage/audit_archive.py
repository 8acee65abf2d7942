"""All rows of one audit, table by table, the hash chain around them, and a new database made of these."""

from __future__ import annotations

import base64
import functools
import inspect
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from auditor.domain import Verdict
from auditor.domain.audit_records import Audit
from auditor.domain.decisions import REVIEW_ASPECTS
from auditor.domain.labels import LabelEntry
from auditor.domain.records import table_declaration
from auditor.errors import ImportFileError, StorageError
from auditor.storage import hash_chain
from auditor.storage.call_records import (
    ChainLink,
    Payload,
    StoredAnswer,
    StoredAttempt,
    StoredCapability,
    TextVector,
)
from auditor.storage.database import Database
from auditor.storage.derived_rows import ROWS_PER_CHUNK
from auditor.storage.hash_chain import WITHHELD, chain_digest
from auditor.storage.row_classes import table_of
from auditor.storage.schema import VERSION_TABLE, list_record_classes, load_metadata, load_tables

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
        DumpTable(name, _describe(record_class), _table_columns(table_of(record_class)))
        for name, record_class in _list_audit_record_classes().items()
    ]


ColumnBatch = Mapping[str, Sequence[Any]]
"""Rows of a table as columns: the values of each column by its name, all of the same length."""


def dump_columns(db: Database, audit_id: int, table_name: str, batch_size: int = 10_000) -> Iterator[ColumnBatch]:
    """Yield the audit's rows of one table in order of its key, in batches of at most `batch_size`."""
    table = table_of(_list_audit_record_classes()[table_name])
    with db.read() as connection:
        query = _audit_rows_query(table, audit_id, is_only_audit=_has_one_audit(connection))
        query = query.order_by(*table.primary_key)
        result = connection.execution_options(yield_per=batch_size).execute(query)
        names = tuple(result.keys())
        for rows in result.partitions(batch_size):
            columns: dict[str, Sequence[Any]] = dict(zip(names, zip(*rows, strict=True), strict=True))
            if table_name in ASPECT_TABLES:
                ratings = zip(*map(_read_aspects, columns.pop("aspects")), strict=True)
                columns |= zip((aspect.name for aspect in REVIEW_ASPECTS), ratings, strict=True)
            yield columns


def iterate_rows(batches: Iterable[ColumnBatch]) -> Iterator[dict[str, Any]]:
    """Yield the rows of batches of columns, each as its values by name of the column."""
    for columns in batches:
        for row in zip(*columns.values(), strict=True):
            yield dict(zip(columns, row, strict=True))


@functools.lru_cache(maxsize=1000)  # few combinations differ
def _read_aspects(ratings_json: str) -> tuple[bool | None, ...]:
    """A value for each review aspect by a row's JSON: True, False, or None if not rated."""
    ratings = json.loads(ratings_json)
    return tuple(ratings.get(aspect.name) for aspect in REVIEW_ASPECTS)


def list_excluded_tables() -> dict[str, str]:
    """Descriptions by name of the tables that belong to the database and not to an audit."""
    descriptions = {
        name: _DATABASE_TABLE_DESCRIPTIONS.get(name) or _describe(record_class)
        for name, record_class in _list_record_classes().items()
        if name not in _list_audit_record_classes()
    }
    return descriptions | {VERSION_TABLE: "the revision that the database is at"}


def _describe(record_class: type) -> str:
    """The docstring of a class of records, without its attributes."""
    return (inspect.getdoc(record_class) or "").partition("\n\nAttributes:")[0]


def _list_record_classes() -> dict[str, type]:
    """Classes of records of all tables of the database, by table name, in the order of `auditor.storage.schema`."""
    return {table_declaration(record_class).name: record_class for record_class in list_record_classes()}


def _list_audit_record_classes() -> dict[str, type]:
    """Classes of records by table name, of the tables with rows of an audit: its own, and `SHARED_TABLES`."""
    return {
        name: record_class
        for name, record_class in _list_record_classes().items()
        if name == "audit" or name in SHARED_TABLES or "audit_id" in table_of(record_class).c
    }


def _has_one_audit(connection: sa.Connection) -> bool:
    """Whether a database has one audit only."""
    return bool(connection.execute(sa.select(sa.func.count()).select_from(table_of(Audit))).scalar_one() == 1)


def _audit_rows_query(table: sa.Table, audit_id: int, *, is_only_audit: bool) -> sa.Select[Any]:
    """Select an audit's rows of a table; of a shared table, the rows of the calls that its other rows refer to.

    Args:
        table: one of the tables of `list_tables`.
        audit_id: the audit's id.
        is_only_audit: whether the database has no other audit. Its requests are then read in the order of their ids.
            Otherwise SQLite looks up those of each call, and sorts them.
    """
    if table.name == "audit":
        return sa.select(table).where(table.c.id == audit_id)
    if table.name not in SHARED_TABLES:
        return sa.select(table).where(table.c.audit_id == audit_id)
    keys = sa.union_all(*_call_key_queries(audit_id)).subquery().c.key
    # Grouped, so that SQLite sorts the keys: a UNION inserts each into a tree, which takes three times as long.
    is_referred_to: sa.ColumnElement[bool] = table.c.key.in_(sa.select(keys).group_by(keys))
    if table is table_of(StoredAttempt) and is_only_audit:
        # Nearly all requests are the audit's own, so that SQLite does not have to collect the keys of all calls.
        is_referred_to = sa.case((table.c.audit_id == audit_id, sa.true()), else_=is_referred_to)
    return sa.select(table).where(is_referred_to)


def is_call_key(column_name: str) -> bool:
    """Whether a column of this name holds keys of calls, by the naming convention of the tables."""
    return column_name == "key" or column_name.endswith("_key") or column_name.startswith("key_")


def _call_key_queries(audit_id: int) -> Iterator[sa.Select[Any]]:
    """Yield a query for each column with call keys in the audit's own tables."""
    for record_class in _list_audit_record_classes().values():
        c = table_of(record_class).c
        for column in c:
            if is_call_key(column.name) and "audit_id" in c:
                yield sa.select(column.label("key")).where(c.audit_id == audit_id, column.is_not(None))


def _table_columns(table: sa.Table) -> tuple[DumpColumn, ...]:
    """Columns of a dumped table; of verdicts and labels, a column for each review aspect in place of their JSON."""
    columns = tuple(DumpColumn(c.name, _column_kind(c.type), bool(c.nullable)) for c in table.columns)
    if table.name not in ASPECT_TABLES:
        return columns
    aspects = (DumpColumn(aspect.name, "boolean", nullable=True) for aspect in REVIEW_ASPECTS)
    return (*(column for column in columns if column.name != "aspects"), *aspects)


def _column_kind(column_type: object) -> ColumnKind:
    """Kind of a column by its SQLAlchemy type; `text` for all other types."""
    if isinstance(column_type, sa.Boolean):
        return "boolean"
    if isinstance(column_type, sa.Integer):
        return "integer"
    return "number" if isinstance(column_type, sa.Float) else "text"


KEPT_PATHS = ("weights",)
"""Keys of settings whose paths are a part of recorded requests, without which their keys are others."""
_JSON_TYPES: Mapping[type, Any] = {int: int, float: float | int, bool: bool, bytes: dict}
"""Types of a column's values in JSON, by its type; text if it is none of these."""
BYTES_KEY = "base64"
"""Key of the JSON object that stands for the bytes of a column."""


def list_kinds() -> list[str]:
    """Kinds of rows in an archive, those first that others refer to."""
    left_out = {table_of(ChainLink).name, table_of(Payload).name}
    return [table.name for table in load_metadata().sorted_tables if table.name not in left_out]


def is_withheld(link: Sequence[Any]) -> bool:
    """Whether a link of `AuditRows.iterate_links` has only its hash."""
    return len(link) == 2  # the audit's id and the hash


class AuditRows:
    """The rows of an audit by kind, which is their table's name, and the links of the chain.

    Shared rows belong to the audit if it asked for them: answers and embeddings by the hash in their key, what servers
    accept by the model. In a database with one audit all of them do.
    """

    def __init__(self, connection: sa.Connection, audit: Audit, hashes: set[str], models: set[str]) -> None:
        """Set up.

        Args:
            connection: to the audit's database, which others may write to meanwhile: it shows all rows and links as
                they were at one moment.
            audit: the audit.
            hashes: keys of calls that it asked, and SHA-256 of texts whose embeddings it used.
            models: model strings that it asked.
        """
        self._connection, self._audit, self._hashes, self._models = connection, audit, hashes, models
        self._is_only_audit = _has_one_audit(connection)
        self._append_only: set[tuple[str, str]] = set()

    def iterate(self, kind: str) -> Iterator[dict[str, Any]]:
        """Yield the rows of a kind by their key: their columns that are not NULL, without folders of the machine."""
        table = load_tables()[kind]
        query = sa.select(table).order_by(*table.primary_key)
        if table is table_of(Audit):
            query = query.where(table.c.id == self._audit.id)
        elif table is not table_of(StoredAttempt) and "audit_id" in table.c:
            query = query.where(table.c.audit_id == self._audit.id)
        for row in self._connection.execute(query.execution_options(yield_per=ROWS_PER_CHUNK)).mappings():
            if not self._contains(table, row):
                continue
            if kind in hash_chain.append_only_kinds():
                self._append_only.add((kind, hash_chain.name_row(table, row)))
            yield _to_json(kind, row)

    def _contains(self, table: sa.Table, row: sa.RowMapping) -> bool:
        """Whether a row belongs to the audit, of a table in which others may have rows."""
        if table is table_of(StoredAnswer):
            return self._is_only_audit or row["key"] in self._hashes
        if table is table_of(TextVector):
            return self._is_only_audit or row["text"] in self._hashes
        if table is table_of(StoredCapability):
            return self._is_only_audit or row["model"] in self._models
        if table is table_of(StoredAttempt):
            is_unowned = row["audit_id"] is None and (self._is_only_audit or row["key"] in self._hashes)
            return is_unowned or row["audit_id"] == self._audit.id
        return True

    def iterate_links(self) -> Iterator[list[Any]]:
        """Yield the links in order, as `restore_links` reads them; all rows were yielded before.

        Raises:
            StorageError: a link of an earlier version is of another audit's row, without which it cannot be checked.
        """
        table = table_of(ChainLink)
        query = sa.select(table).order_by(table.c.id).execution_options(yield_per=ROWS_PER_CHUNK)
        for link in self._connection.execute(query).mappings():
            audit_id, kind, row_name = link["audit_id"], link["kind"], link["row"]
            is_listed = (kind, row_name) in self._append_only
            if link["content"] is None:
                if not is_listed:
                    raise StorageError(
                        "the hash chain of this database was begun by a version before revision 0021, and has "
                        f"records of other audits ({kind} {row_name[:12]}). Such links can only be checked with "
                        "these records.",
                        "Export the evidence from a database with this audit alone.",
                    )
                yield [kind, row_name, None, link["digest"]]
            elif audit_id == self._audit.id or (audit_id is None and (is_listed or kind == hash_chain.ACT)):
                yield [audit_id, kind, row_name, link["content"]]
            else:
                yield [audit_id, hash_chain.LinkEntry(audit_id, kind, row_name, link["content"]).hash]


def _to_json(kind: str, row: sa.RowMapping) -> dict[str, Any]:
    """A row as JSON, without NULL and without folders."""
    values = {name: value for name, value in row.items() if value is not None}
    for name in hash_chain.TEXTS_WITH_FOLDERS.get(kind, ()):
        if name in values:
            settings = hash_chain.strip_machine(name, values[name], KEPT_PATHS)
            values[name] = json.dumps(settings, ensure_ascii=False)
    return {
        name: {BYTES_KEY: base64.b64encode(value).decode()} if isinstance(value, bytes) else value
        for name, value in values.items()
    }


# --- a database of an archive -----------------------------------------------------------------------------------


def restore_rows(db: Database, kind: str, rows: Iterable[Any], source: str) -> None:
    """Store rows of a kind that `AuditRows.iterate` yielded in a new database.

    Raises:
        ImportFileError: a row is not one of its table; the message names `source`.
    """
    table = load_tables().get(kind)
    if table is None:
        raise _make_error(source, f"has rows of the unknown table '{kind}'")
    chunk: list[dict[str, Any]] = []
    for row in rows:
        chunk.append(_from_json(table, row, source))
        if len(chunk) == ROWS_PER_CHUNK:
            _insert(db, table, chunk, source)
            chunk = []
    _insert(db, table, chunk, source)


def restore_links(db: Database, audit_id: int, links: Iterable[Any], source: str) -> str:
    """Store the links that `AuditRows.iterate_links` yielded in a new database, and return the head.

    Raises:
        ImportFileError: a link is not complete, or one of the audit is withheld.
    """
    digest, table, chunk = hash_chain.START_DIGEST, table_of(ChainLink), []
    for link in links:
        values: dict[str, Any]
        match link:
            case [str() as kind, str() as row_name, None, str() as digest]:
                values = {"audit_id": None, "kind": kind, "row": row_name, "content": None}
            case [(int() | None) as owner, str() as kind, str() as row_name, str() as content]:
                values = {"audit_id": owner, "kind": kind, "row": row_name, "content": content}
                digest = chain_digest(digest, owner, hash_chain.LinkEntry(owner, kind, row_name, content).hash)
            case [(int() | None) as owner, str() as entry_hash]:
                if owner == audit_id:
                    raise _make_error(source, "withholds a record of its audit from the hash chain")
                values = {"audit_id": owner, "kind": WITHHELD, "row": "", "content": entry_hash}
                digest = chain_digest(digest, owner, entry_hash)
            case _:
                raise _make_error(source, "has a link that is not complete")
        chunk.append(values | {"digest": digest})
        if len(chunk) == ROWS_PER_CHUNK:
            _insert(db, table, chunk, source)
            chunk = []
    _insert(db, table, chunk, source)
    return digest


def _from_json(table: sa.Table, row: Any, source: str) -> dict[str, Any]:
    """The values of all columns of a row. Raises ImportFileError."""
    if not isinstance(row, dict) or (unknown := set(row) - set(table.c.keys())):
        column = f": the column '{min(unknown)}' is unknown" if isinstance(row, dict) else ""
        raise _make_error(source, f"has a row that is none of the table '{table.name}'{column}")
    values: dict[str, Any] = dict.fromkeys(table.c.keys())
    for name, value in row.items():
        python_type = table.c[name].type.python_type
        if not isinstance(value, _JSON_TYPES.get(python_type, str)):
            raise _make_error(source, f"has a row of the table '{table.name}' with a wrong value of '{name}'")
        try:
            values[name] = base64.b64decode(value[BYTES_KEY], validate=True) if python_type is bytes else value
        except (KeyError, TypeError, ValueError):
            raise _make_error(source, f"has a row of the table '{table.name}' with wrong bytes in '{name}'") from None
    return values


def _insert(db: Database, table: sa.Table, rows: list[dict[str, Any]], source: str) -> None:
    """Insert rows, if there are any. Raises ImportFileError."""
    if not rows:
        return
    try:
        db.write(lambda connection: connection.execute(sa.insert(table), rows))
    except (StorageError, SQLAlchemyError, OverflowError, UnicodeError) as error:
        raise _make_error(source, f"has rows of the table '{table.name}' that cannot be stored") from error


def _make_error(source: str, problem: str) -> ImportFileError:
    return ImportFileError(f"{source}: {problem}.", "Ask for the original file: this one was changed or damaged.")
