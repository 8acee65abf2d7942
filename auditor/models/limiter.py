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

FIRST_WAIT_S = 1.0
MAX_WAIT_S = 60.0
START, MOST = 20, 100
"""Requests in flight for one account: at first, and ever."""
CUT, GROWTH = 0.8, 1.05
COOLDOWN_S = 15.0
"""After a cut the limit is left alone for this long, or for as long as the provider asks to wait."""
LEAST_ROUND = 4
NOTICE_S = 5.0
"""A longer wait that a provider asks for is announced."""
LOOK_S = 0.5
"""How often a wait looks whether the run is to stop."""
BUSY = 0.8
"""Share of the limit that must have been in flight for a clean round to prove anything."""


class Limiter:
    """Slots of one account, shared by all who ask it.

    Attributes:
        limit: requests that may be in flight now; whole numbers of it count.
    """

    def __init__(
        self,
        most: int = MOST,
        *,
        start: int = START,
        clock: Callable[[], float] = time.monotonic,
        changed: Callable[[int, int, str], None] = lambda before, after, why: None,
        stopped: Callable[[], bool] = lambda: False,
        max_wait_s: float = math.inf,
        waits: Callable[[float, float], None] = lambda wait_s, asked_s: None,
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
        self.limit = float(min(start, most))
        self._most = most
        self._clock = clock
        self._in_flight = self._peak = self._clean = 0
        self._doubling = True
        self._not_before = self._cooled_at = self._asked_s = 0.0
        self._announced = -math.inf
        self._max_wait_s, self._waits = max_wait_s, waits
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._tell, self._stopped = changed, stopped

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Hold a slot, once there is one and the gate is open."""
        if self._waiting or self._in_flight >= int(self.limit):
            await self._turn()
        else:
            self._in_flight += 1
        try:
            while not self._stopped() and (wait := self._not_before - self._clock()) > 0:
                self.announce(wait, self._asked_s)
                await asyncio.sleep(min(wait, LOOK_S))  # another 429 may move the gate
            self._peak = max(self._peak, self._in_flight)
            yield
        finally:
            self._leave()

    async def _turn(self) -> None:
        """Wait in line until a slot is handed over."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # it was handed over, to one who has gone
                self._leave()
            raise

    def _leave(self) -> None:
        self._in_flight -= 1
        self._let_in()

    def _let_in(self) -> None:
        while self._waiting and self._in_flight < int(self.limit):
            turn = self._waiting.popleft()
            if not turn.done():
                self._in_flight += 1
                turn.set_result(None)

    def succeeded(self) -> None:
        """A request went well at its first try; a whole round of them lets the limit grow."""
        if self._clock() < self._cooled_at:
            return
        self._clean += 1
        if self._clean < max(self.limit, LEAST_ROUND):
            return
        if self._peak >= BUSY * int(self.limit):
            why = "a clean round at first" if self._doubling else "a clean round"
            self._set(min(self._most, self.limit * (2 if self._doubling else GROWTH)), why)
        self._clean, self._peak = 0, self._in_flight

    def throttled(self, wait_s: float | None) -> None:
        """The provider said that it is too much: nobody goes out before it allows, and the limit is cut, once."""
        now, self._asked_s = self._clock(), wait_s or 0.0
        wait_s = min(self._asked_s, self._max_wait_s)
        self._clean, self._doubling = 0, False
        self._not_before = max(self._not_before, now + wait_s)
        if now >= self._cooled_at:
            self._set(max(1.0, self.limit * CUT), "too many requests (429)")
            self._cooled_at = now + max(COOLDOWN_S, wait_s)

    def announce(self, wait_s: float, asked_s: float) -> None:
        """Report that somebody waits because the provider asked for it, if that takes long and is not known yet."""
        until = self._clock() + wait_s
        if wait_s > NOTICE_S and until > self._announced + NOTICE_S:
            self._announced = until
            self._waits(wait_s, asked_s)

    def _set(self, limit: float, why: str) -> None:
        before, self.limit = int(self.limit), float(limit)
        self._let_in()
        if before != int(limit):
            self._tell(before, int(limit), why)

    def troubled(self) -> None:
        """A server error or a time-out: no reason to ask less, and none to ask more."""
        self._clean = 0


class Rate:
    """Requests and tokens a minute at most, where the config sets them."""

    def __init__(self, rpm: int | None, tpm: int | None, stopped: Callable[[], bool] = lambda: False) -> None:
        self._stopped = stopped
        self._requests = AsyncLimiter(rpm, 60) if rpm else None
        self._tokens = AsyncLimiter(tpm, 60) if tpm else None

    async def take(self, tokens: float) -> None:
        """Wait until one more request of about so many tokens may go out, or nothing is to go out any more."""
        if self._requests:
            await self._wait(self._requests.acquire())
        if self._tokens:
            await self._wait(self._tokens.acquire(min(tokens, self._tokens.max_rate)))

    async def _wait(self, turn: Coroutine[object, object, None]) -> None:
        waiting = asyncio.ensure_future(turn)
        try:
            while not waiting.done() and not self._stopped():
                await asyncio.wait({waiting}, timeout=LOOK_S)
        finally:
            waiting.cancel()


def backoff(attempt: int, rng: random.Random) -> float:
    """Seconds before the next try: full jitter under a doubling cap, so that retries do not come in waves.

    Args:
        attempt: requests made so far, from 1.
        rng: source of the jitter.
    """
    return rng.uniform(0, min(MAX_WAIT_S, FIRST_WAIT_S * 2 ** (attempt - 1)))


async def pause(seconds: float, stopped: Callable[[], bool]) -> None:
    """Wait so long, or until nothing is to go out any more."""
    until = time.monotonic() + seconds
    while not stopped() and (left := until - time.monotonic()) > 0:  # noqa: ASYNC110
        await asyncio.sleep(min(left, LOOK_S))
