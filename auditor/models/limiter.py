"""Concurrency and rate limits of a provider's account: an adaptive limit on parallel requests, and backoff after 429.

The limit follows additive increase, multiplicative decrease (Chiu and Jain, Computer Networks and ISDN Systems 17,
1989), with the slow start of TCP: it doubles after each round of successes until the provider first answers 429.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager

from aiolimiter import AsyncLimiter

INITIAL_BACKOFF_S = 1.0
MAX_BACKOFF_S = 60.0
DEFAULT_INITIAL_CONCURRENCY, MAX_CONCURRENCY = 20, 100
"""Requests in flight for one account: the initial limit and the highest."""
DECREASE_FACTOR, INCREASE_FACTOR = 0.8, 1.05
COOLDOWN_S = 15.0
"""After a decrease the limit stays unchanged for this long, or for as long as the provider asks to wait."""
MIN_ROUND_SIZE = 4
MIN_ANNOUNCED_WAIT_S = 5.0
"""A longer wait that a provider asks for is announced."""
STOP_POLL_INTERVAL_S = 0.5
"""How often a wait checks whether the run is to stop."""
MIN_UTILIZATION = 0.8
"""Share of the limit that must have been in flight for a round of successes to raise the limit."""


class ConcurrencyLimiter:
    """Adaptive limit on the requests in flight for one account, shared by all models of the account.

    Attributes:
        limit: requests that may be in flight now, rounded down.
    """

    def __init__(
        self,
        max_limit: int = MAX_CONCURRENCY,
        *,
        initial_limit: int = DEFAULT_INITIAL_CONCURRENCY,
        clock: Callable[[], float] = time.monotonic,
        on_change: Callable[[int, int, str], None] = lambda before, after, reason: None,
        is_stopped: Callable[[], bool] = lambda: False,
        max_wait_s: float = math.inf,
        on_wait: Callable[[float, float], None] = lambda wait_s, retry_after_s: None,
    ) -> None:
        """Create a limiter with no request in flight.

        Args:
            max_limit: highest value of the limit.
            initial_limit: its value at the beginning.
            clock: monotonic time in seconds.
            on_change: called after each change of the limit with the old limit, the new limit and the reason.
            is_stopped: whether the run is to stop; waiting requests are then let through at once.
            max_wait_s: longest time that requests are held back, whatever the provider asks.
            on_wait: called once for each long wait with its length and the wait the provider asked for, in seconds.
        """
        self.limit = float(min(initial_limit, max_limit))
        self._max_limit = max_limit
        self._clock = clock
        # Requests in flight now, their maximum in this round, and successes in this round.
        self._in_flight = self._peak_in_flight = self._clean_responses = 0
        self._in_slow_start = True
        # Times by `clock` until which requests are held back and until which the limit stays, and the wait in seconds
        # that the provider asked for last.
        self._closed_until = self._cooldown_until = self._retry_after_s = 0.0
        self._announced_until = -math.inf
        self._max_wait_s, self._on_wait = max_wait_s, on_wait
        self._waiting_turns: deque[asyncio.Future[None]] = deque()
        self._on_change, self._is_stopped = on_change, is_stopped

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait until the limit and the provider's `retry-after` allow another request; hold its slot until exit."""
        if self._waiting_turns or self._in_flight >= int(self.limit):
            await self._wait_for_slot()
        else:
            self._in_flight += 1
        try:
            while not self._is_stopped() and (wait_s := self._closed_until - self._clock()) > 0:
                self.announce_wait(wait_s, self._retry_after_s)
                await asyncio.sleep(min(wait_s, STOP_POLL_INTERVAL_S))  # another 429 may prolong the wait
            self._peak_in_flight = max(self._peak_in_flight, self._in_flight)
            yield
        finally:
            self._release_slot()

    async def _wait_for_slot(self) -> None:
        """Wait in a queue, first in, first out, until a slot is free."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting_turns.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # a slot was granted just before this task was cancelled
                self._release_slot()
            raise

    def _release_slot(self) -> None:
        """Free a slot, and grant it to the next waiting request."""
        self._in_flight -= 1
        self._admit_waiting()

    def _admit_waiting(self) -> None:
        """Grant free slots to waiting requests, first in, first out."""
        while self._waiting_turns and self._in_flight < int(self.limit):
            turn = self._waiting_turns.popleft()
            if not turn.done():
                self._in_flight += 1
                turn.set_result(None)

    def record_success(self) -> None:
        """Record a request that succeeded at its first attempt; after a round of `limit` successes the limit grows."""
        if self._clock() < self._cooldown_until:
            return
        self._clean_responses += 1
        if self._clean_responses < max(self.limit, MIN_ROUND_SIZE):
            return
        if self._peak_in_flight >= MIN_UTILIZATION * int(self.limit):
            reason = "a clean round at first" if self._in_slow_start else "a clean round"
            # It doubles in slow start, which lasts until the first 429.
            self._set_limit(min(self._max_limit, self.limit * (2 if self._in_slow_start else INCREASE_FACTOR)), reason)
        self._clean_responses, self._peak_in_flight = 0, self._in_flight

    def record_throttling(self, retry_after_s: float | None) -> None:
        """Record an answer with status 429: hold requests back, and decrease the limit once per cooldown.

        Args:
            retry_after_s: how long the provider asks to wait; None if it does not say.
        """
        now, self._retry_after_s = self._clock(), retry_after_s or 0.0
        retry_after_s = min(self._retry_after_s, self._max_wait_s)
        self._clean_responses, self._in_slow_start = 0, False
        self._closed_until = max(self._closed_until, now + retry_after_s)
        if now >= self._cooldown_until:
            self._set_limit(max(1.0, self.limit * DECREASE_FACTOR), "too many requests (429)")
            self._cooldown_until = now + max(COOLDOWN_S, retry_after_s)

    def announce_wait(self, wait_s: float, retry_after_s: float) -> None:
        """Call `on_wait` for a wait that is longer than `MIN_ANNOUNCED_WAIT_S` and has not been announced yet.

        Args:
            wait_s: how long requests wait from now, in seconds.
            retry_after_s: how long the provider asked to wait, in seconds.
        """
        wait_end = self._clock() + wait_s
        if wait_s > MIN_ANNOUNCED_WAIT_S and wait_end > self._announced_until + MIN_ANNOUNCED_WAIT_S:
            self._announced_until = wait_end
            self._on_wait(wait_s, retry_after_s)

    def _set_limit(self, limit: float, reason: str) -> None:
        """Change the limit; `on_change` is called if its whole number changes."""
        previous_limit, self.limit = int(self.limit), float(limit)
        self._admit_waiting()
        if previous_limit != int(limit):
            self._on_change(previous_limit, int(limit), reason)

    def record_server_error(self) -> None:
        """Record a server error or a timeout: it starts a new round and leaves the limit unchanged."""
        self._clean_responses = 0


class RateLimiter:
    """Limits on requests per minute (`rpm`) and tokens per minute (`tpm`); None for no limit."""

    def __init__(self, rpm: int | None, tpm: int | None, is_stopped: Callable[[], bool] = lambda: False) -> None:
        """Create a limiter of each kind; once `is_stopped` returns True, no request waits any more."""
        self._is_stopped = is_stopped
        # Per 60 seconds.
        self._request_limiter = AsyncLimiter(rpm, 60) if rpm else None
        self._token_limiter = AsyncLimiter(tpm, 60) if tpm else None

    async def acquire(self, tokens: float) -> None:
        """Wait until a request of about this many tokens is within both limits, or until the run is stopped."""
        if self._request_limiter:
            await self._wait_unless_stopped(self._request_limiter.acquire())
        if self._token_limiter:
            # At most the limit of a minute: the limiter refuses a larger amount.
            await self._wait_unless_stopped(self._token_limiter.acquire(min(tokens, self._token_limiter.max_rate)))

    async def _wait_unless_stopped(self, acquisition: Coroutine[object, object, None]) -> None:
        """Await a coroutine, or cancel it when the run is stopped."""
        task = asyncio.ensure_future(acquisition)
        try:
            while not task.done() and not self._is_stopped():
                await asyncio.wait({task}, timeout=STOP_POLL_INTERVAL_S)
        finally:
            task.cancel()


def backoff_delay(attempt: int, rng: random.Random) -> float:
    """Seconds to wait before the next attempt: exponential backoff with full jitter, so that retries do not coincide.

    Args:
        attempt: number of attempts so far, from 1.
        rng: source of the jitter.
    """
    return rng.uniform(0, min(MAX_BACKOFF_S, INITIAL_BACKOFF_S * 2 ** (attempt - 1)))


async def sleep_unless_stopped(seconds: float, is_stopped: Callable[[], bool]) -> None:
    """Sleep for a time in seconds, or until the run is stopped."""
    deadline = time.monotonic() + seconds
    while not is_stopped() and (remaining_s := deadline - time.monotonic()) > 0:  # noqa: ASYNC110
        await asyncio.sleep(min(remaining_s, STOP_POLL_INTERVAL_S))
