"""Rows of the probe `semantic`: questions, wordings, answers, scores, verdicts; and embeddings shared by all audits."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, Connection, and_, func, literal, or_, select, union_all
from sqlalchemy.orm import aliased

from auditor.domain import Purpose, canonical_json
from auditor.domain.labels import LabelKind
from auditor.domain.semantic import (
    EQUIVALENCE,
    MoralAnswerRecord,
    MoralQuestion,
    MoralWording,
    NullScore,
    PairVerdict,
    QuestionScore,
    SemanticFacts,
    SemanticScoringSettings,
)
from auditor.storage.call_records import TextVector
from auditor.storage.database import Database
from auditor.storage.label_units import PART_NAMES, UnitQuery
from auditor.storage.ledger import MAX_KEYS_PER_QUERY
from auditor.storage.records import load_records, replace_records
from auditor.storage.row_writing import insert_new, table_of


def replace_questions(db: Database, audit_id: int, questions: Sequence[MoralQuestion]) -> None:
    """Store an audit's questions in place of those it had."""
    db.write(lambda connection: replace_records(connection, audit_id, MoralQuestion, questions))


def load_questions(db: Database, audit_id: int, question_id: str | None = None) -> list[MoralQuestion]:
    """Load an audit's questions or one of them, in order and without their paraphrases (see `load_wordings`)."""
    return load_records(db, audit_id, MoralQuestion, id=question_id)


def load_wordings(
    db: Database, audit_id: int, question_ids: Iterable[str] | None = None
) -> dict[str, list[MoralWording]]:
    """Load wordings and rejected candidates by question, in order, of some questions or all."""
    wordings_by_question: dict[str, list[MoralWording]] = {}
    for wording in load_records(db, audit_id, MoralWording, question=question_ids):
        wordings_by_question.setdefault(wording.question, []).append(wording)
    return wordings_by_question


def load_answers(
    db: Database, audit_id: int, question_ids: Iterable[str] | None = None, *, model: str | None = None
) -> list[MoralAnswerRecord]:
    """Load answers in order of their key, of some questions or all, of one model or all."""
    return load_records(db, audit_id, MoralAnswerRecord, question=question_ids, model=model)


def count_outcomes(db: Database, audit_id: int) -> list[tuple[str, bool, str, str | None, int]]:
    """Count answers by model, whether they are to the original wording, outcome, and the rule of thumb's outcome."""
    c = table_of(MoralAnswerRecord).c
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

    def job(connection: Connection) -> None:
        replace_records(connection, audit_id, QuestionScore, scores)
        replace_records(connection, audit_id, NullScore, null_scores)
        replace_records(connection, audit_id, SemanticFacts, [_store_facts(facts)])

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
    for record_class, records in (
        (MoralQuestion, scored.questions),
        (MoralWording, scored.wordings),
        (MoralAnswerRecord, scored.answers),
        (QuestionScore, scored.scores),
        (NullScore, scored.null_scores),
        (SemanticFacts, [_store_facts(scored.facts)]),
    ):
        replace_records(connection, audit_id, record_class, records)


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


def load_pair_verdicts(
    db: Database, audit_id: int, purpose: str, question_ids: Iterable[str] | None = None, *, model: str | None = None
) -> list[PairVerdict]:
    """Load an audit's verdicts on pairs of answers for one purpose, of some questions or all, of one model or all."""
    return load_records(db, audit_id, PairVerdict, purpose=purpose, question=question_ids, model=model)


def load_facts(db: Database, audit_id: int) -> SemanticScoringSettings | None:
    """Load the settings that an audit's scores were computed with; None if it has no scores."""
    stored = load_records(db, audit_id, SemanticFacts)
    return SemanticScoringSettings(**json.loads(stored[0].facts)) if stored else None


def _store_facts(facts: SemanticScoringSettings) -> SemanticFacts:
    return SemanticFacts(canonical_json(asdict(facts)))


# --- vectors ----------------------------------------------------------------------------------------------------


def load_vectors(db: Database, revision: str, text_hashes: Iterable[str]) -> dict[str, NDArray[np.float32]]:
    """Load embeddings by the SHA-256 of their text, shape (dimensions,); texts without a stored one are left out.

    Args:
        db: the database.
        revision: of the embedding model.
        text_hashes: SHA-256 of the texts.
    """
    c = table_of(TextVector).c
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
    db.write(lambda connection: insert_new(connection, TextVector, rows))


# --- labels -------------------------------------------------------------------------------------------------------


def query_label_units(audit_id: int) -> UnitQuery:
    """Query the pairs of answers that a judge was asked about, and all pairs of answers to two wordings.

    Consistency is asked about two samples of the question's own wording, contradiction about two wordings.
    """
    c = table_of(PairVerdict).c
    left, right = aliased(table_of(MoralAnswerRecord)), aliased(table_of(MoralAnswerRecord))

    def is_side(answer: Any, number: ColumnElement[int]) -> ColumnElement[bool]:
        """Condition: an answer is the side of the pair with this number."""
        is_sample = and_(c.purpose == Purpose.CONSISTENCY.value, answer.c.wording == 0, answer.c.sample == number)
        is_wording = and_(c.purpose == Purpose.CONTRADICTION.value, answer.c.wording == number, answer.c.sample == 0)
        same = and_(answer.c.audit_id == c.audit_id, answer.c.model == c.model, answer.c.question == c.question)
        return and_(same, or_(is_sample, is_wording))

    names = PART_NAMES[LabelKind.ANSWER_PAIR]
    texts = left.c.text.label("content_left"), right.c.text.label("content_right")
    judged = (
        select(*(c[name] for name in names), *texts)
        .join(left, is_side(left, c.left))
        .join(right, is_side(right, c.right))
        .where(c.audit_id == audit_id)
    ).distinct()
    shared = [left.c[name] == right.c[name] for name in ("audit_id", "model", "question", "sample")]
    wordings = left.c.wording.label("left"), right.c.wording.label("right")
    reworded = (
        select(literal(EQUIVALENCE).label("purpose"), left.c.model, left.c.question, *wordings, *texts)
        .join(right, and_(*shared, left.c.wording < right.c.wording))
        .where(left.c.audit_id == audit_id, left.c.wording > 0, left.c.sample == 0)
        .where(left.c.text.is_not(None), right.c.text.is_not(None))
    )
    units = union_all(judged, reworded).subquery()
    return select(units), {name: units.c[name] for name in names}
