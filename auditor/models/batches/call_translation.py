"""litellm's translation of a call and of its answer, while no request goes out."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field

import httpx

from auditor.domain import Call
from auditor.models.batches.provider import BatchCallResponse
from auditor.models.endpoint import Endpoint
from auditor.models.provider_request import ProviderReply, send_request
from auditor.models.transport import SERVER_STUB, ServerStub


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """A request as it would have gone out."""

    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)


async def prepare_request(endpoint: Endpoint, call: Call, timeout_s: float) -> PreparedRequest | ProviderReply:
    """The request that a call would be, to the byte; or why it can be none."""
    kept: list[PreparedRequest] = []

    def keep(asked: httpx.Request, body: bytes) -> httpx.Response:
        kept.append(PreparedRequest(str(asked.url), dict(asked.headers), body))
        return httpx.Response(400, json={"error": {"message": "kept", "type": "invalid_request_error"}})

    reply = await _await_with_stub(keep, send_request(endpoint, call, attempt_number=1, timeout_s=timeout_s))
    return kept[-1] if kept else reply


async def parse_batch_answer(
    endpoint: Endpoint, call: Call, call_response: BatchCallResponse, *, attempt_number: int, timeout_s: float
) -> ProviderReply:
    """What came of a call, read out of a batch's results as it would be out of an answer of its own.

    Args:
        endpoint: with the prices of a batch.
        result: of a call that was made.
        number: which attempt at the call this is, from 1.
    """

    def play(asked: httpx.Request, body: bytes) -> httpx.Response:
        return httpx.Response(
            call_response.http_status or 500, headers={"content-type": "application/json"}, content=call_response.body
        )

    return await _await_with_stub(
        play, send_request(endpoint, call, attempt_number=attempt_number, timeout_s=timeout_s)
    )


async def _await_with_stub(server_stub: ServerStub, pending_reply: Awaitable[ProviderReply]) -> ProviderReply:
    token = SERVER_STUB.set(server_stub)
    try:
        return await pending_reply
    finally:
        SERVER_STUB.reset(token)
