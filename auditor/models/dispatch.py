"""What a gateway's requests go out by: from this process, or from another host."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import NamedTuple, Protocol

from auditor.config import ModelSection
from auditor.domain import Call, Measure
from auditor.models import continuation, litellm_client
from auditor.models.endpoint import Endpoint, resolve
from auditor.models.provider_request import Reply, request


class Sender(Protocol):
    """Whoever sends a request."""

    async def send(self, call: Call, number: int, limit_s: float | None) -> Reply:
        """Send a call's request.

        Args:
            number: which attempt at the call this is, from 1.
            limit_s: seconds that it may take; None where none can be passed.

        Raises:
            AuditorError: nothing can be sent, or nothing recorded, now or later.
        """
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...


class _Target(NamedTuple):
    section: ModelSection
    endpoint: Endpoint


class Sending:
    """Sends from this process. Make one inside the event loop that it is used in, and close it at the end."""

    def __init__(self, models: Iterable[ModelSection]) -> None:
        """Resolve keys and start embedded models; no request goes out yet.

        Raises:
            ConfigError: a key is not in the environment.
            ModelSetupError: an embedded model cannot be started.
        """
        litellm_client.litellm()  # its import takes seconds, which are no part of any request
        litellm_client.open_client()
        self._targets = {model.name: _Target(model, resolve(model)) for model in models}
        self._computing = asyncio.Lock()

    async def send(self, call: Call, number: int, limit_s: float | None) -> Reply:
        """Send, and read what comes back; a continuation is computed here.

        Raises:
            ModelSetupError: the weights to compute with cannot be loaded.
        """
        section, endpoint = self._targets[call.name]
        if call.measure is Measure.CONTINUATION:
            async with self._computing:
                return Reply(await asyncio.to_thread(continuation.complete, section, call), None)
        return await request(endpoint, call, number=number, timeout_s=section.timeout_s, limit_s=limit_s)

    async def close(self) -> None:
        """Close the HTTP clients."""
        await litellm_client.close_clients()
