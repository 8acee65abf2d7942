"""Verdicts that two audits, or two judges, gave on the same traces, joined in the database."""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import Integer, Select, Table, and_, case, func, literal_column, select

from auditor.domain import Outcome
from auditor.storage.database import Database, table_of
from auditor.storage.tables import TraceRow, VerdictRow

SQL_TRUE, SQL_FALSE = literal_column("1", Integer), literal_column("0", Integer)
"""As literals, since PostgreSQL takes no two parameters of a grouped expression for the same."""
TRACE_KEY_COLUMNS = ("audit_id", "model", "country", "topic", "sample")


class VerdictSelection(NamedTuple):
    """One side: an audit's verdicts, of one judge or all, on one model or all."""

    audit_id: int
    judge: str | None = None
    model: str | None = None


class VerdictFlip(NamedTuple):
    """A trace on which the two say otherwise."""

    judge: str
    other_judge: str
    model: str
    country: str
    topic: str
    sample: int
    first: str
    second: str
    same_answer: bool | None


class RulingPair(NamedTuple):
    """What both sides rule on a cell, and whether on the same answer; None where an answer is not recorded."""

    country: str
    topic: str
    first: str
    second: str
    same_answer: bool | None


def count_ruling_pairs(db: Database, first: VerdictSelection, second: VerdictSelection) -> dict[RulingPair, int]:
    """How many verdicts on shared traces are so ruled, by cell, and on the same answer or not.

    On one trace there are as many as there are judges.
    """
    a, b, same, query = _join_verdicts(first, second)
    group = (a.c.country, a.c.topic, a.c.ruling, b.c.ruling, same)
    with db.read() as connection:
        rows = connection.execute(query.with_only_columns(*group, func.count()).group_by(*group).order_by(*group))
        return {
            RulingPair(country, topic, a, b, _parse_same_answer(same)): int(n) for country, topic, a, b, same, n in rows
        }


def count_paired_traces(db: Database, first: VerdictSelection, second: VerdictSelection, *, same_answer: bool) -> int:
    """How many traces these verdicts are about: all, or those whose answer is the same on both sides."""
    a, b, same, query = _join_verdicts(first, second)
    query = query.with_only_columns(a.c.model, b.c.model.label("other"), a.c.country, a.c.topic, a.c.sample).distinct()
    found = (query.where(same == 1) if same_answer else query).subquery()
    with db.read() as connection:
        return int(connection.execute(select(func.count()).select_from(found)).scalar_one())


def load_verdict_flips(
    db: Database, first: VerdictSelection, second: VerdictSelection, limit: int
) -> list[VerdictFlip]:
    """The first few traces on which the rulings differ, by country, topic, judge and sample."""
    a, b, same, query = _join_verdicts(first, second)
    columns = (a.c.judge, b.c.judge, a.c.model, a.c.country, a.c.topic, a.c.sample, a.c.ruling, b.c.ruling, same)
    differ = query.with_only_columns(*columns).where(a.c.ruling != b.c.ruling)
    order = (a.c.country, a.c.topic, a.c.model, a.c.judge, a.c.sample)
    with db.read() as connection:
        rows = connection.execute(differ.order_by(*order).limit(limit))
        return [VerdictFlip._make((*facts, _parse_same_answer(alike))) for *facts, alike in rows]


def _parse_same_answer(is_same: int | None) -> bool | None:
    return None if is_same is None else bool(is_same)


def _join_verdicts(first: VerdictSelection, second: VerdictSelection) -> tuple[Any, Any, Any, Select[Any]]:
    """Both sides' valid verdicts on the same cell and sample; by the same judge and model unless both are named.

    Of those asked whatever other judges said. Within one audit a model's sample is one answer, recorded or not.
    """
    table: Table = table_of(VerdictRow)
    a, b = table.alias("first"), table.alias("second")
    same = (a.c.country == b.c.country) & (a.c.topic == b.c.topic) & (a.c.sample == b.c.sample)
    same &= a.c.judge == b.c.judge if second.judge is None else b.c.judge == second.judge
    same &= a.c.model == b.c.model if second.model is None else b.c.model == second.model
    (told, heard), joined = (table_of(TraceRow).alias(name) for name in ("told", "heard")), a.join(b, same)
    for side, answer in ((a, told), (b, heard)):
        trace = and_(*(side.c[name] == answer.c[name] for name in TRACE_KEY_COLUMNS))
        joined = joined.outerjoin(answer, trace)
    itself = and_(a.c.audit_id == b.c.audit_id, a.c.model == b.c.model)
    alike = case(
        (itself, SQL_TRUE),
        (told.c.text == heard.c.text, SQL_TRUE),
        (told.c.text != heard.c.text, SQL_FALSE),
        else_=None,
    )
    query = select(a).select_from(joined)
    query = query.where(a.c.audit_id == first.audit_id, b.c.audit_id == second.audit_id)
    query = query.where(a.c.outcome == Outcome.OK.value, b.c.outcome == Outcome.OK.value)
    query = query.where(a.c.always.is_(True), b.c.always.is_(True))
    for side, wanted in ((a, first), (b, second)):
        if wanted.judge is not None:
            query = query.where(side.c.judge == wanted.judge)
        if wanted.model is not None:
            query = query.where(side.c.model == wanted.model)
    return a, b, alike, query
