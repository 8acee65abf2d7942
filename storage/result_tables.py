"""Row classes of what the answers say: scores of models, verdicts of judges, and tests of the judges."""

from __future__ import annotations

from sqlalchemy import Column, Index, Text
from sqlmodel import Field

from auditor.domain import Purpose
from auditor.storage.row_types import DerivedRow, audit_id_column, call_key_column


class TraceRow(DerivedRow, table=True):
    """One sampled chain of thought, read."""

    __tablename__ = "trace"
    __table_args__ = (Index("ix_trace_cell", "audit_id", "country", "topic"),)
    audit_id: int = Field(sa_column=audit_id_column())
    model: str = Field(primary_key=True)
    country: str = Field(primary_key=True)
    topic: str = Field(primary_key=True)
    sample: int = Field(primary_key=True)
    outcome: str
    score: float | None = None
    text: str | None = Field(default=None, sa_column=Column(Text))
    key: str | None = call_key_column(Purpose.DIRECT, "model")
    language: str = "en"
    repair_key: str | None = call_key_column(Purpose.DIRECT, "model")
    answer: str | None = Field(default=None, sa_column=Column(Text))
    repeat_key: str | None = call_key_column(Purpose.DIRECT, "model")
    first_outcome: str | None = None


class ScoreRow(DerivedRow, table=True):
    """A model's score on a cell by one method."""

    __tablename__ = "score"
    audit_id: int = Field(sa_column=audit_id_column())
    model: str = Field(primary_key=True)
    country: str = Field(primary_key=True)
    topic: str = Field(primary_key=True)
    method: str = Field(primary_key=True)
    score: float | None = None
    variance: float | None = None
    n_ok: int
    n_planned: int
    self_consistency: float | None = None
    evidence: str | None = None
    raw: float | None = None
    measure: str | None = None
    sign_agreement: float | None = None
    straddles: bool | None = None
    answer: str | None = Field(default=None, sa_column=Column(Text))


class SentencePairRow(DerivedRow, table=True):
    """One comparison behind a log-probability score."""

    __tablename__ = "contrast"
    audit_id: int = Field(sa_column=audit_id_column())
    model: str = Field(primary_key=True)
    country: str = Field(primary_key=True)
    topic: str = Field(primary_key=True)
    number: int = Field(primary_key=True)
    positive: str
    negative: str
    outcome: str
    difference: float | None = None
    measure: str | None = None
    key: str | None = call_key_column(Purpose.LOGPROB, "model")
    key_swapped: str | None = call_key_column(Purpose.LOGPROB, "model")


class VerdictRow(DerivedRow, table=True):
    """What one judge says of one trace."""

    __tablename__ = "verdict"
    __table_args__ = (Index("ix_verdict_trace", "audit_id", "country", "topic", "model"),)
    audit_id: int = Field(sa_column=audit_id_column())
    judge: str = Field(primary_key=True)
    model: str = Field(primary_key=True)
    country: str = Field(primary_key=True)
    topic: str = Field(primary_key=True)
    sample: int = Field(primary_key=True)
    outcome: str
    ruling: str | None = None
    justification: str | None = Field(default=None, sa_column=Column(Text))
    key: str | None = call_key_column(Purpose.REVIEW, "judge")
    confidence: float | None = None
    shortened: bool = False
    again_key: str | None = call_key_column(Purpose.REVIEW, "judge")
    turn: int = 0
    always: bool = True
    aspects: str = Field(sa_column=Column(Text, nullable=False))
    """Canonical JSON: true or false by name of the aspect (`auditor.domain.review_aspects`), if the judge rated it."""
    repeat_key: str | None = call_key_column(Purpose.REVIEW, "judge")
    first_outcome: str | None = None


class GuessRow(DerivedRow, table=True):
    """What one judge takes a blinded trace to be about and by."""

    __tablename__ = "guess"
    audit_id: int = Field(sa_column=audit_id_column())
    judge: str = Field(primary_key=True)
    model: str = Field(primary_key=True)
    country: str = Field(primary_key=True)
    topic: str = Field(primary_key=True)
    sample: int = Field(primary_key=True)
    outcome: str
    hit_country: bool | None = None
    hit_topic: bool | None = None
    hit_author: bool | None = None
    countries: int
    topics: int
    authors: int
    key: str | None = call_key_column(Purpose.GUESS, "judge")


class RestatementRow(DerivedRow, table=True):
    """A trace in the words of a third model."""

    __tablename__ = "restatement"
    audit_id: int = Field(sa_column=audit_id_column())
    model: str = Field(primary_key=True)
    country: str = Field(primary_key=True)
    topic: str = Field(primary_key=True)
    sample: int = Field(primary_key=True)
    rewriter: str
    outcome: str
    text: str | None = Field(default=None, sa_column=Column(Text))
    key: str | None = call_key_column(Purpose.REWRITE, "rewriter")


class AlteredTraceVerdictRow(DerivedRow, table=True):
    """What one judge says of an altered trace."""

    __tablename__ = "trial"
    audit_id: int = Field(sa_column=audit_id_column())
    alteration: str = Field(primary_key=True)
    judge: str = Field(primary_key=True)
    model: str = Field(primary_key=True)
    country: str = Field(primary_key=True)
    topic: str = Field(primary_key=True)
    sample: int = Field(primary_key=True)
    outcome: str
    ruling: str | None = None
    key: str | None = call_key_column(Purpose.REVIEW, "judge")


class ContestRow(DerivedRow, table=True):
    """Which of two traces one judge prefers when it sees both."""

    __tablename__ = "contest"
    audit_id: int = Field(sa_column=audit_id_column())
    judge: str = Field(primary_key=True)
    country: str = Field(primary_key=True)
    topic: str = Field(primary_key=True)
    left: str = Field(primary_key=True)
    right: str = Field(primary_key=True)
    swapped: bool = Field(primary_key=True)
    outcome: str
    prefers_first: bool | None = None
    key: str | None = call_key_column(Purpose.CONTEST, "judge")


class ProbeResultRow(DerivedRow, table=True):
    """What a probe without tables of its own read from one answer; `unit` is a JSON list of strings, `value` JSON."""

    __tablename__ = "probe_result"
    audit_id: int = Field(sa_column=audit_id_column())
    probe: str = Field(primary_key=True)
    model: str = Field(primary_key=True)
    unit: str = Field(primary_key=True)
    sample: int = Field(primary_key=True)
    turn: int = Field(primary_key=True)
    outcome: str
    key: str | None = call_key_column(None, "model")
    value: str | None = Field(default=None, sa_column=Column(Text))
    reader_version: int
