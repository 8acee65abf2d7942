"""Requests, tokens and cost in US dollars of an audit's calls, computed by SQL queries."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.sql.base import ReadOnlyColumnCollection

from auditor.domain.records import CallKey, RowPolicy
from auditor.domain.terms import PROBE_PURPOSE_PREFIX
from auditor.storage import hash_chain
from auditor.storage.batches import load_unread_batches
from auditor.storage.call_records import Dispatch, NotedCall, StoredAnswer, StoredAttempt
from auditor.storage.count_queries import count_if, fetch_rows
from auditor.storage.database import Database
from auditor.storage.row_classes import insert_new, table_of
from auditor.storage.schema import list_record_classes

ColumnCollection = ReadOnlyColumnCollection[str, Any]


class AnswerVersion(NamedTuple):
    """What answers of one model that were served alike have in common."""

    name: str
    """Name of the model or judge in the audit."""
    served_model: str | None = None
    """Model name that the provider reports; null where it reports none."""
    fingerprint: str | None = None
    """Identifier that the provider reports for the serving configuration."""
    altered: str | None = None
    """Parameters that were not sent as configured: `name` if dropped, `name=value` if changed. Null where unknown."""
    form: str | None = None
    """Form in which structured answers were requested, read from the requests as sent: `json_schema`, `json_object`,
    `tool` or `text`; null for free texts, and where it is unknown."""


class CallSums(NamedTuple):
    """Sums over calls."""

    calls: int = 0
    """Distinct calls, answered or not."""
    attempts: int = 0
    """Requests that went out, retries included, with or without an answer."""
    answers: int = 0
    """Calls with a recorded answer."""
    prompt_tokens: int = 0
    """Of the requests whose usage is known."""
    completion_tokens: int = 0
    """Of the requests whose usage is known."""
    answers_without_usage: int = 0
    """Answers without token counts."""
    cached_tokens: int = 0
    """Prompt tokens served from the provider's cache."""
    prompt_tokens_with_cache_count: int = 0
    """Prompt tokens of the answers that report cached tokens: the denominator of the cache hit rate."""
    reasoning_tokens: int = 0
    """Completion tokens that were hidden reasoning, of the answers that report it."""
    answers_with_reasoning_count: int = 0
    """Answers that report reasoning tokens."""
    unpriced: int = 0
    """Answered calls with an unknown price."""
    estimated_attempts: int = 0
    """Requests whose cost is an estimate."""

    @classmethod
    def total(cls, sums: Iterable[CallSums]) -> CallSums:
        """The sums over several groups of calls."""
        return cls(*map(sum, zip(cls(), *sums, strict=True)))

    @property
    def known_cached_tokens(self) -> int | None:
        """Prompt tokens served from the provider's cache; null where no answer reports them."""
        return self.cached_tokens if self.prompt_tokens_with_cache_count else None

    @property
    def known_reasoning_tokens(self) -> int | None:
        """Completion tokens that were hidden reasoning, of the answers that report it; null where none does."""
        return self.reasoning_tokens if self.answers_with_reasoning_count else None


class CallCounts(NamedTuple):
    """Counts over the calls of one model for one purpose that cost the same and were served alike.

    Attributes:
        purpose: a value of `auditor.domain.Purpose`.
        cost_usd: cost of one call, all its requests included; None if it is unknown or nothing was charged.
        estimated_usd: the estimated part of `cost_usd`.
        finish_reason: see `auditor.domain.Answer`.
        is_current: True if the audit's results use these calls. False for calls from before its configuration
            changed, and for those of an interrupted run that were not processed yet.
        first_at, last_at: when the earliest and the latest of the answers were recorded.
        counted_once: number of these calls when a call that serves several models or purposes is counted once; 0 if
            the counts are not for the cost.
        unpriced_once: of these, those that were answered at an unknown price.
    """

    version: AnswerVersion
    purpose: str
    cost_usd: float | None
    sums: CallSums
    estimated_usd: float = 0.0
    finish_reason: str | None = None
    is_current: bool = True
    first_at: str | None = None
    last_at: str | None = None
    counted_once: int = 0
    unpriced_once: int = 0

    @property
    def name(self) -> str:
        """The model's name in the audit."""
        return self.version.name


class AuditCost(NamedTuple):
    """Cost of an audit.

    Attributes:
        usd: sum of the known costs in US dollars; None if none is known.
        unpriced: number of calls that were answered at an unknown price.
    """

    usd: float | None
    unpriced: int


class Spending(NamedTuple):
    """What the requests of an audit may have cost, in US dollars, as its budget counts them.

    Attributes:
        usd: all of it.
        unreturned_usd: the part for requests without a recorded end, such as those in flight when a run was killed,
            which may have been charged: each as the most expensive one to its model and for its purpose; in a batch
            whose results were not read, as the largest possible one.
    """

    usd: float
    unreturned_usd: float


class MeanAnswerLength(NamedTuple):
    """Mean length of a model's recorded answers for one purpose, over all audits of the database.

    Attributes:
        model: provider and model.
        purpose: a value of `auditor.domain.Purpose`.
        n: number of answers whose token count is known.
        mean_tokens: mean number of completion tokens of these.
    """

    model: str
    purpose: str
    n: int
    mean_tokens: float


class UnreturnedCallCount(NamedTuple):
    """Number of calls of one model and purpose that were sent and never returned."""

    name: str
    purpose: str
    calls: int


def count_calls(db: Database, audit_id: int, *, for_cost: bool = False) -> list[CallCounts]:
    """Count an audit's calls by model, purpose, cost and what served them, in this order.

    Args:
        for_cost: whether to fill `counted_once` and `unpriced_once`, which takes a seventh of the time.
    """
    audit_calls = select_audit_calls(audit_id)
    if for_cost:  # a call that serves several models or purposes lies in several rows, of which the first counts
        is_first = sa.func.row_number().over(partition_by=audit_calls.c.key) == 1
        audit_calls = sa.select(*audit_calls.c, is_first.label("is_first")).subquery()
    calls, answers = _join_attempts(audit_calls), table_of(StoredAnswer)
    call, answer = calls.c, answers.c
    group = (call.name, call.purpose, _call_cost(call, answer))
    version = (answer.served_model, answer.fingerprint, answer.altered, answer.form)
    others = (call.estimated_usd, answer.finish_reason, call.is_current)
    sums: list[sa.ColumnElement[Any]] = [  # in the order of `CallSums`
        sa.func.count(),
        sa.cast(sa.func.sum(call.attempts), sa.Integer),
        sa.func.count(answer.key),
        _sum_or_zero(sa.case((call.charged == 0, answer.prompt_tokens), else_=call.prompt_tokens)),
        _sum_or_zero(sa.case((call.charged == 0, answer.completion_tokens), else_=call.completion_tokens)),
        count_if(answer.key.is_not(None) & answer.completion_tokens.is_(None)),
        _sum_or_zero(answer.cached_tokens),
        _sum_or_zero(sa.case((answer.cached_tokens.is_not(None), answer.prompt_tokens), else_=0)),
        _sum_or_zero(answer.reasoning_tokens),
        sa.func.count(answer.reasoning_tokens),
        count_if(_is_unpriced(call, answer)),
        sa.cast(sa.func.sum(call.estimated), sa.Integer),
    ]
    once: Sequence[sa.ColumnElement[int]] = (sa.literal(0), sa.literal(0))
    if for_cost:
        once = (count_if(call.is_first), count_if(sa.and_(call.is_first, _is_unpriced(call, answer))))
    columns = (*group, *version, *others)
    query = (
        sa.select(*columns, sa.func.min(answer.created_at), sa.func.max(answer.created_at), *once, *sums)
        .select_from(calls.outerjoin(answers, answer.key == call.key))
        .group_by(*columns)
        .order_by(*(column.nulls_first() for column in columns))
    )
    return fetch_rows(db, _read_counts, query)


def _read_counts(row: Iterable[Any]) -> CallCounts:
    """The counts of a row of the query in `count_calls`."""
    name, purpose, cost, served_model, fingerprint, altered, form, estimated_usd, reason, is_current, *others = row
    first_at, last_at, counted_once, unpriced_once, *sums = others
    version = AnswerVersion(name, served_model, fingerprint, altered, form)
    times_and_counts = (first_at, last_at, counted_once, unpriced_once)
    return CallCounts(
        version, purpose, cost, CallSums(*sums), estimated_usd, reason, bool(is_current), *times_and_counts
    )


def _sum_or_zero(column: sa.ColumnElement[Any]) -> Any:
    """The sum of a column of whole numbers; 0 where every value is NULL. PostgreSQL adds up sums as decimals."""
    return sa.cast(sa.func.coalesce(sa.func.sum(column), 0), sa.BigInteger)


def find_largest_costs(db: Database, audit_id: int) -> dict[str, float]:
    """Find the cost of an audit's most expensive request to each model, in US dollars, by the model's name."""
    attempt = table_of(StoredAttempt).c
    query = (
        sa.select(attempt.name, sa.func.max(attempt.cost_usd))
        .where(attempt.audit_id == audit_id)
        .group_by(attempt.name)
    )
    return {name: cost for name, cost in fetch_rows(db, tuple, query) if name is not None and cost is not None}


def sum_spending(
    db: Database,
    audit_id: int,
    max_in_flight: Mapping[str, int] = MappingProxyType({}),
    *,
    token_prices: Mapping[str, Sequence[float]] = MappingProxyType({}),
    collects_batches: bool = False,
) -> Spending:
    """Sum what an audit may have spent itself: answers that other audits of the database asked for are left out.

    Args:
        max_in_flight: by model, how many requests a run had sent at most when it was killed: its other calls without a
            recorded end still waited for their turn. All of them, for models that are left out.
        token_prices: by model, US dollars for a token of the prompt and of the completion, for requests whose cost is
            unknown, such as those in a tier without a listed price.
        collects_batches: whether the results of batches that wait at a provider will be read, and are budgeted then.
    """
    attempt = table_of(StoredAttempt).c
    group = (attempt.name, attempt.purpose)
    query = sa.select(*group, sa.func.sum(attempt.cost_usd), sa.func.max(attempt.cost_usd)).group_by(*group)
    rows = fetch_rows(db, tuple, query.where(attempt.audit_id == audit_id, attempt.cost_usd.is_not(None)))
    largest_by_purpose = {(name, purpose): cost for name, purpose, _, cost in rows}
    largest_by_model = find_largest_costs(db, audit_id)
    largest = max(largest_by_model.values(), default=0.0)  # for a model that has never answered
    dispatch = table_of(Dispatch).c
    columns = (dispatch.run, dispatch.name, dispatch.purpose)
    unreturned = sa.select(*columns, sa.func.count()).where(dispatch.audit_id == audit_id).group_by(*columns)
    costs_by_run = defaultdict[tuple[str, str], list[float]](list)
    for run, name, purpose, n_calls in fetch_rows(db, tuple, unreturned):
        cost = largest_by_purpose.get((name, purpose), largest_by_model.get(name, largest))
        costs_by_run[run, name] += [cost] * n_calls
    unreturned_usd = math.fsum(
        cost
        for (_, name), call_costs in costs_by_run.items()
        for cost in sorted(call_costs, reverse=True)[: max_in_flight.get(name)]
    )
    unreturned_usd += math.fsum(
        batch.usd_per_call * (batch.n_calls - batch.n_waiting * collects_batches)
        for batch in load_unread_batches(db, audit_id)
    )
    tokens = (attempt.name, sa.func.sum(attempt.prompt_tokens), sa.func.sum(attempt.completion_tokens))
    unpriced = sa.select(*tokens).where(attempt.audit_id == audit_id, attempt.cost_usd.is_(None)).group_by(attempt.name)
    unpriced_usd = math.fsum(
        count * price
        for name, *counts in fetch_rows(db, tuple, unpriced)
        for count, price in zip(counts, token_prices.get(name, ()), strict=False)
        if count is not None
    )
    return Spending(math.fsum(total for *_, total, _ in rows) + unpriced_usd + unreturned_usd, unreturned_usd)


class UncountedRequest(NamedTuple):
    """A request of unknown cost without token counts: the model's name, the request, and its parameters as sent."""

    name: str
    request: str
    sent: str


def load_uncounted_requests(db: Database, audit_id: int) -> list[UncountedRequest]:
    """Load an audit's requests whose cost is unknown and whose provider counted no tokens, such as in other tiers."""
    attempt, answer = table_of(StoredAttempt).c, table_of(StoredAnswer).c
    query = sa.select(attempt.name, sa.func.coalesce(answer.request, ""), sa.func.coalesce(answer.sent, ""))
    joined = table_of(StoredAttempt).outerjoin(table_of(StoredAnswer), attempt.key == answer.key)
    is_uncounted = (attempt.cost_usd.is_(None), attempt.prompt_tokens.is_(None), attempt.completion_tokens.is_(None))
    return fetch_rows(
        db, UncountedRequest._make, query.select_from(joined).where(attempt.audit_id == audit_id, *is_uncounted)
    )


def sum_audit_cost(db: Database, audit_id: int) -> AuditCost:
    """Sum the cost of all requests of an audit. A call that serves several models or purposes is counted once."""
    return sum_cost(count_calls(db, audit_id, for_cost=True))


def sum_cost(counts: Iterable[CallCounts]) -> AuditCost:
    """Sum the cost of an audit of which these are all counts, with those for the cost; see `sum_audit_cost`."""
    calls_by_cost, unpriced = Counter[float](), 0
    for count in counts:
        unpriced += count.unpriced_once
        if count.cost_usd is not None:
            calls_by_cost[count.cost_usd] += count.counted_once
    return AuditCost(math.fsum(cost * n for cost, n in calls_by_cost.items()) if calls_by_cost else None, unpriced)


def _join_attempts(calls: sa.Subquery) -> sa.Subquery:
    """Join calls with sums over their requests.

    `charged` counts the requests whose own cost is recorded; it is 0 for calls from before revision 6.

    Args:
        calls: with a column `key`; its other columns are passed through.
    """
    attempt = table_of(StoredAttempt).c
    return (
        sa.select(
            *calls.c,
            sa.func.count(attempt.id).label("attempts"),
            sa.func.count(attempt.estimated).label("charged"),
            count_if(attempt.estimated.is_not(None) & attempt.cost_usd.is_(None)).label("unknown"),
            sa.func.sum(attempt.cost_usd).label("usd"),
            sa.func.coalesce(sa.func.sum(sa.case((attempt.estimated.is_(True), attempt.cost_usd))), 0.0).label(
                "estimated_usd"
            ),
            count_if(attempt.estimated.is_(True)).label("estimated"),
            sa.func.sum(attempt.prompt_tokens).label("prompt_tokens"),
            sa.func.sum(attempt.completion_tokens).label("completion_tokens"),
        )
        .select_from(calls.outerjoin(table_of(StoredAttempt), attempt.key == calls.c.key))
        .group_by(calls.c.key, *calls.c)  # the key first, which few calls share: rows are sorted by fewer comparisons
        .subquery()
    )


def _call_cost(call: ColumnCollection, answer: ColumnCollection) -> sa.ColumnElement[float | None]:
    """Cost of a call: the sum over its requests, or the answer's for calls recorded without a cost per request.

    NULL if no price is known, or if every request failed before it cost anything.
    """
    is_free = (call.unknown == 0) & answer.key.is_not(None)
    return sa.case((call.charged == 0, answer.cost_usd), ((call.usd > 0) | is_free, call.usd))


def _is_unpriced(call: ColumnCollection, answer: ColumnCollection) -> sa.ColumnElement[bool]:
    """Condition: the call was answered at an unknown price."""
    return sa.or_(call.unknown > 0, sa.and_(call.charged == 0, answer.key.is_not(None), answer.cost_usd.is_(None)))


def load_mean_answer_lengths(db: Database) -> list[MeanAnswerLength]:
    """Mean lengths of all recorded answers by model and purpose, in this order."""
    c = table_of(StoredAnswer).c
    n = sa.func.count(c.completion_tokens)
    query = (
        sa.select(c.model, c.purpose, n, sa.func.sum(c.completion_tokens)).group_by(c.model, c.purpose).having(n > 0)
    )
    with db.read() as connection:
        rows = connection.execute(query.order_by(c.model, c.purpose))
        return [MeanAnswerLength(model, purpose, n, n_tokens / n) for model, purpose, n, n_tokens in rows]


def count_unreturned_calls(db: Database, audit_id: int) -> list[UnreturnedCallCount]:
    """Count an audit's calls that were sent and have not returned, by model and purpose; some may be in flight."""
    table = table_of(Dispatch)
    group = (table.c.name, table.c.purpose)
    query = sa.select(*group, sa.func.count()).where(table.c.audit_id == audit_id).group_by(*group).order_by(*group)
    return fetch_rows(db, UnreturnedCallCount._make, query)


def load_call_keys(db: Database, audit_id: int) -> set[str]:
    """Load the keys of all calls of an audit."""
    with db.read() as connection:
        return set(connection.execute(sa.select(select_audit_calls(audit_id).c.key)).scalars())


def select_audit_calls(audit_id: int) -> sa.Subquery:
    """Select an audit's distinct calls: name, purpose, key, and whether its results use them.

    Grouping by key first makes SQLite sort them once, after which their answers lie next to each other.
    """
    all_calls = sa.union_all(
        *_referenced_calls(audit_id),
        _noted_calls(table_of(NotedCall), audit_id),
        _attempted_calls(audit_id),
    ).subquery()
    call = all_calls.c
    is_current = sa.func.max(call.is_current).label("is_current")
    return (
        sa.select(call.name, call.purpose, call.key, is_current).group_by(call.key, call.name, call.purpose).subquery()
    )


def _referenced_calls(audit_id: int) -> Iterator[sa.Select[Any]]:
    """Yield for each column with a `CallKey` the query of its calls: model name, purpose, key."""
    for table in sorted(map(table_of, list_record_classes(RowPolicy.DERIVED)), key=lambda table: table.name):
        for key in table.columns:
            reference: CallKey | None = key.info.get(CallKey)
            if reference is not None:
                purpose = (
                    sa.literal(PROBE_PURPOSE_PREFIX) + table.c.probe
                    if reference.purpose is None
                    else sa.literal(reference.purpose.value)
                )
                columns = (
                    table.c[reference.name_column].label("name"),
                    purpose.label("purpose"),
                    key.label("key"),
                )
                query = sa.select(*columns, sa.literal(1).label("is_current"))
                yield query.where(table.c.audit_id == audit_id, key.is_not(None))


def _noted_calls(table: sa.Table, audit_id: int) -> sa.Select[Any]:
    """Select the calls that a probe has recorded itself (`NotedCall`)."""
    return sa.select(table.c.name, table.c.purpose, table.c.key, sa.literal(1)).where(table.c.audit_id == audit_id)


def _attempted_calls(audit_id: int) -> sa.Select[Any]:
    """Select the calls for which an audit sent requests, whether or not its results use them."""
    attempt = table_of(StoredAttempt).c
    return sa.select(attempt.name, attempt.purpose, attempt.key, sa.literal(0)).where(
        attempt.audit_id == audit_id, attempt.name.is_not(None)
    )


def record_calls(db: Database, audit_id: int, calls: Iterable[tuple[str, str, str]]) -> None:
    """Store calls as (model name, purpose, key), so that their cost is counted."""
    rows = [{"audit_id": audit_id, "name": name, "purpose": purpose, "key": key} for name, purpose, key in calls]

    def job(connection: sa.Connection) -> None:
        with hash_chain.record_named(connection, audit_id, NotedCall, rows):  # those of experiments are not derived
            insert_new(connection, NotedCall, rows)

    db.write(job)
