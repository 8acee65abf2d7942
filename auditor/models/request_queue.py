"""Requests that wait: the most urgent first, and held back after a provider refused one."""

from __future__ import annotations

import asyncio
import itertools
import math
import time
from collections.abc import Callable
from contextlib import suppress
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


MIN_CLOSED_S = 0.01
"""Requests are held back at least this long, so that the next one is sent later than the refusal, by the clock."""
MAX_PROBE_S = 2.0
"""A probe that is not refused within this time counts as accepted: a refusal comes at once, an answer may take long."""
MIN_ANNOUNCED_WAIT_S = 5.0
"""A longer wait is announced."""


class RequestGate:
    """Holds back the requests to a model, or to an account, after a refusal (status 429).

    A refusal closes the gate for as long as the provider asks, else for a time that grows with each further refusal.
    Then one request passes, the probe. The gate opens if the provider accepts it, and closes again if it is refused.

    Attributes:
        is_open: whether all requests may pass.
        n_refusals: consecutive refusals, not counting those of requests that were sent before the last refusal.
        refused_at: time of the last of them, by the clock.
        accepted_at: time at which the latest request was sent that the provider accepted, or did not refuse at once.
        closed_until: time until which no request passes after the last refusal.
        max_wait_s: the longest wait that a provider may ask for.
    """

    def __init__(
        self,
        pause: Callable[[int, float], float],
        *,
        clock: Callable[[], float] = time.monotonic,
        max_wait_s: float = math.inf,
        on_wait: Callable[[float, float], None] = lambda wait_s, retry_after_s: None,
    ) -> None:
        """Create an open gate.

        Args:
            pause: seconds for which the gate closes; called with the number of consecutive refusals and the seconds
                that the provider asks for, 0 if it does not say.
            clock: monotonic time in seconds.
            max_wait_s: a longer wait that the provider asks for is cut to this.
            on_wait: called once for each long wait with its length and the wait the provider asked for, in seconds.
        """
        self.is_open, self.n_refusals = True, 0
        self.refused_at = self.accepted_at = self.closed_until = -math.inf
        self._pause, self._clock = pause, clock
        self.max_wait_s, self._on_wait = max_wait_s, on_wait
        # The request that passed alone, if it has neither ended nor been refused, and until when it keeps others back.
        self._probe: object | None = None
        self._probe_until = self._announced_until = -math.inf
        self._retry_after_s = 0.0
        self._changed = asyncio.Event()

    def wait_s(self) -> float:
        """Seconds until a request may pass, unless the gate changes before; 0 if one may pass now."""
        return 0.0 if self.is_open else max(0.0, max(self.closed_until, self._probe_until) - self._clock())

    async def wait_for_change(self, max_s: float) -> None:
        """Wait until the gate has changed, at most `max_s` seconds; a long wait is announced."""
        wait_s = self.closed_until - self._clock()
        if wait_s > MIN_ANNOUNCED_WAIT_S and self.closed_until > self._announced_until + MIN_ANNOUNCED_WAIT_S:
            self._announced_until = self.closed_until
            self._on_wait(wait_s, self._retry_after_s)
        with suppress(TimeoutError):
            async with asyncio.timeout(max_s):
                await self._changed.wait()

    def enter(self) -> object | None:
        """Let a request pass, when `wait_s` is 0; returns what identifies it as the probe, None if it is none."""
        if self.is_open:
            return None
        if self._probe is not None:  # not refused within `MAX_PROBE_S`
            self.accepted_at = max(self.accepted_at, self._probe_until - MAX_PROBE_S)
            self._open()
            return None
        self._probe, self._probe_until = object(), self._clock() + MAX_PROBE_S
        return self._probe

    def leave(self, probe: object | None) -> None:
        """Let another probe pass if this one ended without being accepted or refused, such as by a server error."""
        if probe is not None and probe is self._probe:
            self._release_probe()

    def record_acceptance(self, sent_at: float) -> None:
        """Record that the provider accepted a request; one that was sent before the last refusal shows nothing."""
        self.accepted_at = max(self.accepted_at, sent_at)
        if self.n_refusals and sent_at > self.refused_at:
            self.n_refusals = 0
            self._open()

    def record_refusal(self, retry_after_s: float | None, sent_at: float, not_before: float = -math.inf) -> bool:
        """Close the gate after a refusal.

        Args:
            retry_after_s: how long the provider asks to wait; None or 0 if it does not say.
            sent_at: time at which the request was sent.
            not_before: time before which no request passes, whatever the provider asks.

        Returns:
            Whether the gate was open, so that a new episode of refusals begins.
        """
        now, was_open = self._clock(), self.is_open
        pause_s = retry_after_s = retry_after_s or 0.0
        if is_new := sent_at > self.refused_at:
            self.n_refusals, self.refused_at, self.is_open = self.n_refusals + 1, now, False
            pause_s = self._pause(self.n_refusals, retry_after_s)
            self._release_probe()
        if not self.is_open:
            self._retry_after_s = retry_after_s
            pause_s = max(MIN_CLOSED_S, min(pause_s, self.max_wait_s) if retry_after_s else pause_s)
            self.closed_until = max(self.closed_until, now + pause_s, not_before)
        return is_new and was_open

    def _open(self) -> None:
        """Let all requests pass."""
        self.is_open, self.closed_until = True, -math.inf
        self._release_probe()

    def _release_probe(self) -> None:
        """Forget the probe, and wake all waiting requests."""
        self._probe, self._probe_until = None, -math.inf
        self._changed.set()
        self._changed = asyncio.Event()
