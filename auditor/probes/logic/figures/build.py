"""Section on logical consistency, computed from stored comparisons: contradictions, correlations and rankings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from auditor.domain import ComparisonChoice, Outcome, derive_seed
from auditor.metrics.intervals.estimate import Estimate
from auditor.metrics.intervals.items import AVERAGINGS, Averaging
from auditor.metrics.intervals.unit_means import mean_over_units
from auditor.metrics.logic.consistency import (
    JudgeAnswers,
    LogicEstimate,
    average_answered_orders,
    estimate_commutativity,
    estimate_first_position,
    estimate_human_agreement,
    estimate_negation_invariance,
    estimate_position_consistency,
    estimate_self_agreement,
    preference_graph,
)
from auditor.metrics.logic.cycles import minimum_feedback_arcs, shortest_cycles
from auditor.metrics.logic.ranking import measure_repair_effect, repair
from auditor.metrics.logic.ranking_methods import ALL_PAIRS, RankingMethodStats, compare_ranking_methods
from auditor.metrics.logic.transitivity import estimate_transitivity
from auditor.metrics.people.over_models import correlate_models
from auditor.probes.logic import comparison_rows
from auditor.probes.logic.comparison_rows import ItemSetAnswers
from auditor.probes.logic.comparisons import Comparison, ItemSet
from auditor.probes.logic.figures.schema import (
    ArcRow,
    ContradictionRow,
    CycleRow,
    InstanceMeans,
    JudgeConsistencyRow,
    LogicCorrelationRow,
    LogicReport,
    LogicRow,
    RankingRepairRow,
    RankingRow,
    TransitivityRow,
)
from auditor.probes.logic.judges import JudgeConsistency, measure_judge_consistency
from auditor.probes.logic.settings import LogicProbe
from auditor.reports.data.coverage.counts import StageCoverage
from auditor.reports.data.coverage.lost_samples import replace_reason
from auditor.reports.data.panel.verdict_matrix import find_family
from auditor.reports.data.report_source import ReportSource
from auditor.reports.data.requests import SamplingReport
from auditor.reports.number_format import pluralize
from auditor.storage.database import Database
from auditor.storage.records import load_records

ACCEPTABILITY = "acceptability"
MAX_EXACT_ITEMS = 20
"""Largest strongly connected component whose minimum number of reversals is proved; larger ones may take long."""
MAX_LISTED_CYCLES = 5


def build_contradiction_row(answers: ItemSetAnswers) -> ContradictionRow:
    """Find the preferences to reverse, and the shortest cycles, in one judge's preferences on one set."""
    names = item_names(answers.item_set)
    graph = preference_graph(average_answered_orders(answers.preferences))
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


MIN_ROWS = 3


class _Figures(NamedTuple):
    """The figures of one judge or wording that are correlated; None where there is no value."""

    transitivity: float | None
    self_agreement: float | None
    commutativity: float | None
    human_agreement: float | None


def build_correlation_rows(
    source: ReportSource, rows: Sequence[LogicRow], wording_rows: Sequence[LogicRow]
) -> list[LogicCorrelationRow]:
    """Correlate figures over judges, and over each judge's wordings; nothing over fewer than three of them."""
    families = [find_family(source.config, row.judge) for row in rows]
    links = list(_correlate_rows("judges", rows, "judge", families))
    for judge in (row.judge for row in rows):
        rows_of_judge = [row for row in wording_rows if row.judge == judge]
        links += _correlate_rows(f"wordings, {judge}", rows_of_judge, "wording")
    return links


def _correlate_rows(
    unit_label: str, rows: Sequence[LogicRow], unit: str, families: Sequence[str | None] | None = None
) -> Iterator[LogicCorrelationRow]:
    """Correlate transitivity with self-agreement, and commutativity with agreement with people.

    Args:
        unit_label: names the rows.
        unit: what a row is of, `judge` or `wording`.
        families: of the judges.
    """
    if len(rows) < MIN_ROWS:
        return
    # The first transitivity figure: the first configured K, uncalibrated.
    transitivity_label = f"transitivity (K = {rows[0].transitivity[0].k})"
    for averaged in AVERAGINGS:
        figures = [_select_figures(row, averaged) for row in rows]
        for x_name, y_name, pairs in (
            (transitivity_label, "self-agreement", [(f.transitivity, f.self_agreement) for f in figures]),
            ("commutativity", "agreement with people", [(f.commutativity, f.human_agreement) for f in figures]),
        ):
            x, y = np.array(pairs, dtype=float).T
            r = replace_reason(
                correlate_models(x, y, families, unit=unit),
                {
                    "x constant": f"all {unit}s have the same {x_name}",
                    "y constant": f"all {unit}s have the same {y_name}",
                    "x and y constant": f"all {unit}s have the same {x_name} and the same {y_name}",
                },
            )
            yield LogicCorrelationRow(over=unit_label, averaged=averaged, x=x_name, y=y_name, r=r)


def _select_figures(row: LogicRow, averaged: Averaging) -> _Figures:
    """The figures of one row, as means over sets or pooled."""
    transitivity, shares = row.transitivity[0], row.instances if averaged == "instances" else row
    return _Figures(
        (transitivity.instances if averaged == "instances" else transitivity.share).value,
        shares.self_agreement.value,
        shares.commutativity.value,
        shares.human_agreement.value,
    )


MIN_RANKED_ITEMS, MAX_RANKED_ITEMS = 4, 60
"""Sizes of sets that are ranked: smaller sets have too few possible rankings, larger ones take minutes."""
RHO_BOUNDS = (-1.0, 1.0)
"""Smallest and largest possible rank correlation."""
MIN_ASKED_SHARE = 0.95
"""Share of all pairs, in both orders, that must have been asked, since rankings are replayed from the answers."""


def build_ranking_rows(judge: str, answers: Sequence[ItemSetAnswers], seed: int) -> list[RankingRow]:
    """Build one row for each ranking method, over the complete item sets of one judge; empty without such a set.

    A set is complete if nearly all of its pairs were asked in both orders. Figures say how many sets are left out.
    """
    stats_by_method: dict[str, list[RankingMethodStats]] = {}
    reasons = [_explain_omission(set_answers) for set_answers in answers]
    for set_answers in (entry for entry, reason in zip(answers, reasons, strict=True) if reason is None):
        human_scores = np.array([np.nan if item.human is None else item.human for item in set_answers.item_set.items])
        set_seed = derive_seed(seed, "ranking methods", set_answers.item_set.context)
        for stats in compare_ranking_methods(set_answers.preferences, human_scores, seed=set_seed):
            stats_by_method.setdefault(stats.method, []).append(stats)
    omissions = Counter(reason for reason in reasons if reason is not None)
    return [_build_ranking_row(judge, method, points, omissions) for method, points in stats_by_method.items()]


def _explain_omission(answers: ItemSetAnswers) -> str | None:
    """Why a set is not ranked: its size, or pairs that were not asked in both orders; None if it is ranked."""
    n = len(answers.item_set.items)
    if n < MIN_RANKED_ITEMS:
        return f"fewer than {MIN_RANKED_ITEMS} items"
    if n > MAX_RANKED_ITEMS:
        return f"more than {MAX_RANKED_ITEMS} items"
    if answers.asked[0].sum() < MIN_ASKED_SHARE * n * (n - 1):
        return f"under {MIN_ASKED_SHARE:.0%} of the pairs asked in both orders"
    return None


def _build_ranking_row(
    judge: str, method: str, points: Sequence[RankingMethodStats], omissions: Mapping[str, int]
) -> RankingRow:
    """Average the results of one ranking method over item sets.

    Args:
        points: one result for each set that was ranked.
        omissions: numbers of sets that were not ranked, by reason.
    """
    no_people = "people's order, or the judge's, is not known"
    all_pairs = [point.rho_all for point in points]
    return RankingRow(
        judge=judge,
        method=method,
        runs=points[0].runs,
        calls=float(np.mean([point.calls for point in points])),
        failed=float(np.mean([point.failed for point in points])),
        all_pairs=_mean_over_sets(all_pairs, "the judge decides nothing", omissions, is_reference=method == ALL_PAIRS),
        people=_mean_over_sets([point.rho_people for point in points], no_people, omissions),
    )


def _mean_over_sets(
    rhos: Sequence[float], missing_reason: str, omissions: Mapping[str, int], *, is_reference: bool = False
) -> Estimate:
    """Mean of Spearman's rho over the item sets in which it is defined, with an interval over other sets.

    The reason says how many sets are left out, since methods with different sets cannot be compared. A ranking that is
    compared with itself has rho 1 by definition, and no interval.
    """
    mean = mean_over_units(rhos, {"set": range(len(rhos))}, RHO_BOUNDS, empty_reason=missing_reason)
    if is_reference and mean.value is not None:
        mean = Estimate(mean.value, mean.n, reason="the other rankings are compared with this one")
    n_undefined = 0 if mean.value is None else int(np.isnan(rhos).sum())
    counts = {**omissions, "people's scores or the ranking have ties only": n_undefined}
    n_sets = len(rhos) + sum(omissions.values())
    left_out = [
        f"{count} of {pluralize(n_sets, 'set')} left out: {reason}" for reason, count in counts.items() if count
    ]
    return replace(mean, reason="; ".join(filter(None, (mean.reason, *left_out))) or None)


def build_logic_report(db: Database, source: ReportSource, sampling: SamplingReport) -> LogicReport | None:
    """Build the section; None where nothing was compared."""
    sets = comparison_rows.load_item_sets(db, source.audit.id)
    stored_comparisons = load_records(db, source.audit.id, Comparison)
    if not stored_comparisons:
        return None
    probe = (source.config.probes.find(LogicProbe) if source.config else None) or LogicProbe()
    answers = comparison_rows.build_set_answers(sets, stored_comparisons)
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
