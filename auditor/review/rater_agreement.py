"""What people said, as data to learn from: only decisions made blind count, since the rest had seen the judges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from auditor.domain import Decision, Rating
from auditor.metrics.agreement import Agreement, count_ratings, fleiss_kappa
from auditor.metrics.share import Share, wilson_share
from auditor.storage import rating_log, results
from auditor.storage.conflict_status import ConflictKey, rated_content
from auditor.storage.database import Database
from auditor.storage.rating_log import RatingEntry

BlindDecisions = Mapping[ConflictKey, Mapping[str, Decision]]
"""For each conflict, what each rater said of it blind."""

DECISION_CODES = {decision: float(i) for i, decision in enumerate(d for d in Decision if d.resolves_conflict)}


@dataclass(frozen=True, slots=True)
class PairAgreement:
    """How two raters agree on the conflicts that both decided blind."""

    rater_a: str
    rater_b: str
    raw_agreement: Share
    kappa: Agreement


@dataclass(frozen=True, slots=True)
class RaterAgreement:
    """How all raters agree.

    Attributes:
        decided: conflicts that each rater decided blind.
        kappa: Fleiss' over the conflicts with at least two of them.
    """

    n_decided_by_rater: Mapping[str, int]
    kappa: Agreement
    pairs: tuple[PairAgreement, ...]


def load_blind_decisions(db: Database, audit_id: int) -> BlindDecisions:
    """What each rater last said blind of each conflict, about the scores that it has now."""
    last_ratings: dict[ConflictKey, dict[str, Rating]] = {}
    for entry in select_current_entries(db, audit_id, rating_log.load_entries(db, audit_id)):
        if not entry.rating.shown:
            last_ratings.setdefault(entry.key, {})[entry.rating.rater] = entry.rating
    decisions_by_conflict = {
        key: {rater: rating.decision for rater, rating in by_rater.items() if rating.decision.resolves_conflict}
        for key, by_rater in last_ratings.items()
    }
    return {key: decisions for key, decisions in decisions_by_conflict.items() if decisions}


def select_current_entries(db: Database, audit_id: int, entries: Iterable[RatingEntry]) -> list[RatingEntry]:
    """The rows of a log that are about the scores that their conflicts have now."""
    current_content = {
        ConflictKey(*conflict.cell, conflict.left, conflict.right): rated_content(conflict)
        for conflict in results.load_conflicts(db, audit_id)
    }
    return [entry for entry in entries if current_content.get(entry.key) == rated_content(entry.rating)]


def find_majority(decisions: Iterable[Decision]) -> Decision | None:
    """What a strict majority says; None when none does."""
    counts = Counter(decisions)
    most_common = max(counts, key=counts.__getitem__, default=None)
    return most_common if most_common is not None and 2 * counts[most_common] > counts.total() else None


def compute_rater_agreement(blind_decisions: BlindDecisions) -> RaterAgreement:
    """Agreement between raters over what they said blind."""
    raters = sorted({rater for decisions in blind_decisions.values() for rater in decisions})
    n_decided_by_rater = {rater: sum(rater in decisions for decisions in blind_decisions.values()) for rater in raters}
    pairs = [_compute_pair_agreement(blind_decisions, rater_a, rater_b) for rater_a, rater_b in combinations(raters, 2)]
    return RaterAgreement(
        n_decided_by_rater,
        _compute_kappa(blind_decisions, raters),
        tuple(pair for pair in pairs if pair.raw_agreement.n),
    )


def _compute_pair_agreement(blind_decisions: BlindDecisions, rater_a: str, rater_b: str) -> PairAgreement:
    shared = {
        key: decisions for key, decisions in blind_decisions.items() if rater_a in decisions and rater_b in decisions
    }
    n_agreed = sum(decisions[rater_a] is decisions[rater_b] for decisions in shared.values())
    return PairAgreement(
        rater_a, rater_b, wilson_share(n_agreed, len(shared)), _compute_kappa(shared, [rater_a, rater_b])
    )


def _compute_kappa(blind_decisions: BlindDecisions, raters: list[str]) -> Agreement:
    table = np.full((len(raters), len(blind_decisions)), np.nan)
    for item, decisions in enumerate(blind_decisions.values()):
        for row, rater in enumerate(raters):
            if rater in decisions:
                table[row, item] = DECISION_CODES[decisions[rater]]
    return compute_fleiss_kappa(table)


def compute_fleiss_kappa(ratings: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> Agreement:
    """Fleiss' kappa of a table (raters, items) of categories, nan where a rater said nothing."""
    return fleiss_kappa(count_ratings(ratings))
