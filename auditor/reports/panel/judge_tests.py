"""What experiments on judges found: guesses, restated traces, planted faults, the order of two sides, own traces."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from auditor.domain import Cell, Contest, Guess, Outcome, Ruling, Trial
from auditor.metrics.judge_bias import difference_of_paired_shares, drift, preference
from auditor.reports.estimate_conversion import estimate, share_of
from auditor.reports.panel.schema import FaultRow, GuessRow, PositionRow, SelfRow, ShiftRow
from auditor.reports.panel.verdict_matrix import Table

NEUTRAL, SELF, NONE = "neutral", "self", "none"
Key = tuple[str, Cell, int]


def guess_rows(judges: Sequence[str], guesses: Iterable[Guess]) -> list[GuessRow]:
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
                hits = share_of(sum(getattr(g, hit) for g in known), len(known))
                chance = sum(1 / getattr(g, size) for g in known) / len(known)
                rows.append(GuessRow(judge=judge, what=what, hits=hits, chance=chance))
    return rows


def shift_rows(ballots: Table, trials: Iterable[Trial]) -> list[ShiftRow]:
    """What restating does to each judge's verdicts, over traces that it ruled on both ways."""
    restated = _rulings(t for t in trials if t.alteration == NEUTRAL)
    rows = []
    for i, judge in enumerate(ballots.judges):
        if judge not in restated:  # most audits restate nothing, and have many traces to look through
            continue
        pairs = [
            (ballots.said[i, j], restated[judge][model, Cell(country, topic), sample])
            for j, (model, country, topic, sample) in enumerate(ballots.traces)
            if (model, Cell(country, topic), sample) in restated[judge] and not np.isnan(ballots.said[i, j])
        ]
        if pairs:
            before, after = np.array(pairs).T
            rows.append(
                ShiftRow(
                    judge=judge,
                    valid=share_of(int(before.sum()), len(pairs)),
                    restated=share_of(int(after.sum()), len(pairs)),
                    shift=estimate(drift(before, after)),
                    changed=share_of(int((before != after).sum()), len(pairs)),
                )
            )
    return rows


def fault_rows(judges: Sequence[str], trials: Sequence[Trial]) -> list[FaultRow]:
    """One row for each fault and judge, over traces that it ruled on with the fault and without."""
    plain = _rulings(t for t in trials if t.alteration == NONE)
    faults = dict.fromkeys(t.alteration for t in trials if t.alteration not in (NEUTRAL, SELF, NONE))
    rows = []
    for fault in faults:
        altered = _rulings(t for t in trials if t.alteration == fault)
        for judge in judges:
            both = [k for k in altered.get(judge, {}) if k in plain.get(judge, {})]
            if both:
                pairs = Counter((1 - altered[judge][k], 1 - plain[judge][k]) for k in both)
                caught, alarms = pairs[1, 1] + pairs[1, 0], pairs[1, 1] + pairs[0, 1]
                counts = (pairs[1, 1], pairs[1, 0], pairs[0, 1], pairs[0, 0])
                rows.append(
                    FaultRow(
                        judge=judge,
                        fault=fault,
                        detected=share_of(caught, len(both)),
                        false_alarms=share_of(alarms, len(both)),
                        difference=estimate(difference_of_paired_shares(*counts)),
                    )
                )
    return rows


def position_rows(judges: Sequence[str], contests: Iterable[Contest]) -> list[PositionRow]:
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
                PositionRow(judge=judge, first=share_of(first, 2 * len(whole)), stable=share_of(stable, len(whole)))
            )
    return rows


def self_rows(ballots: Table, trials: Iterable[Trial]) -> list[SelfRow]:
    """How judges rule on their own traces, beside the other judges of these."""
    mine = _rulings(t for t in trials if t.alteration == SELF)
    if not mine:
        return []
    table, own = ballots.fair.copy(), np.zeros(ballots.fair.shape, dtype=np.bool_)
    for i, judge in enumerate(ballots.judges):
        for j, (model, country, topic, sample) in enumerate(ballots.traces):
            if model == judge:
                own[i, j] = True
                table[i, j] = mine.get(judge, {}).get((model, Cell(country, topic), sample), np.nan)
    found = preference(table, own)
    return [
        SelfRow(judge=judge, valid=share_of(sum(mine[judge].values()), len(mine[judge])), preference=estimate(found[i]))
        for i, judge in enumerate(ballots.judges)
        if judge in mine
    ]


def _rulings(trials: Iterable[Trial]) -> Mapping[str, dict[Key, int]]:
    """By judge and trace, 1 for VALID and 0 for INVALID."""
    found: dict[str, dict[Key, int]] = defaultdict(dict)
    for t in trials:
        if t.outcome is Outcome.OK and t.ruling is not None:
            found[t.judge][t.model, t.cell, t.sample] = int(t.ruling is Ruling.VALID)
    return dict(found)
