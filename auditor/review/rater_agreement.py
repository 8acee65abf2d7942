"""Blind decisions of raters and the agreement between raters.

Only decisions made blind count: raters who have seen the judges' verdicts are not independent of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeVar

import numpy as np

from auditor.domain import Decision, Rating
from auditor.metrics.agreement import Agreement, count_ratings, fleiss_kappa
from auditor.metrics.estimate import ShareEstimate
from auditor.metrics.unit_means import ShareTable, shares_over_units
from auditor.reports.data.sampling_units import Units, sampling_units
from auditor.storage import rating_log, results
from auditor.storage.conflict_status import ConflictKey, rated_content
from auditor.storage.database import Database
from auditor.storage.rating_log import RatingEntry

BlindDecisions = Mapping[ConflictKey, Mapping[str, Decision]]
"""Blind decision by conflict and rater."""

RatedT = TypeVar("RatedT", bound=Hashable)
"""What is rated: a conflict, or a unit that is labelled."""
UnitsFinder = Callable[[Iterable[RatedT]], Units]
"""Finds the units that intervals are over, of what is rated."""


@dataclass(frozen=True, slots=True)
class PairAgreement:
    """Agreement of two raters on what both rated."""

    rater_a: str
    rater_b: str
    raw_agreement: ShareEstimate
    kappa: Agreement


@dataclass(frozen=True, slots=True)
class RaterAgreement:
    """Agreement of all raters.

    Attributes:
        n_decided_by_rater: number of conflicts that each rater decided blind, or of units that the rater labelled.
        kappa: Fleiss' kappa over those that at least two raters decided.
        pairs: agreement of each two raters who share one.
    """

    n_decided_by_rater: Mapping[str, int]
    kappa: Agreement
    pairs: tuple[PairAgreement, ...]


def load_blind_decisions(db: Database, audit_id: int) -> BlindDecisions:
    """Load each rater's last blind decision on each conflict, if the conflict still has the scores that were rated.

    A decision that settled several conflicts of a cell counts once, for the conflict on which it was made.
    """
    last_ratings: dict[ConflictKey, dict[str, Rating]] = {}
    for entry in select_current_entries(db, audit_id, rating_log.load_entries(db, audit_id)):
        if not entry.rating.shown:  # `shown` names the hidden evidence that the rater had seen: empty if blind
            last_ratings.setdefault(entry.key, {})[entry.rating.rater] = entry.rating
    decisions_by_conflict = {
        key: {
            rater: rating.decision
            for rater, rating in by_rater.items()
            if rating.decision.resolves_conflict and rating.follows is None
        }
        for key, by_rater in last_ratings.items()
    }
    return {key: decisions for key, decisions in decisions_by_conflict.items() if decisions}


def select_current_entries(db: Database, audit_id: int, entries: Iterable[RatingEntry]) -> list[RatingEntry]:
    """Select the log entries whose conflict still exists and has the scores or answers that were rated."""
    current_content = {
        ConflictKey(*conflict.cell, conflict.left, conflict.right): rated_content(conflict)
        for conflict in results.load_conflicts(db, audit_id)
    }
    return [entry for entry in entries if current_content.get(entry.key) == rated_content(entry.rating)]


def find_majority(decisions: Iterable[Decision]) -> Decision | None:
    """Return the decision that more than half of `decisions` are; None if there is no majority."""
    counts = Counter(decisions)
    most_common = max(counts, key=counts.__getitem__, default=None)
    return most_common if most_common is not None and 2 * counts[most_common] > counts.total() else None


def compute_rater_agreement(blind_decisions: BlindDecisions) -> RaterAgreement:
    """Compute the agreement of all raters, and of each two raters who share a conflict, over their blind decisions."""
    return compute_agreement_on(blind_decisions, conflict_units)


def compute_agreement_on(
    ratings: Mapping[RatedT, Mapping[str, Hashable]], find_units: UnitsFinder[RatedT]
) -> RaterAgreement:
    """Compute the agreement of all raters, and of each two raters who share something rated.

    Args:
        ratings: value by what is rated and rater; values are categories without an order.
        find_units: finds the units that the intervals are over.
    """
    raters = sorted({rater for by_rater in ratings.values() for rater in by_rater})
    pairs = [
        pair for pair in combinations(raters, 2) if any(set(pair) <= by_rater.keys() for by_rater in ratings.values())
    ]
    raw_agreement = shares_over_units([_tabulate_equal_ratings(ratings, *pair, find_units) for pair in pairs])
    return RaterAgreement(
        {rater: sum(rater in by_rater for by_rater in ratings.values()) for rater in raters},
        _compute_kappa(ratings, raters, find_units),
        tuple(
            PairAgreement(*pair, share, _compute_kappa(ratings, pair, find_units))
            for pair, share in zip(pairs, raw_agreement, strict=True)
        ),
    )


def _tabulate_equal_ratings(
    ratings: Mapping[RatedT, Mapping[str, Hashable]], rater_a: str, rater_b: str, find_units: UnitsFinder[RatedT]
) -> ShareTable:
    """Tabulate what both raters rated, and what they rated alike."""
    shared = {key: by_rater for key, by_rater in ratings.items() if {rater_a, rater_b} <= by_rater.keys()}
    is_equal = [by_rater[rater_a] == by_rater[rater_b] for by_rater in shared.values()]
    return ShareTable(is_equal, [1] * len(shared), find_units(shared))


def _compute_kappa(
    ratings: Mapping[RatedT, Mapping[str, Hashable]], raters: Sequence[str], find_units: UnitsFinder[RatedT]
) -> Agreement:
    """Return Fleiss' kappa between some raters, with its interval."""
    values = dict.fromkeys(value for by_rater in ratings.values() for value in by_rater.values())
    codes = {value: float(i) for i, value in enumerate(values)}
    table = np.full((len(raters), len(ratings)), np.nan)
    for item, by_rater in enumerate(ratings.values()):
        for row, rater in enumerate(raters):
            if rater in by_rater:
                table[row, item] = codes[by_rater[rater]]
    return compute_fleiss_kappa(table, find_units(ratings))


def conflict_units(keys: Iterable[ConflictKey]) -> Units:
    """Return the countries and topics of conflicts, or the items of a task: the units that intervals are over."""
    conflict_keys = list(keys)
    return sampling_units([key.country for key in conflict_keys], [key.topic for key in conflict_keys])


def compute_fleiss_kappa(ratings: np.ndarray[tuple[int, ...], np.dtype[np.float64]], units: Units) -> Agreement:
    """Compute Fleiss' kappa of ratings given as category numbers.

    Args:
        ratings: shape (raters, items); nan if a rater did not rate an item.
        units: of the items.
    """
    return fleiss_kappa(count_ratings(ratings), units=units)
