"""What a gateway's requests go out by: from this process, or from another host."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import NamedTuple, Protocol

from auditor.config import ModelSection
from auditor.domain import Call, LogprobMeasure
from auditor.models import continuation, litellm_client
from auditor.models.endpoint import Endpoint, resolve_endpoint
from auditor.models.provider_request import ProviderReply, send_request


class Dispatcher(Protocol):
    """Whoever sends a request."""

    async def send(self, call: Call, attempt_number: int, total_timeout_s: float | None) -> ProviderReply:
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


class _ModelEndpoint(NamedTuple):
    section: ModelSection
    endpoint: Endpoint


class LocalDispatcher:
    """Sends from this process. Make one inside the event loop that it is used in, and close it at the end."""

    def __init__(self, models: Iterable[ModelSection]) -> None:
        """Resolve keys and start embedded models; no request goes out yet.

        Raises:
            ConfigError: a key is not in the environment.
            ModelSetupError: an embedded model cannot be started.
        """
        litellm_client.load_litellm()  # its import takes seconds, which are no part of any request
        litellm_client.open_http_clients()
        self._model_endpoints = {model.name: _ModelEndpoint(model, resolve_endpoint(model)) for model in models}
        self._compute_lock = asyncio.Lock()

    async def send(self, call: Call, attempt_number: int, total_timeout_s: float | None) -> ProviderReply:
        """Send, and read what comes back; a continuation is computed here.

        Raises:
            ModelSetupError: the weights to compute with cannot be loaded.
        """
        section, endpoint = self._model_endpoints[call.name]
        if call.measure is LogprobMeasure.CONTINUATION:
            async with self._compute_lock:
                return ProviderReply(await asyncio.to_thread(continuation.score_continuations, section, call), None)
        return await send_request(
            endpoint, call, attempt_number=attempt_number, timeout_s=section.timeout_s, total_timeout_s=total_timeout_s
        )

    async def close(self) -> None:
        """Close the HTTP clients."""
        await litellm_client.close_http_clients()
