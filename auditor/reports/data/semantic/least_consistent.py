"""Questions on which each model is least consistent, with the two answers that differ most."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.domain import Purpose
from auditor.domain.semantic import MoralAnswerRecord, MoralQuestion, QuestionScore, SemanticScoringSettings
from auditor.reports.data.report_source import ReportSource
from auditor.reports.data.semantic.schema import LeastConsistentRow, WordedAnswer
from auditor.storage import semantic_results
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
    probe = source.config.probes.semantic if source.config else None
    limit = DEFAULT_MAX_LISTED if probe is None else probe.worst
    question_by_id = {question.id: question for question in questions}
    lowest_scores = [
        score for model in models for score in semantic_results.select_least_consistent(scores, settings, model, limit)
    ]
    answer_by_key = {
        (answer.model, answer.question, answer.wording): answer
        for answer in semantic_results.load_answers(db, source.audit.id, {score.question for score in lowest_scores})
        if answer.sample == 0
    }
    wording_text_by_key = {
        (wording.question, wording.number): wording.text
        for group in semantic_results.load_wordings(
            db, source.audit.id, {score.question for score in lowest_scores}
        ).values()
        for wording in group
    }
    verdict_by_key = {
        (verdict_row.model, verdict_row.question, verdict_row.left, verdict_row.right): verdict_row
        for verdict_row in semantic_results.load_pair_verdicts(db, source.audit.id, Purpose.CONTRADICTION.value)
    }
    rows = []
    for score in lowest_scores:
        assert score.value is not None
        assert score.left is not None
        assert score.right is not None
        assert score.lowest is not None
        verdict = verdict_by_key.get((score.model, score.question, score.left, score.right))
        left, right = (
            _to_worded_answer(
                wording_text_by_key.get((score.question, i)), answer_by_key.get((score.model, score.question, i))
            )
            for i in (score.left, score.right)
        )
        rows.append(
            LeastConsistentRow(
                model=score.model,
                id=score.question,
                question=question_by_id[score.question].text,
                foundation=question_by_id[score.question].foundation,
                score=score.value,
                similarity=score.lowest,  # cosine of the two answers that differ most
                left=left,
                right=right,
                contradict=verdict.holds if verdict else None,
                because=verdict.reason if verdict else None,
            )
        )
    return rows


def _to_worded_answer(wording: str | None, answer: MoralAnswerRecord | None) -> WordedAnswer:
    """Combine a wording with the answer to it; `answer` and `rule` are None where none is recorded."""
    return WordedAnswer(
        wording=wording or "", answer=answer.text if answer else None, rule=answer.rot if answer else None
    )
