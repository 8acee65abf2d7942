"""litellm's translation of a call and of its answer, while no request goes out."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field

import httpx

from auditor.domain import Call
from auditor.models.batches.provider import Result
from auditor.models.endpoint import Endpoint
from auditor.models.provider_request import Reply, request
from auditor.models.transport import STAND_IN, StandIn


@dataclass(frozen=True, slots=True)
class Written:
    """A request as it would have gone out."""

    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)


async def written(endpoint: Endpoint, call: Call, timeout_s: float) -> Written | Reply:
    """The request that a call would be, to the byte; or why it can be none."""
    kept: list[Written] = []

    def keep(asked: httpx.Request, body: bytes) -> httpx.Response:
        kept.append(Written(str(asked.url), dict(asked.headers), body))
        return httpx.Response(400, json={"error": {"message": "kept", "type": "invalid_request_error"}})

    reply = await _with(keep, request(endpoint, call, number=1, timeout_s=timeout_s))
    return kept[-1] if kept else reply


async def read(endpoint: Endpoint, call: Call, result: Result, *, number: int, timeout_s: float) -> Reply:
    """What came of a call, read out of a batch's results as it would be out of an answer of its own.

    Args:
        endpoint: with the prices of a batch.
        result: of a call that was made.
        number: which attempt at the call this is, from 1.
    """

    def play(asked: httpx.Request, body: bytes) -> httpx.Response:
        return httpx.Response(result.status or 500, headers={"content-type": "application/json"}, content=result.body)

    return await _with(play, request(endpoint, call, number=number, timeout_s=timeout_s))


async def _with(stand_in: StandIn, asked: Awaitable[Reply]) -> Reply:
    token = STAND_IN.set(stand_in)
    try:
        return await asked
    finally:
        STAND_IN.reset(token)
