"""Rows of models: mean scores, chance levels, forms of the score, and the least consistent questions."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from auditor.domain import Outcome
from auditor.metrics.answers.semantic import estimate_consistency_score
from auditor.metrics.intervals.estimate import NullDistribution
from auditor.metrics.intervals.items import AveragedEstimate
from auditor.probes.semantic import answer_rows
from auditor.probes.semantic.figures.experiment_rows import count_losses
from auditor.probes.semantic.figures.schema import (
    JudgedConsistencyRow,
    LeastConsistentRow,
    ScoreFormRow,
    ScoreTable,
    SemanticModelRow,
    WordedAnswer,
    mean_over_questions,
)
from auditor.probes.semantic.records import (
    CONSISTENCY_PURPOSE,
    CONTRADICTION_PURPOSE,
    QUESTION_TEXT,
    MoralAnswerRecord,
    MoralQuestion,
    NullScore,
    PairVerdict,
    QuestionScore,
    SemanticScoringSettings,
)
from auditor.probes.semantic.settings import SemanticProbe
from auditor.reports.data.report_source import ReportSource
from auditor.storage.database import Database
from auditor.storage.records import load_records

AnswerCount = tuple[str, bool, str, str | None, int]
"""Model, whether the wording is the original one, outcome of the answer, outcome of its rule of thumb, and number."""


def build_model_rows(
    db: Database, source: ReportSource, models: Sequence[str], table: ScoreTable
) -> list[SemanticModelRow]:
    """Build one row per model: mean scores, chance levels, and counts of planned, usable and lost answers."""
    outcome_counts = answer_rows.count_outcomes(db, source.audit.id)
    nulls = {(score.model, score.kind): score.null for score in load_records(db, source.audit.id, NullScore)}
    not_computed = NullDistribution(None, None, None, 0, 0, "not computed")
    no_answers_reason = "no question has two usable answers"
    no_rules_reason = "no question has two usable rules of thumb"
    return [
        SemanticModelRow(
            model=model,
            consistency=mean_over_questions(table.scores_of(model), no_answers_reason),
            rules=mean_over_questions(table.scores_of(model, "rot"), no_rules_reason),
            answers=mean_over_questions(table.scores_of(model, "answer"), no_answers_reason),
            shuffled=nulls.get((model, "shuffled"), not_computed),
            length_matched=nulls.get((model, "length"), not_computed),
            # The first item of a count is the model, the second whether the wording is the original: counted if it is
            # the only one.
            **_count_coverage(
                [count for count in outcome_counts if count[0] == model and count[1] == (not table.settings.wordings)],
                _count_planned(source, model, table),
            ),
        )
        for model in models
    ]


def _count_planned(source: ReportSource, model: str, table: ScoreTable) -> int | None:
    """Count the answers that a model is asked for; None where they are given, or imported."""
    probe = source.config.probes.find(SemanticProbe) if source.config is not None else None
    if source.config is None or probe is None:
        return None
    if table.settings.wordings:
        return len(table.questions) * table.settings.wordings
    if probe.consistency is None or probe.has_given_answers(source.config, source.config.model(model)):
        return None
    return len(table.questions) * probe.consistency.samples


def _count_coverage(answer_counts: Sequence[AnswerCount], planned: int | None) -> dict[str, int | dict[str, int]]:
    """Count planned, usable and lost answers and rules of thumb, as fields of `SemanticModelRow`."""
    answers, rules = Counter[str](), Counter[str]()
    for _, _, outcome, rule, n in answer_counts:  # rule: outcome of the rule of thumb, None where not asked for
        answers[outcome] += n
        if rule is not None:
            rules[rule] += n
    n_answers = answers.total()
    return {
        "planned": max(planned or 0, n_answers),
        "ok": answers[Outcome.OK.value],
        "losses": count_losses(answers),
        "missing": max((planned or 0) - n_answers, 0),
        "rules_planned": rules.total(),
        "rules_ok": rules[Outcome.OK.value],
        "rules_losses": count_losses(rules),
    }


NO_WORDINGS_REASON = "no question has two wordings"


def score_questions_only(table: ScoreTable) -> AveragedEstimate | None:
    """Score of the wordings of the questions themselves, in the audit's form; None where it was not computed."""
    question_scores = table.scores_of("", QUESTION_TEXT)
    return None if np.isnan(question_scores).all() else mean_over_questions(question_scores, NO_WORDINGS_REASON)


def build_form_rows(models: Sequence[str], table: ScoreTable) -> list[ScoreFormRow]:
    """Build one row per published form of the questions' wordings and of each model; only for forms with a score."""
    answer_forms = [form for form in table.settings.forms if form.text == "answer"]
    sources = [("", QUESTION_TEXT, form) for form in answer_forms]
    sources += [(model, form.text, form) for model in models for form in table.settings.forms]
    return [
        ScoreFormRow(
            model=model,
            text=text.partition(":")[0],
            rot_weight=None if text == QUESTION_TEXT else form.rot_weight,
            alpha=form.alpha,
            value=mean_over_questions(scores, "no question has two usable texts"),
        )
        for model, text, form in sources
        if not np.isnan(scores := table.scores_of(model, text, form.metric)).all()
    ]


def build_judged_rows(db: Database, source: ReportSource, models: Sequence[str]) -> list[JudgedConsistencyRow]:
    """Build one row per model and judge, in the order of the models; empty where no judge was asked."""
    groups: dict[tuple[str, str], list[PairVerdict]] = defaultdict(list)
    for verdict in answer_rows.load_pair_verdicts(db, source.audit.id, CONSISTENCY_PURPOSE.value):
        groups[verdict.model, verdict.judge].append(verdict)
    return [
        _build_judged_row(model, judge, groups[model, judge])
        for model, judge in sorted(
            groups, key=lambda model_and_judge: (models.index(model_and_judge[0]), model_and_judge[1])
        )
    ]


def _build_judged_row(model: str, judge: str, verdicts: Sequence[PairVerdict]) -> JudgedConsistencyRow:
    """Compute the share of pairs of answers of one model that one judge finds consistent, pooled and by question."""
    hits, totals = Counter[str](), Counter[str]()
    for verdict in verdicts:
        # `holds`: whether the answers are consistent; None for a failed judgement.
        hits[verdict.question] += verdict.holds is True
        totals[verdict.question] += verdict.holds is not None
    question_ids = sorted(totals)
    counts = [hits[question] for question in question_ids], [totals[question] for question in question_ids]
    return JudgedConsistencyRow(
        model=model,
        judge=judge,
        score=estimate_consistency_score(*counts, question_ids, "pooled"),
        instances=estimate_consistency_score(*counts, question_ids, "instances"),
        questions=len(question_ids),
        asked=len(verdicts),
        consistent=hits.total(),
        failed=len(verdicts) - totals.total(),
        losses=dict(Counter(verdict.outcome.value for verdict in verdicts if verdict.holds is None)),
    )


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
    question_ids = {score.question for score in lowest_scores}
    answers = answer_rows.load_answers(db, source.audit.id, question_ids)
    wordings = answer_rows.load_wordings(db, source.audit.id, question_ids)
    texts = _Texts(
        {(answer.model, answer.question, answer.wording): answer for answer in answers if answer.sample == 0},
        {(wording.question, wording.number): wording.text for group in wordings.values() for wording in group},
    )
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
