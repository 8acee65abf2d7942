"""The queue of conflicts in SQL: conflicts joined with what people, and one of them, say of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, bindparam, case, func, literal, or_, select, tuple_
from sqlalchemy.sql.selectable import CTE, FromClause

from auditor.domain import ConflictState, Decision
from auditor.storage.conflict_status import ABOUT, PARTS, QueueFilter, Sort, Standing
from auditor.storage.database import table_of
from auditor.storage.rating_log import opened
from auditor.storage.tables import ConflictRow, RatingRow

KEYS = "keys"
MOST_APART = 2.0
"""How far apart two answers are that are no scores: they are wholly different."""
SETTLING = tuple(decision for decision in Decision if decision.settles)


class View:
    """The conflicts of an audit joined with what people, and one of them, say of each.

    Args:
        open_book: nothing is hidden from the rater.
        some: only the conflicts given as the parameter `keys` when the query is run.
    """

    def __init__(self, audit_id: int, rater: str, open_book: bool, *, some: bool = False) -> None:
        self._some = some
        self.conflict = conflict = table_of(ConflictRow)
        self._said = said = holding(audit_id, some=some)
        self._people = people = _people(said, rater)
        self._known = {name: _known(people, name) for name in ("topic", "country")}
        self.source: FromClause = conflict.outerjoin(people, same(conflict, people))
        for name, known in self._known.items():
            self.source = self.source.outerjoin(known, known.c[name] == conflict.c[name])
        self.key = [conflict.c[name] for name in PARTS]
        self.in_audit = conflict.c.audit_id == audit_id
        self.raters = func.coalesce(people.c.raters, 0)
        agreed = or_(*(people.c[f"n_{decision}"] * 2 > people.c.raters for decision in SETTLING))
        self.standing = case(
            (agreed, Standing.PERSON.value),
            (people.c.raters > 0, Standing.DISPUTED.value),
            (conflict.c.state == ConflictState.MAJORITY.value, Standing.MAJORITY.value),
            else_=Standing.OPEN.value,
        )
        self._stale = _is_known(audit_id, rater, conflict)
        self._gap = func.abs(conflict.c.score_left - conflict.c.score_right)
        self._distance = func.coalesce(self._gap, MOST_APART)
        seen = _seen(audit_id, rater, some=some)
        self._seen = literal(True) if open_book else select(literal(1)).where(same(conflict, seen)).exists()

    @property
    def lines(self) -> Select[Any]:
        """What a `QueueRow` is made of."""
        mine = self._people.c
        columns = [self.conflict.c[name] for name in (*PARTS, "kind", *ABOUT)]
        said = [mine.decision, mine.score, mine.flagged, mine.note]
        query = select(*columns, self.standing.label("standing"), self.raters.label("raters"), *said)
        query = query.add_columns(self._seen.label("seen")).select_from(self.source).where(self.in_audit)
        return query.where(_among(self.key)) if self._some else query

    def conditions(self, wanted: QueueFilter) -> list[ColumnElement[bool]]:
        c, mine = self.conflict.c, self._people.c
        found: list[ColumnElement[bool]] = [self.in_audit]
        for column, values in ((c.kind, wanted.kinds), (self.standing, wanted.states)):
            if values:
                found.append(column.in_([str(v) for v in values]))
        for column, names in ((c.country, wanted.countries), (c.topic, wanted.topics)):
            if names:
                found.append(or_(*(_has(column, name) for name in names)))
        if wanted.models:
            either = [_has(column, name) for name in wanted.models for column in (c.left, c.right)]
            found += [or_(*either), self._seen]
        if wanted.raters:
            by = self._said.alias()
            found.append(
                select(literal(1))
                .where(same(self.conflict, by), by.c.rater.in_(wanted.raters), by.c.decision != Decision.SKIP.value)
                .exists()
            )
        for word in wanted.words:
            found.append(or_(_has(c.country, word), _has(c.topic, word), _has(func.coalesce(mine.note, ""), word)))
        if wanted.least_gap is not None:
            found.append(self._gap >= wanted.least_gap)
        if wanted.most_gap is not None:
            found.append(self._gap <= wanted.most_gap)
        if wanted.flagged is not None:
            found.append(func.coalesce(mine.flagged, 0) == int(wanted.flagged))
        if wanted.todo is not None:
            found.append(self._todo if wanted.todo else ~self._todo)
        return found

    @property
    def _todo(self) -> ColumnElement[bool]:
        """Undecided by the rater, and open, disputed, or decided by one other (the caller knows which it wants)."""
        undecided = func.coalesce(self._people.c.decision, Decision.SKIP.value) == Decision.SKIP.value
        needs = self.standing.in_([Standing.OPEN.value, Standing.DISPUTED.value])
        return and_(undecided, or_(needs, self.raters == 1))

    def order(self, wanted: QueueFilter) -> list[ColumnElement[Any]]:
        c = self.conflict.c
        by: dict[Sort, list[tuple[ColumnElement[Any], bool]]] = {
            Sort.TEACHES: [(self._rank, False), (self._teaches, True)],
            Sort.GAP: [(self._distance, True)],
            Sort.COUNTRY: [(c.country, False)],
            Sort.TOPIC: [(c.topic, False)],
            Sort.KIND: [(c.kind, False), (self._distance, True)],
            Sort.STATE: [(self.standing, False), (self._distance, True)],
        }
        keys = [(column, down != wanted.reverse) for column, down in by[wanted.sort]]
        return [column.desc() if down else column.asc() for column, down in keys] + [
            column.asc() for column in self.key
        ]

    @property
    def _rank(self) -> ColumnElement[int]:
        """What the rater has not looked at comes first, then what they skipped, then what they decided."""
        mine = self._people.c.decision
        return case((mine.is_(None), 0), (mine == Decision.SKIP.value, 1), else_=2)

    @property
    def _teaches(self) -> ColumnElement[Any]:
        """gap / 2 x (1 + how evenly the judges split) x how new topic and country are to the rater x 2 if disputed.

        Half of that where the gap is within the samples' own noise: the next run may not have it. Half of it too where
        the rater has opened another conflict on the cell, so that a decision would not be blind.
        """
        c = self.conflict.c
        votes = c.votes_left + c.votes_right
        even = case((votes == 0, 1.0), else_=1.0 - func.abs(c.votes_left - c.votes_right) / (votes * 1.0))
        new = [1.0 / (1.0 + func.coalesce(known.c.n, 0)) for known in self._known.values()]
        weight = case((self.standing == Standing.DISPUTED.value, 2.0), else_=1.0)
        firm = case((c.within_noise.is_(True), 0.5), else_=1.0)
        blind = case((self._stale, 0.5), else_=1.0)
        return self._distance / 2.0 * (1.0 + even) * (new[0] + new[1]) * weight * firm * blind


def _known(people: CTE, name: str) -> CTE:
    """How many conflicts of each topic, or country, the rater has decided."""
    column = people.c[name]
    query = select(column, func.count().label("n")).where(people.c.decision != Decision.SKIP.value)
    return query.group_by(column).cte(f"known_{name}")


def same(one: FromClause, other: FromClause) -> ColumnElement[bool]:
    """Both rows are of one conflict."""
    return and_(*(one.c[name] == other.c[name] for name in PARTS))


def holding(audit_id: int, *, some: bool = False) -> CTE:
    """The rows of ratings that hold: each rater's last on each conflict, about the scores that it has now."""
    rating, conflict = table_of(RatingRow), table_of(ConflictRow)
    about = [rating.c[name] for name in (*PARTS, "rater", *ABOUT)]
    last = select(func.max(rating.c.id).label("id")).where(rating.c.audit_id == audit_id).group_by(*about)
    if some:
        last = last.where(_among(about[: len(PARTS)]))
    ids = last.cte("last")
    still = and_(
        conflict.c.audit_id == audit_id,
        same(rating, conflict),
        *(rating.c[name].is_not_distinct_from(conflict.c[name]) for name in ABOUT),
    )
    source = ids.join(rating, rating.c.id == ids.c.id).join(conflict, still)
    return select(rating).select_from(source).cte("said")


def _people(said: CTE, rater: str) -> CTE:
    """One row a conflict: how many decided, how many said what, and what the one rater says."""
    key = [said.c[name] for name in PARTS]
    is_mine = said.c.rater == rater
    mine = [func.max(case((is_mine, said.c[name]))).label(name) for name in ("decision", "score", "note")]
    flagged = func.max(case((and_(is_mine, said.c.flagged), 1), else_=0)).label("flagged")
    tallies = [_count(said.c.decision == decision.value).label(f"n_{decision}") for decision in SETTLING]
    raters = _count(said.c.decision != Decision.SKIP.value).label("raters")
    return select(*key, raters, *tallies, *mine, flagged).group_by(*key).cte("people")


def _count(what: ColumnElement[bool]) -> ColumnElement[int]:
    return func.sum(case((what, 1), else_=0))


def _seen(audit_id: int, rater: str, *, some: bool) -> CTE:
    """Conflicts that the rater decided or asked to see."""
    rating = table_of(RatingRow)
    where = and_(rating.c.audit_id == audit_id, rating.c.rater == rater, opened(rating.c))
    key = [rating.c[name] for name in PARTS]
    query = select(*key).where(where).distinct()
    return (query.where(_among(key)) if some else query).cte("seen")


def _is_known(audit_id: int, rater: str, conflict: FromClause) -> ColumnElement[bool]:
    """Whether the rater decided, or asked to see, any conflict on the same cell."""
    rating = table_of(RatingRow)
    cell = [rating.c[name] == conflict.c[name] for name in ("country", "topic")]
    mine = and_(rating.c.audit_id == audit_id, rating.c.rater == rater, opened(rating.c))
    return select(literal(1)).where(mine, *cell).exists()


def _among(key: Sequence[ColumnElement[str]]) -> ColumnElement[bool]:
    """The conflict is one of those that are given as the parameter `keys` when the query is run."""
    return tuple_(*key).in_(bindparam(KEYS, expanding=True))


def _has(column: ColumnElement[str], word: str) -> ColumnElement[bool]:
    return func.lower(column).contains(word.lower(), autoescape=True)
