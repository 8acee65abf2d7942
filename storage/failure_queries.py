"""Failed requests of an audit, grouped by model, HTTP status and error text, and the calls without a usable answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import sqlalchemy as sa

from auditor.domain import Outcome, SentencePairScore, Trace, Verdict
from auditor.domain.records import CallKey
from auditor.probe_interface import ProbeResult
from auditor.storage.call_records import StoredAnswer, StoredAttempt
from auditor.storage.costs import select_audit_calls
from auditor.storage.count_queries import count_if, fetch_rows
from auditor.storage.database import Database
from auditor.storage.probe_results import ANSWER_RECORDS
from auditor.storage.row_classes import table_of

PROBE_TABLES = [*map(table_of, ANSWER_RECORDS.values()), table_of(ProbeResult)]
"""Tables of answers of the probes with a stage of their own."""
OTHER_TABLES = [table_of(SentencePairScore), table_of(Verdict), *PROBE_TABLES]
"""Tables of results but those of direct questions."""
_RESULT_TABLES = [table_of(Trace), *OTHER_TABLES]
"""Tables of results; the column `judge` has the model's name where the model is a judge, otherwise `model`."""
_SENT_UNTIL_STOPPED = [table for table in _RESULT_TABLES if CallKey in table.c.key.info]
"""Tables of results whose calls are counted if they were not sent because their model was stopped."""
_ANSWER_OUTCOMES = [outcome.value for outcome in Outcome if outcome.is_answer]


class FailedRequestCount(NamedTuple):
    """Failed requests of one model for one purpose with the same outcome, HTTP status and error text.

    Attributes:
        name: the model's name in the audit.
        model: provider and model.
        purpose: a value of `auditor.domain.Purpose`.
        outcome: a value of `auditor.domain.Outcome`.
        http_status: None if no response began.
        error: the recorded message; of databases of earlier versions, the body of the response.
        requests: number of failed requests.
        unusable_calls: number of calls whose last request is one of these, and which have no usable answer.
        first_at, last_at: when the first and the last of the requests started, ISO 8601 in UTC.
        payload: SHA-256 of one of the responses' bodies; None if none was recorded.
    """

    name: str
    model: str
    purpose: str
    outcome: str
    http_status: int | None
    error: str | None
    requests: int
    unusable_calls: int
    first_at: str
    last_at: str
    payload: str | None


class ModelOutcomeCount(NamedTuple):
    """Number of a model's answers, or of its verdicts and comparisons as a judge, with one outcome."""

    name: str
    is_judge: bool
    outcome: str
    n: int


def count_model_outcomes(
    db: Database, audit_id: int, tables: Sequence[sa.Table] = tuple(_RESULT_TABLES)
) -> list[ModelOutcomeCount]:
    """Count what an audit has from each model, by outcome: answers of all probes, and verdicts and comparisons.

    Args:
        db: the database.
        audit_id: the audit's id.
        tables: tables of results; those that the caller has counted can be left out.
    """
    results = sa.union_all(
        *(
            sa.select(
                table.c["judge" if is_judge else "model"].label("name"),
                sa.literal(int(is_judge)).label("is_judge"),
                table.c.outcome,
            ).where(table.c.audit_id == audit_id)
            for table in tables
            for is_judge in ["judge" in table.c]
        )
    ).subquery()
    group = (results.c.name, results.c.is_judge, results.c.outcome)
    query = sa.select(*group, sa.func.count()).group_by(*group).order_by(*group)
    return [count._replace(is_judge=bool(count.is_judge)) for count in fetch_rows(db, ModelOutcomeCount._make, query)]


def count_unsent_calls(db: Database, audit_id: int) -> int:
    """Count an audit's calls that were not sent since their model was stopped: failures without any request."""
    attempted_keys = sa.select(table_of(StoredAttempt).c.key)
    keys = sa.union(
        *(
            sa.select(table.c.key).where(
                table.c.audit_id == audit_id,
                table.c.outcome == Outcome.CLIENT_ERROR.value,
                table.c.key.is_not(None),
                table.c.key.not_in(attempted_keys),
            )
            for table in _SENT_UNTIL_STOPPED
        )
    ).subquery()
    [n_unsent] = fetch_rows(db, lambda row: int(next(iter(row))), sa.select(sa.func.count()).select_from(keys))
    return n_unsent


def count_failed_requests(db: Database, audit_id: int) -> list[FailedRequestCount]:
    """Count an audit's failed requests; a refusal or a cut-off text counts if its request ended with an error.

    Requests of programs before revision 6 name no audit: those of calls that the audit's results refer to count.
    """
    attempts = table_of(StoredAttempt)
    is_nameless = sa.select(attempts.c.id).where(attempts.c.audit_id.is_(None)).limit(1)
    nameless = fetch_rows(db, lambda row: next(iter(row)), is_nameless)
    return fetch_rows(db, FailedRequestCount._make, _failed_requests_query(audit_id, has_nameless=bool(nameless)))


def _failed_requests_query(audit_id: int, *, has_nameless: bool) -> sa.Select[Any]:
    """Query of the failed requests of an audit; columns in order of `FailedRequestCount`.

    Args:
        audit_id: the audit's id.
        has_nameless: whether any request names no audit; only then all of the audit's calls have to be read.
    """
    attempts, answers = table_of(StoredAttempt), table_of(StoredAnswer)
    attempt, source = attempts.c, cast(sa.FromClause, attempts)
    name: sa.ColumnElement[str | None] = attempt.name
    is_of_audit: sa.ColumnElement[bool] = attempt.audit_id == audit_id
    if has_nameless:
        calls = select_audit_calls(audit_id)
        call_names = sa.select(calls.c.key, sa.func.min(calls.c.name).label("name")).group_by(calls.c.key).subquery()
        source = attempts.join(call_names, call_names.c.key == attempt.key)
        name, is_of_audit = sa.func.coalesce(name, call_names.c.name), sa.or_(is_of_audit, attempt.audit_id.is_(None))
    # A lookup by key for each failed request: joined to a table of all last attempts, SQLite would scan that each time.
    same_call = attempts.alias("same_call")
    last_attempt_id = (
        sa.select(sa.func.max(same_call.c.id))
        .where(same_call.c.key == attempt.key)
        .correlate(attempts)
        .scalar_subquery()
    )
    group = (name, attempt.model, attempt.purpose, attempt.outcome, attempt.http_status, attempt.error)
    # SQLite looks up the last attempt only where the condition before it holds: most failures were retried.
    is_unusable = (sa.func.coalesce(answers.c.outcome, "") != Outcome.OK.value) & (attempt.id == last_attempt_id)
    return (
        sa.select(
            *group,
            sa.func.count(),
            count_if(is_unusable),
            sa.func.min(attempt.started_at),
            sa.func.max(attempt.started_at),
            sa.func.max(attempt.payload),
        )
        .select_from(source.outerjoin(answers, answers.c.key == attempt.key))
        .where(
            attempt.outcome != Outcome.OK.value,
            sa.or_(attempt.outcome.not_in(_ANSWER_OUTCOMES), attempt.error.is_not(None), attempt.http_status >= 400),
            is_of_audit,
        )
        .group_by(*group)
        .order_by(sa.func.count().desc(), sa.func.min(attempt.id))
    )
