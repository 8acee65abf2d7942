"""Conflicts side by side: which were settled for one side in one audit and for the other in another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from auditor.reports.comparison.schema import SettledPart, SettlementsPart
from auditor.reports.comparison.series_pairs import Pair, Series
from auditor.reports.conflicts.human_ratings import Settled, settled
from auditor.reports.estimate_conversion import share_of
from auditor.storage import results
from auditor.storage.conflict_status import Standing
from auditor.storage.database import Database

Key = tuple[str, str, frozenset[str]]
"""Country, topic and the two models, whichever stands left."""


def settlements(db: Database, pairs: Sequence[Pair], renamed: Mapping[str, str], listed: int) -> list[SettlementsPart]:
    """Of each two audits among the pairs that have conflicts in common, what became of these.

    Args:
        pairs: as compared; models of different names that were paired count as one.
        renamed: models that have another name in the second audit: old name to new.
        listed: conflicts to list.
    """
    audits: dict[tuple[int, int], list[Pair]] = {}
    for pair in pairs:
        if pair[0].audit_id != pair[1].audit_id:
            audits.setdefault((pair[0].audit_id, pair[1].audit_id), []).append(pair)
    found = [_settlements(db, mine, renamed, listed) for mine in audits.values()]
    return [part for part in found if part.shared]


def _settlements(db: Database, pairs: Sequence[Pair], renamed: Mapping[str, str], listed: int) -> SettlementsPart:
    first, second = pairs[0]
    names = {**renamed, **{a.model: b.model for a, b in pairs}}
    ones = _by_key(_conflicts(db, first), names)
    others = _by_key(_conflicts(db, second), {})
    shared = sorted(ones.keys() & others.keys(), key=lambda key: (key[0], key[1], sorted(key[2])))
    both = [(ones[key], others[key]) for key in shared]
    won = [(one.winner is not None, other.winner is not None) for one, other in both]
    flips = [
        SettledPart(
            country=one.conflict.cell.country,
            topic=one.conflict.cell.topic,
            first_winner=one.winner,
            first_by=_by(one),
            second_winner=other.winner,
            second_by=_by(other),
        )
        for one, other in both
        if one.winner is not None and other.winner is not None and names.get(one.winner, one.winner) != other.winner
    ]
    n = won.count((True, True))
    return SettlementsPart(
        first=first.audit,
        second=second.audit,
        shared=len(shared),
        n=n,
        flipped=len(flips),
        share=share_of(len(flips), n),
        only_first=won.count((True, False)),
        only_second=won.count((False, True)),
        neither=won.count((False, False)),
        flips=flips[:listed],
        not_listed=max(0, len(flips) - listed),
    )


def _conflicts(db: Database, series: Series) -> list[Settled]:
    return settled(results.scored_conflicts(db, series.audit_id), results.ratings(db, series.audit_id))


def _by_key(found: Iterable[Settled], names: Mapping[str, str]) -> dict[Key, Settled]:
    return {
        (*one.conflict.cell, frozenset(names.get(m, m) for m in (one.conflict.left, one.conflict.right))): one
        for one in found
    }


def _by(one: Settled) -> Literal["majority", "person"]:
    return "person" if one.standing is Standing.PERSON else "majority"
