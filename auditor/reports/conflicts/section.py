"""The conflicts: how many of each kind, how they stand, and the largest in full."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from heapq import nsmallest

from auditor.config import PanelSection
from auditor.domain import Conflict, ConflictKind, ConflictState, Outcome
from auditor.metrics.conflict import settle
from auditor.reports.conflicts.human_ratings import ReviewedConflict, apply_ratings
from auditor.reports.conflicts.method_conflicts import (
    compute_third_quartile,
    effective_threshold,
    find_method_conflicts,
)
from auditor.reports.estimate_conversion import estimate_share
from auditor.reports.report_schema import (
    ConflictKindRow,
    ConflictPairRow,
    ConflictSideReport,
    ConflictsReport,
    ListedConflictReport,
    VotingReport,
)
from auditor.reports.report_source import ReportSource
from auditor.storage import evidence
from auditor.storage.conflict_status import ConflictKey, ConflictStatus
from auditor.storage.database import Database
from auditor.storage.evidence import BlindedSample

MAX_LISTED_CONFLICTS = 200
"""Conflicts with their texts; a report must open in seconds."""
SCORE_CONFLICT_KINDS = (ConflictKind.BINARY, ConflictKind.OUTLIER, ConflictKind.GRADIENT)
VOTED_CONFLICT_KINDS = (*SCORE_CONFLICT_KINDS, ConflictKind.ANSWERS)
"""Those between models, which judges can settle."""
MAX_REASONING_CHARS = 2000
"""Characters of one side's reasoning."""


def build_conflicts_report(db: Database, source: ReportSource) -> ConflictsReport:
    """Counts of all conflicts, and the largest with both sides' reasoning."""
    found = apply_ratings(source.conflicts, source.ratings)
    # What judges say of pairs has no size: it comes after the differences of scores.
    largest = nsmallest(
        MAX_LISTED_CONFLICTS,
        found,
        key=lambda s: (_is_logic_conflict(s), -abs(s.conflict.difference or 0.0), *_sort_key(s)),
    )
    scored = [c for c in source.conflicts if c.kind in VOTED_CONFLICT_KINDS]
    known = [c.within_noise for c in scored if c.within_noise is not None]
    third = compute_third_quartile(source)
    return ConflictsReport(
        third_quartile=third,
        settled=estimate_share(sum(c.state is ConflictState.MAJORITY for c in scored), len(scored)),
        within_noise=estimate_share(sum(known), len(known)),
        between_methods=find_method_conflicts(source, effective_threshold(source, third)),
        threshold=source.config.conflicts.threshold if source.config else None,
        total=len(found),
        states=_count_by_status(found),
        voting=_build_voting_report(source.config.panel, scored) if source.config else None,
        kinds=[_build_kind_row(kind, [s for s in found if s.conflict.kind is kind]) for kind in _select_kinds(found)],
        pairs=_build_pair_rows([s for s in found if s.conflict.kind in VOTED_CONFLICT_KINDS], source.models),
        largest=[_build_conflict_row(db, source, s) for s in largest],
        not_listed=len(found) - len(largest),
    )


def _is_logic_conflict(reviewed: ReviewedConflict) -> bool:
    return reviewed.conflict.kind is ConflictKind.LOGIC


def _select_kinds(reviewed_conflicts: Sequence[ReviewedConflict]) -> list[ConflictKind]:
    """Kinds of conflicts of scores, and the others where there are any; of answers that are no scores, these alone."""
    there = {s.conflict.kind for s in reviewed_conflicts}
    usual = () if ConflictKind.ANSWERS in there else SCORE_CONFLICT_KINDS
    return [kind for kind in ConflictKind if kind in usual or kind in there]


def _sort_key(reviewed: ReviewedConflict) -> tuple[str, ...]:
    return (*reviewed.conflict.cell, reviewed.conflict.left, reviewed.conflict.right)


def _count_by_status(reviewed_conflicts: Sequence[ReviewedConflict]) -> dict[str, int]:
    counts = Counter(s.status for s in reviewed_conflicts)
    return {standing.value: counts[standing] for standing in ConflictStatus}


def _build_voting_report(panel: PanelSection, scored_conflicts: Sequence[Conflict]) -> VotingReport:
    plain = [settle(c.votes_left, c.votes_right, c.seats) for c in scored_conflicts]
    by_majority = sum(side is not None for side in plain)
    if panel.vote == "majority":
        return VotingReport(
            rule="majority", weights={}, by_majority=by_majority, by_weight=None, same_side=None, other_side=None
        )
    upheld = [c.winner if c.state is ConflictState.MAJORITY else None for c in scored_conflicts]
    names = [
        {"left": c.left, "right": c.right, None: None}[side] for c, side in zip(scored_conflicts, plain, strict=True)
    ]
    both = [(one, other) for one, other in zip(upheld, names, strict=True) if one and other]
    return VotingReport(
        rule=panel.vote,
        weights=panel.weights,
        by_majority=None if panel.adaptive else by_majority,
        by_weight=sum(winner is not None for winner in upheld),
        same_side=None if panel.adaptive else sum(one == other for one, other in both),
        other_side=None if panel.adaptive else sum(one != other for one, other in both),
    )


def _build_kind_row(kind: ConflictKind, reviewed_conflicts: Sequence[ReviewedConflict]) -> ConflictKindRow:
    return ConflictKindRow(kind=kind.value, total=len(reviewed_conflicts), states=_count_by_status(reviewed_conflicts))


def _build_pair_rows(reviewed_conflicts: Sequence[ReviewedConflict], models: Sequence[str]) -> list[ConflictPairRow]:
    rank, there = (
        {name: i for i, name in enumerate(models)},
        [k for k in _select_kinds(reviewed_conflicts) if k in VOTED_CONFLICT_KINDS],
    )
    counts: dict[tuple[str, str], Counter[str]] = {}
    for s in reviewed_conflicts:
        counts.setdefault((s.conflict.left, s.conflict.right), Counter())[s.conflict.kind.value] += 1
    return [
        ConflictPairRow(
            left=left,
            right=right,
            total=kinds.total(),
            kinds={k.value: kinds[k.value] for k in there},
        )
        for (left, right), kinds in sorted(
            counts.items(), key=lambda item: tuple(rank.get(name, len(rank)) for name in item[0])
        )
    ]


def _distance_from_side(sample: BlindedSample, score: float | None, answer: str | None) -> float:
    return float(sample.answer != answer) if score is None else abs((sample.score or 0.0) - score)


def _build_conflict_row(db: Database, source: ReportSource, reviewed: ReviewedConflict) -> ListedConflictReport:
    c, people, task, audit_id = reviewed.conflict, source.survey.scores, source.survey.task, source.audit.id
    truth = task.item_for(c.cell).truth if task is not None and c.cell.topic in task.items else None
    left, right = evidence.load_sides(db, audit_id, ConflictKey(*c.cell, c.left, c.right))
    return ListedConflictReport(
        id=c.id,
        country=c.cell.country,
        topic=c.cell.topic,
        kind=c.kind.value,
        state=reviewed.status.value,
        survey=None if truth else people.get(c.cell),
        truth=truth,
        difference=c.difference,
        left=_build_side(c.left, c.score_left, c.answer_left, c.votes_left, left),
        right=_build_side(c.right, c.score_right, c.answer_right, c.votes_right, right),
        seats=c.seats,
        winner=reviewed.winner,
        decision=reviewed.decision.value if reviewed.decision else None,
        raters=[r.rater for r in reviewed.ratings],
        notes=[r.note for r in reviewed.ratings if r.note],
        within_noise=c.within_noise,
    )


def _build_side(
    model: str, score: float | None, answer: str | None, votes: int, samples: Sequence[BlindedSample]
) -> ConflictSideReport:
    """The reasoning shown is the sample's nearest to the score, or one with the answer; the first of equals."""
    told = [s for s in samples if s.outcome is Outcome.OK and s.text and (s.score is not None or s.answer is not None)]
    nearest = min(told, key=lambda s: (_distance_from_side(s, score, answer), s.number), default=None)
    text = nearest.text if nearest else None
    return ConflictSideReport(
        model=model,
        score=score,
        answer=answer,
        votes=votes,
        reasoning=text[:MAX_REASONING_CHARS] if text else None,
        shortened=bool(text and len(text) > MAX_REASONING_CHARS),
    )
