"""An audit's verdicts as arrays, for statistics over judges; of the traces, only language and length are loaded.

Arrays instead of objects, since a large audit has a million verdicts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Integer, Select, case, func, select, type_coerce

from auditor.domain import Outcome, Ruling, Trace, Verdict
from auditor.storage.call_records import StoredAnswer
from auditor.storage.database import Database
from auditor.storage.row_writing import table_of

Floats = NDArray[np.float64]
TraceKey = tuple[str, str, str, int]
"""Model, country, topic, sample."""
_ROWS_PER_CHUNK = 20_000
"""Number of rows that are loaded before they are converted to arrays."""


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
    return VoteArrays(judges, traces, languages, text_lengths, ratings, judge, trace, rating, *vote_columns)


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


def _votes_query(audit_id: int) -> Select[Any]:
    """Select an audit's `ok` verdicts in order of judge and trace, with the time when the answer was recorded."""
    verdicts, answers = table_of(Verdict), table_of(StoredAnswer)
    texts = (verdicts.c.judge, verdicts.c.model, verdicts.c.country, verdicts.c.topic)
    valid = case((verdicts.c.ruling == Ruling.VALID.value, 1), else_=0)
    always = type_coerce(verdicts.c.always, Integer)  # converting each to bool takes longer than reading it
    values = (valid, verdicts.c.confidence, always, answers.c.created_at)
    query = select(*texts, verdicts.c.aspects, verdicts.c.sample, *values).select_from(
        verdicts.outerjoin(answers, answers.c.key == verdicts.c.key)
    )
    conditions = (verdicts.c.audit_id == audit_id, verdicts.c.outcome == Outcome.OK.value)
    return query.where(*conditions).order_by(*texts, verdicts.c.sample)


def _read_chunks(connection: Connection, query: Select[Any]) -> Iterator[Sequence[Any]]:
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
    connection: Connection, audit_id: int, traces: Sequence[TraceKey]
) -> list[tuple[str | None, float | None]]:
    """Load language and length in characters of each of these traces; None and nan if a trace is not stored."""
    c = table_of(Trace).c
    query = select(c.model, c.country, c.topic, c.sample, c.language, func.length(c.text)).where(c.audit_id == audit_id)
    facts_by_trace = {
        tuple(key): (language, length) for rows in _read_chunks(connection, query) for *key, language, length in rows
    }
    return [facts_by_trace.get(key, (None, np.nan)) for key in traces]
