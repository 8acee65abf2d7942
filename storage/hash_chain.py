"""A hash chain over answers, ratings, labels and exclusions, which shows rows that were changed or deleted later.

Each link is the hash of the link before it and of a row's content, so the last link, the head, depends on all rows in
order. A published head, in a paper for example, proves later that no row before it was changed.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, Insert, RowMapping, Select, Table, insert, select

from auditor.domain import Rating, canonical_hash
from auditor.domain.audit_records import Registration
from auditor.domain.exclusions import Exclusion
from auditor.domain.labels import DrawnUnit, LabelDraw, LabelEntry
from auditor.storage.call_records import ChainLink, StoredAnswer
from auditor.storage.database import Database
from auditor.storage.row_classes import conversion_of
from auditor.storage.row_writing import coerce_values, table_of

START_DIGEST = "0" * 64
LINKS_PER_QUERY = 500
"""Of how many links at a time the rows are loaded: a query for each takes longer than hashing its row."""
CHAINED_TABLES: dict[str, tuple[type, str]] = {
    "answer": (StoredAnswer, "key"),
    "rating": (Rating, "id"),
    "label_draw": (LabelDraw, "id"),
    "sampled_unit": (DrawnUnit, "id"),
    "label": (LabelEntry, "id"),
    "exclusion": (Exclusion, "id"),
    "registration": (Registration, "id"),
}
"""Row class and key column of each kind of record in the chain."""


class ChainBreak(NamedTuple):
    """A record that does not match its link; `problem` continues a sentence that begins with kind and id of the row."""

    record_kind: str
    row_id: str
    problem: str


class ChainCheck(NamedTuple):
    """Outcome of a check of the chain.

    Attributes:
        n_links: number of links checked.
        head: digest of the last of them, 64 hexadecimal digits; all zeros if there is none.
        breaks: the first records that do not match, at most as many as were asked for.
    """

    n_links: int
    head: str
    breaks: Sequence[ChainBreak]


def append_entry(connection: Connection, audit_id: int, entry: object) -> int:
    """Append a record to the log of an audit, and its link; return its id."""
    record_class = type(entry)
    table = table_of(record_class)
    [values] = conversion_of(record_class).to_rows([entry], audit_id=audit_id)
    statement = insert(table).returning(*table.c)
    row = connection.execute(statement, coerce_values(record_class, values)).mappings().one()
    # RETURNING of SQLite gives an integral value of a float column as int, a later SELECT gives it as float.
    append_links(connection, table.name, [coerce_values(record_class, dict(row))])
    return int(row["id"])


def append_links(connection: Connection, kind: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Append a link for each of some rows that were inserted in the same transaction, in this order.

    Args:
        connection: of that transaction.
        kind: of the rows, a key of `CHAINED_TABLES`.
        rows: all columns of each row, with the values that will be read back (see `row_writing.coerce_values`).
    """
    if not rows:
        return
    last_digest_query, insert_statement = _link_statements()
    (_, key_column), digest = (
        CHAINED_TABLES[kind],
        connection.execute(last_digest_query).scalar_one_or_none() or START_DIGEST,
    )
    links = []
    for row in rows:
        digest = _link_digest(digest, kind, row)
        links.append({"kind": kind, "row": str(row[key_column]), "digest": digest})
    connection.execute(insert_statement, links)


@functools.cache
def _link_statements() -> tuple[Select[Any], Insert]:
    """Statements that select the last link and insert links. Cached: building them takes longer than executing them."""
    table = table_of(ChainLink)
    return select(table.c.digest).order_by(table.c.id.desc()).limit(1), insert(table)


def verify_chain(db: Database, max_breaks: int = 10) -> ChainCheck:
    """Check all links of the chain in order, then look for rows without a link; stops after `max_breaks` problems."""
    breaks: list[ChainBreak] = []
    last_digest, n_links = START_DIGEST, 0
    linked_rows: dict[str, set[str]] = {kind: set() for kind in CHAINED_TABLES}
    with db.read() as connection:
        for link, row in _load_linked_rows(connection):
            n_links += 1
            kind, row_id = link["kind"], link["row"]
            if row is None:
                breaks.append(ChainBreak(kind, row_id, "is gone"))
            elif not _matches_digest(link["digest"], last_digest, kind, row):
                breaks.append(ChainBreak(kind, row_id, "is not as it was written"))
            linked_rows[kind].add(row_id)
            last_digest = link["digest"]
            if len(breaks) >= max_breaks:
                return ChainCheck(n_links, last_digest, breaks)
        breaks += _find_unlinked_rows(connection, linked_rows, max_breaks - len(breaks))
    return ChainCheck(n_links, last_digest, breaks)


def _find_unlinked_rows(
    connection: Connection, linked_rows: dict[str, set[str]], max_breaks: int
) -> Iterator[ChainBreak]:
    """Yield at most `max_breaks` rows that have no link."""
    for kind, (row_class, key_column) in CHAINED_TABLES.items():
        table = table_of(row_class)
        for row_id in connection.execute(select(table.c[key_column])).scalars():
            if str(row_id) not in linked_rows[kind]:
                if max_breaks <= 0:
                    return
                max_breaks -= 1
                yield ChainBreak(kind, str(row_id), "was written past the chain")


def _load_linked_rows(connection: Connection) -> Iterator[tuple[RowMapping, RowMapping | None]]:
    """Yield each link in order with the row that it refers to, or None if the row no longer exists."""
    table = table_of(ChainLink)
    for links in connection.execute(select(table).order_by(table.c.id)).mappings().partitions(LINKS_PER_QUERY):
        keys = [_parse_row_id(link["kind"], link["row"]) for link in links]
        rows = {kind: _load_rows(connection, kind, links, keys) for kind in {link["kind"] for link in links}}
        for link, key in zip(links, keys, strict=True):
            yield link, rows[link["kind"]].get(key)


def _load_rows(
    connection: Connection, kind: str, links: Sequence[RowMapping], keys: Sequence[Any]
) -> dict[Any, RowMapping]:
    """The rows of a kind to which links refer, by their keys."""
    row_class, key_column = CHAINED_TABLES[kind]
    table: Table = table_of(row_class)
    kind_keys = [key for link, key in zip(links, keys, strict=True) if link["kind"] == kind]
    rows = connection.execute(select(table).where(table.c[key_column].in_(kind_keys))).mappings()
    return {row[key_column]: row for row in rows}


def _parse_row_id(kind: str, row_id: str) -> Any:
    return int(row_id) if CHAINED_TABLES[kind][1] == "id" else row_id


def _link_digest(previous_digest: str, kind: str, row: Mapping[str, Any] | RowMapping) -> str:
    """Hash of the previous link and a row's columns that are not NULL, so that a new column does not change it."""
    content = {column: value for column, value in dict(row).items() if value is not None}
    return canonical_hash([previous_digest, kind, content])


def _matches_digest(digest: str, previous_digest: str, kind: str, row: RowMapping) -> bool:
    """Whether a link's digest is that of a row, for any of the `_number_variants` of its numbers."""
    try:
        return any(_link_digest(previous_digest, kind, variant) == digest for variant in _number_variants(kind, row))
    except (TypeError, ValueError):  # bytes or a number that is not finite: auditor never writes such a row
        return False


def _number_variants(kind: str, row: RowMapping) -> Iterator[dict[str, Any]]:
    """Yield the row as stored, then with integral values of its float columns as int, and with zeros as 0 or -0.0.

    Earlier versions linked ratings with the values of SQLite's RETURNING, which gives 3 for a stored 3.0.
    """
    columns = table_of(CHAINED_TABLES[kind][0]).c
    integral_columns = [
        column
        for column, value in row.items()
        if isinstance(value, float) and value.is_integer() and columns[column].type.python_type is float
    ]
    variants_by_column = [
        (abs(row[column]), 0, -0.0) if row[column] == 0 else (row[column], int(row[column]))
        for column in integral_columns
    ]
    for numbers in itertools.product(*variants_by_column):
        yield {**row, **dict(zip(integral_columns, numbers, strict=True))}


def contains_head(db: Database, head: str) -> bool:
    """Whether a head that was noted earlier is a digest of the chain, or its start."""
    table = table_of(ChainLink)
    with db.read() as connection:
        link_id = connection.execute(select(table.c.id).where(table.c.digest == head).limit(1)).scalar_one_or_none()
    return link_id is not None or head == START_DIGEST
