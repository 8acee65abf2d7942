"""The conflicts of an audit with their status after human review, by the rules of the review queue (`queue_sql`)."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from sqlalchemy import Connection, select
from sqlalchemy.sql.selectable import CTE

from auditor.domain import Conflict, Decision, Rating
from auditor.storage.conflict_status import ConflictStatus
from auditor.storage.database import Database
from auditor.storage.queue_sql import (
    conflict_status,
    is_same_conflict,
    majority_decision,
    select_current_ratings,
    summarize_ratings,
)
from auditor.storage.rating_log import resolves_conflict
from auditor.storage.row_classes import conversion_of
from auditor.storage.row_writing import table_of


@dataclass(frozen=True, slots=True)
class ReviewedConflict:
    """A conflict with its status after human review.

    Attributes:
        decision: the decision of a strict majority of the raters; None without one.
        ratings: the rating of each rater who decided, by rater name.
    """

    conflict: Conflict
    status: ConflictStatus
    decision: Decision | None = None
    ratings: tuple[Rating, ...] = ()

    @property
    def winner(self) -> str | None:
        """The model whose side was upheld; None while undecided, or when people did not uphold one side only."""
        if not self.ratings:
            return self.conflict.winner
        side = self.decision and self.decision.upheld_side
        return None if side is None else {"left": self.conflict.left, "right": self.conflict.right}[side]


def load_reviewed_conflicts(db: Database, audit_id: int) -> list[ReviewedConflict]:
    """Load an audit's conflicts of all kinds, in order of country, topic and sides."""
    table, ratings = table_of(Conflict), select_current_ratings(audit_id)
    summary = summarize_ratings(ratings)
    conversion = conversion_of(Conflict)
    columns = [table.c[name] for name in conversion.column_names]
    query = (
        select(*columns, conflict_status(table, summary), majority_decision(summary))
        .select_from(table.outerjoin(summary, is_same_conflict(table, summary)))
        .where(table.c.audit_id == audit_id)
        .order_by(*table.primary_key)
    )
    with db.read() as connection:
        ratings_by_conflict = _load_ratings_by_conflict(connection, ratings)
        reviewed_conflicts = []
        for *values, status, decision in connection.execute(query):
            conflict = conversion.to_record(values)
            conflict_ratings = ratings_by_conflict.get((*conflict.cell, conflict.left, conflict.right), ())
            decision = None if decision is None else Decision(decision)
            reviewed_conflicts.append(
                ReviewedConflict(conflict, ConflictStatus(status), decision, tuple(conflict_ratings))
            )
    return reviewed_conflicts


def _load_ratings_by_conflict(connection: Connection, current_ratings: CTE) -> dict[tuple[str, ...], list[Rating]]:
    """Load the current ratings that decide a conflict, by conflict and in order of their raters."""
    c = current_ratings.c
    conversion = conversion_of(Rating)
    columns = [c[name] for name in conversion.column_names]
    query = select(*columns).where(resolves_conflict(c.decision)).order_by(c.rater)
    ratings_by_conflict: defaultdict[tuple[str, ...], list[Rating]] = defaultdict(list)
    for rating in map(conversion.to_record, connection.execute(query)):
        ratings_by_conflict[*rating.cell, rating.left, rating.right].append(rating)
    return ratings_by_conflict
