"""Rows of the probe `semantic`: questions, wordings, answers, scores; and the vectors that all audits share."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from itertools import islice
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, delete, func, insert, select
from sqlmodel import SQLModel

from auditor.domain import Outcome, canonical_json
from auditor.domain.semantic import MoralAnswer, NullScore, PairVerdict, Question, QuestionScore, SemanticFacts, Wording
from auditor.storage.database import Database, insert_new, table_of, upsert
from auditor.storage.ledger import CHUNK
from auditor.storage.tables import (
    CallRow,
    MoralAnswerRow,
    NullRow,
    PairVerdictRow,
    QuestionRow,
    QuestionScoreRow,
    SemanticFactsRow,
    VectorRow,
    WordingRow,
)

DERIVED = (
    CallRow,
    QuestionRow,
    WordingRow,
    MoralAnswerRow,
    QuestionScoreRow,
    NullRow,
    PairVerdictRow,
    SemanticFactsRow,
)
"""What is made anew from the ledger when an audit's configuration changes."""

R = TypeVar("R", MoralAnswer, QuestionScore, NullScore, PairVerdict, Wording)


def replace_questions(db: Database, audit_id: int, questions: Sequence[Question]) -> None:
    """Store the questions in place of those the audit had."""
    rows = [
        {"audit_id": audit_id, "position": i, "id": q.id, "text": q.text, "foundation": q.foundation,
         "topics": canonical_json(list(q.topics)), "language": q.language}
        for i, q in enumerate(questions)
    ]  # fmt: skip
    _replace(db, audit_id, QuestionRow, rows)


def questions(db: Database, audit_id: int) -> list[Question]:
    """The questions in order; their wordings are apart."""
    table = table_of(QuestionRow)
    query = select(table).where(table.c.audit_id == audit_id).order_by(table.c.position)
    with db.read() as connection:
        return [
            Question(r["id"], r["text"], (), r["foundation"], tuple(json.loads(r["topics"])), r["language"])
            for r in connection.execute(query).mappings()
        ]


def save_wordings(db: Database, audit_id: int, wordings: Sequence[Wording]) -> None:
    """Store wordings; the same question and candidate replaces what was there."""
    _save(db, audit_id, WordingRow, wordings)


def wordings(db: Database, audit_id: int, of: Iterable[str] | None = None) -> dict[str, list[Wording]]:
    """Wordings and candidates by question, in order, of some questions or all."""
    found: dict[str, list[Wording]] = {}
    for wording in _load(db, audit_id, WordingRow, Wording, of):
        found.setdefault(wording.question, []).append(wording)
    return found


def save_answers(db: Database, audit_id: int, answers: Sequence[MoralAnswer]) -> None:
    """Store answers; the same model, question, wording and sample replaces what was there."""
    _save(db, audit_id, MoralAnswerRow, answers)


def answers(
    db: Database, audit_id: int, of: Iterable[str] | None = None, *, model: str | None = None
) -> list[MoralAnswer]:
    """Answers in stored order, of some questions or all, of one model or all."""
    return _load(db, audit_id, MoralAnswerRow, MoralAnswer, of, model)


def answering_models(db: Database, audit_id: int) -> list[str]:
    """Models that have answers, by name."""
    c = table_of(MoralAnswerRow).c
    query = select(c.model).where(c.audit_id == audit_id).distinct().order_by(c.model)
    with db.read() as connection:
        return list(connection.execute(query).scalars())


def outcome_tallies(db: Database, audit_id: int) -> list[tuple[str, bool, str, str | None, int]]:
    """Answers counted by model, whether to the question as it stands, outcome, and the rule's outcome."""
    c = table_of(MoralAnswerRow).c
    as_it_stands = (c.wording == 0).label("as_it_stands")
    each = select(c.model, as_it_stands, c.outcome, c.rot_outcome).where(c.audit_id == audit_id).subquery()
    group = (each.c.model, each.c.as_it_stands, each.c.outcome, each.c.rot_outcome)
    query = select(*group, func.count()).group_by(*group)
    with db.read() as connection:
        return sorted(
            ((m, bool(s), o, r, int(n)) for m, s, o, r, n in connection.execute(query)),
            key=lambda row: (row[0], row[1], row[2], row[3] or ""),
        )


def replace_scores(
    db: Database,
    audit_id: int,
    scores: Iterable[QuestionScore],
    nulls: Sequence[NullScore],
    facts: SemanticFacts,
) -> None:
    """Store all scores of an audit, and how they were made, in place of those it had."""
    rows = [_values(audit_id, s) for s in scores]
    chance = [_values(audit_id, n) for n in nulls]

    def job(connection: Connection) -> None:
        for row, values in (
            (QuestionScoreRow, rows),
            (NullRow, chance),
            (SemanticFactsRow, [{"audit_id": audit_id, "facts": canonical_json(asdict(facts))}]),
        ):
            table = table_of(row)
            connection.execute(delete(table).where(table.c.audit_id == audit_id))
            if values:
                connection.execute(insert(table), values)

    db.write(job)


def scores(db: Database, audit_id: int) -> list[QuestionScore]:
    """Scores in stored order."""
    return _load(db, audit_id, QuestionScoreRow, QuestionScore)


def least_consistent(
    scores: Iterable[QuestionScore], facts: SemanticFacts, model: str, limit: int
) -> list[QuestionScore]:
    """A model's questions with the lowest scores, lowest first; those without a score are left out."""
    mine = [
        s
        for s in scores
        if (s.model, s.text, s.metric) == (model, facts.measured, facts.variant) and s.value is not None
    ]
    return sorted(mine, key=lambda s: (s.value, s.question))[:limit]


def nulls(db: Database, audit_id: int) -> list[NullScore]:
    """Scores by chance."""
    return _load(db, audit_id, NullRow, NullScore)


def facts(db: Database, audit_id: int) -> SemanticFacts | None:
    """How the scores were made; None where there are none."""
    table = table_of(SemanticFactsRow)
    with db.read() as connection:
        stored = connection.execute(select(table.c.facts).where(table.c.audit_id == audit_id)).scalar_one_or_none()
    return None if stored is None else SemanticFacts(**json.loads(stored))


def save_verdicts(db: Database, audit_id: int, verdicts: Sequence[PairVerdict]) -> None:
    """Store verdicts; the same judge and pair replaces what was there."""
    _save(db, audit_id, PairVerdictRow, verdicts)


def verdicts(db: Database, audit_id: int, purpose: str) -> list[PairVerdict]:
    """Verdicts on pairs, for one purpose."""
    return [v for v in _load(db, audit_id, PairVerdictRow, PairVerdict) if v.purpose == purpose]


def note_calls(db: Database, audit_id: int, calls: Iterable[tuple[str, str, str]]) -> None:
    """Remember calls (name, purpose, key), so that their cost is counted."""
    rows = [{"audit_id": audit_id, "name": name, "purpose": purpose, "key": key} for name, purpose, key in calls]
    db.write(lambda connection: insert_new(connection, CallRow, rows))


def call_keys(db: Database, audit_id: int) -> list[str]:
    """Keys of the calls remembered."""
    c = table_of(CallRow).c
    with db.read() as connection:
        return list(connection.execute(select(c.key).where(c.audit_id == audit_id)).scalars())


# --- vectors ----------------------------------------------------------------------------------------------------


def vectors(db: Database, revision: str, hashes: Iterable[str]) -> dict[str, NDArray[np.float32]]:
    """Stored embeddings by the SHA-256 of their text, among those asked for."""
    c = table_of(VectorRow).c
    found: dict[str, NDArray[np.float32]] = {}
    remaining = iter(hashes)
    with db.read() as connection:
        while chunk := list(islice(remaining, CHUNK)):
            rows = connection.execute(select(c.text, c["values"]).where(c.revision == revision, c.text.in_(chunk)))
            found.update((text, np.frombuffer(values, dtype="<f4")) for text, values in rows)
    return found


def save_vectors(db: Database, revision: str, found: Mapping[str, NDArray[np.float32]]) -> None:
    """Keep embeddings by the SHA-256 of their text."""
    rows = [{"revision": revision, "text": t, "values": v.astype("<f4").tobytes()} for t, v in found.items()]
    db.write(lambda connection: insert_new(connection, VectorRow, rows))


# --- rows -------------------------------------------------------------------------------------------------------


def _replace(db: Database, audit_id: int, row: type[SQLModel], values: list[dict[str, Any]]) -> None:
    def job(connection: Connection) -> None:
        table = table_of(row)
        connection.execute(delete(table).where(table.c.audit_id == audit_id))
        if values:
            connection.execute(insert(table), values)

    db.write(job)


def _save(db: Database, audit_id: int, row: type[SQLModel], items: Sequence[Any]) -> None:
    values = [_values(audit_id, item) for item in items]
    if values:
        db.write(lambda connection: upsert(connection, row, values))


def _values(audit_id: int, item: Any) -> dict[str, Any]:
    return {"audit_id": audit_id, **asdict(item)}


def _load(
    db: Database,
    audit_id: int,
    row: type[SQLModel],
    kind: type[R],
    of: Iterable[str] | None = None,
    model: str | None = None,
) -> list[R]:
    table = table_of(row)
    query = select(table).where(table.c.audit_id == audit_id).order_by(*table.primary_key)
    if of is not None:
        query = query.where(table.c.question.in_(list(of)))
    if model is not None:
        query = query.where(table.c.model == model)
    names = {f.name for f in fields(kind)}
    with db.read() as connection:
        return [
            kind(**{k: _read(k, v) for k, v in stored.items() if k in names})
            for stored in connection.execute(query).mappings()
        ]


def _read(name: str, value: Any) -> Any:
    return Outcome(value) if name in ("outcome", "rot_outcome") and value is not None else value
