"""The review queue: an audit's conflicts as one rater sees them, and their status after review, by SQL."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import sqlalchemy as sa
from sqlalchemy.sql.selectable import CTE, FromClause

from auditor.domain import Conflict, ConflictKind, Decision, Rating, RatingAction
from auditor.storage.conflict_status import (
    CONFLICT_KEY_COLUMNS,
    RATED_COLUMNS,
    UNSETTLED,
    ConflictEffect,
    ConflictKey,
    ConflictStatus,
    QueueFilter,
    QueueRow,
    QueueSort,
    count_pair_wins,
    effect_size,
)
from auditor.storage.database import Database
from auditor.storage.ledger import MAX_KEYS_PER_QUERY
from auditor.storage.rating_log import discloses_conflict, resolves_conflict
from auditor.storage.row_classes import conversion_of, table_of

KEYS_PARAMETER = "keys"
MAX_GAP = 2.0
"""Gap between two answers that are not scores: the largest possible one."""
RESOLVING_DECISIONS = tuple(decision for decision in Decision if decision.resolves_conflict)


class ConflictQuery:
    """The conflicts of an audit, joined with a summary of people's ratings and with one rater's own.

    Attributes:
        conflict: the table of conflicts.
        from_clause: what queries select from.
        key_columns: columns of a conflict's key.
        in_audit: condition that selects the audit.
        n_raters: number of people who decided a conflict.
        n_direct_raters: number of them whose decision does not follow from that on another conflict of the cell.
        status: the conflict's `ConflictStatus`.
    """

    def __init__(
        self, audit_id: int, rater: str, unblinded: bool, *, selected_only: bool = False, with_effect: bool = False
    ) -> None:
        """Build the expressions.

        Args:
            audit_id: the audit's id.
            rater: whose queue it is.
            unblinded: whether nothing is hidden from the rater.
            selected_only: whether to restrict the query to the conflicts that are bound to `keys` on execution.
            with_effect: whether to join what `QueueSort.EFFECT` sorts by, which takes longer.
        """
        self._selected_only = selected_only
        self.conflict = conflict = table_of(Conflict)
        self._ratings = ratings = select_current_ratings(audit_id, selected_only=selected_only)
        self._rating_summary = rating_summary = summarize_ratings(ratings, rater)
        self._decided_counts = {name: _count_decided(rating_summary, name) for name in ("topic", "country")}
        self.from_clause: FromClause = conflict.outerjoin(rating_summary, is_same_conflict(conflict, rating_summary))
        for name, decided_counts in self._decided_counts.items():
            self.from_clause = self.from_clause.outerjoin(decided_counts, decided_counts.c[name] == conflict.c[name])
        self.key_columns = [conflict.c[name] for name in CONFLICT_KEY_COLUMNS]
        self.in_audit = conflict.c.audit_id == audit_id
        self.n_raters = sa.func.coalesce(rating_summary.c.raters, 0)
        self.n_direct_raters = sa.func.coalesce(rating_summary.c.direct_raters, 0)
        self.status = conflict_status(conflict, rating_summary)
        self.pair_wins: CTE | None = None
        if with_effect:
            majority, joined = majority_decision(rating_summary), is_same_conflict(conflict, rating_summary)
            self.pair_wins = wins = count_pair_wins(
                conflict, rating_summary, self.status, majority, self.in_audit, joined
            )
            is_same_pair = sa.and_(wins.c.left == conflict.c.left, wins.c.right == conflict.c.right)
            self.from_clause = self.from_clause.outerjoin(wins, is_same_pair)
        skipped = _select_skipped(audit_id, rater, selected_only=selected_only)
        # Joined: SQLite would look through all skips for each conflict.
        self.from_clause = self.from_clause.outerjoin(skipped, _has_content_of(conflict, skipped))
        self._is_skipped = skipped.c.country.is_not(None)
        self._is_cell_known = _knows_cell(audit_id, rater, conflict)
        self._gap = sa.func.abs(conflict.c.score_left - conflict.c.score_right)
        self._distance = sa.func.coalesce(self._gap, MAX_GAP)
        rating = table_of(Rating)
        is_revealed = sa.and_(rating.c.audit_id == audit_id, rating.c.rater == rater, discloses_conflict(rating.c))
        key = [rating.c[name] for name in CONFLICT_KEY_COLUMNS]
        query = sa.select(*key).where(is_revealed).distinct()
        revealed = (query.where(_is_selected(key)) if selected_only else query).cte("seen")
        self._is_revealed = (
            sa.literal(True)
            if unblinded
            else sa.select(sa.literal(1)).where(is_same_conflict(conflict, revealed)).exists()
        )

    @property
    def rows_query(self) -> sa.Select[Any]:
        """Query of the columns of `QueueRow`."""
        summary = self._rating_summary.c
        columns = [self.conflict.c[name] for name in (*CONFLICT_KEY_COLUMNS, "kind", *RATED_COLUMNS)]
        rating_columns = [summary.decision, summary.score, summary.flagged, summary.note]
        raters = self.n_raters.label("raters"), self.n_direct_raters.label("direct_raters")
        query = sa.select(*columns, self.status.label("standing"), *raters, *rating_columns)
        query = query.add_columns(self._is_revealed.label("seen"), self._is_skipped.label("skipped"))
        query = query.select_from(self.from_clause).where(self.in_audit)
        return query.where(_is_selected(self.key_columns)) if self._selected_only else query

    def conditions(self, queue_filter: QueueFilter) -> list[sa.ColumnElement[bool]]:
        """Build the conditions of a filter; a conflict is shown if it meets all of them."""
        c, summary = self.conflict.c, self._rating_summary.c
        conditions: list[sa.ColumnElement[bool]] = [self.in_audit]
        for column, values in ((c.kind, queue_filter.kinds), (self.status, queue_filter.states)):
            if values:
                conditions.append(column.in_([str(value) for value in values]))
        for column, names in ((c.country, queue_filter.countries), (c.topic, queue_filter.topics)):
            if names:
                conditions.append(sa.or_(*(_contains_text(column, name) for name in names)))
        if queue_filter.models:
            author_matches = [
                _contains_text(column, name) for name in queue_filter.models for column in (c.left, c.right)
            ]
            conditions += [sa.or_(*author_matches), self._is_revealed]
        if queue_filter.raters:
            ratings = self._ratings.alias()
            conditions.append(
                sa.select(sa.literal(1))
                .where(
                    is_same_conflict(self.conflict, ratings),
                    ratings.c.rater.in_(queue_filter.raters),
                    resolves_conflict(ratings.c.decision),
                )
                .exists()
            )
        for word in queue_filter.words:
            conditions.append(
                sa.or_(
                    _contains_text(c.country, word),
                    _contains_text(c.topic, word),
                    _contains_text(sa.func.coalesce(summary.note, ""), word),
                )
            )
        if queue_filter.min_gap is not None:
            conditions.append(self._gap >= queue_filter.min_gap)
        if queue_filter.max_gap is not None:
            conditions.append(self._gap <= queue_filter.max_gap)
        if queue_filter.flagged is not None:
            conditions.append(sa.func.coalesce(summary.flagged, 0) == int(queue_filter.flagged))
        if queue_filter.todo is not None:
            conditions.append(self._needs_rating if queue_filter.todo else ~self._needs_rating)
        return conditions

    @property
    def _needs_rating(self) -> sa.ColumnElement[bool]:
        """Condition: the rater has not decided the conflict, and it is open, disputed or decided by one other rater.

        A decision that follows from that on another conflict needs no second rater: agreement does not count it.
        """
        decision = self._rating_summary.c.decision
        undecided = sa.or_(decision.is_(None), sa.not_(resolves_conflict(decision)))
        needs = self.status.in_(UNSETTLED)
        return sa.and_(undecided, sa.or_(needs, sa.and_(self.n_raters == 1, self.n_direct_raters == 1)))

    def order_by(self, queue_filter: QueueFilter) -> list[sa.ColumnElement[Any]]:
        """Build the sort expressions of a filter's order; ties are broken by the conflict's key."""
        c = self.conflict.c
        keys_by_sort: dict[QueueSort, list[tuple[sa.ColumnElement[Any], bool]]] = {
            QueueSort.INFORMATIVENESS: [(self._rating_rank, False), (self._informativeness, True)],
            QueueSort.EFFECT: [
                (self._rating_rank, False),
                *([(effect_size(self.pair_wins), True)] if self.pair_wins is not None else []),
                (self._distance, True),
            ],
            QueueSort.GAP: [(self._distance, True)],
            QueueSort.COUNTRY: [(c.country, False)],
            QueueSort.TOPIC: [(c.topic, False)],
            QueueSort.KIND: [(c.kind, False), (self._distance, True)],
            QueueSort.STATE: [(self.status, False), (self._distance, True)],
        }
        sort_keys = [
            (column, is_descending != queue_filter.reverse) for column, is_descending in keys_by_sort[queue_filter.sort]
        ]
        return [column.desc() if is_descending else column.asc() for column, is_descending in sort_keys] + [
            column.asc() for column in self.key_columns
        ]

    @property
    def _rating_rank(self) -> sa.ColumnElement[int]:
        """0 for conflicts that the rater has not rated, 1 for those they skipped, 2 for those they decided."""
        is_decided = resolves_conflict(self._rating_summary.c.decision)
        return sa.case((is_decided, 2), (self._is_skipped, 1), else_=0)

    @property
    def _informativeness(self) -> sa.ColumnElement[Any]:
        """How much a decision on the conflict would teach: a product of the factors below, all at least 0.

        gap / 2; 1 + evenness of the judges' split, in [1, 2]; novelty of topic and country to the rater,
        1 / (1 + decided topic) + 1 / (1 + decided country); 2 if people disagree; 1/2 if the gap is within the samples'
        noise, since the next run may not show it; 1/2 if the rater was shown another conflict on the cell, since the
        decision would not be blind.
        """
        c = self.conflict.c
        votes = c.votes_left + c.votes_right
        evenness = sa.case((votes == 0, 1.0), else_=1.0 - sa.func.abs(c.votes_left - c.votes_right) / (votes * 1.0))
        novelties = [
            1.0 / (1.0 + sa.func.coalesce(decided_counts.c.n, 0)) for decided_counts in self._decided_counts.values()
        ]
        dispute_factor = sa.case((self.status == ConflictStatus.DISPUTED.value, 2.0), else_=1.0)
        noise_factor = sa.case((c.within_noise.is_(True), 0.5), else_=1.0)
        unblinded_factor = sa.case((self._is_cell_known, 0.5), else_=1.0)
        return (
            self._distance
            / 2.0
            * (1.0 + evenness)
            * (novelties[0] + novelties[1])
            * dispute_factor
            * noise_factor
            * unblinded_factor
        )


def _count_decided(rating_summary: CTE, column_name: str) -> CTE:
    """Count the conflicts that the rater has decided by topic or country, whichever `column_name` names."""
    column = rating_summary.c[column_name]
    query = sa.select(column, sa.func.count().label("n")).where(resolves_conflict(rating_summary.c.decision))
    return query.group_by(column).cte(f"known_{column_name}")


def is_same_conflict(first: FromClause, second: FromClause) -> sa.ColumnElement[bool]:
    """Condition: both rows belong to the same conflict."""
    return sa.and_(*(first.c[name] == second.c[name] for name in CONFLICT_KEY_COLUMNS))


def _has_content_of(conflict: FromClause, ratings: FromClause) -> sa.ColumnElement[bool]:
    """Condition: a row of ratings is about the conflict, with the scores or answers that it has now."""
    contents = (ratings.c[name].is_not_distinct_from(conflict.c[name]) for name in RATED_COLUMNS)
    return sa.and_(is_same_conflict(conflict, ratings), *contents)


def _select_skipped(audit_id: int, rater: str, *, selected_only: bool) -> CTE:
    """Select the rater's skips in force: no decision followed, and they were not undone.

    A note, a flag or a look at the evidence is no rating: after one, a conflict is skipped or unrated as before.
    """
    rating = table_of(Rating)
    is_by_rater = sa.and_(rating.c.audit_id == audit_id, rating.c.rater == rater)
    last_references = sa.select(sa.func.max(rating.c.id)).where(is_by_rater, rating.c.of.is_not(None))
    is_undo = sa.and_(rating.c.id.in_(last_references.group_by(rating.c.of)), rating.c.act == RatingAction.UNDO.value)
    is_decision = rating.c.act.in_([RatingAction.DECIDE.value, RatingAction.FOLLOW.value])
    is_in_force = rating.c.id.not_in(sa.select(rating.c.of).where(is_undo))
    content_columns = [rating.c[name] for name in (*CONFLICT_KEY_COLUMNS, *RATED_COLUMNS)]
    last_ids = sa.select(sa.func.max(rating.c.id)).where(is_by_rater, is_decision, is_in_force)
    if selected_only:
        last_ids = last_ids.where(_is_selected(content_columns[: len(CONFLICT_KEY_COLUMNS)]))
    is_last = rating.c.id.in_(last_ids.group_by(*content_columns))
    query = sa.select(*content_columns).where(is_last, sa.not_(resolves_conflict(rating.c.decision)))
    return query.distinct().cte("skips")  # without DISTINCT, SQLite computes all skips again for each conflict


def select_current_ratings(audit_id: int, *, selected_only: bool = False) -> CTE:
    """Select the valid ratings: each rater's last on each conflict, about the scores that the conflict has now."""
    rating, conflict = table_of(Rating), table_of(Conflict)
    content_columns = [rating.c[name] for name in (*CONFLICT_KEY_COLUMNS, "rater", *RATED_COLUMNS)]
    last_ids_query = (
        sa.select(sa.func.max(rating.c.id).label("id")).where(rating.c.audit_id == audit_id).group_by(*content_columns)
    )
    if selected_only:
        last_ids_query = last_ids_query.where(_is_selected(content_columns[: len(CONFLICT_KEY_COLUMNS)]))
    last_ids = last_ids_query.cte("last")
    is_current = sa.and_(conflict.c.audit_id == audit_id, _has_content_of(conflict, rating))
    source = last_ids.join(rating, rating.c.id == last_ids.c.id).join(conflict, is_current)
    return sa.select(rating).select_from(source).cte("said")


def majority_decision(rating_summary: CTE) -> sa.ColumnElement[str | None]:
    """The decision of more than half of the people who decided a conflict; NULL if there is none."""
    n_raters = rating_summary.c.raters
    return sa.case(
        *((rating_summary.c[f"n_{decision}"] * 2 > n_raters, decision.value) for decision in RESOLVING_DECISIONS)
    )


def conflict_status(conflict: FromClause, rating_summary: CTE) -> sa.ColumnElement[str]:
    """The `ConflictStatus` of a conflict, by people's decision if any decided, else by the judges' votes.

    People resolve a conflict by a strict majority of those who decided it; without one they disagree. Their decision
    overrides the judges'. This is the one place of that rule: queue, report and overview read its result.
    """
    return sa.case(
        (majority_decision(rating_summary).is_not(None), ConflictStatus.PERSON.value),
        (rating_summary.c.raters > 0, ConflictStatus.DISPUTED.value),
        else_=conflict.c.state,  # a `ConflictState`, whose values are those of the status
    )


def summarize_ratings(ratings: CTE, rater: str = "") -> CTE:
    """One row per conflict: number of people who decided, number of each decision, and the given rater's own rating."""
    key = [ratings.c[name] for name in CONFLICT_KEY_COLUMNS]
    is_by_rater = ratings.c.rater == rater
    rater_columns = [
        sa.func.max(sa.case((is_by_rater, ratings.c[name]))).label(name) for name in ("decision", "score", "note")
    ]
    flagged = sa.func.max(sa.case((sa.and_(is_by_rater, ratings.c.flagged), 1), else_=0)).label("flagged")
    decision_counts = [_count_decisions(ratings, decision).label(f"n_{decision}") for decision in RESOLVING_DECISIONS]
    has_decided = resolves_conflict(ratings.c.decision)
    n_raters = _count_if(has_decided).label("raters")
    n_direct_raters = _count_if(sa.and_(has_decided, ratings.c.follows.is_(None))).label("direct_raters")
    return (
        sa.select(*key, n_raters, n_direct_raters, *decision_counts, *rater_columns, flagged)
        .group_by(*key)
        .cte("people")
    )


def _count_decisions(ratings: CTE, decision: Decision) -> sa.ColumnElement[int]:
    """Number of people who decided so; of custom scores with opposite signs, the more frequent sign counts alone.

    One person calls acceptable what the other calls unacceptable: they agree on neither. A score of 0 goes with both.
    """
    has_decided = ratings.c.decision == decision.value
    if not decision.needs_score:
        return _count_if(has_decided)
    score = sa.func.coalesce(ratings.c.score, 0.0)
    n_not_below, n_not_above = (_count_if(sa.and_(has_decided, condition)) for condition in (score >= 0, score <= 0))
    return sa.case((n_not_below > n_not_above, n_not_below), else_=n_not_above)


def _count_if(condition: sa.ColumnElement[bool]) -> sa.ColumnElement[int]:
    return sa.func.sum(sa.case((condition, 1), else_=0))


def _knows_cell(audit_id: int, rater: str, conflict: FromClause) -> sa.ColumnElement[bool]:
    """Condition: any conflict on the same cell was revealed to the rater."""
    rating = table_of(Rating)
    same_cell = [rating.c[name] == conflict.c[name] for name in ("country", "topic")]
    is_revealed = sa.and_(rating.c.audit_id == audit_id, rating.c.rater == rater, discloses_conflict(rating.c))
    return sa.select(sa.literal(1)).where(is_revealed, *same_cell).exists()


def _is_selected(key_columns: Sequence[sa.ColumnElement[str]]) -> sa.ColumnElement[bool]:
    """Condition: the conflict is one of those that are bound to the parameter `keys` on execution."""
    return sa.tuple_(*key_columns).in_(sa.bindparam(KEYS_PARAMETER, expanding=True))


def _contains_text(column: sa.ColumnElement[str], word: str) -> sa.ColumnElement[bool]:
    return sa.func.lower(column).contains(word.lower(), autoescape=True)


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
        sa.select(*columns, conflict_status(table, summary), majority_decision(summary))
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


def _load_ratings_by_conflict(connection: sa.Connection, current_ratings: CTE) -> dict[tuple[str, ...], list[Rating]]:
    """Load the current ratings that decide a conflict, by conflict and in order of their raters."""
    c = current_ratings.c
    conversion = conversion_of(Rating)
    columns = [c[name] for name in conversion.column_names]
    query = sa.select(*columns).where(resolves_conflict(c.decision)).order_by(c.rater)
    ratings_by_conflict: defaultdict[tuple[str, ...], list[Rating]] = defaultdict(list)
    for rating in map(conversion.to_record, connection.execute(query)):
        ratings_by_conflict[*rating.cell, rating.left, rating.right].append(rating)
    return ratings_by_conflict


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
        query = sa.select(sa.func.count()).select_from(conflict_query.from_clause)
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
            sa.select(*conflict_query.key_columns, conflict_query.n_raters)
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
        query = sa.select(wins.c.lead, wins.c.n_unsettled).where(wins.c.left == key.left, wins.c.right == key.right)
        with self._db.read() as connection:
            row = connection.execute(query).one_or_none()
        return ConflictEffect.NONE if row is None else ConflictEffect.from_counts(int(row[0]), int(row[1]))

    def count_by_status(self) -> dict[ConflictStatus, int]:
        """Count the audit's conflicts by status."""
        conflict_query = ConflictQuery(self._audit_id, self._rater, self._unblinded)
        statuses = (
            sa.select(conflict_query.status.label("standing"))
            .select_from(conflict_query.from_clause)
            .where(conflict_query.in_audit)
            .subquery()
        )
        query = sa.select(statuses.c.standing, sa.func.count()).group_by(statuses.c.standing)
        with self._db.read() as connection:
            n_by_status = {ConflictStatus(name): int(n) for name, n in connection.execute(query)}
        return {status: n_by_status.get(status, 0) for status in ConflictStatus}

    def count_open(self) -> int:
        """Count the audit's conflicts that wait for people."""
        return sum(map(self.count_by_status().__getitem__, UNSETTLED))


def _parse_queue_row(row: sa.RowMapping) -> QueueRow:
    """Convert a row of `ConflictQuery.rows_query` to a `QueueRow`."""
    decision = None if row["decision"] is None else Decision(row["decision"])
    return QueueRow(
        key=ConflictKey(*(row[name] for name in CONFLICT_KEY_COLUMNS)),
        kind=ConflictKind(row["kind"]),
        score_left=row["score_left"],
        score_right=row["score_right"],
        status=ConflictStatus(row["standing"]),
        n_raters=row["raters"],
        n_direct_raters=row["direct_raters"],
        decision=decision,
        score=row["score"],
        flagged=bool(row["flagged"]),
        note=row["note"] or "",
        revealed=bool(row["seen"]),
        answer_left=row["answer_left"],
        answer_right=row["answer_right"],
        skipped=bool(row["skipped"]),
    )
