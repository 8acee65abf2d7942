"""Calls through the gateway to a provider that refuses with status 429, in virtual time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest

from auditor.config import Limits, ModelSection
from auditor.domain import Answer, Attempt, Call, Capability, Message, Outcome, Purpose
from auditor.models.endpoint import DEFAULT_CAPABILITY
from auditor.models.failures import RequestFailure
from auditor.models.gateway import Gateway
from auditor.models.provider_request import ProviderReply
from tests.support.audit_configs import KEY, KEY_VARIABLE
from tests.support.virtual_time import run_in_virtual_time

ANSWER_S = 0.3
RPM, MAX_IN_FLIGHT = 10_000, 200
"""Of all models of the account together."""
BURST = (20.0, 23.0)
"""Start and end of the time in which the provider refuses everything, in seconds after the first request."""

Refuses = Callable[[str, float], float | None]
"""Takes a model and the seconds since the first request; returns the provider's `retry-after`, or None to accept."""


class Provider:
    """A dispatcher in place of a provider that answers after `ANSWER_S`.

    Attributes:
        answered: (model, seconds since the first request) of each answer.
        n_refused: refused requests.
    """

    def __init__(self, refuses: Refuses) -> None:
        self._refuses = refuses
        self._start: float | None = None
        self.answered: list[tuple[str, float]] = []
        self.n_refused = 0

    def rate(self, start: float, end: float, *models: str) -> float:
        """Answers per second between two times, of some models or of all."""
        return sum(start <= at < end and (not models or name in models) for name, at in self.answered) / (end - start)

    async def send(
        self,
        call: Call,
        attempt_number: int,
        total_timeout_s: float | None,
        capability: Capability = DEFAULT_CAPABILITY,
    ) -> ProviderReply:
        """Refuse a request at once, or answer it."""
        self._start = time.monotonic() if self._start is None else self._start
        if (retry_after_s := self._refuses(call.name, time.monotonic() - self._start)) is None:
            await asyncio.sleep(ANSWER_S)
            self.answered.append((call.name, time.monotonic() - self._start))
            attempt = Attempt(attempt_number, datetime.now(UTC), ANSWER_S, Outcome.OK, 200)
            return ProviderReply(Answer(call.key, Outcome.OK, "SCORE = 0.1", attempts=(attempt,)), None)
        await asyncio.sleep(0.01)
        self.n_refused += 1
        failure = RequestFailure(Outcome.RATE_LIMITED, True, False, "slow down", 429, retry_after_s or None)
        attempt = Attempt(attempt_number, datetime.now(UTC), 0.01, Outcome.RATE_LIMITED, 429, "slow down")
        return ProviderReply(Answer(call.key, Outcome.RATE_LIMITED, error="slow down", attempts=(attempt,)), failure)

    async def close(self) -> None:
        """Do nothing."""


def answer_calls(
    provider: Provider, n_calls: dict[str, int], monkeypatch: pytest.MonkeyPatch, rpm: int | None = None
) -> list[Outcome]:
    """Send calls to models of one account, each with its workers; return how the calls ended."""
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    monkeypatch.setattr("auditor.models.limiter.INITIAL_BACKOFF_S", 1.0)

    async def send_all() -> list[Outcome]:
        key, concurrency = f"os.environ/{KEY_VARIABLE}", MAX_IN_FLIGHT // len(n_calls)
        sections = [
            ModelSection(name=name, model=f"openai/{name}", api_key=key, concurrency=concurrency, rpm=rpm)
            for name in n_calls
        ]
        gateway, outcomes = Gateway(sections, Limits(max_attempts=6), dispatcher=provider), list[Outcome]()

        async def work(name: str, samples: Iterator[int]) -> None:
            for sample in samples:
                call = Call(name, f"openai/{name}", (Message("user", "question"),), Purpose.DIRECT, sample=sample)
                outcomes.append((await gateway.complete(call)).outcome)

        queues = {name: iter(range(n)) for name, n in n_calls.items()}
        await asyncio.gather(*(work(name, queue) for name, queue in queues.items() for _ in range(concurrency)))
        return outcomes

    return run_in_virtual_time(send_all(), monkeypatch)


@pytest.mark.parametrize("retry_after_s", [0.0, 2.0])
def test_the_rate_recovers_within_10_s_of_a_burst_of_429(monkeypatch: pytest.MonkeyPatch, retry_after_s: float) -> None:
    provider = Provider(lambda name, at: retry_after_s if BURST[0] <= at < BURST[1] else None)
    n_calls = dict.fromkeys("abcd", RPM // 4)
    outcomes = answer_calls(provider, n_calls, monkeypatch, rpm=RPM // 4)
    assert set(outcomes) == {Outcome.OK}
    assert provider.n_refused > 0
    assert provider.rate(5, 20) == pytest.approx(RPM / 60, rel=0.02)
    assert provider.rate(33, 43) >= 0.95 * RPM / 60
    for name in n_calls:
        assert provider.rate(5, 50, name) >= 0.9 * provider.rate(5, 50) / len(n_calls)


@pytest.mark.parametrize("retry_after_s", [0.0, 2.0])
def test_requests_in_flight_are_back_within_10_s_where_they_are_the_limit(
    monkeypatch: pytest.MonkeyPatch, retry_after_s: float
) -> None:
    provider = Provider(lambda name, at: retry_after_s if BURST[0] <= at < BURST[1] else None)
    assert set(answer_calls(provider, {"a": 30_000}, monkeypatch)) == {Outcome.OK}
    permitted_per_s = MAX_IN_FLIGHT / ANSWER_S
    assert provider.rate(10, 20) == pytest.approx(permitted_per_s, rel=0.02)
    assert provider.rate(33, 43) >= 0.95 * permitted_per_s


def test_a_refused_model_does_not_hold_up_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = Provider(lambda name, at: 20.0 if name == "refused" and at > 1 else None)
    outcomes = answer_calls(provider, {"refused": 500, "other": 4_000}, monkeypatch)
    assert 4_000 <= outcomes.count(Outcome.OK) < 4_500
    assert provider.rate(5, 10, "other") == pytest.approx(MAX_IN_FLIGHT / 2 / ANSWER_S, rel=0.02)


def test_a_rate_that_no_setting_names_is_found_and_no_call_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    permitted_per_s, state = RPM / 60, {"tokens": 0.0, "at": 0.0}

    def refuses(name: str, at: float) -> float | None:
        tokens = min(permitted_per_s, state["tokens"] + permitted_per_s * (at - state["at"]))
        accepts = tokens >= 1
        state.update(tokens=tokens - accepts, at=at)
        return None if accepts else 1.0

    provider = Provider(refuses)
    outcomes = answer_calls(provider, dict.fromkeys("abcd", 4_000), monkeypatch)
    assert set(outcomes) == {Outcome.OK}
    last = max(at for _, at in provider.answered)
    assert provider.rate(0.4 * last, 0.8 * last) >= 0.75 * permitted_per_s
