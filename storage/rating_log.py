"""The log of what people say of conflicts. Rows are only ever appended; undo and redo are rows too.

Every row says the whole of what its rater says from then on, so the last one holds. An undo therefore repeats the row
before the one that it takes back, a redo the row that it brings back, and the stacks of both are read out of the log:
they outlive the process, and two processes of one rater share them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, RowMapping, and_, not_, or_, select
from sqlalchemy.exc import DBAPIError

from auditor.domain import Cell, ConflictKind, Decision, Rating, RatingAction
from auditor.errors import StorageError
from auditor.storage.conflict_status import (
    CONFLICT_KEY_COLUMNS,
    RATED_COLUMNS,
    ConflictKey,
    RatedContent,
    rated_content,
)
from auditor.storage.database import Database, table_of
from auditor.storage.results import insert_rating
from auditor.storage.tables import ConflictRow, RatingRow
from auditor.storage.writer import Job, T

UNDOABLE = frozenset({RatingAction.DECIDE, RatingAction.NOTE, RatingAction.FLAG})
"""What has been seen cannot be unseen, so a reveal is not among them."""
FULL_DISCLOSURE = "authors,survey,verdicts"
"""What a rater sees of a conflict once it is decided, beside the cell, the reasoning and the scores."""
CELL_DISCLOSURE, PAIR_DISCLOSURE = "survey", "verdicts"
"""What is left of that for a conflict of other sides on the same cell, or on the same pair of a set's items."""


class RatingEntry(NamedTuple):
    """One row of the log, with its id."""

    id: int
    rating: Rating

    @property
    def key(self) -> ConflictKey:
        return ConflictKey(*self.rating.cell, self.rating.left, self.rating.right)


@dataclass(frozen=True, slots=True)
class RatingChange:
    """What a person does to one conflict; None leaves a part as it was.

    Attributes:
        score: given with the decision `score`; any other decision clears it.
        shown, swapped, duration_s: see `Rating`.
    """

    act: RatingAction
    decision: Decision | None = None
    score: float | None = None
    note: str | None = None
    flagged: bool | None = None
    shown: str = ""
    swapped: bool = False
    duration_s: float | None = None


def append_rating(db: Database, audit_id: int, key: ConflictKey, rater: str, change: RatingChange) -> RatingEntry:
    """Append what a person says of a conflict; durable when this returns.

    A conflict's cell, and often one of its sides, is another conflict's too. What the rater was shown there is known
    here as well, and is what was shown where the conflict itself has shown nothing.

    Raises:
        StorageError: the conflict is not there any more; the audit was run anew.
    """

    def job(connection: Connection) -> RatingEntry:
        scores = _load_rated_content(connection, audit_id, key)
        if scores is None:
            raise StorageError("this conflict is gone: the audit was run anew.", "Go back to the queue.")
        before = _load_last_rating(connection, audit_id, key, rater, scores)
        shown = change.shown or _find_disclosed_elsewhere(connection, audit_id, key, rater)
        return _insert_entry(
            connection, audit_id, _apply_change(before, key, scores, rater, replace(change, shown=shown))
        )

    return _write(db, job)


def undo(db: Database, audit_id: int, rater: str) -> RatingEntry | None:
    """Take back the rater's last act in an audit by a row that says what was said before; None: nothing is left."""

    def job(connection: Connection) -> RatingEntry | None:
        done, _ = undo_redo_stacks(_load_acts(connection, audit_id, rater))
        if not done:
            return None
        taken = _load_entry(connection, done[-1])
        scores = rated_content(taken.rating)
        before = _load_last_rating(connection, audit_id, taken.key, rater, scores, before_id=taken.id)
        return _insert_entry(
            connection,
            audit_id,
            _repeat_rating(
                before or _empty_rating(taken.key, scores, rater), taken.rating, RatingAction.UNDO, taken.id
            ),
        )

    return _write(db, job)


def redo(db: Database, audit_id: int, rater: str) -> RatingEntry | None:
    """Bring back what was last undone, unless something was done since; None: nothing is left."""

    def job(connection: Connection) -> RatingEntry | None:
        _, undone = undo_redo_stacks(_load_acts(connection, audit_id, rater))
        if not undone:
            return None
        taken = _load_entry(connection, undone[-1])
        return _insert_entry(
            connection, audit_id, _repeat_rating(taken.rating, taken.rating, RatingAction.REDO, taken.id)
        )

    return _write(db, job)


def undo_redo_stacks(acts: Iterable[tuple[int, RatingAction, int | None]]) -> tuple[list[int], list[int]]:
    """What can be undone and what can be redone, the next one last, as ids of rows.

    Args:
        acts: a rater's rows, oldest first, as (id, act, the row that an undo or redo is of).
    """
    done: list[int] = []
    undone: list[int] = []
    for row_id, act, of in acts:
        if act in UNDOABLE:
            done.append(row_id)
            undone.clear()
        elif act is RatingAction.UNDO and of in done:
            done.remove(of)
            undone.append(of)
        elif act is RatingAction.REDO and of in undone:
            undone.remove(of)
            done.append(of)
    return done, undone


def load_entries(
    db: Database, audit_id: int, *, rater: str | None = None, key: ConflictKey | None = None
) -> list[RatingEntry]:
    """Rows of an audit's log, oldest first; of one rater, or of one conflict."""
    table = table_of(RatingRow)
    query = select(table).where(table.c.audit_id == audit_id).order_by(table.c.id)
    if rater is not None:
        query = query.where(table.c.rater == rater)
    if key is not None:
        query = query.where(_is_conflict(table.c, key))
    with db.read() as connection:
        return [_parse_entry(row) for row in connection.execute(query).mappings()]


def find_disclosed_elsewhere(db: Database, audit_id: int, key: ConflictKey, rater: str) -> str:
    """What a rater knows of a conflict from others on its cell that they decided or asked to see, as `Rating.shown`."""
    with db.read() as connection:
        return _find_disclosed_elsewhere(connection, audit_id, key, rater)


def discloses_conflict(columns: Any) -> ColumnElement[bool]:
    """Rows by which their rater was shown a conflict: it was decided, or asked to be seen. No undo makes it unseen."""
    return or_(columns.decision != Decision.SKIP.value, columns.act == RatingAction.REVEAL.value)


def load_raters(db: Database, audit_id: int) -> list[str]:
    """Who has rated in an audit, in order of name."""
    column = table_of(RatingRow).c.rater
    query = select(column).where(table_of(RatingRow).c.audit_id == audit_id).distinct().order_by(column)
    with db.read() as connection:
        return list(connection.execute(query).scalars())


def _write(db: Database, job: Job[T]) -> T:
    try:
        return db.write(job)
    except DBAPIError as error:
        raise StorageError(f"not saved: {error.orig}.", "Nothing was changed; try again.") from None
    except StorageError as error:
        raise type(error)(f"not saved: {error.message}", error.how_to_fix) from None


# --- inside a transaction ---------------------------------------------------------------------------------------


def _apply_change(
    previous: Rating | None, key: ConflictKey, content: RatedContent, rater: str, change: RatingChange
) -> Rating:
    previous = previous or _empty_rating(key, content, rater)
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
    )


def _empty_rating(key: ConflictKey, content: RatedContent, rater: str) -> Rating:
    """A rater who has said nothing yet."""
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


def _repeat_rating(rating: Rating, reference: Rating, act: RatingAction, row_id: int) -> Rating:
    return replace(
        rating,
        act=act,
        of=row_id,
        decided_at=datetime.now(UTC),
        shown=reference.shown,
        swapped=reference.swapped,
        duration_s=None,
    )


def _insert_entry(connection: Connection, audit_id: int, rating: Rating) -> RatingEntry:
    values = asdict(rating)
    country, topic = values.pop("cell")
    values |= {"decided_at": rating.decided_at.isoformat(timespec="milliseconds")}
    row = {"audit_id": audit_id, "country": country, "topic": topic, **values}
    return RatingEntry(insert_rating(connection, row), rating)


def _load_rated_content(connection: Connection, audit_id: int, key: ConflictKey) -> RatedContent | None:
    c = table_of(ConflictRow).c
    row = connection.execute(
        select(*(c[name] for name in RATED_COLUMNS)).where(c.audit_id == audit_id, _is_conflict(c, key))
    )
    found = row.one_or_none()
    return None if found is None else RatedContent(*found)


def _find_disclosed_elsewhere(connection: Connection, audit_id: int, key: ConflictKey, rater: str) -> str:
    c, conflict = table_of(RatingRow).c, table_of(ConflictRow).c
    cell = (c.country == key.country, c.topic == key.topic)
    query = select(c.left, c.right).where(
        c.audit_id == audit_id, *cell, c.rater == rater, discloses_conflict(c), not_(_is_conflict(c, key))
    )
    sides = {side for row in connection.execute(query.distinct()) for side in row}
    if not sides:
        return ""
    if sides & {key.left, key.right}:
        return FULL_DISCLOSURE
    kind = connection.execute(
        select(conflict.kind).where(conflict.audit_id == audit_id, _is_conflict(conflict, key))
    ).scalar()
    return PAIR_DISCLOSURE if kind == ConflictKind.LOGIC.value else CELL_DISCLOSURE


def _load_last_rating(
    connection: Connection,
    audit_id: int,
    key: ConflictKey,
    rater: str,
    content: RatedContent,
    before_id: int | None = None,
) -> Rating | None:
    table = table_of(RatingRow)
    c = table.c
    query = select(table).where(c.audit_id == audit_id, _is_conflict(c, key), c.rater == rater)
    query = query.where(
        *(c[name].is_not_distinct_from(value) for name, value in zip(RATED_COLUMNS, content, strict=True))
    )
    if before_id is not None:
        query = query.where(c.id < before_id)
    row = connection.execute(query.order_by(c.id.desc()).limit(1)).mappings().one_or_none()
    return None if row is None else _parse_entry(row).rating


def _load_acts(connection: Connection, audit_id: int, rater: str) -> list[tuple[int, RatingAction, int | None]]:
    c = table_of(RatingRow).c
    query = select(c.id, c.act, c.of).where(c.audit_id == audit_id, c.rater == rater).order_by(c.id)
    return [(row_id, RatingAction(act), of) for row_id, act, of in connection.execute(query)]


def _load_entry(connection: Connection, row_id: int) -> RatingEntry:
    table = table_of(RatingRow)
    return _parse_entry(connection.execute(select(table).where(table.c.id == row_id)).mappings().one())


def _is_conflict(columns: Any, key: ConflictKey) -> ColumnElement[bool]:
    return and_(*(columns[name] == part for name, part in zip(CONFLICT_KEY_COLUMNS, key, strict=True)))


def _parse_entry(row: RowMapping) -> RatingEntry:
    values = {f.name: row[f.name] for f in fields(Rating) if f.name != "cell"}
    values |= {"decision": Decision(row["decision"]), "act": RatingAction(row["act"]), "flagged": bool(row["flagged"])}
    values["decided_at"] = datetime.fromisoformat(row["decided_at"])
    return RatingEntry(row["id"], Rating(cell=Cell(row["country"], row["topic"]), **values))
