"""The append-only log of people's ratings of conflicts, undo and redo, and how fast a rater decides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from auditor.domain import Cell, Conflict, ConflictKind, ConflictSides, Decision, Rating, RatingAction
from auditor.errors import StorageError
from auditor.storage import hash_chain
from auditor.storage.conflict_status import (
    CONFLICT_KEY_COLUMNS,
    RATED_COLUMNS,
    ConflictKey,
    RatedContent,
    rated_content,
)
from auditor.storage.database import Database
from auditor.storage.row_classes import conversion_of, table_of
from auditor.storage.writer import Job, T

FULL_DISCLOSURE = "authors,survey,verdicts"
"""Evidence that a rater is shown after the decision, in addition to cell, traces and scores (see `Rating.shown`)."""
CONFLICT_GONE, CONFLICT_GONE_FIX = (
    "this conflict no longer exists, since the audit was run again.",
    "Return to the queue.",
)
CONFLICT_CHANGED, CONFLICT_CHANGED_FIX = (
    "the answers of this conflict have changed since it was shown, by a run, an import or an exclusion.",
    "Open it again, read it, and repeat your decision.",
)
CELL_DISCLOSURE, PAIR_DISCLOSURE = "survey", "verdicts"
"""The part of it that also belongs to a conflict with other sides on the same cell, or on the same pair of items."""


class RatingEntry(NamedTuple):
    """One row of the log, with its id, and the number of other conflicts that the same act settled or reopened."""

    id: int
    rating: Rating
    n_following: int = 0

    @property
    def key(self) -> ConflictKey:
        return ConflictKey(*self.rating.cell, self.rating.left, self.rating.right)


@dataclass(frozen=True, slots=True)
class RatingChange:
    """A person's change of their rating of a conflict; None leaves a field as it was.

    Attributes:
        act: kind of the change.
        decision: the new decision.
        score: set together with a decision that needs one; any other decision clears it.
        note: the new note.
        flagged: whether the conflict is flagged.
        shown, swapped, duration_s, withheld: see `Rating`. A change that is no decision keeps `withheld`.
    """

    act: RatingAction
    decision: Decision | None = None
    score: float | None = None
    note: str | None = None
    flagged: bool | None = None
    shown: str = ""
    swapped: bool = False
    duration_s: float | None = None
    withheld: bool | None = None


@dataclass(frozen=True, slots=True)
class FollowingChange:
    """A decision on another conflict of the cell, which follows from the rater's decision on the first one.

    Attributes:
        content: the scores for which the decision was previewed; it is not saved if the conflict has others by now.
    """

    key: ConflictKey
    content: RatedContent
    change: RatingChange


def append_rating(
    db: Database,
    audit_id: int,
    key: ConflictKey,
    rater: str,
    change: RatingChange,
    following: Sequence[FollowingChange] = (),
    *,
    content: RatedContent | None = None,
) -> RatingEntry:
    """Append a person's rating of a conflict and return it; durable when this returns.

    Other conflicts can have the same cell and one of the same sides. If the change does not say what was shown, the
    rating records what the rater was shown in those.

    Args:
        following: decisions on other conflicts, saved in the same transaction: all rows or none. They record what the
            rater was shown before the first decision.
        content: the scores and answers that the rater was shown; None checks nothing.

    Raises:
        StorageError: a conflict no longer exists or has other scores, since the audit was run again; or the rows could
            not be saved.
    """

    def job(connection: sa.Connection) -> RatingEntry:
        first = _prepare_rating(connection, audit_id, key, rater, change)
        if content is not None and rated_content(first) != content:
            raise StorageError(CONFLICT_CHANGED, CONFLICT_CHANGED_FIX)
        others = [_prepare_following(connection, audit_id, rater, other) for other in following]
        entry = insert_entry(connection, audit_id, first)
        for rating in others:
            insert_entry(connection, audit_id, replace(rating, follows=entry.id))
        return entry._replace(n_following=len(others))

    return write_log(db, job)


def load_entries(
    db: Database, audit_id: int, *, rater: str | None = None, key: ConflictKey | None = None
) -> list[RatingEntry]:
    """Load the rows of an audit's log, oldest first, of one rater or all, of one conflict or all."""
    table = table_of(Rating)
    query = sa.select(table).where(table.c.audit_id == audit_id).order_by(table.c.id)
    if rater is not None:
        query = query.where(table.c.rater == rater)
    if key is not None:
        query = query.where(_is_conflict(table.c, key))
    with db.read() as connection:
        return [parse_entry(row) for row in connection.execute(query).mappings()]


def find_disclosed_elsewhere(db: Database, audit_id: int, key: ConflictKey, rater: str) -> str:
    """Evidence on a conflict that a rater was shown in other conflicts on its cell, in the format of `Rating.shown`."""
    with db.read() as connection:
        return _find_disclosed_elsewhere(connection, audit_id, key, rater)


def resolves_conflict(decision: sa.ColumnElement[str]) -> sa.ColumnElement[bool]:
    """Condition: a decision, given as a column, closes its conflict; NULL for NULL."""
    return decision.not_in([member.value for member in Decision if not member.resolves_conflict])


def discloses_conflict(columns: Any) -> sa.ColumnElement[bool]:
    """Condition: the row revealed its conflict to the rater, by a decision or a reveal; no undo changes this.

    After some decisions the evidence is withheld, since the next conflict opens by itself.
    """
    reveals = sa.and_(resolves_conflict(columns.decision), columns.withheld.is_not(True))
    return sa.or_(reveals, columns.act == RatingAction.REVEAL.value)


def write_log(db: Database, job: Job[T]) -> T:
    """Run a job in the writer thread; its errors say that nothing was saved."""
    try:
        return db.write(job)
    except DBAPIError as error:
        raise StorageError(f"not saved: {error.orig}.", "Nothing was changed; try again.") from None
    except StorageError as error:
        raise type(error)(f"not saved: {error.message}", error.how_to_fix) from None


# --- inside a transaction ---------------------------------------------------------------------------------------


def _prepare_rating(
    connection: sa.Connection, audit_id: int, key: ConflictKey, rater: str, change: RatingChange
) -> Rating:
    """Build the rating that a change leads to, with what the rater was shown; StorageError if the conflict is gone."""
    c = table_of(Conflict).c
    cursor = connection.execute(
        sa.select(*(c[name] for name in RATED_COLUMNS)).where(c.audit_id == audit_id, _is_conflict(c, key))
    )
    row = cursor.one_or_none()
    content = None if row is None else RatedContent(*row)
    if content is None:
        raise StorageError(CONFLICT_GONE, CONFLICT_GONE_FIX)
    before = load_last_rating(connection, audit_id, key, rater, content)
    shown = change.shown or _find_disclosed_elsewhere(connection, audit_id, key, rater)
    return _apply_change(before, key, content, rater, replace(change, shown=shown))


def _prepare_following(connection: sa.Connection, audit_id: int, rater: str, following: FollowingChange) -> Rating:
    """Build the rating of a conflict that another decision settles; StorageError if its scores have changed."""
    rating = _prepare_rating(connection, audit_id, following.key, rater, following.change)
    if rated_content(rating) != following.content:
        raise StorageError(
            "the scores of another conflict of this cell have changed.",
            "Open the conflict again and repeat your decision.",
        )
    return rating


def _apply_change(
    previous: Rating | None, key: ConflictKey, content: RatedContent, rater: str, change: RatingChange
) -> Rating:
    """Build the rating that follows from a rater's previous one, if any, and a change."""
    previous = previous or empty_rating(key, content, rater)
    decides = change.decision is not None
    return replace(
        previous,
        decision=change.decision or previous.decision,
        score=change.score if decides else previous.score,
        note=previous.note if change.note is None else change.note,
        flagged=previous.flagged if change.flagged is None else change.flagged,
        decided_at=datetime.now(UTC),
        act=change.act,
        of=None,
        shown=change.shown,
        swapped=change.swapped,
        duration_s=change.duration_s,
        withheld=change.withheld if decides else None if change.act is RatingAction.REVEAL else previous.withheld,
        follows=None if decides else previous.follows,
    )


def empty_rating(key: ConflictKey, content: RatedContent, rater: str) -> Rating:
    """Rating of a rater who has not rated the conflict yet: decision `skip`, no note."""
    cell = Cell(key.country, key.topic)
    return Rating(
        cell,
        key.left,
        key.right,
        content.score_left,
        content.score_right,
        rater,
        Decision.SKIP,
        datetime.now(UTC),
        answer_left=content.answer_left,
        answer_right=content.answer_right,
    )


def insert_entry(connection: sa.Connection, audit_id: int, rating: Rating) -> RatingEntry:
    """Append a rating to the log and the hash chain, and return it with the new row's id."""
    return RatingEntry(hash_chain.append_entry(connection, audit_id, rating), rating)


def _find_disclosed_elsewhere(connection: sa.Connection, audit_id: int, key: ConflictKey, rater: str) -> str:
    """Implement `find_disclosed_elsewhere` inside a transaction; "" if the rater was shown no other conflict."""
    c, conflict = table_of(Rating).c, table_of(Conflict).c
    cell = (c.country == key.country, c.topic == key.topic)
    query = sa.select(c.left, c.right).where(
        c.audit_id == audit_id, *cell, c.rater == rater, discloses_conflict(c), sa.not_(_is_conflict(c, key))
    )
    sides = {side for row in connection.execute(query.distinct()) for side in row}
    if not sides:
        return ""
    if sides & {key.left, key.right}:
        return FULL_DISCLOSURE
    kind = connection.execute(
        sa.select(conflict.kind).where(conflict.audit_id == audit_id, _is_conflict(conflict, key))
    ).scalar()
    is_about_claims = kind is not None and ConflictKind(kind).spec.sides is ConflictSides.CLAIMS
    return PAIR_DISCLOSURE if is_about_claims else CELL_DISCLOSURE


def load_last_rating(
    connection: sa.Connection,
    audit_id: int,
    key: ConflictKey,
    rater: str,
    content: RatedContent,
    before_id: int | None = None,
) -> Rating | None:
    """Load a rater's last rating of a conflict with these scores, before a row if one is given; None without any."""
    table = table_of(Rating)
    c = table.c
    query = sa.select(table).where(c.audit_id == audit_id, _is_conflict(c, key), c.rater == rater)
    query = query.where(
        *(c[name].is_not_distinct_from(value) for name, value in zip(RATED_COLUMNS, content, strict=True))
    )
    if before_id is not None:
        query = query.where(c.id < before_id)
    row = connection.execute(query.order_by(c.id.desc()).limit(1)).mappings().one_or_none()
    return None if row is None else parse_entry(row).rating


def _is_conflict(columns: Any, key: ConflictKey) -> sa.ColumnElement[bool]:
    """Condition: a row of these columns belongs to the conflict with this key."""
    return sa.and_(*(columns[name] == part for name, part in zip(CONFLICT_KEY_COLUMNS, key, strict=True)))


def parse_entry(row: sa.RowMapping) -> RatingEntry:
    """Convert a row of the log to a `RatingEntry`."""
    conversion = conversion_of(Rating)
    return RatingEntry(row["id"], conversion.to_record([row[name] for name in conversion.column_names]))


def load_decision_durations(db: Database, audit_id: int, rater: str, limit: int) -> list[float]:
    """Load the seconds that a rater's last decisions took, latest first.

    A decision that settled several conflicts of a cell counts once.
    """
    c = table_of(Rating).c
    query = sa.select(c.duration_s).where(
        c.audit_id == audit_id,
        c.rater == rater,
        c.act == RatingAction.DECIDE.value,
        resolves_conflict(c.decision),
        c.duration_s.is_not(None),
    )
    with db.read() as connection:
        return [float(duration) for duration in connection.execute(query.order_by(c.id.desc()).limit(limit)).scalars()]


def load_last_rating_id(db: Database, audit_id: int) -> int | None:
    """Load the id of the last entry in an audit's rating log; None if it is empty."""
    c = table_of(Rating).c
    with db.read() as connection:
        last_id: int | None = connection.execute(
            sa.select(sa.func.max(c.id)).where(c.audit_id == audit_id)
        ).scalar_one()
    return last_id


def load_raters(db: Database, audit_id: int, since: datetime | None = None) -> set[str]:
    """Load the names of the raters who acted in an audit, ever or since a time, which must be in UTC."""
    c = table_of(Rating).c
    query = sa.select(c.rater).where(c.audit_id == audit_id)
    if since is not None:
        query = query.where(c.decided_at >= since.isoformat(timespec="milliseconds"))
    with db.read() as connection:
        return set(connection.execute(query.distinct()).scalars())


UNDOABLE_ACTIONS = frozenset({RatingAction.DECIDE, RatingAction.NOTE, RatingAction.FLAG})
"""Actions that can be undone. A reveal is not among them, since the rater has seen the evidence."""


def undo(db: Database, audit_id: int, rater: str) -> RatingEntry | None:
    """Undo the rater's last action in an audit by appending the rating before it; None if there is nothing to undo."""

    def job(connection: sa.Connection) -> RatingEntry | None:
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

    def job(connection: sa.Connection) -> RatingEntry | None:
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


def _append_undo(connection: sa.Connection, audit_id: int, rater: str, undone: RatingEntry) -> RatingEntry:
    """Append the rating before an entry, or an empty one if there is none."""
    content = rated_content(undone.rating)
    before = load_last_rating(connection, audit_id, undone.key, rater, content, before_id=undone.id)
    rating = before or empty_rating(undone.key, content, rater)
    return insert_entry(connection, audit_id, _repeat_rating(rating, undone, RatingAction.UNDO))


def _append_redo(connection: sa.Connection, audit_id: int, redone: RatingEntry) -> RatingEntry:
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


def _load_acts(connection: sa.Connection, audit_id: int, rater: str) -> list[tuple[int, RatingAction, int | None]]:
    """Load id, action and referenced row of all of a rater's rows, oldest first."""
    c = table_of(Rating).c
    query = sa.select(c.id, c.act, c.of).where(c.audit_id == audit_id, c.rater == rater).order_by(c.id)
    return [(row_id, RatingAction(act), target_id) for row_id, act, target_id in connection.execute(query)]


def _load_act(connection: sa.Connection, row_id: int) -> list[RatingEntry]:
    """Load one row of the log by its id, which must exist, and the rows of the conflicts that it settled as well."""
    table = table_of(Rating)
    first = parse_entry(connection.execute(sa.select(table).where(table.c.id == row_id)).mappings().one())
    # The second and third condition let the database use the index on audit and cell.
    query = sa.select(table).where(
        table.c.audit_id == sa.select(table.c.audit_id).where(table.c.id == row_id).scalar_subquery(),
        table.c.country == first.key.country,
        table.c.topic == first.key.topic,
        table.c.follows == row_id,
        table.c.act == RatingAction.FOLLOW.value,
    )
    following = connection.execute(query.order_by(table.c.id)).mappings()
    return [first, *map(parse_entry, following)]
