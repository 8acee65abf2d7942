"""What people said, as data to learn from: only decisions made blind count, since the rest had seen the judges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from auditor.domain import Decision, Rating
from auditor.metrics.agreement import Agreement, count_ratings, fleiss_kappa
from auditor.metrics.share import Share, share_of
from auditor.storage import rating_log, results
from auditor.storage.conflict_status import ConflictKey, stand_of
from auditor.storage.database import Database
from auditor.storage.rating_log import Entry

Said = Mapping[ConflictKey, Mapping[str, Decision]]
"""For each conflict, what each rater said of it blind."""

CATEGORIES = {decision: float(i) for i, decision in enumerate(d for d in Decision if d.settles)}


@dataclass(frozen=True, slots=True)
class PairAgreement:
    """How two raters agree on the conflicts that both decided blind."""

    one: str
    other: str
    same: Share
    kappa: Agreement


@dataclass(frozen=True, slots=True)
class RaterAgreement:
    """How all raters agree.

    Attributes:
        decided: conflicts that each rater decided blind.
        kappa: Fleiss' over the conflicts with at least two of them.
    """

    decided: Mapping[str, int]
    kappa: Agreement
    pairs: tuple[PairAgreement, ...]


def said_blind(db: Database, audit_id: int) -> Said:
    """What each rater last said blind of each conflict, about the scores that it has now."""
    last: dict[ConflictKey, dict[str, Rating]] = {}
    for entry in of_scores_now(db, audit_id, rating_log.entries(db, audit_id)):
        if not entry.rating.shown:
            last.setdefault(entry.key, {})[entry.rating.rater] = entry.rating
    settled = {
        key: {rater: r.decision for rater, r in by_rater.items() if r.decision.settles}
        for key, by_rater in last.items()
    }
    return {key: decisions for key, decisions in settled.items() if decisions}


def of_scores_now(db: Database, audit_id: int, log: Iterable[Entry]) -> list[Entry]:
    """The rows of a log that are about the scores that their conflicts have now."""
    stands = {ConflictKey(*c.cell, c.left, c.right): stand_of(c) for c in results.conflicts(db, audit_id)}
    return [e for e in log if stands.get(e.key) == stand_of(e.rating)]


def consensus(decisions: Iterable[Decision]) -> Decision | None:
    """What a strict majority says; None when none does."""
    counted = Counter(decisions)
    top = max(counted, key=counted.__getitem__, default=None)
    return top if top is not None and 2 * counted[top] > counted.total() else None


def rater_agreement(said: Said) -> RaterAgreement:
    """Agreement between raters over what they said blind."""
    raters = sorted({rater for decisions in said.values() for rater in decisions})
    decided = {rater: sum(rater in decisions for decisions in said.values()) for rater in raters}
    pairs = [_pair(said, one, other) for one, other in combinations(raters, 2)]
    return RaterAgreement(decided, _kappa(said, raters), tuple(pair for pair in pairs if pair.same.n))


def _pair(said: Said, one: str, other: str) -> PairAgreement:
    shared = {key: d for key, d in said.items() if one in d and other in d}
    same = sum(d[one] is d[other] for d in shared.values())
    return PairAgreement(one, other, share_of(same, len(shared)), _kappa(shared, [one, other]))


def _kappa(said: Said, raters: list[str]) -> Agreement:
    table = np.full((len(raters), len(said)), np.nan)
    for item, decisions in enumerate(said.values()):
        for row, rater in enumerate(raters):
            if rater in decisions:
                table[row, item] = CATEGORIES[decisions[rater]]
    return fleiss(table)


def fleiss(table: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> Agreement:
    """Fleiss' kappa of a table (raters, items) of categories, nan where a rater said nothing."""
    return fleiss_kappa(count_ratings(table))
