"""Batches of calls that are submitted to a provider.

A batch is recorded before it is submitted, so that a run that was stopped can still collect the answers it paid for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from auditor.domain import Capability
from auditor.storage import hash_chain
from auditor.storage.call_records import ProviderBatch, StoredAttempt
from auditor.storage.database import Database
from auditor.storage.ledger import find_answered_keys, utc_now
from auditor.storage.records import write_records
from auditor.storage.row_classes import select_records, table_of
from auditor.storage.writer import Job

REFUSED, NEVER_SUBMITTED = "refused", "never submitted"
UNCHARGED_OUTCOMES = (REFUSED, NEVER_SUBMITTED)
"""How a batch ends that the provider has not processed."""


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
    batch = ProviderBatch(
        id=0,
        audit_id=audit_id,
        tag=tag,
        model_name=model_name,
        remote_id=None,
        n_calls=len(call_keys),
        call_keys=tuple(call_keys),
        reserved_usd=reserved_usd,
        prepared_at=datetime.now(UTC),
        capability=capability,
    )

    def job(connection: sa.Connection) -> ProviderBatch:
        with hash_chain.record_changes(connection, audit_id, ["batch"]):
            write_records(connection, audit_id, ProviderBatch, [batch], is_new=True)
        [stored_batch] = select_records(connection, ProviderBatch, table_of(ProviderBatch).c.tag == tag)
        return stored_batch

    stored_batch: ProviderBatch = await _wait_until_durable(db, job)
    return stored_batch


async def record_submitted_batch(db: Database, batch: ProviderBatch, remote_id: str) -> None:
    """Record the provider's id of a batch, and that it was submitted now."""
    table = table_of(ProviderBatch)
    statement = sa.update(table).where(table.c.id == batch.id).values(remote=remote_id, submitted_at=utc_now())
    await _change(db, batch, statement)


async def record_ended_batch(db: Database, batch: ProviderBatch, outcome: str) -> None:
    """Record that no more answers will come from a batch.

    Args:
        db: the database.
        batch: the batch.
        outcome: how it ended, such as `collected`.
    """
    table = table_of(ProviderBatch)
    statement = sa.update(table).where(table.c.id == batch.id).values(ended_at=utc_now(), how=outcome)
    await _change(db, batch, statement)


async def _change(db: Database, batch: ProviderBatch, statement: sa.Update) -> None:
    """Change the row of a batch."""

    def job(connection: sa.Connection) -> None:
        with hash_chain.record_changes(connection, batch.audit_id, ["batch"]):
            connection.execute(statement)

    await _wait_until_durable(db, job)


def load_open_batches(db: Database, audit_id: int | None = None) -> list[ProviderBatch]:
    """Load the batches that have not ended, oldest first, of one audit or of all."""
    table = table_of(ProviderBatch)
    conditions: list[sa.ColumnElement[bool]] = [table.c.ended_at.is_(None)]
    if audit_id is not None:
        conditions.append(table.c.audit_id == audit_id)
    with db.read() as connection:
        return select_records(connection, ProviderBatch, *conditions, order_by=[table.c.id])


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
    open_batches = load_open_batches(db, audit_id)
    return [
        UncollectedBatch(batch.model_name, batch.remote_id, len(keys), batch.prepared_at)
        for batch, unread_keys in zip(open_batches, find_unread_keys(db, open_batches), strict=True)
        if (keys := unread_keys - find_answered_keys(db, unread_keys))
    ]


def find_unread_keys(db: Database, stored_batches: Sequence[ProviderBatch]) -> list[set[str]]:
    """Find, for each batch, the keys of the calls whose results in it were not recorded.

    The requests of a batch are recorded with the time at which it was prepared.
    """
    if not stored_batches:
        return []
    attempt = table_of(StoredAttempt).c
    times = [batch.prepared_at.isoformat(timespec="milliseconds") for batch in stored_batches]
    query = sa.select(attempt.key, attempt.started_at).where(attempt.started_at.in_(set(times)))
    with db.read() as connection:
        read_results = {(key, started_at) for key, started_at in connection.execute(query)}
    return [
        {key for key in batch.call_keys if (key, started_at) not in read_results}
        for batch, started_at in zip(stored_batches, times, strict=True)
    ]


class UnreadBatch(NamedTuple):
    """A batch with calls whose results were never read, though the provider may have charged for them.

    Attributes:
        model_name: name of the model in the audit.
        n_calls: number of these calls.
        n_waiting: of these, those without an answer from elsewhere, whose results may still be read.
        usd_per_call: the most that one of them may have cost, in US dollars; 0 if the price is not known.
    """

    model_name: str
    n_calls: int
    n_waiting: int
    usd_per_call: float


def load_unread_batches(db: Database, audit_id: int) -> list[UnreadBatch]:
    """Load an audit's batches with results that were never read, such as those of calls that were sent again singly."""
    table = table_of(ProviderBatch)
    is_charged = table.c.how.is_(None) | table.c.how.not_in(UNCHARGED_OUTCOMES)
    with db.read() as connection:
        stored_batches = select_records(connection, ProviderBatch, table.c.audit_id == audit_id, is_charged)
    unread_batches = []
    for batch, unread_keys in zip(stored_batches, find_unread_keys(db, stored_batches), strict=True):
        if unread_keys:
            n_waiting = len(unread_keys) - len(find_answered_keys(db, unread_keys)) if batch.ended_at is None else 0
            usd_per_call = batch.reserved_usd / len(batch.call_keys)
            unread_batches.append(UnreadBatch(batch.model_name, len(unread_keys), n_waiting, usd_per_call))
    return unread_batches


def load_remote_ids(db: Database) -> set[str]:
    """Load the providers' ids of all batches of the database, ended or not."""
    table = table_of(ProviderBatch)
    with db.read() as connection:
        return set(connection.execute(sa.select(table.c.remote).where(table.c.remote.is_not(None))).scalars())


async def _wait_until_durable(db: Database, job: Job[Any]) -> Any:
    return await asyncio.wrap_future(db.writer.submit(job))
