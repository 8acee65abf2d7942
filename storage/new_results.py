"""Scores and verdicts that a run has parsed from answers since a given time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, FromClause, Select, String, and_, cast, func, literal, null, select

from auditor.domain import Outcome, Ruling, Trace, Verdict
from auditor.storage.call_records import StoredAnswer, StoredAttempt
from auditor.storage.database import Database
from auditor.storage.row_writing import table_of


class NewResult(NamedTuple):
    """A score of a trace or a verdict on one, with the last request of the trace's call.

    Attributes:
        judge: name of the judge; empty for a score.
        outcome: of the trace or of the verdict.
        score: the trace's score; None for a verdict.
        ruling: the judge's ruling; None for a score.
        text: the trace or the judge's justification.
        key: ledger key of the trace's call.
        number, started_at: attempt number and start of that call's last request.
    """

    judge: str
    outcome: Outcome
    score: float | None
    ruling: Ruling | None
    text: str | None
    key: str
    number: int
    started_at: str


def load_new_results(db: Database, audit_id: int, since: str) -> Iterator[NewResult]:
    """Yield the scores, then the verdicts, whose answer was recorded at or after `since` (ISO 8601, UTC)."""
    with db.read() as connection:
        for query in (_new_scores_query(audit_id, since), _new_verdicts_query(audit_id, since)):
            for row in connection.execution_options(yield_per=1000).execute(query):
                judge, outcome, score, ruling, *content = row
                yield NewResult(judge, Outcome(outcome), score, Ruling(ruling) if ruling else None, *content)


def _new_scores_query(audit_id: int, since: str) -> Select[Any]:
    """Query of the traces whose answer was recorded at or after `since`; columns in order of `NewResult`."""
    traces, answers = table_of(Trace), table_of(StoredAnswer)
    trace, attempt = traces.c, _attempt_alias()
    query = select(
        literal(""),
        trace.outcome,
        trace.score,
        cast(null(), String),
        trace.text,
        trace.key,
        attempt.c.number,
        attempt.c.started_at,
    )
    source = traces.join(answers, answers.c.key == trace.key).join(attempt, _is_last_attempt(trace.key, attempt))
    return query.select_from(source).where(trace.audit_id == audit_id, answers.c.created_at >= since)


def _new_verdicts_query(audit_id: int, since: str) -> Select[Any]:
    """Query of the verdicts whose answer was recorded at or after `since`; columns in order of `NewResult`.

    Key, number and start are those of the call that gave the trace, not of the call of the judge.
    """
    verdicts, traces, answers = table_of(Verdict), table_of(Trace), table_of(StoredAnswer)
    verdict, trace, attempt = verdicts.c, traces.c, _attempt_alias()
    same_trace = [verdict[name] == trace[name] for name in ("audit_id", "model", "country", "topic", "sample")]
    query = select(
        verdict.judge,
        verdict.outcome,
        null(),
        verdict.ruling,
        verdict.justification,
        trace.key,
        attempt.c.number,
        attempt.c.started_at,
    )
    source = (
        verdicts.join(traces, and_(*same_trace))
        .join(answers, answers.c.key == verdict.key)
        .join(attempt, _is_last_attempt(trace.key, attempt))
    )
    return query.select_from(source).where(verdict.audit_id == audit_id, answers.c.created_at >= since)


def _attempt_alias() -> FromClause:
    return table_of(StoredAttempt).alias("last")


def _is_last_attempt(key: ColumnElement[str], attempt: FromClause) -> ColumnElement[bool]:
    """Condition: the attempt is the last one of the call with this key."""
    any_attempt = table_of(StoredAttempt).alias("other")
    last_id = (
        select(func.max(any_attempt.c.id))
        .where(any_attempt.c.key == key)
        .correlate_except(any_attempt)
        .scalar_subquery()
    )
    return and_(attempt.c.key == key, attempt.c.id == last_id)
