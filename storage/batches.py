"""Batches of calls: written down before they go out, so that whatever happens none is paid for and forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, RowMapping, insert, select, update

from auditor.storage.database import Database, table_of
from auditor.storage.ledger import find_answered_keys, utc_now
from auditor.storage.tables import BatchRow
from auditor.storage.writer import Job

KEY_SEPARATOR = " "


@dataclass(frozen=True, slots=True)
class ProviderBatch:
    """One batch.

    Attributes:
        tag: our name for it, which is no other's.
        name: the model's, in its audit.
        remote: the provider's name for it; None until it is known.
        calls: keys.
        reserved_usd: the most that it may cost.
        prepared_at: UTC.
    """

    id: int
    audit_id: int
    tag: str
    model_name: str
    remote_id: str | None
    call_keys: tuple[str, ...]
    reserved_usd: float
    prepared_at: datetime


async def record_prepared_batch(
    db: Database, audit_id: int, *, tag: str, model_name: str, call_keys: Sequence[str], reserved_usd: float
) -> ProviderBatch:
    """Write down that a batch is about to go out; durable when this returns."""
    at = utc_now()
    row = {"audit_id": audit_id, "tag": tag, "name": model_name, "reserved_usd": reserved_usd, "prepared_at": at}
    values = {**row, "n": len(call_keys), "calls": KEY_SEPARATOR.join(call_keys)}

    def job(connection: Connection) -> int:
        found = connection.execute(insert(table_of(BatchRow)).values(values)).inserted_primary_key
        assert found is not None
        return int(found[0])

    id_ = await _wait_until_durable(db, job)
    return ProviderBatch(
        id_, audit_id, tag, model_name, None, tuple(call_keys), reserved_usd, datetime.fromisoformat(at)
    )


async def record_submitted_batch(db: Database, batch: ProviderBatch, remote_id: str) -> None:
    """Write down the provider's name for a batch."""
    table = table_of(BatchRow)
    job = update(table).where(table.c.id == batch.id).values(remote=remote_id, submitted_at=utc_now())
    await _wait_until_durable(db, lambda connection: connection.execute(job))


async def record_ended_batch(db: Database, batch: ProviderBatch, outcome: str) -> None:
    """Write down that nothing more is to come of a batch.

    Args:
        how: such as `collected`, or what became of it otherwise.
    """
    table = table_of(BatchRow)
    job = update(table).where(table.c.id == batch.id).values(ended_at=utc_now(), how=outcome)
    await _wait_until_durable(db, lambda connection: connection.execute(job))


def load_open_batches(db: Database, audit_id: int | None = None) -> list[ProviderBatch]:
    """Batches of which something is to come, in order: of one audit, or of all."""
    table = table_of(BatchRow)
    query = select(table).where(table.c.ended_at.is_(None)).order_by(table.c.id)
    if audit_id is not None:
        query = query.where(table.c.audit_id == audit_id)
    with db.read() as connection:
        return [_parse_batch(row) for row in connection.execute(query).mappings()]


class UncollectedBatch(NamedTuple):
    """A batch whose answers are not recorded, or not all.

    Attributes:
        name: the model's.
        remote: the provider's name for it; None where it is not known whether it ever left.
        calls: whose answers are missing.
        prepared_at: UTC.
    """

    model_name: str
    remote_id: str | None
    n_missing_calls: int
    prepared_at: datetime


def load_uncollected_batches(db: Database, audit_id: int) -> list[UncollectedBatch]:
    """The batches of an audit that wait to be collected, in order."""
    found = []
    for batch in load_open_batches(db, audit_id):
        if missing := len(batch.call_keys) - len(find_answered_keys(db, batch.call_keys)):
            found.append(UncollectedBatch(batch.model_name, batch.remote_id, missing, batch.prepared_at))
    return found


def load_remote_ids(db: Database) -> set[str]:
    """The providers' names of all batches that ever were."""
    table = table_of(BatchRow)
    with db.read() as connection:
        return set(connection.execute(select(table.c.remote).where(table.c.remote.is_not(None))).scalars())


def _parse_batch(row: RowMapping) -> ProviderBatch:
    return ProviderBatch(
        id=row["id"],
        audit_id=row["audit_id"],
        tag=row["tag"],
        model_name=row["name"],
        remote_id=row["remote"],
        call_keys=tuple(row["calls"].split(KEY_SEPARATOR)),
        reserved_usd=row["reserved_usd"],
        prepared_at=datetime.fromisoformat(row["prepared_at"]),
    )


async def _wait_until_durable(db: Database, job: Job[Any]) -> Any:
    return await asyncio.wrap_future(db.writer.submit(job))
