"""Batches of calls that are submitted to a provider.

A batch is recorded before it is submitted, so that a run that was stopped can still collect the answers it paid for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, RowMapping, insert, select, update

from auditor.domain import Capability
from auditor.storage.call_tables import BatchRow
from auditor.storage.capabilities import parse_capability, serialize_capability
from auditor.storage.database import Database
from auditor.storage.ledger import find_answered_keys, utc_now
from auditor.storage.row_writing import table_of
from auditor.storage.writer import Job

KEY_SEPARATOR = " "


@dataclass(frozen=True, slots=True)
class ProviderBatch:
    """One batch of calls.

    Attributes:
        tag: our unique name for the batch.
        model_name: name of the model in the audit.
        remote_id: the provider's id of the batch; None until it is known.
        call_keys: ledger keys of the calls.
        reserved_usd: upper limit of what the batch may cost, in US dollars.
        prepared_at: when it was recorded, in UTC.
        capability: what its calls were requested under.
    """

    id: int
    audit_id: int
    tag: str
    model_name: str
    remote_id: str | None
    call_keys: tuple[str, ...]
    reserved_usd: float
    prepared_at: datetime
    capability: Capability = field(default_factory=Capability)


async def record_prepared_batch(
    db: Database,
    audit_id: int,
    *,
    tag: str,
    model_name: str,
    call_keys: Sequence[str],
    reserved_usd: float,
    capability: Capability,
) -> ProviderBatch:
    """Record that a batch is about to be submitted; durable when this returns."""
    prepared_at = utc_now()
    columns = {
        "audit_id": audit_id,
        "tag": tag,
        "name": model_name,
        "reserved_usd": reserved_usd,
        "prepared_at": prepared_at,
        "capability": serialize_capability(capability),
    }
    batch_row = {**columns, "n": len(call_keys), "calls": KEY_SEPARATOR.join(call_keys)}

    def job(connection: Connection) -> int:
        inserted_key = connection.execute(insert(table_of(BatchRow)).values(batch_row)).inserted_primary_key
        assert inserted_key is not None
        return int(inserted_key[0])

    batch_id = await _wait_until_durable(db, job)
    return ProviderBatch(
        batch_id,
        audit_id,
        tag,
        model_name,
        None,
        tuple(call_keys),
        reserved_usd,
        datetime.fromisoformat(prepared_at),
        capability,
    )


async def record_submitted_batch(db: Database, batch: ProviderBatch, remote_id: str) -> None:
    """Record the provider's id of a batch, and that it was submitted now."""
    table = table_of(BatchRow)
    statement = update(table).where(table.c.id == batch.id).values(remote=remote_id, submitted_at=utc_now())
    await _wait_until_durable(db, lambda connection: connection.execute(statement))


async def record_ended_batch(db: Database, batch: ProviderBatch, outcome: str) -> None:
    """Record that no more answers will come from a batch.

    Args:
        db: the database.
        batch: the batch.
        outcome: how it ended, such as `collected`.
    """
    table = table_of(BatchRow)
    statement = update(table).where(table.c.id == batch.id).values(ended_at=utc_now(), how=outcome)
    await _wait_until_durable(db, lambda connection: connection.execute(statement))


def load_open_batches(db: Database, audit_id: int | None = None) -> list[ProviderBatch]:
    """Load the batches that have not ended, oldest first, of one audit or of all."""
    table = table_of(BatchRow)
    query = select(table).where(table.c.ended_at.is_(None)).order_by(table.c.id)
    if audit_id is not None:
        query = query.where(table.c.audit_id == audit_id)
    with db.read() as connection:
        return [_parse_batch(row) for row in connection.execute(query).mappings()]


class UncollectedBatch(NamedTuple):
    """A batch with calls whose answers are not recorded yet.

    Attributes:
        model_name: name of the model in the audit.
        remote_id: the provider's id of the batch; None if it is not known whether it was submitted.
        n_missing_calls: number of calls without a recorded answer.
        prepared_at: when it was recorded, in UTC.
    """

    model_name: str
    remote_id: str | None
    n_missing_calls: int
    prepared_at: datetime


def load_uncollected_batches(db: Database, audit_id: int) -> list[UncollectedBatch]:
    """Load an audit's batches with answers that are still to be collected, oldest first."""
    uncollected = []
    for batch in load_open_batches(db, audit_id):
        if missing := len(batch.call_keys) - len(find_answered_keys(db, batch.call_keys)):
            uncollected.append(UncollectedBatch(batch.model_name, batch.remote_id, missing, batch.prepared_at))
    return uncollected


def load_remote_ids(db: Database) -> set[str]:
    """Load the providers' ids of all batches of the database, ended or not."""
    table = table_of(BatchRow)
    with db.read() as connection:
        return set(connection.execute(select(table.c.remote).where(table.c.remote.is_not(None))).scalars())


def _parse_batch(row: RowMapping) -> ProviderBatch:
    """Convert a row to a `ProviderBatch`; the call keys are stored as one text."""
    return ProviderBatch(
        id=row["id"],
        audit_id=row["audit_id"],
        tag=row["tag"],
        model_name=row["name"],
        remote_id=row["remote"],
        call_keys=tuple(row["calls"].split(KEY_SEPARATOR)),
        reserved_usd=row["reserved_usd"],
        prepared_at=datetime.fromisoformat(row["prepared_at"]),
        capability=Capability() if row["capability"] is None else parse_capability(row["capability"]),
    )


async def _wait_until_durable(db: Database, job: Job[Any]) -> Any:
    return await asyncio.wrap_future(db.writer.submit(job))
