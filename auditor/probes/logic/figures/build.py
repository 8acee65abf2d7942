"""Section on logical consistency, computed from stored comparisons."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from auditor.domain import ComparisonChoice, Outcome
from auditor.metrics.averaging import Averaging
from auditor.metrics.logic import (
    JudgeAnswers,
    LogicEstimate,
    estimate_commutativity,
    estimate_first_position,
    estimate_human_agreement,
    estimate_negation_invariance,
    estimate_position_consistency,
    estimate_self_agreement,
)
from auditor.metrics.set_transitivity import estimate_transitivity
from auditor.probes.logic import comparison_rows
from auditor.probes.logic.comparison_rows import ItemSetAnswers
from auditor.probes.logic.comparisons import Comparison
from auditor.probes.logic.figures.contradictions import build_contradiction_row, build_repair_row
from auditor.probes.logic.figures.correlations import build_correlation_rows
from auditor.probes.logic.figures.ranking import build_ranking_rows
from auditor.probes.logic.figures.schema import (
    InstanceMeans,
    JudgeConsistencyRow,
    LogicReport,
    LogicRow,
    TransitivityRow,
)
from auditor.probes.logic.judge_consistency import JudgeConsistency, measure_judge_consistency
from auditor.probes.logic.settings import LogicProbe
from auditor.reports.data.coverage.stage_coverage import StageCoverage
from auditor.reports.data.report_source import ReportSource
from auditor.reports.data.requests.sampling_settings import SamplingReport
from auditor.storage.database import Database
from auditor.storage.records import load_records


def build_logic_report(db: Database, source: ReportSource, sampling: SamplingReport) -> LogicReport | None:
    """Build the section; None where nothing was compared."""
    sets = comparison_rows.load_item_sets(db, source.audit.id)
    stored_comparisons = load_records(db, source.audit.id, Comparison)
    if not stored_comparisons:
        return None
    probe = (source.config.probes.find(LogicProbe) if source.config else None) or LogicProbe()
    answers = comparison_rows.build_set_answers(sets, stored_comparisons)
    judges = _list_judges(source, answers)
    wordings = sorted({set_answers.paraphrase for set_answers in answers})
    rows = [_build_logic_row(judge, None, answers, stored_comparisons, probe, source.seed) for judge in judges]
    wording_rows = [
        _build_logic_row(judge, wording, answers, stored_comparisons, probe, source.seed)
        for judge in judges
        for wording in wordings
        if len(wordings) > 1
    ]
    first_answers = {  # in the first wording, by judge
        judge: [
            set_answers
            for set_answers in answers
            if set_answers.judge == judge and set_answers.paraphrase == wordings[0]
        ]
        for judge in judges
    }
    return LogicReport(
        criterion=list(dict.fromkeys(item_set.criterion for item_set in sets)),
        sets=len(sets),
        max_sets=probe.sets,
        labelled_pairs=_count_labelled_pairs(stored_comparisons),
        items=sum(len(item_set.items) for item_set in sets),
        contexts=[item_set.context for item_set in sets],
        judges=rows,
        wordings=wording_rows,
        contradictions=[build_contradiction_row(on_set) for on_sets in first_answers.values() for on_set in on_sets],
        repairs=[build_repair_row(judge, on_sets) for judge, on_sets in first_answers.items()],
        ledger=_build_consistency_rows(db, source),
        rankings=[
            row for judge, on_sets in first_answers.items() for row in build_ranking_rows(judge, on_sets, source.seed)
        ],
        links=build_correlation_rows(source, rows, wording_rows),
    )


def _count_labelled_pairs(stored_comparisons: Iterable[Comparison]) -> int:
    """Number of pairs of items with a label by people, whatever judges and orders were asked."""
    return len(
        {
            (comparison.context, frozenset((comparison.item_a, comparison.item_b)))
            for comparison in stored_comparisons
            if comparison.people is not None
        }
    )


def measure_logic_coverage(report: LogicReport) -> Iterator[StageCoverage]:
    """Yield the coverage of comparisons of items, by judge."""
    yield StageCoverage.by_model(
        "logic", None, [(row.judge, row.questions, row.ok, row.losses) for row in report.judges]
    )


def _list_judges(source: ReportSource, answers: Iterable[ItemSetAnswers]) -> list[str]:
    """Judges of comparisons: models and judges in the order of the report, then others by name."""
    rank = {name: i for i, name in enumerate([*source.models, *source.judge_names])}
    return sorted({set_answers.judge for set_answers in answers}, key=lambda name: (rank.get(name, len(rank)), name))


def _build_logic_row(
    judge: str,
    wording: int | None,
    answers: Sequence[ItemSetAnswers],
    all_comparisons: Iterable[Comparison],
    probe: LogicProbe,
    seed: int,
) -> LogicRow:
    """Compute one judge's figures, over all wordings if `wording` is None."""
    judge_answers = [
        set_answers
        for set_answers in answers
        if set_answers.judge == judge and wording in (None, set_answers.paraphrase)
    ]
    sets = [set_answers.metric_input for set_answers in judge_answers]
    valid_comparisons = [
        comparison
        for comparison in all_comparisons
        if comparison.judge == judge and wording in (None, comparison.paraphrase) and comparison.outcome is Outcome.OK
    ]
    decided = [comparison for comparison in valid_comparisons if comparison.decision is not ComparisonChoice.TIE]
    losses = {
        outcome.value: sum(set_answers.failures.get(outcome.value, 0) for set_answers in judge_answers)
        for outcome in Outcome
    }
    questions = sum(set_answers.n_questions for set_answers in judge_answers)
    return LogicRow(
        judge=judge,
        wording=wording,
        questions=questions,
        ok=questions - sum(losses.values()),
        losses={name: n for name, n in losses.items() if n},
        ties=len(valid_comparisons) - len(decided),
        first=estimate_first_position(sets, "pooled"),
        transitivity=[
            _build_transitivity_row(sets, k, probe.max_subsets, seed, calibrated)
            for k in dict.fromkeys(probe.k)
            for calibrated in (False, True)
        ],
        **_estimate_shares(sets, "pooled"),
        instances=InstanceMeans(**_estimate_shares(sets, "instances")),
    )


def _estimate_shares(sets: Sequence[JudgeAnswers], averaged: Averaging) -> dict[str, LogicEstimate]:
    """Estimate one judge's shares, by the fields of `InstanceMeans`."""
    return {
        "commutativity": estimate_commutativity(sets, averaged),
        "position_consistency": estimate_position_consistency(sets, averaged),
        "negation": estimate_negation_invariance(sets, averaged),
        "negation_calibrated": estimate_negation_invariance(sets, averaged, calibrated=True),
        "self_agreement": estimate_self_agreement(sets, averaged),
        "human_agreement": estimate_human_agreement(sets, averaged),
        "human_agreement_calibrated": estimate_human_agreement(sets, averaged, calibrated=True),
    }


def _build_consistency_rows(db: Database, source: ReportSource) -> list[JudgeConsistencyRow]:
    """Build a row for each judge of the panel; weights are null unless `panel.weights_from` is \"logic\"."""
    if source.config is None or not source.config.judge_models:
        return []
    uses_weights = source.config.panel.weights_from == "logic"
    measurements = measure_judge_consistency(db, source.audit.id, source.config)
    return [_build_consistency_row(measured, uses_weights=uses_weights) for measured in measurements]


def _build_consistency_row(measured: JudgeConsistency, *, uses_weights: bool) -> JudgeConsistencyRow:
    """Convert the consistency of one judge to the form of the report."""
    consistency, weight = measured.consistency, measured.weight
    transitivity, commutativity, negation, self_agreement = (
        None if measure is None else measure.value for measure in consistency.measures
    )
    return JudgeConsistencyRow(
        judge=measured.judge,
        transitivity=transitivity,
        commutativity=commutativity,
        negation=negation,
        self_agreement=self_agreement,
        decided_share=consistency.decided / consistency.decidable if consistency.decidable else None,
        side_share=consistency.side_share,
        value=weight.value,
        above_chance=weight.above_chance,
        weight=weight.weight if uses_weights else None,
        benched=uses_weights and weight.reason is not None,
        reason=weight.reason,
    )


def _build_transitivity_row(
    sets: Sequence[JudgeAnswers], k: int, max_subsets: int, seed: int, calibrated: bool
) -> TransitivityRow:
    """Compute the share of subsets of `k` items without a cycle; at most `max_subsets` per set are drawn."""
    transitivity = estimate_transitivity(sets, k, max_subsets, seed, calibrated)
    return TransitivityRow(
        k=k,
        calibrated=calibrated,
        share=transitivity.complete["pooled"],
        instances=transitivity.complete["instances"],
        partial=transitivity.partial["pooled"],
        partial_instances=transitivity.partial["instances"],
        decided=transitivity.n_decided,
        tied=transitivity.n_tied,
        unanswered=transitivity.n_lost,
        margin=transitivity.margin["pooled"],
        margin_instances=transitivity.margin["instances"],
        all_subsets=transitivity.exhaustive,
    )
