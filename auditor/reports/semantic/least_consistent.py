"""The questions on which a model is least consistent, with the two answers that differ most."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.domain import Purpose
from auditor.domain.semantic import MoralAnswerRecord, MoralQuestion, QuestionScore, SemanticScoringSettings
from auditor.reports.report_source import ReportSource
from auditor.reports.semantic.schema import LeastConsistentRow, WordedAnswer
from auditor.storage import semantic_results
from auditor.storage.database import Database

DEFAULT_MAX_LISTED = 10
"""Questions of a model where the configuration does not say how many."""


def build_least_consistent_rows(
    db: Database,
    source: ReportSource,
    facts: SemanticScoringSettings,
    models: Sequence[str],
    questions: Sequence[MoralQuestion],
    scores: Sequence[QuestionScore],
) -> list[LeastConsistentRow]:
    """Of each model the questions with the lowest score, lowest first."""
    probe = source.config.probes.semantic if source.config else None
    limit = DEFAULT_MAX_LISTED if probe is None else probe.worst
    known = {q.id: q for q in questions}
    chosen = [s for model in models for s in semantic_results.select_least_consistent(scores, facts, model, limit)]
    answers = {
        (a.model, a.question, a.wording): a
        for a in semantic_results.load_answers(db, source.audit.id, {s.question for s in chosen})
        if a.sample == 0
    }
    wordings = {
        (w.question, w.number): w.text
        for group in semantic_results.load_wordings(db, source.audit.id, {s.question for s in chosen}).values()
        for w in group
    }
    judged = {
        (v.model, v.question, v.left, v.right): v
        for v in semantic_results.load_pair_verdicts(db, source.audit.id, Purpose.CONTRADICTION.value)
    }
    rows = []
    for s in chosen:
        assert s.value is not None
        assert s.left is not None
        assert s.right is not None
        assert s.lowest is not None
        verdict = judged.get((s.model, s.question, s.left, s.right))
        left, right = (
            _to_worded_answer(wordings.get((s.question, i)), answers.get((s.model, s.question, i)))
            for i in (s.left, s.right)
        )
        rows.append(
            LeastConsistentRow(
                model=s.model,
                id=s.question,
                question=known[s.question].text,
                foundation=known[s.question].foundation,
                score=s.value,
                similarity=s.lowest,
                left=left,
                right=right,
                contradict=verdict.holds if verdict else None,
                because=verdict.reason if verdict else None,
            )
        )
    return rows


def _to_worded_answer(wording: str | None, answer: MoralAnswerRecord | None) -> WordedAnswer:
    return WordedAnswer(
        wording=wording or "", answer=answer.text if answer else None, rule=answer.rot if answer else None
    )
