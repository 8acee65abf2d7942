"""Conflicts in a report: counts by kind and status, and the largest ones in full."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from heapq import nsmallest

from auditor.config import PanelSection
from auditor.domain import Conflict, ConflictKind, ConflictSides, ConflictState, Outcome
from auditor.metrics.votes import settle
from auditor.reports.data.conflicts.cells import count_conflict_cells
from auditor.reports.data.conflicts.method_conflicts import (
    compute_third_quartile,
    effective_threshold,
    find_method_conflicts,
)
from auditor.reports.data.conflicts.schema import (
    ConflictKindRow,
    ConflictPairRow,
    ConflictSideReport,
    ConflictsReport,
    ListedConflictReport,
    VotingReport,
)
from auditor.reports.data.conflicts.share_by_cell import share_by_cell
from auditor.reports.data.report_source import ReportSource
from auditor.storage import evidence
from auditor.storage.conflict_status import ConflictKey, ConflictStatus
from auditor.storage.database import Database
from auditor.storage.evidence import BlindedSample, Samples
from auditor.storage.reviewed_conflicts import ReviewedConflict

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
            *_sort_key(reviewed),
        ),
    )
    voted_conflicts = [conflict for conflict in source.conflicts if conflict.kind.is_voted]
    quartile = compute_third_quartile(source)
    return ConflictsReport(
        third_quartile=quartile,
        settled=share_by_cell(
            [conflict.cell for conflict in voted_conflicts],
            [conflict.state is ConflictState.MAJORITY for conflict in voted_conflicts],
        ),
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


def _select_kinds(reviewed_conflicts: Sequence[ReviewedConflict]) -> list[ConflictKind]:
    """Kinds to list: score conflicts always, others where they occur; in audits of answers only kinds that occur."""
    present_kinds = {reviewed.conflict.kind for reviewed in reviewed_conflicts}
    has_answers = any(kind.spec.sides is ConflictSides.ANSWERS for kind in present_kinds)
    return [
        kind
        for kind in ConflictKind
        if kind in present_kinds or (kind.spec.sides is ConflictSides.SCORES and not has_answers)
    ]


def _sort_key(reviewed: ReviewedConflict) -> tuple[str, ...]:
    """Cell and models of a conflict, for a fixed order among conflicts of one size."""
    return (*reviewed.conflict.cell, reviewed.conflict.left, reviewed.conflict.right)


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


def _distance_from_side(sample: BlindedSample, score: float | None, answer: str | None) -> float:
    """Distance of a sample from its side's mean score; for answers 0 if it gives the side's answer, else 1."""
    return float(sample.answer != answer) if score is None else abs((sample.score or 0.0) - score)


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
        reasoned_samples, key=lambda sample: (_distance_from_side(sample, score, answer), sample.number), default=None
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
