"""Undo and redo of a rater's actions: both append rows to the rating log.

An undo repeats the row before the one that it reverts, and a redo repeats the row that it restores. The stacks of both
are derived from the log, so they survive the process and are shared by all processes of a rater. A decision that
settled other conflicts of its cell is undone and redone together with those.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime

from sqlalchemy import Connection, select

from auditor.domain import Rating, RatingAction
from auditor.storage.conflict_status import rated_content
from auditor.storage.database import Database
from auditor.storage.rating_log import (
    RatingEntry,
    empty_rating,
    insert_entry,
    load_last_rating,
    parse_entry,
    write_log,
)
from auditor.storage.row_writing import table_of

UNDOABLE_ACTIONS = frozenset({RatingAction.DECIDE, RatingAction.NOTE, RatingAction.FLAG})
"""Actions that can be undone. A reveal is not among them, since the rater has seen the evidence."""


def undo(db: Database, audit_id: int, rater: str) -> RatingEntry | None:
    """Undo the rater's last action in an audit by appending the rating before it; None if there is nothing to undo."""

    def job(connection: Connection) -> RatingEntry | None:
        undoable, _ = undo_redo_stacks(_load_acts(connection, audit_id, rater))
        if not undoable:
            return None
        undone_entry, *following = _load_act(connection, undoable[-1])
        for entry in following:
            _append_undo(connection, audit_id, rater, entry)
        return _append_undo(connection, audit_id, rater, undone_entry)._replace(n_following=len(following))

    return write_log(db, job)


def redo(db: Database, audit_id: int, rater: str) -> RatingEntry | None:
    """Redo the rater's last undone action; None if there is none, or if the rater has acted since."""

    def job(connection: Connection) -> RatingEntry | None:
        _, redoable = undo_redo_stacks(_load_acts(connection, audit_id, rater))
        if not redoable:
            return None
        redone_entry, *following = _load_act(connection, redoable[-1])
        for entry in following:
            _append_redo(connection, audit_id, entry)
        return _append_redo(connection, audit_id, redone_entry)._replace(n_following=len(following))

    return write_log(db, job)


def undo_redo_stacks(acts: Iterable[tuple[int, RatingAction, int | None]]) -> tuple[list[int], list[int]]:
    """Return the ids of the rows that can be undone, and of those that can be redone; the next one is last.

    Args:
        acts: a rater's rows, oldest first, as (id, action, id of the row that an undo or redo refers to).
    """
    undoable: list[int] = []
    redoable: list[int] = []
    for row_id, act, target_id in acts:
        if act in UNDOABLE_ACTIONS:
            undoable.append(row_id)
            redoable.clear()
        elif act is RatingAction.UNDO and target_id in undoable:
            undoable.remove(target_id)
            redoable.append(target_id)
        elif act is RatingAction.REDO and target_id in redoable:
            redoable.remove(target_id)
            undoable.append(target_id)
    return undoable, redoable


# --- inside a transaction ---------------------------------------------------------------------------------------


def _append_undo(connection: Connection, audit_id: int, rater: str, undone: RatingEntry) -> RatingEntry:
    """Append the rating before an entry, or an empty one if there is none."""
    content = rated_content(undone.rating)
    before = load_last_rating(connection, audit_id, undone.key, rater, content, before_id=undone.id)
    rating = before or empty_rating(undone.key, content, rater)
    return insert_entry(connection, audit_id, _repeat_rating(rating, undone, RatingAction.UNDO))


def _append_redo(connection: Connection, audit_id: int, redone: RatingEntry) -> RatingEntry:
    """Append the rating of an entry again."""
    return insert_entry(connection, audit_id, _repeat_rating(redone.rating, redone, RatingAction.REDO))


def _repeat_rating(rating: Rating, reference: RatingEntry, act: RatingAction) -> Rating:
    """Copy a rating as an undo or redo of an entry, with what was shown to the rater taken from that entry."""
    return replace(
        rating,
        act=act,
        of=reference.id,
        decided_at=datetime.now(UTC),
        shown=reference.rating.shown,
        swapped=reference.rating.swapped,
        duration_s=None,
    )


def _load_acts(connection: Connection, audit_id: int, rater: str) -> list[tuple[int, RatingAction, int | None]]:
    """Load id, action and referenced row of all of a rater's rows, oldest first."""
    c = table_of(Rating).c
    query = select(c.id, c.act, c.of).where(c.audit_id == audit_id, c.rater == rater).order_by(c.id)
    return [(row_id, RatingAction(act), target_id) for row_id, act, target_id in connection.execute(query)]


def _load_act(connection: Connection, row_id: int) -> list[RatingEntry]:
    """Load one row of the log by its id, which must exist, and the rows of the conflicts that it settled as well."""
    table = table_of(Rating)
    first = parse_entry(connection.execute(select(table).where(table.c.id == row_id)).mappings().one())
    # The second and third condition let the database use the index on audit and cell.
    query = select(table).where(
        table.c.audit_id == select(table.c.audit_id).where(table.c.id == row_id).scalar_subquery(),
        table.c.country == first.key.country,
        table.c.topic == first.key.topic,
        table.c.follows == row_id,
        table.c.act == RatingAction.FOLLOW.value,
    )
    following = connection.execute(query.order_by(table.c.id)).mappings()
    return [first, *map(parse_entry, following)]
