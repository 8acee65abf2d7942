"""Counts of traces and verdicts for reports, computed by SQL so that no rows or texts are loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

import sqlalchemy as sa

from auditor.config.installed_probes import list_built_in_probes
from auditor.domain import Cell, Outcome, Ruling, SentencePairScore, Trace, Verdict
from auditor.probe_interface import ProbeResult
from auditor.storage.call_records import StoredAnswer
from auditor.storage.database import Database
from auditor.storage.probe_results import ANSWER_RECORDS, RepeatedQuestions
from auditor.storage.row_classes import table_of
from auditor.text_safety import OMISSION_MARK_END

MAX_LABEL_GROWTH = 10
"""A label is at most this many times as long as the word that it masks ("US", "[another country]")."""
T = TypeVar("T")


class OutcomeCount(NamedTuple):
    """Number of a model's traces on a cell, or of verdicts on them, with one outcome.

    Attributes:
        asked_again: number of the traces whose first answer could not be read, so that the model was asked again.
        duplicates: number of the verdicts that rest on the same call as another judge's, both judges being the same
            model. Of several verdicts on one call, all but one are counted.
    """

    model: str
    country: str
    topic: str
    outcome: str
    n: int
    asked_again: int = 0
    duplicates: int = 0


class JudgeVerdictCounts(NamedTuple):
    """Counts of one judge's verdicts on one model's traces with one outcome.

    Attributes:
        n: number of verdicts.
        valid: number of verdicts that say VALID.
        shortened: number of verdicts whose justification was cut.
    """

    judge: str
    model: str
    outcome: str
    n: int
    valid: int
    shortened: int


class RepeatCount(NamedTuple):
    """Number of questions on a cell that were asked again since their answers had one outcome.

    Attributes:
        judge: of reviews, who was asked again; empty for direct questions.
        model: who answered the direct question, or whose trace was reviewed.
        first_outcome: of the first answers.
        n: number of questions.
        answered: number of those whose second answer is usable.
    """

    judge: str
    model: str
    country: str
    topic: str
    first_outcome: str
    n: int
    answered: int


class ProbeRepeatCount(NamedTuple):
    """Number of questions of a probe with a stage of its own that were asked again; see `RepeatCount`.

    Attributes:
        stage, method: as of the probe's coverage.
    """

    stage: str
    method: str | None
    model: str
    first_outcome: str
    n: int
    answered: int


def count_trace_repeats(db: Database, audit_id: int) -> list[RepeatCount]:
    """Count an audit's direct questions that were asked again by model, cell and first outcome."""
    return _count_repeats(db, audit_id, table_of(Trace))


def count_verdict_repeats(db: Database, audit_id: int) -> list[RepeatCount]:
    """Count an audit's reviews that were asked for again by judge, model judged, cell and first outcome."""
    return _count_repeats(db, audit_id, table_of(Verdict))


def count_sentence_pair_repeats(db: Database, audit_id: int) -> list[RepeatCount]:
    """Count an audit's sentence pairs that were measured again by model, cell and first outcome."""
    return _count_repeats(db, audit_id, table_of(SentencePairScore))


def count_probe_repeats(db: Database, audit_id: int) -> list[ProbeRepeatCount]:
    """Count the questions of probes with a stage of their own that were asked again, by what their coverage counts."""
    kinds: list[tuple[Any, RepeatedQuestions]] = [
        (sa.literal(probe.name), questions)
        for probe in list_built_in_probes()
        for questions in probe.list_repeated_questions(audit_id)
    ]
    c = table_of(ProbeResult).c
    kinds.append((c.probe, RepeatedQuestions(None, c.model, c.first_outcome, c.outcome)))
    counts: list[ProbeRepeatCount] = []
    for stage, (method, model, first_outcome, outcome, condition) in kinds:
        method = method if isinstance(method, sa.ColumnElement) else sa.null() if method is None else sa.literal(method)
        group = (stage, method, model, first_outcome)
        query = sa.select(*group, sa.func.count(), count_if(outcome == Outcome.OK.value)).where(
            first_outcome.table.c.audit_id == audit_id,
            first_outcome.is_not(None),
            outcome != Outcome.EXCLUDED.value,
            sa.true() if condition is None else condition,
        )
        columns = [column for column in group if isinstance(column, sa.Column)]
        counts += fetch_rows(db, ProbeRepeatCount._make, query.group_by(*columns).order_by(*columns))
    return counts


def _count_repeats(db: Database, audit_id: int, table: sa.Table) -> list[RepeatCount]:
    """Count the rows of a table whose question was asked again; see `RepeatCount`. Excluded ones are left out."""
    judge = table.c.judge if "judge" in table.c else sa.literal("").label("judge")
    group = (judge, table.c.model, table.c.country, table.c.topic, table.c.first_outcome)
    query = sa.select(*group, sa.func.count(), count_if(table.c.outcome == Outcome.OK.value))
    query = query.where(
        table.c.audit_id == audit_id,
        table.c.first_outcome.is_not(None),
        table.c.outcome != Outcome.EXCLUDED.value,
    )
    grouped = [column for column in group if "judge" in table.c or column is not judge]
    return fetch_rows(db, RepeatCount._make, query.group_by(*grouped).order_by(*grouped))


def count_traces(db: Database, audit_id: int) -> list[OutcomeCount]:
    """Count an audit's traces by model, cell and outcome, in this order."""
    table = table_of(Trace)
    query = _count_outcomes_by_cell(table, audit_id).add_columns(sa.func.count(table.c.repair_key))
    return fetch_rows(db, lambda row: OutcomeCount(*row), query)


def count_shortened_traces(db: Database, audit_id: int, max_chars: int) -> dict[str, int]:
    """Count each model's traces that were shortened for a judge, by the mark that the recorded requests contain.

    Args:
        db: the database.
        audit_id: the audit's id.
        max_chars: maximum length of a text that a judge is shown. Traces shorter than a tenth of it are not checked:
            masking makes a text at most `MAX_LABEL_GROWTH` times longer.
    """
    trace, verdict, answer = (table_of(row_class) for row_class in (Trace, Verdict, StoredAnswer))
    trace_key = ("audit_id", "model", "country", "topic", "sample")
    was_shortened = (
        sa.select(sa.literal(1))
        .select_from(verdict.join(answer, answer.c.key == verdict.c.key))
        .where(*(verdict.c[name] == trace.c[name] for name in trace_key), answer.c.request.contains(OMISSION_MARK_END))
        .correlate(trace)
        .exists()
    )
    may_be_shortened = sa.func.length(trace.c.text) > max_chars // MAX_LABEL_GROWTH
    query = sa.select(trace.c.model, sa.func.count()).where(
        trace.c.audit_id == audit_id, may_be_shortened, was_shortened
    )
    return dict(fetch_rows(db, tuple, query.group_by(trace.c.model)))


def count_sentence_pairs(db: Database, audit_id: int) -> list[OutcomeCount]:
    """Count an audit's sentence pairs by model, cell and outcome, in this order."""
    return fetch_rows(
        db, lambda row: OutcomeCount(*row), _count_outcomes_by_cell(table_of(SentencePairScore), audit_id)
    )


def count_verdicts(db: Database, audit_id: int) -> list[OutcomeCount]:
    """Count an audit's verdicts by the model judged, cell and outcome, in this order."""
    c = table_of(Verdict).c
    query = _count_outcomes_by_cell(table_of(Verdict), audit_id)
    call_of_trace = sa.cast(c.sample, sa.String) + " " + c.key  # null without a key
    n_duplicates = sa.case(
        (c.outcome == Outcome.OK.value, sa.func.count(c.key) - sa.func.count(call_of_trace.distinct())), else_=0
    )
    return fetch_rows(db, lambda row: OutcomeCount(*row), query.add_columns(sa.literal(0), n_duplicates))


def count_judge_verdicts(db: Database, audit_id: int) -> list[JudgeVerdictCounts]:
    """Count an audit's verdicts by judge, model judged and outcome, in this order."""
    table = table_of(Verdict)
    group = (table.c.judge, table.c.model, table.c.outcome)
    n_valid = count_if(table.c.ruling == Ruling.VALID.value)
    query = sa.select(*group, sa.func.count(), n_valid, count_if(table.c.shortened.is_(True)))
    query = query.where(table.c.audit_id == audit_id).group_by(*group).order_by(*group)
    return fetch_rows(db, JudgeVerdictCounts._make, query)


def count_verdicts_by_cell(db: Database, audit_id: int) -> dict[tuple[str, Cell], tuple[int, int]]:
    """Count an audit's usable verdicts, and those that say VALID, by the model judged and cell."""
    table = table_of(Verdict)
    group = (table.c.country, table.c.topic, table.c.model)  # as in an index, so that SQLite does not sort
    query = sa.select(*group, sa.func.count(), count_if(table.c.ruling == Ruling.VALID.value)).group_by(*group)
    query = query.where(table.c.audit_id == audit_id, table.c.outcome == Outcome.OK.value)
    with db.read() as connection:
        return {
            (model, Cell(country, topic)): (int(n), int(n_valid))
            for country, topic, model, n, n_valid in connection.execute(query)
        }


def _count_outcomes_by_cell(table: sa.Table, audit_id: int) -> sa.Select[Any]:
    """Build the query that counts a table's rows as the first columns of `OutcomeCount`, in their order."""
    group = (table.c.model, table.c.country, table.c.topic, table.c.outcome)
    return sa.select(*group, sa.func.count()).where(table.c.audit_id == audit_id).group_by(*group).order_by(*group)


def count_if(condition: sa.ColumnElement[bool]) -> sa.ColumnElement[int]:
    """Column: number of rows of a group that meet a condition."""
    return sa.func.coalesce(sa.func.sum(sa.case((condition, 1), else_=0)), 0)


def fetch_rows(db: Database, make_record: Callable[[Iterable[Any]], T], query: sa.Select[Any]) -> list[T]:
    """Run a query and return its rows, each converted by `make_record`."""
    with db.read() as connection:
        return [make_record(row) for row in connection.execute(query)]


def count_missing_answers(db: Database, audit_id: int) -> int:
    """Count usable traces, verdicts and answers of probes that have a call's key but no recorded answer."""
    n_missing = 0
    answers = table_of(StoredAnswer)
    for record_class in (Trace, Verdict, ProbeResult, *ANSWER_RECORDS.values()):
        table = table_of(record_class)
        query = (
            sa.select(table.c.key)
            .outerjoin(answers, answers.c.key == table.c.key)
            .where(
                table.c.audit_id == audit_id,
                table.c.outcome == Outcome.OK.value,
                table.c.key.is_not(None),
                answers.c.key.is_(None),
            )
        )
        with db.read() as connection:
            n_missing += len(connection.execute(query).all())
    return n_missing
