"""Rows of the probe `semantic`: questions, wordings, answers, scores, verdicts; and embeddings shared by all audits."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from itertools import islice
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, RowMapping, func, select
from sqlmodel import SQLModel

from auditor.domain import canonical_json
from auditor.domain.semantic import (
    MoralAnswerRecord,
    MoralQuestion,
    MoralWording,
    NullScore,
    PairVerdict,
    QuestionScore,
    SemanticScoringSettings,
)
from auditor.storage.database import Database
from auditor.storage.ledger import MAX_KEYS_PER_QUERY
from auditor.storage.record_parsing import parse_values
from auditor.storage.row_writing import insert_new, replace_rows, table_of, upsert
from auditor.storage.semantic_tables import (
    MoralAnswerRow,
    MoralQuestionRow,
    MoralWordingRow,
    NullScoreRow,
    PairVerdictRow,
    QuestionScoreRow,
    SemanticFactsRow,
)
from auditor.storage.tables import CallRow, VectorRow

R = TypeVar("R", MoralAnswerRecord, QuestionScore, NullScore, PairVerdict, MoralWording)


def replace_questions(db: Database, audit_id: int, questions: Sequence[MoralQuestion]) -> None:
    """Store an audit's questions in place of those it had."""
    rows = _question_rows(audit_id, questions)
    db.write(lambda connection: replace_rows(connection, MoralQuestionRow, audit_id, rows))


def _question_rows(audit_id: int, questions: Sequence[MoralQuestion]) -> list[dict[str, Any]]:
    return [
        {"audit_id": audit_id, "position": i, "id": question.id, "text": question.text,
         "foundation": question.foundation, "topics": canonical_json(list(question.topics)),
         "language": question.language}
        for i, question in enumerate(questions)
    ]  # fmt: skip


def load_questions(db: Database, audit_id: int, question_id: str | None = None) -> list[MoralQuestion]:
    """Load an audit's questions or one of them, in order and without their paraphrases (see `load_wordings`)."""
    table = table_of(MoralQuestionRow)
    query = select(table).where(table.c.audit_id == audit_id).order_by(table.c.position)
    if question_id is not None:
        query = query.where(table.c.id == question_id)
    with db.read() as connection:
        return [
            MoralQuestion(
                row["id"], row["text"], (), row["foundation"], tuple(json.loads(row["topics"])), row["language"]
            )
            for row in connection.execute(query).mappings()
        ]


def save_wordings(db: Database, audit_id: int, wordings: Sequence[MoralWording]) -> None:
    """Store wordings; a stored one of the same question and candidate is replaced."""
    _save_records(db, audit_id, MoralWordingRow, wordings)


def load_wordings(
    db: Database, audit_id: int, question_ids: Iterable[str] | None = None
) -> dict[str, list[MoralWording]]:
    """Load wordings and rejected candidates by question, in order, of some questions or all."""
    wordings_by_question: dict[str, list[MoralWording]] = {}
    for wording in _load_records(db, audit_id, MoralWordingRow, MoralWording, question_ids):
        wordings_by_question.setdefault(wording.question, []).append(wording)
    return wordings_by_question


def save_answers(db: Database, audit_id: int, answers: Sequence[MoralAnswerRecord]) -> None:
    """Store answers; a stored one of the same model, question, wording and sample is replaced."""
    _save_records(db, audit_id, MoralAnswerRow, answers)


def load_answers(
    db: Database, audit_id: int, question_ids: Iterable[str] | None = None, *, model: str | None = None
) -> list[MoralAnswerRecord]:
    """Load answers in order of their key, of some questions or all, of one model or all."""
    return _load_records(db, audit_id, MoralAnswerRow, MoralAnswerRecord, question_ids, model)


def count_outcomes(db: Database, audit_id: int) -> list[tuple[str, bool, str, str | None, int]]:
    """Count answers by model, whether they are to the original wording, outcome, and the rule of thumb's outcome."""
    c = table_of(MoralAnswerRow).c
    is_original = (c.wording == 0).label("as_it_stands")
    answers = select(c.model, is_original, c.outcome, c.rot_outcome).where(c.audit_id == audit_id).subquery()
    group = (answers.c.model, answers.c.as_it_stands, answers.c.outcome, answers.c.rot_outcome)
    query = select(*group, func.count()).group_by(*group)
    with db.read() as connection:
        return sorted(
            (
                (model, bool(is_original), outcome, rule_outcome, int(count))
                for model, is_original, outcome, rule_outcome, count in connection.execute(query)
            ),
            key=lambda row: (row[0], row[1], row[2], row[3] or ""),
        )


def replace_scores(
    db: Database,
    audit_id: int,
    scores: Iterable[QuestionScore],
    null_scores: Sequence[NullScore],
    facts: SemanticScoringSettings,
) -> None:
    """Store an audit's scores, null scores and the settings they were computed with, in place of those it had."""
    score_rows = [_to_row(audit_id, score) for score in scores]
    null_score_rows = [_to_row(audit_id, null_score) for null_score in null_scores]
    facts_row = _facts_row(audit_id, facts)

    def job(connection: Connection) -> None:
        replace_rows(connection, QuestionScoreRow, audit_id, score_rows)
        replace_rows(connection, NullScoreRow, audit_id, null_score_rows)
        replace_rows(connection, SemanticFactsRow, audit_id, [facts_row])

    db.write(job)


class ScoredAnswers(NamedTuple):
    """All records of an audit of recorded answers to questions."""

    questions: Sequence[MoralQuestion]
    wordings: Sequence[MoralWording]
    answers: Sequence[MoralAnswerRecord]
    scores: Sequence[QuestionScore]
    null_scores: Sequence[NullScore]
    facts: SemanticScoringSettings


def replace_scored_answers(connection: Connection, audit_id: int, scored: ScoredAnswers) -> None:
    """Store recorded answers and their scores in place of those that an audit had, within a transaction."""
    replace_rows(connection, MoralQuestionRow, audit_id, _question_rows(audit_id, scored.questions))
    replace_rows(connection, SemanticFactsRow, audit_id, [_facts_row(audit_id, scored.facts)])
    for row_class, records in (
        (MoralWordingRow, scored.wordings),
        (MoralAnswerRow, scored.answers),
        (QuestionScoreRow, scored.scores),
        (NullScoreRow, scored.null_scores),
    ):
        replace_rows(connection, row_class, audit_id, [_to_row(audit_id, record) for record in records])


def load_scores(db: Database, audit_id: int) -> list[QuestionScore]:
    """Load an audit's scores in order of their key."""
    return _load_records(db, audit_id, QuestionScoreRow, QuestionScore)


def select_least_consistent(
    scores: Iterable[QuestionScore], facts: SemanticScoringSettings, model: str, limit: int
) -> list[QuestionScore]:
    """Return a model's `limit` lowest scores, of the text and the measure that `facts` names, lowest first.

    Questions without a score are left out.
    """
    scored = [
        score
        for score in scores
        if (score.model, score.text, score.metric) == (model, facts.measured, facts.variant) and score.value is not None
    ]
    return sorted(scored, key=lambda score: (score.value, score.question))[:limit]


def load_null_scores(db: Database, audit_id: int) -> list[NullScore]:
    """Load an audit's null scores: mean scores of answers that were shuffled between questions."""
    return _load_records(db, audit_id, NullScoreRow, NullScore)


def load_facts(db: Database, audit_id: int) -> SemanticScoringSettings | None:
    """Load the settings that an audit's scores were computed with; None if it has no scores."""
    table = table_of(SemanticFactsRow)
    with db.read() as connection:
        stored = connection.execute(select(table.c.facts).where(table.c.audit_id == audit_id)).scalar_one_or_none()
    return None if stored is None else SemanticScoringSettings(**json.loads(stored))


def save_pair_verdicts(db: Database, audit_id: int, verdicts: Sequence[PairVerdict]) -> None:
    """Store verdicts on pairs of answers; a stored one of the same judge, purpose and pair is replaced."""
    _save_records(db, audit_id, PairVerdictRow, verdicts)


def load_pair_verdicts(
    db: Database, audit_id: int, purpose: str, question_ids: Iterable[str] | None = None, *, model: str | None = None
) -> list[PairVerdict]:
    """Load an audit's verdicts on pairs of answers for one purpose, of some questions or all, of one model or all."""
    verdicts = _load_records(db, audit_id, PairVerdictRow, PairVerdict, question_ids, model)
    return [verdict for verdict in verdicts if verdict.purpose == purpose]


def record_calls(db: Database, audit_id: int, calls: Iterable[tuple[str, str, str]]) -> None:
    """Store calls as (model name, purpose, key), so that their cost is counted."""
    rows = [{"audit_id": audit_id, "name": name, "purpose": purpose, "key": key} for name, purpose, key in calls]
    db.write(lambda connection: insert_new(connection, CallRow, rows))


# --- vectors ----------------------------------------------------------------------------------------------------


def load_vectors(db: Database, revision: str, text_hashes: Iterable[str]) -> dict[str, NDArray[np.float32]]:
    """Load embeddings by the SHA-256 of their text, shape (dimensions,); texts without a stored one are left out.

    Args:
        db: the database.
        revision: of the embedding model.
        text_hashes: SHA-256 of the texts.
    """
    c = table_of(VectorRow).c
    vectors: dict[str, NDArray[np.float32]] = {}
    remaining_hashes = iter(text_hashes)
    with db.read() as connection:
        while chunk := list(islice(remaining_hashes, MAX_KEYS_PER_QUERY)):
            rows = connection.execute(select(c.text, c["values"]).where(c.revision == revision, c.text.in_(chunk)))
            vectors.update((text, np.frombuffer(values, dtype="<f4")) for text, values in rows)
    return vectors


def save_vectors(db: Database, revision: str, vectors: Mapping[str, NDArray[np.float32]]) -> None:
    """Store embeddings by the SHA-256 of their text; a stored one is kept."""
    rows = [
        {"revision": revision, "text": text_hash, "values": vector.astype("<f4").tobytes()}
        for text_hash, vector in vectors.items()
    ]
    db.write(lambda connection: insert_new(connection, VectorRow, rows))


# --- rows -------------------------------------------------------------------------------------------------------


def _save_records(db: Database, audit_id: int, row_class: type[SQLModel], records: Sequence[Any]) -> None:
    """Store records as rows of an audit; a stored row with the same key is replaced."""
    rows = [_to_row(audit_id, record) for record in records]
    if rows:
        db.write(lambda connection: upsert(connection, row_class, rows))


def _facts_row(audit_id: int, facts: SemanticScoringSettings) -> dict[str, Any]:
    return {"audit_id": audit_id, "facts": canonical_json(asdict(facts))}


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
    """Load an audit's rows of a class as records, by key, of some questions or all, of one model or all."""
    table = table_of(row_class)
    query = select(table).where(table.c.audit_id == audit_id)
    if model is not None:
        query = query.where(table.c.model == model)
    names = {f.name for f in fields(record_class)}
    with db.read() as connection:
        if question_ids is None:
            rows: Iterable[RowMapping] = connection.execute(query.order_by(*table.primary_key)).mappings()
        else:
            # Sorted in Python: ORDER BY model makes SQLite scan all answers of the audit instead of those to these.
            rows = connection.execute(query.where(table.c.question.in_(list(question_ids)))).mappings()
            rows = sorted(rows, key=itemgetter(*(column.name for column in table.primary_key)))
        return [
            record_class(**parse_values(record_class, {name: value for name, value in row.items() if name in names}))
            for row in rows
        ]
