"""Consistency under paraphrase: similarity of a model's answers to one moral question in several wordings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from auditor.probes.semantic import answer_rows
from auditor.probes.semantic.figures.experiment_rows import build_difference_rows
from auditor.probes.semantic.figures.human_judgements import load_sampled_labels, measure_human_judgements
from auditor.probes.semantic.figures.rows import (
    build_form_rows,
    build_judged_rows,
    build_least_consistent_rows,
    build_model_rows,
    score_questions_only,
)
from auditor.probes.semantic.figures.schema import (
    BASELINE_METRICS,
    BaselineSimilarityRow,
    FoundationRow,
    ScoreTable,
    SemanticReport,
    build_culture_rows,
    mean_over_questions,
)
from auditor.probes.semantic.records import FOUNDATIONS, QuestionScore
from auditor.reports.data.coverage.counts import StageCoverage
from auditor.reports.data.report_source import ReportSource
from auditor.reports.data.requests import SamplingReport
from auditor.storage.database import Database
from auditor.storage.probe_results import list_answering_models
from auditor.storage.records import load_records


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
