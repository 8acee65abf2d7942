"""How logical judges are: from stored comparisons to the report's section."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from auditor.config import LogicProbe
from auditor.domain import Choice, Comparison, ItemSet, Outcome
from auditor.metrics.correlation import pearson
from auditor.metrics.cycles import minimum_feedback_arcs, shortest_cycles
from auditor.metrics.logic import (
    Answered,
    Figure,
    commutativity_over,
    human_agreement_over,
    negation_over,
    self_agreement_over,
    transitivity_over,
)
from auditor.metrics.preference import relation
from auditor.metrics.ranking import repair
from auditor.metrics.repair_effect import mending
from auditor.reports.estimate_conversion import estimate, share_of, unmeasured
from auditor.reports.logic.ranking import rankings
from auditor.reports.logic.schema import (
    ArcRow,
    ContradictionRow,
    CycleRow,
    JudgeLedgerRow,
    LinkRow,
    LogicFigure,
    LogicPart,
    LogicRow,
    RepairRow,
    TransitivityRow,
)
from auditor.reports.measurement_schema import Estimate
from auditor.reports.report_source import Source
from auditor.storage import comparisons
from auditor.storage.comparisons import SetAnswers
from auditor.storage.database import Database
from auditor.storage.judge_consistency import judge_consistencies

ACCEPTABILITY = "acceptability"
EXACT_UP_TO = 20
"""Items of a knot whose fewest reversals are proved: larger ones may take the solver long."""
MAX_CYCLES = 5


def logic(db: Database, source: Source) -> LogicPart | None:
    """The section; None where nothing was compared."""
    sets = comparisons.sets(db, source.audit.id)
    found = comparisons.comparisons(db, source.audit.id)
    if not found:
        return None
    probe = (source.config.probes.logic if source.config else None) or LogicProbe()
    answers = comparisons.answers(sets, found)
    rank = {name: i for i, name in enumerate([*source.models, *source.judge_names])}
    judges = sorted({a.judge for a in answers}, key=lambda name: (rank.get(name, len(rank)), name))
    wordings = sorted({a.paraphrase for a in answers})
    rows = [_row(judge, None, answers, found, probe, source.seed) for judge in judges]
    apart = [_row(j, w, answers, found, probe, source.seed) for j in judges for w in wordings if len(wordings) > 1]
    first = [a for judge in judges for a in answers if a.judge == judge and a.paraphrase == wordings[0]]
    links = [_links(f"wordings, {judge}", [row for row in apart if row.judge == judge]) for judge in judges]
    return LogicPart(
        criterion=list(dict.fromkeys(one.criterion for one in sets)),
        sets=len(sets),
        items=sum(len(one.items) for one in sets),
        contexts=[one.context for one in sets],
        judges=rows,
        wordings=apart,
        contradictions=[_contradiction(a) for a in first],
        repairs=[_repair(judge, [a for a in first if a.judge == judge], source.seed) for judge in judges],
        ledger=_ledger(db, source),
        rankings=[
            row for judge in judges for row in rankings(judge, [a for a in first if a.judge == judge], source.seed)
        ],
        links=[*_links("judges", rows), *(link for of_judge in links for link in of_judge)],
    )


def _row(
    judge: str,
    wording: int | None,
    answers: Sequence[SetAnswers],
    found: Iterable[Comparison],
    probe: LogicProbe,
    seed: int,
) -> LogicRow:
    mine = [a for a in answers if a.judge == judge and wording in (None, a.paraphrase)]
    sets = _answered(mine)
    given = [c for c in found if c.judge == judge and wording in (None, c.paraphrase) and c.outcome is Outcome.OK]
    decided = [c for c in given if c.decision is not Choice.TIE]
    losses = {o.value: sum(a.losses.get(o.value, 0) for a in mine) for o in Outcome}
    questions = sum(a.questions for a in mine)
    return LogicRow(
        judge=judge,
        wording=wording,
        questions=questions,
        ok=questions - sum(losses.values()),
        losses={name: n for name, n in losses.items() if n},
        ties=len(given) - len(decided),
        first=first_named(given),
        transitivity=[
            _transitivity(sets, k, probe.max_subsets, seed, calibrated)
            for k in dict.fromkeys(probe.k)
            for calibrated in (False, True)
        ],
        commutativity=_figure(commutativity_over(sets, seed)),
        negation=_figure(negation_over(sets, seed)),
        negation_calibrated=_figure(negation_over(sets, seed, calibrated=True)),
        self_agreement=_figure(self_agreement_over(sets, seed)),
        human_agreement=_figure(human_agreement_over(sets, seed)),
        human_agreement_calibrated=_figure(human_agreement_over(sets, seed, calibrated=True)),
    )


def first_named(given: Iterable[Comparison]) -> Estimate:
    """How often the item shown first is named, of pairs answered in both orders.

    Where one order only was put, the better item may always have stood first: that says nothing of the judge.
    """
    orders: dict[tuple[object, ...], dict[str, Comparison]] = defaultdict(dict)
    for c in given:
        orders[c.context, frozenset((c.item_a, c.item_b)), c.relation, c.paraphrase, c.sample][c.item_a] = c
    said = [c.decision for both in orders.values() if len(both) == 2 for c in both.values()]
    decided = [d for d in said if d is not Choice.TIE]
    if not decided:
        return unmeasured("no pair was answered in both orders")
    return share_of(sum(d is Choice.FIRST for d in decided), len(decided))


def _ledger(db: Database, source: Source) -> list[JudgeLedgerRow]:
    """Judges, where there is a panel; whether its votes go by their consistency is the configuration's word."""
    if source.config is None or not source.config.judge_models:
        return []
    weighed = source.config.panel.weights_from == "logic"
    found = judge_consistencies(db, source.audit.id, source.config)
    return [
        JudgeLedgerRow(
            judge=one.judge,
            transitivity=one.measured.transitivity,
            commutativity=one.measured.commutativity,
            negation=one.measured.negation,
            self_agreement=one.measured.self_agreement,
            value=one.by_it.value,
            weight=one.by_it.weight if weighed else None,
            benched=weighed and one.by_it.reason is not None,
            reason=one.by_it.reason,
        )
        for one in found
    ]


def _answered(answers: Iterable[SetAnswers]) -> list[Answered]:
    """What the figures are made of; the wordings of a set are of one name, since they are about the same items."""
    return [Answered(a.preferences, a.negated, a.asked, a.samples, a.people, a.items.context) for a in answers]


def _transitivity(sets: Sequence[Answered], k: int, most: int, seed: int, calibrated: bool) -> TransitivityRow:
    found = transitivity_over(sets, k, most, seed, calibrated)
    return TransitivityRow(k=k, calibrated=calibrated, share=_figure(found), decided=found.decided, margin=found.margin)


def _figure(found: Figure) -> LogicFigure:
    return LogicFigure(
        value=found.value,
        n=found.n,
        ci_low=found.ci_low,
        ci_high=found.ci_high,
        reason=found.reason,
        lost=found.lost,
        over=found.over,
    )


# --- contradictions and their repair ----------------------------------------------------------------------------


def _contradiction(answers: SetAnswers) -> ContradictionRow:
    names = names_of(answers.items)
    graph = relation(answers.preferences, calibrated=True)
    arcs, cycles = minimum_feedback_arcs(graph, EXACT_UP_TO), shortest_cycles(graph)
    return ContradictionRow(
        judge=answers.judge,
        context=answers.items.context,
        items=len(names),
        decided=int(graph.sum()),
        reversals=len(arcs.arcs),
        least=arcs.lower_bound,
        exact=arcs.exact,
        arcs=[ArcRow(winner=names[arc.winner], loser=names[arc.loser]) for arc in arcs.arcs],
        cycles=[CycleRow(items=[names[i] for i in cycle]) for cycle in cycles[:MAX_CYCLES]],
        not_listed=max(0, len(cycles) - MAX_CYCLES),
    )


def names_of(items: ItemSet) -> list[str]:
    """What items are called: topics by the survey's own label, others by their text."""
    return [item.id if items.criterion == ACCEPTABILITY else item.text for item in items.items]


def _repair(judge: str, answers: Sequence[SetAnswers], seed: int) -> RepairRow:
    mended = [repair(a.preferences) for a in answers]
    found = mending(_answered(answers), [m.preferences for m in mended], seed)
    return RepairRow(
        judge=judge,
        questions=sum(int((~np.isnan(a.preferences)).sum()) for a in answers),
        flipped=sum(len(m.flipped) for m in mended),
        human_agreement=_figure(found.before),
        repaired_agreement=_figure(found.after),
        gain=estimate(found.gain),
        left_out=found.left_out,
    )


# --- how the figures go together --------------------------------------------------------------------------------


def _links(over: str, rows: Sequence[LogicRow]) -> list[LinkRow]:
    """Transitivity with self-agreement, and commutativity with agreement with people; from three rows on."""
    if len(rows) < 3:
        return []
    first = f"transitivity (K = {rows[0].transitivity[0].k})"
    transitive = [row.transitivity[0].share.value for row in rows]
    commutative = [row.commutativity.value for row in rows]
    return [
        _link(over, first, transitive, "self-agreement", [row.self_agreement.value for row in rows]),
        _link(over, "commutativity", commutative, "agreement with people", [r.human_agreement.value for r in rows]),
    ]


def _link(over: str, x: str, xs: Sequence[float | None], y: str, ys: Sequence[float | None]) -> LinkRow:
    found = pearson(np.array(xs, dtype=float), np.array(ys, dtype=float))
    r = Estimate(value=found.r, n=found.n, ci_low=found.ci_low, ci_high=found.ci_high, reason=found.reason)
    return LinkRow(over=over, x=x, y=y, r=r)
