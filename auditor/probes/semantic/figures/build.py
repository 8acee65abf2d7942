"""Consistency under paraphrase: similarity of a model's answers to one moral question in several wordings."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from auditor.domain import Outcome
from auditor.metrics.answers.semantic import estimate_consistency_score
from auditor.metrics.intervals.estimate import NullDistribution
from auditor.metrics.intervals.items import AveragedEstimate
from auditor.probes.semantic import answer_rows
from auditor.probes.semantic.figures.experiment_rows import build_difference_rows, count_losses
from auditor.probes.semantic.figures.human_judgements import load_sampled_labels, measure_human_judgements
from auditor.probes.semantic.figures.schema import (
    BASELINE_METRICS,
    BaselineSimilarityRow,
    FoundationRow,
    JudgedConsistencyRow,
    LeastConsistentRow,
    ScoreFormRow,
    ScoreTable,
    SemanticModelRow,
    SemanticReport,
    WordedAnswer,
    build_culture_rows,
    mean_over_questions,
)
from auditor.probes.semantic.records import (
    CONSISTENCY_PURPOSE,
    CONTRADICTION_PURPOSE,
    FOUNDATIONS,
    QUESTION_TEXT,
    MoralAnswerRecord,
    MoralQuestion,
    NullScore,
    PairVerdict,
    QuestionScore,
    SemanticScoringSettings,
)
from auditor.probes.semantic.settings import SemanticProbe
from auditor.reports.data.coverage.counts import StageCoverage
from auditor.reports.data.report_source import ReportSource
from auditor.reports.data.requests import SamplingReport
from auditor.storage.database import Database
from auditor.storage.probe_results import list_answering_models
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
            consistency_simultaneous=mean_over_questions(
                table.scores_of(model), no_answers_reason, n_intervals=len(models)
            ),
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


def build_semantic_report(db: Database, source: ReportSource, sampling: SamplingReport) -> SemanticReport | None:
    """Build the section on the probe `semantic`; None where nothing has been scored.

    Models are compared only if their sampling settings are comparable.
    """
    settings = answer_rows.load_facts(db, source.audit.id)
    if settings is None:
        return None
    questions = answer_rows.load_questions(db, source.audit.id)
    scores = load_records(db, source.audit.id, QuestionScore)
    score_table = ScoreTable(questions, scores, settings)
    answering = (
        score_table.models if settings.wordings else set(list_answering_models(db, source.audit.id, ["semantic"]))
    )
    models = [*source.models, *sorted(answering.difference(source.models))]
    models = [model for model in models if model in answering]
    scored_models = models if settings.wordings else []
    counts_by_reason: dict[str, int] = defaultdict(int)
    for wordings in answer_rows.load_wordings(db, source.audit.id).values():
        for wording in wordings:
            if wording.number is None:
                counts_by_reason[wording.reason or "not told"] += 1
    return SemanticReport(
        settings=settings,
        questions=len(questions),
        fewest_wordings=counts[0] if (counts := count_wordings(db, source.audit.id)) and settings.wordings else None,
        models=build_model_rows(db, source, models, score_table),
        foundations=_build_foundation_rows(scored_models, score_table),
        differences=build_difference_rows(scored_models, score_table, sampling),
        rivals=_build_similarity_rows(models, score_table),
        **build_culture_rows(source.survey, scored_models, score_table),
        judged=build_judged_rows(db, source, models),
        worst=build_least_consistent_rows(db, source, settings, models, questions, scores),
        rejected=dict(sorted(counts_by_reason.items())),
        questions_only=score_questions_only(score_table),
        forms=build_form_rows(models, score_table),
        people=measure_human_judgements(db, source.audit.id, settings, load_sampled_labels(db, source.audit.id)),
    )


def measure_semantic_coverage(report: SemanticReport) -> Iterator[StageCoverage]:
    """Yield the coverage of answers to questions, and of rules of thumb and judgements where they were asked for."""
    answers = [(row.model, row.planned, row.ok, row.losses) for row in report.models]
    yield StageCoverage.by_model("semantic", "answers", answers)
    if any(row.rules_planned for row in report.models):
        rules = [(row.model, row.rules_planned, row.rules_ok, row.rules_losses) for row in report.models]
        yield StageCoverage.by_model("semantic", "rules", rules)
    if report.judged:
        judged = [(row.model, row.asked, row.asked - row.failed, row.losses) for row in report.judged]
        yield StageCoverage.by_model("semantic", "judgements", judged)


def _build_foundation_rows(models: Sequence[str], table: ScoreTable) -> list[FoundationRow]:
    """Build one row per moral foundation and model; empty where no question names a foundation."""
    foundations = [foundation for foundation in (*FOUNDATIONS, "") if foundation in table.foundations]
    if foundations == [""]:
        return []
    foundation_by_question = np.array(table.foundations)
    return [
        FoundationRow(
            model=model,
            foundation=foundation or "none given",
            consistency=mean_over_questions(
                table.scores_of(model)[foundation_by_question == foundation], "no question has two usable answers"
            ),
        )
        for foundation in foundations
        for model in models
    ]


def _build_similarity_rows(models: Sequence[str], table: ScoreTable) -> list[BaselineSimilarityRow]:
    """Build one row per text, baseline metric and model, for the metrics that were computed."""
    scored_metrics = [
        (text, metric) for text in ("rot", "answer") for metric in BASELINE_METRICS if (text, metric) in table.metrics
    ]
    return [
        BaselineSimilarityRow(
            model=model,
            text=text,
            metric=metric,
            value=mean_over_questions(
                table.scores_of(model, text, metric), "no question has two usable texts", metric=metric
            ),
        )
        for text, metric in scored_metrics
        for model in models
    ]


def count_wordings(db: Database, audit_id: int) -> tuple[int, int] | None:
    """Fewest and most wordings that a question of an audit was asked in; None without questions."""
    groups = answer_rows.load_wordings(db, audit_id).values()
    counts = [sum(bool(wording.number) for wording in group) for group in groups]  # the question itself is number 0
    return (min(counts), max(counts)) if counts else None
