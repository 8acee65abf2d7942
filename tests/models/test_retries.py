"""Notices of waits, and suspension of a model whose provider asks for long waits; the tests set the clock."""

from __future__ import annotations

import random
import time

import pytest

from auditor.config import LimitsSection
from auditor.domain import Answer, Outcome
from auditor.models.failures import RequestFailure
from auditor.models.retries import (
    MAX_BACKOFF_S,
    MAX_PAUSE_JITTER,
    CallProgress,
    ModelSuspension,
    backoff_delay,
    format_duration,
    no_retry_reason,
    pause_delay,
    pause_notice,
    suspension_notice,
)
from tests.support.virtual_time import Clock

DEADLINE_S = 300.0


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.5, "0.5 s"), (120, "120 s"), (600, "10 min"), (86_400, "24 h"), (259_200, "3 days"), (1e9, "11,574 days")],
)
def test_durations_are_formatted(seconds: float, words: str) -> None:
    assert format_duration(seconds) == words


def test_a_wait_past_midnight_names_its_day() -> None:
    assert "Waiting until 20" in pause_notice("openai", 86_400, 86_400)


def refusal(retry_after_s: float | None = None) -> RequestFailure:
    return RequestFailure(Outcome.RATE_LIMITED, True, False, "slow", 429, retry_after_s)


def test_a_model_is_suspended_only_while_its_provider_insists() -> None:
    now = 0.0
    suspension = ModelSuspension(LimitsSection(max_retry_wait_s=120), DEADLINE_S, clock=lambda: now)
    suspension.record_response(refusal(3600.0))
    suspension.record_response(refusal(3600.0))  # of a request that went out at the same time
    assert suspension.cause is None
    now = 120.0
    suspension.record_response(refusal(60.0))
    assert suspension.cause is None
    suspension.record_response(refusal(3600.0))
    assert "asks to wait 60 min" in (suspension.cause or "")
    now = 120.0 + 3600.0
    assert suspension.cause is None
    suspension.record_response(refusal(3600.0))
    assert suspension.cause is not None
    suspension.record_response(None)
    assert suspension.cause is None


@pytest.mark.parametrize("retry_after_s", [None, 2.0])
def test_a_model_that_is_always_refused_is_suspended_after_a_calls_time(retry_after_s: float | None) -> None:
    clock, notices = Clock(), list[str]()

    def notify(cause: str, wait_s: float) -> None:
        notices.append(suspension_notice("m", cause, wait_s))

    suspension = ModelSuspension(LimitsSection(), DEADLINE_S, notify, clock)
    for times in ((0.0, 150.0, 299.0), (300.0, 450.0, 599.0)):
        suspension.record_response(None)
        for clock.now in times:
            suspension.record_response(refusal(retry_after_s))
            assert suspension.cause is None
    for clock.now in (600.0, 601.0):  # 601.0: of a request that was in flight
        suspension.record_response(refusal(retry_after_s))
        assert suspension.cause == "the provider has refused every request for 5 min (status 429)"
    assert notices == [
        "'m' gets no requests for 5 min: the provider has refused every request for 5 min (status 429). Its calls fail "
        "meanwhile as rate_limited. To request them later, run the same command again."
    ]
    clock.now = 901.0
    assert suspension.cause is None
    suspension.record_response(refusal(retry_after_s))  # the next call finds out whether it is still refused
    assert suspension.cause is not None
    assert len(notices) == 2


def test_refusals_between_which_a_model_was_not_asked_do_not_suspend_it() -> None:
    clock = Clock()
    suspension = ModelSuspension(LimitsSection(), DEADLINE_S, clock=clock)
    for clock.now in (0.0, 1000.0, 2000.0, 2299.0):
        suspension.record_response(refusal())
        assert suspension.cause is None
    clock.now = 2300.0
    suspension.record_response(refusal())
    assert suspension.cause is not None


def test_refusals_of_the_account_count_for_a_model_that_was_refused_too() -> None:
    clock = Clock()
    refused, idle = (ModelSuspension(LimitsSection(), DEADLINE_S, clock=clock) for _ in range(2))
    refused.record_response(refusal())
    for clock.now in range(0, 301, 60):
        for suspension in (refused, idle):
            suspension.record_account_refusal(refusal())
    assert refused.cause is not None
    assert idle.cause is None


@pytest.mark.parametrize(
    ("failure", "wait_s", "n_tries", "reason"),
    [
        (refusal(), 20.0, 0, None), (refusal(20.0), 20.0, 99, ""), (refusal(20.0), 20.0, 5, None),
        (refusal(), 400.0, 0, "the provider refused it until limits.deadline_s = 300 s was over"),
        (refusal(100.0), 400.0, 0,
         "the provider asks to wait 100 s, and limits.deadline_s = 300 s is too short for it"),
        (refusal(3600.0), 3600.0, 0, "the provider asks to wait 60 min, longer than limits.max_retry_wait_s = 120 s"),
        (RequestFailure(Outcome.SERVER_ERROR, True, False, "busy", 503), 400.0, 0, ""),
        (RequestFailure(Outcome.SERVER_ERROR, True, False, "busy", 503), 4.0, 5, None),
        (RequestFailure(Outcome.SERVER_ERROR, True, False, "busy", 503), 4.0, 6, ""),
    ],
)  # fmt: skip
def test_a_failed_request_is_repeated_within_the_limits(
    failure: RequestFailure, wait_s: float, n_tries: int, reason: str | None
) -> None:
    progress = CallProgress([], [], deadline=time.monotonic() + DEADLINE_S, n_tries=n_tries)
    assert no_retry_reason(failure, wait_s, progress, LimitsSection(max_attempts=6), DEADLINE_S) == reason


def test_a_refusal_counts_as_an_attempt_only_if_nothing_is_repeated() -> None:
    progress = CallProgress([], [], deadline=time.monotonic() + DEADLINE_S)
    for outcome in (Outcome.RATE_LIMITED, Outcome.SERVER_ERROR, Outcome.RATE_LIMITED):
        progress.count_try(Answer("key", outcome))
    assert progress.n_tries == 1
    assert no_retry_reason(refusal(), 0.0, progress, LimitsSection(max_attempts=1), DEADLINE_S) == ""


def test_a_pause_without_a_time_to_wait_is_announced_as_a_refusal() -> None:
    assert pause_notice("openai", 8.0, 0.0).endswith(": openai refuses requests (status 429).")


def test_backoff_doubles_with_equal_jitter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("auditor.models.retries.INITIAL_BACKOFF_S", 1.0)
    rng = random.Random(1)
    for n in range(1, 12):
        waits, longest = [backoff_delay(n, rng) for _ in range(500)], min(MAX_BACKOFF_S, 2.0 ** (n - 1))
        assert longest / 2 <= min(waits) <= max(waits) <= longest
    assert max(waits) > 50


def test_a_pause_is_as_long_as_the_provider_asks_or_the_backoff_both_with_jitter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("auditor.models.retries.INITIAL_BACKOFF_S", 1.0)
    rng = random.Random(1)
    asked = [pause_delay(n, 20.0, rng) for n in range(1, 12) for _ in range(50)]
    assert 20.0 <= min(asked) < max(asked) <= 20.0 * (1 + MAX_PAUSE_JITTER)
    assert len(set(asked)) > 500
    for n, longest in ((1, 1.0), (4, 8.0), (6, 32.0), (7, MAX_BACKOFF_S), (2_000, MAX_BACKOFF_S)):
        pauses = [pause_delay(n, 0.0, rng) for _ in range(500)]
        assert 0 <= min(pauses) < 0.05 * longest < 0.95 * longest < max(pauses) <= longest
    # A provider that asks for a too short wait again and again is not believed.
    assert [pause_delay(n, 0.02, rng) > 1.0 for n in (1, 2, 3, 6, 7, 11)] == [False, False, False, True, True, True]
