"""How much a decision on a conflict can change the report's conclusion on which of its two sides is right more often.

For each two sides, the report counts the conflicts that were settled for one and for the other. A decision matters most
where these counts are equal, and not at all where the unsettled conflicts of the two cannot change which is ahead.
"""

from __future__ import annotations

from enum import StrEnum

from sqlalchemy import ColumnElement, and_, case, func, or_, select
from sqlalchemy.sql.selectable import CTE, FromClause

from auditor.domain import Decision
from auditor.storage.conflict_status import ConflictStatus

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
    status: ColumnElement[str],
    majority: ColumnElement[str | None],
    in_audit: ColumnElement[bool],
    is_joined: ColumnElement[bool],
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
    no_rater = func.coalesce(rating_summary.c.raters, 0) == 0

    def count(condition: ColumnElement[bool]) -> ColumnElement[int]:
        return func.sum(case((condition, 1), else_=0))

    n_left = count(or_(majority == Decision.LEFT.value, and_(no_rater, c.winner == c.left)))
    n_right = count(or_(majority == Decision.RIGHT.value, and_(no_rater, c.winner == c.right)))
    n_unsettled = count(status.in_([ConflictStatus.OPEN.value, ConflictStatus.DISPUTED.value]))
    columns = [c.left, c.right, func.abs(n_left - n_right).label("lead"), n_unsettled.label("n_unsettled")]
    query = select(*columns).select_from(conflict.outerjoin(rating_summary, is_joined)).where(in_audit)
    return query.group_by(c.left, c.right).cte("pair_wins")


def effect_size(pair_wins: CTE) -> ColumnElement[float]:
    """1 / (1 + lead), in (0, 1], or 0 if the unsettled conflicts cannot change which side is ahead."""
    lead = pair_wins.c.lead
    return case((lead <= pair_wins.c.n_unsettled, 1.0 / (1.0 + lead)), else_=0.0)
