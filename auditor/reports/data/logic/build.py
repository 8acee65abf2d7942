"""Section on logical consistency, computed from stored comparisons."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from auditor.config import LogicProbe
from auditor.domain import Comparison, ComparisonChoice, ItemSet, Outcome
from auditor.metrics.correlation import pearson
from auditor.metrics.cycles import minimum_feedback_arcs, shortest_cycles
from auditor.metrics.estimate import Estimate
from auditor.metrics.logic import (
    JudgeAnswers,
    LogicShare,
    pooled_commutativity,
    pooled_human_agreement,
    pooled_negation_invariance,
    pooled_self_agreement,
    pooled_transitivity,
)
from auditor.metrics.preference import preference_graph
from auditor.metrics.ranking import repair
from auditor.metrics.repair_effect import measure_repair_effect
from auditor.reports.data.estimate_conversion import estimate_share, missing_estimate, to_estimate
from auditor.reports.data.logic.ranking import build_ranking_rows
from auditor.reports.data.logic.schema import (
    ArcRow,
    ContradictionRow,
    CycleRow,
    JudgeConsistencyRow,
    LogicCorrelationRow,
    LogicEstimate,
    LogicReport,
    LogicRow,
    RankingRepairRow,
    TransitivityRow,
)
from auditor.reports.data.report_source import ReportSource
from auditor.storage import comparisons
from auditor.storage.comparisons import ItemSetAnswers
from auditor.storage.database import Database
from auditor.storage.judge_consistency import measure_judge_consistency

ACCEPTABILITY = "acceptability"
MAX_EXACT_ITEMS = 20
"""Largest strongly connected component whose minimum number of reversals is proved; larger ones may take long."""
MAX_LISTED_CYCLES = 5


def build_logic_report(db: Database, source: ReportSource) -> LogicReport | None:
    """Build the section; None where nothing was compared."""
    sets = comparisons.load_item_sets(db, source.audit.id)
    stored_comparisons = comparisons.load_comparisons(db, source.audit.id)
    if not stored_comparisons:
        return None
    probe = (source.config.probes.logic if source.config else None) or LogicProbe()
    answers = comparisons.build_set_answers(sets, stored_comparisons)
    rank = {name: i for i, name in enumerate([*source.models, *source.judge_names])}
    judges = sorted({set_answers.judge for set_answers in answers}, key=lambda name: (rank.get(name, len(rank)), name))
    wordings = sorted({set_answers.paraphrase for set_answers in answers})
    rows = [_build_logic_row(judge, None, answers, stored_comparisons, probe, source.seed) for judge in judges]
    wording_rows = [
        _build_logic_row(judge, wording, answers, stored_comparisons, probe, source.seed)
        for judge in judges
        for wording in wordings
        if len(wordings) > 1
    ]
    first_wording_answers = [
        set_answers
        for judge in judges
        for set_answers in answers
        if set_answers.judge == judge and set_answers.paraphrase == wordings[0]
    ]
    wording_correlations = [
        _build_correlation_rows(f"wordings, {judge}", [row for row in wording_rows if row.judge == judge])
        for judge in judges
    ]
    return LogicReport(
        criterion=list(dict.fromkeys(item_set.criterion for item_set in sets)),
        sets=len(sets),
        items=sum(len(item_set.items) for item_set in sets),
        contexts=[item_set.context for item_set in sets],
        judges=rows,
        wordings=wording_rows,
        contradictions=[_build_contradiction_row(set_answers) for set_answers in first_wording_answers],
        repairs=[
            _build_repair_row(
                judge, [set_answers for set_answers in first_wording_answers if set_answers.judge == judge], source.seed
            )
            for judge in judges
        ],
        ledger=_build_consistency_rows(db, source),
        rankings=[
            row
            for judge in judges
            for row in build_ranking_rows(
                judge, [set_answers for set_answers in first_wording_answers if set_answers.judge == judge], source.seed
            )
        ],
        links=[
            *_build_correlation_rows("judges", rows),
            *(row for judge_rows in wording_correlations for row in judge_rows),
        ],
    )


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
    sets = _to_answered_sets(judge_answers)
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
        # Share of decisions for the item shown first.
        first=first_position_share(valid_comparisons),
        transitivity=[
            _build_transitivity_row(sets, k, probe.max_subsets, seed, calibrated)
            for k in dict.fromkeys(probe.k)
            for calibrated in (False, True)
        ],
        commutativity=_to_logic_estimate(pooled_commutativity(sets, seed)),
        negation=_to_logic_estimate(pooled_negation_invariance(sets, seed)),
        negation_calibrated=_to_logic_estimate(pooled_negation_invariance(sets, seed, calibrated=True)),
        self_agreement=_to_logic_estimate(pooled_self_agreement(sets, seed)),
        human_agreement=_to_logic_estimate(pooled_human_agreement(sets, seed)),
        human_agreement_calibrated=_to_logic_estimate(pooled_human_agreement(sets, seed, calibrated=True)),
    )


def first_position_share(answered_comparisons: Iterable[Comparison]) -> Estimate:
    """Share of decisions for the item shown first, over pairs answered in both orders.

    Pairs answered in one order only are left out: the better item may have been shown first, so they do not measure
    position bias.
    """
    comparisons_by_pair: dict[tuple[object, ...], dict[str, Comparison]] = defaultdict(dict)
    for comparison in answered_comparisons:
        comparisons_by_pair[
            comparison.context,
            frozenset((comparison.item_a, comparison.item_b)),
            comparison.relation,
            comparison.paraphrase,
            comparison.sample,
        ][comparison.item_a] = comparison
    decisions = [
        comparison.decision
        for by_first_item in comparisons_by_pair.values()
        if len(by_first_item) == 2  # each of the two items was shown first once
        for comparison in by_first_item.values()
    ]
    decided = [decision for decision in decisions if decision is not ComparisonChoice.TIE]
    if not decided:
        return missing_estimate("no pair was answered in both orders")
    return estimate_share(sum(decision is ComparisonChoice.FIRST for decision in decided), len(decided))


def _build_consistency_rows(db: Database, source: ReportSource) -> list[JudgeConsistencyRow]:
    """Build a row for each judge of the panel; weights are null unless `panel.weights_from` is \"logic\"."""
    if source.config is None or not source.config.judge_models:
        return []
    uses_weights = source.config.panel.weights_from == "logic"
    measurements = measure_judge_consistency(db, source.audit.id, source.config)
    return [
        JudgeConsistencyRow(
            judge=measured.judge,
            transitivity=measured.consistency.transitivity,
            commutativity=measured.consistency.commutativity,
            negation=measured.consistency.negation,
            self_agreement=measured.consistency.self_agreement,
            value=measured.weight.value,
            weight=measured.weight.weight if uses_weights else None,
            benched=uses_weights and measured.weight.reason is not None,
            reason=measured.weight.reason,
        )
        for measured in measurements
    ]


def _to_answered_sets(answers: Iterable[ItemSetAnswers]) -> list[JudgeAnswers]:
    """Convert stored answers to the input of the metrics.

    All wordings of a set carry the same context, which names the cluster, since they are about the same items.
    """
    return [
        JudgeAnswers(
            set_answers.preferences,
            set_answers.negated,
            set_answers.asked,
            set_answers.samples,
            set_answers.human_preferences,
            set_answers.item_set.context,
        )
        for set_answers in answers
    ]


def _build_transitivity_row(
    sets: Sequence[JudgeAnswers], k: int, max_subsets: int, seed: int, calibrated: bool
) -> TransitivityRow:
    """Compute the share of subsets of `k` items without a cycle; at most `max_subsets` per set are drawn."""
    transitivity = pooled_transitivity(sets, k, max_subsets, seed, calibrated)
    return TransitivityRow(
        k=k,
        calibrated=calibrated,
        share=_to_logic_estimate(transitivity),
        decided=transitivity.decided,
        margin=transitivity.margin,
    )


def _to_logic_estimate(figure: LogicShare) -> LogicEstimate:
    """Convert a share to the form of the report, field by field."""
    return LogicEstimate(
        value=figure.value,
        n=figure.n,
        ci_low=figure.ci_low,
        ci_high=figure.ci_high,
        reason=figure.reason,
        lost=figure.lost,
        over=figure.over,
    )


# --- contradictions and their repair ----------------------------------------------------------------------------


def _build_contradiction_row(answers: ItemSetAnswers) -> ContradictionRow:
    """Find the preferences to reverse, and the shortest cycles, in one judge's preferences on one set."""
    names = item_names(answers.item_set)
    graph = preference_graph(answers.preferences, calibrated=True)
    feedback, cycles = minimum_feedback_arcs(graph, MAX_EXACT_ITEMS), shortest_cycles(graph)
    return ContradictionRow(
        judge=answers.judge,
        context=answers.item_set.context,
        items=len(names),
        decided=int(graph.sum()),
        reversals=len(feedback.arcs),
        least=feedback.lower_bound,
        exact=feedback.exact,
        arcs=[ArcRow(winner=names[arc.winner], loser=names[arc.loser]) for arc in feedback.arcs],
        cycles=[CycleRow(items=[names[i] for i in cycle]) for cycle in cycles[:MAX_LISTED_CYCLES]],
        not_listed=max(0, len(cycles) - MAX_LISTED_CYCLES),
    )


def item_names(item_set: ItemSet) -> list[str]:
    """Return the names of items: the survey's topic labels for acceptability, else the items' texts."""
    return [item.id if item_set.criterion == ACCEPTABILITY else item.text for item in item_set.items]


def _build_repair_row(judge: str, answers: Sequence[ItemSetAnswers], seed: int) -> RankingRepairRow:
    """Compute how ranking the items changes one judge's answers and their agreement with people, over all sets."""
    repaired = [repair(set_answers.preferences) for set_answers in answers]
    effect = measure_repair_effect(
        _to_answered_sets(answers), [repaired_set.preferences for repaired_set in repaired], seed
    )
    return RankingRepairRow(
        judge=judge,
        questions=sum(int((~np.isnan(set_answers.preferences)).sum()) for set_answers in answers),
        flipped=sum(len(repaired_set.flipped) for repaired_set in repaired),
        human_agreement=_to_logic_estimate(effect.before),
        repaired_agreement=_to_logic_estimate(effect.after),
        gain=to_estimate(effect.gain),
        left_out=effect.n_tied,
    )


# --- correlations between figures -------------------------------------------------------------------------------


def _build_correlation_rows(unit_label: str, rows: Sequence[LogicRow]) -> list[LogicCorrelationRow]:
    """Correlate transitivity with self-agreement, and commutativity with agreement with people.

    Empty for fewer than three rows.
    """
    if len(rows) < 3:
        return []
    # The first transitivity figure: the first configured K, uncalibrated.
    transitivity_label = f"transitivity (K = {rows[0].transitivity[0].k})"
    transitivity = [row.transitivity[0].share.value for row in rows]
    commutativity = [row.commutativity.value for row in rows]
    return [
        _build_correlation_row(
            unit_label, transitivity_label, transitivity, "self-agreement", [row.self_agreement.value for row in rows]
        ),
        _build_correlation_row(
            unit_label,
            "commutativity",
            commutativity,
            "agreement with people",
            [row.human_agreement.value for row in rows],
        ),
    ]


def _build_correlation_row(
    unit_label: str, x_name: str, x_figures: Sequence[float | None], y_name: str, y_figures: Sequence[float | None]
) -> LogicCorrelationRow:
    """Compute Pearson's r of two figures over rows, leaving out rows where either is None.

    `unit_label` names the rows.
    """
    correlation = pearson(np.array(x_figures, dtype=float), np.array(y_figures, dtype=float))
    r = Estimate(
        value=correlation.r,
        n=correlation.n,
        ci_low=correlation.ci_low,
        ci_high=correlation.ci_high,
        reason=correlation.reason,
    )
    return LogicCorrelationRow(over=unit_label, x=x_name, y=y_name, r=r)
