"""What models were found to accept, by audit, and by model, server and effort of reasoning.

Rows are never changed: a capability that is completed or found out again is a new row with the next number.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from pydantic import TypeAdapter
from sqlalchemy import Connection, RowMapping, select

from auditor.domain import Capability, CapabilityKey, canonical_json
from auditor.storage.call_tables import CapabilityRow
from auditor.storage.database import Database
from auditor.storage.ledger import utc_now
from auditor.storage.row_writing import insert_new, make_storable, table_of

CAPABILITY_ADAPTER = TypeAdapter(Capability)


@dataclass(frozen=True, slots=True)
class StoredCapability:
    """One row of the history of a model's capabilities.

    Attributes:
        key: what it belongs to.
        number: position in the history, from 1; the highest is current.
        capability: what requests look like.
        evidence: what the server answered that led to it.
        litellm_version: version of litellm that it was found out with.
        created_at: UTC, ISO 8601.
    """

    key: CapabilityKey
    number: int
    capability: Capability
    evidence: str
    litellm_version: str
    created_at: str


def serialize_capability(capability: Capability) -> str:
    """Canonical JSON of a capability."""
    return canonical_json(asdict(capability))


def parse_capability(content: str) -> Capability:
    """The capability that `serialize_capability` was given."""
    return CAPABILITY_ADAPTER.validate_json(content)


def load_capability_history(db: Database, audit_id: int) -> list[StoredCapability]:
    """Load all capabilities of an audit, in order of their keys, each key's oldest first."""
    table = table_of(CapabilityRow)
    query = select(table).where(table.c.audit_id == audit_id).order_by(*table.primary_key)
    with db.read() as connection:
        return [_parse_row(row) for row in connection.execute(query).mappings()]


def current_capabilities(history: Iterable[StoredCapability]) -> dict[CapabilityKey, StoredCapability]:
    """The latest capability of each key, of a history in order."""
    return {stored.key: stored for stored in history}


async def save_capability(
    db: Database,
    audit_id: int,
    key: CapabilityKey,
    capability: Capability,
    evidence: str,
    litellm_version: str,
    *,
    newer_than: int = 0,
) -> Capability:
    """Store a capability, unless the audit has one for this key, and return the one that is stored.

    A stored capability without a form of structured answers is completed by one with a form.

    Args:
        db: the database.
        audit_id: the audit.
        key: what the capability belongs to.
        capability: what was found out.
        evidence: what the server answered that led to it.
        litellm_version: version of litellm that it was found out with.
        newer_than: number up to which stored capabilities are replaced, since all is to be found out again.
    """
    row = {"audit_id": audit_id, "model": key.model, "server": key.server or "", "effort": key.effort or ""}
    values = {
        "id": capability.id,
        "content": serialize_capability(capability),
        "evidence": evidence,
        "litellm_version": litellm_version,
        "created_at": utc_now(),
    }

    def job(connection: Connection) -> Capability:
        """Insert the next number if it is due; a row of that number from another process wins."""
        current = _load_current(connection, audit_id, key)
        is_settled = current is not None and current.number > newer_than
        if current and is_settled and (current.capability.form is not None or capability.form is None):
            return current.capability
        number = 1 if current is None else current.number + 1
        insert_new(connection, CapabilityRow, [make_storable(CapabilityRow, {**row, "number": number, **values})])
        stored = _load_current(connection, audit_id, key)
        assert stored is not None
        return stored.capability

    return await db.writer.write(job)


def _load_current(connection: Connection, audit_id: int, key: CapabilityKey) -> StoredCapability | None:
    """Load the latest capability of a key; None if there is none."""
    c = table_of(CapabilityRow).c
    conditions = (
        c.audit_id == audit_id,
        c.model == key.model,
        c.server == (key.server or ""),
        c.effort == (key.effort or ""),
    )
    query = select(table_of(CapabilityRow)).where(*conditions).order_by(c.number.desc()).limit(1)
    row = connection.execute(query).mappings().one_or_none()
    return None if row is None else _parse_row(row)


def _parse_row(row: RowMapping) -> StoredCapability:
    """Convert a row; an empty server or effort is None."""
    return StoredCapability(
        key=CapabilityKey(row["model"], row["server"] or None, row["effort"] or None),
        number=row["number"],
        capability=parse_capability(row["content"]),
        evidence=row["evidence"],
        litellm_version=row["litellm_version"],
        created_at=row["created_at"],
    )
