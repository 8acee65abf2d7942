"""Limits of a model: parallel requests, and requests and tokens per minute."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from auditor.models.request_queue import RequestGate, RequestQueue, Turn

DEFAULT_INITIAL_CONCURRENCY, MAX_CONCURRENCY = 20, 100
"""Requests in flight for one model: the initial limit and the highest."""
DECREASE_FACTOR, INCREASE_FACTOR = 0.8, 1.05
RECOVERY_S = 15.0
"""In this time after the provider accepts requests again, the limit returns to its value before the decrease."""
OTHERS_FIRST_S = 0.1
"""A refused model may send a probe so much later than its account, so that another model's request is the probe."""
MIN_ROUND_SIZE = 4
MIN_UTILIZATION = 0.8
"""Share of the limit that must have been in flight for a round of successes to raise the limit."""
STOP_POLL_INTERVAL_S = 0.5
"""How often a wait checks whether the run is to stop."""


class HeldBack(Exception):
    """A request is held back after a 429, and can be sent in another way."""


async def sleep_unless_stopped(seconds: float, is_stopped: Callable[[], bool]) -> None:
    """Sleep for a time in seconds, or until the run is stopped."""
    deadline = time.monotonic() + seconds
    while not is_stopped() and (remaining_s := deadline - time.monotonic()) > 0:  # noqa: ASYNC110
        await asyncio.sleep(min(remaining_s, STOP_POLL_INTERVAL_S))


class SharedSlots:
    """A fixed number of requests in flight that several limiters share; the most urgent request gets a free slot.

    Attributes:
        n_free: slots that no request holds.
        limiters: those that share the slots.
    """

    def __init__(self, n_slots: int) -> None:
        """Create slots of which none is held."""
        self.n_free = n_slots
        self.limiters: list[ConcurrencyLimiter] = []


@dataclass(frozen=True, slots=True)
class HeldSlot:
    """The slots of one request in flight.

    Attributes:
        limiter: whose slots they are.
        sent_at: time, by its clock, at which the request may be sent.
        probes: by which each gate knows the request, if it is its probe.
    """

    limiter: ConcurrencyLimiter
    sent_at: float
    probes: Sequence[object | None]

    def release(self) -> None:
        """Free the slots; the request has ended."""
        self.limiter.release(self)


class ConcurrencyLimiter:
    """Adaptive limit on the requests in flight for one model, and pauses of the model and its account after 429.

    Attributes:
        limit: requests that may be in flight now, rounded down.
    """

    def __init__(
        self,
        gate: RequestGate,
        max_limit: int = MAX_CONCURRENCY,
        *,
        initial_limit: int = DEFAULT_INITIAL_CONCURRENCY,
        clock: Callable[[], float] = time.monotonic,
        on_change: Callable[[int, int, str], None] = lambda before, after, reason: None,
        is_stopped: Callable[[], bool] = lambda: False,
        account_gate: RequestGate | None = None,
        shared_slots: Sequence[SharedSlots] = (),
    ) -> None:
        """Create a limiter with no request in flight.

        Args:
            gate: holds back requests to this model.
            max_limit: highest value of the limit.
            initial_limit: its value at the beginning.
            clock: monotonic time in seconds.
            on_change: called after each change of the limit with the old limit, the new limit and the reason.
            is_stopped: whether no request is sent any more; waiting requests are then let through at once.
            account_gate: holds back requests to all models of an account; None if each has limits of its own.
            shared_slots: fixed limits on the requests in flight that it shares, such as those of an account.
        """
        self.limit = float(min(initial_limit, max_limit))
        self._max_limit, self._clock = max_limit, clock
        self._gate, self._account_gate = gate, account_gate
        self._gates = (gate,) if account_gate is None else (account_gate, gate)
        self._has_own_limit = False
        # Requests in flight now, their maximum in this round, and successes in this round.
        self._in_flight = self._peak_in_flight = self._clean_responses = 0
        self._in_slow_start = True
        # The limit before and after the last decrease, its time, and that of the first success of a request sent later.
        self._limit_before_decrease = self._decreased_limit = self.limit
        self._decreased_at = self._recovering_since = -math.inf
        self._queue = RequestQueue()
        self._n_retries_at_gate = self._n_at_gate = 0
        self._on_change, self._is_stopped = on_change, is_stopped
        self._shared_slots = shared_slots
        for slots in shared_slots:
            slots.limiters.append(self)

    def wait_s(self) -> float:
        """Seconds for which requests are held back after a 429, unless the provider accepts one before."""
        return max(gate.wait_s() for gate in self._gates)

    @property
    def load(self) -> float:
        """Requests that are in flight or wait, as a share of the limit."""
        return (self._in_flight + len(self._queue) + self._n_at_gate) / max(1.0, self.limit)

    async def take_slot(
        self, *, is_retry: bool = False, priority: int = 0, may_leave: Callable[[], bool] = lambda: False
    ) -> HeldSlot:
        """Wait until the limits and the pauses after 429 allow another request; its slots are held until released.

        Args:
            is_retry: whether the call was sent before: its time is running, so it goes before calls that were not.
            priority: of the requests that wait, one with the lowest number goes first; see `Purpose.priority`.
            may_leave: whether a request that is held back after a 429 can be sent with another key.

        Raises:
            HeldBack: the request is held back, and may leave.
        """
        while True:
            await self._wait_for_slot(is_retry, priority, may_leave)
            is_stopped, is_held_back = self._is_stopped(), self.wait_s() > 0
            if is_stopped or not is_held_back:
                return HeldSlot(self, self._clock(), [None if is_stopped else gate.enter() for gate in self._gates])
            self._release_slot()
            if may_leave():
                raise HeldBack

    def release(self, slot: HeldSlot) -> None:
        """Free the slots of a request that has ended; after `record_success` and the like."""
        for gate, probe in zip(self._gates, slot.probes, strict=True):
            gate.leave(probe)
        self._release_slot()

    async def _wait_at_gates(self, may_leave: Callable[[], bool]) -> None:
        """Wait until requests are not held back any more, may leave, or the run is stopped; no slot is held."""
        # The account's first: one that is closed announces the wait once, not each of its models.
        while (closed_gate := next((gate for gate in self._gates if gate.wait_s()), None)) is not None:
            if self._is_stopped() or may_leave():
                return
            await closed_gate.wait_for_change(min(closed_gate.wait_s(), STOP_POLL_INTERVAL_S))

    async def _wait_for_slot(self, is_retry: bool, priority: int, may_leave: Callable[[], bool]) -> None:
        """Wait until requests are not held back and a slot is free, and take it."""
        self._n_retries_at_gate += is_retry
        self._n_at_gate += 1
        try:
            await self._wait_at_gates(may_leave)
            turn = self._queue.join(is_retry=is_retry, priority=priority)
        finally:
            self._n_retries_at_gate -= is_retry
            self._n_at_gate -= 1
            self._admit_waiting([self])
        try:
            await turn.granted
        except asyncio.CancelledError:
            if turn.is_granted:  # just before this task was cancelled
                self._release_slot()
            else:
                self._queue.discard(turn)
            raise

    def _release_slot(self) -> None:
        """Free the slots of a request, for a waiting one of this model, or of another one that waits for its slots."""
        limiters = {id(self): self}
        self._in_flight -= 1
        for slots in self._shared_slots:
            if not slots.n_free:
                limiters |= {id(limiter): limiter for limiter in slots.limiters}
            slots.n_free += 1
        self._admit_waiting(limiters.values())

    def _admit_waiting(self, limiters: Iterable[ConcurrencyLimiter]) -> None:
        """Grant free slots to the requests that wait in some limiters, the most urgent first."""
        limiters = list(limiters)
        while turns := [(turn, limiter) for limiter in limiters if (turn := limiter._next_turn()) is not None]:
            turn, limiter = min(turns, key=lambda entry: entry[0].rank)
            limiter._grant(turn)

    def _next_turn(self) -> Turn | None:
        """The most urgent waiting request; None if none may be sent. Retries go first, even those at a gate."""
        if self._in_flight >= int(self.limit) or not all(slots.n_free for slots in self._shared_slots):
            return None
        turn = self._queue.first()
        return None if turn is None or (self._n_retries_at_gate and not turn.is_retry) else turn

    def _grant(self, turn: Turn) -> None:
        """Give the free slots to a waiting request."""
        self._queue.grant(turn)
        self._in_flight += 1
        self._peak_in_flight = max(self._peak_in_flight, self._in_flight)
        for slots in self._shared_slots:
            slots.n_free -= 1

    def record_success(self, sent_at: float) -> None:
        """Record a request that succeeded; the limit grows with the time after a decrease, then by rounds of successes.

        Args:
            sent_at: time at which it was sent, as `slot` yielded it; if before the last decrease, nothing grows.
        """
        for gate in self._gates:
            gate.record_acceptance(sent_at)
        if sent_at <= self._decreased_at:
            return
        self._recovering_since = min(self._recovering_since, self._clock())
        recovery = (self._clock() - self._recovering_since) / RECOVERY_S
        if recovery < 1:
            gap = (self._limit_before_decrease - self._decreased_limit) * (1 - recovery) ** 3
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

    def record_throttling(self, retry_after_s: float | None, sent_at: float) -> bool:
        """Record an answer with status 429: hold requests back, and decrease the limit once per episode.

        An episode lasts until the provider accepts a request again: while it refuses everything, a lower limit is no
        help.

        Args:
            retry_after_s: how long the provider asks to wait; None if it does not say.
            sent_at: time at which the request was sent, as `slot` yielded it.

        Returns:
            Whether it holds back the account's other models too.
        """
        self._clean_responses, self._in_slow_start = 0, False
        not_before, account_gate = -math.inf, self._account_gate
        if account_gate is not None and not self._concerns_account(account_gate, retry_after_s or 0.0):
            account_gate = None
        if account_gate is not None:
            account_gate.record_refusal(retry_after_s, sent_at)
            not_before = account_gate.closed_until + OTHERS_FIRST_S
        if self._gate.record_refusal(retry_after_s, sent_at, not_before):
            self._limit_before_decrease = self.limit
            self._decreased_limit = max(1.0, self.limit * DECREASE_FACTOR)
            self._decreased_at, self._recovering_since = self._clock(), math.inf
            self._set_limit(self._decreased_limit, "too many requests (429)")
        return account_gate is not None

    def _concerns_account(self, account_gate: RequestGate, retry_after_s: float) -> bool:
        """Whether a 429 holds back the account's other models too.

        Not if the model stays refused although the account was accepted in between: it has a limit of its own. Nor if
        the provider asks for too long a wait: the other models find out by themselves whether it holds for them.
        """
        if not self._gate.n_refusals:
            self._has_own_limit = False
        elif account_gate.accepted_at > self._gate.refused_at:
            self._has_own_limit = True
        return not self._has_own_limit and retry_after_s <= self._gate.max_wait_s

    def record_server_error(self, retry_after_s: float | None, sent_at: float) -> None:
        """Record a server error or a timeout: it starts a new round, and leaves the limit unchanged.

        Args:
            retry_after_s: how long the provider asks to wait, as with status 503; no request is sent meanwhile.
            sent_at: time at which the request was sent, as `slot` yielded it.
        """
        self._clean_responses = 0
        if retry_after_s:
            self._gate.record_refusal(retry_after_s, sent_at)

    def _set_limit(self, limit: float, reason: str) -> None:
        """Change the limit; `on_change` is called if its whole number changes."""
        previous_limit, self.limit = int(self.limit), float(limit)
        self._admit_waiting([self])
        if previous_limit != int(limit):
            self._on_change(previous_limit, int(limit), reason)


RATE_BURST_S = 1.0
"""Requests of so many seconds may be sent together: providers enforce limits per minute over shorter periods, such as
1,000 a second for 60,000 a minute (OpenAI, Rate limits)."""


class RateLimiter:
    """Limits on requests per minute (`rpm`) and tokens per minute (`tpm`); None for no limit.

    Requests are admitted one after another, the most urgent first, whatever their size (generic cell rate algorithm,
    ITU-T I.371): each is scheduled after the time that the earlier ones take at the limit, less `RATE_BURST_S`.

    Attributes:
        is_unlimited: whether it has neither limit, so that requests need not acquire it.
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
        self.is_unlimited = rpm is None and tpm is None
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
            is_retry, priority: which of the waiting requests goes first; see `ConcurrencyLimiter.take_slot`.
        """
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
