"""How long a request waits: after a failure, after a 429 answer, and until the run stops."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable

INITIAL_BACKOFF_S = 1.0
MAX_BACKOFF_S = 60.0
MAX_DOUBLINGS = 30
"""Beyond these the backoff is at its maximum anyway, and larger powers are no floating-point numbers."""
MAX_PAUSE_JITTER = 0.1
"""Requests wait up to this share longer than the provider asks."""
MIN_BACKOFF_SHARE = 0.25
"""At least this share of the backoff is waited: a provider may refuse again and again after the wait it asked for."""
STOP_POLL_INTERVAL_S = 0.5
"""How often a wait checks whether the run is to stop."""


def backoff_delay(attempt: int, rng: random.Random) -> float:
    """Seconds to wait before the next attempt: exponential backoff with equal jitter, so that retries do not coincide.

    At least half of it is waited, so that a call does not use up its attempts within a short outage.

    Args:
        attempt: number of attempts so far, from 1.
        rng: source of the jitter.
    """
    backoff_s = _max_backoff(attempt)
    return rng.uniform(backoff_s / 2, backoff_s)


def _max_backoff(attempt: int) -> float:
    """Longest backoff in seconds after a number of attempts."""
    return float(min(MAX_BACKOFF_S, INITIAL_BACKOFF_S * 2.0 ** min(attempt - 1, MAX_DOUBLINGS)))


def pause_delay(n_refusals: int, retry_after_s: float, rng: random.Random) -> float:
    """Seconds for which requests are held back after a refusal: about as long as the provider asks, else the backoff.

    Both have jitter, so that several programs with one account do not send their probes together. The backoff has full
    jitter: refusals use up no attempts, and one request, the probe, is the price of a short pause.

    Args:
        n_refusals: number of consecutive refusals, from 1.
        retry_after_s: how long the provider asks to wait; 0 if it does not say.
        rng: source of the jitter.
    """
    if not retry_after_s:
        return rng.uniform(0, _max_backoff(n_refusals))
    min_pause_s = MIN_BACKOFF_SHARE * backoff_delay(n_refusals, rng)
    return max(retry_after_s * rng.uniform(1, 1 + MAX_PAUSE_JITTER), min_pause_s)


async def sleep_unless_stopped(seconds: float, is_stopped: Callable[[], bool]) -> None:
    """Sleep for a time in seconds, or until the run is stopped."""
    deadline = time.monotonic() + seconds
    while not is_stopped() and (remaining_s := deadline - time.monotonic()) > 0:  # noqa: ASYNC110
        await asyncio.sleep(min(remaining_s, STOP_POLL_INTERVAL_S))
