"""Rows of the probe `semantic`: questions, wordings, answers, scores, verdicts; and embeddings shared by all audits."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, NamedTuple

from auditor.domain import Outcome, canonical_json
from auditor.domain.labels import EQUIVALENCE
from auditor.probes.semantic.probe import ANSWER_PAIR
from auditor.probes.semantic.records import (
    CONSISTENCY_PURPOSE,
    CONTRADICTION_PURPOSE,
    MoralAnswerRecord,
    MoralQuestion,
    MoralWording,
    NullScore,
    PairVerdict,
    QuestionScore,
    SemanticFacts,
    SemanticScoringSettings,
)
from auditor.storage.database import Database
from auditor.storage.exclusions import load_excluded
from auditor.storage.labels import UnitQuery, list_part_names
from auditor.storage.probe_results import Columns, Condition, RepeatedQuestions, name_constant
from auditor.storage.records import count_records, load_records, replace_records
from auditor.storage.row_classes import table_of

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection


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


def has_several_languages(db: Database, audit_id: int) -> bool:
    """Whether an audit's questions are asked in wordings of more than one language."""
    counts = count_records(db, audit_id, MoralWording, ("language", "number"))
    return len({language for language, number in counts if number}) > 1


def load_answers(
    db: Database, audit_id: int, question_ids: Iterable[str] | None = None, *, model: str | None = None
) -> list[MoralAnswerRecord]:
    """Load answers in order of their key, of some questions or all, of one model or all."""
    return load_records(db, audit_id, MoralAnswerRecord, question=question_ids, model=model)


def load_answers_as_given(
    db: Database, audit_id: int, question_ids: Iterable[str]
) -> list[tuple[MoralAnswerRecord, MoralAnswerRecord]]:
    """Load the answers to some questions, each with what it was before it was excluded.

    What is asked about answers is planned by those that were given: an excluded one keeps its place, and no other takes
    it.
    """
    excluded = {
        (answer.model, answer.question, answer.wording, answer.sample): answer
        for answer in load_excluded(db, audit_id, MoralAnswerRecord)
    }
    answers = load_answers(db, audit_id, question_ids)
    return [(x, excluded.get((x.model, x.question, x.wording, x.sample), x)) for x in answers]


def count_outcomes(db: Database, audit_id: int) -> list[tuple[str, bool, str, str | None, int]]:
    """Count answers by model, whether they are to the original wording, outcome, and the rule of thumb's outcome."""
    counts = Counter[tuple[str, bool, str, str | None]]()
    for (model, wording, outcome, rule_outcome), n in count_records(
        db, audit_id, MoralAnswerRecord, ("model", "wording", "outcome", "rot_outcome")
    ).items():
        counts[model, wording == 0, outcome, rule_outcome] += n
    return sorted(((*group, n) for group, n in counts.items()), key=lambda row: (*row[:3], row[3] or ""))


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


# --- conditions and queries ---------------------------------------------------------------------------------------


def is_about(name: str, value: str) -> Condition:
    """Condition: an answer is about a "topic", which is its question; never about a "country"."""
    c = table_of(MoralAnswerRecord).c
    is_question = c.question == value
    return is_question if name == "topic" else c.question != c.question


def rests_on(trace: Columns) -> Condition:
    """Condition: an answer without a call of its own is a direct answer to a task's item."""
    c = table_of(MoralAnswerRecord).c
    is_same = (trace.model == c.model) & (trace.topic == c.question) & (trace.sample == c.sample)
    return is_same & c.key.is_(None)


def judges_excluded_answer() -> Condition:
    """Condition: a verdict is about a pair of answers, one of which is excluded."""
    answers = table_of(MoralAnswerRecord)
    verdict, answer = table_of(PairVerdict).c, answers.c
    is_side = _is_side(verdict, answer, verdict.left) | _is_side(verdict, answer, verdict.right)
    return (
        answers.select()
        .where(is_side, answer.outcome == Outcome.EXCLUDED.value)
        .correlate(table_of(PairVerdict))
        .exists()
    )


def list_repeated_questions(audit_id: int) -> list[RepeatedQuestions]:
    """List how questions that were asked again are counted: answers, rules of thumb, and judgements of pairs."""
    answers, verdict = table_of(MoralAnswerRecord), table_of(PairVerdict).c
    c, others = answers.c, answers.alias()
    # Answers to a question as it stands count where no others were asked for.
    has_wordings = others.select().where(others.c.audit_id == audit_id, others.c.wording > 0).exists()
    return [
        RepeatedQuestions("answers", c.model, c.first_outcome, c.outcome, (c.wording > 0) | ~has_wordings),
        RepeatedQuestions("rules", c.model, c.rot_first_outcome, c.rot_outcome),
        RepeatedQuestions(
            *("judgements", verdict.model, verdict.first_outcome, verdict.outcome),
            verdict.purpose == CONSISTENCY_PURPOSE.value,
        ),
    ]


def query_label_units(audit_id: int) -> UnitQuery:
    """Query the pairs of answers that a judge was asked about, and all pairs of answers to two wordings."""
    verdicts, answers = table_of(PairVerdict), table_of(MoralAnswerRecord)
    left, right, c = answers.alias(), answers.alias(), verdicts.c
    names = list_part_names(ANSWER_PAIR)
    texts = left.c.text.label("content_left"), right.c.text.label("content_right")
    joined = verdicts.join(left, _is_side(c, left.c, c.left)).join(right, _is_side(c, right.c, c.right))
    judged = joined.select().with_only_columns(*(c[name] for name in names), *texts).where(c.audit_id == audit_id)
    is_shared = left.c.audit_id == right.c.audit_id
    for name in ("model", "question", "sample"):
        is_shared &= left.c[name] == right.c[name]
    wordings = left.c.wording.label("left"), right.c.wording.label("right")
    pairs = left.join(right, is_shared & (left.c.wording < right.c.wording)).select()
    reworded = (
        pairs.with_only_columns(name_constant(EQUIVALENCE, "purpose"), left.c.model, left.c.question, *wordings, *texts)
        .where(left.c.audit_id == audit_id, left.c.wording > 0, left.c.sample == 0)
        .where(left.c.text.is_not(None), right.c.text.is_not(None))
    )
    units = judged.distinct().union_all(reworded).subquery()
    return units.select(), {name: units.c[name] for name in names}


def _is_side(verdict: Columns, answer: Columns, number: ColumnElement[int]) -> Condition:
    """Condition: an answer is the side of a pair with this number.

    Consistency is asked about two samples of the question's own wording, contradiction about two wordings.
    """
    is_sample = (verdict.purpose == CONSISTENCY_PURPOSE.value) & (answer.wording == 0) & (answer.sample == number)
    is_wording = (verdict.purpose == CONTRADICTION_PURPOSE.value) & (answer.wording == number) & (answer.sample == 0)
    is_same = (answer.audit_id == verdict.audit_id) & (answer.model == verdict.model)
    return is_same & (answer.question == verdict.question) & (is_sample | is_wording)
