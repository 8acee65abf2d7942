"""Pending calls, open batches, and one model's queue of calls for its next batch."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field

from auditor.config import ModelSection
from auditor.domain import Call, Capability
from auditor.models.batches.call_translation import PreparedRequest, prepare_request
from auditor.models.batches.client import BatchClient
from auditor.models.batches.provider import BatchProvider
from auditor.models.endpoint import Endpoint
from auditor.models.provider_request import ProviderReply
from auditor.storage.call_records import ProviderBatch


@dataclass(eq=False, slots=True)
class PendingCall:
    """A call that waits for its answer.

    Attributes:
        call: the call.
        attempt_number: number of this attempt at the call, from 1.
        future: receives the provider's reply, or None if the call is to be sent individually.
        capability: what the server accepts; the call is submitted under it.
        reserved_usd: the call's cost at most, reserved from the budget.
        n_rejections: how often its batch was rejected although no other batch of the model was open.
    """

    call: Call
    attempt_number: int
    future: asyncio.Future[ProviderReply | None]
    capability: Capability
    reserved_usd: float = 0.0
    n_rejections: int = 0

    def resolve(self, reply: ProviderReply | None) -> None:
        """Set the reply, unless the call was cancelled."""
        if not self.future.done():
            self.future.set_result(reply)

    def fail(self, error: BaseException) -> None:
        """Set an error, unless the call was cancelled."""
        if not self.future.done():
            self.future.set_exception(error)


@dataclass(eq=False, slots=True)
class OpenBatch:
    """A batch at a provider.

    Attributes:
        stored_batch: the batch's record in the database.
        remote_id: the provider's id of the batch; None until it is known.
        open_keys: keys of the calls whose answers are not known to be recorded.
        reserved_usd_per_call: budget reserved for each call.
        pending_calls: calls of this run that wait for the batch, by key.
        collect_task: the task that collects it; None until one is started.
        is_queue_full: whether the provider rejected it because of other open batches.
    """

    stored_batch: ProviderBatch
    remote_id: str | None
    open_keys: set[str]
    reserved_usd_per_call: float
    pending_calls: dict[str, PendingCall] = field(default_factory=dict)
    collect_task: asyncio.Task[None] | None = None
    is_queue_full: bool = False


@dataclass(eq=False, slots=True)
class ModelBatchQueue:
    """Calls of one model that wait for the next batch, and how to submit it.

    Attributes:
        section: the model's section of the config.
        endpoint: the model's endpoint, with the prices of a batch.
        provider: the provider's batch API.
        client: HTTP client with the headers of the model's first call.
        pending_calls: calls that wait for the next batch, by key.
    """

    section: ModelSection
    endpoint: Endpoint
    provider: BatchProvider
    client: BatchClient
    pending_calls: dict[str, PendingCall] = field(default_factory=dict)

    def client_for(self, prepared_request: PreparedRequest) -> BatchClient:
        """The HTTP client for a batch of calls with the same address and headers as this request."""
        base_url = self.provider.base_url(prepared_request.url)
        assert base_url is not None  # as for the first call, by which the queue was created
        return BatchClient(base_url, prepared_request.headers, prepared_request.url)


@dataclass(eq=False, slots=True)
class BatchChunk:
    """Calls to be submitted as one batch under one capability, and their lines in the batch's file."""

    client: BatchClient
    capability: Capability
    pending_calls: list[PendingCall] = field(default_factory=list)
    formatted_calls: list[bytes] = field(default_factory=list)
    size_bytes: int = 0


async def split_into_chunks(
    queue: ModelBatchQueue,
    pending_calls: Iterable[PendingCall],
    max_calls: int,
    reserve_budget: Callable[[PendingCall], bool],
) -> AsyncIterator[BatchChunk]:
    """Yield chunks of calls with the same address, headers and capability, each as soon as it is full.

    Args:
        queue: the model's queue.
        pending_calls: calls to be split.
        max_calls: number of calls of one chunk at most.
        reserve_budget: whether a call may be sent; it resolves the calls that it refuses.
    """
    open_chunks: dict[object, BatchChunk] = {}
    for pending_call in pending_calls:
        if not reserve_budget(pending_call):
            continue
        prepared_request = await prepare_request(
            queue.endpoint, pending_call.call, queue.section.resolved_timeout_s, pending_call.capability
        )
        if isinstance(prepared_request, ProviderReply):
            pending_call.resolve(prepared_request)
            continue
        formatted_call = queue.provider.format_call(pending_call.call.key, prepared_request.body)
        chunk_key = _chunk_key(prepared_request), pending_call.capability
        if (full_chunk := open_chunks.get(chunk_key)) and (
            len(full_chunk.formatted_calls) >= max_calls
            or full_chunk.size_bytes + len(formatted_call) > queue.provider.max_bytes
        ):
            yield open_chunks.pop(chunk_key)
        chunk = open_chunks.setdefault(
            chunk_key, BatchChunk(queue.client_for(prepared_request), pending_call.capability)
        )
        chunk.pending_calls.append(pending_call)
        chunk.formatted_calls.append(formatted_call)
        chunk.size_bytes += len(formatted_call) + 1
    for chunk in open_chunks.values():
        yield chunk


def _chunk_key(prepared_request: PreparedRequest) -> object:
    """What all calls of a batch have in common: address and headers, except the length of the body."""
    return prepared_request.url, frozenset(
        (name, value) for name, value in prepared_request.headers.items() if name.lower() != "content-length"
    )
