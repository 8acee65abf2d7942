"""An audit's verdicts as columns of numbers, for statistics over judges: of texts no more than the length is read.

A large audit has a million of them, so none is an object of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Integer, Select, case, func, select, type_coerce

from auditor.domain import Outcome, Ruling
from auditor.storage.database import Database, table_of
from auditor.storage.tables import AnswerRow, TraceRow, VerdictRow

Floats = NDArray[np.float64]
TraceKey = tuple[str, str, str, int]
"""Model, country, topic, sample."""
_ROWS_PER_CHUNK = 20_000
"""Rows that are read before they become numbers."""


class Vote(NamedTuple):
    """One verdict that was given.

    Attributes:
        valid: 1 is VALID, 0 INVALID.
        always: whether it was asked whatever other judges said.
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
    """All verdicts of an audit that were given, in order of judge and trace.

    Attributes:
        judges, traces: those of the verdicts, in order.
        languages, lengths: of the traces; length is in characters. nan or None for one that is not stored.
        judge, trace: places in `judges` and `traces`, shape (verdicts,), as all below.
        valid: 1 is VALID, 0 INVALID.
        confidence: in [0, 1]; nan where the judge did not say.
        always: whether it was asked whatever other judges said.
        answered_at: when the answer was recorded, in seconds since 1970; nan for an imported verdict.
    """

    judges: Sequence[str]
    traces: Sequence[TraceKey]
    languages: Sequence[str | None]
    lengths: Floats
    judge_index: NDArray[np.intp]
    trace_index: NDArray[np.intp]
    valid: NDArray[np.int8]
    confidence: Floats
    always: NDArray[np.bool_]
    answered_at: Floats

    @classmethod
    def empty(cls) -> Self:
        """Those of an audit without judges."""
        row = np.zeros(0)
        place = row.astype(np.intp)
        return cls((), (), (), row, place, place, row.astype(np.int8), row, row.astype(np.bool_), row)

    def __len__(self) -> int:
        return len(self.valid)

    def __iter__(self) -> Iterator[Vote]:
        """One by one; for audits that are small."""
        columns = (c.tolist() for c in (self.judge_index, self.trace_index, self.valid, self.always))
        for judge, trace, valid, always in zip(*columns, strict=True):
            model, country, topic, sample = self.traces[trace]
            yield Vote(self.judges[judge], model, country, topic, sample, valid, always)


def load_votes(db: Database, audit_id: int) -> VoteArrays:
    """All verdicts of an audit that were given."""
    names = _TextIndex()
    with db.read() as connection:
        parts = [_to_columns(rows, names) for rows in _read_chunks(connection, _votes_query(audit_id))]
        if not parts:
            return VoteArrays.empty()
        judge, model, country, topic, sample, *rest = (np.concatenate(column) for column in zip(*parts, strict=True))
        judges, judge = names.sort_codes(judge)
        numbers, place = np.unique(sample, return_inverse=True)
        traces, trace = _combine_trace_keys(
            [*map(names.sort_codes, (model, country, topic)), (numbers.tolist(), place)]
        )
        told = _load_languages_and_lengths(connection, audit_id, traces)
    languages, lengths = zip(*told, strict=True)
    return VoteArrays(judges, traces, languages, np.array(lengths, dtype=np.float64), judge, trace, *rest)


class _TextIndex(dict[str, int]):
    """A number for every text, in the order in which they are first asked for."""

    def __missing__(self, text: str) -> int:
        return self.setdefault(text, len(self))

    def indices_of(self, texts: Sequence[str]) -> NDArray[np.int32]:
        return np.fromiter(map(self.__getitem__, texts), dtype=np.int32, count=len(texts))

    def sort_codes(self, codes: NDArray[np.int32]) -> tuple[list[str], NDArray[np.intp]]:
        """The texts that a column of numbers speaks of, in order, and the place of each row's among them."""
        texts = list(self)
        used = sorted(np.flatnonzero(np.bincount(codes)), key=texts.__getitem__)
        place = np.empty(len(texts), dtype=np.intp)
        place[used] = np.arange(len(used))
        return [texts[i] for i in used], place[codes]


def _combine_trace_keys(
    key_columns: Sequence[tuple[list[Any], NDArray[np.intp]]],
) -> tuple[list[TraceKey], NDArray[np.intp]]:
    """The traces that verdicts are about, in order, and the place of each verdict's among them.

    Args:
        parts: of a trace's key, in order: those there are, and the place of every verdict's among them.
    """
    shape = [len(known) for known, _ in key_columns]
    flat = np.asarray(np.ravel_multi_index([place for _, place in key_columns], shape))
    number, trace = np.unique(flat, return_inverse=True)
    places = np.unravel_index(number, shape)
    columns = [map(known.__getitem__, of.tolist()) for (known, _), of in zip(key_columns, places, strict=True)]
    return list(zip(*columns, strict=True)), trace


def _votes_query(audit_id: int) -> Select[Any]:
    v, a = table_of(VerdictRow), table_of(AnswerRow)
    key = (v.c.judge, v.c.model, v.c.country, v.c.topic, v.c.sample)
    valid = case((v.c.ruling == Ruling.VALID.value, 1), else_=0)
    always = type_coerce(v.c.always, Integer)  # as it is stored: making a bool of each takes longer than reading it
    query = select(*key, valid, v.c.confidence, always, a.c.created_at).select_from(v.outerjoin(a, a.c.key == v.c.key))
    return query.where(v.c.audit_id == audit_id, v.c.outcome == Outcome.OK.value).order_by(*key)


def _read_chunks(connection: Connection, query: Select[Any]) -> Iterator[Sequence[Any]]:
    yield from connection.execution_options(yield_per=_ROWS_PER_CHUNK).execute(query).partitions()


def _to_columns(rows: Iterable[Any], text_index: _TextIndex) -> tuple[NDArray[np.generic], ...]:
    """Some rows as columns: judge, model, country and topic by their numbers, then the rest as `Ballots` has it."""
    *texts, sample, valid, confidence, always, at = zip(*rows, strict=True)
    return (
        *(text_index.indices_of(column) for column in texts),
        np.array(sample, dtype=np.int64),
        np.array(valid, dtype=np.int8),
        np.array(confidence, dtype=np.float64),  # None becomes nan
        np.array(always, dtype=np.bool_),
        np.array([np.nan if t is None else datetime.fromisoformat(t).timestamp() for t in at], dtype=np.float64),
    )


def _load_languages_and_lengths(
    connection: Connection, audit_id: int, traces: Sequence[TraceKey]
) -> list[tuple[str | None, float | None]]:
    """Language and length of each of these traces; None and nan for one that is not stored."""
    c = table_of(TraceRow).c
    query = select(c.model, c.country, c.topic, c.sample, c.language, func.length(c.text)).where(c.audit_id == audit_id)
    found = {
        tuple(key): (language, length) for rows in _read_chunks(connection, query) for *key, language, length in rows
    }
    return [found.get(key, (None, np.nan)) for key in traces]


def count_duplicate_verdicts(db: Database, audit_id: int) -> int:
    """Verdicts that are another judge's very answer: both are one model, asked the same."""
    v = table_of(VerdictRow)
    place = (v.c.model, v.c.country, v.c.topic, v.c.sample, v.c.key)
    given = (v.c.audit_id == audit_id, v.c.outcome == Outcome.OK.value, v.c.key.is_not(None))
    shared = select((func.count() - 1).label("n")).where(*given).group_by(*place).having(func.count() > 1).subquery()
    with db.read() as connection:
        return int(connection.execute(select(func.coalesce(func.sum(shared.c.n), 0))).scalar_one())
