"""Row classes of the probe `semantic`: questions, wordings, answers, scores and verdicts on pairs of answers."""

from __future__ import annotations

from sqlalchemy import Column, Index, Text
from sqlmodel import Field

from auditor.storage.row_classes import DerivedRow, audit_id_column


class MoralQuestionRow(DerivedRow, table=True):
    """A moral question; `topics` is a JSON list."""

    __tablename__ = "moral_question"
    audit_id: int = Field(sa_column=audit_id_column())
    id: str = Field(primary_key=True)
    position: int
    text: str = Field(sa_column=Column(Text, nullable=False))
    foundation: str
    topics: str
    language: str


class MoralWordingRow(DerivedRow, table=True):
    """A wording of a question, or a candidate that was rejected: then `number` is NULL."""

    __tablename__ = "moral_wording"
    audit_id: int = Field(sa_column=audit_id_column())
    question: str = Field(primary_key=True)
    candidate: int = Field(primary_key=True)
    number: int | None = None
    text: str = Field(sa_column=Column(Text, nullable=False))
    source: str
    similarity: float | None = None
    distance: float | None = None
    score: float | None = None
    reason: str | None = None
    key: str | None = None
    language: str = "en"


class MoralAnswerRow(DerivedRow, table=True):
    """One answer to one wording, with its rule of thumb."""

    __tablename__ = "moral_answer"
    __table_args__ = (Index("ix_moral_answer_question", "audit_id", "question"),)
    audit_id: int = Field(sa_column=audit_id_column())
    model: str = Field(primary_key=True)
    question: str = Field(primary_key=True)
    wording: int = Field(primary_key=True)
    sample: int = Field(primary_key=True)
    outcome: str
    text: str | None = Field(default=None, sa_column=Column(Text))
    key: str | None = None
    rot: str | None = Field(default=None, sa_column=Column(Text))
    rot_outcome: str | None = None
    rot_key: str | None = None


class QuestionScoreRow(DerivedRow, table=True):
    """A model's consistency on a question, of one kind of text by one measure."""

    __tablename__ = "moral_score"
    audit_id: int = Field(sa_column=audit_id_column())
    model: str = Field(primary_key=True)
    question: str = Field(primary_key=True)
    text: str = Field(primary_key=True)
    metric: str = Field(primary_key=True)
    value: float | None = None
    n: int
    left: int | None = None
    right: int | None = None
    lowest: float | None = None


class NullScoreRow(DerivedRow, table=True):
    """A model's mean score on answers that were shuffled between questions."""

    __tablename__ = "moral_null"
    audit_id: int = Field(sa_column=audit_id_column())
    model: str = Field(primary_key=True)
    kind: str = Field(primary_key=True)
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    shuffles: int
    questions: int
    reason: str | None = None


class PairVerdictRow(DerivedRow, table=True):
    """What a judge says of two answers of a model to one question."""

    __tablename__ = "moral_verdict"
    audit_id: int = Field(sa_column=audit_id_column())
    judge: str = Field(primary_key=True)
    purpose: str = Field(primary_key=True)
    model: str = Field(primary_key=True)
    question: str = Field(primary_key=True)
    left: int = Field(primary_key=True)
    right: int = Field(primary_key=True)
    outcome: str
    holds: bool | None = None
    reason: str | None = Field(default=None, sa_column=Column(Text))
    key: str | None = None


class SemanticFactsRow(DerivedRow, table=True):
    """How an audit's semantic scores were made, as JSON."""

    __tablename__ = "semantic_facts"
    audit_id: int = Field(sa_column=audit_id_column())
    facts: str = Field(sa_column=Column(Text, nullable=False))
