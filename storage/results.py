"""What is read out of answers, as rows: traces, scores, verdicts, conflicts, and people's ratings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeVar

from sqlalchemy import Connection, delete, func, insert, select
from sqlmodel import SQLModel

from auditor.domain import (
    Act,
    Cell,
    CellScore,
    Conflict,
    ConflictKind,
    ConflictState,
    Contest,
    Contrast,
    Decision,
    Guess,
    Measure,
    Outcome,
    Rating,
    Restatement,
    Ruling,
    Trace,
    Trial,
    Verdict,
)
from auditor.storage import chain
from auditor.storage.database import Database, table_of, upsert
from auditor.storage.tables import ClaimRow, ConflictRow, ContrastRow, RatingRow, ScoreRow, TraceRow, VerdictRow

R = TypeVar("R", Trace, Contrast, CellScore, Verdict, Conflict, Rating, Guess, Restatement, Trial, Contest)

ENUMS: dict[str, type[StrEnum]] = {
    "outcome": Outcome,
    "ruling": Ruling,
    "kind": ConflictKind,
    "state": ConflictState,
    "decision": Decision,
    "act": Act,
    "measure": Measure,
}


def save_traces(db: Database, audit_id: int, traces: Sequence[Trace]) -> None:
    """Store traces; the same audit, model, cell and sample replaces what was there."""
    save_rows(db, audit_id, TraceRow, traces)


def save_contrasts(db: Database, audit_id: int, contrasts: Sequence[Contrast]) -> None:
    """Store contrasts; the same audit, model, cell and number replaces what was there."""
    save_rows(db, audit_id, ContrastRow, contrasts)


def save_scores(db: Database, audit_id: int, scores: Sequence[CellScore]) -> None:
    """Store scores; the same audit, model, cell and method replaces what was there."""
    save_rows(db, audit_id, ScoreRow, scores)


def save_verdicts(db: Database, audit_id: int, verdicts: Sequence[Verdict]) -> None:
    """Store verdicts; the same judge and trace replaces what was there."""
    save_rows(db, audit_id, VerdictRow, verdicts)


def replace_conflicts(db: Database, audit_id: int, conflicts: Sequence[Conflict]) -> None:
    """Store all conflicts of scores of an audit in place of those it had."""

    def job(connection: Connection) -> None:
        table = table_of(ConflictRow)
        scored = table.c.kind != ConflictKind.LOGIC.value
        connection.execute(delete(table).where(table.c.audit_id == audit_id, scored))
        if conflicts:
            connection.execute(insert(table), [_values(audit_id, c) for c in conflicts])

    db.write(job)


def replace_flips(db: Database, audit_id: int, flips: Mapping[Conflict, tuple[str, str]]) -> None:
    """Store all conflicts of kind `logic` of an audit in place of those it had, with what either side says."""
    rows = [_values(audit_id, conflict) for conflict in flips]
    claims = [
        {"audit_id": audit_id, "country": c.cell.country, "topic": c.cell.topic, "model": model, "text": text}
        for c, texts in flips.items()
        for model, text in zip((c.left, c.right), texts, strict=True)
    ]

    def job(connection: Connection) -> None:
        table, claim = table_of(ConflictRow), table_of(ClaimRow)
        of_logic = table.c.kind == ConflictKind.LOGIC.value
        connection.execute(delete(table).where(table.c.audit_id == audit_id, of_logic))
        connection.execute(delete(claim).where(claim.c.audit_id == audit_id))
        if rows:
            connection.execute(insert(table), rows)
            connection.execute(insert(claim), claims)

    db.write(job)


def add_rating(db: Database, audit_id: int, rating: Rating) -> None:
    """Append a person's decision; durable when this returns."""
    values = _values(audit_id, rating) | {"decided_at": rating.decided_at.isoformat(timespec="milliseconds")}
    db.write(lambda connection: insert_rating(connection, values))


def insert_rating(connection: Connection, values: dict[str, Any]) -> int:
    """Append a rating's row to the table and to the chain; returns its id."""
    table = table_of(RatingRow)
    number: int = connection.execute(insert(table).returning(table.c.id), values).scalar_one()
    chain.extend(connection, "rating", str(number))
    return number


def traces(db: Database, audit_id: int, cells: Iterable[Cell] | None = None) -> list[Trace]:
    """An audit's traces in stored order (model, country, topic, sample), of some cells or all."""
    return load_rows(db, audit_id, TraceRow, Trace, cells)


def contrasts(db: Database, audit_id: int, cells: Iterable[Cell] | None = None) -> list[Contrast]:
    """An audit's contrasts in stored order (model, country, topic, number), of some cells or all."""
    return load_rows(db, audit_id, ContrastRow, Contrast, cells)


def scores(db: Database, audit_id: int) -> list[CellScore]:
    """An audit's scores."""
    return load_rows(db, audit_id, ScoreRow, CellScore)


def verdicts(db: Database, audit_id: int, cells: Iterable[Cell] | None = None) -> list[Verdict]:
    """An audit's verdicts, of some cells or all."""
    return load_rows(db, audit_id, VerdictRow, Verdict, cells)


def conflicts(db: Database, audit_id: int) -> list[Conflict]:
    """An audit's conflicts."""
    return load_rows(db, audit_id, ConflictRow, Conflict)


def scored_conflicts(db: Database, audit_id: int) -> list[Conflict]:
    """An audit's conflicts between models, which judges can settle."""
    return [c for c in conflicts(db, audit_id) if c.kind not in (ConflictKind.LOGIC, ConflictKind.METHODS)]


def method_conflicts(db: Database, audit_id: int) -> list[Conflict]:
    """An audit's conflicts between two methods of one model, which only people can settle."""
    return [c for c in conflicts(db, audit_id) if c.kind is ConflictKind.METHODS]


def ratings(db: Database, audit_id: int) -> list[Rating]:
    """An audit's ratings, oldest first."""
    return load_rows(db, audit_id, RatingRow, Rating)


def count(db: Database, audit_id: int, row: type[SQLModel]) -> int:
    """Rows of one kind that an audit has."""
    table = table_of(row)
    with db.read() as connection:
        query = select(func.count()).select_from(table).where(table.c.audit_id == audit_id)
        return connection.execute(query).scalar_one()


def save_rows(db: Database, audit_id: int, row: type[SQLModel], items: Sequence[Any]) -> None:
    """Store items as rows of a table that belongs to an audit; those with the same key replace what was there."""
    values = [_values(audit_id, item) for item in items]
    if values:
        db.write(lambda connection: upsert(connection, row, values))


def _values(audit_id: int, item: Any) -> dict[str, Any]:
    values = asdict(item)
    country, topic = values.pop("cell")
    return {"audit_id": audit_id, "country": country, "topic": topic, **values}


def load_rows(
    db: Database, audit_id: int, row: type[SQLModel], kind: type[R], cells: Iterable[Cell] | None = None
) -> list[R]:
    """An audit's rows of a table as items, in order of their key, of some cells or all."""
    table = table_of(row)
    query = select(table).where(table.c.audit_id == audit_id).order_by(*table.primary_key)
    wanted = None if cells is None else set(cells)
    if wanted is not None:
        query = query.where(table.c.country.in_({c.country for c in wanted}))
    names = {f.name for f in fields(kind)}
    found = []
    with db.read() as connection:
        for stored in connection.execute(query).mappings():
            cell = Cell(stored["country"], stored["topic"])
            if wanted is None or cell in wanted:
                found.append(kind(cell=cell, **{k: _read(k, v) for k, v in stored.items() if k in names}))
    return found


def _read(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name in ENUMS:
        return ENUMS[name](value)
    return datetime.fromisoformat(value) if name == "decided_at" else value
