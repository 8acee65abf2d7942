"""Conflicts of an audit: finding them, and letting the judges' verdicts settle them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from auditor.config import AuditConfig
from auditor.domain import Cell, Conflict, ConflictKind, ConflictState, Outcome, Ruling, Verdict
from auditor.metrics.conflict import find_conflicts, judge_vote, settle, third_quartile
from auditor.metrics.votes import weighted_majority

MAX_THRESHOLD = 2.0
Side = Literal["left", "right"]


def threshold_of(threshold: float | Literal["auto"], scores: NDArray[np.float64]) -> float:
    """The threshold in use: as configured, or the third quartile of all differences between two models on a cell.

    Args:
        threshold: the config's word.
        scores: shape (cells, models), nan where there is no score.

    Returns:
        In (0, 2]. Where `auto` finds no difference at all, 2, which only opposite extremes reach.
    """
    if threshold != "auto":
        return threshold
    left, right = np.triu_indices(scores.shape[1], 1)
    return third_quartile(np.abs(scores[:, left] - scores[:, right])).value or MAX_THRESHOLD


def conflicts_on(cell: Cell, names: Sequence[str], scores: NDArray[np.float64], threshold: float) -> list[Conflict]:
    """The conflicts on one cell; all still open."""
    return [
        Conflict(
            cell=cell,
            left=names[pair.left],
            right=names[pair.right],
            score_left=float(scores[pair.left]),
            score_right=float(scores[pair.right]),
            kind=ConflictKind(pair.kind),
        )
        for pair in find_conflicts(scores, threshold)
    ]


def settled(config: AuditConfig, conflicts: Iterable[Conflict], verdicts: Iterable[Verdict]) -> list[Conflict]:
    """The conflicts with their votes counted.

    Every judge that is the author of neither side has one seat, and votes for the side of whose traces it found the
    larger share VALID. A strict majority of the seats settles, or, where the config asks for it, more than half of
    their weight; what fails or abstains stays in the denominator.
    """
    given: dict[tuple[str, str, Cell], list[int]] = defaultdict(lambda: [0, 0])
    for verdict in verdicts:
        if verdict.outcome is Outcome.OK:
            tally = given[verdict.judge, verdict.model, verdict.cell]
            tally[0] += verdict.ruling is Ruling.VALID
            tally[1] += 1
    return [_settle(config, conflict, given) for conflict in conflicts]


def _settle(config: AuditConfig, conflict: Conflict, given: dict[tuple[str, str, Cell], list[int]]) -> Conflict:
    right_judges = {j.name for j in config.judges_of(conflict.right)}
    judges = [j.name for j in config.judges_of(conflict.left) if j.name in right_judges]
    votes = [
        judge_vote(
            *given.get((judge, conflict.left, conflict.cell), (0, 0)),
            *given.get((judge, conflict.right, conflict.cell), (0, 0)),
        )
        for judge in judges
    ]
    side = _upheld(config, judges, votes)
    winner = {"left": conflict.left, "right": conflict.right, None: None}[side]
    return replace(
        conflict,
        seats=len(judges),
        votes_left=votes.count("left"),
        votes_right=votes.count("right"),
        winner=winner,
        state=ConflictState.MAJORITY if winner else ConflictState.OPEN,
    )


def _upheld(config: AuditConfig, judges: Sequence[str], votes: Sequence[Side | None]) -> Side | None:
    """The side that the panel upholds by its rule; None leaves the conflict to a person."""
    if config.panel.vote == "majority":
        return settle(votes.count("left"), votes.count("right"), len(judges))
    weights = [config.panel.weights[judge] for judge in judges]
    if not any(weights):  # nobody who may judge this pair counts
        return None
    sides: tuple[Side, Side] = ("left", "right")
    [won] = weighted_majority([[np.nan if vote is None else sides.index(vote)] for vote in votes], weights)
    return None if np.isnan(won) else sides[int(won)]
