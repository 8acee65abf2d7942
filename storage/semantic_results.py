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
from auditor.domain.semantic import (
    MoralAnswerRecord,
    MoralQuestion,
    MoralWording,
    NullScore,
    PairVerdict,
    QuestionScore,
    SemanticScoringSettings,
)
from auditor.storage.database import Database, insert_new, table_of, upsert
from auditor.storage.ledger import MAX_KEYS_PER_QUERY
from auditor.storage.tables import (
    CallRow,
    MoralAnswerRow,
    MoralQuestionRow,
    MoralWordingRow,
    NullScoreRow,
    PairVerdictRow,
    QuestionScoreRow,
    SemanticFactsRow,
    VectorRow,
)

DERIVED_TABLES = (
    CallRow,
    MoralQuestionRow,
    MoralWordingRow,
    MoralAnswerRow,
    QuestionScoreRow,
    NullScoreRow,
    PairVerdictRow,
    SemanticFactsRow,
)
"""What is made anew from the ledger when an audit's configuration changes."""

R = TypeVar("R", MoralAnswerRecord, QuestionScore, NullScore, PairVerdict, MoralWording)


def replace_questions(db: Database, audit_id: int, questions: Sequence[MoralQuestion]) -> None:
    """Store the questions in place of those the audit had."""
    rows = [
        {"audit_id": audit_id, "position": i, "id": q.id, "text": q.text, "foundation": q.foundation,
         "topics": canonical_json(list(q.topics)), "language": q.language}
        for i, q in enumerate(questions)
    ]  # fmt: skip
    _replace_rows(db, audit_id, MoralQuestionRow, rows)


def load_questions(db: Database, audit_id: int) -> list[MoralQuestion]:
    """The questions in order; their wordings are apart."""
    table = table_of(MoralQuestionRow)
    query = select(table).where(table.c.audit_id == audit_id).order_by(table.c.position)
    with db.read() as connection:
        return [
            MoralQuestion(r["id"], r["text"], (), r["foundation"], tuple(json.loads(r["topics"])), r["language"])
            for r in connection.execute(query).mappings()
        ]


def save_wordings(db: Database, audit_id: int, wordings: Sequence[MoralWording]) -> None:
    """Store wordings; the same question and candidate replaces what was there."""
    _save_records(db, audit_id, MoralWordingRow, wordings)


def load_wordings(
    db: Database, audit_id: int, question_ids: Iterable[str] | None = None
) -> dict[str, list[MoralWording]]:
    """Wordings and candidates by question, in order, of some questions or all."""
    found: dict[str, list[MoralWording]] = {}
    for wording in _load_records(db, audit_id, MoralWordingRow, MoralWording, question_ids):
        found.setdefault(wording.question, []).append(wording)
    return found


def save_answers(db: Database, audit_id: int, answers: Sequence[MoralAnswerRecord]) -> None:
    """Store answers; the same model, question, wording and sample replaces what was there."""
    _save_records(db, audit_id, MoralAnswerRow, answers)


def load_answers(
    db: Database, audit_id: int, question_ids: Iterable[str] | None = None, *, model: str | None = None
) -> list[MoralAnswerRecord]:
    """Answers in stored order, of some questions or all, of one model or all."""
    return _load_records(db, audit_id, MoralAnswerRow, MoralAnswerRecord, question_ids, model)


def answering_models(db: Database, audit_id: int) -> list[str]:
    """Models that have answers, by name."""
    c = table_of(MoralAnswerRow).c
    query = select(c.model).where(c.audit_id == audit_id).distinct().order_by(c.model)
    with db.read() as connection:
        return list(connection.execute(query).scalars())


def count_outcomes(db: Database, audit_id: int) -> list[tuple[str, bool, str, str | None, int]]:
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
    null_scores: Sequence[NullScore],
    facts: SemanticScoringSettings,
) -> None:
    """Store all scores of an audit, and how they were made, in place of those it had."""
    rows = [_to_row(audit_id, s) for s in scores]
    chance = [_to_row(audit_id, n) for n in null_scores]

    def job(connection: Connection) -> None:
        for row, values in (
            (QuestionScoreRow, rows),
            (NullScoreRow, chance),
            (SemanticFactsRow, [{"audit_id": audit_id, "facts": canonical_json(asdict(facts))}]),
        ):
            table = table_of(row)
            connection.execute(delete(table).where(table.c.audit_id == audit_id))
            if values:
                connection.execute(insert(table), values)

    db.write(job)


def load_scores(db: Database, audit_id: int) -> list[QuestionScore]:
    """Scores in stored order."""
    return _load_records(db, audit_id, QuestionScoreRow, QuestionScore)


def select_least_consistent(
    scores: Iterable[QuestionScore], facts: SemanticScoringSettings, model: str, limit: int
) -> list[QuestionScore]:
    """A model's questions with the lowest scores, lowest first; those without a score are left out."""
    mine = [
        s
        for s in scores
        if (s.model, s.text, s.metric) == (model, facts.measured, facts.variant) and s.value is not None
    ]
    return sorted(mine, key=lambda s: (s.value, s.question))[:limit]


def load_null_scores(db: Database, audit_id: int) -> list[NullScore]:
    """Scores by chance."""
    return _load_records(db, audit_id, NullScoreRow, NullScore)


def load_facts(db: Database, audit_id: int) -> SemanticScoringSettings | None:
    """How the scores were made; None where there are none."""
    table = table_of(SemanticFactsRow)
    with db.read() as connection:
        stored = connection.execute(select(table.c.facts).where(table.c.audit_id == audit_id)).scalar_one_or_none()
    return None if stored is None else SemanticScoringSettings(**json.loads(stored))


def save_pair_verdicts(db: Database, audit_id: int, verdicts: Sequence[PairVerdict]) -> None:
    """Store verdicts; the same judge and pair replaces what was there."""
    _save_records(db, audit_id, PairVerdictRow, verdicts)


def load_pair_verdicts(db: Database, audit_id: int, purpose: str) -> list[PairVerdict]:
    """Verdicts on pairs, for one purpose."""
    return [v for v in _load_records(db, audit_id, PairVerdictRow, PairVerdict) if v.purpose == purpose]


def record_calls(db: Database, audit_id: int, calls: Iterable[tuple[str, str, str]]) -> None:
    """Remember calls (name, purpose, key), so that their cost is counted."""
    rows = [{"audit_id": audit_id, "name": name, "purpose": purpose, "key": key} for name, purpose, key in calls]
    db.write(lambda connection: insert_new(connection, CallRow, rows))


def load_call_keys(db: Database, audit_id: int) -> list[str]:
    """Keys of the calls remembered."""
    c = table_of(CallRow).c
    with db.read() as connection:
        return list(connection.execute(select(c.key).where(c.audit_id == audit_id)).scalars())


# --- vectors ----------------------------------------------------------------------------------------------------


def load_vectors(db: Database, revision: str, text_hashes: Iterable[str]) -> dict[str, NDArray[np.float32]]:
    """Stored embeddings by the SHA-256 of their text, among those asked for."""
    c = table_of(VectorRow).c
    found: dict[str, NDArray[np.float32]] = {}
    remaining = iter(text_hashes)
    with db.read() as connection:
        while chunk := list(islice(remaining, MAX_KEYS_PER_QUERY)):
            rows = connection.execute(select(c.text, c["values"]).where(c.revision == revision, c.text.in_(chunk)))
            found.update((text, np.frombuffer(values, dtype="<f4")) for text, values in rows)
    return found


def save_vectors(db: Database, revision: str, vectors: Mapping[str, NDArray[np.float32]]) -> None:
    """Keep embeddings by the SHA-256 of their text."""
    rows = [{"revision": revision, "text": t, "values": v.astype("<f4").tobytes()} for t, v in vectors.items()]
    db.write(lambda connection: insert_new(connection, VectorRow, rows))


# --- rows -------------------------------------------------------------------------------------------------------


def _replace_rows(db: Database, audit_id: int, row_class: type[SQLModel], rows: list[dict[str, Any]]) -> None:
    def job(connection: Connection) -> None:
        table = table_of(row_class)
        connection.execute(delete(table).where(table.c.audit_id == audit_id))
        if rows:
            connection.execute(insert(table), rows)

    db.write(job)


def _save_records(db: Database, audit_id: int, row_class: type[SQLModel], records: Sequence[Any]) -> None:
    values = [_to_row(audit_id, item) for item in records]
    if values:
        db.write(lambda connection: upsert(connection, row_class, values))


def _to_row(audit_id: int, record: Any) -> dict[str, Any]:
    return {"audit_id": audit_id, **asdict(record)}


def _load_records(
    db: Database,
    audit_id: int,
    row_class: type[SQLModel],
    record_class: type[R],
    question_ids: Iterable[str] | None = None,
    model: str | None = None,
) -> list[R]:
    table = table_of(row_class)
    query = select(table).where(table.c.audit_id == audit_id).order_by(*table.primary_key)
    if question_ids is not None:
        query = query.where(table.c.question.in_(list(question_ids)))
    if model is not None:
        query = query.where(table.c.model == model)
    names = {f.name for f in fields(record_class)}
    with db.read() as connection:
        return [
            record_class(**{k: _parse_column(k, v) for k, v in stored.items() if k in names})
            for stored in connection.execute(query).mappings()
        ]


def _parse_column(name: str, value: Any) -> Any:
    return Outcome(value) if name in ("outcome", "rot_outcome") and value is not None else value
