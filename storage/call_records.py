"""Records of calls: the ledger, what went out, what servers accept, batches, and the chain of hashes."""

from __future__ import annotations

import functools
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Annotated

from pydantic import TypeAdapter

from auditor.domain import Answer, Attempt, Capability, CapabilityKey, canonical_json
from auditor.domain.records import (
    Indexed,
    Key,
    LongText,
    Nullable,
    Owners,
    References,
    RowOwner,
    RowPolicy,
    StoredAs,
    Unique,
    stored,
)


@stored(
    "answer",
    RowPolicy.APPEND_ONLY,
    RowOwner.DATABASE,
    first_columns=(
        "key", "model", "server", "purpose", "request", "outcome", "text", "finish_reason", "served_model",
        "prompt_tokens", "completion_tokens", "cost_usd", "error", "created_at", "fingerprint", "sent", "altered",
        "payload",
    ),
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """One answer that arrived, under the key of its call.

    Attributes:
        request: what was asked, as JSON.
        payload: digest of a `Payload`; None if nothing of the response was kept.
    """

    answer: Answer
    model: str
    server: str | None
    purpose: str
    request: Nullable[LongText[str]]
    created_at: str
    payload: str | None = None


@stored(
    "attempt",
    RowPolicy.APPEND_ONLY,
    RowOwner.DATABASE_NUMBERED,
    first_columns=(
        "id", "key", "number", "model", "purpose", "started_at", "latency_s", "outcome", "http_status", "error",
        "retry_after_s", "size", "payload", "audit_id", "name",
    ),
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class StoredAttempt:
    """One request that went out, whether or not an answer came of it; `audit_id` is the audit that asked.

    Rows of programs before revision 6 have NULL in all columns from `audit_id` on: their cost is the answer's.
    """

    attempt: Attempt
    key: Indexed[str]
    model: str
    purpose: str
    size: int | None
    payload: str | None
    audit_id: Indexed[int | None]
    name: str | None


@stored("payload", RowPolicy.APPEND_ONLY, RowOwner.DATABASE)
@dataclass(frozen=True, slots=True)
class Payload:
    """The beginning of a server's answer as it came, by zlib, under the SHA-256 of what is kept of it."""

    digest: Key[str]
    data: bytes


@stored("limit_change", RowPolicy.APPEND_ONLY, RowOwner.AUDIT_NUMBERED)
@dataclass(frozen=True, slots=True)
class LimitChange:
    """A change of how many requests may be in flight for one account: when, and why.

    Attributes:
        run: id of the run.
        at: UTC, ISO 8601.
        account: provider and server; never an API key.
        before, after: maximum number of requests in flight.
        why: reason of the change, such as `429` or `a clean round`.
    """

    run: str
    at: str
    account: str
    before: int
    after: int
    why: str


@functools.cache
def _capability_adapter() -> TypeAdapter[Capability]:
    return TypeAdapter(Capability)


def serialize_capability(capability: Capability) -> str:
    """Canonical JSON of a capability."""
    return canonical_json(asdict(capability))


def parse_capability(content: str) -> Capability:
    """The capability that `serialize_capability` was given."""
    return _capability_adapter().validate_json(content)


@stored("capability", RowPolicy.APPEND_ONLY)
@dataclass(frozen=True, slots=True)
class StoredCapability:
    """What a model's server was found to accept; `content` is canonical JSON, the highest number is the current one.

    `server` and `effort` are empty where the config sets none.

    Attributes:
        key: what it belongs to.
        number: position in the history, from 1; the highest is current.
        id: of the capability.
        capability: what requests look like.
        evidence: what the server answered that led to it.
        litellm_version: version of litellm that it was found out with.
        created_at: UTC, ISO 8601.
    """

    key: Key[CapabilityKey]
    number: Key[int]
    id: str
    capability: LongText[Annotated[Capability, StoredAs("content", serialize_capability, parse_capability)]]
    evidence: LongText[str]
    litellm_version: str
    created_at: str


@stored("dispatch", RowPolicy.MUTABLE, RowOwner.DATABASE)
@dataclass(frozen=True, slots=True)
class Dispatch:
    """A call that went out and has not come back: in flight, or lost with the run that asked it."""

    run: Key[str]
    key: Key[str]
    audit_id: Indexed[Annotated[int, References("audit.id", is_owned=True)]]
    name: str
    purpose: str
    started_at: str


_DEFAULT_CAPABILITY = Capability()


@stored("batch", RowPolicy.MUTABLE, RowOwner.AUDIT_NUMBERED)
@dataclass(frozen=True, slots=True)
class ProviderBatch:
    """Calls that were put to a provider together, and whether their answers were collected; `calls` are their keys.

    `capability` is canonical JSON of what they were requested under; NULL in rows of programs before revision 7.

    Attributes:
        id, audit_id: 0 if it is not stored yet.
        tag: our unique name for the batch.
        model_name: name of the model in the audit.
        remote_id: the provider's id of the batch; None until it is known.
        n_calls: number of its calls.
        call_keys: ledger keys of the calls.
        reserved_usd: upper limit of what the batch may cost, in US dollars.
        prepared_at, submitted_at, ended_at: when it was recorded, was submitted and ended, in UTC.
        outcome: how it ended, such as `collected`.
        capability: what its calls were requested under.
    """

    id: Owners[int]
    audit_id: Owners[int]
    tag: Unique[str]
    model_name: Annotated[str, StoredAs("name")]
    remote_id: Annotated[str | None, StoredAs("remote")]
    n_calls: Annotated[int, StoredAs("n")]
    call_keys: LongText[Annotated[tuple[str, ...], StoredAs("calls", " ".join, lambda text: tuple(text.split(" ")))]]
    reserved_usd: float
    prepared_at: datetime
    submitted_at: datetime | None = None
    ended_at: datetime | None = None
    outcome: Annotated[str | None, StoredAs("how")] = None
    capability: Nullable[LongText[Annotated[Capability, StoredAs(None, serialize_capability, parse_capability)]]] = (
        _DEFAULT_CAPABILITY
    )


@stored("link", RowPolicy.APPEND_ONLY, RowOwner.DATABASE_NUMBERED)
@dataclass(frozen=True, slots=True)
class ChainLink:
    """One link of the chain of hashes over what results are derived from, in the order in which it was written.

    Attributes:
        kind: of the row, a table's name; or `act`.
        row: its key; of an act, what was done, as JSON.
        digest: hash of the link before it, kind, row and content.
        content: hash of the row; empty if it was deleted; None in links of programs before revision 21, whose digest
            is a hash of the row itself.
        audit_id: of the row's audit; None for rows that audits share, and in links of programs before revision 21.
    """

    kind: str
    row: str
    digest: str
    content: str | None = None
    audit_id: int | None = None


@stored("call")
@dataclass(frozen=True, slots=True)
class NotedCall:
    """One call of a probe that keeps its answers elsewhere; `name` is who was asked. Here for what it cost."""

    name: Key[str]
    purpose: Key[str]
    key: Key[str]


@stored("vector", RowPolicy.APPEND_ONLY, RowOwner.DATABASE)
@dataclass(frozen=True, slots=True)
class TextVector:
    """A text's embedding, shared by all audits: 32-bit floats, little end first.

    Attributes:
        revision: of the embedding model.
        text: SHA-256 of the text.
    """

    revision: Key[str]
    text: Key[str]
    values: bytes
