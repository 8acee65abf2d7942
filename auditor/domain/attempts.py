"""The HTTP requests made for a call, with what the server sent back."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from auditor.domain.records import LongText, NotStored
from auditor.domain.terms import Outcome


@dataclass(frozen=True, slots=True)
class ResponseBody:
    """Body of an HTTP response, with API keys removed.

    Attributes:
        digest: SHA-256 of `data`, in hex.
        data: the first 64 KiB of the body at most.
        size: number of bytes received.
    """

    digest: str
    data: bytes = field(repr=False)
    size: int


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request that went out for a call; `outcome` says how it ended.

    Attributes:
        body: the server's response, even if it could not be used; None if nothing was received.
        prompt_tokens, completion_tokens: the provider's token counts; None if it sent no usable counts.
        cost_usd: cost of this request alone, 0 if it is free of charge; None if the price is unknown.
        estimated: whether `cost_usd` is an estimate because usable token counts are missing; None if no cost was
            computed.
    """

    number: int
    started_at: datetime
    latency_s: float
    outcome: Outcome
    http_status: int | None = None
    error: LongText[str | None] = None
    retry_after_s: float | None = None
    body: NotStored[ResponseBody | None] = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost_usd: float | None = None
    estimated: bool | None = None
