"""An audit's verdicts as numbers, for statistics over judges: no justification is read, and texts only by length."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import and_, case, func, select

from auditor.domain import Outcome, Ruling
from auditor.storage.database import Database, table_of
from auditor.storage.tables import AnswerRow, TraceRow, VerdictRow


class Ballot(NamedTuple):
    """One verdict that was given.

    Attributes:
        valid: 1 is VALID, 0 INVALID.
        confidence: in [0, 1]; None where the judge did not say.
        always: whether it was asked whatever other judges said.
        language: of the trace; length: of its text, in characters.
        answered_at: when the answer was recorded, ISO 8601; None for an imported verdict.
    """

    judge: str
    model: str
    country: str
    topic: str
    sample: int
    valid: int
    confidence: float | None
    always: bool
    language: str | None
    length: int | None
    answered_at: str | None


def ballots(db: Database, audit_id: int) -> list[Ballot]:
    """All verdicts of an audit that were given, in order of judge and trace."""
    v, t, a = table_of(VerdictRow), table_of(TraceRow), table_of(AnswerRow)
    trace = and_(t.c.audit_id == v.c.audit_id, *(t.c[k] == v.c[k] for k in ("model", "country", "topic", "sample")))
    key = (v.c.judge, v.c.model, v.c.country, v.c.topic, v.c.sample)
    valid = case((v.c.ruling == Ruling.VALID.value, 1), else_=0)
    columns = (*key, valid, v.c.confidence, v.c.always, t.c.language, func.length(t.c.text), a.c.created_at)
    source = v.outerjoin(t, trace).outerjoin(a, a.c.key == v.c.key)
    query = select(*columns).select_from(source).order_by(*key)
    query = query.where(v.c.audit_id == audit_id, v.c.outcome == Outcome.OK.value)
    with db.read() as connection:
        return [Ballot._make(row) for row in connection.execute(query)]


def repeated(db: Database, audit_id: int) -> int:
    """Verdicts that are another judge's very answer: both are one model, asked the same."""
    v = table_of(VerdictRow)
    place = (v.c.model, v.c.country, v.c.topic, v.c.sample, v.c.key)
    given = (v.c.audit_id == audit_id, v.c.outcome == Outcome.OK.value, v.c.key.is_not(None))
    shared = select((func.count() - 1).label("n")).where(*given).group_by(*place).having(func.count() > 1).subquery()
    with db.read() as connection:
        return int(connection.execute(select(func.coalesce(func.sum(shared.c.n), 0))).scalar_one())
