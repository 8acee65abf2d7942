"""Contradictions in judges' preferences, and the effect of ranking the items on their answers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from auditor.metrics.cycles import minimum_feedback_arcs, shortest_cycles
from auditor.metrics.preference import preference_graph
from auditor.metrics.preference_repair import repair
from auditor.metrics.repair_effect import measure_repair_effect
from auditor.probes.logic.comparison_rows import ItemSetAnswers
from auditor.probes.logic.comparisons import ItemSet
from auditor.probes.logic.figures.schema import ArcRow, ContradictionRow, CycleRow, RankingRepairRow

ACCEPTABILITY = "acceptability"
MAX_EXACT_ITEMS = 20
"""Largest strongly connected component whose minimum number of reversals is proved; larger ones may take long."""
MAX_LISTED_CYCLES = 5


def build_contradiction_row(answers: ItemSetAnswers) -> ContradictionRow:
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


def build_repair_row(judge: str, answers: Sequence[ItemSetAnswers]) -> RankingRepairRow:
    """Compute how ranking the items changes one judge's answers and their agreement with people, over all sets."""
    repaired = [repair(set_answers.preferences) for set_answers in answers]
    effect = measure_repair_effect(
        [set_answers.metric_input for set_answers in answers], [repaired_set.preferences for repaired_set in repaired]
    )
    return RankingRepairRow(
        judge=judge,
        questions=sum(int((~np.isnan(set_answers.preferences)).sum()) for set_answers in answers),
        flipped=sum(len(repaired_set.flipped) for repaired_set in repaired),
        human_agreement=effect.before,
        repaired_agreement=effect.after,
        gain=effect.gain,
        left_out=effect.n_tied,
    )
