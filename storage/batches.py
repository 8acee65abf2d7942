"""Batches of calls: written down before they go out, so that whatever happens none is paid for and forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, RowMapping, insert, select, update

from auditor.storage.database import Database, table_of
from auditor.storage.ledger import known_keys, now
from auditor.storage.tables import BatchRow
from auditor.storage.writer import Job

SEPARATOR = " "


@dataclass(frozen=True, slots=True)
class Batch:
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
    name: str
    remote: str | None
    calls: tuple[str, ...]
    reserved_usd: float
    prepared_at: datetime


async def prepare(
    db: Database, audit_id: int, *, tag: str, name: str, calls: Sequence[str], reserved_usd: float
) -> Batch:
    """Write down that a batch is about to go out; durable when this returns."""
    at = now()
    row = {"audit_id": audit_id, "tag": tag, "name": name, "reserved_usd": reserved_usd, "prepared_at": at}
    values = {**row, "n": len(calls), "calls": SEPARATOR.join(calls)}

    def job(connection: Connection) -> int:
        found = connection.execute(insert(table_of(BatchRow)).values(values)).inserted_primary_key
        assert found is not None
        return int(found[0])

    id_ = await _done(db, job)
    return Batch(id_, audit_id, tag, name, None, tuple(calls), reserved_usd, datetime.fromisoformat(at))


async def submitted(db: Database, batch: Batch, remote: str) -> None:
    """Write down the provider's name for a batch."""
    table = table_of(BatchRow)
    job = update(table).where(table.c.id == batch.id).values(remote=remote, submitted_at=now())
    await _done(db, lambda connection: connection.execute(job))


async def end(db: Database, batch: Batch, how: str) -> None:
    """Write down that nothing more is to come of a batch.

    Args:
        how: such as `collected`, or what became of it otherwise.
    """
    table = table_of(BatchRow)
    job = update(table).where(table.c.id == batch.id).values(ended_at=now(), how=how)
    await _done(db, lambda connection: connection.execute(job))


def under_way(db: Database, audit_id: int | None = None) -> list[Batch]:
    """Batches of which something is to come, in order: of one audit, or of all."""
    table = table_of(BatchRow)
    query = select(table).where(table.c.ended_at.is_(None)).order_by(table.c.id)
    if audit_id is not None:
        query = query.where(table.c.audit_id == audit_id)
    with db.read() as connection:
        return [_batch(row) for row in connection.execute(query).mappings()]


class Waiting(NamedTuple):
    """A batch whose answers are not recorded, or not all.

    Attributes:
        name: the model's.
        remote: the provider's name for it; None where it is not known whether it ever left.
        calls: whose answers are missing.
        prepared_at: UTC.
    """

    name: str
    remote: str | None
    calls: int
    prepared_at: datetime


def waiting(db: Database, audit_id: int) -> list[Waiting]:
    """The batches of an audit that wait to be collected, in order."""
    found = []
    for batch in under_way(db, audit_id):
        if missing := len(batch.calls) - len(known_keys(db, batch.calls)):
            found.append(Waiting(batch.name, batch.remote, missing, batch.prepared_at))
    return found


def known_remotes(db: Database) -> set[str]:
    """The providers' names of all batches that ever were."""
    table = table_of(BatchRow)
    with db.read() as connection:
        return set(connection.execute(select(table.c.remote).where(table.c.remote.is_not(None))).scalars())


def _batch(row: RowMapping) -> Batch:
    return Batch(
        id=row["id"],
        audit_id=row["audit_id"],
        tag=row["tag"],
        name=row["name"],
        remote=row["remote"],
        calls=tuple(row["calls"].split(SEPARATOR)),
        reserved_usd=row["reserved_usd"],
        prepared_at=datetime.fromisoformat(row["prepared_at"]),
    )


async def _done(db: Database, job: Job[Any]) -> Any:
    return await asyncio.wrap_future(db.writer.submit(job))
