"""Messages between a run's own process and the workers that send its requests, as lossless JSON.

Unlike pickle, JSON cannot execute code, and it takes less CPU time.
"""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import ConfigDict, TypeAdapter
from pydantic.dataclasses import dataclass as pydantic_dataclass

from auditor.domain import Call, Capability
from auditor.models.provider_request import ProviderReply

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
