"""Dispatchers: how a gateway's requests are sent, and their messages to workers as lossless JSON."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from pydantic import ConfigDict, TypeAdapter
from pydantic.dataclasses import dataclass as pydantic_dataclass

from auditor.config import ModelSection
from auditor.domain import Call, Capability, LogprobMeasure
from auditor.models import continuation, litellm_client
from auditor.models.endpoint import DEFAULT_CAPABILITY, Endpoint, resolve_endpoint
from auditor.models.provider_request import ProviderReply, send_request
from auditor.models.request_params import require_effect

LOSSLESS_JSON = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64", ser_json_inf_nan="constants")


@dataclass(frozen=True, slots=True)
class WorkerRequest:
    """One request for a worker to send.

    Attributes:
        id: matches the reply to the request.
        call: the call to send.
        attempt_number: number of this attempt at the call, from 1.
        total_timeout_s: time limit of the whole request, in seconds; None for no limit.
        capability: what the model's server accepts.
    """

    id: int
    call: Call
    attempt_number: int
    total_timeout_s: float | None
    capability: Capability


@pydantic_dataclass(frozen=True, slots=True, config=LOSSLESS_JSON)
class WorkerReply:
    """The provider's reply to one request.

    Attributes:
        id: of the request.
        reply: as the worker received it.
    """

    id: int
    reply: ProviderReply


REQUESTS_ADAPTER = TypeAdapter(list[WorkerRequest])
REPLIES_ADAPTER = TypeAdapter(list[WorkerReply])


class Dispatcher(Protocol):
    """Interface for sending one request to a model."""

    async def send(
        self,
        call: Call,
        attempt_number: int,
        total_timeout_s: float | None,
        capability: Capability = DEFAULT_CAPABILITY,
    ) -> ProviderReply:
        """Send one request for a call and return the provider's reply.

        Args:
            call: the messages and parameters to send, and the name of the model, or of its section with a further key
                (`ModelSection.split_by_key`).
            attempt_number: number of this attempt at the call, from 1.
            total_timeout_s: time limit of the whole request, in seconds; None for no limit.
            capability: what the model's server accepts.

        Raises:
            AuditorError: requests cannot be sent, or answers cannot be recorded, and a retry would not help. A failure
                of the provider does not raise: it is in the reply.
        """
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


class _ModelEndpoint(NamedTuple):
    """A model's section in the config, and the endpoint resolved from it."""

    section: ModelSection
    endpoint: Endpoint


class LocalDispatcher:
    """Sends requests from this process. Create it inside the event loop that uses it, and close it at the end.

    Attributes:
        n_requests: number of requests so far.
    """

    def __init__(self, models: Iterable[ModelSection]) -> None:
        """Resolve API keys and start embedded models; litellm is imported by the first request.

        Raises:
            ConfigError: an API key is not in the environment.
            ModelSetupError: an embedded model cannot be started.
        """
        self._model_endpoints = {
            keyed.name: _ModelEndpoint(model, resolve_endpoint(keyed))
            for model in models
            for keyed in model.split_by_key()
        }
        self._compute_lock, self._check_lock = asyncio.Lock(), asyncio.Lock()
        self._checked_models: set[str] = set()
        self.n_requests = 0

    async def send(
        self,
        call: Call,
        attempt_number: int,
        total_timeout_s: float | None,
        capability: Capability = DEFAULT_CAPABILITY,
    ) -> ProviderReply:
        """Send one request and parse the response; log-probabilities of continuations are computed in this process.

        Raises:
            ConfigError: a parameter of the model would not be sent.
            ModelSetupError: the weights for log-probabilities cannot be loaded.
        """
        section, endpoint = self._model_endpoints[call.name]
        if call.measure is LogprobMeasure.CONTINUATION:
            self.n_requests += 1
            async with self._compute_lock:
                return ProviderReply(await asyncio.to_thread(continuation.score_continuations, section, call), None)
        if section.name not in self._checked_models:
            async with self._check_lock:
                litellm_client.ensure_http_clients()
                await require_effect(section, endpoint, call)
                self._checked_models.add(section.name)
        self.n_requests += 1
        return await send_request(
            endpoint,
            call,
            attempt_number=attempt_number,
            timeout_s=section.resolved_timeout_s,
            total_timeout_s=total_timeout_s,
            capability=capability,
        )

    async def close(self) -> None:
        """Close the HTTP clients."""
        await litellm_client.close_http_clients()
