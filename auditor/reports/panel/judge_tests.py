"""What experiments on judges found: guesses, restated traces, planted faults, the order of two sides, own traces."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from auditor.domain import AlteredTraceVerdict, Cell, Contest, Guess, Outcome, Ruling
from auditor.metrics.judge_bias import difference_of_paired_shares, self_preference, verdict_drift
from auditor.reports.estimate_conversion import estimate_share, to_estimate
from auditor.reports.panel.schema import (
    BlindingCheckRow,
    FaultDetectionRow,
    PositionBiasRow,
    RestatementShiftRow,
    SelfReviewRow,
)
from auditor.reports.panel.verdict_matrix import VerdictMatrix

NEUTRAL_ALTERATION, SELF_ALTERATION, NO_ALTERATION = "neutral", "self", "none"
SampleKey = tuple[str, Cell, int]


def build_blinding_rows(judges: Sequence[str], guesses: Iterable[Guess]) -> list[BlindingCheckRow]:
    """One row for each judge and each thing that is hidden."""
    by_judge: dict[str, list[Guess]] = defaultdict(list)
    for guess in guesses:
        if guess.outcome is Outcome.OK:
            by_judge[guess.judge].append(guess)
    rows = []
    for judge in (j for j in judges if j in by_judge):
        for what, hit, size in (
            ("country", "hit_country", "countries"),
            ("topic", "hit_topic", "topics"),
            ("author", "hit_author", "authors"),
        ):
            known = [g for g in by_judge[judge] if getattr(g, hit) is not None]
            if known:
                hits = estimate_share(sum(getattr(g, hit) for g in known), len(known))
                chance = sum(1 / getattr(g, size) for g in known) / len(known)
                rows.append(BlindingCheckRow(judge=judge, what=what, hits=hits, chance=chance))
    return rows


def build_restatement_rows(
    matrix: VerdictMatrix, judge_tests: Iterable[AlteredTraceVerdict]
) -> list[RestatementShiftRow]:
    """What restating does to each judge's verdicts, over traces that it ruled on both ways."""
    restated = _verdicts_by_judge(t for t in judge_tests if t.alteration == NEUTRAL_ALTERATION)
    rows = []
    for i, judge in enumerate(matrix.judges):
        if judge not in restated:  # most audits restate nothing, and have many traces to look through
            continue
        pairs = [
            (matrix.all_verdicts[i, j], restated[judge][model, Cell(country, topic), sample])
            for j, (model, country, topic, sample) in enumerate(matrix.traces)
            if (model, Cell(country, topic), sample) in restated[judge] and not np.isnan(matrix.all_verdicts[i, j])
        ]
        if pairs:
            before, after = np.array(pairs).T
            rows.append(
                RestatementShiftRow(
                    judge=judge,
                    valid=estimate_share(int(before.sum()), len(pairs)),
                    restated=estimate_share(int(after.sum()), len(pairs)),
                    shift=to_estimate(verdict_drift(before, after)),
                    changed=estimate_share(int((before != after).sum()), len(pairs)),
                )
            )
    return rows


def build_fault_rows(judges: Sequence[str], judge_tests: Sequence[AlteredTraceVerdict]) -> list[FaultDetectionRow]:
    """One row for each fault and judge, over traces that it ruled on with the fault and without."""
    plain = _verdicts_by_judge(t for t in judge_tests if t.alteration == NO_ALTERATION)
    faults = dict.fromkeys(
        t.alteration for t in judge_tests if t.alteration not in (NEUTRAL_ALTERATION, SELF_ALTERATION, NO_ALTERATION)
    )
    rows = []
    for fault in faults:
        altered = _verdicts_by_judge(t for t in judge_tests if t.alteration == fault)
        for judge in judges:
            both = [k for k in altered.get(judge, {}) if k in plain.get(judge, {})]
            if both:
                pairs = Counter((1 - altered[judge][k], 1 - plain[judge][k]) for k in both)
                caught, alarms = pairs[1, 1] + pairs[1, 0], pairs[1, 1] + pairs[0, 1]
                counts = (pairs[1, 1], pairs[1, 0], pairs[0, 1], pairs[0, 0])
                rows.append(
                    FaultDetectionRow(
                        judge=judge,
                        fault=fault,
                        detected=estimate_share(caught, len(both)),
                        false_alarms=estimate_share(alarms, len(both)),
                        difference=to_estimate(difference_of_paired_shares(*counts)),
                    )
                )
    return rows


def build_position_rows(judges: Sequence[str], contests: Iterable[Contest]) -> list[PositionBiasRow]:
    """Whether judges prefer what is shown first, over pairs that they compared in both orders."""
    pairs: dict[str, dict[tuple[object, ...], dict[bool, bool]]] = defaultdict(lambda: defaultdict(dict))
    for c in contests:
        if c.prefers_first is not None:
            pairs[c.judge][c.cell, c.left, c.right][c.swapped] = c.prefers_first
    rows = []
    for judge in judges:
        whole = [orders for orders in pairs[judge].values() if len(orders) == 2]
        if whole:
            first = sum(sum(orders.values()) for orders in whole)
            stable = sum(orders[False] != orders[True] for orders in whole)
            rows.append(
                PositionBiasRow(
                    judge=judge, first=estimate_share(first, 2 * len(whole)), stable=estimate_share(stable, len(whole))
                )
            )
    return rows


def build_self_review_rows(matrix: VerdictMatrix, judge_tests: Iterable[AlteredTraceVerdict]) -> list[SelfReviewRow]:
    """How judges rule on their own traces, beside the other judges of these."""
    mine = _verdicts_by_judge(t for t in judge_tests if t.alteration == SELF_ALTERATION)
    if not mine:
        return []
    table, own = matrix.unconditional_verdicts.copy(), np.zeros(matrix.unconditional_verdicts.shape, dtype=np.bool_)
    for i, judge in enumerate(matrix.judges):
        for j, (model, country, topic, sample) in enumerate(matrix.traces):
            if model == judge:
                own[i, j] = True
                table[i, j] = mine.get(judge, {}).get((model, Cell(country, topic), sample), np.nan)
    found = self_preference(table, own)
    return [
        SelfReviewRow(
            judge=judge,
            valid=estimate_share(sum(mine[judge].values()), len(mine[judge])),
            preference=to_estimate(found[i]),
        )
        for i, judge in enumerate(matrix.judges)
        if judge in mine
    ]


def _verdicts_by_judge(judge_tests: Iterable[AlteredTraceVerdict]) -> Mapping[str, dict[SampleKey, int]]:
    """By judge and trace, 1 for VALID and 0 for INVALID."""
    found: dict[str, dict[SampleKey, int]] = defaultdict(dict)
    for t in judge_tests:
        if t.outcome is Outcome.OK and t.ruling is not None:
            found[t.judge][t.model, t.cell, t.sample] = int(t.ruling is Ruling.VALID)
    return dict(found)
