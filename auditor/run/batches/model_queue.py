"""What waits: calls for their answers, batches to be collected, and one model's way to its batches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field

from auditor.config import ModelSection
from auditor.domain import Call
from auditor.models.batches.call_translation import Written, written
from auditor.models.batches.client import Post
from auditor.models.batches.provider import Dialect
from auditor.models.endpoint import Endpoint
from auditor.models.provider_request import Reply
from auditor.storage.batches import Batch

MOST_BYTES = 100_000_000
"""Of one batch, which is held in memory; providers take 200 MB and more."""


@dataclass(eq=False, slots=True)
class Waiter:
    """A call that waits; it is resolved by what came of it, or by None where it is to go out as usual.

    Attributes:
        number: which attempt at the call this is, from 1.
        reserved_usd: the most that it may cost.
        refused: how often its batch was not taken, though nothing else of ours was under way.
    """

    call: Call
    number: int
    future: asyncio.Future[Reply | None]
    reserved_usd: float = 0.0
    refused: int = 0

    def resolve(self, reply: Reply | None) -> None:
        """Tell whoever waits; who does not wait any more is not told."""
        if not self.future.done():
            self.future.set_result(reply)

    def fail(self, error: BaseException) -> None:
        """Tell whoever waits that nothing will come."""
        if not self.future.done():
            self.future.set_exception(error)


@dataclass(eq=False, slots=True)
class Tray:
    """A batch that is under way.

    Attributes:
        remote: the provider's name for it; None until it is known.
        left: keys whose answers are not known to be recorded.
        waiters: calls that wait for it, by key.
        crowded: it was not taken, and waits until another has ended.
    """

    batch: Batch
    remote: str | None
    left: set[str]
    share_usd: float
    waiters: dict[str, Waiter] = field(default_factory=dict)
    task: asyncio.Task[None] | None = None
    crowded: bool = False


@dataclass(eq=False, slots=True)
class Desk:
    """One model's way to its batches.

    Attributes:
        endpoint: with the prices of a batch.
        pending: calls that wait to be put into one.
    """

    section: ModelSection
    endpoint: Endpoint
    dialect: Dialect
    post: Post
    pending: dict[str, Waiter] = field(default_factory=dict)

    def post_for(self, one: Written) -> Post:
        """The way for calls that go out with the same headers as this one."""
        return Post(one.url.removesuffix(self.dialect.suffix), one.headers)


@dataclass(eq=False, slots=True)
class Part:
    """Calls that go out as one batch, and their lines."""

    post: Post
    waiters: list[Waiter] = field(default_factory=list)
    lines: list[bytes] = field(default_factory=list)
    size: int = 0


async def parts_of(
    desk: Desk, waiters: Iterable[Waiter], most: int, admits: Callable[[Waiter], bool]
) -> AsyncIterator[Part]:
    """Calls as parts that a provider takes, of the same address and headers each, as soon as one is full.

    Args:
        most: calls of one part.
        admits: whether a call may go out; who says no has told its waiter why.
    """
    parts: dict[object, Part] = {}
    for waiter in waiters:
        if not admits(waiter):
            continue
        one = await written(desk.endpoint, waiter.call, desk.section.timeout_s)
        if isinstance(one, Reply):
            waiter.resolve(one)
            continue
        line = desk.dialect.line(waiter.call.key, one.body)
        kind = _kind(one)
        if (full := parts.get(kind)) and (len(full.lines) >= most or full.size + len(line) > MOST_BYTES):
            yield parts.pop(kind)
        part = parts.setdefault(kind, Part(desk.post_for(one)))
        part.waiters.append(waiter)
        part.lines.append(line)
        part.size += len(line) + 1
    for part in parts.values():
        yield part


def _kind(one: Written) -> object:
    return one.url, frozenset((k, v) for k, v in one.headers.items() if k.lower() != "content-length")
