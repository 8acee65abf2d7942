"""How long requests wait after failures and refusals."""

from __future__ import annotations

import random

import pytest

from auditor.models.retries import MAX_BACKOFF_S, MAX_PAUSE_JITTER, backoff_delay, pause_delay


def test_backoff_doubles_with_equal_jitter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("auditor.models.retries.INITIAL_BACKOFF_S", 1.0)
    rng = random.Random(1)
    waits = [[backoff_delay(n, rng) for _ in range(500)] for n in range(1, 12)]
    assert all(
        min(MAX_BACKOFF_S, 2 ** (n - 1)) / 2 <= w <= min(MAX_BACKOFF_S, 2 ** (n - 1))
        for n, ws in enumerate(waits, 1)
        for w in ws
    )
    assert max(waits[-1]) > 50


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
