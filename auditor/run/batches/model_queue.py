"""What waits: calls for their answers, batches to be collected, and one model's way to its batches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field

from auditor.config import ModelSection
from auditor.domain import Call
from auditor.models.batches.call_translation import PreparedRequest, prepare_request
from auditor.models.batches.client import BatchClient
from auditor.models.batches.provider import BatchProvider
from auditor.models.endpoint import Endpoint
from auditor.models.provider_request import ProviderReply
from auditor.storage.batches import ProviderBatch

MAX_CHUNK_BYTES = 100_000_000
"""Of one batch, which is held in memory; providers take 200 MB and more."""


@dataclass(eq=False, slots=True)
class PendingCall:
    """A call that waits; it is resolved by what came of it, or by None where it is to go out as usual.

    Attributes:
        number: which attempt at the call this is, from 1.
        reserved_usd: the most that it may cost.
        refused: how often its batch was not taken, though nothing else of ours was under way.
    """

    call: Call
    attempt_number: int
    future: asyncio.Future[ProviderReply | None]
    reserved_usd: float = 0.0
    n_rejections: int = 0

    def resolve(self, reply: ProviderReply | None) -> None:
        """Tell whoever waits; who does not wait any more is not told."""
        if not self.future.done():
            self.future.set_result(reply)

    def fail(self, error: BaseException) -> None:
        """Tell whoever waits that nothing will come."""
        if not self.future.done():
            self.future.set_exception(error)


@dataclass(eq=False, slots=True)
class OpenBatch:
    """A batch that is under way.

    Attributes:
        remote: the provider's name for it; None until it is known.
        left: keys whose answers are not known to be recorded.
        waiters: calls that wait for it, by key.
        crowded: it was not taken, and waits until another has ended.
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
    """One model's way to its batches.

    Attributes:
        endpoint: with the prices of a batch.
        pending: calls that wait to be put into one.
    """

    section: ModelSection
    endpoint: Endpoint
    provider: BatchProvider
    client: BatchClient
    pending_calls: dict[str, PendingCall] = field(default_factory=dict)

    def client_for(self, prepared_request: PreparedRequest) -> BatchClient:
        """The way for calls that go out with the same headers as this one."""
        return BatchClient(prepared_request.url.removesuffix(self.provider.call_path), prepared_request.headers)


@dataclass(eq=False, slots=True)
class BatchChunk:
    """Calls that go out as one batch, and their lines."""

    client: BatchClient
    pending_calls: list[PendingCall] = field(default_factory=list)
    formatted_calls: list[bytes] = field(default_factory=list)
    size_bytes: int = 0


async def split_into_chunks(
    queue: ModelBatchQueue,
    pending_calls: Iterable[PendingCall],
    max_calls: int,
    reserve_budget: Callable[[PendingCall], bool],
) -> AsyncIterator[BatchChunk]:
    """Calls as parts that a provider takes, of the same address and headers each, as soon as one is full.

    Args:
        most: calls of one part.
        admits: whether a call may go out; who says no has told its waiter why.
    """
    parts: dict[object, BatchChunk] = {}
    for waiter in pending_calls:
        if not reserve_budget(waiter):
            continue
        one = await prepare_request(queue.endpoint, waiter.call, queue.section.timeout_s)
        if isinstance(one, ProviderReply):
            waiter.resolve(one)
            continue
        line = queue.provider.format_call(waiter.call.key, one.body)
        kind = _chunk_key(one)
        if (full := parts.get(kind)) and (
            len(full.formatted_calls) >= max_calls or full.size_bytes + len(line) > MAX_CHUNK_BYTES
        ):
            yield parts.pop(kind)
        part = parts.setdefault(kind, BatchChunk(queue.client_for(one)))
        part.pending_calls.append(waiter)
        part.formatted_calls.append(line)
        part.size_bytes += len(line) + 1
    for part in parts.values():
        yield part


def _chunk_key(prepared_request: PreparedRequest) -> object:
    return prepared_request.url, frozenset(
        (k, v) for k, v in prepared_request.headers.items() if k.lower() != "content-length"
    )
