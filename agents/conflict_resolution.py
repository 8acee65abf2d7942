"""Conflicts of an audit: finding them, and letting the judges' verdicts settle them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from auditor.config import AuditConfig
from auditor.domain import (
    Cell,
    CellScore,
    Conflict,
    ConflictKind,
    ConflictState,
    Method,
    Outcome,
    Ruling,
    Verdict,
    method_side_name,
)
from auditor.metrics.conflict import auto_threshold, find_conflicts, is_within_noise, judge_vote, settle, third_quartile
from auditor.metrics.votes import can_still_change, dawid_skene, posterior_of_seats, weighted_majority

EVEN_PROBABILITY = 0.5
VoteSide = Literal["left", "right"]


def effective_threshold(configured: float | Literal["auto"], scores: NDArray[np.float64]) -> float:
    """The threshold in use: as configured, or the third quartile of all differences between two models on a cell.

    Args:
        threshold: the config's word.
        scores: shape (cells, models), nan where there is no score.

    Returns:
        In (0, 2]; see `auto_threshold`.
    """
    if configured != "auto":
        return configured
    left, right = np.triu_indices(scores.shape[1], 1)
    return auto_threshold(third_quartile(scores[:, left] - scores[:, right]).value)


def find_cell_conflicts(
    cell: Cell, names: Sequence[str], scores: NDArray[np.float64], threshold: float
) -> list[Conflict]:
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


def find_method_conflicts(scores: Iterable[CellScore], threshold: float) -> list[Conflict]:
    """The cells on which two methods of one model differ by at least the threshold, in order."""
    found: dict[tuple[Cell, str], dict[str, float]] = defaultdict(dict)
    for s in scores:
        if s.score is not None:
            found[s.cell, s.model][s.method] = s.score
    return [
        Conflict(
            cell=cell,
            left=method_side_name(model, first),
            right=method_side_name(model, second),
            score_left=by[first],
            score_right=by[second],
            kind=ConflictKind.METHODS,
        )
        for (cell, model), by in sorted(found.items())
        for first, second in combinations([m.value for m in Method if m.value in by], 2)
        if find_conflicts([by[first], by[second]], threshold)
    ]


def mark_within_noise(conflicts: Iterable[Conflict], scores: Iterable[CellScore]) -> list[Conflict]:
    """The conflicts with a mark on those whose difference is within the noise of the samples behind both scores."""
    of = {(s.model, s.cell): s for s in scores}
    return [
        replace(
            c,
            within_noise=is_within_noise(c.difference or 0.0, (left.variance, right.variance), (left.n_ok, right.n_ok)),
        )
        for c in conflicts
        for left, right in [(of[c.left, c.cell], of[c.right, c.cell])]
    ]


AssignedJudges = Mapping[tuple[str, Cell], Collection[str]]
"""By model and cell, the judges that were given at least one of its traces."""


def resolve_conflicts(
    config: AuditConfig,
    conflicts: Iterable[Conflict],
    verdicts: Iterable[Verdict],
    assigned_judges: AssignedJudges | None = None,
) -> list[Conflict]:
    """The conflicts with their votes counted.

    Every judge that may judge both sides, and was given traces of both, has one seat, and votes for the side of whose
    traces it found the larger share VALID. A strict majority of the seats settles, or, where the config asks for it,
    more than half of their weight; what fails or abstains stays in the denominator. By Dawid and Skene's model, the
    side is upheld whose traces are more likely VALID than not where the other's are less, by what the seats say.

    Args:
        seated: None where every judge was given every trace.
    """
    said = list(verdicts)
    sound = TraceValidity(said) if config.panel.vote == "dawid_skene" else None
    return [
        _resolve_conflict(config, conflict, votes, sound)
        for conflict, votes in collect_votes(config, conflicts, said, assigned_judges)
    ]


class TraceValidity:
    """How likely traces are VALID by Dawid and Skene.

    How far each judge can be trusted is estimated from all verdicts. What a model's traces are is then asked of a
    conflict's own seats only: else each of two rivals would be a judge in its own case, through what it says of the
    other.
    """

    def __init__(self, verdicts: Iterable[Verdict]) -> None:
        given = [v for v in verdicts if v.outcome is Outcome.OK and v.ruling is not None]
        self._judges = sorted({v.judge for v in given})
        traces = {key: i for i, key in enumerate(sorted({(v.model, v.cell, v.sample) for v in given}))}
        rows = {name: i for i, name in enumerate(self._judges)}
        self._rulings = np.full((len(rows), len(traces)), np.nan)
        for v in given:
            self._rulings[rows[v.judge], traces[v.model, v.cell, v.sample]] = v.ruling is Ruling.VALID
        self._fit = dawid_skene(self._rulings)
        self._trace_columns: dict[tuple[str, Cell], list[int]] = defaultdict(list)
        for (model, cell, _), i in traces.items():
            self._trace_columns[model, cell].append(i)

    def mean_validity(self, model: str, cell: Cell, voters: Collection[str]) -> float | None:
        """How likely a model's traces on a cell are VALID, on average; None where its judges say nothing, or no fit."""
        there = self._trace_columns.get((model, cell))
        if there is None or self._fit.reason is not None:
            return None
        seated = [name in voters for name in self._judges]
        found = posterior_of_seats(self._fit, self._rulings[:, there], seated)[:, -1]  # VALID is the larger category
        return None if np.isnan(found).all() else float(np.nanmean(found))


def collect_votes(
    config: AuditConfig,
    conflicts: Iterable[Conflict],
    verdicts: Iterable[Verdict],
    assigned_judges: AssignedJudges | None = None,
) -> Iterator[tuple[Conflict, dict[str, VoteSide | None]]]:
    """Each conflict with the vote of every seat; None where a judge abstains, failed or was not asked."""
    given: dict[tuple[str, str, Cell], list[int]] = defaultdict(lambda: [0, 0])
    for verdict in verdicts:
        if verdict.outcome is Outcome.OK:
            tally = given[verdict.judge, verdict.model, verdict.cell]
            tally[0] += verdict.ruling is Ruling.VALID
            tally[1] += 1
    panels: dict[tuple[str, str], list[str]] = {}
    for conflict in conflicts:
        sides = (conflict.left, conflict.right)
        if sides not in panels:
            panels[sides] = [j.name for j in config.shared_judges(*sides)]
        yield (
            conflict,
            {
                judge: judge_vote(
                    *given.get((judge, conflict.left, conflict.cell), (0, 0)),
                    *given.get((judge, conflict.right, conflict.cell), (0, 0)),
                )
                for judge in panels[sides]
                if assigned_judges is None
                or all(judge in assigned_judges.get((side, conflict.cell), ()) for side in sides)
            },
        )


def _resolve_conflict(
    config: AuditConfig,
    conflict: Conflict,
    votes: Mapping[str, VoteSide | None],
    validity: TraceValidity | None,
) -> Conflict:
    said = list(votes.values())
    side = _winning_side(config, list(votes), said) if validity is None else _more_valid_side(conflict, validity, votes)
    winner = {"left": conflict.left, "right": conflict.right, None: None}[side]
    return replace(
        conflict,
        seats=len(votes),
        votes_left=said.count("left"),
        votes_right=said.count("right"),
        winner=winner,
        state=ConflictState.MAJORITY if winner else ConflictState.OPEN,
    )


def outcome_can_change(config: AuditConfig, judges: Sequence[str], votes: Mapping[str, VoteSide | None]) -> bool:
    """Whether the judges that have not had their turn could change what the panel says by its rule.

    Args:
        judges: all seats.
        cast: of those that have had their turn, their vote; None is an abstention or a failure.
    """
    weights = config.panel.weights if config.panel.vote == "weighted" else dict.fromkeys(judges, 1.0)
    left, right = (sum(weights[j] for j, vote in votes.items() if vote == side) for side in ("left", "right"))
    return can_still_change(left, right, sum(weights[j] for j in votes), sum(weights[j] for j in judges))


def _more_valid_side(conflict: Conflict, validity: TraceValidity, voters: Collection[str]) -> VoteSide | None:
    left, right = (validity.mean_validity(name, conflict.cell, voters) for name in (conflict.left, conflict.right))
    if (
        left is None
        or right is None
        or (left > EVEN_PROBABILITY) == (right > EVEN_PROBABILITY)
        or EVEN_PROBABILITY in (left, right)
    ):
        return None
    return "left" if left > EVEN_PROBABILITY else "right"


def _winning_side(config: AuditConfig, judges: Sequence[str], votes: Sequence[VoteSide | None]) -> VoteSide | None:
    """The side that the panel upholds by its rule; None leaves the conflict to a person."""
    if config.panel.vote == "majority":
        return settle(votes.count("left"), votes.count("right"), len(judges))
    weights = [config.panel.weights[judge] for judge in judges]
    if not any(weights):  # nobody who may judge this pair counts
        return None
    sides: tuple[VoteSide, VoteSide] = ("left", "right")
    [won] = weighted_majority([[np.nan if vote is None else sides.index(vote)] for vote in votes], weights)
    return None if np.isnan(won) else sides[int(won)]
