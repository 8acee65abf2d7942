"""An audit's verdicts as arrays, and verdicts of two audits or judges on the same traces."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, Self

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from auditor.domain import AnswerKind, Cell, CellScore, Outcome, Ruling, Task, Trace, Verdict
from auditor.storage.call_records import StoredAnswer
from auditor.storage.database import Database
from auditor.storage.row_classes import table_of

Floats = NDArray[np.float64]
TraceKey = tuple[str, str, str, int]
"""Model, country, topic, sample."""
_ROWS_PER_CHUNK = 20_000
"""Number of rows that are loaded before they are converted to arrays."""
SampleKey = tuple[str, Cell, int]
"""Model, cell, sample."""


def make_verdict_filter(
    task: Task | None,
    load_scores: Callable[[], Iterable[CellScore]],
    load_answers: Callable[[], Mapping[SampleKey, str]],
) -> Callable[[SampleKey], bool]:
    """Build a predicate: whether verdicts on a sample count for its model's side of a conflict.

    All count, except for tasks without scores: there, only those on samples with the model's most common answer.

    Args:
        load_scores, load_answers: load all scores of the audit, and by sample all answers that could be parsed.
    """
    if task is None or task.kind is AnswerKind.SCORE:
        return lambda sample: True
    answers, commonest_answers = load_answers(), {(score.model, score.cell): score.answer for score in load_scores()}
    # The first two parts of a sample's key are the model and the cell.
    return lambda sample: sample in answers and answers[sample] == commonest_answers.get(sample[:2])


class Vote(NamedTuple):
    """One verdict whose outcome is `ok`.

    Attributes:
        judge: name of the judge.
        model, country, topic, sample: the trace.
        valid: 1 is VALID, 0 INVALID.
        always: whether the judge was asked in any case, not only because an adaptive panel was split.
    """

    judge: str
    model: str
    country: str
    topic: str
    sample: int
    valid: int
    always: bool


@dataclass(frozen=True, slots=True, eq=False)
class VoteArrays:
    """All verdicts of an audit whose outcome is `ok`, in order of judge and trace.

    Attributes:
        judges, traces: the judges and traces of the verdicts, in order.
        languages: language of each trace; None if the trace is not stored.
        lengths: length of each trace in characters; nan if the trace is not stored.
        ratings: the different combinations of ratings of aspects, each by name of the aspect.
        judge_index, trace_index, rating_index: positions in `judges`, `traces` and `ratings`, shape (verdicts,), as all
            arrays below.
        valid: 1 is VALID, 0 INVALID.
        confidence: the judge's confidence in [0, 1]; nan if it gave none.
        always: whether the judge was asked in any case, not only because an adaptive panel was split.
        answered_at: when the answer was recorded, in seconds since 1970; nan for an imported verdict.
    """

    judges: Sequence[str]
    traces: Sequence[TraceKey]
    languages: Sequence[str | None]
    lengths: Floats
    ratings: Sequence[Mapping[str, bool]]
    judge_index: NDArray[np.intp]
    trace_index: NDArray[np.intp]
    rating_index: NDArray[np.intp]
    valid: NDArray[np.int8]
    confidence: Floats
    always: NDArray[np.bool_]
    answered_at: Floats

    @classmethod
    def empty(cls) -> Self:
        """The votes of an audit without verdicts."""
        floats = np.zeros(0)
        indices, bools = floats.astype(np.intp), floats.astype(np.bool_)
        return cls((), (), (), floats, (), indices, indices, indices, floats.astype(np.int8), floats, bools, floats)

    def __len__(self) -> int:
        return len(self.valid)

    def __iter__(self) -> Iterator[Vote]:
        """Yield the votes as objects; for small audits."""
        columns = (array.tolist() for array in (self.judge_index, self.trace_index, self.valid, self.always))
        for judge, trace, valid, always in zip(*columns, strict=True):
            model, country, topic, sample = self.traces[trace]
            yield Vote(self.judges[judge], model, country, topic, sample, valid, always)


def load_votes(db: Database, audit_id: int) -> VoteArrays:
    """Load all verdicts of an audit whose outcome is `ok`."""
    text_index = _TextIndex()
    with db.read() as connection:
        chunks = [_to_columns(rows, text_index) for rows in _read_chunks(connection, _votes_query(audit_id))]
        if not chunks:
            return VoteArrays.empty()
        judge, model, country, topic, aspects, sample, *vote_columns = (
            np.concatenate(arrays) for arrays in zip(*chunks, strict=True)
        )
        judges, judge = text_index.sort_codes(judge)
        aspect_texts, rating = text_index.sort_codes(aspects)
        samples, sample_index = np.unique(sample, return_inverse=True)
        traces, trace = _combine_trace_keys(
            [*map(text_index.sort_codes, (model, country, topic)), (samples.tolist(), sample_index)]
        )
        trace_facts = _load_languages_and_lengths(connection, audit_id, traces)
    languages, lengths = zip(*trace_facts, strict=True)
    text_lengths, ratings = np.array(lengths, dtype=np.float64), [json.loads(text) for text in aspect_texts]
    order = np.lexsort((trace, judge))  # sorted here, since the database is faster at reading rows as they are stored
    arrays = (array[order] for array in (judge, trace, rating, *vote_columns))
    return VoteArrays(judges, traces, languages, text_lengths, ratings, *arrays)


class _TextIndex(dict[str, int]):
    """Code of every text: 0, 1, 2, … in the order in which the texts are first looked up."""

    def __missing__(self, text: str) -> int:
        return self.setdefault(text, len(self))

    def indices_of(self, texts: Sequence[str]) -> NDArray[np.int32]:
        """Return the codes of texts, shape (texts,); new texts get new codes."""
        return np.fromiter(map(self.__getitem__, texts), dtype=np.int32, count=len(texts))

    def sort_codes(self, codes: NDArray[np.int32]) -> tuple[list[str], NDArray[np.intp]]:
        """Return the texts that occur in an array of codes, sorted, and each code's position among them."""
        texts = list(self)
        used_codes = sorted(np.flatnonzero(np.bincount(codes)), key=texts.__getitem__)
        rank_by_code = np.empty(len(texts), dtype=np.intp)
        rank_by_code[used_codes] = np.arange(len(used_codes))
        return [texts[i] for i in used_codes], rank_by_code[codes]


def _combine_trace_keys(
    key_columns: Sequence[tuple[list[Any], NDArray[np.intp]]],
) -> tuple[list[TraceKey], NDArray[np.intp]]:
    """Return the distinct traces of verdicts, sorted, and each verdict's position among them.

    Args:
        key_columns: for each part of a trace's key, its distinct values, sorted, and the position of every verdict's
            value among them, shape (verdicts,).
    """
    shape = [len(levels) for levels, _ in key_columns]
    flat_index = np.asarray(np.ravel_multi_index([index for _, index in key_columns], shape))
    used_index, trace = np.unique(flat_index, return_inverse=True)
    level_indices = np.unravel_index(used_index, shape)
    columns = [
        map(levels.__getitem__, indices.tolist())
        for (levels, _), indices in zip(key_columns, level_indices, strict=True)
    ]
    return list(zip(*columns, strict=True)), trace


def _votes_query(audit_id: int) -> sa.Select[Any]:
    """Select an audit's `ok` verdicts in any order, with the time when the answer was recorded."""
    verdicts, answers = table_of(Verdict), table_of(StoredAnswer)
    texts = (verdicts.c.judge, verdicts.c.model, verdicts.c.country, verdicts.c.topic)
    valid = sa.case((verdicts.c.ruling == Ruling.VALID.value, 1), else_=0)
    always = sa.type_coerce(verdicts.c.always, sa.Integer)  # converting each to bool takes longer than reading it
    values = (valid, verdicts.c.confidence, always, answers.c.created_at)
    query = sa.select(*texts, verdicts.c.aspects, verdicts.c.sample, *values).select_from(
        verdicts.outerjoin(answers, answers.c.key == verdicts.c.key)
    )
    conditions = (verdicts.c.audit_id == audit_id, verdicts.c.outcome == Outcome.OK.value)
    return query.where(*conditions)


def _read_chunks(connection: sa.Connection, query: sa.Select[Any]) -> Iterator[Sequence[Any]]:
    yield from connection.execution_options(yield_per=_ROWS_PER_CHUNK).execute(query).partitions()


def _to_columns(rows: Iterable[Any], text_index: _TextIndex) -> tuple[NDArray[np.generic], ...]:
    """Convert rows of `_votes_query` to arrays: codes of judge, model, country, topic and aspects, then as they are."""
    *texts, sample, valid, confidence, always, recorded_at = zip(*rows, strict=True)
    return (
        *(text_index.indices_of(column) for column in texts),
        np.array(sample, dtype=np.int64),
        np.array(valid, dtype=np.int8),
        np.array(confidence, dtype=np.float64),  # None becomes nan
        np.array(always, dtype=np.bool_),
        np.array(
            [
                np.nan if timestamp is None else datetime.fromisoformat(timestamp).timestamp()
                for timestamp in recorded_at
            ],
            dtype=np.float64,
        ),
    )


def _load_languages_and_lengths(
    connection: sa.Connection, audit_id: int, traces: Sequence[TraceKey]
) -> list[tuple[str | None, float | None]]:
    """Load language and length in characters of each of these traces; None and nan if a trace is not stored."""
    c = table_of(Trace).c
    query = sa.select(c.model, c.country, c.topic, c.sample, c.language, sa.func.length(c.text)).where(
        c.audit_id == audit_id
    )
    facts_by_trace = {
        tuple(key): (language, length) for rows in _read_chunks(connection, query) for *key, language, length in rows
    }
    return [facts_by_trace.get(key, (None, np.nan)) for key in traces]


SQL_TRUE, SQL_FALSE = sa.literal_column("1", sa.Integer), sa.literal_column("0", sa.Integer)
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
        rows = connection.execute(query.with_only_columns(*group, sa.func.count()).group_by(*group).order_by(*group))
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
        return int(connection.execute(sa.select(sa.func.count()).select_from(paired_traces)).scalar_one())


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


def _join_verdicts(first: VerdictSelection, second: VerdictSelection) -> tuple[Any, Any, Any, sa.Select[Any]]:
    """Join both sides' `ok` verdicts on the same cell and sample.

    Judge and model must be the same too, unless `second` names them. Only verdicts of judges that were asked in any
    case are joined, not those that an adaptive panel asked for on disputed traces. Within one audit, a model's sample
    is the same answer even if its text is not recorded.

    Returns:
        Aliases of the first and the second side's verdicts, an expression that is 1 if both are on the same answer, 0
        if not and NULL if unknown, and the query.
    """
    table: sa.Table = table_of(Verdict)
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
        same_trace = sa.and_(*(verdicts.c[name] == traces.c[name] for name in TRACE_KEY_COLUMNS))
        source = source.outerjoin(traces, same_trace)
    same_sample = sa.and_(
        first_verdicts.c.audit_id == second_verdicts.c.audit_id, first_verdicts.c.model == second_verdicts.c.model
    )
    is_same_answer = sa.case((same_sample, SQL_TRUE), *_compare_texts(first_traces, second_traces), else_=SQL_FALSE)
    query = sa.select(first_verdicts).select_from(source)
    query = query.where(first_verdicts.c.audit_id == first.audit_id, second_verdicts.c.audit_id == second.audit_id)
    query = query.where(first_verdicts.c.outcome == Outcome.OK.value, second_verdicts.c.outcome == Outcome.OK.value)
    query = query.where(first_verdicts.c.always.is_(True), second_verdicts.c.always.is_(True))
    for verdicts, selection in ((first_verdicts, first), (second_verdicts, second)):
        if selection.judge is not None:
            query = query.where(verdicts.c.judge == selection.judge)
        if selection.model is not None:
            query = query.where(verdicts.c.model == selection.model)
    return first_verdicts, second_verdicts, is_same_answer, query


def _compare_texts(first: sa.FromClause, second: sa.FromClause) -> list[tuple[Any, Any]]:
    """Cases of whether judges saw the same: the text with the score, or with the answer to the item of a task."""
    is_same_result = sa.and_(
        *(
            sa.or_(first.c[name] == second.c[name], sa.and_(first.c[name].is_(None), second.c[name].is_(None)))
            for name in ("score", "answer")
        )
    )
    return [
        (sa.or_(first.c.text.is_(None), second.c.text.is_(None)), sa.null()),
        (sa.and_(first.c.text == second.c.text, is_same_result), SQL_TRUE),
    ]
