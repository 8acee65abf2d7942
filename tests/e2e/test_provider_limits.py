"""Calls through the gateway to a provider that refuses with status 429, in virtual time."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, Literal

import pytest

from auditor.config import LimitsSection, ModelSection
from auditor.domain import Answer, Attempt, Call, Capability, Message, Outcome, Purpose
from auditor.models.endpoint import DEFAULT_CAPABILITY
from auditor.models.failures import RequestFailure
from auditor.models.gateway import Gateway
from auditor.models.provider_request import ProviderReply
from tests.support.audit_configs import KEY_VARIABLE
from tests.support.virtual_time import run_in_virtual_time

ANSWER_S = 0.3
RPM, MAX_IN_FLIGHT = 2_000, 40
"""Of all models of the account together."""
BURST = (20.0, 23.0)
"""Start and end of the time in which the provider refuses everything, in seconds after the first request."""

Refuses = Callable[[str, float], float | None]
"""Takes a model and the seconds since the first request; returns the provider's `retry-after`, or None to accept."""


class Provider:
    """A dispatcher in place of a provider that answers after `ANSWER_S`.

    Attributes:
        sent: (model, seconds since the first request) of each request.
        answered: (model, seconds since the first request) of each answer.
        n_refused: refused requests.
    """

    def __init__(self, refuses: Refuses, outcome: Outcome = Outcome.RATE_LIMITED, status: int = 429) -> None:
        self._refuses, self._outcome, self._status = refuses, outcome, status
        self._start: float | None = None
        self.sent: list[tuple[str, float]] = []
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
        self.sent.append((call.name, time.monotonic() - self._start))
        if (retry_after_s := self._refuses(*self.sent[-1])) is None:
            await asyncio.sleep(ANSWER_S)
            self.answered.append((call.name, time.monotonic() - self._start))
            attempt = Attempt(attempt_number, datetime.now(UTC), ANSWER_S, Outcome.OK, 200)
            return ProviderReply(Answer(call.key, Outcome.OK, "SCORE = 0.1", attempts=(attempt,)), None)
        await asyncio.sleep(0.01)
        self.n_refused += 1
        failure = RequestFailure(self._outcome, True, False, "slow down", self._status, retry_after_s or None)
        attempt = Attempt(attempt_number, datetime.now(UTC), 0.01, self._outcome, self._status, "slow down")
        return ProviderReply(Answer(call.key, self._outcome, error="slow down", attempts=(attempt,)), failure)

    async def close(self) -> None:
        """Do nothing."""


def answer_calls(
    provider: Provider,
    n_calls: dict[str, int],
    monkeypatch: pytest.MonkeyPatch,
    rpm: int | None = None,
    scope: Literal["model", "account"] | None = None,
    **options: Any,
) -> list[Outcome]:
    """Send calls to models of one account, each with its workers; return how the calls ended.

    Args:
        provider: answers them.
        n_calls: by model.
        monkeypatch: sets the clock and the key.
        rpm: limit of each model, or of the account if the scope says so.
        scope: what the provider's limits hold for; None for OpenAI's, each model.
        options: of the gateway.
    """
    monkeypatch.setattr("auditor.models.retries.INITIAL_BACKOFF_S", 1.0)

    async def send_all() -> list[Outcome]:
        key, concurrency = f"os.environ/{KEY_VARIABLE}", MAX_IN_FLIGHT // len(n_calls)
        keys = {"api_key": key, "concurrency": concurrency, "rpm": rpm, "rate_limit_scope": scope}
        sections = [ModelSection.model_validate({"name": n, "model": f"openai/{n}", **keys}) for n in n_calls]
        outcomes = list[Outcome]()
        gateway = Gateway(sections, LimitsSection(max_attempts=6), dispatcher=provider, **options)

        async def work(name: str, samples: Iterator[int]) -> None:
            for sample in samples:
                call = Call(name, f"openai/{name}", (Message("user", "question"),), Purpose.DIRECT, sample=sample)
                outcomes.append((await gateway.complete(call)).outcome)

        queues = {name: iter(range(n)) for name, n in n_calls.items()}
        await asyncio.gather(*(work(name, queue) for name, queue in queues.items() for _ in range(concurrency)))
        return outcomes

    return run_in_virtual_time(send_all(), monkeypatch)


def bucket(retry_after_s: float) -> Refuses:
    """A provider that permits `RPM` requests a minute of all models together."""
    permitted_per_s, state = RPM / 60, {"tokens": 0.0, "at": 0.0}

    def refuses(name: str, at: float) -> float | None:
        tokens = min(permitted_per_s, state["tokens"] + permitted_per_s * (at - state["at"]))
        accepts = tokens >= 1
        state.update(tokens=tokens - accepts, at=at)
        return None if accepts else retry_after_s

    return refuses


@pytest.mark.parametrize("scope", ["model", "account"])
@pytest.mark.parametrize("retry_after_s", [0.0, 2.0])
def test_the_rate_recovers_within_10_s_of_a_burst_of_429(
    monkeypatch: pytest.MonkeyPatch, retry_after_s: float, scope: Literal["model", "account"]
) -> None:
    provider = Provider(lambda name, at: retry_after_s if BURST[0] <= at < BURST[1] else None)
    n_calls = dict.fromkeys("abcd", RPM // 4)
    rpm = RPM if scope == "account" else RPM // 4
    outcomes = answer_calls(provider, n_calls, monkeypatch, rpm, scope)
    assert set(outcomes) == {Outcome.OK}
    assert provider.n_refused > 0
    assert provider.rate(5, 20) == pytest.approx(RPM / 60, rel=0.02)
    assert provider.rate(33, 43) >= 0.95 * RPM / 60
    for name in n_calls:
        assert provider.rate(5, 50, name) >= 0.9 * provider.rate(5, 50) / len(n_calls)


@pytest.mark.parametrize("retry_after_s", [0.0, 2.0])
def test_requests_in_flight_are_back_within_10_s(monkeypatch: pytest.MonkeyPatch, retry_after_s: float) -> None:
    provider = Provider(lambda name, at: retry_after_s if BURST[0] <= at < BURST[1] else None)
    assert set(answer_calls(provider, {"a": 6_000}, monkeypatch)) == {Outcome.OK}
    permitted_per_s = MAX_IN_FLIGHT / ANSWER_S
    assert provider.rate(10, 20) == pytest.approx(permitted_per_s, rel=0.02)
    assert provider.rate(33, 43) >= 0.95 * permitted_per_s


def test_a_refused_model_does_not_hold_up_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = Provider(lambda name, at: 20.0 if name == "refused" and at > 1 else None)
    outcomes = answer_calls(provider, {"refused": 100, "other": 800}, monkeypatch)
    assert 800 <= outcomes.count(Outcome.OK) < 900
    assert provider.rate(5, 10, "other") == pytest.approx(MAX_IN_FLIGHT / 2 / ANSWER_S, rel=0.02)


@pytest.mark.parametrize("scope", ["model", "account"])
@pytest.mark.parametrize("retry_after_s", [0.0, 1.0])
def test_a_rate_that_no_setting_names_is_found_and_no_call_is_lost(
    monkeypatch: pytest.MonkeyPatch, retry_after_s: float, scope: Literal["model", "account"]
) -> None:
    provider = Provider(bucket(retry_after_s))
    outcomes = answer_calls(provider, dict.fromkeys("abcd", 800), monkeypatch, scope=scope)
    assert set(outcomes) == {Outcome.OK}
    last = max(at for _, at in provider.answered)
    assert provider.rate(0.4 * last, 0.8 * last) >= (0.95 if scope == "model" else 0.75) * RPM / 60


@pytest.mark.parametrize("scope", ["model", "account"])
@pytest.mark.parametrize("retry_after_s", [0.0, 2.0])
def test_a_minute_of_429_costs_few_requests_and_no_call(
    monkeypatch: pytest.MonkeyPatch, retry_after_s: float, scope: Literal["model", "account"]
) -> None:
    provider = Provider(lambda name, at: retry_after_s if 2 <= at < 62 else None)
    outcomes = answer_calls(provider, dict.fromkeys("abcd", 200), monkeypatch, scope=scope)
    assert Counter(outcomes) == {Outcome.OK: 800}
    n_probes = 60 / 2 if retry_after_s else 7  # of each model, or of all
    assert provider.n_refused <= MAX_IN_FLIGHT + n_probes * (4 if scope == "model" else 1) + 4


def test_after_a_429_no_request_is_sent_to_the_account_until_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = Provider(lambda name, at: 5.0 if name == "a" and 2 <= at < 3 else None)
    outcomes = answer_calls(provider, dict.fromkeys("abcd", 200), monkeypatch, scope="account")
    assert set(outcomes) == {Outcome.OK}
    refused_at = min(at for name, at in provider.sent if name == "a" and at >= 2)
    paused = [at for _, at in provider.sent if refused_at + 0.02 <= at < refused_at + 5]
    assert not paused
    first, second, *_ = sorted(at for _, at in provider.sent if at >= refused_at + 5)
    assert second - first > 0.99 * ANSWER_S  # the first one is the probe


def test_a_model_that_is_always_refused_stops_no_others_of_its_account(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    provider = Provider(lambda name, at: 20.0 if name == "refused" and at > 1 else None)
    outcomes = answer_calls(provider, {"refused": 100, "other": 1_200}, monkeypatch, scope="account")
    assert outcomes.count(Outcome.OK) >= 1_200
    assert provider.rate(27, 37, "other") >= 0.95 * MAX_IN_FLIGHT / 2 / ANSWER_S


def test_slow_answers_show_as_well_that_a_model_alone_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.e2e.test_provider_limits.ANSWER_S", 5.0)
    provider = Provider(lambda name, at: 20.0 if name == "refused" and at > 1 else None)
    answer_calls(provider, {"refused": 100, "other": 400}, monkeypatch, scope="account")
    assert provider.rate(60, 100, "other") >= 0.95 * MAX_IN_FLIGHT / 2 / 5.0


@pytest.mark.parametrize("scope", ["model", "account"])
@pytest.mark.parametrize("retry_after_s", [0.0, 20.0])
def test_a_run_that_is_always_refused_ends_with_advice(
    monkeypatch: pytest.MonkeyPatch, retry_after_s: float, scope: Literal["model", "account"]
) -> None:
    provider, notices = Provider(lambda name, at: retry_after_s if at > 1 else None), list[str]()
    outcomes = answer_calls(provider, dict.fromkeys("abcd", 400), monkeypatch, scope=scope, notify=notices.append)
    assert set(outcomes) == {Outcome.OK, Outcome.RATE_LIMITED}
    assert outcomes.count(Outcome.RATE_LIMITED) >= 1_400
    assert provider.n_refused <= MAX_IN_FLIGHT + 4 * 15
    assert max(at for _, at in provider.sent) <= 2 * LimitsSection().resolved_deadline_s(60)
    suspended = [text for text in notices if "gets no requests for 120 s: the provider has refused every" in text]
    assert sorted(text[:3] for text in suspended) == ["'a'", "'b'", "'c'", "'d'"]
    assert all(text.endswith("run the same command again.") for text in suspended)


def test_a_503_with_a_time_to_wait_holds_requests_back_and_changes_no_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    provider = Provider(lambda name, at: 3.0 if 5 <= at < 15 else None, Outcome.SERVER_ERROR, 503)
    changes: list[str] = []

    def record_change(account: str, before: float, after: float, reason: str) -> None:
        changes.append(reason)

    outcomes = answer_calls(provider, {"a": 1_000}, monkeypatch, on_limit_change=record_change)
    assert set(outcomes) == {Outcome.OK}
    assert provider.n_refused <= MAX_IN_FLIGHT + 10 / 3 + 1
    assert not any("429" in reason for reason in changes)


def test_the_limit_per_minute_of_an_account_holds_for_its_models_together(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = Provider(lambda name, at: None)
    answer_calls(provider, dict.fromkeys("abcd", 200), monkeypatch, RPM, "account")
    last = max(at for _, at in provider.answered)
    assert provider.rate(2, last) == pytest.approx(RPM / 60, rel=0.02)
