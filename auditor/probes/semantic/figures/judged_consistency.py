"""Consistency of sampled answers as a judge sees it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from auditor.metrics.semantic import estimate_consistency_score
from auditor.probes.semantic import answer_rows
from auditor.probes.semantic.figures.schema import JudgedConsistencyRow
from auditor.probes.semantic.records import CONSISTENCY_PURPOSE, PairVerdict
from auditor.reports.data.report_source import ReportSource
from auditor.storage.database import Database


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
