"""The rate limit, with a clock that the tests set."""

from __future__ import annotations

import asyncio

import pytest

from auditor.models.limiter import RATE_BURST_S, RateLimiter


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_requests_are_paced_in_the_order_in_which_they_ask_whatever_their_size() -> None:
    clock = Clock()
    limiter = RateLimiter(rpm=600, tpm=6000, clock=clock)
    waits = [limiter.reserve(tokens) for tokens in (1, 1000, 1, 1, 1)]
    # 1000 tokens take 10 s at 100 tokens a second, and none of the later requests overtakes them.
    assert waits == [0, 0, *(pytest.approx(10.01 + i / 100 - RATE_BURST_S) for i in range(3))]
    clock.now += 60
    assert limiter.reserve(1) == 0


def test_no_more_requests_than_the_limit_of_a_minute_and_a_second_are_admitted_in_a_minute() -> None:
    clock = Clock()
    limiter = RateLimiter(rpm=10_000, tpm=None, clock=clock)
    waits = [limiter.reserve(100) for _ in range(20_000)]
    assert sum(wait_s == 0 for wait_s in waits) == pytest.approx(10_000 / 60, abs=1)
    assert sum(wait_s < 60 for wait_s in waits) == pytest.approx(10_000 * 61 / 60, abs=1)


async def test_a_rate_limit_delays_calls_but_admits_one_larger_than_a_minutes_tokens() -> None:
    rate = RateLimiter(rpm=3, tpm=100)
    async with asyncio.timeout(60):
        await rate.acquire(1000)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await rate.acquire(50)
    unlimited = RateLimiter(None, None)
    async with asyncio.timeout(60):
        for _ in range(100):
            await unlimited.acquire(1e9)


async def test_the_most_urgent_of_the_waiting_requests_is_admitted_next() -> None:
    clock, order = Clock(), list[str]()
    limiter = RateLimiter(rpm=60, tpm=None, clock=clock, is_stopped=lambda: clock.now > 0)

    async def send(name: str, *, is_retry: bool = False, priority: int = 0) -> None:
        await limiter.acquire(1, is_retry=is_retry, priority=priority)
        order.append(name)

    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        for name in ("first", "burst", "next"):
            tasks.create_task(send(name))
        await asyncio.sleep(0.1)
        assert order == ["first", "burst"]
        tasks.create_task(send("answer", priority=1))
        cancelled = tasks.create_task(send("cancelled"))
        tasks.create_task(send("review"))
        tasks.create_task(send("retry", is_retry=True, priority=1))
        await asyncio.sleep(0)
        cancelled.cancel()
        clock.now = 60.0  # all are admitted one after another
    assert order == ["first", "burst", "next", "retry", "review", "answer"]
