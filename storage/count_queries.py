"""What a report needs of traces and verdicts, counted in the database: no text is read, no row is copied."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import (
    ColumnElement,
    Select,
    Table,
    case,
    func,
    literal,
    select,
)

from auditor.domain import Outcome, Ruling
from auditor.storage.database import Database, table_of
from auditor.storage.tables import (
    AnswerRow,
    ContrastRow,
    TraceRow,
    VerdictRow,
)
from auditor.text_safety import LEFT_OUT

MAX_LABEL_GROWTH = 10
"""A label is at most so many times as long as the word that it replaces ("US", "[another country]")."""
T = TypeVar("T")


class OutcomeTally(NamedTuple):
    """How many traces of a model on a cell, or verdicts on them, ended in an outcome."""

    model: str
    country: str
    topic: str
    outcome: str
    n: int


class JudgeTally(NamedTuple):
    """Verdicts of one judge on one model that ended in an outcome.

    Attributes:
        valid: those that say VALID.
        cultural_accuracy, logical_consistency, score_fit: those that say yes to the aspect; each has beside it how
            many say yes or no, since an aspect may be missing.
        shortened: those whose justification was cut.
    """

    judge: str
    model: str
    outcome: str
    n: int
    valid: int
    cultural_accuracy: int
    n_cultural_accuracy: int
    logical_consistency: int
    n_logical_consistency: int
    score_fit: int
    n_score_fit: int
    shortened: int


class PeerTally(NamedTuple):
    """Valid verdicts on one model's traces on a cell, of judges that were asked whatever others said.

    Attributes: as `JudgeTally` has them.
    """

    model: str
    country: str
    topic: str
    n: int
    valid: int
    cultural_accuracy: int
    n_cultural_accuracy: int
    logical_consistency: int
    n_logical_consistency: int
    score_fit: int
    n_score_fit: int


class RulingTally(NamedTuple):
    """How many traces of a model on a cell were ruled VALID by `valid` judges and INVALID by `invalid`."""

    model: str
    country: str
    topic: str
    valid: int
    invalid: int
    n: int


def trace_tallies(db: Database, audit_id: int) -> list[OutcomeTally]:
    """Traces of an audit by model, cell and outcome, in order."""
    return load_rows(db, OutcomeTally._make, _by_cell(table_of(TraceRow), audit_id))


class RepairTally(NamedTuple):
    """Traces of a model for which it was asked once more, and how many of them could then be read."""

    model: str
    asked: int
    read: int


def repair_tallies(db: Database, audit_id: int) -> list[RepairTally]:
    """Second questions of an audit by model, in order."""
    t = table_of(TraceRow)
    where = (t.c.audit_id == audit_id, t.c.repair_key.is_not(None))
    read = count_if(t.c.outcome == Outcome.OK.value)
    query = select(t.c.model, func.count(), read).where(*where).group_by(t.c.model).order_by(t.c.model)
    return load_rows(db, RepairTally._make, query)


def shortened_traces(db: Database, audit_id: int, max_chars: int) -> dict[str, int]:
    """How many traces of each model were shortened for a judge, as the recorded requests say.

    Args:
        db: the database.
        audit_id: the audit's.
        max_chars: of a text that a judge is shown. What is far shorter is not looked at.
    """
    trace, verdict, answer = (table_of(row) for row in (TraceRow, VerdictRow, AnswerRow))
    place = ("audit_id", "model", "country", "topic", "sample")
    asked = (
        select(literal(1))
        .select_from(verdict.join(answer, answer.c.key == verdict.c.key))
        .where(*(verdict.c[name] == trace.c[name] for name in place), answer.c.request.contains(LEFT_OUT))
        .correlate(trace)
        .exists()
    )
    long = func.length(trace.c.text) > max_chars // MAX_LABEL_GROWTH
    query = select(trace.c.model, func.count()).where(trace.c.audit_id == audit_id, long, asked)
    return dict(load_rows(db, tuple, query.group_by(trace.c.model)))


def contrast_tallies(db: Database, audit_id: int) -> list[OutcomeTally]:
    """Contrasts of an audit by model, cell and outcome, in order."""
    return load_rows(db, OutcomeTally._make, _by_cell(table_of(ContrastRow), audit_id))


def verdict_tallies(db: Database, audit_id: int) -> list[OutcomeTally]:
    """Verdicts of an audit by the model they are about, cell and outcome, in order."""
    return load_rows(db, OutcomeTally._make, _by_cell(table_of(VerdictRow), audit_id))


def judge_tallies(db: Database, audit_id: int) -> list[JudgeTally]:
    """Verdicts of an audit by judge, model and outcome, in order."""
    t = table_of(VerdictRow)
    group = (t.c.judge, t.c.model, t.c.outcome)
    columns = (*group, *_said(t), count_if(t.c.shortened.is_(True)))
    query = select(*columns).where(t.c.audit_id == audit_id).group_by(*group).order_by(*group)
    return load_rows(db, JudgeTally._make, query)


def peer_tallies(db: Database, audit_id: int) -> list[PeerTally]:
    """Valid verdicts of an audit by the model they are about and cell, in order."""
    t = table_of(VerdictRow)
    group = (t.c.model, t.c.country, t.c.topic)
    where = (t.c.audit_id == audit_id, t.c.outcome == Outcome.OK.value, t.c.always.is_(True))
    return load_rows(db, PeerTally._make, select(*group, *_said(t)).where(*where).group_by(*group).order_by(*group))


def _said(t: Table) -> list[ColumnElement[int]]:
    """How many verdicts, how many VALID, and of each aspect how many say yes, and how many yes or no."""
    aspects = [
        column
        for name in ("cultural_accuracy", "logical_consistency", "score_fit")
        for column in (count_if(t.c[name].is_(True)), func.count(t.c[name]))
    ]
    return [func.count(), count_if(t.c.ruling == Ruling.VALID.value), *aspects]


def ruling_tallies(db: Database, audit_id: int) -> list[RulingTally]:
    """Traces of an audit by model, cell and how the judges' valid verdicts split, in order."""
    t = table_of(VerdictRow)
    valid = count_if(t.c.ruling == Ruling.VALID.value).label("valid")
    invalid = count_if(t.c.ruling == Ruling.INVALID.value).label("invalid")
    trace = (t.c.country, t.c.topic, t.c.model, t.c.sample)
    split = (
        select(*trace, valid, invalid)
        .where(t.c.audit_id == audit_id, t.c.outcome == Outcome.OK.value)
        .group_by(*trace)
        .subquery()
    )
    group = (split.c.model, split.c.country, split.c.topic, split.c.valid, split.c.invalid)
    return load_rows(db, RulingTally._make, select(*group, func.count()).group_by(*group).order_by(*group))


def _by_cell(t: Table, audit_id: int) -> Select[Any]:
    group = (t.c.model, t.c.country, t.c.topic, t.c.outcome)
    return select(*group, func.count()).where(t.c.audit_id == audit_id).group_by(*group).order_by(*group)


def count_if(condition: ColumnElement[bool]) -> ColumnElement[int]:
    """How many rows of a group meet a condition."""
    return func.coalesce(func.sum(case((condition, 1), else_=0)), 0)


def load_rows(db: Database, make: Callable[[Iterable[Any]], T], query: Select[Any]) -> list[T]:
    """The rows of a query, each as `make` returns it."""
    with db.read() as connection:
        return [make(row) for row in connection.execute(query)]


def unfounded(db: Database, audit_id: int) -> int:
    """Usable traces and verdicts whose answer is not recorded."""
    found = 0
    answer = table_of(AnswerRow)
    for row in (TraceRow, VerdictRow):
        t = table_of(row)
        query = (
            select(t.c.key)
            .outerjoin(answer, answer.c.key == t.c.key)
            .where(
                t.c.audit_id == audit_id, t.c.outcome == Outcome.OK.value, t.c.key.is_not(None), answer.c.key.is_(None)
            )
        )
        with db.read() as connection:
            found += len(connection.execute(query).all())
    return found
