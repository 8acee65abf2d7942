"""How hard a provider's account may be asked: a limit that finds itself, and gates that a 429 or a set rate closes.

Additive increase, multiplicative decrease (Chiu and Jain, Computer Networks and ISDN Systems 17, 1989), with the slow
start of TCP: the limit doubles each clean round until the provider first says that it is too much.
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
"""Requests in flight for one account: at first, and ever."""
DECREASE_FACTOR, INCREASE_FACTOR = 0.8, 1.05
COOLDOWN_S = 15.0
"""After a cut the limit is left alone for this long, or for as long as the provider asks to wait."""
MIN_ROUND_SIZE = 4
MIN_ANNOUNCED_WAIT_S = 5.0
"""A longer wait that a provider asks for is announced."""
STOP_POLL_INTERVAL_S = 0.5
"""How often a wait looks whether the run is to stop."""
MIN_UTILIZATION = 0.8
"""Share of the limit that must have been in flight for a clean round to prove anything."""


class ConcurrencyLimiter:
    """Slots of one account, shared by all who ask it.

    Attributes:
        limit: requests that may be in flight now; whole numbers of it count.
    """

    def __init__(
        self,
        max_limit: int = MAX_CONCURRENCY,
        *,
        initial_limit: int = DEFAULT_INITIAL_CONCURRENCY,
        clock: Callable[[], float] = time.monotonic,
        on_change: Callable[[int, int, str], None] = lambda before, after, why: None,
        is_stopped: Callable[[], bool] = lambda: False,
        max_wait_s: float = math.inf,
        on_wait: Callable[[float, float], None] = lambda wait_s, asked_s: None,
    ) -> None:
        """A limiter.

        Args:
            most: what the limit never exceeds.
            start: what it begins with.
            clock: seconds, never going back.
            changed: is told of each change: from, to, why.
            stopped: whether nothing is to go out any more: a closed gate keeps nobody then.
            max_wait_s: the gate closes for no longer, whatever the provider asks.
            waits: called once for each long wait, with its length and with what the provider asked, both in seconds.
        """
        self.limit = float(min(initial_limit, max_limit))
        self._max_limit = max_limit
        self._clock = clock
        self._in_flight = self._peak_in_flight = self._clean_responses = 0
        self._in_slow_start = True
        self._closed_until = self._cooldown_until = self._retry_after_s = 0.0
        self._announced_until = -math.inf
        self._max_wait_s, self._on_wait = max_wait_s, on_wait
        self._waiting_turns: deque[asyncio.Future[None]] = deque()
        self._on_change, self._is_stopped = on_change, is_stopped

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Hold a slot, once there is one and the gate is open."""
        if self._waiting_turns or self._in_flight >= int(self.limit):
            await self._wait_for_slot()
        else:
            self._in_flight += 1
        try:
            while not self._is_stopped() and (wait := self._closed_until - self._clock()) > 0:
                self.announce_wait(wait, self._retry_after_s)
                await asyncio.sleep(min(wait, STOP_POLL_INTERVAL_S))  # another 429 may move the gate
            self._peak_in_flight = max(self._peak_in_flight, self._in_flight)
            yield
        finally:
            self._release_slot()

    async def _wait_for_slot(self) -> None:
        """Wait in line until a slot is handed over."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting_turns.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # it was handed over, to one who has gone
                self._release_slot()
            raise

    def _release_slot(self) -> None:
        self._in_flight -= 1
        self._admit_waiting()

    def _admit_waiting(self) -> None:
        while self._waiting_turns and self._in_flight < int(self.limit):
            turn = self._waiting_turns.popleft()
            if not turn.done():
                self._in_flight += 1
                turn.set_result(None)

    def record_success(self) -> None:
        """A request went well at its first try; a whole round of them lets the limit grow."""
        if self._clock() < self._cooldown_until:
            return
        self._clean_responses += 1
        if self._clean_responses < max(self.limit, MIN_ROUND_SIZE):
            return
        if self._peak_in_flight >= MIN_UTILIZATION * int(self.limit):
            why = "a clean round at first" if self._in_slow_start else "a clean round"
            self._set_limit(min(self._max_limit, self.limit * (2 if self._in_slow_start else INCREASE_FACTOR)), why)
        self._clean_responses, self._peak_in_flight = 0, self._in_flight

    def record_throttling(self, retry_after_s: float | None) -> None:
        """The provider said that it is too much: nobody goes out before it allows, and the limit is cut, once."""
        now, self._retry_after_s = self._clock(), retry_after_s or 0.0
        retry_after_s = min(self._retry_after_s, self._max_wait_s)
        self._clean_responses, self._in_slow_start = 0, False
        self._closed_until = max(self._closed_until, now + retry_after_s)
        if now >= self._cooldown_until:
            self._set_limit(max(1.0, self.limit * DECREASE_FACTOR), "too many requests (429)")
            self._cooldown_until = now + max(COOLDOWN_S, retry_after_s)

    def announce_wait(self, wait_s: float, retry_after_s: float) -> None:
        """Report that somebody waits because the provider asked for it, if that takes long and is not known yet."""
        until = self._clock() + wait_s
        if wait_s > MIN_ANNOUNCED_WAIT_S and until > self._announced_until + MIN_ANNOUNCED_WAIT_S:
            self._announced_until = until
            self._on_wait(wait_s, retry_after_s)

    def _set_limit(self, limit: float, reason: str) -> None:
        before, self.limit = int(self.limit), float(limit)
        self._admit_waiting()
        if before != int(limit):
            self._on_change(before, int(limit), reason)

    def record_server_error(self) -> None:
        """A server error or a time-out: no reason to ask less, and none to ask more."""
        self._clean_responses = 0


class RateLimiter:
    """Requests and tokens a minute at most, where the config sets them."""

    def __init__(self, rpm: int | None, tpm: int | None, is_stopped: Callable[[], bool] = lambda: False) -> None:
        self._is_stopped = is_stopped
        self._request_limiter = AsyncLimiter(rpm, 60) if rpm else None
        self._token_limiter = AsyncLimiter(tpm, 60) if tpm else None

    async def acquire(self, tokens: float) -> None:
        """Wait until one more request of about so many tokens may go out, or nothing is to go out any more."""
        if self._request_limiter:
            await self._wait_unless_stopped(self._request_limiter.acquire())
        if self._token_limiter:
            await self._wait_unless_stopped(self._token_limiter.acquire(min(tokens, self._token_limiter.max_rate)))

    async def _wait_unless_stopped(self, turn: Coroutine[object, object, None]) -> None:
        waiting = asyncio.ensure_future(turn)
        try:
            while not waiting.done() and not self._is_stopped():
                await asyncio.wait({waiting}, timeout=STOP_POLL_INTERVAL_S)
        finally:
            waiting.cancel()


def backoff_delay(attempt: int, rng: random.Random) -> float:
    """Seconds before the next try: full jitter under a doubling cap, so that retries do not come in waves.

    Args:
        attempt: requests made so far, from 1.
        rng: source of the jitter.
    """
    return rng.uniform(0, min(MAX_BACKOFF_S, INITIAL_BACKOFF_S * 2 ** (attempt - 1)))


async def sleep_unless_stopped(seconds: float, is_stopped: Callable[[], bool]) -> None:
    """Wait so long, or until nothing is to go out any more."""
    until = time.monotonic() + seconds
    while not is_stopped() and (left := until - time.monotonic()) > 0:  # noqa: ASYNC110
        await asyncio.sleep(min(left, STOP_POLL_INTERVAL_S))
