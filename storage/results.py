"""Rows that are parsed from answers: traces, scores, verdicts and conflicts; and the new ones of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import sqlalchemy as sa

from auditor.domain import (
    Cell,
    CellScore,
    Claim,
    Conflict,
    ConflictKind,
    ConflictSides,
    Method,
    Outcome,
    Rating,
    Ruling,
    SentencePairScore,
    Survey,
    Trace,
    Verdict,
)
from auditor.domain.audit_records import AUDIT_RUN, DesignAnswer
from auditor.storage import audits, hash_chain
from auditor.storage.call_records import StoredAnswer, StoredAttempt
from auditor.storage.database import Database
from auditor.storage.records import load_columns, load_records, replace_records, write_records
from auditor.storage.row_classes import conversion_of, table_of

CLAIM_KINDS = [kind.value for kind in ConflictKind if kind.spec.sides is ConflictSides.CLAIMS]
"""Kinds of conflicts that a user's command queues; a run neither makes nor deletes them."""


def save_recorded_audit(
    db: Database,
    *,
    name: str,
    config_hash: str,
    survey: Survey,
    environment: dict[str, Any],
    traces: Sequence[Trace],
    scores: Sequence[CellScore],
) -> None:
    """Store an audit of recorded results as finished, in one transaction: all of it, or the earlier one stays.

    Args:
        name, config_hash, survey, environment: as in `audits.save_audit`.
    """

    def write_results(connection: sa.Connection, audit_id: int) -> None:
        replace_records(connection, audit_id, Trace, traces)
        replace_records(connection, audit_id, CellScore, scores)

    audits.save_finished_audit(
        db,
        name=name,
        config_hash=config_hash,
        survey=survey,
        environment=environment,
        write_results=write_results,
    )


def replace_conflicts(db: Database, audit_id: int, conflicts: Sequence[Conflict]) -> None:
    """Store an audit's conflicts between scores in place of those it had; those between claims are not touched."""

    def job(connection: sa.Connection) -> None:
        table = table_of(Conflict)
        connection.execute(sa.delete(table).where(table.c.audit_id == audit_id, table.c.kind.not_in(CLAIM_KINDS)))
        write_records(connection, audit_id, Conflict, conflicts, is_new=True)

    db.write(job)


def replace_claim_conflicts(
    db: Database, audit_id: int, claims_by_conflict: Mapping[Conflict, tuple[str, str]]
) -> None:
    """Store an audit's conflicts between claims in place of those it had, with the claims of the two sides."""
    claims = [
        Claim(conflict.cell, model, text)
        for conflict, texts in claims_by_conflict.items()
        for model, text in zip((conflict.left, conflict.right), texts, strict=True)
    ]

    def job(connection: sa.Connection) -> None:
        table = table_of(Conflict)
        with hash_chain.record_changes(connection, audit_id, hash_chain.EXPERIMENT_KINDS):
            connection.execute(sa.delete(table).where(table.c.audit_id == audit_id, table.c.kind.in_(CLAIM_KINDS)))
            write_records(connection, audit_id, Conflict, claims_by_conflict, is_new=True)
            replace_records(connection, audit_id, Claim, claims)

    db.write(job)


def load_traces(
    db: Database, audit_id: int, cells: Iterable[tuple[str, ...]] | None = None, model: str | None = None
) -> list[Trace]:
    """Load an audit's traces by model, country, topic and sample, of some cells or all, of one model or all."""
    return load_records(db, audit_id, Trace, cells, model=model)


def list_models(db: Database, audit_id: int) -> list[str]:
    """List the names of the models with traces, in order."""
    c = table_of(Trace).c
    with db.read() as connection:
        return sorted(connection.execute(sa.select(c.model).where(c.audit_id == audit_id).distinct()).scalars())


def has_hidden_reasoning(db: Database, audit_id: int, model: str, has_thinking: Callable[[str], bool]) -> bool:
    """Whether a recorded answer of a model to a direct question follows hidden reasoning: tokens, or its text, say so.

    Args:
        has_thinking: whether a text has thinking that is removed from answers.
    """
    trace, answer = table_of(Trace).c, table_of(StoredAnswer).c
    answers = sa.join(table_of(Trace), table_of(StoredAnswer), trace.key == answer.key)
    is_of_model = sa.and_(trace.audit_id == audit_id, trace.model == model)
    counted = sa.select(answer.key).select_from(answers).where(is_of_model, answer.reasoning_tokens > 0).limit(1)
    texts = sa.select(answer.text).select_from(answers).where(is_of_model, answer.text.is_not(None))
    with db.read() as connection:
        return connection.execute(counted).first() is not None or any(
            has_thinking(text) for text in connection.execution_options(yield_per=1000).execute(texts).scalars()
        )


class TraceText(NamedTuple):
    """The text of a trace, with its language."""

    model: str
    cell: Cell
    outcome: Outcome
    language: str
    text: str


def iterate_trace_texts(db: Database, audit_id: int, *, usable_only: bool = False) -> Iterator[TraceText]:
    """Yield the texts of an audit's traces, without keeping them in memory.

    Args:
        usable_only: yield only those of usable traces.
    """
    c = table_of(Trace).c
    query = sa.select(c.model, c.country, c.topic, c.outcome, c.language, c.text)
    query = query.where(c.audit_id == audit_id, c.text.is_not(None))
    if usable_only:
        query = query.where(c.outcome == Outcome.OK.value)
    with db.read() as connection:
        for model, country, topic, outcome, *content in connection.execution_options(yield_per=1000).execute(query):
            yield TraceText(model, Cell(country, topic), Outcome(outcome), *content)


def load_scored_trace_keys(db: Database, audit_id: int) -> list[tuple[str, Cell, int]]:
    """Load model, cell and sample of an audit's traces whose outcome is `ok`, in order."""
    c = table_of(Trace).c
    query = sa.select(c.model, c.country, c.topic, c.sample).where(
        c.audit_id == audit_id, c.outcome == Outcome.OK.value
    )
    with db.read() as connection:
        rows = connection.execute(query.order_by(c.model, c.country, c.topic, c.sample))
        return [(model, Cell(country, topic), sample) for model, country, topic, sample in rows]


def load_design_answers(
    db: Database, audit_id: int, cells: Iterable[tuple[str, ...]] | None = None, model: str | None = None
) -> list[DesignAnswer]:
    """Load the answers in an audit's designs, of some cells or all, of one model or all.

    Those of the run with the audit's settings are the audit's own: where the audit excludes one, it is excluded.
    """
    answers = load_records(db, audit_id, DesignAnswer, cells, model=model)
    if not answers:
        return []
    c = table_of(Trace).c
    query = sa.select(c.model, c.country, c.topic, c.sample)
    with db.read() as connection:
        rows = connection.execute(query.where(c.audit_id == audit_id, c.outcome == Outcome.EXCLUDED.value))
        excluded = {(model_name, Cell(country, topic), sample) for model_name, country, topic, sample in rows}
    return [
        replace(answer, outcome=Outcome.EXCLUDED, score=None)
        if answer.run == AUDIT_RUN and (answer.model, answer.cell, answer.sample) in excluded
        else answer
        for answer in answers
    ]


def load_sample_scores(db: Database, audit_id: int) -> list[tuple[str, Cell, int, float | None]]:
    """Load model, cell, sample and score of an audit's traces, in order; the score is None if a trace has none."""
    c = table_of(Trace).c
    key = (c.model, c.country, c.topic, c.sample)
    with db.read() as connection:
        rows = connection.execute(sa.select(*key, c.score).where(c.audit_id == audit_id).order_by(*key))
        return [(model, Cell(country, topic), sample, score) for model, country, topic, sample, score in rows]


def delete_traces(db: Database, audit_id: int, trace_keys: Sequence[tuple[str, Cell, int]]) -> None:
    """Delete traces, the verdicts on them, and the direct score of a cell without traces; answers stay recorded."""

    def job(connection: sa.Connection) -> None:
        trace = table_of(Trace)
        for model, cell, sample in trace_keys:
            for table in (trace, table_of(Verdict)):
                connection.execute(sa.delete(table).where(*matches_cell(table, model, cell), table.c.sample == sample))
        for model, cell in dict.fromkeys((model, cell) for model, cell, _ in trace_keys):
            if (
                connection.execute(sa.select(trace.c.sample).where(*matches_cell(trace, model, cell)).limit(1)).first()
                is None
            ):
                score = table_of(CellScore)
                is_direct = score.c.method == Method.DIRECT.value
                connection.execute(sa.delete(score).where(*matches_cell(score, model, cell), is_direct))

    def matches_cell(table: sa.Table, model: str, cell: Cell) -> tuple[sa.ColumnElement[bool], ...]:
        c = table.c
        return c.audit_id == audit_id, c.model == model, c.country == cell.country, c.topic == cell.topic

    if trace_keys:
        db.write(job)


def load_mean_scores(db: Database, audit_id: int) -> list[tuple[str, Cell, float]]:
    """Load model, cell and mean score of an audit's `ok` samples, in order."""
    c = table_of(Trace).c
    group = (c.model, c.country, c.topic)
    query = sa.select(*group, sa.func.avg(c.score)).where(c.audit_id == audit_id, c.outcome == Outcome.OK.value)
    with db.read() as connection:
        rows = connection.execute(query.group_by(*group).order_by(*group))
        return [(model, Cell(country, topic), float(mean)) for model, country, topic, mean in rows]


def load_sentence_pairs(db: Database, audit_id: int, cells: Iterable[Cell] | None = None) -> list[SentencePairScore]:
    """Load an audit's sentence pairs in order of model, country, topic and number, of some cells or all."""
    return load_records(db, audit_id, SentencePairScore, cells)


def load_scores(db: Database, audit_id: int) -> list[CellScore]:
    """Load an audit's scores."""
    return load_records(db, audit_id, CellScore)


def load_verdicts(
    db: Database, audit_id: int, cells: Iterable[Cell] | None = None, model: str | None = None
) -> list[Verdict]:
    """Load an audit's verdicts, of some cells or all, on one model's traces or all."""
    return load_records(db, audit_id, Verdict, cells, model=model)


class JudgeRuling(NamedTuple):
    """The part of a verdict that counts as a vote."""

    judge: str
    model: str
    cell: Cell
    sample: int
    outcome: Outcome
    ruling: Ruling | None
    always: bool = True


def load_rulings(db: Database, audit_id: int, cells: Iterable[Cell] | None = None) -> list[JudgeRuling]:
    """Load the rulings of an audit's verdicts, of some cells or all; a verdict takes ten times the memory."""
    return load_columns(db, audit_id, Verdict, JudgeRuling, cells)


def load_missing_votes(db: Database, audit_id: int) -> list[JudgeRuling]:
    """Load the verdicts without a ruling: of judges that failed, or abstained in an imported file."""
    table, conversion = table_of(Verdict), conversion_of(JudgeRuling)
    query = sa.select(*(table.c[name] for name in conversion.column_names))
    with db.read() as connection:
        rows = connection.execute(query.where(table.c.audit_id == audit_id, table.c.ruling.is_(None)))
        return list(map(conversion.to_record, rows))


def load_conflicts(db: Database, audit_id: int) -> list[Conflict]:
    """Load an audit's conflicts of all kinds."""
    return load_records(db, audit_id, Conflict)


def load_voted_conflicts(db: Database, audit_id: int) -> list[Conflict]:
    """Load an audit's conflicts between models, on which judges vote."""
    return [conflict for conflict in load_conflicts(db, audit_id) if conflict.kind.is_voted]


def load_unvoted_conflicts(db: Database, audit_id: int) -> list[Conflict]:
    """Load an audit's conflicts between scores on which judges do not vote, so that only people can resolve them."""
    conflicts = load_conflicts(db, audit_id)
    return [c for c in conflicts if not c.kind.is_voted and c.kind.spec.sides is not ConflictSides.CLAIMS]


def load_ratings(db: Database, audit_id: int) -> list[Rating]:
    """Load an audit's ratings, oldest first."""
    return load_records(db, audit_id, Rating)


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
        topic, answer: the trace's; the answer is None but for an item of a task, and for a verdict.
    """

    judge: str
    outcome: Outcome
    score: float | None
    ruling: Ruling | None
    text: str | None
    key: str
    number: int
    started_at: str
    topic: str
    answer: str | None


def load_new_results(db: Database, audit_id: int, since: str) -> Iterator[NewResult]:
    """Yield the scores, then the verdicts, whose answer was recorded at or after `since` (ISO 8601, UTC)."""
    with db.read() as connection:
        for query in (_new_scores_query(audit_id, since), _new_verdicts_query(audit_id, since)):
            for row in connection.execution_options(yield_per=1000).execute(query):
                judge, outcome, score, ruling, *content = row
                yield NewResult(judge, Outcome(outcome), score, Ruling(ruling) if ruling else None, *content)


def _new_scores_query(audit_id: int, since: str) -> sa.Select[Any]:
    """Query of the traces whose answer was recorded at or after `since`; columns in order of `NewResult`."""
    traces, answers = table_of(Trace), table_of(StoredAnswer)
    trace, attempt = traces.c, _attempt_alias()
    query = sa.select(
        sa.literal(""),
        trace.outcome,
        trace.score,
        sa.cast(sa.null(), sa.String),
        trace.text,
        trace.key,
        attempt.c.number,
        attempt.c.started_at,
        trace.topic,
        trace.answer,
    )
    source = traces.join(answers, answers.c.key == trace.key).join(attempt, _is_last_attempt(trace.key, attempt))
    return query.select_from(source).where(trace.audit_id == audit_id, answers.c.created_at >= since)


def _new_verdicts_query(audit_id: int, since: str) -> sa.Select[Any]:
    """Query of the verdicts whose answer was recorded at or after `since`; columns in order of `NewResult`.

    Key, number and start are those of the call that gave the trace, not of the call of the judge.
    """
    verdicts, traces, answers = table_of(Verdict), table_of(Trace), table_of(StoredAnswer)
    verdict, trace, attempt = verdicts.c, traces.c, _attempt_alias()
    same_trace = [verdict[name] == trace[name] for name in ("audit_id", "model", "country", "topic", "sample")]
    query = sa.select(
        verdict.judge,
        verdict.outcome,
        sa.null(),
        verdict.ruling,
        verdict.justification,
        trace.key,
        attempt.c.number,
        attempt.c.started_at,
        trace.topic,
        sa.null(),
    )
    source = (
        verdicts.join(traces, sa.and_(*same_trace))
        .join(answers, answers.c.key == verdict.key)
        .join(attempt, _is_last_attempt(trace.key, attempt))
    )
    return query.select_from(source).where(verdict.audit_id == audit_id, answers.c.created_at >= since)


def _attempt_alias() -> sa.FromClause:
    return table_of(StoredAttempt).alias("last")


def _is_last_attempt(key: sa.ColumnElement[str], attempt: sa.FromClause) -> sa.ColumnElement[bool]:
    """Condition: the attempt is the last one of the call with this key."""
    any_attempt = table_of(StoredAttempt).alias("other")
    last_id = (
        sa.select(sa.func.max(any_attempt.c.id))
        .where(any_attempt.c.key == key)
        .correlate_except(any_attempt)
        .scalar_subquery()
    )
    return sa.and_(attempt.c.key == key, attempt.c.id == last_id)
