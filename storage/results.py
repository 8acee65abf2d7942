"""Rows that are parsed from answers: traces, sentence pairs, scores, verdicts, conflicts; and people's ratings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Row, Select, Table, delete, func, insert, select
from sqlmodel import SQLModel

from auditor.domain import (
    AlteredTraceVerdict,
    Cell,
    CellScore,
    Conflict,
    ConflictKind,
    ConflictSides,
    Contest,
    Guess,
    Method,
    Outcome,
    Rating,
    Restatement,
    SentencePairScore,
    Survey,
    Trace,
    Verdict,
    canonical_json,
)
from auditor.storage import audits, exclusions, hash_chain
from auditor.storage.database import Database
from auditor.storage.ledger import MAX_KEYS_PER_QUERY
from auditor.storage.record_parsing import field_parsers, make_row_parser
from auditor.storage.result_tables import ScoreRow, SentencePairRow, TraceRow, VerdictRow
from auditor.storage.review_tables import ClaimRow, ConflictRow, RatingRow
from auditor.storage.row_writing import coerce_values, insert_rows, replace_rows, table_of, upsert

ROWS_PER_STATEMENT = 10_000
"""Rows that are converted at a time: a million of them, as dictionaries, would need a gigabyte."""

R = TypeVar(
    "R",
    Trace,
    SentencePairScore,
    CellScore,
    Verdict,
    Conflict,
    Rating,
    Guess,
    Restatement,
    AlteredTraceVerdict,
    Contest,
)

CLAIM_KINDS = [kind.value for kind in ConflictKind if kind.spec.sides is ConflictSides.CLAIMS]
"""Kinds of conflicts that a user's command queues; a run neither makes nor deletes them."""


def save_traces(db: Database, audit_id: int, traces: Sequence[Trace]) -> None:
    """Store traces; a stored one of the same model, cell and sample is replaced."""
    save_rows(db, audit_id, TraceRow, traces)


def save_sentence_pairs(db: Database, audit_id: int, sentence_pairs: Sequence[SentencePairScore]) -> None:
    """Store sentence pairs; a stored one of the same model, cell and number is replaced."""
    save_rows(db, audit_id, SentencePairRow, sentence_pairs)


def save_scores(db: Database, audit_id: int, scores: Sequence[CellScore]) -> None:
    """Store scores; a stored one of the same model, cell and method is replaced."""
    save_rows(db, audit_id, ScoreRow, scores)


def save_verdicts(db: Database, audit_id: int, verdicts: Sequence[Verdict]) -> None:
    """Store verdicts; a stored one of the same judge and trace is replaced."""
    save_rows(db, audit_id, VerdictRow, verdicts)


def save_recorded_audit(
    db: Database,
    *,
    name: str,
    config_hash: str,
    survey: Survey,
    environment: dict[str, Any],
    traces: Sequence[Trace],
    scores: Sequence[CellScore],
) -> None:
    """Store an audit of recorded results as finished, in one transaction: all of it, or the earlier one stays.

    Args:
        name, config_hash, survey, environment: as in `audits.save_audit`.
    """

    def write_results(connection: Connection, audit_id: int) -> None:
        for row_class, records in ((TraceRow, traces), (ScoreRow, scores)):
            replace_rows(connection, row_class, audit_id, [])
            write_rows(connection, audit_id, row_class, records, is_new=True)

    audits.save_finished_audit(
        db,
        name=name,
        config_hash=config_hash,
        survey=survey,
        environment=environment,
        write_results=write_results,
    )


def replace_conflicts(db: Database, audit_id: int, conflicts: Sequence[Conflict]) -> None:
    """Store an audit's conflicts between scores in place of those it had; those between claims are not touched."""

    def job(connection: Connection) -> None:
        table = table_of(ConflictRow)
        connection.execute(delete(table).where(table.c.audit_id == audit_id, table.c.kind.not_in(CLAIM_KINDS)))
        if conflicts:
            connection.execute(insert(table), [_to_row(audit_id, conflict) for conflict in conflicts])

    db.write(job)


def replace_claim_conflicts(
    db: Database, audit_id: int, claims_by_conflict: Mapping[Conflict, tuple[str, str]]
) -> None:
    """Store an audit's conflicts between claims in place of those it had, with the claims of the two sides."""
    rows = [_to_row(audit_id, conflict) for conflict in claims_by_conflict]
    claims = [
        {
            "audit_id": audit_id,
            "country": conflict.cell.country,
            "topic": conflict.cell.topic,
            "model": model,
            "text": text,
        }
        for conflict, texts in claims_by_conflict.items()
        for model, text in zip((conflict.left, conflict.right), texts, strict=True)
    ]

    def job(connection: Connection) -> None:
        table, claim = table_of(ConflictRow), table_of(ClaimRow)
        connection.execute(delete(table).where(table.c.audit_id == audit_id, table.c.kind.in_(CLAIM_KINDS)))
        connection.execute(delete(claim).where(claim.c.audit_id == audit_id))
        if rows:
            connection.execute(insert(table), rows)
            connection.execute(insert(claim), claims)

    db.write(job)


def insert_rating(connection: Connection, audit_id: int, rating: Rating) -> int:
    """Append a person's rating to the table and its link to the hash chain; return its id."""
    table = table_of(RatingRow)
    values = _to_row(audit_id, rating) | {"decided_at": rating.decided_at.isoformat(timespec="milliseconds")}
    row = connection.execute(insert(table).returning(*table.c), coerce_values(RatingRow, values)).mappings().one()
    # RETURNING of SQLite gives an integral value of a float column as int, a later SELECT gives it as float.
    hash_chain.append_links(connection, "rating", [coerce_values(RatingRow, dict(row))])
    return int(row["id"])


def load_traces(
    db: Database, audit_id: int, cells: Iterable[Cell] | None = None, model: str | None = None
) -> list[Trace]:
    """Load an audit's traces by model, country, topic and sample, of some cells or all, of one model or all."""
    return load_records(db, audit_id, TraceRow, Trace, cells, model)


def load_scored_trace_keys(db: Database, audit_id: int) -> list[tuple[str, Cell, int]]:
    """Load model, cell and sample of an audit's traces whose outcome is `ok`, in order."""
    c = table_of(TraceRow).c
    query = select(c.model, c.country, c.topic, c.sample).where(c.audit_id == audit_id, c.outcome == Outcome.OK.value)
    with db.read() as connection:
        rows = connection.execute(query.order_by(c.model, c.country, c.topic, c.sample))
        return [(model, Cell(country, topic), sample) for model, country, topic, sample in rows]


def load_sample_scores(db: Database, audit_id: int) -> list[tuple[str, Cell, int, float | None]]:
    """Load model, cell, sample and score of an audit's traces, in order; the score is None if a trace has none."""
    c = table_of(TraceRow).c
    key = (c.model, c.country, c.topic, c.sample)
    with db.read() as connection:
        rows = connection.execute(select(*key, c.score).where(c.audit_id == audit_id).order_by(*key))
        return [(model, Cell(country, topic), sample, score) for model, country, topic, sample, score in rows]


def delete_traces(db: Database, audit_id: int, trace_keys: Sequence[tuple[str, Cell, int]]) -> None:
    """Delete traces, the verdicts on them, and the direct score of a cell without traces; answers stay recorded."""

    def job(connection: Connection) -> None:
        trace = table_of(TraceRow)
        for model, cell, sample in trace_keys:
            for table in (trace, table_of(VerdictRow)):
                connection.execute(delete(table).where(*matches_cell(table, model, cell), table.c.sample == sample))
        for model, cell in dict.fromkeys((model, cell) for model, cell, _ in trace_keys):
            if (
                connection.execute(select(trace.c.sample).where(*matches_cell(trace, model, cell)).limit(1)).first()
                is None
            ):
                score = table_of(ScoreRow)
                is_direct = score.c.method == Method.DIRECT.value
                connection.execute(delete(score).where(*matches_cell(score, model, cell), is_direct))

    def matches_cell(table: Table, model: str, cell: Cell) -> tuple[ColumnElement[bool], ...]:
        c = table.c
        return c.audit_id == audit_id, c.model == model, c.country == cell.country, c.topic == cell.topic

    if trace_keys:
        db.write(job)


def load_mean_scores(db: Database, audit_id: int) -> list[tuple[str, Cell, float]]:
    """Load model, cell and mean score of an audit's `ok` samples, in order."""
    c = table_of(TraceRow).c
    group = (c.model, c.country, c.topic)
    query = select(*group, func.avg(c.score)).where(c.audit_id == audit_id, c.outcome == Outcome.OK.value)
    with db.read() as connection:
        rows = connection.execute(query.group_by(*group).order_by(*group))
        return [(model, Cell(country, topic), float(mean)) for model, country, topic, mean in rows]


def load_sentence_pairs(db: Database, audit_id: int, cells: Iterable[Cell] | None = None) -> list[SentencePairScore]:
    """Load an audit's sentence pairs in order of model, country, topic and number, of some cells or all."""
    return load_records(db, audit_id, SentencePairRow, SentencePairScore, cells)


def load_scores(db: Database, audit_id: int) -> list[CellScore]:
    """Load an audit's scores."""
    return load_records(db, audit_id, ScoreRow, CellScore)


def load_verdicts(
    db: Database, audit_id: int, cells: Iterable[Cell] | None = None, model: str | None = None
) -> list[Verdict]:
    """Load an audit's verdicts, of some cells or all, on one model's traces or all."""
    return load_records(db, audit_id, VerdictRow, Verdict, cells, model)


def load_conflicts(db: Database, audit_id: int) -> list[Conflict]:
    """Load an audit's conflicts of all kinds."""
    return load_records(db, audit_id, ConflictRow, Conflict)


def load_voted_conflicts(db: Database, audit_id: int) -> list[Conflict]:
    """Load an audit's conflicts between models, on which judges vote."""
    return [conflict for conflict in load_conflicts(db, audit_id) if conflict.kind.is_voted]


def load_unvoted_conflicts(db: Database, audit_id: int) -> list[Conflict]:
    """Load an audit's conflicts between scores on which judges do not vote, so that only people can resolve them."""
    conflicts = load_conflicts(db, audit_id)
    return [c for c in conflicts if not c.kind.is_voted and c.kind.spec.sides is not ConflictSides.CLAIMS]


def load_ratings(db: Database, audit_id: int) -> list[Rating]:
    """Load an audit's ratings, oldest first."""
    return load_records(db, audit_id, RatingRow, Rating)


def save_rows(db: Database, audit_id: int, row_class: type[SQLModel], records: Sequence[Any]) -> None:
    """Store records, each with a field `cell`, as rows of an audit; a stored row with the same key is replaced."""
    if records:
        db.write(lambda connection: write_rows(connection, audit_id, row_class, records))


def write_rows(
    connection: Connection, audit_id: int, row_class: type[SQLModel], records: Sequence[Any], *, is_new: bool = False
) -> None:
    """Do what `save_rows` does within a transaction that has more to write.

    Args:
        is_new: whether no row with the same key is stored, which is faster.
    """
    for start in range(0, len(records), ROWS_PER_STATEMENT):
        rows = [_to_row(audit_id, record) for record in records[start : start + ROWS_PER_STATEMENT]]
        if is_new:
            insert_rows(connection, row_class, rows)
        else:
            upsert(connection, row_class, rows)
    if row_class in exclusions.VALUE_COLUMNS:
        exclusions.apply_exclusions(connection, audit_id)


def _to_row(audit_id: int, record: Any) -> dict[str, Any]:
    """Convert a record to a row of an audit: its fields as columns, `cell` split into country and topic."""
    # Not `asdict`, which copies each value and takes five times as long.
    values = {name: getattr(record, name) for name in record.__dataclass_fields__}
    country, topic = values.pop("cell")
    if isinstance(record, Verdict):
        values["aspects"] = canonical_json(dict(values["aspects"]))
    return {"audit_id": audit_id, "country": country, "topic": topic, **values}


def load_records(
    db: Database,
    audit_id: int,
    row_class: type[SQLModel],
    record_class: type[R],
    cells: Iterable[Cell] | None = None,
    model: str | None = None,
) -> list[R]:
    """Load an audit's rows of a class as records, in order of their key, of some cells or all, of one model or all."""
    return [
        record_class(cell=cell, **values)
        for cell, values in _iter_stored_rows(db, audit_id, table_of(row_class), record_class, cells, model)
    ]


def _iter_stored_rows(
    db: Database,
    audit_id: int,
    table: Table,
    record_class: type,
    cells: Iterable[Cell] | None,
    model: str | None,
) -> Iterator[tuple[Cell, dict[str, Any]]]:
    """Yield the cell of each row, and the values of the record's fields that the table has, with enums and times."""
    stored_names = [field.name for field in fields(record_class) if field.name in table.c]
    parse_row = make_row_parser(stored_names, field_parsers(record_class))
    columns = [table.c.country, table.c.topic, *(table.c[name] for name in stored_names)]
    query = select(*columns).where(table.c.audit_id == audit_id)
    if model is not None:
        query = query.where(table.c.model == model)
    with db.read() as connection:
        if cells is None:
            yield from map(parse_row, connection.execute(query.order_by(*table.primary_key)))
        else:
            yield from map(parse_row, _select_cells(connection, query, table, cells))


def _select_cells(
    connection: Connection, query: Select[Any], table: Table, cells: Iterable[Cell]
) -> Iterable[Row[Any]]:
    """Run a query of some cells' rows, and sort them by their key; an index finds the rows, and no others are fetched.

    SQLite uses an index for a condition on each column, not for one on pairs of values. So there is one query for all
    countries of the cells with the same topics.
    """
    topics_by_country: dict[str, set[str]] = {}
    for country, topic in cells:
        topics_by_country.setdefault(country, set()).add(topic)
    countries_by_topics: dict[frozenset[str], list[str]] = {}
    for country, topics in topics_by_country.items():
        countries_by_topics.setdefault(frozenset(topics), []).append(country)
    rows = [
        row
        for topics, countries in countries_by_topics.items()
        for some_countries in _split(countries)
        for some_topics in _split(sorted(topics))
        for row in connection.execute(query.where(table.c.country.in_(some_countries), table.c.topic.in_(some_topics)))
    ]
    # Sorted in Python: ORDER BY judge makes SQLite scan all verdicts of the audit instead of those of these cells.
    key_names = [column.name for column in table.primary_key if column.name != "audit_id"]
    return sorted(rows, key=attrgetter(*key_names))


def _split(values: Sequence[str]) -> Iterator[Sequence[str]]:
    """Split values into parts, two of which fit into one query."""
    size = MAX_KEYS_PER_QUERY // 2
    return (values[start : start + size] for start in range(0, len(values), size))
