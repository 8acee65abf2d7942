"""The review queue: an audit's conflicts as one rater sees them.

A rater's valid rating of a conflict is the last one about the scores that the conflict has now. Nothing in this module
shows authors, verdicts or survey to a blind rater; `storage.evidence` loads those.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from sqlalchemy import RowMapping, func, select

from auditor.domain import ConflictKind, Decision
from auditor.storage.conflict_effect import ConflictEffect
from auditor.storage.conflict_status import (
    CONFLICT_KEY_COLUMNS,
    ConflictKey,
    ConflictStatus,
    QueueFilter,
    QueueRow,
    QueueSort,
)
from auditor.storage.database import Database
from auditor.storage.ledger import MAX_KEYS_PER_QUERY
from auditor.storage.queue_sql import KEYS_PARAMETER, ConflictQuery


class ConflictQueue:
    """The queue of one audit for one rater; `unblinded` hides nothing from the rater."""

    def __init__(self, db: Database, audit_id: int, rater: str, *, unblinded: bool = False) -> None:
        self._db = db
        self._audit_id = audit_id
        self._rater = rater
        self._unblinded = unblinded
        self._rows_query = ConflictQuery(audit_id, rater, unblinded, selected_only=True).rows_query

    def count(self, queue_filter: QueueFilter) -> int:
        """Count the conflicts that a filter selects."""
        conflict_query = ConflictQuery(self._audit_id, self._rater, self._unblinded)
        query = select(func.count()).select_from(conflict_query.from_clause)
        with self._db.read() as connection:
            return int(connection.execute(query.where(*conflict_query.conditions(queue_filter))).scalar_one())

    def keys(
        self, queue_filter: QueueFilter, limit: int | None = None, *, n_raters: int | None = None
    ) -> list[tuple[ConflictKey, int]]:
        """Load the keys of the conflicts that a filter selects, in its order, each with the number of its deciders.

        Args:
            queue_filter: selects and orders the conflicts.
            limit: maximum number of keys; None for all.
            n_raters: only the conflicts that so many people decided; None for any number.
        """
        with_effect = queue_filter.sort is QueueSort.EFFECT
        conflict_query = ConflictQuery(self._audit_id, self._rater, self._unblinded, with_effect=with_effect)
        query = (
            select(*conflict_query.key_columns, conflict_query.n_raters)
            .select_from(conflict_query.from_clause)
            .where(*conflict_query.conditions(queue_filter))
        )
        if n_raters is not None:
            query = query.where(conflict_query.n_raters == n_raters)
        query = query.order_by(*conflict_query.order_by(queue_filter)).limit(limit)
        with self._db.read() as connection:
            # Four key columns, then the number of raters who decided.
            return [(ConflictKey(*row[:4]), row[4]) for row in connection.execute(query)]

    def rows(self, keys: Sequence[ConflictKey]) -> list[QueueRow]:
        """Load the rows of some conflicts, in their order; a conflict that no longer exists is left out."""
        rows_by_key: dict[ConflictKey, QueueRow] = {}
        remaining_keys = iter(keys)
        with self._db.read() as connection:
            while chunk := list(islice(remaining_keys, MAX_KEYS_PER_QUERY // len(CONFLICT_KEY_COLUMNS))):
                parameters = {KEYS_PARAMETER: [tuple(key) for key in chunk]}
                rows_by_key.update(
                    (row.key, row)
                    for row in map(_parse_queue_row, connection.execute(self._rows_query, parameters).mappings())
                )
        return [rows_by_key[key] for key in keys if key in rows_by_key]

    def load_effect(self, key: ConflictKey) -> ConflictEffect:
        """Load how much a decision on a conflict can change which of its two sides is right more often."""
        wins = ConflictQuery(self._audit_id, self._rater, self._unblinded, with_effect=True).pair_wins
        assert wins is not None
        query = select(wins.c.lead, wins.c.n_unsettled).where(wins.c.left == key.left, wins.c.right == key.right)
        with self._db.read() as connection:
            row = connection.execute(query).one_or_none()
        return ConflictEffect.NONE if row is None else ConflictEffect.from_counts(int(row[0]), int(row[1]))

    def count_by_status(self) -> dict[ConflictStatus, int]:
        """Count the audit's conflicts by status."""
        conflict_query = ConflictQuery(self._audit_id, self._rater, self._unblinded)
        statuses = (
            select(conflict_query.status.label("standing"))
            .select_from(conflict_query.from_clause)
            .where(conflict_query.in_audit)
            .subquery()
        )
        query = select(statuses.c.standing, func.count()).group_by(statuses.c.standing)
        with self._db.read() as connection:
            n_by_status = {ConflictStatus(name): int(n) for name, n in connection.execute(query)}
        return {status: n_by_status.get(status, 0) for status in ConflictStatus}


def _parse_queue_row(row: RowMapping) -> QueueRow:
    """Convert a row of `ConflictQuery.rows_query` to a `QueueRow`."""
    return QueueRow(
        key=ConflictKey(*(row[name] for name in CONFLICT_KEY_COLUMNS)),
        kind=ConflictKind(row["kind"]),
        score_left=row["score_left"],
        score_right=row["score_right"],
        status=ConflictStatus(row["standing"]),
        n_raters=row["raters"],
        n_direct_raters=row["direct_raters"],
        decision=None if row["decision"] is None else Decision(row["decision"]),
        score=row["score"],
        flagged=bool(row["flagged"]),
        note=row["note"] or "",
        revealed=bool(row["seen"]),
        answer_left=row["answer_left"],
        answer_right=row["answer_right"],
    )
