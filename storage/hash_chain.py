"""A chain of hashes over what was answered and decided: a row that is changed or gone later breaks it.

Each link hashes the link before it and the row's content, so the last one, the head, stands for all of them in order.
Whoever notes the head (in a paper, say) can show later that nothing behind it was touched.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, Insert, RowMapping, Select, Table, insert, select
from sqlmodel import SQLModel

from auditor.domain import canonical_hash
from auditor.storage.database import Database, table_of
from auditor.storage.tables import AnswerRow, ChainLinkRow, RatingRow

START_DIGEST = "0" * 64
CHAINED_TABLES: dict[str, tuple[type[SQLModel], str]] = {"answer": (AnswerRow, "key"), "rating": (RatingRow, "id")}
"""What is chained, and the column that names a row."""


class ChainBreak(NamedTuple):
    """A place where the records are not as they were written; `what` goes on from "answer KEY"."""

    record_kind: str
    row_id: str
    problem: str


class ChainCheck(NamedTuple):
    """What came of a check.

    Attributes:
        links: links in the chain.
        head: the last of them, 64 hexadecimal digits; all zeros when there is none.
        broken: the first places that do not hold, at most as many as were asked for.
    """

    n_links: int
    head: str
    breaks: Sequence[ChainBreak]


def append_links(connection: Connection, kind: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Link rows that were just inserted, in this order and the same transaction.

    Args:
        rows: all columns of each, as they will be read again: see `database.as_stored`.
    """
    if not rows:
        return
    ending, linking = _link_statements()
    (_, column), last = CHAINED_TABLES[kind], connection.execute(ending).scalar_one_or_none() or START_DIGEST
    links = []
    for row in rows:
        last = _link_digest(last, kind, row)
        links.append({"kind": kind, "row": str(row[column]), "digest": last})
    connection.execute(linking, links)


@functools.cache
def _link_statements() -> tuple[Select[Any], Insert]:
    """What finds the last link, and what adds some; made once, as it takes longer than to carry them out."""
    table = table_of(ChainLinkRow)
    return select(table.c.digest).order_by(table.c.id.desc()).limit(1), insert(table)


def verify_chain(db: Database, max_breaks: int = 10) -> ChainCheck:
    """Go along the whole chain, and look for rows that are in none of its links."""
    broken: list[ChainBreak] = []
    table = table_of(ChainLinkRow)
    last, count = START_DIGEST, 0
    seen: dict[str, set[str]] = {kind: set() for kind in CHAINED_TABLES}
    with db.read() as connection:
        for link in connection.execute(select(table).order_by(table.c.id)).mappings():
            count += 1
            kind, name = link["kind"], link["row"]
            row = _find_row(connection, kind, name)
            if row is None:
                broken.append(ChainBreak(kind, name, "is gone"))
            elif not _matches_digest(link["digest"], last, kind, row):
                broken.append(ChainBreak(kind, name, "is not as it was written"))
            seen[kind].add(name)
            last = link["digest"]
            if len(broken) >= max_breaks:
                return ChainCheck(count, last, broken)
        broken += _find_unlinked_rows(connection, seen, max_breaks - len(broken))
    return ChainCheck(count, last, broken)


def _find_unlinked_rows(
    connection: Connection, linked_rows: dict[str, set[str]], max_breaks: int
) -> Iterator[ChainBreak]:
    for kind, (row, column) in CHAINED_TABLES.items():
        table = table_of(row)
        for name in connection.execute(select(table.c[column])).scalars():
            if str(name) not in linked_rows[kind]:
                if max_breaks <= 0:
                    return
                max_breaks -= 1
                yield ChainBreak(kind, str(name), "was written past the chain")


def _find_row(connection: Connection, kind: str, row_id: str) -> RowMapping | None:
    row, column = CHAINED_TABLES[kind]
    table: Table = table_of(row)
    return (
        connection.execute(select(table).where(table.c[column] == _parse_row_id(kind, row_id))).mappings().one_or_none()
    )


def _parse_row_id(kind: str, row_id: str) -> Any:
    return int(row_id) if kind == "rating" else row_id


def _link_digest(previous_digest: str, kind: str, row: Mapping[str, Any] | RowMapping) -> str:
    content = {k: v for k, v in dict(row).items() if v is not None}
    return canonical_hash([previous_digest, kind, content])


def _matches_digest(digest: str, previous_digest: str, kind: str, row: RowMapping) -> bool:
    """Whether a link's digest is of this row, in any way of writing the same numbers."""
    try:
        return any(_link_digest(previous_digest, kind, form) == digest for form in _number_variants(kind, row))
    except (TypeError, ValueError):  # bytes, or a number that is not finite: no row is written with one
        return False


def _number_variants(kind: str, row: RowMapping) -> Iterator[dict[str, Any]]:
    """The row as `as_stored` gives it, then with whole numbers of its float columns as ints, or zeros as -0.0.

    Ratings used to be chained as SQLite's RETURNING gives them, which is 3 for a stored 3.0.
    """
    columns = table_of(CHAINED_TABLES[kind][0]).c
    whole_numbers = [
        n for n, v in row.items() if isinstance(v, float) and v.is_integer() and columns[n].type.python_type is float
    ]
    forms = [(abs(row[n]), 0, -0.0) if row[n] == 0 else (row[n], int(row[n])) for n in whole_numbers]
    for values in itertools.product(*forms):
        yield {**row, **dict(zip(whole_numbers, values, strict=True))}


def contains_head(db: Database, head: str) -> bool:
    """Whether a head that was noted earlier is a link of the chain, or its start."""
    table = table_of(ChainLinkRow)
    with db.read() as connection:
        found = connection.execute(select(table.c.id).where(table.c.digest == head).limit(1)).scalar_one_or_none()
    return found is not None or head == START_DIGEST
