"""Tests of judges: blinding, restated traces, injected faults, position bias, and review of their own traces."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from auditor.domain import AlteredTraceVerdict, Cell, Contest, Guess, Outcome, Ruling
from auditor.metrics.share_difference import difference_of_paired_shares, verdict_drift
from auditor.reports.data.estimate_conversion import estimate_share, to_estimate
from auditor.reports.data.panel.judge_biases import PADDED_ALTERATION, estimate_self_preferences
from auditor.reports.data.panel.schema import (
    BlindingCheckRow,
    FaultDetectionRow,
    PositionBiasRow,
    RestatementShiftRow,
    SelfReviewRow,
)
from auditor.reports.data.panel.verdict_matrix import VerdictMatrix

NEUTRAL_ALTERATION, SELF_ALTERATION, NO_ALTERATION = "neutral", "self", "none"
NOT_FAULTS = (NEUTRAL_ALTERATION, SELF_ALTERATION, NO_ALTERATION, PADDED_ALTERATION)
"""Alterations that are no injected fault."""
SampleKey = tuple[str, Cell, int]
"""Model, cell and sample number of a trace."""


def build_blinding_rows(judges: Sequence[str], guesses: Iterable[Guess]) -> list[BlindingCheckRow]:
    """Build one row per judge and masked attribute (country, topic, author): share of hits, and share by chance.

    The share by chance is the mean of 1 / the number of options that a guess could choose from.
    """
    by_judge: dict[str, list[Guess]] = defaultdict(list)
    for guess in guesses:
        if guess.outcome is Outcome.OK:
            by_judge[guess.judge].append(guess)
    rows = []
    for judge in (name for name in judges if name in by_judge):
        for attribute, hit_field, size_field in (
            ("country", "hit_country", "countries"),
            ("topic", "hit_topic", "topics"),
            ("author", "hit_author", "authors"),
        ):
            scored_guesses = [guess for guess in by_judge[judge] if getattr(guess, hit_field) is not None]
            if scored_guesses:
                hits = estimate_share(sum(getattr(guess, hit_field) for guess in scored_guesses), len(scored_guesses))
                chance = sum(1 / getattr(guess, size_field) for guess in scored_guesses) / len(scored_guesses)
                rows.append(BlindingCheckRow(judge=judge, what=attribute, hits=hits, chance=chance))
    return rows


def build_restatement_rows(
    matrix: VerdictMatrix, judge_tests: Iterable[AlteredTraceVerdict]
) -> list[RestatementShiftRow]:
    """Compare each judge's verdicts on original and restated traces, over traces with both verdicts."""
    restated_verdicts = _verdicts_by_judge(test for test in judge_tests if test.alteration == NEUTRAL_ALTERATION)
    rows = []
    for i, judge in enumerate(matrix.judges):
        if judge not in restated_verdicts:  # skip the search through all traces, since most audits restate none
            continue
        verdict_pairs = [
            (matrix.all_verdicts[i, j], restated_verdicts[judge][model, Cell(country, topic), sample])
            for j, (model, country, topic, sample) in enumerate(matrix.traces)
            if (model, Cell(country, topic), sample) in restated_verdicts[judge]
            and not np.isnan(matrix.all_verdicts[i, j])
        ]
        if verdict_pairs:
            before, after = np.array(verdict_pairs).T  # 1 VALID, 0 INVALID: on the original and restated trace
            rows.append(
                RestatementShiftRow(
                    judge=judge,
                    valid=estimate_share(int(before.sum()), len(verdict_pairs)),
                    restated=estimate_share(int(after.sum()), len(verdict_pairs)),
                    shift=to_estimate(verdict_drift(before, after)),
                    changed=estimate_share(int((before != after).sum()), len(verdict_pairs)),
                )
            )
    return rows


def build_fault_rows(judges: Sequence[str], judge_tests: Sequence[AlteredTraceVerdict]) -> list[FaultDetectionRow]:
    """Build one row for each fault and judge, over traces judged both with the fault and without it."""
    unaltered_verdicts = _verdicts_by_judge(test for test in judge_tests if test.alteration == NO_ALTERATION)
    faults = dict.fromkeys(test.alteration for test in judge_tests if test.alteration not in NOT_FAULTS)
    rows = []
    for fault in faults:
        altered_verdicts = _verdicts_by_judge(test for test in judge_tests if test.alteration == fault)
        for judge in judges:
            common_traces = [
                trace for trace in altered_verdicts.get(judge, {}) if trace in unaltered_verdicts.get(judge, {})
            ]
            if common_traces:
                # Keys: whether the judge objects with the fault (1 or 0), and whether it objects without it.
                objection_counts = Counter(
                    (1 - altered_verdicts[judge][trace], 1 - unaltered_verdicts[judge][trace])
                    for trace in common_traces
                )
                n_detected, n_false_alarms = (
                    objection_counts[1, 1] + objection_counts[1, 0],
                    objection_counts[1, 1] + objection_counts[0, 1],
                )
                # Objections in both, only with the fault, only without it, in neither.
                contingency = (
                    objection_counts[1, 1],
                    objection_counts[1, 0],
                    objection_counts[0, 1],
                    objection_counts[0, 0],
                )
                rows.append(
                    FaultDetectionRow(
                        judge=judge,
                        fault=fault,
                        detected=estimate_share(n_detected, len(common_traces)),
                        false_alarms=estimate_share(n_false_alarms, len(common_traces)),
                        difference=to_estimate(difference_of_paired_shares(*contingency)),
                    )
                )
    return rows


def build_position_rows(judges: Sequence[str], contests: Iterable[Contest]) -> list[PositionBiasRow]:
    """Measure each judge's preference for the side shown first, over pairs compared in both orders."""
    # By judge, then by pair of traces, then by order (whether the sides were swapped): is the first side preferred?
    pairs: dict[str, dict[tuple[object, ...], dict[bool, bool]]] = defaultdict(lambda: defaultdict(dict))
    for contest in contests:
        if contest.prefers_first is not None:
            pairs[contest.judge][contest.cell, contest.left, contest.right][contest.swapped] = contest.prefers_first
    rows = []
    for judge in judges:
        complete_pairs = [orders for orders in pairs[judge].values() if len(orders) == 2]
        if complete_pairs:
            n_first = sum(sum(orders.values()) for orders in complete_pairs)
            # Preferring the same trace in both orders means preferring the first side in one order only.
            n_stable = sum(orders[False] != orders[True] for orders in complete_pairs)
            rows.append(
                PositionBiasRow(
                    judge=judge,
                    first=estimate_share(n_first, 2 * len(complete_pairs)),
                    stable=estimate_share(n_stable, len(complete_pairs)),
                )
            )
    return rows


def build_self_review_rows(matrix: VerdictMatrix, judge_tests: Iterable[AlteredTraceVerdict]) -> list[SelfReviewRow]:
    """Compare judges' verdicts on their own traces with the other judges' verdicts on these; one row per judge."""
    self_verdicts = _verdicts_by_judge(test for test in judge_tests if test.alteration == SELF_ALTERATION)
    if not self_verdicts:
        return []
    verdicts, is_own_trace = (
        matrix.unconditional_verdicts.copy(),
        np.zeros(matrix.unconditional_verdicts.shape, dtype=np.bool_),
    )
    for i, judge in enumerate(matrix.judges):
        for j, (model, country, topic, sample) in enumerate(matrix.traces):
            if model == judge:
                is_own_trace[i, j] = True
                verdicts[i, j] = self_verdicts.get(judge, {}).get((model, Cell(country, topic), sample), np.nan)
    preferences = estimate_self_preferences(matrix, verdicts, is_own_trace)
    return [
        SelfReviewRow(
            judge=judge,
            valid=estimate_share(sum(self_verdicts[judge].values()), len(self_verdicts[judge])),
            preference=preferences[i],
        )
        for i, judge in enumerate(matrix.judges)
        if judge in self_verdicts
    ]


def _verdicts_by_judge(judge_tests: Iterable[AlteredTraceVerdict]) -> Mapping[str, dict[SampleKey, int]]:
    """Valid verdicts by judge and trace: 1 for VALID, 0 for INVALID."""
    verdicts: dict[str, dict[SampleKey, int]] = defaultdict(dict)
    for test in judge_tests:
        if test.outcome is Outcome.OK and test.ruling is not None:
            verdicts[test.judge][test.model, test.cell, test.sample] = int(test.ruling is Ruling.VALID)
    return dict(verdicts)
