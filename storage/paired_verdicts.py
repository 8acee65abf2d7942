"""Verdicts of two audits, or of two judges, on the same traces, joined by SQL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Integer, Select, Table, and_, case, func, literal_column, null, or_, select

from auditor.domain import Outcome, Trace, Verdict
from auditor.storage.database import Database
from auditor.storage.row_writing import table_of

SQL_TRUE, SQL_FALSE = literal_column("1", Integer), literal_column("0", Integer)
"""Literals instead of parameters: PostgreSQL does not see that two parameters of a grouped expression are equal."""
TRACE_KEY_COLUMNS = ("audit_id", "model", "country", "topic", "sample")


class VerdictSelection(NamedTuple):
    """One side of the comparison: an audit's verdicts, of one judge or all, on one model or all."""

    audit_id: int
    judge: str | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True)
class VerdictFlip:
    """A trace on which the rulings of the two sides differ."""

    judge: str
    other_judge: str
    """The judges of the first and of the second side."""
    model: str
    """The model's name on the first side."""
    country: str
    topic: str
    sample: int
    first: str
    second: str
    """The rulings of the two sides."""
    same_answer: bool | None
    """Whether both judged answers have the same text and score (for a task, answer), so that the judge changed; null
    where an answer is not recorded."""


class RulingPair(NamedTuple):
    """Rulings of both sides on a trace of a cell, and whether on the same text and score; None if one is not
    recorded."""

    country: str
    topic: str
    first: str
    second: str
    same_answer: bool | None


def count_ruling_pairs(db: Database, first: VerdictSelection, second: VerdictSelection) -> dict[RulingPair, int]:
    """Count pairs of verdicts on shared traces by cell, the two rulings, and whether the answer is the same.

    A trace counts once for each judge.
    """
    first_verdicts, second_verdicts, is_same_answer, query = _join_verdicts(first, second)
    group = (
        first_verdicts.c.country,
        first_verdicts.c.topic,
        first_verdicts.c.ruling,
        second_verdicts.c.ruling,
        is_same_answer,
    )
    with db.read() as connection:
        rows = connection.execute(query.with_only_columns(*group, func.count()).group_by(*group).order_by(*group))
        return {
            RulingPair(country, topic, first_ruling, second_ruling, _parse_same_answer(is_same_answer)): int(n)
            for country, topic, first_ruling, second_ruling, is_same_answer, n in rows
        }


def count_paired_traces(db: Database, first: VerdictSelection, second: VerdictSelection, *, same_answer: bool) -> int:
    """Count the traces that have verdicts of both sides: all, or only those with the same answer on both."""
    first_verdicts, second_verdicts, is_same_answer, query = _join_verdicts(first, second)
    query = query.with_only_columns(
        first_verdicts.c.model,
        second_verdicts.c.model.label("other"),
        first_verdicts.c.country,
        first_verdicts.c.topic,
        first_verdicts.c.sample,
    ).distinct()
    paired_traces = (query.where(is_same_answer == 1) if same_answer else query).subquery()
    with db.read() as connection:
        return int(connection.execute(select(func.count()).select_from(paired_traces)).scalar_one())


def load_verdict_flips(
    db: Database, first: VerdictSelection, second: VerdictSelection, limit: int
) -> list[VerdictFlip]:
    """Load the first `limit` traces on which the rulings differ, by country, topic, model, judge and sample."""
    first_verdicts, second_verdicts, is_same_answer, query = _join_verdicts(first, second)
    columns = (
        first_verdicts.c.judge,
        second_verdicts.c.judge,
        first_verdicts.c.model,
        first_verdicts.c.country,
        first_verdicts.c.topic,
        first_verdicts.c.sample,
        first_verdicts.c.ruling,
        second_verdicts.c.ruling,
        is_same_answer,
    )
    differ = query.with_only_columns(*columns).where(first_verdicts.c.ruling != second_verdicts.c.ruling)
    order = (
        first_verdicts.c.country,
        first_verdicts.c.topic,
        first_verdicts.c.model,
        first_verdicts.c.judge,
        first_verdicts.c.sample,
    )
    with db.read() as connection:
        rows = connection.execute(differ.order_by(*order).limit(limit))
        return [VerdictFlip(*(*row[:-1], _parse_same_answer(row[-1]))) for row in rows]


def _parse_same_answer(is_same: int | None) -> bool | None:
    return None if is_same is None else bool(is_same)


def _join_verdicts(first: VerdictSelection, second: VerdictSelection) -> tuple[Any, Any, Any, Select[Any]]:
    """Join both sides' `ok` verdicts on the same cell and sample.

    Judge and model must be the same too, unless `second` names them. Only verdicts of judges that were asked in any
    case are joined, not those that an adaptive panel asked for on disputed traces. Within one audit, a model's sample
    is the same answer even if its text is not recorded.

    Returns:
        Aliases of the first and the second side's verdicts, an expression that is 1 if both are on the same answer, 0
        if not and NULL if unknown, and the query.
    """
    table: Table = table_of(Verdict)
    first_verdicts, second_verdicts = table.alias("first"), table.alias("second")
    join_condition = (
        (first_verdicts.c.country == second_verdicts.c.country)
        & (first_verdicts.c.topic == second_verdicts.c.topic)
        & (first_verdicts.c.sample == second_verdicts.c.sample)
    )
    join_condition &= (
        first_verdicts.c.judge == second_verdicts.c.judge
        if second.judge is None
        else second_verdicts.c.judge == second.judge
    )
    join_condition &= (
        first_verdicts.c.model == second_verdicts.c.model
        if second.model is None
        else second_verdicts.c.model == second.model
    )
    (first_traces, second_traces), source = (
        (table_of(Trace).alias(name) for name in ("told", "heard")),
        first_verdicts.join(second_verdicts, join_condition),
    )
    for verdicts, traces in ((first_verdicts, first_traces), (second_verdicts, second_traces)):
        same_trace = and_(*(verdicts.c[name] == traces.c[name] for name in TRACE_KEY_COLUMNS))
        source = source.outerjoin(traces, same_trace)
    same_sample = and_(
        first_verdicts.c.audit_id == second_verdicts.c.audit_id, first_verdicts.c.model == second_verdicts.c.model
    )
    # Judges saw the text with the score, or with the answer to the item of a task.
    is_same_result = and_(
        *(
            or_(
                first_traces.c[name] == second_traces.c[name],
                and_(first_traces.c[name].is_(None), second_traces.c[name].is_(None)),
            )
            for name in ("score", "answer")
        )
    )
    is_same_answer = case(
        (same_sample, SQL_TRUE),
        (or_(first_traces.c.text.is_(None), second_traces.c.text.is_(None)), null()),
        (and_(first_traces.c.text == second_traces.c.text, is_same_result), SQL_TRUE),
        else_=SQL_FALSE,
    )
    query = select(first_verdicts).select_from(source)
    query = query.where(first_verdicts.c.audit_id == first.audit_id, second_verdicts.c.audit_id == second.audit_id)
    query = query.where(first_verdicts.c.outcome == Outcome.OK.value, second_verdicts.c.outcome == Outcome.OK.value)
    query = query.where(first_verdicts.c.always.is_(True), second_verdicts.c.always.is_(True))
    for verdicts, selection in ((first_verdicts, first), (second_verdicts, second)):
        if selection.judge is not None:
            query = query.where(verdicts.c.judge == selection.judge)
        if selection.model is not None:
            query = query.where(verdicts.c.model == selection.model)
    return first_verdicts, second_verdicts, is_same_answer, query
