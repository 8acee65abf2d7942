"""The status of a conflict, its key in the queue, and how much a decision on it can change the report."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.sql.selectable import CTE, FromClause

from auditor.domain import Conflict, ConflictKind, Decision, Rating, canonical_hash


class ConflictStatus(StrEnum):
    """Whether a conflict is resolved, people's decisions included."""

    OPEN = "open"
    DISPUTED = "disputed"
    """People disagree: no decision has a strict majority of the raters."""
    MAJORITY = "majority"
    """Resolved by a majority of the judges."""
    PERSON = "person"
    """Resolved by people."""


UNSETTLED = (ConflictStatus.OPEN, ConflictStatus.DISPUTED)
"""Statuses of conflicts that wait for people."""


class QueueSort(StrEnum):
    """Sort orders of the queue."""

    INFORMATIVENESS = "teaches"
    EFFECT = "effect"
    GAP = "gap"
    COUNTRY = "country"
    TOPIC = "topic"
    KIND = "kind"
    STATE = "state"


class ConflictKey(NamedTuple):
    """Key of a conflict within an audit. Its `repr` omits the authors, since logs and screens may show it."""

    country: str
    topic: str
    left: str
    right: str

    @property
    def id(self) -> str:
        """Short name of the conflict, as `Conflict.id`."""
        return canonical_hash(list(self))[:10]

    def __repr__(self) -> str:
        return f"ConflictKey({self.country!r}, {self.topic!r}, ...)"


class RatedContent(NamedTuple):
    """Scores and answers of a conflict's two sides. A rating is valid while these stay the same; None equals None."""

    score_left: float | None
    score_right: float | None
    answer_left: str | None
    answer_right: str | None


RATED_COLUMNS = RatedContent._fields
CONFLICT_KEY_COLUMNS = ConflictKey._fields


def rated_content(conflict_or_rating: Conflict | Rating) -> RatedContent:
    """Scores and answers that a conflict has now, or had when it was rated."""
    return RatedContent(
        conflict_or_rating.score_left,
        conflict_or_rating.score_right,
        conflict_or_rating.answer_left,
        conflict_or_rating.answer_right,
    )


@dataclass(frozen=True, slots=True)
class QueueFilter:
    """Which conflicts the queue shows, and in which order; empty tuples and None do not restrict it.

    Attributes:
        words: each must occur in the country, the topic or the rater's own note.
        models: names of authors; only conflicts whose authors were revealed to the rater can match.
        raters: conflicts that one of these people decided.
        min_gap, max_gap: limits of the absolute difference between the two scores, in [0, 2].
        flagged: whether the rater has flagged the conflict.
        todo: True for conflicts that still need the rater's decision, False for the others.
        reverse: whether to reverse `sort`.
    """

    words: tuple[str, ...] = ()
    kinds: tuple[ConflictKind, ...] = ()
    states: tuple[ConflictStatus, ...] = ()
    countries: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    raters: tuple[str, ...] = ()
    min_gap: float | None = None
    max_gap: float | None = None
    flagged: bool | None = None
    todo: bool | None = None
    sort: QueueSort = QueueSort.INFORMATIVENESS
    reverse: bool = False


@dataclass(frozen=True, slots=True)
class QueueRow:
    """One row of a rater's queue; decision, score, flag and note are this rater's.

    The two sides have scores in an audit of a survey, answers in an audit of a task, and both if those answers are
    numbers.

    Attributes:
        n_raters: number of people who decided the conflict, this rater included.
        n_direct_raters: number of them whose decision does not follow from that on another conflict of the cell.
        decision: None if the rater has done nothing yet; it resolves nothing if they did something but did not decide.
        revealed: whether authors, verdicts and survey were shown to the rater.
        skipped: whether the rater put it off; an undone decision, or a note alone, is no skip.
    """

    key: ConflictKey
    kind: ConflictKind
    score_left: float | None
    score_right: float | None
    status: ConflictStatus
    n_raters: int
    n_direct_raters: int
    decision: Decision | None
    score: float | None
    flagged: bool
    note: str
    revealed: bool
    answer_left: str | None = None
    answer_right: str | None = None
    skipped: bool = False

    @property
    def gap(self) -> float | None:
        """Absolute difference of the two scores; None if a side has no score."""
        return None if self.score_left is None or self.score_right is None else abs(self.score_left - self.score_right)


MAX_LEVEL_LEAD = 1
"""Largest lead of one side that a single decision makes up for."""


class ConflictEffect(StrEnum):
    """How much a decision can change which of the two sides is ahead.

    Only these levels are shown to a rater: the counts would tell which conflicts have the same authors.
    """

    HIGH = "high"
    """The two sides are level, or one decision apart."""
    SOME = "some"
    """One side is ahead by more, but the unsettled conflicts can still change that."""
    NONE = "none"
    """The unsettled conflicts cannot change which side is ahead."""

    @classmethod
    def from_counts(cls, lead: int, n_unsettled: int) -> ConflictEffect:
        """Return the level for the lead of one side and the number of unsettled conflicts between the two."""
        if lead > n_unsettled:
            return cls.NONE
        return cls.HIGH if lead <= MAX_LEVEL_LEAD else cls.SOME


def count_pair_wins(
    conflict: FromClause,
    rating_summary: CTE,
    status: sa.ColumnElement[str],
    majority: sa.ColumnElement[str | None],
    in_audit: sa.ColumnElement[bool],
    is_joined: sa.ColumnElement[bool],
) -> CTE:
    """Count, for each two sides, the lead of one over the other in settled conflicts, and the unsettled conflicts.

    Args:
        rating_summary: people's ratings by conflict, joined to `conflict` by the condition `is_joined`.
        status: the conflict's `ConflictStatus`.
        majority: the decision of a majority of the raters, which overrides the judges' winner.
        in_audit: condition that selects the audit.

    Returns:
        Columns `left`, `right`, `lead` (at least 0) and `n_unsettled`.
    """
    c = conflict.c
    no_rater = sa.func.coalesce(rating_summary.c.raters, 0) == 0

    def count(condition: sa.ColumnElement[bool]) -> sa.ColumnElement[int]:
        return sa.func.sum(sa.case((condition, 1), else_=0))

    n_left = count(sa.or_(majority == Decision.LEFT.value, sa.and_(no_rater, c.winner == c.left)))
    n_right = count(sa.or_(majority == Decision.RIGHT.value, sa.and_(no_rater, c.winner == c.right)))
    n_unsettled = count(status.in_(UNSETTLED))
    columns = [c.left, c.right, sa.func.abs(n_left - n_right).label("lead"), n_unsettled.label("n_unsettled")]
    query = sa.select(*columns).select_from(conflict.outerjoin(rating_summary, is_joined)).where(in_audit)
    return query.group_by(c.left, c.right).cte("pair_wins")


def effect_size(pair_wins: CTE) -> sa.ColumnElement[float]:
    """1 / (1 + lead), in (0, 1], or 0 if the unsettled conflicts cannot change which side is ahead."""
    lead = pair_wins.c.lead
    return sa.case((lead <= pair_wins.c.n_unsettled, 1.0 / (1.0 + lead)), else_=0.0)
