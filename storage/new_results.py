"""What a run has read out of the answers that it got: the scores and verdicts that are new since a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, FromClause, Select, String, and_, cast, func, literal, null, select

from auditor.domain import Outcome, Ruling
from auditor.storage.database import Database, table_of
from auditor.storage.tables import AnswerRow, AttemptRow, TraceRow, VerdictRow


class NewResult(NamedTuple):
    """A score or a verdict, and the last request of the answer that it is about.

    Attributes:
        judge: empty where it is a score.
        key: of the call whose answer is scored or judged.
        number, started_at: of that call's last request.
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
    """Scores, then verdicts, whose own answer was recorded at or after a time (ISO 8601, UTC)."""
    with db.read() as connection:
        for query in (_new_scores_query(audit_id, since), _new_verdicts_query(audit_id, since)):
            for row in connection.execution_options(yield_per=1000).execute(query):
                judge, outcome, score, ruling, *rest = row
                yield NewResult(judge, Outcome(outcome), score, Ruling(ruling) if ruling else None, *rest)


def _new_scores_query(audit_id: int, since: str) -> Select[Any]:
    trace, answer = table_of(TraceRow), table_of(AnswerRow)
    t, last = trace.c, _attempt_alias()
    query = select(
        literal(""), t.outcome, t.score, cast(null(), String), t.text, t.key, last.c.number, last.c.started_at
    )
    joined = trace.join(answer, answer.c.key == t.key).join(last, _is_last_attempt(t.key, last))
    return query.select_from(joined).where(t.audit_id == audit_id, answer.c.created_at >= since)


def _new_verdicts_query(audit_id: int, since: str) -> Select[Any]:
    verdict, trace, answer = table_of(VerdictRow), table_of(TraceRow), table_of(AnswerRow)
    v, t, last = verdict.c, trace.c, _attempt_alias()
    same = [v[name] == t[name] for name in ("audit_id", "model", "country", "topic", "sample")]
    query = select(v.judge, v.outcome, null(), v.ruling, v.justification, t.key, last.c.number, last.c.started_at)
    joined = (
        verdict.join(trace, and_(*same)).join(answer, answer.c.key == v.key).join(last, _is_last_attempt(t.key, last))
    )
    return query.select_from(joined).where(v.audit_id == audit_id, answer.c.created_at >= since)


def _attempt_alias() -> FromClause:
    return table_of(AttemptRow).alias("last")


def _is_last_attempt(key: ColumnElement[str], attempt: FromClause) -> ColumnElement[bool]:
    """The attempt is the last one of its call."""
    other = table_of(AttemptRow).alias("other")
    newest = select(func.max(other.c.id)).where(other.c.key == key).correlate_except(other).scalar_subquery()
    return and_(attempt.c.key == key, attempt.c.id == newest)
