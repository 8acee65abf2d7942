"""Requests of tests that hold the slots of a limiter while they are in flight."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from auditor.models.limiter import ConcurrencyLimiter


@asynccontextmanager
async def hold_slot(
    limiter: ConcurrencyLimiter,
    *,
    is_retry: bool = False,
    priority: int = 0,
    may_leave: Callable[[], bool] = lambda: False,
) -> AsyncIterator[float]:
    """Hold a slot until exit; yields the time, by the limiter's clock, at which the request may be sent."""
    slot = await limiter.take_slot(is_retry=is_retry, priority=priority, may_leave=may_leave)
    try:
        yield slot.sent_at
    finally:
        slot.release()
