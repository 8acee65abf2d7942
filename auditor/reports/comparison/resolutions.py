"""Conflicts side by side: which were settled for one side in one audit and for the other in another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from auditor.reports.comparison.schema import ResolutionComparison, ResolutionFlipRow
from auditor.reports.comparison.series_pairs import ScoreSeries, SeriesPair
from auditor.reports.conflicts.human_ratings import ReviewedConflict, apply_ratings
from auditor.reports.estimate_conversion import estimate_share
from auditor.storage import results
from auditor.storage.conflict_status import ConflictStatus
from auditor.storage.database import Database

ConflictKey = tuple[str, str, frozenset[str]]
"""Country, topic and the two models, whichever stands left."""


def compare_resolutions(
    db: Database, pairs: Sequence[SeriesPair], renamed_models: Mapping[str, str], max_listed: int
) -> list[ResolutionComparison]:
    """Of each two audits among the pairs that have conflicts in common, what became of these.

    Args:
        pairs: as compared; models of different names that were paired count as one.
        renamed: models that have another name in the second audit: old name to new.
        listed: conflicts to list.
    """
    audits: dict[tuple[int, int], list[SeriesPair]] = {}
    for pair in pairs:
        if pair[0].audit_id != pair[1].audit_id:
            audits.setdefault((pair[0].audit_id, pair[1].audit_id), []).append(pair)
    found = [_compare_two_audits(db, mine, renamed_models, max_listed) for mine in audits.values()]
    return [part for part in found if part.shared]


def _compare_two_audits(
    db: Database, pairs: Sequence[SeriesPair], renamed_models: Mapping[str, str], max_listed: int
) -> ResolutionComparison:
    first, second = pairs[0]
    names = {**renamed_models, **{a.model: b.model for a, b in pairs}}
    ones = _index_by_conflict(_load_resolved_conflicts(db, first), names)
    others = _index_by_conflict(_load_resolved_conflicts(db, second), {})
    shared = sorted(ones.keys() & others.keys(), key=lambda key: (key[0], key[1], sorted(key[2])))
    both = [(ones[key], others[key]) for key in shared]
    won = [(one.winner is not None, other.winner is not None) for one, other in both]
    flips = [
        ResolutionFlipRow(
            country=one.conflict.cell.country,
            topic=one.conflict.cell.topic,
            first_winner=one.winner,
            first_by=_resolved_by(one),
            second_winner=other.winner,
            second_by=_resolved_by(other),
        )
        for one, other in both
        if one.winner is not None and other.winner is not None and names.get(one.winner, one.winner) != other.winner
    ]
    n = won.count((True, True))
    return ResolutionComparison(
        first=first.audit,
        second=second.audit,
        shared=len(shared),
        n=n,
        flipped=len(flips),
        share=estimate_share(len(flips), n),
        only_first=won.count((True, False)),
        only_second=won.count((False, True)),
        neither=won.count((False, False)),
        flips=flips[:max_listed],
        not_listed=max(0, len(flips) - max_listed),
    )


def _load_resolved_conflicts(db: Database, series: ScoreSeries) -> list[ReviewedConflict]:
    return apply_ratings(results.load_model_conflicts(db, series.audit_id), results.load_ratings(db, series.audit_id))


def _index_by_conflict(
    resolved_conflicts: Iterable[ReviewedConflict], new_names: Mapping[str, str]
) -> dict[ConflictKey, ReviewedConflict]:
    return {
        (*one.conflict.cell, frozenset(new_names.get(m, m) for m in (one.conflict.left, one.conflict.right))): one
        for one in resolved_conflicts
    }


def _resolved_by(resolved_conflict: ReviewedConflict) -> Literal["majority", "person"]:
    return "person" if resolved_conflict.status is ConflictStatus.PERSON else "majority"
