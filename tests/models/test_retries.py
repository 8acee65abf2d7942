"""Notices of waits, and suspension of a model whose provider asks for long waits; the tests set the clock."""

from __future__ import annotations

import pytest

from auditor.config import Limits
from auditor.domain import Outcome
from auditor.models.failures import RequestFailure
from auditor.models.retries import ModelSuspension, format_duration, pause_notice


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.5, "0.5 s"), (120, "120 s"), (600, "10 min"), (86_400, "24 h"), (259_200, "3 days"), (1e9, "11,574 days")],
)
def test_durations_are_formatted(seconds: float, words: str) -> None:
    assert format_duration(seconds) == words


def test_a_wait_past_midnight_names_its_day() -> None:
    assert "Waiting until 20" in pause_notice("openai", 86_400, 86_400)


def test_a_model_is_suspended_only_while_its_provider_insists() -> None:
    now = 0.0
    suspension = ModelSuspension(Limits(max_retry_wait_s=120), clock=lambda: now)
    too_long = RequestFailure(Outcome.RATE_LIMITED, True, False, "slow", 429, 3600.0)
    suspension.record_response(too_long)
    suspension.record_response(too_long)  # of a request that went out at the same time
    assert suspension.reason is None
    now = 120.0
    suspension.record_response(RequestFailure(Outcome.RATE_LIMITED, True, False, "slow", 429, 60.0))
    assert suspension.reason is None
    suspension.record_response(too_long)
    assert "asks to wait 60 min" in (suspension.reason or "")
    now = 120.0 + 3600.0
    assert suspension.reason is None
    suspension.record_response(too_long)
    assert suspension.reason is not None
    suspension.record_response(None)
    assert suspension.reason is None
