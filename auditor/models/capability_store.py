"""Where a run reads and saves what its models' servers accept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from auditor.domain import Capability, CapabilityKey


class CapabilityStore(Protocol):
    """Interface for the capabilities of one audit. Once saved, a capability does not change during the audit."""

    def load(self) -> Mapping[CapabilityKey, Capability]:
        """Return all stored capabilities."""
        ...

    async def save(self, key: CapabilityKey, capability: Capability, evidence: str) -> Capability:
        """Store a capability unless one is stored already, and return the stored one.

        A stored capability without a form is replaced by one with a form, since it was found without a structured call.

        Args:
            key: the model, server and effort that the capability belongs to.
            capability: what the server was found to accept.
            evidence: one sentence that says which responses it was found by.

        Raises:
            AuditorError: it cannot be stored.
        """
        ...


class MemoryCapabilityStore:
    """Keeps capabilities in memory, for the time of one run."""

    def __init__(self, capabilities: Mapping[CapabilityKey, Capability] | None = None) -> None:
        """Create a store that already holds these capabilities; by default none."""
        self._capabilities = dict(capabilities or {})

    def load(self) -> Mapping[CapabilityKey, Capability]:
        """Return all stored capabilities."""
        return dict(self._capabilities)

    async def save(self, key: CapabilityKey, capability: Capability, evidence: str) -> Capability:
        """Store a capability unless one with a form is stored already, and return the stored one."""
        stored = self._capabilities.get(key)
        if stored is None or (stored.form is None and capability.form is not None):
            self._capabilities[key] = capability
        return self._capabilities[key]
