"""Concurrency and rate limits of a model: an adaptive limit on parallel requests, and backoff after 429.

The limit doubles after each round of successes until the provider first answers 429, as in TCP's slow start. A 429
decreases it; it then returns to its earlier value along the curve of CUBIC (RFC 9438), at first fast and then slowly,
and grows by a small factor beyond.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext

INITIAL_BACKOFF_S = 1.0
MAX_BACKOFF_S = 60.0
DEFAULT_INITIAL_CONCURRENCY, MAX_CONCURRENCY = 20, 100
"""Requests in flight for one model: the initial limit and the highest."""
DECREASE_FACTOR, INCREASE_FACTOR = 0.8, 1.05
RECOVERY_S = 15.0
"""In this time after a decrease, or after the pause that the provider asks for, the limit returns to its old value."""
RATE_BURST_S = 1.0
"""Requests of so many seconds may be sent together: providers enforce limits per minute over shorter periods, such as
1,000 a second for 60,000 a minute (OpenAI, Rate limits)."""
MIN_ROUND_SIZE = 4
MIN_ANNOUNCED_WAIT_S = 5.0
"""A longer wait that a provider asks for is announced."""
STOP_POLL_INTERVAL_S = 0.5
"""How often a wait checks whether the run is to stop."""
MIN_UTILIZATION = 0.8
"""Share of the limit that must have been in flight for a round of successes to raise the limit."""


class ConcurrencyLimiter:
    """Adaptive limit on the requests in flight for one model; a model that is refused does not hold up the others.

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
        account_slots: asyncio.Semaphore | None = None,
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
            account_slots: fixed limit on the requests in flight that all models of an account share; None for none.
        """
        self.limit = float(min(initial_limit, max_limit))
        self._max_limit = max_limit
        self._clock = clock
        # Requests in flight now, their maximum in this round, and successes in this round.
        self._in_flight = self._peak_in_flight = self._clean_responses = 0
        self._in_slow_start = True
        # Time by `clock` until which requests are held back, and the wait in seconds that the provider asked for last.
        self._closed_until, self._retry_after_s = -math.inf, 0.0
        # The limit before and after the last decrease, its time, and whether a request sent after it has succeeded.
        self._limit_before_decrease = self._decreased_limit = self.limit
        self._decreased_at, self._has_succeeded_since = -math.inf, True
        self._announced_until = -math.inf
        self._max_wait_s, self._on_wait = max_wait_s, on_wait
        self._waiting_turns: deque[asyncio.Future[None]] = deque()
        self._on_change, self._is_stopped = on_change, is_stopped
        self._account_slots = account_slots or nullcontext()

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[float]:
        """Wait until the limits and the provider's `retry-after` allow another request; hold its slots until exit.

        Yields the time, by `clock`, at which the request may be sent.
        """
        if self._waiting_turns or self._in_flight >= int(self.limit):
            await self._wait_for_slot()
        else:
            self._in_flight += 1
        try:
            while True:
                await self._wait_while_closed()
                async with self._account_slots:
                    if self._is_stopped() or self._closed_until <= self._clock():
                        self._peak_in_flight = max(self._peak_in_flight, self._in_flight)
                        yield self._clock()
                        return
        finally:
            self._release_slot()

    async def _wait_while_closed(self) -> None:
        """Wait for as long as the provider asked, or until the run is stopped; no slot of the account is held."""
        while not self._is_stopped() and (wait_s := self._closed_until - self._clock()) > 0:
            self.announce_wait(wait_s, self._retry_after_s)
            await asyncio.sleep(min(wait_s, STOP_POLL_INTERVAL_S))  # another 429 may prolong the wait

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

    def record_success(self, sent_at: float) -> None:
        """Record a request that succeeded; the limit grows with the time after a decrease, then by rounds of successes.

        Args:
            sent_at: time at which it was sent, as `slot` yielded it.
        """
        self._has_succeeded_since = self._has_succeeded_since or sent_at > self._decreased_at
        recovery = (self._clock() - max(self._decreased_at, self._closed_until)) / RECOVERY_S
        if recovery < 1:
            gap = (self._limit_before_decrease - self._decreased_limit) * (1 - max(0.0, recovery)) ** 3
            self._set_limit(max(self.limit, self._limit_before_decrease - gap), "recovery after 429")
            return
        self._clean_responses += 1
        if self._clean_responses < max(self.limit, MIN_ROUND_SIZE):
            return
        if self._peak_in_flight >= MIN_UTILIZATION * int(self.limit):
            reason = "a clean round at first" if self._in_slow_start else "a clean round"
            # It doubles in slow start, which lasts until the first 429.
            self._set_limit(min(self._max_limit, self.limit * (2 if self._in_slow_start else INCREASE_FACTOR)), reason)
        self._clean_responses, self._peak_in_flight = 0, self._in_flight

    def record_throttling(self, retry_after_s: float | None, sent_at: float) -> None:
        """Record an answer with status 429: hold requests back, and decrease the limit once per episode.

        Another decrease follows only for a request that was sent after the last one, and only if a request sent after
        it has succeeded or `RECOVERY_S` have passed: while the provider refuses everything, a lower limit is no help.

        Args:
            retry_after_s: how long the provider asks to wait; None if it does not say.
            sent_at: time at which the request was sent, as `slot` yielded it.
        """
        now, self._retry_after_s = self._clock(), retry_after_s or 0.0
        is_new_episode = self._has_succeeded_since or now >= max(self._decreased_at, self._closed_until) + RECOVERY_S
        self._clean_responses, self._in_slow_start = 0, False
        self._closed_until = max(self._closed_until, now + min(self._retry_after_s, self._max_wait_s))
        if sent_at > self._decreased_at and is_new_episode:
            self._limit_before_decrease = self.limit
            self._decreased_limit = max(1.0, self.limit * DECREASE_FACTOR)
            self._decreased_at, self._has_succeeded_since = now, False
            self._set_limit(self._decreased_limit, "too many requests (429)")

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
    """Limits on requests per minute (`rpm`) and tokens per minute (`tpm`); None for no limit.

    Requests are admitted in the order in which they ask, whatever their size (generic cell rate algorithm, ITU-T
    I.371): each is scheduled after the time that the earlier ones take at the limit, less `RATE_BURST_S`.
    """

    def __init__(
        self,
        rpm: int | None,
        tpm: int | None,
        is_stopped: Callable[[], bool] = lambda: False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create a limiter of each kind; once `is_stopped` returns True, no request waits any more.

        Args:
            rpm, tpm: requests and tokens per minute.
            is_stopped: whether the run is to stop.
            clock: monotonic time in seconds.
        """
        self._is_stopped, self._clock = is_stopped, clock
        self._limits_per_s = tuple((per_minute or math.inf) / 60 for per_minute in (rpm, tpm))
        # Times by `clock` at which all admitted requests are within each limit.
        self._conforming_at = [-math.inf, -math.inf]

    def reserve(self, tokens: float) -> float:
        """Admit a request of about this many tokens; return how long it has to wait, in seconds."""
        now = self._clock()
        starts = [max(conforming_at, now) for conforming_at in self._conforming_at]
        amounts = (1.0, tokens)
        self._conforming_at = [
            start + amount / per_s for start, amount, per_s in zip(starts, amounts, self._limits_per_s, strict=True)
        ]
        return max(0.0, max(starts) - RATE_BURST_S - now)

    async def acquire(self, tokens: float) -> None:
        """Wait until a request of about this many tokens is within both limits, or until the run is stopped."""
        await sleep_unless_stopped(self.reserve(tokens), self._is_stopped)


def backoff_delay(attempt: int, rng: random.Random) -> float:
    """Seconds to wait before the next attempt: exponential backoff with equal jitter, so that retries do not coincide.

    At least half of it is waited, so that a call does not use up its attempts within a short outage.

    Args:
        attempt: number of attempts so far, from 1.
        rng: source of the jitter.
    """
    backoff_s = min(MAX_BACKOFF_S, INITIAL_BACKOFF_S * 2 ** (attempt - 1))
    return rng.uniform(backoff_s / 2, backoff_s)


async def sleep_unless_stopped(seconds: float, is_stopped: Callable[[], bool]) -> None:
    """Sleep for a time in seconds, or until the run is stopped."""
    deadline = time.monotonic() + seconds
    while not is_stopped() and (remaining_s := deadline - time.monotonic()) > 0:  # noqa: ASYNC110
        await asyncio.sleep(min(remaining_s, STOP_POLL_INTERVAL_S))
