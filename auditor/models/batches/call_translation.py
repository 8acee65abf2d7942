"""Translate calls into batch lines and batch results into answers by litellm, without sending a request."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field, replace

import httpx

from auditor.domain import Call, Capability
from auditor.models.batches.provider import BatchCallResponse
from auditor.models.capability_discovery import initial_capability
from auditor.models.endpoint import Endpoint
from auditor.models.provider_request import ProviderReply, send_request
from auditor.models.transport import SERVER_STUB, ServerStub


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """A request as litellm would have sent it."""

    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)


async def prepare_request(
    endpoint: Endpoint, call: Call, timeout_s: float, capability: Capability | None = None
) -> PreparedRequest | ProviderReply:
    """Build the request that would be sent for a call, byte for byte; if that fails, return the failed reply.

    It asks for no stream, which batches do not have.

    Without a capability it is the request that discovery would begin with.
    """
    endpoint = replace(endpoint, stream=False)
    capability = replace(capability or initial_capability(call.model, call.server), stream=False)
    captured_requests: list[PreparedRequest] = []

    def capture_request(request: httpx.Request, body: bytes) -> httpx.Response:
        """Keep the request, and answer it with an error; the reply made of that is discarded."""
        captured_requests.append(PreparedRequest(str(request.url), dict(request.headers), body))
        return httpx.Response(400, json={"error": {"message": "kept", "type": "invalid_request_error"}})

    reply = await _await_with_stub(
        capture_request, send_request(endpoint, call, attempt_number=1, timeout_s=timeout_s, capability=capability)
    )
    return captured_requests[-1] if captured_requests else reply


async def parse_batch_answer(
    endpoint: Endpoint,
    call: Call,
    call_response: BatchCallResponse,
    *,
    attempt_number: int,
    timeout_s: float,
    capability: Capability | None = None,
) -> ProviderReply:
    """Parse a batch's response to a call as the response to a single request would be.

    Args:
        endpoint: of the model, with the prices of a batch.
        call: the call that was submitted.
        call_response: the batch's response; the call must have been sent.
        attempt_number: number of this attempt at the call, from 1.
        timeout_s: time limit in seconds, passed on to `send_request`.
        capability: what the call was submitted under; None for the one that discovery would begin with.
    """
    capability = capability or initial_capability(call.model, call.server)

    def replay_response(request: httpx.Request, body: bytes) -> httpx.Response:
        """Answer any request with the batch's response to the call."""
        return httpx.Response(
            call_response.http_status or 500, headers={"content-type": "application/json"}, content=call_response.body
        )

    return await _await_with_stub(
        replay_response,
        send_request(endpoint, call, attempt_number=attempt_number, timeout_s=timeout_s, capability=capability),
    )


async def _await_with_stub(server_stub: ServerStub, pending_reply: Awaitable[ProviderReply]) -> ProviderReply:
    """Await a reply while `server_stub` answers all requests in place of a server."""
    token = SERVER_STUB.set(server_stub)
    try:
        return await pending_reply
    finally:
        SERVER_STUB.reset(token)
