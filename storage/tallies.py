"""What a report needs of traces, verdicts and answers, counted in the database: no text is read, no row is copied."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import ColumnElement, Integer, Select, Subquery, Table, case, cast, func, literal, select, union_all

from auditor.domain import Outcome, Purpose, Ruling
from auditor.storage.database import Database, table_of
from auditor.storage.tables import (
    AnswerRow,
    AttemptRow,
    CallRow,
    ComparisonRow,
    ContestRow,
    ContrastRow,
    DispatchRow,
    GuessRow,
    RestatementRow,
    TraceRow,
    TrialRow,
    VerdictRow,
)
from auditor.text import LEFT_OUT

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


class CallTally(NamedTuple):
    """Calls of one model for one purpose whose answers cost the same.

    Attributes:
        name: the model's name in the audit.
        purpose: as `auditor.domain.Purpose` names it.
        calls: distinct calls, answered or not.
        cost_usd: of each; None where it is unknown, or where there is no answer.
        answers: those with a recorded answer.
        untold: recorded answers that do not say their tokens.
        served_model, fingerprint, altered: as `auditor.domain.Answer` has them.
        first_at, last_at: when the earliest and the latest of the answers were recorded.
        cached_tokens: of the prompts' tokens, those that the provider had kept.
        told_tokens: the prompts' tokens of the answers that say how many it had kept.
        attempts: requests that went out for them, whether or not an answer came of it.
    """

    name: str
    purpose: str
    cost_usd: float | None
    calls: int
    answers: int
    prompt_tokens: int
    completion_tokens: int
    untold: int
    served_model: str | None = None
    fingerprint: str | None = None
    altered: str | None = None
    first_at: str | None = None
    last_at: str | None = None
    cached_tokens: int = 0
    told_tokens: int = 0
    attempts: int = 0


class Cost(NamedTuple):
    """US dollars as far as prices are known, None where none is; and the answers whose price is not."""

    usd: float | None
    unpriced: int


class AnswerMean(NamedTuple):
    """How long a model's recorded answers to one purpose are, whichever audit asked.

    Attributes:
        model: provider and model.
        n: answers that say their tokens.
        tokens: their mean.
    """

    model: str
    purpose: str
    n: int
    tokens: float


class AttemptTally(NamedTuple):
    """Requests that went out for one model and purpose."""

    name: str
    purpose: str
    attempts: int


def trace_tallies(db: Database, audit_id: int) -> list[OutcomeTally]:
    """Traces of an audit by model, cell and outcome, in order."""
    return _load(db, OutcomeTally._make, _by_cell(table_of(TraceRow), audit_id))


class RepairTally(NamedTuple):
    """Traces of a model for which it was asked once more, and how many of them could then be read."""

    model: str
    asked: int
    read: int


def repair_tallies(db: Database, audit_id: int) -> list[RepairTally]:
    """Second questions of an audit by model, in order."""
    t = table_of(TraceRow)
    where = (t.c.audit_id == audit_id, t.c.repair_key.is_not(None))
    read = _count_if(t.c.outcome == Outcome.OK.value)
    query = select(t.c.model, func.count(), read).where(*where).group_by(t.c.model).order_by(t.c.model)
    return _load(db, RepairTally._make, query)


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
    return dict(_load(db, tuple, query.group_by(trace.c.model)))


def contrast_tallies(db: Database, audit_id: int) -> list[OutcomeTally]:
    """Contrasts of an audit by model, cell and outcome, in order."""
    return _load(db, OutcomeTally._make, _by_cell(table_of(ContrastRow), audit_id))


def verdict_tallies(db: Database, audit_id: int) -> list[OutcomeTally]:
    """Verdicts of an audit by the model they are about, cell and outcome, in order."""
    return _load(db, OutcomeTally._make, _by_cell(table_of(VerdictRow), audit_id))


def judge_tallies(db: Database, audit_id: int) -> list[JudgeTally]:
    """Verdicts of an audit by judge, model and outcome, in order."""
    t = table_of(VerdictRow)
    group = (t.c.judge, t.c.model, t.c.outcome)
    columns = (*group, *_said(t), _count_if(t.c.shortened.is_(True)))
    query = select(*columns).where(t.c.audit_id == audit_id).group_by(*group).order_by(*group)
    return _load(db, JudgeTally._make, query)


def peer_tallies(db: Database, audit_id: int) -> list[PeerTally]:
    """Valid verdicts of an audit by the model they are about and cell, in order."""
    t = table_of(VerdictRow)
    group = (t.c.model, t.c.country, t.c.topic)
    where = (t.c.audit_id == audit_id, t.c.outcome == Outcome.OK.value, t.c.always.is_(True))
    return _load(db, PeerTally._make, select(*group, *_said(t)).where(*where).group_by(*group).order_by(*group))


def _said(t: Table) -> list[ColumnElement[int]]:
    """How many verdicts, how many VALID, and of each aspect how many say yes, and how many yes or no."""
    aspects = [
        column
        for name in ("cultural_accuracy", "logical_consistency", "score_fit")
        for column in (_count_if(t.c[name].is_(True)), func.count(t.c[name]))
    ]
    return [func.count(), _count_if(t.c.ruling == Ruling.VALID.value), *aspects]


def ruling_tallies(db: Database, audit_id: int) -> list[RulingTally]:
    """Traces of an audit by model, cell and how the judges' valid verdicts split, in order."""
    t = table_of(VerdictRow)
    valid = _count_if(t.c.ruling == Ruling.VALID.value).label("valid")
    invalid = _count_if(t.c.ruling == Ruling.INVALID.value).label("invalid")
    trace = (t.c.country, t.c.topic, t.c.model, t.c.sample)
    split = (
        select(*trace, valid, invalid)
        .where(t.c.audit_id == audit_id, t.c.outcome == Outcome.OK.value)
        .group_by(*trace)
        .subquery()
    )
    group = (split.c.model, split.c.country, split.c.topic, split.c.valid, split.c.invalid)
    return _load(db, RulingTally._make, select(*group, func.count()).group_by(*group).order_by(*group))


def call_tallies(db: Database, audit_id: int) -> list[CallTally]:
    """Calls behind an audit by model, purpose, price and what served them, in order."""
    answer, attempt = table_of(AnswerRow), table_of(AttemptRow)
    calls = _calls(audit_id)
    group = (calls.c.name, calls.c.purpose, answer.c.cost_usd)
    served = (answer.c.served_model, answer.c.fingerprint, answer.c.altered)
    attempts = select(func.count()).where(attempt.c.key == calls.c.key).correlate(calls).scalar_subquery()
    untold = _count_if(answer.c.key.is_not(None) & answer.c.completion_tokens.is_(None))
    query = (
        select(
            *group,
            func.count(),
            func.count(answer.c.key),
            func.coalesce(func.sum(answer.c.prompt_tokens), 0),
            func.coalesce(func.sum(answer.c.completion_tokens), 0),
            untold,
            *served,
            func.min(answer.c.created_at),
            func.max(answer.c.created_at),
            func.coalesce(func.sum(answer.c.cached_tokens), 0),
            func.coalesce(func.sum(case((answer.c.cached_tokens.is_not(None), answer.c.prompt_tokens), else_=0)), 0),
            cast(func.sum(attempts), Integer),
        )
        .select_from(calls.outerjoin(answer, answer.c.key == calls.c.key))
        .group_by(*group, *served)
        .order_by(*(column.nulls_first() for column in (*group, *served)))
    )
    return _load(db, CallTally._make, query)


def cost(db: Database, audit_id: int) -> Cost:
    """What the answers behind an audit cost, each counted once whoever gave it and whatever for."""
    answer, keys = table_of(AnswerRow).c, select(_calls(audit_id).c.key).distinct().subquery()
    query = select(answer.cost_usd, func.count()).where(answer.key == keys.c.key).group_by(answer.cost_usd)
    with db.read() as connection:
        found = [(usd, int(n)) for usd, n in connection.execute(query)]
    known = [usd * n for usd, n in found if usd is not None]
    return Cost(math.fsum(known) if known else None, sum(n for usd, n in found if usd is None))


def answer_means(db: Database) -> list[AnswerMean]:
    """Lengths of all recorded answers by model and purpose, in order."""
    c = table_of(AnswerRow).c
    n = func.count(c.completion_tokens)
    query = select(c.model, c.purpose, n, func.sum(c.completion_tokens)).group_by(c.model, c.purpose).having(n > 0)
    with db.read() as connection:
        found = connection.execute(query.order_by(c.model, c.purpose))
        return [AnswerMean(model, purpose, n, total / n) for model, purpose, n, total in found]


def lost_tallies(db: Database, audit_id: int) -> list[AttemptTally]:
    """Calls that went out for an audit and never came back, by model and purpose, in order; some may be in flight."""
    t = table_of(DispatchRow)
    group = (t.c.name, t.c.purpose)
    query = select(*group, func.count()).where(t.c.audit_id == audit_id).group_by(*group).order_by(*group)
    return _load(db, AttemptTally._make, query)


def _calls(audit_id: int) -> Subquery:
    """The distinct calls behind all that an audit has asked: name, purpose, key.

    They come in order of their keys, for which SQLite sorts once, and finds their answers in neighbouring places.
    """
    every = union_all(
        _asked(table_of(TraceRow), "model", Purpose.DIRECT, audit_id),
        _asked(table_of(TraceRow), "model", Purpose.DIRECT, audit_id, key="repair_key"),
        _asked(table_of(ContrastRow), "model", Purpose.LOGPROB, audit_id),
        _asked(table_of(ContrastRow), "model", Purpose.LOGPROB, audit_id, key="key_swapped"),
        _asked(table_of(VerdictRow), "judge", Purpose.REVIEW, audit_id),
        _asked(table_of(VerdictRow), "judge", Purpose.REVIEW, audit_id, key="again_key"),
        _asked(table_of(ComparisonRow), "judge", Purpose.LOGIC, audit_id),
        _asked(table_of(TrialRow), "judge", Purpose.REVIEW, audit_id),
        _asked(table_of(GuessRow), "judge", Purpose.GUESS, audit_id),
        _asked(table_of(RestatementRow), "rewriter", Purpose.REWRITE, audit_id),
        _asked(table_of(ContestRow), "judge", Purpose.CONTEST, audit_id),
        _noted(table_of(CallRow), audit_id),
    ).subquery()
    c = every.c
    return select(c.name, c.purpose, c.key).group_by(c.key, c.name, c.purpose).subquery()


def _asked(t: Table, who: str, purpose: Purpose, audit_id: int, key: str = "key") -> Select[Any]:
    columns = (t.c[who].label("name"), literal(purpose.value).label("purpose"), t.c[key].label("key"))
    return select(*columns).where(t.c.audit_id == audit_id, t.c[key].is_not(None))


def _noted(t: Table, audit_id: int) -> Select[Any]:
    return select(t.c.name, t.c.purpose, t.c.key).where(t.c.audit_id == audit_id)


def _by_cell(t: Table, audit_id: int) -> Select[Any]:
    group = (t.c.model, t.c.country, t.c.topic, t.c.outcome)
    return select(*group, func.count()).where(t.c.audit_id == audit_id).group_by(*group).order_by(*group)


def _count_if(condition: ColumnElement[bool]) -> ColumnElement[int]:
    return func.coalesce(func.sum(case((condition, 1), else_=0)), 0)


def _load(db: Database, make: Callable[[Iterable[Any]], T], query: Select[Any]) -> list[T]:
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
