"""Reviewing: the queue of conflicts as one rater sees it, and the append-only log of what people say of them.

What holds is, for each conflict and rater, the last row about the scores that the conflict has now. People settle a
conflict when a strict majority of the raters who decided says the same. Nothing here reads an author, a verdict or the
survey into what a blind rater is shown: that is `storage.evidence`, and asked for apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from sqlalchemy import RowMapping, func, select

from auditor.domain import ConflictKind, Decision
from auditor.storage.conflict_status import CONFLICT_KEY_COLUMNS, ConflictKey, ConflictStatus, QueueFilter, QueueRow
from auditor.storage.database import Database
from auditor.storage.ledger import MAX_KEYS_PER_QUERY
from auditor.storage.queue_sql import KEYS_PARAMETER, ConflictQuery, current_ratings


class ConflictQueue:
    """The queue of one audit for one rater."""

    def __init__(self, db: Database, audit_id: int, rater: str, *, unblinded: bool = False) -> None:
        self._db = db
        self._audit_id = audit_id
        self._rater = rater
        self._unblinded = unblinded
        self._rows_query = ConflictQuery(audit_id, rater, unblinded, selected_only=True).rows_query

    def keys(self, queue_filter: QueueFilter, limit: int | None = None) -> list[tuple[ConflictKey, int]]:
        """Conflicts in order, each with the number of people who decided it."""
        view = ConflictQuery(self._audit_id, self._rater, self._unblinded)
        query = (
            select(*view.key_columns, view.n_raters).select_from(view.from_clause).where(*view.conditions(queue_filter))
        )
        query = query.order_by(*view.order_by(queue_filter)).limit(limit)
        with self._db.read() as connection:
            return [(ConflictKey(*row[:4]), row[4]) for row in connection.execute(query)]

    def rows(self, keys: Sequence[ConflictKey]) -> list[QueueRow]:
        """The lines of some conflicts, in their order; one that is gone is left out."""
        found: dict[ConflictKey, QueueRow] = {}
        remaining = iter(keys)
        with self._db.read() as connection:
            while chunk := list(islice(remaining, MAX_KEYS_PER_QUERY // len(CONFLICT_KEY_COLUMNS))):
                given = {KEYS_PARAMETER: [tuple(key) for key in chunk]}
                found.update(
                    (row.key, row)
                    for row in map(_parse_queue_row, connection.execute(self._rows_query, given).mappings())
                )
        return [found[key] for key in keys if key in found]

    def count_by_status(self) -> dict[ConflictStatus, int]:
        """Conflicts of the audit by standing."""
        view = ConflictQuery(self._audit_id, self._rater, self._unblinded)
        each = select(view.status.label("standing")).select_from(view.from_clause).where(view.in_audit).subquery()
        query = select(each.c.standing, func.count()).group_by(each.c.standing)
        with self._db.read() as connection:
            found = {ConflictStatus(name): int(n) for name, n in connection.execute(query)}
        return {standing: found.get(standing, 0) for standing in ConflictStatus}


def load_majority_decisions(db: Database, audit_id: int) -> dict[ConflictKey, Decision | None]:
    """For each conflict that people decided, what a strict majority of them says; None where they disagree.

    What counts is each rater's last word about the scores that the conflict has now. `score` is a decision too: it
    upholds neither side.
    """
    said = current_ratings(audit_id)
    key = [said.c[name] for name in CONFLICT_KEY_COLUMNS]
    query = select(*key, said.c.decision, func.count()).where(said.c.decision != Decision.SKIP.value)
    counted: dict[ConflictKey, dict[Decision, int]] = {}
    with db.read() as connection:
        group = (*key, said.c.decision)
        for *parts, decision, n in connection.execute(query.group_by(*group).order_by(*group)):
            counted.setdefault(ConflictKey(*parts), {})[Decision(decision)] = n
    return {key: _majority_decision(votes) for key, votes in counted.items()}


def _majority_decision(votes: dict[Decision, int]) -> Decision | None:
    top = max(votes, key=votes.__getitem__)
    return top if 2 * votes[top] > sum(votes.values()) else None


def _parse_queue_row(row: RowMapping) -> QueueRow:
    return QueueRow(
        key=ConflictKey(*(row[name] for name in CONFLICT_KEY_COLUMNS)),
        kind=ConflictKind(row["kind"]),
        score_left=row["score_left"],
        score_right=row["score_right"],
        status=ConflictStatus(row["standing"]),
        n_raters=row["raters"],
        decision=None if row["decision"] is None else Decision(row["decision"]),
        score=row["score"],
        flagged=bool(row["flagged"]),
        note=row["note"] or "",
        revealed=bool(row["seen"]),
        answer_left=row["answer_left"],
        answer_right=row["answer_right"],
    )
