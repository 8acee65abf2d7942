"""Write and read the records of an audit, of any class that is declared as stored (`auditor.domain.records`).

Functions that take a connection are for a transaction that has more to write; the others make their own.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from operator import attrgetter
from typing import Any, TypeVar

import sqlalchemy as sa

from auditor.domain.records import table_declaration
from auditor.storage import exclusions, hash_chain
from auditor.storage.database import Database
from auditor.storage.ledger import MAX_KEYS_PER_QUERY
from auditor.storage.row_classes import conversion_of, insert_rows, table_of, upsert

R = TypeVar("R")
ROWS_PER_STATEMENT = 2_000
"""Rows that are converted at a time: with more of them alive, Python's garbage collector takes a third of the time."""


def save_records(db: Database, audit_id: int, records: Sequence[object], *, probe: str | None = None) -> None:
    """Store records of one class; a stored one of the audit with the same key is replaced.

    Args:
        probe: name of the probe, of records in a table that probes share.
    """
    if records:
        db.write(lambda connection: write_records(connection, audit_id, type(records[0]), records, probe=probe))


def save_experiment(
    db: Database, audit_id: int, records: Sequence[object], *, replaced: Sequence[type[Any]] = ()
) -> None:
    """Do what `save_records` does for results of an experiment; no run derives them, so they are in the hash chain.

    Args:
        replaced: classes of records all of which are deleted first.
    """

    def job(connection: sa.Connection) -> None:
        if replaced:
            with hash_chain.record_changes(connection, audit_id, hash_chain.EXPERIMENT_KINDS):
                for record_class in replaced:
                    replace_records(connection, audit_id, record_class, ())
        record_class = type(records[0])
        rows = conversion_of(record_class).to_rows(records, audit_id=audit_id)
        with hash_chain.record_named(connection, audit_id, record_class, rows):
            write_records(connection, audit_id, record_class, records)

    if records:
        db.write(job)


def write_records(
    connection: sa.Connection,
    audit_id: int,
    record_class: type[Any],
    records: Iterable[object],
    *,
    is_new: bool = False,
    probe: str | None = None,
) -> None:
    """Store records of one class; a stored one of the audit with the same key is replaced.

    Args:
        connection: in a transaction.
        audit_id: of the audit.
        record_class: of the records.
        records: in the order that their positions have, where their table has positions.
        is_new: whether no record with the same key is stored, which is faster.
        probe: as in `save_records`.
    """
    conversion, remaining = conversion_of(record_class), iter(records)
    owner: dict[str, int | str] = {"audit_id": audit_id} if probe is None else {"audit_id": audit_id, "probe": probe}
    has_position, n_written = table_declaration(record_class).position is not None, 0
    while chunk := list(islice(remaining, ROWS_PER_STATEMENT)):
        rows = conversion.to_rows(chunk, **owner)
        if has_position:
            rows = [row | {"position": position} for position, row in enumerate(rows, start=n_written)]
        with (
            hash_chain.record_imported(connection, audit_id, record_class),
            hash_chain.record_measured(connection, record_class, rows, audit_id),
        ):
            if is_new:
                insert_rows(connection, record_class, rows)
            else:
                upsert(connection, record_class, rows, conversion.column_names)
        exclusions.apply_to_written(connection, audit_id, record_class, rows)
        n_written += len(chunk)


def replace_records(
    connection: sa.Connection, audit_id: int, record_class: type[Any], records: Iterable[object]
) -> None:
    """Store records in place of all that the audit has of their class."""
    table = table_of(record_class)
    with hash_chain.record_imported(connection, audit_id, record_class):
        connection.execute(sa.delete(table).where(table.c.audit_id == audit_id))
        write_records(connection, audit_id, record_class, records, is_new=True)


def delete_unplanned(
    db: Database, audit_id: int, record_class: type[Any], planned: Iterable[tuple[object, ...]], **values: Iterable[str]
) -> None:
    """Delete an audit's records that its plan no longer has, as where it depends on answers that came later.

    Nor does the undo of an exclusion restore them.

    Args:
        db, audit_id, record_class: as in `load_records`.
        planned: keys, as stored, in the order of their columns.
        values: by name of a column of the key, the values of records that may be deleted: of a batch, all columns up to
            one that tells it from others, so that its records are found without reading those of all batches.
    """
    table = table_of(record_class)
    columns = [column for column in table.primary_key if column.name != "audit_id"]
    deletable = {name: set(value) for name, value in values.items()}
    conditions = [table.c.audit_id == audit_id, *(table.c[name].in_(value) for name, value in deletable.items())]
    with db.read() as connection:
        keys = set(map(tuple, connection.execute(sa.select(*columns).where(*conditions))))
        excluded = exclusions.read_excluded_keys(connection, audit_id, table)
    keys |= {
        key
        for key in excluded
        if all(part in deletable.get(column.name, {part}) for column, part in zip(columns, key, strict=True))
    }
    unplanned = keys.difference(planned)

    def job(connection: sa.Connection) -> None:
        for key in unplanned:
            is_key = (column == value for column, value in zip(columns, key, strict=True))
            connection.execute(sa.delete(table).where(table.c.audit_id == audit_id, *is_key))
        if forgotten := unplanned & excluded:
            exclusions.forget_excluded(connection, audit_id, table, forgotten)

    if unplanned:
        db.write(job)


@functools.cache
def _select_all(record_class: type[Any]) -> sa.Select[Any]:
    """A query of all records of a class. Cached: SQLAlchemy takes longer to build it than SQLite for a few rows."""
    c = table_of(record_class).c
    return sa.select(*(c[name] for name in conversion_of(record_class).column_names))


def load_records(
    db: Database,
    audit_id: int,
    record_class: type[R],
    cells: Iterable[tuple[str, ...]] | None = None,
    **values: str | Iterable[str] | None,
) -> list[R]:
    """Load an audit's records of a class, in order of their position where they have one, else of their key.

    Args:
        db: the database.
        audit_id: of the audit.
        record_class: of the records.
        cells: load only records of these cells (country and topic); None for all.
        values: by name of a column, the value or the values that it must have; None for any.
    """
    with db.read() as connection:
        return read_records(connection, audit_id, record_class, cells, **values)


def read_records(
    connection: sa.Connection,
    audit_id: int,
    record_class: type[R],
    cells: Iterable[tuple[str, ...]] | None = None,
    **values: str | Iterable[str] | None,
) -> list[R]:
    """Do what `load_records` does on an open connection."""
    table, conversion = table_of(record_class), conversion_of(record_class)
    query = _select_all(record_class).where(table.c.audit_id == audit_id)  # type: ignore[arg-type] # classes are hashable
    is_part = cells is not None
    for name, value in values.items():
        if isinstance(value, str):
            query = query.where(table.c[name] == value)
        elif value is not None:
            query, is_part = query.where(table.c[name].in_(list(value))), True
    if not is_part:
        has_position = table_declaration(record_class).position is not None
        order = [table.c.position] if has_position else list(table.primary_key)
        return list(map(conversion.to_record, connection.execute(query.order_by(*order))))
    rows = connection.execute(query) if cells is None else _select_cells(connection, query, table, cells)
    # Sorted in Python: ORDER BY judge makes SQLite scan all verdicts of the audit instead of those of these cells.
    key_names = [column.name for column in table.primary_key if column.name != "audit_id"]
    return list(map(conversion.to_record, sorted(rows, key=attrgetter(*key_names))))


def _select_cells(
    connection: sa.Connection, query: sa.Select[Any], table: sa.Table, cells: Iterable[tuple[str, ...]]
) -> Iterator[sa.Row[Any]]:
    """Yield the rows of some cells that a query selects; an index finds them, and no others are fetched.

    SQLite uses an index for a condition on each column, not for one on pairs of values. So there is one query for all
    countries of the cells with the same topics.
    """
    topics_by_country: dict[str, set[str]] = {}
    for country, topic in cells:
        topics_by_country.setdefault(country, set()).add(topic)
    countries_by_topics: dict[frozenset[str], list[str]] = {}
    for country, topics in topics_by_country.items():
        countries_by_topics.setdefault(frozenset(topics), []).append(country)
    for same_topics, countries in countries_by_topics.items():
        for some_countries in _split(countries):
            for some_topics in _split(sorted(same_topics)):
                is_of_cells = table.c.country.in_(some_countries) & table.c.topic.in_(some_topics)
                yield from connection.execute(query.where(is_of_cells))


def _split(values: Sequence[str]) -> Iterator[Sequence[str]]:
    """Split values into parts, two of which fit into one query."""
    size = MAX_KEYS_PER_QUERY // 2
    return (values[start : start + size] for start in range(0, len(values), size))


def load_columns(
    db: Database, audit_id: int, record_class: type, part_class: type[R], cells: Iterable[tuple[str, ...]] | None
) -> list[R]:
    """Load those columns of an audit's records that the fields of another class name, in no particular order.

    Args:
        part_class: of what is returned; its fields have the names and types of the record's.
        cells: as in `load_records`.
    """
    table, conversion = table_of(record_class), conversion_of(part_class)
    query = sa.select(*(table.c[name] for name in conversion.column_names)).where(table.c.audit_id == audit_id)
    with db.read() as connection:
        rows = connection.execute(query) if cells is None else _select_cells(connection, query, table, cells)
        return list(map(conversion.to_record, rows))


def count_records(
    db: Database, audit_id: int, record_class: type, column_names: Sequence[str]
) -> dict[tuple[Any, ...], int]:
    """Count an audit's records of a class by the values of some columns, in the database."""
    c = table_of(record_class).c
    columns = [c[name] for name in column_names]
    query = sa.select(*columns, sa.func.count()).where(c.audit_id == audit_id).group_by(*columns)
    with db.read() as connection:
        return {tuple(row[:-1]): int(row[-1]) for row in connection.execute(query)}
