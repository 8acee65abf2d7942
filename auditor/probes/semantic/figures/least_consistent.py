"""Questions on which each model is least consistent, with the two answers that differ most."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from auditor.probes.semantic import answer_rows
from auditor.probes.semantic.figures.schema import LeastConsistentRow, WordedAnswer
from auditor.probes.semantic.records import (
    CONTRADICTION_PURPOSE,
    MoralAnswerRecord,
    MoralQuestion,
    PairVerdict,
    QuestionScore,
    SemanticScoringSettings,
)
from auditor.probes.semantic.settings import SemanticProbe
from auditor.reports.data.report_source import ReportSource
from auditor.storage.database import Database

DEFAULT_MAX_LISTED = 10
"""Questions listed for a model where the configuration sets no number."""


def build_least_consistent_rows(
    db: Database,
    source: ReportSource,
    settings: SemanticScoringSettings,
    models: Sequence[str],
    questions: Sequence[MoralQuestion],
    scores: Sequence[QuestionScore],
) -> list[LeastConsistentRow]:
    """List each model's questions with the lowest scores, lowest first."""
    probe = source.config.probes.find(SemanticProbe) if source.config else None
    limit = DEFAULT_MAX_LISTED if probe is None else probe.worst
    lowest_scores = [
        score for model in models for score in answer_rows.select_least_consistent(scores, settings, model, limit)
    ]
    texts = _load_texts(db, source.audit.id, {score.question for score in lowest_scores})
    verdict_by_key = {
        (verdict.model, verdict.question, verdict.left, verdict.right): verdict
        for verdict in answer_rows.load_pair_verdicts(db, source.audit.id, CONTRADICTION_PURPOSE.value)
    }
    question_by_id = {question.id: question for question in questions}
    return [
        _build_row(
            score,
            question_by_id[score.question],
            texts,
            verdict_by_key.get((score.model, score.question, score.left or 0, score.right or 0)),
        )
        for score in lowest_scores
    ]


class _Texts(NamedTuple):
    """Texts of the listed questions.

    Attributes:
        answers: first answers, by model, question and number of the wording.
        wordings: by question and number.
    """

    answers: dict[tuple[str, str, int], MoralAnswerRecord]
    wordings: dict[tuple[str, int | None], str]


def _load_texts(db: Database, audit_id: int, question_ids: Collection[str]) -> _Texts:
    """Load the answers to questions and their wordings."""
    answers = answer_rows.load_answers(db, audit_id, question_ids)
    wordings = answer_rows.load_wordings(db, audit_id, question_ids)
    return _Texts(
        {(answer.model, answer.question, answer.wording): answer for answer in answers if answer.sample == 0},
        {(wording.question, wording.number): wording.text for group in wordings.values() for wording in group},
    )


def _build_row(
    score: QuestionScore, question: MoralQuestion, texts: _Texts, verdict: PairVerdict | None
) -> LeastConsistentRow:
    """Build the row of a question with the two answers that differ most, whose numbers are those of the score."""
    assert score.value is not None
    assert score.left is not None
    assert score.right is not None
    assert score.lowest is not None
    left, right = (
        _to_worded_answer(
            texts.wordings.get((score.question, number)), texts.answers.get((score.model, score.question, number))
        )
        for number in (score.left, score.right)
    )
    return LeastConsistentRow(
        model=score.model,
        id=score.question,
        question=question.text,
        foundation=question.foundation,
        score=score.value,
        similarity=score.lowest,  # cosine of the two answers that differ most
        left=left,
        right=right,
        contradict=verdict.holds if verdict else None,
        because=verdict.reason if verdict else None,
    )


def _to_worded_answer(wording: str | None, answer: MoralAnswerRecord | None) -> WordedAnswer:
    """Combine a wording with the answer to it; `answer` and `rule` are None where none is recorded."""
    return WordedAnswer(
        wording=wording or "", answer=answer.text if answer else None, rule=answer.rot if answer else None
    )
