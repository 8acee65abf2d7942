"""The order in which a rater sees the sides of a conflict: pseudo-random, so that it does not reveal the authors."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TypeVar

from auditor.domain import Decision, Rating
from auditor.storage.conflict_status import ConflictKey, QueueRow
from auditor.storage.rating_log import RatingEntry

DecisionT = TypeVar("DecisionT", Decision, Decision | None)


class SideOrder:
    """The order of the sides for one rater in one audit; the same in every session."""

    def __init__(self, audit_name: str, rater: str) -> None:
        self._audit_name = audit_name
        self._rater = rater

    def is_swapped(self, key: ConflictKey) -> bool:
        """Whether this rater sees the stored left side of a conflict on the right: so for half of them, by a hash."""
        return hash_to_fraction("side", self._audit_name, self._rater, *key) < 0.5

    def show_row(self, row: QueueRow) -> QueueRow:
        """Return a row of the queue with scores, answers and decision for the sides as shown to the rater."""
        if not self.is_swapped(row.key):
            return row
        return replace(
            row,
            score_left=row.score_right,
            score_right=row.score_left,
            answer_left=row.answer_right,
            answer_right=row.answer_left,
            decision=mirror_decision(row.decision, swapped=True),
        )

    def show_entry(self, entry: RatingEntry) -> RatingEntry:
        """Return an entry of the log with its decision about the sides as shown to the rater."""
        rating: Rating = entry.rating
        decision = mirror_decision(rating.decision, self.is_swapped(entry.key))
        return entry._replace(rating=replace(rating, decision=decision))


def mirror_decision(decision: DecisionT, swapped: bool) -> DecisionT:
    """Return the decision about the sides in their other order if they are swapped."""
    return decision.mirrored if swapped and decision is not None else decision


def hash_to_fraction(*parts: str) -> float:
    """Hash texts to a number in [0, 1): pseudo-random, but the same for the same texts in every session."""
    digest = hashlib.blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64
