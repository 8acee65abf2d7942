"""What people's ratings make of a conflict, by the rules of the review queue."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from auditor.domain import Conflict, ConflictState, Decision, Rating
from auditor.storage.conflict_status import Standing, stand_of

STANDINGS = {state: Standing(state.value) for state in ConflictState}
"""Of conflicts that no person decided."""


@dataclass(frozen=True, slots=True)
class Settled:
    """How a conflict stands.

    Attributes:
        winner: the model whose side was upheld; None while nobody did, or when people said both, neither or a score.
        decision: what people agree on; None where they do not, or none decided.
        ratings: what holds, the last of each rater who decided, by name.
    """

    conflict: Conflict
    standing: Standing
    winner: str | None
    decision: Decision | None
    ratings: tuple[Rating, ...]


def settled(conflicts: Iterable[Conflict], ratings: Iterable[Rating]) -> list[Settled]:
    """Each conflict with what people say of it.

    A rater's last row holds, and only while the conflict has the scores that it was about. People settle a conflict
    when a strict majority of those who decided says the same, and go before the judges.

    Args:
        conflicts: of one audit.
        ratings: of the same audit, oldest first.
    """
    said: dict[tuple[object, ...], dict[str, Rating]] = defaultdict(dict)
    for rating in ratings:
        said[_about(rating)][rating.rater] = rating
    if not said:
        return [_unrated(c) for c in conflicts]
    return [_settle(c, list(said.get(_about(c), {}).values())) for c in conflicts]


def _about(item: Conflict | Rating) -> tuple[object, ...]:
    return item.cell, item.left, item.right, *stand_of(item)


def _unrated(conflict: Conflict) -> Settled:
    return Settled(conflict, STANDINGS[conflict.state], conflict.winner, None, ())


def _settle(conflict: Conflict, said: Sequence[Rating]) -> Settled:
    decided = tuple(sorted((r for r in said if r.decision.settles), key=lambda r: r.rater))
    if not decided:
        return _unrated(conflict)
    decision, n = Counter(r.decision for r in decided).most_common(1)[0]
    if 2 * n <= len(decided):
        return Settled(conflict, Standing.DISPUTED, None, None, decided)
    winner = {Decision.LEFT: conflict.left, Decision.RIGHT: conflict.right}.get(decision)
    return Settled(conflict, Standing(ConflictState.PERSON.value), winner, decision, decided)
