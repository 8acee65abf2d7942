"""Rate limits of a model or an account: requests and tokens per minute."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from auditor.models.limiter import sleep_unless_stopped
from auditor.models.request_queue import RequestQueue

RATE_BURST_S = 1.0
"""Requests of so many seconds may be sent together: providers enforce limits per minute over shorter periods, such as
1,000 a second for 60,000 a minute (OpenAI, Rate limits)."""


class RateLimiter:
    """Limits on requests per minute (`rpm`) and tokens per minute (`tpm`); None for no limit.

    Requests are admitted one after another, the most urgent first, whatever their size (generic cell rate algorithm,
    ITU-T I.371): each is scheduled after the time that the earlier ones take at the limit, less `RATE_BURST_S`.
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
        self._is_unlimited = rpm is None and tpm is None
        self._queue, self._is_admitting = RequestQueue(), False

    def reserve(self, tokens: float) -> float:
        """Admit a request of about this many tokens; return how long it has to wait, in seconds."""
        now = self._clock()
        starts = [max(conforming_at, now) for conforming_at in self._conforming_at]
        amounts = (1.0, tokens)
        self._conforming_at = [
            start + amount / per_s for start, amount, per_s in zip(starts, amounts, self._limits_per_s, strict=True)
        ]
        return max(0.0, max(starts) - RATE_BURST_S - now)

    async def acquire(self, tokens: float, *, is_retry: bool = False, priority: int = 0) -> None:
        """Wait until a request of about this many tokens is within both limits, or until the run is stopped.

        Args:
            tokens: about how many the request takes.
            is_retry, priority: which of the waiting requests goes first; see `ConcurrencyLimiter.slot`.
        """
        if self._is_unlimited:
            return
        turn = self._queue.join(is_retry=is_retry, priority=priority)
        self._admit_next()
        try:
            await turn.granted
            await sleep_unless_stopped(self.reserve(tokens), self._is_stopped)
        finally:
            if turn.is_granted:
                self._is_admitting = False
                self._admit_next()
            else:
                self._queue.discard(turn)

    def _admit_next(self) -> None:
        """Let the most urgent request wait for its time, unless another one does."""
        if not self._is_admitting and (turn := self._queue.first()) is not None:
            self._is_admitting = True
            self._queue.grant(turn)
