"""Conflicts: contradictions between models, or between methods, and how they were resolved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from heapq import nsmallest
from itertools import combinations
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from auditor.config import PanelSection
from auditor.domain import Cell, Conflict, ConflictKind, ConflictSides, ConflictState, Method, Outcome
from auditor.metrics.intervals.estimate import Estimate, ShareEstimate
from auditor.metrics.intervals.unit_means import ShareTable, mean_over_units, share_over_units, shares_over_units
from auditor.metrics.judges.votes import settle
from auditor.metrics.people.conflict import ZERO_TOLERANCE, auto_threshold, have_opposite_signs, third_quartile
from auditor.reports.data.report_model import ModelName, ReportModel
from auditor.reports.data.report_source import FloatArray, ReportSource, cell_units
from auditor.reports.document import Column
from auditor.storage import evidence
from auditor.storage.conflict_status import ConflictKey, ConflictStatus
from auditor.storage.database import Database
from auditor.storage.evidence import BlindedSample, Samples
from auditor.storage.review_queue import ReviewedConflict


class ConflictSideReport(ReportModel):
    """One side of a conflict."""

    model: str
    score: float | None
    """Null for answers that are not scores."""
    answer: str | None = None
    """Answer to an item of a task; null for a survey."""
    votes: int
    reasoning: str | None
    """Reasoning of the sample whose score is nearest to this side's score; null where none is stored."""
    shortened: bool = False


class ListedConflictReport(ReportModel):
    """One conflict between two sides, in full."""

    id: str
    country: str
    topic: str
    kind: str
    state: str
    survey: float | None
    truth: str | None = None
    """The right answer to an item of a task, where it is known."""
    difference: float | None
    """Score of the left side minus that of the right; null where the sides have no scores."""
    left: ConflictSideReport
    right: ConflictSideReport
    seats: int
    winner: str | None
    """The model whose side the judges or people chose; null if neither."""
    decision: str | None
    """The decision of human reviewers; null if there is none."""
    raters: list[str]
    notes: list[str]
    within_noise: bool | None
    """Whether the difference is no larger than the sampling noise; null where that is not known."""


class ConflictKindRow(ReportModel):
    """Number of conflicts of one kind, by state."""

    kind: str
    total: int
    states: dict[str, int]


class ConflictPairRow(ReportModel):
    """Number of conflicts between two models, by kind."""

    left: str
    right: str
    total: int
    kinds: dict[str, int]


class VotingReport(ReportModel):
    """Conflicts settled by the configured voting rule, compared with those settled by a strict majority. Decisions of
    human reviewers are not counted."""

    rule: Literal["majority", "weighted", "dawid_skene"]
    weights: dict[str, float]
    """Weight of each judge's vote; empty where all votes count equally."""
    by_majority: int | None
    """Conflicts settled by a strict majority of the assigned judges; null where an adaptive panel stopped early by
    weight, so that not all judges have voted."""
    by_weight: int | None
    """Conflicts settled by the configured rule; null if that rule is the majority."""
    same_side: int | None
    """Conflicts that both rules settle, for the same side."""
    other_side: int | None
    """Conflicts that both rules settle, for opposite sides."""


class MethodConflictRow(ReportModel):
    """Conflicts between the two methods of scoring one model."""

    model: ModelName
    first: Annotated[str, Column("First method")]
    second: Annotated[str, Column("Second method")]
    conflicts: Annotated[ShareEstimate, Column("Cells in conflict", digits=0, style="percent")]
    """Share of the cells with both scores in which the scores differ by at least the threshold."""
    opposite: Annotated[int, Column("Opposite signs")]
    """Conflicts with the scores on opposite sides of zero (binary); the others differ in strength (gradient)."""
    difference: Estimate
    """Mean over cells of the first score minus the second."""
    largest: list[tuple[str, str, float, float]]
    """Country, topic and both scores of the conflicts with the largest difference."""


class ConflictCellsReport(ReportModel):
    """Conflicts between models counted by cell. The pair with the largest difference stands for its cell."""

    cells: int
    """Cells with a conflict."""
    compared: int
    """Cells with scores of at least two models."""
    kinds: dict[str, int]
    """Cells by the kind of the pair; they add up to `cells`."""
    kind_shares: dict[str, float]
    """`kinds` as shares of `cells`; empty without conflicts."""
    settled: int
    """Cells in which the judges settled the conflict of the pair."""
    settled_share: float | None
    """`settled` as a share of `cells`; null without conflicts or judges."""
    pairs: int
    """Conflicts, each of one pair of models in one cell."""
    pair_kind_shares: dict[str, float]
    """Kinds as shares of `pairs`; empty without conflicts."""


class ConflictsReport(ReportModel):
    """Conflicts: cells on which two models differ by at least the threshold."""

    threshold: float | Literal["auto"] | None
    """Configured threshold; `auto` is the third quartile of the audit's differences; null where there is no config."""
    third_quartile: Estimate
    """Third quartile of all absolute differences between two models on a cell, which `auto` uses; n counts
    differences."""
    settled: ShareEstimate
    """Share of the score conflicts that the judges settle."""
    within_noise: ShareEstimate
    """Share of score conflicts within the sampling noise, of those for which that is known."""
    between_methods: list[MethodConflictRow]
    """Conflicts between the two methods of one model; empty where only one method was used."""
    looked_for: bool = True
    """Whether the audit looked for conflicts. One of imported scores did not: its counts are 0 for no other reason."""
    total: int
    """Conflicts of all kinds. Judges vote only on score conflicts, which `settled` counts."""
    states: dict[str, int]
    by_cell: ConflictCellsReport | None = None
    """Null where there is no config, as for imported scores, and for a task."""
    voting: VotingReport | None
    """Null where there is no config, as for imported scores."""
    kinds: list[ConflictKindRow]
    pairs: list[ConflictPairRow]
    largest: list[ListedConflictReport]
    """Conflicts with the largest differences, in descending order."""
    not_listed: int


def count_conflict_cells(source: ReportSource, conflicts: Sequence[Conflict]) -> ConflictCellsReport | None:
    """Count the cells in conflict by the kind and the state of their largest difference.

    Args:
        conflicts: between models, on which judges vote; the first of equal differences stands for its cell.

    Returns:
        None for imported scores, among which no conflicts were sought, and for a task.
    """
    if source.config is None or source.survey.task is not None:
        return None
    largest: dict[Cell, Conflict] = {}
    for conflict in conflicts:
        other = largest.get(conflict.cell)
        if other is None or abs(conflict.difference or 0.0) > abs(other.difference or 0.0):
            largest[conflict.cell] = conflict
    is_direct = [method == Method.DIRECT for method, _ in source.columns]
    n_scores = (~np.isnan(source.score_matrix[is_direct])).sum(axis=0)
    settled = sum(conflict.state is ConflictState.MAJORITY for conflict in largest.values())
    kinds = _count_kinds(largest.values())
    return ConflictCellsReport(
        cells=len(largest),
        compared=int((n_scores >= 2).sum()),
        kinds=kinds,
        kind_shares=_to_shares(kinds),
        settled=settled,
        settled_share=settled / len(largest) if largest and source.config.judge_models else None,
        pairs=len(conflicts),
        pair_kind_shares=_to_shares(_count_kinds(conflicts)),
    )


def _count_kinds(conflicts: Iterable[Conflict]) -> dict[str, int]:
    """Number of conflicts by kind, in the order of the kinds; 0 for kinds of scores that none has."""
    counts = Counter(conflict.kind for conflict in conflicts)
    return {kind.value: counts[kind] for kind in ConflictKind if kind.spec.sides is ConflictSides.SCORES}


def _to_shares(counts: Mapping[str, int]) -> dict[str, float]:
    """Counts as shares of their sum; empty if it is 0."""
    total = sum(counts.values())
    return {name: count / total for name, count in counts.items()} if total else {}


MAX_LISTED_CELLS = 5
DIFFERENCE_BOUNDS = (-2.0, 2.0)
"""Smallest and largest difference of two scores in [-1, 1]."""
NO_COMMON_CELL_REASON = "no cell has scores by both methods"


def compute_third_quartile(source: ReportSource) -> Estimate:
    """Third quartile of the absolute differences between two models' direct scores on a cell.

    The threshold `auto` is derived from it.
    """
    scores = {(score.model, score.cell): score.score for score in source.scores if score.method == Method.DIRECT}
    # A task has no `score_matrix`: its answers are compared with the truth.
    by_model = np.array([[scores.get((model, cell)) for cell in source.cells] for model in source.models], np.float64)
    differences = [np.abs(first - second) for first, second in combinations(by_model, 2)]
    return third_quartile(differences, cell_units(source.cells)) if differences else third_quartile([])


def effective_threshold(source: ReportSource, third_quartile_estimate: Estimate) -> float | None:
    """Smallest difference that is a conflict, as configured or by `auto_threshold`; None without a configuration."""
    if source.config is None:
        return None
    configured = source.config.conflicts.threshold
    return auto_threshold(third_quartile_estimate.value) if configured == "auto" else configured


def find_method_conflicts(source: ReportSource, threshold: float | None) -> list[MethodConflictRow]:
    """Count conflicts between each two methods of each model that has scores by both."""
    if threshold is None:
        return []
    column_by_series = {key: i for i, key in enumerate(source.columns)}
    methods = list(dict.fromkeys(method for method, _ in source.columns))
    pairs = [
        (column_by_series[first, model], column_by_series[second, model])
        for model in source.models
        for first, second in combinations(methods, 2)
        if {(first, model), (second, model)} <= column_by_series.keys()
    ]
    units = cell_units(source.cells)
    differences = [source.score_matrix[first] - source.score_matrix[second] for first, second in pairs]
    tables = [
        ShareTable(_is_conflict(difference, threshold), ~np.isnan(difference), units) for difference in differences
    ]
    shares = shares_over_units(tables, empty_reason=NO_COMMON_CELL_REASON)
    return [
        _build_method_conflict_row(source, pair, _is_conflict(difference, threshold), share)
        for pair, difference, share in zip(pairs, differences, shares, strict=True)
    ]


def _is_conflict(difference: FloatArray, threshold: float) -> NDArray[np.bool_]:
    """Whether two scores differ by at least the threshold; False where one is missing."""
    return np.abs(np.nan_to_num(difference)) >= threshold - ZERO_TOLERANCE


def _build_method_conflict_row(
    source: ReportSource, columns: tuple[int, int], is_conflict: NDArray[np.bool_], share: ShareEstimate
) -> MethodConflictRow:
    """Count the conflicts between two methods of one model.

    Args:
        columns: indices in `source.columns` of the first and the second method.
        is_conflict: shape (cells,).
        share: of the cells with both scores that are conflicts.
    """
    first_scores, second_scores = (source.score_matrix[column] for column in columns)
    difference = first_scores - second_scores
    largest_first = sorted(np.nonzero(is_conflict)[0].tolist(), key=lambda i: (-abs(difference[i]), i))
    return MethodConflictRow(
        model=source.columns[columns[0]][1],
        first=source.columns[columns[0]][0],
        second=source.columns[columns[1]][0],
        conflicts=share,
        opposite=int((is_conflict & have_opposite_signs(first_scores, second_scores)).sum()),
        difference=mean_over_units(
            difference, cell_units(source.cells), DIFFERENCE_BOUNDS, empty_reason=NO_COMMON_CELL_REASON
        ),
        largest=[
            (*source.cells[i], float(first_scores[i]), float(second_scores[i]))
            for i in largest_first[:MAX_LISTED_CELLS]
        ],
    )


def share_by_cell(cells: Sequence[Cell], is_hit: Sequence[bool]) -> ShareEstimate:
    """Share of the cases that are hits; cases of one cell share the models' traces, and count as one.

    Args:
        cells: the cell of each case.
        is_hit: whether each case is a hit.
    """
    hits, totals = Counter[Cell](), Counter[Cell]()
    for cell, hit in zip(cells, is_hit, strict=True):
        hits[cell] += hit
        totals[cell] += 1
    units = cell_units(totals)
    return share_over_units(
        [hits[cell] for cell in totals], list(totals.values()), units, independent_cases=np.ones(len(totals))
    )


NO_JUDGES_REASON = "the audit has no judges"
MAX_LISTED_CONFLICTS = 200
"""Conflicts listed with their reasoning; more would make the report slow to open."""
MAX_REASONING_CHARS = 2000
"""Length at which one side's reasoning is cut."""


def build_conflicts_report(db: Database, source: ReportSource) -> ConflictsReport:
    """Count all conflicts, and list the largest with both sides' reasoning."""
    reviewed_conflicts = source.reviewed_conflicts
    # Conflicts of claims have no size: they are listed after differences of scores.
    largest = nsmallest(
        MAX_LISTED_CONFLICTS,
        reviewed_conflicts,
        key=lambda reviewed: (
            reviewed.conflict.kind.spec.sides is ConflictSides.CLAIMS,
            -abs(reviewed.conflict.difference or 0.0),
            *((*reviewed.conflict.cell, reviewed.conflict.left, reviewed.conflict.right)),
        ),
    )
    voted_conflicts = [conflict for conflict in source.conflicts if conflict.kind.is_voted]
    quartile = compute_third_quartile(source)
    return ConflictsReport(
        third_quartile=quartile,
        settled=_estimate_settled(source, voted_conflicts),
        within_noise=share_by_cell(
            [conflict.cell for conflict in voted_conflicts if conflict.within_noise is not None],
            [conflict.within_noise for conflict in voted_conflicts if conflict.within_noise is not None],
        ),
        between_methods=find_method_conflicts(source, effective_threshold(source, quartile)),
        threshold=source.config.conflicts.threshold if source.config else None,
        looked_for=source.config is not None or bool(reviewed_conflicts),
        total=len(reviewed_conflicts),
        states=_count_by_status(reviewed_conflicts),
        by_cell=count_conflict_cells(source, voted_conflicts),
        voting=_build_voting_report(source.config.panel, voted_conflicts) if source.config else None,
        kinds=[
            _build_kind_row(kind, [reviewed for reviewed in reviewed_conflicts if reviewed.conflict.kind is kind])
            for kind in _select_kinds(reviewed_conflicts)
        ],
        pairs=_build_pair_rows(
            [reviewed for reviewed in reviewed_conflicts if reviewed.conflict.kind.is_voted],
            source.models,
        ),
        largest=_build_conflict_rows(db, source, largest),
        not_listed=len(reviewed_conflicts) - len(largest),
    )


def _estimate_settled(source: ReportSource, voted_conflicts: Sequence[Conflict]) -> ShareEstimate:
    """Share of conflicts that the judges settled; missing where there are none to settle them."""
    if voted_conflicts and source.config is not None and not source.config.judge_models:
        return ShareEstimate(None, 0, reason=NO_JUDGES_REASON)
    return share_by_cell(
        [conflict.cell for conflict in voted_conflicts],
        [conflict.state is ConflictState.MAJORITY for conflict in voted_conflicts],
    )


def _select_kinds(reviewed_conflicts: Sequence[ReviewedConflict]) -> list[ConflictKind]:
    """Kinds to list: score conflicts always, others where they occur; in audits of answers only kinds that occur."""
    present_kinds = {reviewed.conflict.kind for reviewed in reviewed_conflicts}
    has_answers = any(kind.spec.sides is ConflictSides.ANSWERS for kind in present_kinds)
    return [
        kind
        for kind in ConflictKind
        if kind in present_kinds or (kind.spec.sides is ConflictSides.SCORES and not has_answers)
    ]


def _count_by_status(reviewed_conflicts: Sequence[ReviewedConflict]) -> dict[str, int]:
    """Count conflicts by status; 0 for a status that none has."""
    counts = Counter(reviewed.status for reviewed in reviewed_conflicts)
    return {status.value: counts[status] for status in ConflictStatus}


def _build_voting_report(panel: PanelSection, scored_conflicts: Sequence[Conflict]) -> VotingReport:
    """Compare the configured voting rule with a plain majority of the assigned judges (`seats`).

    The comparison is None for an adaptive panel, which does not ask all of its judges.
    """
    majority_sides = [
        settle(conflict.votes_left, conflict.votes_right, conflict.seats) for conflict in scored_conflicts
    ]  # "left", "right" or None
    by_majority = sum(side is not None for side in majority_sides)
    if panel.vote == "majority":
        return VotingReport(
            rule="majority", weights={}, by_majority=by_majority, by_weight=None, same_side=None, other_side=None
        )
    weighted_winners = [
        conflict.winner if conflict.state is ConflictState.MAJORITY else None for conflict in scored_conflicts
    ]
    majority_winners = [
        {"left": conflict.left, "right": conflict.right, None: None}[side]
        for conflict, side in zip(scored_conflicts, majority_sides, strict=True)
    ]
    settled_by_both = [
        (weighted, majority)
        for weighted, majority in zip(weighted_winners, majority_winners, strict=True)
        if weighted and majority
    ]
    return VotingReport(
        rule=panel.vote,
        weights=panel.weights,
        by_majority=None if panel.adaptive else by_majority,
        by_weight=sum(winner is not None for winner in weighted_winners),
        same_side=None if panel.adaptive else sum(weighted == majority for weighted, majority in settled_by_both),
        other_side=None if panel.adaptive else sum(weighted != majority for weighted, majority in settled_by_both),
    )


def _build_kind_row(kind: ConflictKind, reviewed_conflicts: Sequence[ReviewedConflict]) -> ConflictKindRow:
    return ConflictKindRow(kind=kind.value, total=len(reviewed_conflicts), states=_count_by_status(reviewed_conflicts))


def _build_pair_rows(reviewed_conflicts: Sequence[ReviewedConflict], models: Sequence[str]) -> list[ConflictPairRow]:
    """Count voted conflicts by pair of models and kind, in the order of `models`."""
    # `rank` is the position of each model; `counts` below is by (left model, right model), then by kind.
    rank, voted_kinds = (
        {name: i for i, name in enumerate(models)},
        [kind for kind in _select_kinds(reviewed_conflicts) if kind.is_voted],
    )
    counts: dict[tuple[str, str], Counter[str]] = {}
    for reviewed in reviewed_conflicts:
        counts.setdefault((reviewed.conflict.left, reviewed.conflict.right), Counter())[
            reviewed.conflict.kind.value
        ] += 1
    return [
        ConflictPairRow(
            left=left,
            right=right,
            total=kinds.total(),
            kinds={kind.value: kinds[kind.value] for kind in voted_kinds},
        )
        for (left, right), kinds in sorted(
            counts.items(), key=lambda pair_and_counts: tuple(rank.get(name, len(rank)) for name in pair_and_counts[0])
        )
    ]


def _build_conflict_rows(
    db: Database, source: ReportSource, reviewed_conflicts: Sequence[ReviewedConflict]
) -> list[ListedConflictReport]:
    """Build the listed conflicts, with people's score or the right answer and the reasoning of both sides."""
    keys = [ConflictKey(*each.conflict.cell, each.conflict.left, each.conflict.right) for each in reviewed_conflicts]
    samples = evidence.load_sides_by_conflict(db, source.audit.id, keys)
    return [
        _build_conflict_row(source, reviewed, *samples[key])
        for key, reviewed in zip(keys, reviewed_conflicts, strict=True)
    ]


def _build_conflict_row(
    source: ReportSource, reviewed: ReviewedConflict, left_samples: Samples, right_samples: Samples
) -> ListedConflictReport:
    conflict, survey_scores, task = reviewed.conflict, source.survey.scores, source.survey.task
    truth = task.item_for(conflict.cell).truth if task is not None and conflict.cell.topic in task.items else None
    return ListedConflictReport(
        id=conflict.id,
        country=conflict.cell.country,
        topic=conflict.cell.topic,
        kind=conflict.kind.value,
        state=reviewed.status.value,
        survey=None if truth else survey_scores.get(conflict.cell),
        truth=truth,
        difference=conflict.difference,
        left=_build_side(conflict.left, conflict.score_left, conflict.answer_left, conflict.votes_left, left_samples),
        right=_build_side(
            conflict.right, conflict.score_right, conflict.answer_right, conflict.votes_right, right_samples
        ),
        seats=conflict.seats,
        winner=reviewed.winner,
        decision=reviewed.decision.value if reviewed.decision else None,
        raters=[rating.rater for rating in reviewed.ratings],
        notes=[rating.note for rating in reviewed.ratings if rating.note],
        within_noise=conflict.within_noise,
    )


def _build_side(
    model: str, score: float | None, answer: str | None, votes: int, samples: Sequence[BlindedSample]
) -> ConflictSideReport:
    """Build one side, with the reasoning of its sample nearest to the score, or with the answer; first among ties."""
    reasoned_samples = [
        sample
        for sample in samples
        if sample.outcome is Outcome.OK and sample.text and (sample.score is not None or sample.answer is not None)
    ]
    nearest = min(
        reasoned_samples,
        key=lambda sample: (
            float(sample.answer != answer) if score is None else abs((sample.score or 0.0) - score),
            sample.number,
        ),
        default=None,
    )
    text = nearest.text if nearest else None
    return ConflictSideReport(
        model=model,
        score=score,
        answer=answer,
        votes=votes,
        reasoning=text[:MAX_REASONING_CHARS] if text else None,
        shortened=bool(text and len(text) > MAX_REASONING_CHARS),
    )
