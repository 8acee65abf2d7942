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
    SentencePairRow,
    TraceRow,
    VerdictRow,
)
from auditor.text_safety import OMISSION_MARK_END

MAX_LABEL_GROWTH = 10
"""A label is at most so many times as long as the word that it replaces ("US", "[another country]")."""
T = TypeVar("T")


class OutcomeCount(NamedTuple):
    """How many traces of a model on a cell, or verdicts on them, ended in an outcome."""

    model: str
    country: str
    topic: str
    outcome: str
    n: int


class JudgeVerdictCounts(NamedTuple):
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


class PeerVerdictCounts(NamedTuple):
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


class RulingSplitCount(NamedTuple):
    """How many traces of a model on a cell were ruled VALID by `valid` judges and INVALID by `invalid`."""

    model: str
    country: str
    topic: str
    valid: int
    invalid: int
    n: int


def count_traces(db: Database, audit_id: int) -> list[OutcomeCount]:
    """Traces of an audit by model, cell and outcome, in order."""
    return fetch_rows(db, OutcomeCount._make, _count_outcomes_by_cell(table_of(TraceRow), audit_id))


class RepairCounts(NamedTuple):
    """Traces of a model for which it was asked once more, and how many of them could then be read."""

    model: str
    asked: int
    repaired: int


def count_repairs(db: Database, audit_id: int) -> list[RepairCounts]:
    """Second questions of an audit by model, in order."""
    t = table_of(TraceRow)
    where = (t.c.audit_id == audit_id, t.c.repair_key.is_not(None))
    read = count_if(t.c.outcome == Outcome.OK.value)
    query = select(t.c.model, func.count(), read).where(*where).group_by(t.c.model).order_by(t.c.model)
    return fetch_rows(db, RepairCounts._make, query)


def count_shortened_traces(db: Database, audit_id: int, max_chars: int) -> dict[str, int]:
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
        .where(*(verdict.c[name] == trace.c[name] for name in place), answer.c.request.contains(OMISSION_MARK_END))
        .correlate(trace)
        .exists()
    )
    long = func.length(trace.c.text) > max_chars // MAX_LABEL_GROWTH
    query = select(trace.c.model, func.count()).where(trace.c.audit_id == audit_id, long, asked)
    return dict(fetch_rows(db, tuple, query.group_by(trace.c.model)))


def count_sentence_pairs(db: Database, audit_id: int) -> list[OutcomeCount]:
    """Contrasts of an audit by model, cell and outcome, in order."""
    return fetch_rows(db, OutcomeCount._make, _count_outcomes_by_cell(table_of(SentencePairRow), audit_id))


def count_verdicts(db: Database, audit_id: int) -> list[OutcomeCount]:
    """Verdicts of an audit by the model they are about, cell and outcome, in order."""
    return fetch_rows(db, OutcomeCount._make, _count_outcomes_by_cell(table_of(VerdictRow), audit_id))


def count_judge_verdicts(db: Database, audit_id: int) -> list[JudgeVerdictCounts]:
    """Verdicts of an audit by judge, model and outcome, in order."""
    t = table_of(VerdictRow)
    group = (t.c.judge, t.c.model, t.c.outcome)
    columns = (*group, *_verdict_count_columns(t), count_if(t.c.shortened.is_(True)))
    query = select(*columns).where(t.c.audit_id == audit_id).group_by(*group).order_by(*group)
    return fetch_rows(db, JudgeVerdictCounts._make, query)


def count_peer_verdicts(db: Database, audit_id: int) -> list[PeerVerdictCounts]:
    """Valid verdicts of an audit by the model they are about and cell, in order."""
    t = table_of(VerdictRow)
    group = (t.c.model, t.c.country, t.c.topic)
    where = (t.c.audit_id == audit_id, t.c.outcome == Outcome.OK.value, t.c.always.is_(True))
    return fetch_rows(
        db,
        PeerVerdictCounts._make,
        select(*group, *_verdict_count_columns(t)).where(*where).group_by(*group).order_by(*group),
    )


def _verdict_count_columns(table: Table) -> list[ColumnElement[int]]:
    """How many verdicts, how many VALID, and of each aspect how many say yes, and how many yes or no."""
    aspects = [
        column
        for name in ("cultural_accuracy", "logical_consistency", "score_fit")
        for column in (count_if(table.c[name].is_(True)), func.count(table.c[name]))
    ]
    return [func.count(), count_if(table.c.ruling == Ruling.VALID.value), *aspects]


def count_ruling_splits(db: Database, audit_id: int) -> list[RulingSplitCount]:
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
    return fetch_rows(db, RulingSplitCount._make, select(*group, func.count()).group_by(*group).order_by(*group))


def _count_outcomes_by_cell(table: Table, audit_id: int) -> Select[Any]:
    group = (table.c.model, table.c.country, table.c.topic, table.c.outcome)
    return select(*group, func.count()).where(table.c.audit_id == audit_id).group_by(*group).order_by(*group)


def count_if(condition: ColumnElement[bool]) -> ColumnElement[int]:
    """How many rows of a group meet a condition."""
    return func.coalesce(func.sum(case((condition, 1), else_=0)), 0)


def fetch_rows(db: Database, make_record: Callable[[Iterable[Any]], T], query: Select[Any]) -> list[T]:
    """The rows of a query, each as `make` returns it."""
    with db.read() as connection:
        return [make_record(row) for row in connection.execute(query)]


def count_missing_answers(db: Database, audit_id: int) -> int:
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
