"""Verdicts that two audits, or two judges, gave on the same traces, joined in the database."""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import Select, Table, func, select

from auditor.domain import Outcome
from auditor.storage.database import Database, table_of
from auditor.storage.tables import VerdictRow


class Verdicts(NamedTuple):
    """One side: an audit's verdicts, of one judge or all, on one model or all."""

    audit_id: int
    judge: str | None = None
    model: str | None = None


class Flip(NamedTuple):
    """A trace on which the two say otherwise."""

    judge: str
    other_judge: str
    model: str
    country: str
    topic: str
    sample: int
    first: str
    second: str


def splits(db: Database, first: Verdicts, second: Verdicts) -> dict[tuple[str, str], int]:
    """How many shared traces have each pair of rulings, such as `("VALID", "INVALID")`."""
    a, b, query = _joined(first, second)
    group = (a.c.ruling, b.c.ruling)
    with db.read() as connection:
        rows = connection.execute(query.with_only_columns(*group, func.count()).group_by(*group))
        return {(str(one), str(other)): int(n) for one, other, n in rows}


def flips(db: Database, first: Verdicts, second: Verdicts, limit: int) -> list[Flip]:
    """The first few traces on which the rulings differ, by country, topic, judge and sample."""
    a, b, query = _joined(first, second)
    columns = (a.c.judge, b.c.judge, a.c.model, a.c.country, a.c.topic, a.c.sample, a.c.ruling, b.c.ruling)
    differ = query.with_only_columns(*columns).where(a.c.ruling != b.c.ruling)
    order = (a.c.country, a.c.topic, a.c.model, a.c.judge, a.c.sample)
    with db.read() as connection:
        return [Flip._make(row) for row in connection.execute(differ.order_by(*order).limit(limit))]


def _joined(first: Verdicts, second: Verdicts) -> tuple[Any, Any, Select[Any]]:
    """Both sides' valid verdicts on the same cell and sample; by the same judge and model unless both are named."""
    table: Table = table_of(VerdictRow)
    a, b = table.alias("first"), table.alias("second")
    same = (a.c.country == b.c.country) & (a.c.topic == b.c.topic) & (a.c.sample == b.c.sample)
    same &= a.c.judge == b.c.judge if second.judge is None else b.c.judge == second.judge
    same &= a.c.model == b.c.model if second.model is None else b.c.model == second.model
    query = select(a).select_from(a.join(b, same))
    query = query.where(a.c.audit_id == first.audit_id, b.c.audit_id == second.audit_id)
    query = query.where(a.c.outcome == Outcome.OK.value, b.c.outcome == Outcome.OK.value)
    for side, wanted in ((a, first), (b, second)):
        if wanted.judge is not None:
            query = query.where(side.c.judge == wanted.judge)
        if wanted.model is not None:
            query = query.where(side.c.model == wanted.model)
    return a, b, query
