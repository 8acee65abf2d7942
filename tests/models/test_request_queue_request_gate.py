"""The gate that holds requests back after a refusal, with a clock that the tests set, and as a model of states."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from auditor.models.limiter import ConcurrencyLimiter
from auditor.models.request_queue import MAX_PROBE_S, RequestGate
from tests.support.patience import PATIENCE_S
from tests.support.slots import hold_slot
from tests.support.virtual_time import Clock, VirtualClock, make_virtual_loop, run_in_virtual_time


def make_gate(clock: Clock, **options: Any) -> RequestGate:
    """A gate that is closed for as long as the provider asks, else for 1, 2, 4, … seconds."""
    return RequestGate(lambda n, retry_after_s: retry_after_s or 2.0 ** (n - 1), clock=clock, **options)


@pytest.mark.parametrize("retry_after_s", [None, 0.0])
def test_without_a_time_to_wait_the_gate_closes_longer_with_each_refusal(retry_after_s: float | None) -> None:
    clock = Clock()
    gate = make_gate(clock)
    for expected_wait_s in (1.0, 2.0, 4.0, 8.0):
        gate.record_refusal(retry_after_s, clock.now)
        assert gate.wait_s() == expected_wait_s
        clock.now += expected_wait_s
        assert gate.enter() is not None


def test_the_gate_opens_once_a_probe_is_accepted() -> None:
    clock = Clock()
    gate = make_gate(clock)
    assert gate.record_refusal(3.0, clock.now)
    clock.now = 3.0
    assert gate.wait_s() == 0
    assert gate.enter() is not None
    assert gate.wait_s() == MAX_PROBE_S
    clock.now += 0.3
    gate.record_acceptance(sent_at=0.0)  # sent before the refusal
    assert gate.wait_s() > 0
    gate.record_acceptance(sent_at=3.0)
    assert gate.wait_s() == 0
    assert gate.enter() is None
    assert gate.record_refusal(None, clock.now)  # a new episode
    assert gate.wait_s() == 1.0


def test_a_probe_that_is_not_refused_at_once_opens_the_gate() -> None:
    clock = Clock()
    gate = make_gate(clock)
    gate.record_refusal(1.0, clock.now)
    clock.now = 1.0
    slow_probe = gate.enter()
    clock.now += MAX_PROBE_S
    assert [gate.wait_s(), gate.enter(), gate.wait_s(), gate.enter()] == [0, None, 0, None]
    assert gate.accepted_at == 1.0
    gate.record_refusal(None, clock.now)
    assert gate.wait_s() == 2.0  # the second refusal in a row
    clock.now += 2.0
    assert gate.enter() is not None
    gate.leave(slow_probe)
    assert gate.wait_s() == MAX_PROBE_S  # the end of an earlier probe says nothing about the present one


def test_after_a_probe_without_a_verdict_the_next_request_is_the_probe() -> None:
    clock = Clock()
    gate = make_gate(clock)
    gate.record_refusal(1.0, clock.now)
    clock.now = 1.0
    gate.leave(gate.enter())
    assert gate.wait_s() == 0
    assert gate.enter() is not None
    assert gate.wait_s() == MAX_PROBE_S


def test_refusals_of_requests_in_flight_are_one_refusal_and_the_longest_wait_holds() -> None:
    clock = Clock()
    gate = make_gate(clock)
    assert [gate.record_refusal(seconds, 0.0) for seconds in (2.0, 5.0, None, 3.0)] == [True, False, False, False]
    assert (gate.n_refusals, gate.wait_s()) == (1, 5.0)


async def test_throttling_pauses_no_longer_than_the_maximum_wait() -> None:
    clock = Clock()
    announced: list[tuple[float, float]] = []
    gate = make_gate(clock, max_wait_s=60.0, on_wait=lambda wait_s, asked_s: announced.append((wait_s, asked_s)))
    limiter = ConcurrencyLimiter(gate, clock=clock)
    limiter.record_throttling(86_400.0, clock.now)
    for _ in range(2):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1), hold_slot(limiter):
                pass
    clock.now += 60.0
    async with asyncio.timeout(PATIENCE_S), hold_slot(limiter) as sent_at:
        limiter.record_success(sent_at + 1)
    assert announced == [(60.0, 86_400.0)]
    limit_before = limiter.limit
    clock.now += 2
    limiter.record_throttling(None, clock.now)
    assert limiter.limit < limit_before  # the episode has ended, too


def test_waiting_requests_pass_as_soon_as_the_probe_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    sent_at: list[float] = []

    async def send_five() -> None:
        clock = asyncio.get_running_loop().time
        limiter = ConcurrencyLimiter(RequestGate(lambda n, retry_after_s: retry_after_s, clock=clock), clock=clock)
        start = clock()
        limiter.record_throttling(2.0, start)

        async def send() -> None:
            async with hold_slot(limiter) as passed_at:
                sent_at.append(passed_at - start)
                await asyncio.sleep(0.03)
                limiter.record_success(passed_at)

        await asyncio.gather(*(send() for _ in range(5)))

    run_in_virtual_time(send_five(), monkeypatch)
    assert sent_at == [pytest.approx(2.0), *[pytest.approx(2.03)] * 4]


def make_account(clock: Clock, **options: Any) -> list[ConcurrencyLimiter]:
    """The limiters of two models of an account."""
    account_gate, *gates = (make_gate(clock, **options) for _ in range(3))
    return [ConcurrencyLimiter(gate, clock=clock, account_gate=account_gate) for gate in gates]


async def test_a_refused_model_holds_back_its_account_and_lets_another_model_probe_first() -> None:
    clock = Clock()
    refused, other = make_account(clock)
    refused.record_throttling(2.0, clock.now)
    assert other.wait_s() == 2.0
    assert refused.wait_s() > 2.0
    clock.now = 2.0
    async with hold_slot(other) as sent_at:
        assert refused.wait_s() > 0
        other.record_success(sent_at)
    assert other.wait_s() == 0


async def test_a_model_that_stays_refused_while_its_account_is_accepted_holds_back_only_itself() -> None:
    clock = Clock()
    refused, other = make_account(clock)
    refused.record_throttling(20.0, clock.now)
    clock.now = 20.0
    async with hold_slot(other) as sent_at:
        other.record_success(sent_at)
    for _ in range(10):
        clock.now += refused.wait_s()
        async with hold_slot(refused) as sent_at:
            refused.record_throttling(20.0, sent_at)
        assert other.wait_s() == 0
        assert refused.wait_s() == pytest.approx(20.0)
    clock.now += 20.0
    async with hold_slot(refused) as sent_at:
        refused.record_success(sent_at)
    clock.now += 1.0
    refused.record_throttling(20.0, clock.now)  # a new episode may be the account's
    assert other.wait_s() == 20.0


async def test_a_wait_of_the_account_is_announced_once_and_not_by_each_model() -> None:
    clock = Clock()
    announced: list[str] = []
    account_gate, own_gate = (
        make_gate(clock, on_wait=lambda wait_s, asked_s, name=name: announced.append(name)) for name in ("account", "a")
    )
    limiter = ConcurrencyLimiter(own_gate, clock=clock, account_gate=account_gate)
    limiter.record_throttling(20.0, clock.now)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1), hold_slot(limiter):
            pass
    clock.now = 20.05  # only the model's own gate is closed: another model's request goes first
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01), hold_slot(limiter):
            pass
    assert announced == ["account"]


def test_a_too_long_wait_holds_back_only_the_refused_model() -> None:
    clock = Clock()
    refused, other = make_account(clock, max_wait_s=60.0)
    refused.record_throttling(3600.0, clock.now)
    assert (refused.wait_s(), other.wait_s()) == (60.0, 0)


@dataclass
class Request:
    """A request of the state machine, and what is to happen to it.

    Attributes:
        model: number of its model.
        sent_at: when it passed; None while it waits.
        verdict: set when it is to end: `ok`, `error`, or the wait in seconds of a refusal.
    """

    model: int
    sent_at: float | None = None
    verdict: asyncio.Future[str | float] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    task: asyncio.Task[None] | None = None


class LimiterMachine(RuleBasedStateMachine):
    """Two models of an account whose requests are sent, accepted, refused, failed and cancelled in any order."""

    MAX_LIMIT = 4

    def __init__(self) -> None:
        super().__init__()
        self.clock = VirtualClock()
        self.loop = make_virtual_loop(self.clock)
        account_gate, *gates = (RequestGate(self.pause, clock=self.clock, max_wait_s=60.0) for _ in range(3))
        self.limiters = [
            ConcurrencyLimiter(gate, self.MAX_LIMIT, clock=self.clock, account_gate=account_gate) for gate in gates
        ]
        self.requests: list[Request] = []
        # Of each model: the end of the wait that its provider asked for; the last refusal, but for those of requests
        # sent before an earlier one; whether no later request was accepted; and whether only one may be in flight.
        self.not_before = [-math.inf, -math.inf]
        self.refused_at = [-math.inf, -math.inf]
        self.is_refused = [False, False]
        self.is_probed = [False, False]
        # The end of the wait after the last refusal that held back the account, its time, and whether only one request
        # of all models may be in flight that was sent later.
        self.account_not_before = self.account_refused_at = -math.inf
        self.account_is_probed = False

    @staticmethod
    def pause(n_refusals: int, retry_after_s: float) -> float:
        """Without jitter, so that the clock stands still at the end of a pause."""
        return retry_after_s or min(60.0, 2.0 ** (n_refusals - 1))

    async def send(self, request: Request, is_retry: bool) -> None:
        """Wait for a slot, check that the request may pass, and wait for its verdict."""
        limiter = self.limiters[request.model]
        async with hold_slot(limiter, is_retry=is_retry) as sent_at:
            self.check_admission(request.model, sent_at)
            request.sent_at = sent_at
            verdict = await request.verdict
            self.apply(request, sent_at, verdict)

    def check_admission(self, model: int, sent_at: float) -> None:
        """No request passes while its model is paused, and only one until the provider accepts one again."""
        assert sent_at >= self.account_not_before
        in_flight = [other for other in self.sent_requests if other.model == model]
        assert len(in_flight) < int(self.limiters[model].limit)
        later = [r.sent_at for r in self.sent_requests if r.sent_at and r.sent_at > self.account_refused_at]
        if self.account_is_probed and later:
            assert min(later) <= sent_at - MAX_PROBE_S + 1e-6  # it was not refused at once
            self.account_is_probed = False
        if self.is_probed[model]:
            assert sent_at >= self.not_before[model]
            if later := [r.sent_at for r in in_flight if r.sent_at and r.sent_at > self.refused_at[model]]:
                assert min(later) <= sent_at - MAX_PROBE_S + 1e-6  # it was not refused at once
                self.is_probed[model] = False

    def apply(self, request: Request, sent_at: float, verdict: str | float) -> None:
        """Record how a request ended, with the limiter and here."""
        model, limiter = request.model, self.limiters[request.model]
        if verdict == "ok":
            limiter.record_success(sent_at)
            if sent_at > self.refused_at[model]:
                self.is_refused[model] = self.is_probed[model] = False
            if sent_at > self.account_refused_at:
                self.account_not_before, self.account_is_probed = -math.inf, False
        elif verdict == "error":
            limiter.record_server_error(None, sent_at)
        else:
            assert isinstance(verdict, float)  # the wait that the provider asks for
            limiter.record_throttling(verdict, sent_at)
            if sent_at > self.refused_at[model]:
                if not self.is_refused[model] and verdict <= 60.0 and sent_at > self.account_refused_at:
                    self.account_not_before, self.account_refused_at = self.clock.now + verdict, self.clock.now
                    self.account_is_probed = True
                self.is_refused[model] = self.is_probed[model] = True
                self.refused_at[model] = self.clock.now
                self.not_before[model] = self.clock.now + min(verdict, 60.0)
            elif self.is_probed[model]:
                self.not_before[model] = max(self.not_before[model], self.clock.now + min(verdict, 60.0))

    @property
    def sent_requests(self) -> list[Request]:
        """Requests in flight."""
        return [r for r in self.requests if r.sent_at is not None and r.task is not None and not r.task.done()]

    def run(self, seconds: float = 0.0) -> None:
        """Let time pass, in the loop's time; errors of tasks are raised."""
        self.loop.run_until_complete(asyncio.sleep(seconds))
        for _ in range(5):
            self.loop.run_until_complete(asyncio.sleep(0))
        for request in self.requests:
            if request.task is not None and request.task.done() and not request.task.cancelled():
                request.task.result()
        self.requests = [r for r in self.requests if r.task is not None and not r.task.done()]

    @rule(model=st.integers(0, 1), is_retry=st.booleans())
    def start(self, model: int, is_retry: bool) -> None:
        async def create() -> None:
            request = Request(model)
            request.task = asyncio.create_task(self.send(request, is_retry))
            self.requests.append(request)

        self.loop.run_until_complete(create())
        self.run()

    @precondition(lambda self: self.sent_requests)
    @rule(data=st.data(), verdict=st.sampled_from(["ok", "error", 0.0, 2.0, 20.0, 3600.0]))
    def answer(self, data: st.DataObject, verdict: str | float) -> None:
        self.run(0.001)  # an answer takes time
        request = data.draw(st.sampled_from(self.sent_requests))
        request.verdict.set_result(verdict)
        self.run()

    @precondition(lambda self: self.requests)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        request = data.draw(st.sampled_from(self.requests))
        assert request.task is not None
        request.task.cancel()
        self.run()

    @rule(seconds=st.sampled_from([0.001, 0.1, 1.0, MAX_PROBE_S, 20.0, 61.0]))
    def wait(self, seconds: float) -> None:
        self.run(seconds)

    @invariant()
    def the_limit_is_within_its_bounds(self) -> None:
        assert all(1 <= limiter.limit <= self.MAX_LIMIT for limiter in self.limiters)

    def teardown(self) -> None:
        """Once the provider accepts everything, all requests pass, and then as many at once as the limit allows."""
        try:
            for model in range(2):
                self.start(model, is_retry=False)
            self.accept_all()
            for model, limiter in enumerate(self.limiters):
                for _ in range(int(limiter.limit)):
                    self.start(model, is_retry=False)
            assert all(request.sent_at is not None for request in self.requests)
            self.accept_all()
        finally:
            self.loop.run_until_complete(self.cancel_all())
            self.loop.close()

    async def cancel_all(self) -> None:
        """Cancel what a failed test has left."""
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def accept_all(self) -> None:
        """Accept all requests as soon as they are sent; none waits for ever."""
        for _ in range(200):
            if not self.requests:
                return
            for request in self.sent_requests:
                if not request.verdict.done():
                    request.verdict.set_result("ok")
            self.run(1.0)
        assert not self.requests


def test_no_sequence_of_requests_refusals_and_cancellations_breaks_the_limiter() -> None:
    run_state_machine_as_test(LimiterMachine, settings=settings(max_examples=40, stateful_step_count=40))
