"""Row classes of the database. Times are ISO 8601 in UTC; unknown numbers are NULL, never 0.

The table `answer` is the ledger: it is shared by all audits of a database, and its key covers all that determines an
answer. Most other tables belong to one audit each and are derived from the ledger. `rating` is append-only.

A table's base class says what may happen to its rows: `AppendOnlyRow`, `MutableRow` or `DerivedRow`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import Column, Dialect, ForeignKey, Index, LargeBinary, String, Text, TypeDecorator
from sqlmodel import AutoString, Field, SQLModel

from auditor.domain import Purpose

SCHEMA_VERSION = 9
"""Number of the latest revision in `migrations/versions`; each revision adds one."""
REVISION = f"{SCHEMA_VERSION:04}"
VERSION_TABLE = "auditor_version"
"""Table that holds the database's revision; its presence marks a database of auditor."""


class AppendOnlyRow(SQLModel):
    """Base of rows that are never changed or deleted; in a team's database, no role has the right to."""


class MutableRow(SQLModel):
    """Base of rows that a run changes or deletes, and that cannot be rebuilt from the ledger."""


class DerivedRow(SQLModel):
    """Base of an audit's rows that a run rebuilds from the ledger; they are deleted when its configuration changes."""


class AuditRow(MutableRow, table=True):
    """One audit; `config` and `survey` are canonical JSON."""

    __tablename__ = "audit"
    id: int | None = Field(default=None, primary_key=True)
    name: str = Field(unique=True)
    config: str | None = Field(default=None, sa_column=Column(Text))
    config_hash: str | None = None
    survey: str = Field(sa_column=Column(Text))
    stage: str
    created_at: str
    updated_at: str
    finished_at: str | None = None
    environment: str = Field(sa_column=Column(Text))


class CallReference(NamedTuple):
    """What a column with keys of calls says of them.

    Attributes:
        purpose: of the calls.
        name_column: column of the same table with the name of the model that was called.
    """

    purpose: Purpose
    name_column: str


CALL_REFERENCE = "call"
"""Key of a column's `CallReference` in `Column.info`."""


def _call_key(purpose: Purpose, name_column: str) -> Any:
    """A column with keys of calls, which count towards the audit's cost; see `CallReference`."""
    return Field(default=None, sa_column_kwargs={"info": {CALL_REFERENCE: CallReference(purpose, name_column)}})


def _audit_id_column() -> Column[int]:
    return Column(ForeignKey("audit.id", ondelete="CASCADE"), primary_key=True)


class SurveyCellRow(MutableRow, table=True):
    """Ground truth as it was when the audit was planned."""

    __tablename__ = "survey_cell"
    audit_id: int = Field(sa_column=_audit_id_column())
    position: int
    country: str = Field(primary_key=True)
    topic: str = Field(primary_key=True)
    score: float | None = None
    n: int | None = None
    standard_error: float | None = None
    nonresponse: float | None = None
    acceptable: float | None = None
    not_a_moral_issue: float | None = None
    unacceptable: float | None = None


class TaskItemRow(MutableRow, table=True):
    """One question of a task; `options` is a JSON list, `truth` the right answer where it is known."""

    __tablename__ = "task_item"
    audit_id: int = Field(sa_column=_audit_id_column())
    id: str = Field(primary_key=True)
    position: int
    question: str = Field(sa_column=Column(Text, nullable=False))
    context: str = Field(sa_column=Column(Text, nullable=False))
    options: str = Field(sa_column=Column(Text, nullable=False))
    truth: str | None = Field(default=None, sa_column=Column(Text))


class AnswerRow(AppendOnlyRow, table=True):
    """One answer that arrived, under the key of its call."""

    __tablename__ = "answer"
    key: str = Field(primary_key=True)
    model: str
    server: str | None = None
    purpose: str
    request: str = Field(sa_column=Column(Text))
    outcome: str
    text: str | None = Field(default=None, sa_column=Column(Text))
    finish_reason: str | None = None
    served_model: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost_usd: float | None = None
    error: str | None = Field(default=None, sa_column=Column(Text))
    created_at: str
    fingerprint: str | None = None
    sent: str | None = Field(default=None, sa_column=Column(Text))
    altered: str | None = None
    payload: str | None = None
    cached_tokens: int | None = None
    capability: str | None = None
    form: str | None = None
    reasoning_tokens: int | None = None


class AttemptRow(AppendOnlyRow, table=True):
    """One request that went out, whether or not an answer came of it; `audit_id` is the audit that asked.

    Rows of programs before revision 6 have NULL in all columns from `audit_id` on: their cost is the answer's.
    """

    __tablename__ = "attempt"
    id: int | None = Field(default=None, primary_key=True)
    key: str = Field(index=True)
    number: int
    model: str
    purpose: str
    started_at: str
    latency_s: float
    outcome: str
    http_status: int | None = None
    error: str | None = Field(default=None, sa_column=Column(Text))
    retry_after_s: float | None = None
    size: int | None = None
    payload: str | None = None
    audit_id: int | None = Field(default=None, index=True)
    name: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost_usd: float | None = None
    estimated: bool | None = None


class PayloadRow(AppendOnlyRow, table=True):
    """The beginning of a server's answer as it came, by zlib, under the SHA-256 of what is kept of it."""

    __tablename__ = "payload"
    digest: str = Field(primary_key=True)
    data: bytes = Field(sa_column=Column(LargeBinary, nullable=False))


class LimitChangeRow(AppendOnlyRow, table=True):
    """A change of how many requests may be in flight for one account: when, and why."""

    __tablename__ = "limit_change"
    id: int | None = Field(default=None, primary_key=True)
    audit_id: int = Field(sa_column=Column(ForeignKey("audit.id", ondelete="CASCADE"), nullable=False, index=True))
    run: str
    at: str
    account: str
    before: int
    after: int
    why: str


class CapabilityRow(AppendOnlyRow, table=True):
    """What a model's server was found to accept; `content` is canonical JSON, the highest number is the current one.

    `server` and `effort` are empty where the config sets none.
    """

    __tablename__ = "capability"
    audit_id: int = Field(sa_column=_audit_id_column())
    model: str = Field(primary_key=True)
    server: str = Field(primary_key=True)
    effort: str = Field(primary_key=True)
    number: int = Field(primary_key=True)
    id: str
    content: str = Field(sa_column=Column(Text, nullable=False))
    evidence: str = Field(sa_column=Column(Text, nullable=False))
    litellm_version: str
    created_at: str


class DispatchRow(MutableRow, table=True):
    """A call that went out and has not come back: in flight, or lost with the run that asked it."""

    __tablename__ = "dispatch"
    run: str = Field(primary_key=True)
    key: str = Field(primary_key=True)
    audit_id: int = Field(sa_column=Column(ForeignKey("audit.id", ondelete="CASCADE"), nullable=False, index=True))
    name: str
    purpose: str
    started_at: str


class BatchRow(MutableRow, table=True):
    """Calls that were put to a provider together, and whether their answers were collected; `calls` are their keys.

    `capability` is canonical JSON of what they were requested under; NULL in rows of programs before revision 7.
    """

    __tablename__ = "batch"
    id: int | None = Field(default=None, primary_key=True)
    audit_id: int = Field(sa_column=Column(ForeignKey("audit.id", ondelete="CASCADE"), nullable=False, index=True))
    tag: str = Field(unique=True)
    name: str
    remote: str | None = None
    n: int
    calls: str = Field(sa_column=Column(Text, nullable=False))
    reserved_usd: float
    prepared_at: str
    submitted_at: str | None = None
    ended_at: str | None = None
    how: str | None = None
    capability: str | None = Field(default=None, sa_column=Column(Text))


class ChainLinkRow(AppendOnlyRow, table=True):
    """One link of the chain of hashes over answers and ratings, in the order in which they were written."""

    __tablename__ = "link"
    id: int | None = Field(default=None, primary_key=True)
    kind: str
    row: str
    digest: str


class TraceRow(DerivedRow, table=True):
    """One sampled chain of thought, read."""

    __tablename__ = "trace"
    audit_id: int = Field(sa_column=_audit_id_column())
    model: str = Field(primary_key=True)
    country: str = Field(primary_key=True)
    topic: str = Field(primary_key=True)
    sample: int = Field(primary_key=True)
    outcome: str
    score: float | None = None
    text: str | None = Field(default=None, sa_column=Column(Text))
    key: str | None = _call_key(Purpose.DIRECT, "model")
    language: str = "en"
    repair_key: str | None = _call_key(Purpose.DIRECT, "model")
    answer: str | None = Field(default=None, sa_column=Column(Text))


class ScoreRow(DerivedRow, table=True):
    """A model's score on a cell by one method."""

    __tablename__ = "score"
    audit_id: int = Field(sa_column=_audit_id_column())
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
    audit_id: int = Field(sa_column=_audit_id_column())
    model: str = Field(primary_key=True)
    country: str = Field(primary_key=True)
    topic: str = Field(primary_key=True)
    number: int = Field(primary_key=True)
    positive: str
    negative: str
    outcome: str
    difference: float | None = None
    measure: str | None = None
    key: str | None = _call_key(Purpose.LOGPROB, "model")
    key_swapped: str | None = _call_key(Purpose.LOGPROB, "model")


class VerdictRow(DerivedRow, table=True):
    """What one judge says of one trace."""

    __tablename__ = "verdict"
    __table_args__ = (Index("ix_verdict_trace", "audit_id", "country", "topic", "model"),)
    audit_id: int = Field(sa_column=_audit_id_column())
    judge: str = Field(primary_key=True)
    model: str = Field(primary_key=True)
    country: str = Field(primary_key=True)
    topic: str = Field(primary_key=True)
    sample: int = Field(primary_key=True)
    outcome: str
    ruling: str | None = None
    justification: str | None = Field(default=None, sa_column=Column(Text))
    key: str | None = _call_key(Purpose.REVIEW, "judge")
    confidence: float | None = None
    shortened: bool = False
    again_key: str | None = _call_key(Purpose.REVIEW, "judge")
    turn: int = 0
    always: bool = True
    aspects: str = Field(sa_column=Column(Text, nullable=False))
    """Canonical JSON: true or false by name of the aspect (`auditor.domain.review_aspects`), if the judge rated it."""


class ComparisonSetRow(DerivedRow, table=True):
    """Items that are compared with each other; `text` is what judges are told of them."""

    __tablename__ = "comparison_set"
    audit_id: int = Field(sa_column=_audit_id_column())
    context: str = Field(primary_key=True)
    position: int
    text: str = Field(sa_column=Column(Text, nullable=False))
    criterion: str
    language: str


class ComparisonItemRow(DerivedRow, table=True):
    """One item of a set; `human` is people's score of it."""

    __tablename__ = "comparison_item"
    audit_id: int = Field(sa_column=_audit_id_column())
    context: str = Field(primary_key=True)
    item: str = Field(primary_key=True)
    position: int
    text: str = Field(sa_column=Column(Text, nullable=False))
    human: float | None = None


class ComparisonRow(DerivedRow, table=True):
    """One judge's answer to one question that shows `item_a` first; `decision` is A, B or TIE."""

    __tablename__ = "comparison"
    audit_id: int = Field(sa_column=_audit_id_column())
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
    key: str | None = _call_key(Purpose.LOGIC, "judge")


class ClaimRow(DerivedRow, table=True):
    """What one side of a conflict between claims says, in words; `model` is the side's name."""

    __tablename__ = "claim"
    audit_id: int = Field(sa_column=_audit_id_column())
    country: str = Field(primary_key=True)
    topic: str = Field(primary_key=True)
    model: str = Field(primary_key=True)
    text: str = Field(sa_column=Column(Text, nullable=False))


class GuessRow(DerivedRow, table=True):
    """What one judge takes a blinded trace to be about and by."""

    __tablename__ = "guess"
    audit_id: int = Field(sa_column=_audit_id_column())
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
    key: str | None = _call_key(Purpose.GUESS, "judge")


class RestatementRow(DerivedRow, table=True):
    """A trace in the words of a third model."""

    __tablename__ = "restatement"
    audit_id: int = Field(sa_column=_audit_id_column())
    model: str = Field(primary_key=True)
    country: str = Field(primary_key=True)
    topic: str = Field(primary_key=True)
    sample: int = Field(primary_key=True)
    rewriter: str
    outcome: str
    text: str | None = Field(default=None, sa_column=Column(Text))
    key: str | None = _call_key(Purpose.REWRITE, "rewriter")


class AlteredTraceVerdictRow(DerivedRow, table=True):
    """What one judge says of an altered trace."""

    __tablename__ = "trial"
    audit_id: int = Field(sa_column=_audit_id_column())
    alteration: str = Field(primary_key=True)
    judge: str = Field(primary_key=True)
    model: str = Field(primary_key=True)
    country: str = Field(primary_key=True)
    topic: str = Field(primary_key=True)
    sample: int = Field(primary_key=True)
    outcome: str
    ruling: str | None = None
    key: str | None = _call_key(Purpose.REVIEW, "judge")


class ContestRow(DerivedRow, table=True):
    """Which of two traces one judge prefers when it sees both."""

    __tablename__ = "contest"
    audit_id: int = Field(sa_column=_audit_id_column())
    judge: str = Field(primary_key=True)
    country: str = Field(primary_key=True)
    topic: str = Field(primary_key=True)
    left: str = Field(primary_key=True)
    right: str = Field(primary_key=True)
    swapped: bool = Field(primary_key=True)
    outcome: str
    prefers_first: bool | None = None
    key: str | None = _call_key(Purpose.CONTEST, "judge")


class ConflictRow(DerivedRow, table=True):
    """Two models that differ on a cell, and how the judges voted."""

    __tablename__ = "conflict"
    audit_id: int = Field(sa_column=_audit_id_column())
    country: str = Field(primary_key=True)
    topic: str = Field(primary_key=True)
    left: str = Field(primary_key=True)
    right: str = Field(primary_key=True)
    score_left: float | None = None
    score_right: float | None = None
    kind: str
    state: str
    seats: int
    votes_left: int
    votes_right: int
    winner: str | None = None
    within_noise: bool | None = None
    answer_left: str | None = Field(default=None, sa_column=Column(Text))
    answer_right: str | None = Field(default=None, sa_column=Column(Text))


class RatingRow(AppendOnlyRow, table=True):
    """What a person says of a conflict, with the scores it was about; appended, never changed."""

    __tablename__ = "rating"
    __table_args__ = (
        Index("ix_rating_last", "audit_id", "country", "topic", "left", "right", "rater", "score_left", "score_right"),
    )
    id: int | None = Field(default=None, primary_key=True)
    audit_id: int = Field(sa_column=Column(ForeignKey("audit.id"), nullable=False))
    country: str
    topic: str
    left: str
    right: str
    score_left: float | None = None
    score_right: float | None = None
    rater: str
    decision: str
    note: str = ""
    decided_at: str
    score: float | None = None
    flagged: bool = False
    act: str = "decide"
    of: int | None = None
    shown: str = ""
    swapped: bool = False
    duration_s: float | None = None
    answer_left: str | None = Field(default=None, sa_column=Column(Text))
    answer_right: str | None = Field(default=None, sa_column=Column(Text))
    withheld: bool | None = None
    follows: int | None = None


# --- the probe `semantic` -----------------------------------------------------------------------------------------


class CallRow(DerivedRow, table=True):
    """One call of a probe that keeps its answers elsewhere; `name` is who was asked. Here for what it cost."""

    __tablename__ = "call"
    audit_id: int = Field(sa_column=_audit_id_column())
    name: str = Field(primary_key=True)
    purpose: str = Field(primary_key=True)
    key: str = Field(primary_key=True)


class MoralQuestionRow(DerivedRow, table=True):
    """A moral question; `topics` is a JSON list."""

    __tablename__ = "moral_question"
    audit_id: int = Field(sa_column=_audit_id_column())
    id: str = Field(primary_key=True)
    position: int
    text: str = Field(sa_column=Column(Text, nullable=False))
    foundation: str
    topics: str
    language: str


class MoralWordingRow(DerivedRow, table=True):
    """A wording of a question, or a candidate that was rejected: then `number` is NULL."""

    __tablename__ = "moral_wording"
    audit_id: int = Field(sa_column=_audit_id_column())
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
    audit_id: int = Field(sa_column=_audit_id_column())
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
    audit_id: int = Field(sa_column=_audit_id_column())
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
    audit_id: int = Field(sa_column=_audit_id_column())
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
    audit_id: int = Field(sa_column=_audit_id_column())
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
    audit_id: int = Field(sa_column=_audit_id_column())
    facts: str = Field(sa_column=Column(Text, nullable=False))


class VectorRow(AppendOnlyRow, table=True):
    """A text's embedding, shared by all audits: 32-bit floats, little end first."""

    __tablename__ = "vector"
    revision: str = Field(primary_key=True)
    text: str = Field(primary_key=True)
    """SHA-256 of the text."""
    values: bytes = Field(sa_column=Column(LargeBinary, nullable=False))


# --- texts on a server --------------------------------------------------------------------------------------------


class ServerText(TypeDecorator[str]):
    """Text column for PostgreSQL: compared byte by byte, as in SQLite, and with NUL, which it refuses, as `\\x00`."""

    impl = String
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else value.replace("\0", "\\x00")


for _table in SQLModel.metadata.tables.values():
    for _column in _table.columns:
        if isinstance(_column.type, String | AutoString):
            _text_type = Text if isinstance(_column.type, Text) else String
            _column.type = _text_type().with_variant(ServerText(collation="C"), "postgresql")
