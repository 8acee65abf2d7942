"""How logical judges are: from stored comparisons to the report's section."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from auditor.config import LogicProbe
from auditor.domain import Comparison, ComparisonChoice, ItemSet, Outcome
from auditor.metrics.correlation import pearson
from auditor.metrics.cycles import minimum_feedback_arcs, shortest_cycles
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
from auditor.reports.estimate_conversion import estimate_share, missing_estimate, to_estimate
from auditor.reports.logic.ranking import build_ranking_rows
from auditor.reports.logic.schema import (
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
from auditor.reports.measurement_schema import Estimate
from auditor.reports.report_source import ReportSource
from auditor.storage import comparisons
from auditor.storage.comparisons import ItemSetAnswers
from auditor.storage.database import Database
from auditor.storage.judge_consistency import measure_judge_consistency

ACCEPTABILITY = "acceptability"
MAX_EXACT_ITEMS = 20
"""Items of a knot whose fewest reversals are proved: larger ones may take the solver long."""
MAX_LISTED_CYCLES = 5


def build_logic_report(db: Database, source: ReportSource) -> LogicReport | None:
    """The section; None where nothing was compared."""
    sets = comparisons.load_item_sets(db, source.audit.id)
    found = comparisons.load_comparisons(db, source.audit.id)
    if not found:
        return None
    probe = (source.config.probes.logic if source.config else None) or LogicProbe()
    answers = comparisons.build_set_answers(sets, found)
    rank = {name: i for i, name in enumerate([*source.models, *source.judge_names])}
    judges = sorted({a.judge for a in answers}, key=lambda name: (rank.get(name, len(rank)), name))
    wordings = sorted({a.paraphrase for a in answers})
    rows = [_build_logic_row(judge, None, answers, found, probe, source.seed) for judge in judges]
    apart = [
        _build_logic_row(j, w, answers, found, probe, source.seed)
        for j in judges
        for w in wordings
        if len(wordings) > 1
    ]
    first = [a for judge in judges for a in answers if a.judge == judge and a.paraphrase == wordings[0]]
    links = [
        _build_correlation_rows(f"wordings, {judge}", [row for row in apart if row.judge == judge]) for judge in judges
    ]
    return LogicReport(
        criterion=list(dict.fromkeys(one.criterion for one in sets)),
        sets=len(sets),
        items=sum(len(one.items) for one in sets),
        contexts=[one.context for one in sets],
        judges=rows,
        wordings=apart,
        contradictions=[_build_contradiction_row(a) for a in first],
        repairs=[_build_repair_row(judge, [a for a in first if a.judge == judge], source.seed) for judge in judges],
        ledger=_build_consistency_rows(db, source),
        rankings=[
            row
            for judge in judges
            for row in build_ranking_rows(judge, [a for a in first if a.judge == judge], source.seed)
        ],
        links=[*_build_correlation_rows("judges", rows), *(link for of_judge in links for link in of_judge)],
    )


def _build_logic_row(
    judge: str,
    wording: int | None,
    answers: Sequence[ItemSetAnswers],
    all_comparisons: Iterable[Comparison],
    probe: LogicProbe,
    seed: int,
) -> LogicRow:
    mine = [a for a in answers if a.judge == judge and wording in (None, a.paraphrase)]
    sets = _to_answered_sets(mine)
    given = [
        c for c in all_comparisons if c.judge == judge and wording in (None, c.paraphrase) and c.outcome is Outcome.OK
    ]
    decided = [c for c in given if c.decision is not ComparisonChoice.TIE]
    losses = {o.value: sum(a.failures.get(o.value, 0) for a in mine) for o in Outcome}
    questions = sum(a.n_questions for a in mine)
    return LogicRow(
        judge=judge,
        wording=wording,
        questions=questions,
        ok=questions - sum(losses.values()),
        losses={name: n for name, n in losses.items() if n},
        ties=len(given) - len(decided),
        first=first_position_share(given),
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
    """How often the item shown first is named, of pairs answered in both orders.

    Where one order only was put, the better item may always have stood first: that says nothing of the judge.
    """
    orders: dict[tuple[object, ...], dict[str, Comparison]] = defaultdict(dict)
    for c in answered_comparisons:
        orders[c.context, frozenset((c.item_a, c.item_b)), c.relation, c.paraphrase, c.sample][c.item_a] = c
    said = [c.decision for both in orders.values() if len(both) == 2 for c in both.values()]
    decided = [d for d in said if d is not ComparisonChoice.TIE]
    if not decided:
        return missing_estimate("no pair was answered in both orders")
    return estimate_share(sum(d is ComparisonChoice.FIRST for d in decided), len(decided))


def _build_consistency_rows(db: Database, source: ReportSource) -> list[JudgeConsistencyRow]:
    """Judges, where there is a panel; whether its votes go by their consistency is the configuration's word."""
    if source.config is None or not source.config.judge_models:
        return []
    weighed = source.config.panel.weights_from == "logic"
    found = measure_judge_consistency(db, source.audit.id, source.config)
    return [
        JudgeConsistencyRow(
            judge=one.judge,
            transitivity=one.consistency.transitivity,
            commutativity=one.consistency.commutativity,
            negation=one.consistency.negation,
            self_agreement=one.consistency.self_agreement,
            value=one.weight.value,
            weight=one.weight.weight if weighed else None,
            benched=weighed and one.weight.reason is not None,
            reason=one.weight.reason,
        )
        for one in found
    ]


def _to_answered_sets(answers: Iterable[ItemSetAnswers]) -> list[JudgeAnswers]:
    """What the figures are made of; the wordings of a set are of one name, since they are about the same items."""
    return [
        JudgeAnswers(a.preferences, a.negated, a.asked, a.samples, a.human_preferences, a.item_set.context)
        for a in answers
    ]


def _build_transitivity_row(
    sets: Sequence[JudgeAnswers], k: int, max_subsets: int, seed: int, calibrated: bool
) -> TransitivityRow:
    found = pooled_transitivity(sets, k, max_subsets, seed, calibrated)
    return TransitivityRow(
        k=k, calibrated=calibrated, share=_to_logic_estimate(found), decided=found.decided, margin=found.margin
    )


def _to_logic_estimate(figure: LogicShare) -> LogicEstimate:
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
    names = item_names(answers.item_set)
    graph = preference_graph(answers.preferences, calibrated=True)
    arcs, cycles = minimum_feedback_arcs(graph, MAX_EXACT_ITEMS), shortest_cycles(graph)
    return ContradictionRow(
        judge=answers.judge,
        context=answers.item_set.context,
        items=len(names),
        decided=int(graph.sum()),
        reversals=len(arcs.arcs),
        least=arcs.lower_bound,
        exact=arcs.exact,
        arcs=[ArcRow(winner=names[arc.winner], loser=names[arc.loser]) for arc in arcs.arcs],
        cycles=[CycleRow(items=[names[i] for i in cycle]) for cycle in cycles[:MAX_LISTED_CYCLES]],
        not_listed=max(0, len(cycles) - MAX_LISTED_CYCLES),
    )


def item_names(item_set: ItemSet) -> list[str]:
    """What items are called: topics by the survey's own label, others by their text."""
    return [item.id if item_set.criterion == ACCEPTABILITY else item.text for item in item_set.items]


def _build_repair_row(judge: str, answers: Sequence[ItemSetAnswers], seed: int) -> RankingRepairRow:
    mended = [repair(a.preferences) for a in answers]
    found = measure_repair_effect(_to_answered_sets(answers), [m.preferences for m in mended], seed)
    return RankingRepairRow(
        judge=judge,
        questions=sum(int((~np.isnan(a.preferences)).sum()) for a in answers),
        flipped=sum(len(m.flipped) for m in mended),
        human_agreement=_to_logic_estimate(found.before),
        repaired_agreement=_to_logic_estimate(found.after),
        gain=to_estimate(found.gain),
        left_out=found.n_tied,
    )


# --- how the figures go together --------------------------------------------------------------------------------


def _build_correlation_rows(unit_label: str, rows: Sequence[LogicRow]) -> list[LogicCorrelationRow]:
    """Transitivity with self-agreement, and commutativity with agreement with people; from three rows on."""
    if len(rows) < 3:
        return []
    first = f"transitivity (K = {rows[0].transitivity[0].k})"
    transitive = [row.transitivity[0].share.value for row in rows]
    commutative = [row.commutativity.value for row in rows]
    return [
        _build_correlation_row(
            unit_label, first, transitive, "self-agreement", [row.self_agreement.value for row in rows]
        ),
        _build_correlation_row(
            unit_label, "commutativity", commutative, "agreement with people", [r.human_agreement.value for r in rows]
        ),
    ]


def _build_correlation_row(
    unit_label: str, x_name: str, x_figures: Sequence[float | None], y_name: str, y_figures: Sequence[float | None]
) -> LogicCorrelationRow:
    found = pearson(np.array(x_figures, dtype=float), np.array(y_figures, dtype=float))
    r = Estimate(value=found.r, n=found.n, ci_low=found.ci_low, ci_high=found.ci_high, reason=found.reason)
    return LogicCorrelationRow(over=unit_label, x=x_name, y=y_name, r=r)
