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
from auditor.storage.tables import AnswerRow, LinkRow, RatingRow

START = "0" * 64
KINDS: dict[str, tuple[type[SQLModel], str]] = {"answer": (AnswerRow, "key"), "rating": (RatingRow, "id")}
"""What is chained, and the column that names a row."""


class Broken(NamedTuple):
    """A place where the records are not as they were written; `what` goes on from "answer KEY"."""

    kind: str
    row: str
    what: str


class Checked(NamedTuple):
    """What came of a check.

    Attributes:
        links: links in the chain.
        head: the last of them, 64 hexadecimal digits; all zeros when there is none.
        broken: the first places that do not hold, at most as many as were asked for.
    """

    links: int
    head: str
    broken: Sequence[Broken]


def extend(connection: Connection, kind: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Link rows that were just inserted, in this order and the same transaction.

    Args:
        rows: all columns of each, as they will be read again: see `database.as_stored`.
    """
    if not rows:
        return
    ending, linking = _statements()
    (_, column), last = KINDS[kind], connection.execute(ending).scalar_one_or_none() or START
    links = []
    for row in rows:
        last = _digest(last, kind, row)
        links.append({"kind": kind, "row": str(row[column]), "digest": last})
    connection.execute(linking, links)


@functools.cache
def _statements() -> tuple[Select[Any], Insert]:
    """What finds the last link, and what adds some; made once, as it takes longer than to carry them out."""
    table = table_of(LinkRow)
    return select(table.c.digest).order_by(table.c.id.desc()).limit(1), insert(table)


def check(db: Database, most: int = 10) -> Checked:
    """Go along the whole chain, and look for rows that are in none of its links."""
    broken: list[Broken] = []
    table = table_of(LinkRow)
    last, count = START, 0
    seen: dict[str, set[str]] = {kind: set() for kind in KINDS}
    with db.read() as connection:
        for link in connection.execute(select(table).order_by(table.c.id)).mappings():
            count += 1
            kind, name = link["kind"], link["row"]
            row = _row(connection, kind, name)
            if row is None:
                broken.append(Broken(kind, name, "is gone"))
            elif not _matches(link["digest"], last, kind, row):
                broken.append(Broken(kind, name, "is not as it was written"))
            seen[kind].add(name)
            last = link["digest"]
            if len(broken) >= most:
                return Checked(count, last, broken)
        broken += _unlinked(connection, seen, most - len(broken))
    return Checked(count, last, broken)


def _unlinked(connection: Connection, seen: dict[str, set[str]], most: int) -> Iterator[Broken]:
    for kind, (row, column) in KINDS.items():
        table = table_of(row)
        for name in connection.execute(select(table.c[column])).scalars():
            if str(name) not in seen[kind]:
                if most <= 0:
                    return
                most -= 1
                yield Broken(kind, str(name), "was written past the chain")


def _row(connection: Connection, kind: str, name: str) -> RowMapping | None:
    row, column = KINDS[kind]
    table: Table = table_of(row)
    return connection.execute(select(table).where(table.c[column] == _value(kind, name))).mappings().one_or_none()


def _value(kind: str, name: str) -> Any:
    return int(name) if kind == "rating" else name


def _digest(last: str, kind: str, row: Mapping[str, Any] | RowMapping) -> str:
    content = {k: v for k, v in dict(row).items() if v is not None}
    return canonical_hash([last, kind, content])


def _matches(digest: str, last: str, kind: str, row: RowMapping) -> bool:
    """Whether a link's digest is of this row, in any way of writing the same numbers."""
    try:
        return any(_digest(last, kind, form) == digest for form in _number_forms(kind, row))
    except (TypeError, ValueError):  # bytes, or a number that is not finite: no row is written with one
        return False


def _number_forms(kind: str, row: RowMapping) -> Iterator[dict[str, Any]]:
    """The row as `as_stored` gives it, then with whole numbers of its float columns as ints, or zeros as -0.0.

    Ratings used to be chained as SQLite's RETURNING gives them, which is 3 for a stored 3.0.
    """
    columns = table_of(KINDS[kind][0]).c
    whole_numbers = [
        n for n, v in row.items() if isinstance(v, float) and v.is_integer() and columns[n].type.python_type is float
    ]
    forms = [(abs(row[n]), 0, -0.0) if row[n] == 0 else (row[n], int(row[n])) for n in whole_numbers]
    for values in itertools.product(*forms):
        yield {**row, **dict(zip(whole_numbers, values, strict=True))}


def has(db: Database, head: str) -> bool:
    """Whether a head that was noted earlier is a link of the chain, or its start."""
    table = table_of(LinkRow)
    with db.read() as connection:
        found = connection.execute(select(table.c.id).where(table.c.digest == head).limit(1)).scalar_one_or_none()
    return found is not None or head == START
