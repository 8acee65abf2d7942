"""Requests that wait to be sent, the most urgent first."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import dataclass, field
from heapq import heappop, heappush

_arrivals = itertools.count()


@dataclass(slots=True, eq=False)
class Turn:
    """A waiting request.

    Attributes:
        rank: the lowest goes first: retries before calls that were not sent, then by priority, then by arrival.
        granted: done once it is the request's turn.
    """

    rank: tuple[bool, int, int]
    granted: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    @property
    def is_retry(self) -> bool:
        """Whether the call was sent before."""
        return not self.rank[0]

    @property
    def is_granted(self) -> bool:
        """Whether it was the request's turn, and it was not cancelled before."""
        return self.granted.done() and not self.granted.cancelled()


class RequestQueue:
    """Waiting requests by rank; those that were cancelled are skipped. Arrivals in several queues are comparable."""

    def __init__(self) -> None:
        self._heap: list[tuple[tuple[bool, int, int], Turn]] = []
        self._n_waiting = 0

    def __len__(self) -> int:
        return self._n_waiting

    def join(self, *, is_retry: bool, priority: int) -> Turn:
        """Add a request."""
        turn = Turn((not is_retry, priority, next(_arrivals)))
        heappush(self._heap, (turn.rank, turn))
        self._n_waiting += 1
        return turn

    def first(self) -> Turn | None:
        """The request that goes first; None if none waits."""
        while self._heap and self._heap[0][1].granted.done():
            heappop(self._heap)
        return self._heap[0][1] if self._heap else None

    def grant(self, turn: Turn) -> None:
        """Let a request go."""
        turn.granted.set_result(None)
        self._n_waiting -= 1

    def discard(self, turn: Turn) -> None:
        """Remove a request that was cancelled before its turn."""
        turn.granted.cancel()
        self._n_waiting -= 1
