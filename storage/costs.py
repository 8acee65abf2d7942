"""What an audit's calls cost, in requests, tokens and US dollars, counted in the database."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Integer,
    Select,
    Subquery,
    Table,
    and_,
    case,
    cast,
    func,
    literal,
    or_,
    select,
    union_all,
)
from sqlalchemy.sql.base import ReadOnlyColumnCollection

from auditor.domain import Purpose
from auditor.storage.count_queries import count_if, fetch_rows
from auditor.storage.database import Database, table_of
from auditor.storage.tables import (
    AlteredTraceVerdictRow,
    AnswerRow,
    AttemptRow,
    CallRow,
    ComparisonRow,
    ContestRow,
    DispatchRow,
    GuessRow,
    RestatementRow,
    SentencePairRow,
    TraceRow,
    VerdictRow,
)

ColumnCollection = ReadOnlyColumnCollection[str, Any]


class CallCounts(NamedTuple):
    """Calls of one model for one purpose whose answers cost the same.

    Attributes:
        name: the model's name in the audit.
        purpose: as `auditor.domain.Purpose` names it.
        calls: distinct calls, answered or not.
        cost_usd: of each, all its requests included; None where it is unknown, or where nothing was charged.
        answers: those with a recorded answer.
        prompt_tokens, completion_tokens: of all requests that say them.
        untold: recorded answers that do not say their tokens.
        served_model, fingerprint, altered: as `auditor.domain.Answer` has them.
        first_at, last_at: when the earliest and the latest of the answers were recorded.
        cached_tokens: of the prompts' tokens, those that the provider had kept.
        told_tokens: the prompts' tokens of the answers that say how many it had kept.
        attempts: requests that went out for them, whether or not an answer came of it.
        unpriced: calls with a request that was answered and whose price is unknown.
        estimated_usd: the part of what each cost that is an estimate.
        estimated: requests whose cost is an estimate.
        finish_reason: as `auditor.domain.Answer` has it.
        is_current: whether the audit rests on the answers; else they are of calls that it made before its
            configuration changed, or that a stopped run has not read yet.
    """

    name: str
    purpose: str
    cost_usd: float | None
    calls: int
    answers: int
    prompt_tokens: int
    completion_tokens: int
    answers_without_usage: int
    served_model: str | None = None
    fingerprint: str | None = None
    altered: str | None = None
    first_at: str | None = None
    last_at: str | None = None
    cached_tokens: int = 0
    prompt_tokens_with_cache_count: int = 0
    attempts: int = 0
    unpriced: int = 0
    estimated_usd: float = 0.0
    estimated_attempts: int = 0
    finish_reason: str | None = None
    is_current: bool = True


class AuditCost(NamedTuple):
    """US dollars as far as prices are known, None where none is; and the calls whose price is not."""

    usd: float | None
    unpriced: int


class MeanAnswerLength(NamedTuple):
    """How long a model's recorded answers to one purpose are, whichever audit asked.

    Attributes:
        model: provider and model.
        n: answers that say their tokens.
        tokens: their mean.
    """

    model: str
    purpose: str
    n: int
    mean_tokens: float


class UnreturnedCallCount(NamedTuple):
    """Requests that went out for one model and purpose."""

    name: str
    purpose: str
    calls: int


def count_calls(db: Database, audit_id: int) -> list[CallCounts]:
    """Calls of an audit by model, purpose, price and what served them, in order."""
    calls, answer = _join_attempts(_audit_calls(audit_id)), table_of(AnswerRow)
    c, a = calls.c, answer.c
    group = (c.name, c.purpose, _call_cost(c, a))
    served = (a.served_model, a.fingerprint, a.altered)
    rest = (c.estimated_usd, a.finish_reason, c.is_current)
    query = (
        select(
            *group,
            func.count(),
            func.count(a.key),
            func.coalesce(func.sum(case((c.charged == 0, a.prompt_tokens), else_=c.prompt_tokens)), 0),
            func.coalesce(func.sum(case((c.charged == 0, a.completion_tokens), else_=c.completion_tokens)), 0),
            count_if(a.key.is_not(None) & a.completion_tokens.is_(None)),
            *served,
            func.min(a.created_at),
            func.max(a.created_at),
            func.coalesce(func.sum(a.cached_tokens), 0),
            func.coalesce(func.sum(case((a.cached_tokens.is_not(None), a.prompt_tokens), else_=0)), 0),
            cast(func.sum(c.attempts), Integer),
            count_if(_is_unpriced(c, a)),
            c.estimated_usd,
            cast(func.sum(c.estimated), Integer),
            a.finish_reason,
            c.is_current,
        )
        .select_from(calls.outerjoin(answer, a.key == c.key))
        .group_by(*group, *served, *rest)
        .order_by(*(column.nulls_first() for column in (*group, *served, *rest)))
    )
    return [tally._replace(is_current=bool(tally.is_current)) for tally in fetch_rows(db, CallCounts._make, query)]


def sum_audit_cost(db: Database, audit_id: int) -> AuditCost:
    """What all requests of an audit cost, each call counted once whoever gave its answer and whatever for."""
    calls, answer = _join_attempts(select(_audit_calls(audit_id).c.key).distinct().subquery()), table_of(AnswerRow)
    c, a = calls.c, answer.c
    usd = _call_cost(c, a)
    query = (
        select(usd, func.count(), count_if(_is_unpriced(c, a)))
        .select_from(calls.outerjoin(answer, a.key == c.key))
        .group_by(usd)
    )
    with db.read() as connection:
        costs = [(usd, int(n), int(unpriced)) for usd, n, unpriced in connection.execute(query)]
    known = [usd * n for usd, n, _ in costs if usd is not None]
    return AuditCost(math.fsum(known) if known else None, sum(unpriced for *_, unpriced in costs))


def _join_attempts(calls: Subquery) -> Subquery:
    """Calls with the sums over their requests; `charged` counts those that were charged one by one.

    Args:
        calls: with a column `key`; its other columns are kept.
    """
    t = table_of(AttemptRow).c
    return (
        select(
            *calls.c,
            func.count(t.id).label("attempts"),
            func.count(t.estimated).label("charged"),
            count_if(t.estimated.is_not(None) & t.cost_usd.is_(None)).label("unknown"),
            func.sum(t.cost_usd).label("usd"),
            func.coalesce(func.sum(case((t.estimated.is_(True), t.cost_usd))), 0.0).label("estimated_usd"),
            count_if(t.estimated.is_(True)).label("estimated"),
            func.sum(t.prompt_tokens).label("prompt_tokens"),
            func.sum(t.completion_tokens).label("completion_tokens"),
        )
        .select_from(calls.outerjoin(table_of(AttemptRow), t.key == calls.c.key))
        .group_by(*calls.c)
        .subquery()
    )


def _call_cost(call: ColumnCollection, answer: ColumnCollection) -> ColumnElement[float | None]:
    """A call's cost: of its requests, or of its answer where an older program did not charge them one by one.

    NULL where nothing known was charged: no price is known, or every request failed before it cost anything.
    """
    is_free = (call.unknown == 0) & answer.key.is_not(None)
    return case((call.charged == 0, answer.cost_usd), ((call.usd > 0) | is_free, call.usd))


def _is_unpriced(call: ColumnCollection, answer: ColumnCollection) -> ColumnElement[bool]:
    """Whether a call was answered at a price that is not known."""
    return or_(call.unknown > 0, and_(call.charged == 0, answer.key.is_not(None), answer.cost_usd.is_(None)))


def mean_answer_lengths(db: Database) -> list[MeanAnswerLength]:
    """Lengths of all recorded answers by model and purpose, in order."""
    c = table_of(AnswerRow).c
    n = func.count(c.completion_tokens)
    query = select(c.model, c.purpose, n, func.sum(c.completion_tokens)).group_by(c.model, c.purpose).having(n > 0)
    with db.read() as connection:
        rows = connection.execute(query.order_by(c.model, c.purpose))
        return [MeanAnswerLength(model, purpose, n, total / n) for model, purpose, n, total in rows]


def count_unreturned_calls(db: Database, audit_id: int) -> list[UnreturnedCallCount]:
    """Calls that went out for an audit and never came back, by model and purpose, in order; some may be in flight."""
    t = table_of(DispatchRow)
    group = (t.c.name, t.c.purpose)
    query = select(*group, func.count()).where(t.c.audit_id == audit_id).group_by(*group).order_by(*group)
    return fetch_rows(db, UnreturnedCallCount._make, query)


def _audit_calls(audit_id: int) -> Subquery:
    """The distinct calls behind all that an audit has asked: name, purpose, key.

    They come in order of their keys, for which SQLite sorts once, and finds their answers in neighbouring places.
    """
    every = union_all(
        _calls_of_table(table_of(TraceRow), "model", Purpose.DIRECT, audit_id),
        _calls_of_table(table_of(TraceRow), "model", Purpose.DIRECT, audit_id, key_column="repair_key"),
        _calls_of_table(table_of(SentencePairRow), "model", Purpose.LOGPROB, audit_id),
        _calls_of_table(table_of(SentencePairRow), "model", Purpose.LOGPROB, audit_id, key_column="key_swapped"),
        _calls_of_table(table_of(VerdictRow), "judge", Purpose.REVIEW, audit_id),
        _calls_of_table(table_of(VerdictRow), "judge", Purpose.REVIEW, audit_id, key_column="again_key"),
        _calls_of_table(table_of(ComparisonRow), "judge", Purpose.LOGIC, audit_id),
        _calls_of_table(table_of(AlteredTraceVerdictRow), "judge", Purpose.REVIEW, audit_id),
        _calls_of_table(table_of(GuessRow), "judge", Purpose.GUESS, audit_id),
        _calls_of_table(table_of(RestatementRow), "rewriter", Purpose.REWRITE, audit_id),
        _calls_of_table(table_of(ContestRow), "judge", Purpose.CONTEST, audit_id),
        _noted_calls(table_of(CallRow), audit_id),
        _attempted_calls(audit_id),
    ).subquery()
    c = every.c
    current = func.max(c.is_current).label("is_current")
    return select(c.name, c.purpose, c.key, current).group_by(c.key, c.name, c.purpose).subquery()


def _calls_of_table(
    table: Table, name_column: str, purpose: Purpose, audit_id: int, key_column: str = "key"
) -> Select[Any]:
    columns = (
        table.c[name_column].label("name"),
        literal(purpose.value).label("purpose"),
        table.c[key_column].label("key"),
    )
    return select(*columns, literal(1).label("is_current")).where(
        table.c.audit_id == audit_id, table.c[key_column].is_not(None)
    )


def _noted_calls(table: Table, audit_id: int) -> Select[Any]:
    return select(table.c.name, table.c.purpose, table.c.key, literal(1)).where(table.c.audit_id == audit_id)


def _attempted_calls(audit_id: int) -> Select[Any]:
    """Calls that went out for an audit, whether or not anything of it rests on them."""
    t = table_of(AttemptRow).c
    return select(t.name, t.purpose, t.key, literal(0)).where(t.audit_id == audit_id, t.name.is_not(None))
