"""Resolution of conflicts by people's ratings, by the rules of the review queue."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from auditor.domain import Conflict, ConflictState, Decision, Rating
from auditor.storage.conflict_status import ConflictStatus, rated_content

STATUS_BY_STATE = {state: ConflictStatus(state.value) for state in ConflictState}
"""Status of conflicts that no person decided."""


@dataclass(frozen=True, slots=True)
class ReviewedConflict:
    """A conflict with its status after human review.

    Attributes:
        winner: the model whose side was upheld; None while undecided, or when people chose both, neither or a score.
        decision: the decision of a strict majority of raters; None without one.
        ratings: the last rating of each rater who decided, by rater name.
    """

    conflict: Conflict
    status: ConflictStatus
    winner: str | None
    decision: Decision | None
    ratings: tuple[Rating, ...]


def apply_ratings(conflicts: Iterable[Conflict], ratings: Iterable[Rating]) -> list[ReviewedConflict]:
    """Combine each conflict with people's ratings.

    The last rating of a rater counts, and only while the conflict has the scores that were rated. People settle a
    conflict when a strict majority of those who decided agrees; their decision overrides the judges'.

    Args:
        conflicts: of one audit.
        ratings: of the same audit, oldest first.
    """
    latest_ratings: dict[tuple[object, ...], dict[str, Rating]] = defaultdict(dict)
    for rating in ratings:
        latest_ratings[_rating_key(rating)][rating.rater] = rating
    if not latest_ratings:
        return [_without_ratings(conflict) for conflict in conflicts]
    return [
        _apply_conflict_ratings(conflict, list(latest_ratings.get(_rating_key(conflict), {}).values()))
        for conflict in conflicts
    ]


def _rating_key(conflict_or_rating: Conflict | Rating) -> tuple[object, ...]:
    """Return the key that a conflict shares with its ratings: cell, models and the scores that were rated.

    A conflict whose scores changed after it was rated has another key than those ratings.
    """
    return (
        conflict_or_rating.cell,
        conflict_or_rating.left,
        conflict_or_rating.right,
        *rated_content(conflict_or_rating),
    )


def _without_ratings(conflict: Conflict) -> ReviewedConflict:
    """Return a conflict with the status that the judges gave it, since no person decided."""
    return ReviewedConflict(conflict, STATUS_BY_STATE[conflict.state], conflict.winner, None, ())


def _apply_conflict_ratings(conflict: Conflict, ratings: Sequence[Rating]) -> ReviewedConflict:
    """Resolve one conflict by the last rating of each rater."""
    resolving_ratings = tuple(
        sorted((rating for rating in ratings if rating.decision.resolves_conflict), key=lambda rating: rating.rater)
    )
    if not resolving_ratings:
        return _without_ratings(conflict)
    decision, n_agreeing = Counter(rating.decision for rating in resolving_ratings).most_common(1)[0]
    # No strict majority: people disagree.
    if 2 * n_agreeing <= len(resolving_ratings):
        return ReviewedConflict(conflict, ConflictStatus.DISPUTED, None, None, resolving_ratings)
    winner = {Decision.LEFT: conflict.left, Decision.RIGHT: conflict.right}.get(decision)
    return ReviewedConflict(conflict, ConflictStatus(ConflictState.PERSON.value), winner, decision, resolving_ratings)
