"""All tables of the database: importing this module loads every row class and sets the types of texts.

Times are ISO 8601 in UTC; unknown numbers are NULL, never 0. The table `answer` is the ledger: it is shared by all
audits of a database, and its key covers all that determines an answer. Most other tables belong to one audit each and
are derived from the ledger. `rating` is append-only.
"""

from __future__ import annotations

from sqlalchemy import Column, LargeBinary, String, Text
from sqlmodel import AutoString, Field, SQLModel

from auditor.domain import Purpose
from auditor.storage import audit_tables as audit_tables
from auditor.storage import call_tables as call_tables
from auditor.storage import result_tables as result_tables
from auditor.storage import review_tables as review_tables
from auditor.storage.row_types import AppendOnlyRow, DerivedRow, ServerText, audit_id_column, call_key_column

SCHEMA_VERSION = 8
"""Number of the latest revision in `migrations/versions`; each revision adds one."""
REVISION = f"{SCHEMA_VERSION:04}"
VERSION_TABLE = "auditor_version"
"""Table that holds the database's revision; its presence marks a database of auditor."""


class ComparisonSetRow(DerivedRow, table=True):
    """Items that are compared with each other; `text` is what judges are told of them."""

    __tablename__ = "comparison_set"
    audit_id: int = Field(sa_column=audit_id_column())
    context: str = Field(primary_key=True)
    position: int
    text: str = Field(sa_column=Column(Text, nullable=False))
    criterion: str
    language: str


class ComparisonItemRow(DerivedRow, table=True):
    """One item of a set; `human` is people's score of it."""

    __tablename__ = "comparison_item"
    audit_id: int = Field(sa_column=audit_id_column())
    context: str = Field(primary_key=True)
    item: str = Field(primary_key=True)
    position: int
    text: str = Field(sa_column=Column(Text, nullable=False))
    human: float | None = None


class ComparisonRow(DerivedRow, table=True):
    """One judge's answer to one question that shows `item_a` first; `decision` is A, B or TIE."""

    __tablename__ = "comparison"
    audit_id: int = Field(sa_column=audit_id_column())
    judge: str = Field(primary_key=True)
    context: str = Field(primary_key=True)
    item_a: str = Field(primary_key=True)
    item_b: str = Field(primary_key=True)
    relation: str = Field(primary_key=True)
    paraphrase: int = Field(primary_key=True)
    sample: int = Field(primary_key=True)
    outcome: str
    decision: str | None = None
    probability: float | None = None
    people: str | None = None
    key: str | None = call_key_column(Purpose.LOGIC, "judge")


# --- the probe `semantic` -----------------------------------------------------------------------------------------


class CallRow(DerivedRow, table=True):
    """One call of a probe that keeps its answers elsewhere; `name` is who was asked. Here for what it cost."""

    __tablename__ = "call"
    audit_id: int = Field(sa_column=audit_id_column())
    name: str = Field(primary_key=True)
    purpose: str = Field(primary_key=True)
    key: str = Field(primary_key=True)


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


class VectorRow(AppendOnlyRow, table=True):
    """A text's embedding, shared by all audits: 32-bit floats, little end first."""

    __tablename__ = "vector"
    revision: str = Field(primary_key=True)
    text: str = Field(primary_key=True)
    """SHA-256 of the text."""
    values: bytes = Field(sa_column=Column(LargeBinary, nullable=False))


for _table in SQLModel.metadata.tables.values():
    for _column in _table.columns:
        if isinstance(_column.type, String | AutoString):
            _text_type = Text if isinstance(_column.type, Text) else String
            _column.type = _text_type().with_variant(ServerText(collation="C"), "postgresql")
