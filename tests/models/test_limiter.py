"""The adaptive concurrency limit and the rate limit, with a clock that the tests set."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from auditor.domain import Purpose
from auditor.models.limiter import (
    DEFAULT_INITIAL_CONCURRENCY,
    MAX_CONCURRENCY,
    RATE_BURST_S,
    RECOVERY_S,
    ConcurrencyLimiter,
    RateLimiter,
    SharedSlots,
)
from auditor.models.request_queue import RequestGate
from tests.support.patience import PATIENCE_S
from tests.support.slots import hold_slot
from tests.support.virtual_time import Clock


def make_limiter(max_limit: int = MAX_CONCURRENCY, *, clock: Clock | None = None, **options: Any) -> ConcurrencyLimiter:
    """A limiter whose gate waits for exactly as long as the provider asks."""
    clock = clock or Clock()
    gate = RequestGate(lambda n_refusals, retry_after_s: retry_after_s, clock=clock)
    return ConcurrencyLimiter(gate, max_limit, clock=clock, **options)


async def use_all_slots(limiter: ConcurrencyLimiter, sent_at: float = 0.0) -> None:
    """Run as many requests at once as the limit allows; all succeed."""
    async with AsyncExitStack() as stack:
        for _ in range(int(limiter.limit)):
            await stack.enter_async_context(hold_slot(limiter))
    for _ in range(max(4, int(limiter.limit) + 1)):
        limiter.record_success(sent_at)


async def send(limiter: ConcurrencyLimiter, name: str, order: list[str]) -> None:
    """Send a request, which is a retry if its name says so, and append its name to `order`."""
    async with hold_slot(limiter, is_retry=name.startswith("retry")):
        order.append(name)


async def test_the_limit_doubles_until_throttled_and_beyond_its_old_value_grows_slowly() -> None:
    clock = Clock()
    limiter = make_limiter(clock=clock)
    limits = [limiter.limit]
    for _ in range(4):
        await use_all_slots(limiter)
        limits.append(limiter.limit)
    assert limits == [DEFAULT_INITIAL_CONCURRENCY, 40, 80, MAX_CONCURRENCY, MAX_CONCURRENCY]
    for expected_limit in (80, 64):
        clock.now += 1
        limiter.record_throttling(None, clock.now)
        assert limiter.limit == expected_limit
        limiter.record_success(clock.now + 0.1)
    clock.now += RECOVERY_S
    await use_all_slots(limiter, clock.now)
    assert limiter.limit == pytest.approx(1.05 * 64)


async def test_one_episode_of_429_cuts_the_limit_once_and_it_returns() -> None:
    clock = Clock()
    limiter = make_limiter(clock=clock)
    for clock.now in (1.0, 1.5, 2.0, 4.0):
        for sent_at in (0.5, clock.now):
            limiter.record_throttling(2.0, sent_at)
    assert limiter.limit == 16
    limiter.record_success(0.5)  # sent before the cut: it does not show that the provider accepts requests again
    limiter.record_throttling(None, clock.now)
    assert limiter.limit == 16
    limits = []
    for clock.now in (6.0, 6.0 + 0.4 * RECOVERY_S, 6.0 + RECOVERY_S - 0.001):  # a request is accepted at 6.0
        limiter.record_success(clock.now)
        limits.append(limiter.limit)
    assert limits == [16, pytest.approx(20 - 4 * 0.6**3), pytest.approx(20)]
    assert limits[1] >= 0.95 * 20
    limiter.record_throttling(None, clock.now)
    assert limiter.limit == pytest.approx(16)
    for _ in range(100):
        clock.now += 100
        limiter.record_throttling(None, clock.now)
    assert limiter.limit == pytest.approx(16)  # only probes were sent: their refusals say nothing about the limit
    for _ in range(100):
        limiter.record_success(clock.now + 1)
        clock.now += 2
        limiter.record_throttling(None, clock.now)
    assert limiter.limit == 1


async def test_server_errors_hold_requests_back_only_for_as_long_as_the_provider_asks() -> None:
    clock = Clock()
    limiter = make_limiter(clock=clock)
    limiter.record_server_error(None, clock.now)
    assert limiter.wait_s() == 0
    limiter.record_server_error(7.0, clock.now)
    assert (limiter.wait_s(), limiter.limit) == (7.0, DEFAULT_INITIAL_CONCURRENCY)


async def test_a_call_that_was_sent_goes_before_calls_that_were_not() -> None:
    limiter, order = make_limiter(1), list[str]()
    async with asyncio.TaskGroup() as tasks, hold_slot(limiter):
        for name in ("new 1", "new 2", "retry 1", "retry 2"):
            tasks.create_task(send(limiter, name, order))
            await asyncio.sleep(0)
        assert order == []
    assert order == ["retry 1", "retry 2", "new 1", "new 2"]


async def test_waiting_reviews_go_before_answers_and_answers_before_probes_at_all_models_of_a_server() -> None:
    purposes = (Purpose.REVIEW, Purpose.DIRECT, Purpose.declare("logic"), Purpose.declare("moral"))
    assert [purpose.priority for purpose in purposes] == [0, 1, 2, 2]
    slots = SharedSlots(2)
    limiters, order = [make_limiter(2, shared_slots=[slots]) for _ in range(2)], list[tuple[int, str]]()

    async def send(model: int, purpose: Purpose) -> None:
        async with hold_slot(limiters[model], priority=purpose.priority):
            order.append((model, purpose.value))

    async with asyncio.TaskGroup() as tasks, hold_slot(limiters[0]), hold_slot(limiters[0]):
        for purpose in (Purpose.declare("logic"), Purpose.DIRECT, Purpose.REVIEW):
            for model in (1, 0):
                tasks.create_task(send(model, purpose))
                await asyncio.sleep(0)
        assert (order, slots.n_free) == ([], 0)
    assert order == [(model, purpose) for purpose in ("review", "direct", "logic") for model in (1, 0)]
    assert slots.n_free == 2


async def test_a_cancelled_request_leaves_its_place_and_its_slots() -> None:
    slots = SharedSlots(1)
    limiter, order = make_limiter(1, shared_slots=[slots]), list[str]()
    async with hold_slot(limiter):
        tasks = [asyncio.create_task(send(limiter, name, order)) for name in ("waiting", "granted", "last")]
        await asyncio.sleep(0)
        assert limiter.load == 4
        tasks[0].cancel()
        await asyncio.sleep(0)
        assert limiter.load == 3
    tasks[1].cancel()  # its turn has come, but it has not run since
    await asyncio.gather(*tasks, return_exceptions=True)
    assert (order, limiter.load, slots.n_free) == (["last"], 0, 1)


@pytest.mark.parametrize("ends_before_the_slot_is_free", [False, True])
async def test_a_retry_that_waits_out_a_pause_goes_before_calls_that_wait_for_a_slot(
    ends_before_the_slot_is_free: bool,
) -> None:
    clock, order = Clock(), list[str]()
    limiter = make_limiter(1, clock=clock)
    async with asyncio.TaskGroup() as tasks:
        async with hold_slot(limiter) as sent_at:
            tasks.create_task(send(limiter, "new 1", order))
            await asyncio.sleep(0)
            clock.now += 1
            limiter.record_throttling(5.0, sent_at)
            tasks.create_task(send(limiter, "retry 1", order))
            await asyncio.sleep(0)
            clock.now += 5 if ends_before_the_slot_is_free else 0
        await asyncio.sleep(0)
        clock.now += 5
    assert order == ["retry 1", "new 1"]


async def test_server_errors_stop_growth_and_do_not_cut_the_limit() -> None:
    limiter = make_limiter()
    for _ in range(5):
        for _ in range(DEFAULT_INITIAL_CONCURRENCY - 1):
            limiter.record_success(0.0)
        limiter.record_server_error(None, 0.0)
    assert limiter.limit == DEFAULT_INITIAL_CONCURRENCY


async def test_an_unused_limit_does_not_grow() -> None:
    limiter = make_limiter()
    for _ in range(1000):
        async with hold_slot(limiter):
            pass
        limiter.record_success(0.0)
    assert limiter.limit == DEFAULT_INITIAL_CONCURRENCY


async def test_never_more_in_flight_than_the_limit_and_nobody_starves() -> None:
    limiter = make_limiter(5)
    in_flight = peak_in_flight = n_finished = 0

    async def work() -> None:
        nonlocal in_flight, peak_in_flight, n_finished
        async with hold_slot(limiter):
            in_flight += 1
            peak_in_flight = max(peak_in_flight, in_flight)
            await asyncio.sleep(0)
            in_flight -= 1
        n_finished += 1

    await asyncio.gather(*(work() for _ in range(200)))
    assert (peak_in_flight, n_finished) == (5, 200)


async def test_only_as_many_waiting_tasks_are_woken_as_slots_are_free() -> None:
    limiter, n_requests, steps = make_limiter(10, initial_limit=2), 2000, 0

    async def send_request() -> None:
        async with hold_slot(limiter):
            await asyncio.sleep(0)
        limiter.record_success(0.0)

    def count_steps(coroutine: Coroutine[object, None, None]) -> Generator[object, None, None]:
        nonlocal steps
        for waits_for in coroutine.__await__():
            steps += 1
            yield waits_for

    class CountedRequest:
        def __await__(self) -> Generator[object, None, None]:
            return count_steps(send_request())

    async def send_counted_request() -> None:
        await CountedRequest()

    await asyncio.gather(*(send_counted_request() for _ in range(n_requests)))
    assert limiter.limit == 10
    assert steps <= 2 * n_requests  # one step to wait, one to send


async def test_a_woken_task_that_is_cancelled_wakes_the_next() -> None:
    limiter = make_limiter(1)
    async with hold_slot(limiter):
        woken_task, next_task = (asyncio.create_task(send(limiter, "", [])) for _ in range(2))
        await asyncio.sleep(0)
    woken_task.cancel()  # it is woken, but has not run yet
    await asyncio.wait_for(next_task, PATIENCE_S)


async def test_a_cancelled_wait_leaves_no_slot_occupied() -> None:
    limiter = make_limiter(1)
    async with hold_slot(limiter):
        slot_task = asyncio.create_task(hold_slot(limiter).__aenter__())
        await asyncio.sleep(0)
        slot_task.cancel()
        await asyncio.gather(slot_task, return_exceptions=True)
    async with asyncio.timeout(PATIENCE_S), hold_slot(limiter):
        pass


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
    async with asyncio.timeout(PATIENCE_S):
        await rate.acquire(1000)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await rate.acquire(50)
    unlimited = RateLimiter(None, None)
    async with asyncio.timeout(PATIENCE_S):
        for _ in range(100):
            await unlimited.acquire(1e9)


async def test_the_most_urgent_of_the_waiting_requests_is_admitted_next() -> None:
    clock, order = Clock(), list[str]()
    limiter = RateLimiter(rpm=60, tpm=None, clock=clock, is_stopped=lambda: clock.now > 0)

    async def send(name: str, *, is_retry: bool = False, priority: int = 0) -> None:
        await limiter.acquire(1, is_retry=is_retry, priority=priority)
        order.append(name)

    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as tasks:
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
