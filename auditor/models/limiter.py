"""How hard one model may be asked: so many requests in flight, and none before the provider's own waiting time."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

FIRST_WAIT_S = 1.0
MAX_WAIT_S = 60.0


class Limiter:
    """Slots of one model, shared by all who ask it, and a gate that a 429 closes for all of them."""

    def __init__(self, concurrency: int) -> None:
        self._slots = asyncio.Semaphore(concurrency)
        self._not_before = 0.0

    def pause(self, seconds: float) -> None:
        """Let no request out for that long."""
        self._not_before = max(self._not_before, time.monotonic() + seconds)

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Hold a slot, once there is one and the gate is open."""
        async with self._slots:
            while (wait := self._not_before - time.monotonic()) > 0:  # noqa: ASYNC110 - another 429 may move the gate
                await asyncio.sleep(wait)
            yield


def backoff(attempt: int, rng: random.Random) -> float:
    """Seconds before the next try: full jitter under a doubling cap, so that retries do not come in waves.

    Args:
        attempt: requests made so far, from 1.
        rng: source of the jitter.
    """
    return rng.uniform(0, min(MAX_WAIT_S, FIRST_WAIT_S * 2 ** (attempt - 1)))
