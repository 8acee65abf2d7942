"""What people's ratings make of a conflict, by the rules of the review queue."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from auditor.domain import Conflict, ConflictState, Decision, Rating
from auditor.storage.conflict_status import ConflictStatus, rated_content

STATUS_BY_STATE = {state: ConflictStatus(state.value) for state in ConflictState}
"""Of conflicts that no person decided."""


@dataclass(frozen=True, slots=True)
class ReviewedConflict:
    """How a conflict stands.

    Attributes:
        winner: the model whose side was upheld; None while nobody did, or when people said both, neither or a score.
        decision: what people agree on; None where they do not, or none decided.
        ratings: what holds, the last of each rater who decided, by name.
    """

    conflict: Conflict
    status: ConflictStatus
    winner: str | None
    decision: Decision | None
    ratings: tuple[Rating, ...]


def apply_ratings(conflicts: Iterable[Conflict], ratings: Iterable[Rating]) -> list[ReviewedConflict]:
    """Each conflict with what people say of it.

    A rater's last row holds, and only while the conflict has the scores that it was about. People settle a conflict
    when a strict majority of those who decided says the same, and go before the judges.

    Args:
        conflicts: of one audit.
        ratings: of the same audit, oldest first.
    """
    said: dict[tuple[object, ...], dict[str, Rating]] = defaultdict(dict)
    for rating in ratings:
        said[_rating_key(rating)][rating.rater] = rating
    if not said:
        return [_without_ratings(c) for c in conflicts]
    return [_apply_conflict_ratings(c, list(said.get(_rating_key(c), {}).values())) for c in conflicts]


def _rating_key(conflict_or_rating: Conflict | Rating) -> tuple[object, ...]:
    return (
        conflict_or_rating.cell,
        conflict_or_rating.left,
        conflict_or_rating.right,
        *rated_content(conflict_or_rating),
    )


def _without_ratings(conflict: Conflict) -> ReviewedConflict:
    return ReviewedConflict(conflict, STATUS_BY_STATE[conflict.state], conflict.winner, None, ())


def _apply_conflict_ratings(conflict: Conflict, ratings: Sequence[Rating]) -> ReviewedConflict:
    decided = tuple(sorted((r for r in ratings if r.decision.resolves_conflict), key=lambda r: r.rater))
    if not decided:
        return _without_ratings(conflict)
    decision, n = Counter(r.decision for r in decided).most_common(1)[0]
    if 2 * n <= len(decided):
        return ReviewedConflict(conflict, ConflictStatus.DISPUTED, None, None, decided)
    winner = {Decision.LEFT: conflict.left, Decision.RIGHT: conflict.right}.get(decision)
    return ReviewedConflict(conflict, ConflictStatus(ConflictState.PERSON.value), winner, decision, decided)
