"""The capabilities of one audit's models, as the gateway reads and saves them, in the audit's database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata

from auditor.domain import Capability, CapabilityKey
from auditor.storage.call_records import StoredCapability
from auditor.storage.capabilities import current_capabilities, save_capability
from auditor.storage.database import Database
from auditor.storage.records import load_records


@dataclass(frozen=True, slots=True)
class DiscoveryOptions:
    """How a run finds out what its models accept.

    Attributes:
        preflight: whether it does so before it sends any other call.
        rediscover: whether it does so again for models of which it is known.
    """

    preflight: bool = True
    rediscover: bool = False


class DatabaseCapabilityStore:
    """A `CapabilityStore` in the database. Capabilities are fixed for the audit, whichever version of litellm runs."""

    def __init__(self, db: Database, audit_id: int, *, rediscover: bool = False) -> None:
        """Read the stored capabilities.

        Args:
            db: the database.
            audit_id: the audit.
            rediscover: whether all is to be found out again; what was stored stays on record.
        """
        self._db, self._audit_id = db, audit_id
        stored = current_capabilities(load_records(db, audit_id, StoredCapability))
        self._replaced_numbers = {key: entry.number for key, entry in stored.items()} if rediscover else {}
        self._capabilities = {} if rediscover else {key: entry.capability for key, entry in stored.items()}

    def load(self) -> Mapping[CapabilityKey, Capability]:
        """Return the stored capabilities; none if all is to be found out again."""
        return dict(self._capabilities)

    async def save(self, key: CapabilityKey, capability: Capability, evidence: str) -> Capability:
        """Store a capability, unless one is stored that this run uses, and return the stored one.

        Raises:
            StorageError: the database cannot be written.
        """
        return await save_capability(
            self._db,
            self._audit_id,
            key,
            capability,
            evidence,
            metadata.version("litellm"),
            newer_than=self._replaced_numbers.get(key, 0),
        )
