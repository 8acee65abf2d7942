"""The conflicts: how many of each kind, how they stand, and the largest in full."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from heapq import nsmallest

from auditor.config import PanelSection
from auditor.domain import Conflict, ConflictKind, ConflictState, Outcome
from auditor.metrics.conflict import settle
from auditor.reports.conflicts.human_ratings import Settled, settled
from auditor.reports.conflicts.method_conflicts import between_methods, quartile, threshold_in_use
from auditor.reports.estimate_conversion import share_of
from auditor.reports.report_schema import ConflictRow, ConflictsPart, KindRow, PairRow, Side, VotingPart
from auditor.reports.report_source import Source
from auditor.storage import evidence
from auditor.storage.conflict_status import ConflictKey, Standing
from auditor.storage.database import Database
from auditor.storage.evidence import Sample

LISTED = 200
"""Conflicts with their texts; a report must open in seconds."""
SCORED = (ConflictKind.BINARY, ConflictKind.OUTLIER, ConflictKind.GRADIENT)
VOTED = (*SCORED, ConflictKind.ANSWERS)
"""Those between models, which judges can settle."""
MAX_TEXT = 2000
"""Characters of one side's reasoning."""


def conflicts(db: Database, source: Source) -> ConflictsPart:
    """Counts of all conflicts, and the largest with both sides' reasoning."""
    found = settled(source.conflicts, source.ratings)
    # What judges say of pairs has no size: it comes after the differences of scores.
    largest = nsmallest(LISTED, found, key=lambda s: (_of_logic(s), -abs(s.conflict.difference or 0.0), *_names(s)))
    scored = [c for c in source.conflicts if c.kind in VOTED]
    known = [c.within_noise for c in scored if c.within_noise is not None]
    third = quartile(source)
    return ConflictsPart(
        third_quartile=third,
        settled=share_of(sum(c.state is ConflictState.MAJORITY for c in scored), len(scored)),
        within_noise=share_of(sum(known), len(known)),
        between_methods=between_methods(source, threshold_in_use(source, third)),
        threshold=source.config.conflicts.threshold if source.config else None,
        total=len(found),
        states=_states(found),
        voting=_voting(source.config.panel, scored) if source.config else None,
        kinds=[_kind(kind, [s for s in found if s.conflict.kind is kind]) for kind in _kinds(found)],
        pairs=_pairs([s for s in found if s.conflict.kind in VOTED], source.models),
        largest=[_row(db, source, s) for s in largest],
        not_listed=len(found) - len(largest),
    )


def _of_logic(item: Settled) -> bool:
    return item.conflict.kind is ConflictKind.LOGIC


def _kinds(found: Sequence[Settled]) -> list[ConflictKind]:
    """Kinds of conflicts of scores, and the others where there are any; of answers that are no scores, these alone."""
    there = {s.conflict.kind for s in found}
    usual = () if ConflictKind.ANSWERS in there else SCORED
    return [kind for kind in ConflictKind if kind in usual or kind in there]


def _names(item: Settled) -> tuple[str, ...]:
    return (*item.conflict.cell, item.conflict.left, item.conflict.right)


def _states(found: Sequence[Settled]) -> dict[str, int]:
    counts = Counter(s.standing for s in found)
    return {standing.value: counts[standing] for standing in Standing}


def _voting(panel: PanelSection, found: Sequence[Conflict]) -> VotingPart:
    plain = [settle(c.votes_left, c.votes_right, c.seats) for c in found]
    by_majority = sum(side is not None for side in plain)
    if panel.vote == "majority":
        return VotingPart(
            rule="majority", weights={}, by_majority=by_majority, by_weight=None, same_side=None, other_side=None
        )
    upheld = [c.winner if c.state is ConflictState.MAJORITY else None for c in found]
    names = [{"left": c.left, "right": c.right, None: None}[side] for c, side in zip(found, plain, strict=True)]
    both = [(one, other) for one, other in zip(upheld, names, strict=True) if one and other]
    return VotingPart(
        rule=panel.vote,
        weights=panel.weights,
        by_majority=None if panel.adaptive else by_majority,
        by_weight=sum(winner is not None for winner in upheld),
        same_side=None if panel.adaptive else sum(one == other for one, other in both),
        other_side=None if panel.adaptive else sum(one != other for one, other in both),
    )


def _kind(kind: ConflictKind, found: Sequence[Settled]) -> KindRow:
    return KindRow(kind=kind.value, total=len(found), states=_states(found))


def _pairs(found: Sequence[Settled], models: Sequence[str]) -> list[PairRow]:
    rank, there = {name: i for i, name in enumerate(models)}, [k for k in _kinds(found) if k in VOTED]
    counts: dict[tuple[str, str], Counter[str]] = {}
    for s in found:
        counts.setdefault((s.conflict.left, s.conflict.right), Counter())[s.conflict.kind.value] += 1
    return [
        PairRow(
            left=left,
            right=right,
            total=kinds.total(),
            kinds={k.value: kinds[k.value] for k in there},
        )
        for (left, right), kinds in sorted(
            counts.items(), key=lambda item: tuple(rank.get(name, len(rank)) for name in item[0])
        )
    ]


def _far(sample: Sample, score: float | None, answer: str | None) -> float:
    return float(sample.answer != answer) if score is None else abs((sample.score or 0.0) - score)


def _row(db: Database, source: Source, item: Settled) -> ConflictRow:
    c, people, task, audit_id = item.conflict, source.survey.scores, source.survey.task, source.audit.id
    truth = task.item_of(c.cell).truth if task is not None and c.cell.topic in task.items else None
    left, right = evidence.sides(db, audit_id, ConflictKey(*c.cell, c.left, c.right))
    return ConflictRow(
        id=c.id,
        country=c.cell.country,
        topic=c.cell.topic,
        kind=c.kind.value,
        state=item.standing.value,
        survey=None if truth else people.get(c.cell),
        truth=truth,
        difference=c.difference,
        left=_side(c.left, c.score_left, c.answer_left, c.votes_left, left),
        right=_side(c.right, c.score_right, c.answer_right, c.votes_right, right),
        seats=c.seats,
        winner=item.winner,
        decision=item.decision.value if item.decision else None,
        raters=[r.rater for r in item.ratings],
        notes=[r.note for r in item.ratings if r.note],
        within_noise=c.within_noise,
    )


def _side(model: str, score: float | None, answer: str | None, votes: int, samples: Sequence[Sample]) -> Side:
    """The reasoning shown is the sample's nearest to the score, or one with the answer; the first of equals."""
    told = [s for s in samples if s.outcome is Outcome.OK and s.text and (s.score is not None or s.answer is not None)]
    nearest = min(told, key=lambda s: (_far(s, score, answer), s.number), default=None)
    text = nearest.text if nearest else None
    return Side(
        model=model,
        score=score,
        answer=answer,
        votes=votes,
        reasoning=text[:MAX_TEXT] if text else None,
        shortened=bool(text and len(text) > MAX_TEXT),
    )
