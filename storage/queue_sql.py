"""The queue of conflicts in SQL: conflicts joined with what people, and one of them, say of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, bindparam, case, func, literal, or_, select, tuple_
from sqlalchemy.sql.selectable import CTE, FromClause

from auditor.domain import ConflictState, Decision
from auditor.storage.conflict_status import CONFLICT_KEY_COLUMNS, RATED_COLUMNS, ConflictStatus, QueueFilter, QueueSort
from auditor.storage.database import table_of
from auditor.storage.rating_log import discloses_conflict
from auditor.storage.tables import ConflictRow, RatingRow

KEYS_PARAMETER = "keys"
MAX_GAP = 2.0
"""How far apart two answers are that are no scores: they are wholly different."""
RESOLVING_DECISIONS = tuple(decision for decision in Decision if decision.resolves_conflict)


class ConflictQuery:
    """The conflicts of an audit joined with what people, and one of them, say of each.

    Args:
        open_book: nothing is hidden from the rater.
        some: only the conflicts given as the parameter `keys` when the query is run.
    """

    def __init__(self, audit_id: int, rater: str, unblinded: bool, *, selected_only: bool = False) -> None:
        self._selected_only = selected_only
        self.conflict = conflict = table_of(ConflictRow)
        self._ratings = said = current_ratings(audit_id, selected_only=selected_only)
        self._rating_summary = people = _summarize_ratings(said, rater)
        self._decided_counts = {name: _count_decided(people, name) for name in ("topic", "country")}
        self.from_clause: FromClause = conflict.outerjoin(people, is_same_conflict(conflict, people))
        for name, known in self._decided_counts.items():
            self.from_clause = self.from_clause.outerjoin(known, known.c[name] == conflict.c[name])
        self.key_columns = [conflict.c[name] for name in CONFLICT_KEY_COLUMNS]
        self.in_audit = conflict.c.audit_id == audit_id
        self.n_raters = func.coalesce(people.c.raters, 0)
        agreed = or_(*(people.c[f"n_{decision}"] * 2 > people.c.raters for decision in RESOLVING_DECISIONS))
        self.status = case(
            (agreed, ConflictStatus.PERSON.value),
            (people.c.raters > 0, ConflictStatus.DISPUTED.value),
            (conflict.c.state == ConflictState.MAJORITY.value, ConflictStatus.MAJORITY.value),
            else_=ConflictStatus.OPEN.value,
        )
        self._is_cell_known = _knows_cell(audit_id, rater, conflict)
        self._gap = func.abs(conflict.c.score_left - conflict.c.score_right)
        self._distance = func.coalesce(self._gap, MAX_GAP)
        seen = _revealed_conflicts(audit_id, rater, selected_only=selected_only)
        self._is_revealed = (
            literal(True) if unblinded else select(literal(1)).where(is_same_conflict(conflict, seen)).exists()
        )

    @property
    def rows_query(self) -> Select[Any]:
        """What a `QueueRow` is made of."""
        mine = self._rating_summary.c
        columns = [self.conflict.c[name] for name in (*CONFLICT_KEY_COLUMNS, "kind", *RATED_COLUMNS)]
        said = [mine.decision, mine.score, mine.flagged, mine.note]
        query = select(*columns, self.status.label("standing"), self.n_raters.label("raters"), *said)
        query = query.add_columns(self._is_revealed.label("seen")).select_from(self.from_clause).where(self.in_audit)
        return query.where(_is_selected(self.key_columns)) if self._selected_only else query

    def conditions(self, queue_filter: QueueFilter) -> list[ColumnElement[bool]]:
        c, mine = self.conflict.c, self._rating_summary.c
        found: list[ColumnElement[bool]] = [self.in_audit]
        for column, values in ((c.kind, queue_filter.kinds), (self.status, queue_filter.states)):
            if values:
                found.append(column.in_([str(v) for v in values]))
        for column, names in ((c.country, queue_filter.countries), (c.topic, queue_filter.topics)):
            if names:
                found.append(or_(*(_contains_text(column, name) for name in names)))
        if queue_filter.models:
            either = [_contains_text(column, name) for name in queue_filter.models for column in (c.left, c.right)]
            found += [or_(*either), self._is_revealed]
        if queue_filter.raters:
            by = self._ratings.alias()
            found.append(
                select(literal(1))
                .where(
                    is_same_conflict(self.conflict, by),
                    by.c.rater.in_(queue_filter.raters),
                    by.c.decision != Decision.SKIP.value,
                )
                .exists()
            )
        for word in queue_filter.words:
            found.append(
                or_(
                    _contains_text(c.country, word),
                    _contains_text(c.topic, word),
                    _contains_text(func.coalesce(mine.note, ""), word),
                )
            )
        if queue_filter.min_gap is not None:
            found.append(self._gap >= queue_filter.min_gap)
        if queue_filter.max_gap is not None:
            found.append(self._gap <= queue_filter.max_gap)
        if queue_filter.flagged is not None:
            found.append(func.coalesce(mine.flagged, 0) == int(queue_filter.flagged))
        if queue_filter.todo is not None:
            found.append(self._needs_rating if queue_filter.todo else ~self._needs_rating)
        return found

    @property
    def _needs_rating(self) -> ColumnElement[bool]:
        """Undecided by the rater, and open, disputed, or decided by one other (the caller knows which it wants)."""
        undecided = func.coalesce(self._rating_summary.c.decision, Decision.SKIP.value) == Decision.SKIP.value
        needs = self.status.in_([ConflictStatus.OPEN.value, ConflictStatus.DISPUTED.value])
        return and_(undecided, or_(needs, self.n_raters == 1))

    def order_by(self, queue_filter: QueueFilter) -> list[ColumnElement[Any]]:
        c = self.conflict.c
        by: dict[QueueSort, list[tuple[ColumnElement[Any], bool]]] = {
            QueueSort.INFORMATIVENESS: [(self._rating_rank, False), (self._informativeness, True)],
            QueueSort.GAP: [(self._distance, True)],
            QueueSort.COUNTRY: [(c.country, False)],
            QueueSort.TOPIC: [(c.topic, False)],
            QueueSort.KIND: [(c.kind, False), (self._distance, True)],
            QueueSort.STATE: [(self.status, False), (self._distance, True)],
        }
        keys = [(column, down != queue_filter.reverse) for column, down in by[queue_filter.sort]]
        return [column.desc() if down else column.asc() for column, down in keys] + [
            column.asc() for column in self.key_columns
        ]

    @property
    def _rating_rank(self) -> ColumnElement[int]:
        """What the rater has not looked at comes first, then what they skipped, then what they decided."""
        mine = self._rating_summary.c.decision
        return case((mine.is_(None), 0), (mine == Decision.SKIP.value, 1), else_=2)

    @property
    def _informativeness(self) -> ColumnElement[Any]:
        """gap / 2 x (1 + how evenly the judges split) x how new topic and country are to the rater x 2 if disputed.

        Half of that where the gap is within the samples' own noise: the next run may not have it. Half of it too where
        the rater has opened another conflict on the cell, so that a decision would not be blind.
        """
        c = self.conflict.c
        votes = c.votes_left + c.votes_right
        even = case((votes == 0, 1.0), else_=1.0 - func.abs(c.votes_left - c.votes_right) / (votes * 1.0))
        new = [1.0 / (1.0 + func.coalesce(known.c.n, 0)) for known in self._decided_counts.values()]
        weight = case((self.status == ConflictStatus.DISPUTED.value, 2.0), else_=1.0)
        firm = case((c.within_noise.is_(True), 0.5), else_=1.0)
        blind = case((self._is_cell_known, 0.5), else_=1.0)
        return self._distance / 2.0 * (1.0 + even) * (new[0] + new[1]) * weight * firm * blind


def _count_decided(rating_summary: CTE, column_name: str) -> CTE:
    """How many conflicts of each topic, or country, the rater has decided."""
    column = rating_summary.c[column_name]
    query = select(column, func.count().label("n")).where(rating_summary.c.decision != Decision.SKIP.value)
    return query.group_by(column).cte(f"known_{column_name}")


def is_same_conflict(first: FromClause, second: FromClause) -> ColumnElement[bool]:
    """Both rows are of one conflict."""
    return and_(*(first.c[name] == second.c[name] for name in CONFLICT_KEY_COLUMNS))


def current_ratings(audit_id: int, *, selected_only: bool = False) -> CTE:
    """The rows of ratings that hold: each rater's last on each conflict, about the scores that it has now."""
    rating, conflict = table_of(RatingRow), table_of(ConflictRow)
    about = [rating.c[name] for name in (*CONFLICT_KEY_COLUMNS, "rater", *RATED_COLUMNS)]
    last = select(func.max(rating.c.id).label("id")).where(rating.c.audit_id == audit_id).group_by(*about)
    if selected_only:
        last = last.where(_is_selected(about[: len(CONFLICT_KEY_COLUMNS)]))
    ids = last.cte("last")
    still = and_(
        conflict.c.audit_id == audit_id,
        is_same_conflict(rating, conflict),
        *(rating.c[name].is_not_distinct_from(conflict.c[name]) for name in RATED_COLUMNS),
    )
    source = ids.join(rating, rating.c.id == ids.c.id).join(conflict, still)
    return select(rating).select_from(source).cte("said")


def _summarize_ratings(ratings: CTE, rater: str) -> CTE:
    """One row a conflict: how many decided, how many said what, and what the one rater says."""
    key = [ratings.c[name] for name in CONFLICT_KEY_COLUMNS]
    is_mine = ratings.c.rater == rater
    mine = [func.max(case((is_mine, ratings.c[name]))).label(name) for name in ("decision", "score", "note")]
    flagged = func.max(case((and_(is_mine, ratings.c.flagged), 1), else_=0)).label("flagged")
    tallies = [
        _count_if(ratings.c.decision == decision.value).label(f"n_{decision}") for decision in RESOLVING_DECISIONS
    ]
    raters = _count_if(ratings.c.decision != Decision.SKIP.value).label("raters")
    return select(*key, raters, *tallies, *mine, flagged).group_by(*key).cte("people")


def _count_if(condition: ColumnElement[bool]) -> ColumnElement[int]:
    return func.sum(case((condition, 1), else_=0))


def _revealed_conflicts(audit_id: int, rater: str, *, selected_only: bool) -> CTE:
    """Conflicts that the rater decided or asked to see."""
    rating = table_of(RatingRow)
    where = and_(rating.c.audit_id == audit_id, rating.c.rater == rater, discloses_conflict(rating.c))
    key = [rating.c[name] for name in CONFLICT_KEY_COLUMNS]
    query = select(*key).where(where).distinct()
    return (query.where(_is_selected(key)) if selected_only else query).cte("seen")


def _knows_cell(audit_id: int, rater: str, conflict: FromClause) -> ColumnElement[bool]:
    """Whether the rater decided, or asked to see, any conflict on the same cell."""
    rating = table_of(RatingRow)
    cell = [rating.c[name] == conflict.c[name] for name in ("country", "topic")]
    mine = and_(rating.c.audit_id == audit_id, rating.c.rater == rater, discloses_conflict(rating.c))
    return select(literal(1)).where(mine, *cell).exists()


def _is_selected(key_columns: Sequence[ColumnElement[str]]) -> ColumnElement[bool]:
    """The conflict is one of those that are given as the parameter `keys` when the query is run."""
    return tuple_(*key_columns).in_(bindparam(KEYS_PARAMETER, expanding=True))


def _contains_text(column: ColumnElement[str], word: str) -> ColumnElement[bool]:
    return func.lower(column).contains(word.lower(), autoescape=True)
