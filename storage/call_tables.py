"""Row classes of calls and answers: the ledger, what went out, and the chain of hashes."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, LargeBinary, Text
from sqlmodel import Field

from auditor.storage.row_classes import AppendOnlyRow, MutableRow, audit_id_column


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
    audit_id: int = Field(sa_column=audit_id_column())
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
