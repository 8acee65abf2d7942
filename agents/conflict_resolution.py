"""Finding the conflicts of an audit, and settling them by the judges' verdicts."""

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
from auditor.metrics.judges.votes import (
    can_still_change,
    dawid_skene,
    judge_vote,
    posterior_of_seats,
    settle,
    weighted_majority,
)
from auditor.metrics.people.conflict import auto_threshold, find_conflicts, is_within_noise, third_quartile
from auditor.storage.results import JudgeRuling


def find_answer_conflicts(scores: Iterable[CellScore], models: Sequence[str], cells: Sequence[Cell]) -> list[Conflict]:
    """Find the pairs of models whose most common answers to an item differ: one open conflict per item and pair.

    A model without a most common answer is in no conflict.

    Args:
        scores: of all models on all items.
        models, cells: in the order of the audit.
    """
    commonest_answers = {(score.cell, score.model): score.answer for score in scores}
    return [
        Conflict(
            cell, left, right, None, None, ConflictKind.ANSWERS, answer_left=left_answer, answer_right=right_answer
        )
        for cell in cells
        for left, right in combinations(models, 2)
        for left_answer, right_answer in [(commonest_answers.get((cell, left)), commonest_answers.get((cell, right)))]
        if left_answer is not None and right_answer is not None and left_answer != right_answer
    ]


def add_answers(conflicts: Iterable[Conflict], scores: Iterable[CellScore]) -> list[Conflict]:
    """Return the conflicts with both models' answers to the item, in the units of the task; None if there is none."""
    commonest_answers = {(score.cell, score.model): score.answer for score in scores}
    return [
        replace(
            conflict,
            answer_left=commonest_answers.get((conflict.cell, conflict.left)),
            answer_right=commonest_answers.get((conflict.cell, conflict.right)),
        )
        for conflict in conflicts
    ]


EVEN_PROBABILITY = 0.5
VoteSide = Literal["left", "right"]


def effective_threshold(configured: float | Literal["auto"], scores: NDArray[np.float64]) -> float:
    """The conflict threshold: as configured, or the third quartile of the differences between all pairs of models.

    Args:
        configured: a threshold, or `auto`.
        scores: shape (cells, models), nan for a missing score.

    Returns:
        In (0, 2]; see `auto_threshold`.
    """
    if configured != "auto":
        return configured
    left_columns, right_columns = np.triu_indices(scores.shape[1], 1)
    return auto_threshold(third_quartile(scores[:, left_columns] - scores[:, right_columns]).value)


def find_cell_conflicts(
    cell: Cell, names: Sequence[str], scores: NDArray[np.float64], threshold: float
) -> list[Conflict]:
    """Find the conflicts on one cell; all are open.

    Args:
        names: names of the models.
        scores: their scores, in the same order; nan for a missing score.
        threshold: smallest difference that is a conflict.
    """
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
    """Find the cells on which the scores of one model by two methods differ by at least the threshold, sorted by cell.

    The sides of such a conflict are named by model and method, as in `gpt (direct)`.
    """
    scores_by_model: dict[tuple[Cell, str], dict[str, float]] = defaultdict(dict)
    for score in scores:
        if score.score is not None:
            scores_by_model[score.cell, score.model][score.method] = score.score
    return [
        Conflict(
            cell=cell,
            left=method_side_name(model, first_method),
            right=method_side_name(model, second_method),
            score_left=scores_by_method[first_method],
            score_right=scores_by_method[second_method],
            kind=ConflictKind.METHODS,
        )
        for (cell, model), scores_by_method in sorted(scores_by_model.items())
        for first_method, second_method in combinations(
            [method.value for method in Method if method.value in scores_by_method], 2
        )
        if find_conflicts([scores_by_method[first_method], scores_by_method[second_method]], threshold)
    ]


def mark_within_noise(conflicts: Iterable[Conflict], scores: Iterable[CellScore]) -> list[Conflict]:
    """Return the conflicts with `within_noise` set: whether the difference is within the sampling noise of both scores.

    Args:
        scores: the scores in conflict, at least one per side and cell.
    """
    score_by_side = {(score.model, score.cell): score for score in scores}
    return [
        replace(
            conflict,
            within_noise=is_within_noise(
                conflict.difference or 0.0,
                (left_score.variance, right_score.variance),
                (left_score.n_ok, right_score.n_ok),
            ),
        )
        for conflict in conflicts
        for left_score, right_score in [
            (score_by_side[conflict.left, conflict.cell], score_by_side[conflict.right, conflict.cell])
        ]
    ]


AssignedJudges = Mapping[tuple[str, Cell], Collection[str]]
"""By model and cell, the names of the judges assigned to at least one of its traces."""


def resolve_conflicts(
    config: AuditConfig,
    conflicts: Iterable[Conflict],
    verdicts: Iterable[Verdict | JudgeRuling],
    assigned_judges: AssignedJudges | None = None,
) -> list[Conflict]:
    """Count the votes on conflicts, and settle those with a winner.

    Each judge that is eligible for both sides and was assigned traces of both has one vote: for the side with the
    larger share of VALID traces. A strict majority of these judges settles, or, if configured, more than half of their
    total weight; failures and abstentions stay in the denominator. With `panel.vote = dawid_skene`, a side is upheld if
    its traces are more likely VALID than not and the other side's are not, given the rulings of these judges.

    Args:
        assigned_judges: None if every judge was assigned every trace.
    """
    verdict_list = list(verdicts)
    validity = TraceValidity(verdict_list) if config.panel.vote == "dawid_skene" else None
    return [
        _resolve_conflict(config, conflict, votes, validity)
        for conflict, votes in collect_votes(config, conflicts, verdict_list, assigned_judges)
    ]


class TraceValidity:
    """Posterior probability that traces are VALID under the Dawid-Skene model.

    The judges' error rates are estimated from all verdicts. The posterior of a trace then uses only the rulings of the
    judges eligible for the conflict. Otherwise each of the two models would judge its own case, through its verdicts on
    the other.
    """

    def __init__(self, verdicts: Iterable[Verdict | JudgeRuling]) -> None:
        """Estimate the judges' error rates from all verdicts of an audit; those without a ruling are ignored."""
        usable_verdicts = [
            verdict for verdict in verdicts if verdict.outcome is Outcome.OK and verdict.ruling is not None
        ]
        self._judges = sorted({verdict.judge for verdict in usable_verdicts})
        trace_columns = {
            key: index
            for index, key in enumerate(
                sorted({(verdict.model, verdict.cell, verdict.sample) for verdict in usable_verdicts})
            )
        }
        judge_rows = {name: index for index, name in enumerate(self._judges)}
        self._rulings = np.full((len(judge_rows), len(trace_columns)), np.nan)
        for verdict in usable_verdicts:
            self._rulings[judge_rows[verdict.judge], trace_columns[verdict.model, verdict.cell, verdict.sample]] = (
                verdict.ruling is Ruling.VALID
            )
        # `_rulings` has one row per judge and one column per trace: 1 is VALID, 0 INVALID, nan no ruling.
        self._fit = dawid_skene(self._rulings)
        self._trace_columns: dict[tuple[str, Cell], list[int]] = defaultdict(list)
        for (model, cell, _), index in trace_columns.items():
            self._trace_columns[model, cell].append(index)

    def mean_validity(self, model: str, cell: Cell, voters: Collection[str]) -> float | None:
        """Mean probability in [0, 1] that a model's traces on a cell are VALID, given the rulings of some judges.

        None if the model could not be fitted, or if these judges made no ruling on the traces.
        """
        columns = self._trace_columns.get((model, cell))
        if columns is None or self._fit.reason is not None:
            return None
        is_voter = [name in voters for name in self._judges]
        # VALID is the larger category, so its probability is in the last column.
        valid_probabilities = posterior_of_seats(self._fit, self._rulings[:, columns], is_voter)[:, -1]
        return None if np.isnan(valid_probabilities).all() else float(np.nanmean(valid_probabilities))


def collect_votes(
    config: AuditConfig,
    conflicts: Iterable[Conflict],
    verdicts: Iterable[Verdict | JudgeRuling],
    assigned_judges: AssignedJudges | None = None,
) -> Iterator[tuple[Conflict, dict[str, VoteSide | None]]]:
    """Yield each conflict with the vote of each eligible judge; None if it abstains, failed or was not asked.

    Args:
        assigned_judges: None if every judge was assigned every trace.
    """
    # By judge, model and cell: the number of its VALID rulings, and of all its rulings.
    ruling_counts: dict[tuple[str, str, Cell], list[int]] = defaultdict(lambda: [0, 0])
    for verdict in verdicts:
        if verdict.outcome is Outcome.OK:
            counts = ruling_counts[verdict.judge, verdict.model, verdict.cell]
            counts[0] += verdict.ruling is Ruling.VALID
            counts[1] += 1
    shared_judges: dict[tuple[str, str], list[str]] = {}
    for conflict in conflicts:
        sides = (conflict.left, conflict.right)
        if sides not in shared_judges:
            shared_judges[sides] = [shared_judge.name for shared_judge in config.shared_judges(*sides)]
        yield (
            conflict,
            {
                judge: judge_vote(
                    *ruling_counts.get((judge, conflict.left, conflict.cell), (0, 0)),
                    *ruling_counts.get((judge, conflict.right, conflict.cell), (0, 0)),
                )
                for judge in shared_judges[sides]
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
    """Return the conflict with its vote counts, winner and state.

    Args:
        votes: by eligible judge; None is an abstention or a failure.
        validity: if given, decides the winner instead of the votes.
    """
    judge_votes = list(votes.values())
    winning_side = (
        _winning_side(config, list(votes), judge_votes)
        if validity is None
        else _more_valid_side(conflict, validity, votes)
    )
    winner = {"left": conflict.left, "right": conflict.right, None: None}[winning_side]
    return replace(
        conflict,
        seats=len(votes),  # number of judges eligible to vote
        votes_left=judge_votes.count("left"),
        votes_right=judge_votes.count("right"),
        winner=winner,
        state=ConflictState.MAJORITY if winner else ConflictState.OPEN,
    )


def outcome_can_change(config: AuditConfig, judges: Sequence[str], votes: Mapping[str, VoteSide | None]) -> bool:
    """Whether the judges that have not voted yet can still change the outcome under the configured voting rule.

    Args:
        judges: all eligible judges.
        votes: votes so far, by judge; None is an abstention or a failure.
    """
    weights = config.panel.vote_weights(judges)
    left_weight, right_weight = (
        sum(weights[judge] for judge, vote in votes.items() if vote == side) for side in ("left", "right")
    )
    return can_still_change(left_weight, right_weight, sum(weights[judge] for judge in votes), sum(weights.values()))


def _more_valid_side(conflict: Conflict, validity: TraceValidity, voters: Collection[str]) -> VoteSide | None:
    """The side whose traces are more likely VALID than not while the other side's are not; None otherwise."""
    left_validity, right_validity = (
        validity.mean_validity(name, conflict.cell, voters) for name in (conflict.left, conflict.right)
    )
    if (
        left_validity is None
        or right_validity is None
        or (left_validity > EVEN_PROBABILITY) == (right_validity > EVEN_PROBABILITY)
        or EVEN_PROBABILITY in (left_validity, right_validity)
    ):
        return None
    return "left" if left_validity > EVEN_PROBABILITY else "right"


def _winning_side(config: AuditConfig, judges: Sequence[str], votes: Sequence[VoteSide | None]) -> VoteSide | None:
    """The side that wins under the configured voting rule; None leaves the conflict open.

    Args:
        judges, votes: the eligible judges, and their votes in the same order.
    """
    if config.panel.vote == "majority":
        return settle(votes.count("left"), votes.count("right"), len(judges))
    weights = list(config.panel.vote_weights(judges).values())
    if not any(weights):  # every judge eligible for this pair has weight 0
        return None
    sides: tuple[VoteSide, VoteSide] = ("left", "right")
    # One row per judge, with the index of its side; nan is an abstention.
    [winner_index] = weighted_majority([[np.nan if vote is None else sides.index(vote)] for vote in votes], weights)
    return None if np.isnan(winner_index) else sides[int(winner_index)]
