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

from auditor.domain import Act, Cell, ConflictKind, Decision, Rating
from auditor.errors import StorageError
from auditor.storage.conflict_status import ABOUT, PARTS, ConflictKey, Stand, stand_of
from auditor.storage.database import Database, table_of
from auditor.storage.results import insert_rating
from auditor.storage.tables import ConflictRow, RatingRow
from auditor.storage.writer import Job, T

UNDOABLE = frozenset({Act.DECIDE, Act.NOTE, Act.FLAG})
"""What has been seen cannot be unseen, so a reveal is not among them."""
SHOWN = "authors,survey,verdicts"
"""What a rater sees of a conflict once it is decided, beside the cell, the reasoning and the scores."""
SHOWN_OF_CELL, SHOWN_OF_PAIR = "survey", "verdicts"
"""What is left of that for a conflict of other sides on the same cell, or on the same pair of a set's items."""


class Entry(NamedTuple):
    """One row of the log, with its id."""

    id: int
    rating: Rating

    @property
    def key(self) -> ConflictKey:
        return ConflictKey(*self.rating.cell, self.rating.left, self.rating.right)


@dataclass(frozen=True, slots=True)
class Saying:
    """What a person does to one conflict; None leaves a part as it was.

    Attributes:
        score: given with the decision `score`; any other decision clears it.
        shown, swapped, duration_s: see `Rating`.
    """

    act: Act
    decision: Decision | None = None
    score: float | None = None
    note: str | None = None
    flagged: bool | None = None
    shown: str = ""
    swapped: bool = False
    duration_s: float | None = None


def append(db: Database, audit_id: int, key: ConflictKey, rater: str, saying: Saying) -> Entry:
    """Append what a person says of a conflict; durable when this returns.

    A conflict's cell, and often one of its sides, is another conflict's too. What the rater was shown there is known
    here as well, and is what was shown where the conflict itself has shown nothing.

    Raises:
        StorageError: the conflict is not there any more; the audit was run anew.
    """

    def job(connection: Connection) -> Entry:
        scores = _scores(connection, audit_id, key)
        if scores is None:
            raise StorageError("this conflict is gone: the audit was run anew.", "Go back to the queue.")
        before = _last(connection, audit_id, key, rater, scores)
        shown = saying.shown or _shown_elsewhere(connection, audit_id, key, rater)
        return _insert(connection, audit_id, _next(before, key, scores, rater, replace(saying, shown=shown)))

    return _write(db, job)


def undo(db: Database, audit_id: int, rater: str) -> Entry | None:
    """Take back the rater's last act in an audit by a row that says what was said before; None: nothing is left."""

    def job(connection: Connection) -> Entry | None:
        done, _ = stacks(_acts(connection, audit_id, rater))
        if not done:
            return None
        taken = _entry(connection, done[-1])
        scores = stand_of(taken.rating)
        before = _last(connection, audit_id, taken.key, rater, scores, earlier_than=taken.id)
        return _insert(
            connection,
            audit_id,
            _again(before or _nothing(taken.key, scores, rater), taken.rating, Act.UNDO, taken.id),
        )

    return _write(db, job)


def redo(db: Database, audit_id: int, rater: str) -> Entry | None:
    """Bring back what was last undone, unless something was done since; None: nothing is left."""

    def job(connection: Connection) -> Entry | None:
        _, undone = stacks(_acts(connection, audit_id, rater))
        if not undone:
            return None
        taken = _entry(connection, undone[-1])
        return _insert(connection, audit_id, _again(taken.rating, taken.rating, Act.REDO, taken.id))

    return _write(db, job)


def stacks(acts: Iterable[tuple[int, Act, int | None]]) -> tuple[list[int], list[int]]:
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
        elif act is Act.UNDO and of in done:
            done.remove(of)
            undone.append(of)
        elif act is Act.REDO and of in undone:
            undone.remove(of)
            done.append(of)
    return done, undone


def entries(db: Database, audit_id: int, *, rater: str | None = None, key: ConflictKey | None = None) -> list[Entry]:
    """Rows of an audit's log, oldest first; of one rater, or of one conflict."""
    table = table_of(RatingRow)
    query = select(table).where(table.c.audit_id == audit_id).order_by(table.c.id)
    if rater is not None:
        query = query.where(table.c.rater == rater)
    if key is not None:
        query = query.where(_is(table.c, key))
    with db.read() as connection:
        return [_read(row) for row in connection.execute(query).mappings()]


def shown_elsewhere(db: Database, audit_id: int, key: ConflictKey, rater: str) -> str:
    """What a rater knows of a conflict from others on its cell that they decided or asked to see, as `Rating.shown`."""
    with db.read() as connection:
        return _shown_elsewhere(connection, audit_id, key, rater)


def opened(columns: Any) -> ColumnElement[bool]:
    """Rows by which their rater was shown a conflict: it was decided, or asked to be seen. No undo makes it unseen."""
    return or_(columns.decision != Decision.SKIP.value, columns.act == Act.REVEAL.value)


def raters(db: Database, audit_id: int) -> list[str]:
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
        raise type(error)(f"not saved: {error.message}", error.mend) from None


# --- inside a transaction ---------------------------------------------------------------------------------------


def _next(old: Rating | None, key: ConflictKey, scores: Stand, rater: str, saying: Saying) -> Rating:
    old = old or _nothing(key, scores, rater)
    decides = saying.decision is not None
    return replace(
        old,
        decision=saying.decision or old.decision,
        score=saying.score if decides else old.score,
        note=old.note if saying.note is None else saying.note,
        flagged=old.flagged if saying.flagged is None else saying.flagged,
        decided_at=datetime.now(UTC),
        act=saying.act,
        of=None,
        shown=saying.shown,
        swapped=saying.swapped,
        duration_s=saying.duration_s,
    )


def _nothing(key: ConflictKey, scores: Stand, rater: str) -> Rating:
    """A rater who has said nothing yet."""
    cell = Cell(key.country, key.topic)
    return Rating(
        cell,
        key.left,
        key.right,
        scores.score_left,
        scores.score_right,
        rater,
        Decision.SKIP,
        datetime.now(UTC),
        answer_left=scores.answer_left,
        answer_right=scores.answer_right,
    )


def _again(said: Rating, taken: Rating, act: Act, of: int) -> Rating:
    return replace(
        said,
        act=act,
        of=of,
        decided_at=datetime.now(UTC),
        shown=taken.shown,
        swapped=taken.swapped,
        duration_s=None,
    )


def _insert(connection: Connection, audit_id: int, rating: Rating) -> Entry:
    values = asdict(rating)
    country, topic = values.pop("cell")
    values |= {"decided_at": rating.decided_at.isoformat(timespec="milliseconds")}
    row = {"audit_id": audit_id, "country": country, "topic": topic, **values}
    return Entry(insert_rating(connection, row), rating)


def _scores(connection: Connection, audit_id: int, key: ConflictKey) -> Stand | None:
    c = table_of(ConflictRow).c
    row = connection.execute(select(*(c[name] for name in ABOUT)).where(c.audit_id == audit_id, _is(c, key)))
    found = row.one_or_none()
    return None if found is None else Stand(*found)


def _shown_elsewhere(connection: Connection, audit_id: int, key: ConflictKey, rater: str) -> str:
    c, conflict = table_of(RatingRow).c, table_of(ConflictRow).c
    cell = (c.country == key.country, c.topic == key.topic)
    query = select(c.left, c.right).where(c.audit_id == audit_id, *cell, c.rater == rater, opened(c), not_(_is(c, key)))
    sides = {side for row in connection.execute(query.distinct()) for side in row}
    if not sides:
        return ""
    if sides & {key.left, key.right}:
        return SHOWN
    kind = connection.execute(select(conflict.kind).where(conflict.audit_id == audit_id, _is(conflict, key))).scalar()
    return SHOWN_OF_PAIR if kind == ConflictKind.LOGIC.value else SHOWN_OF_CELL


def _last(
    connection: Connection,
    audit_id: int,
    key: ConflictKey,
    rater: str,
    scores: Stand,
    earlier_than: int | None = None,
) -> Rating | None:
    table = table_of(RatingRow)
    c = table.c
    query = select(table).where(c.audit_id == audit_id, _is(c, key), c.rater == rater)
    query = query.where(*(c[name].is_not_distinct_from(value) for name, value in zip(ABOUT, scores, strict=True)))
    if earlier_than is not None:
        query = query.where(c.id < earlier_than)
    row = connection.execute(query.order_by(c.id.desc()).limit(1)).mappings().one_or_none()
    return None if row is None else _read(row).rating


def _acts(connection: Connection, audit_id: int, rater: str) -> list[tuple[int, Act, int | None]]:
    c = table_of(RatingRow).c
    query = select(c.id, c.act, c.of).where(c.audit_id == audit_id, c.rater == rater).order_by(c.id)
    return [(row_id, Act(act), of) for row_id, act, of in connection.execute(query)]


def _entry(connection: Connection, row_id: int) -> Entry:
    table = table_of(RatingRow)
    return _read(connection.execute(select(table).where(table.c.id == row_id)).mappings().one())


def _is(columns: Any, key: ConflictKey) -> ColumnElement[bool]:
    return and_(*(columns[name] == part for name, part in zip(PARTS, key, strict=True)))


def _read(row: RowMapping) -> Entry:
    values = {f.name: row[f.name] for f in fields(Rating) if f.name != "cell"}
    values |= {"decision": Decision(row["decision"]), "act": Act(row["act"]), "flagged": bool(row["flagged"])}
    values["decided_at"] = datetime.fromisoformat(row["decided_at"])
    return Entry(row["id"], Rating(cell=Cell(row["country"], row["topic"]), **values))
