"""What REPAIR makes of agreement with people, on the same pairs before and after."""

from __future__ import annotations

import numpy as np
import pytest

from auditor.metrics.logic import JudgeAnswers
from auditor.metrics.ranking import repair
from auditor.metrics.repair_effect import measure_repair_effect

N = 5
TRUTH = (np.arange(N)[:, None] > np.arange(N)[None, :]).astype(float)
ASKED = np.ones((2, N, N), dtype=bool)


def answered(preferences: np.ndarray) -> JudgeAnswers:
    return JudgeAnswers(preferences, 1 - preferences, ASKED, np.empty((0, 0)), TRUTH)


def test_a_judge_that_draws_lots_gains_nothing() -> None:
    rng = np.random.default_rng(0)
    given = [answered(rng.choice([0.0, 0.5, 1.0], (N, N))) for _ in range(400)]
    found = measure_repair_effect(given, [repair(one.preferences).preferences for one in given])
    assert found.before.n == found.after.n == found.gain.n
    assert found.n_tied > 0
    assert found.before.value == pytest.approx(0.5, abs=0.03)
    assert found.gain.value == pytest.approx((found.after.value or 0) - (found.before.value or 0))
    assert found.gain.value == pytest.approx(0, abs=0.03)
    assert found.gain.ci_low is not None
    assert found.gain.ci_high is not None
    assert found.gain.ci_low < 0 < found.gain.ci_high


def test_one_reversal_is_mended() -> None:
    said = TRUTH.copy()
    said[0, 4], said[4, 0] = 1.0, 0.0
    found = measure_repair_effect([answered(said)], [repair(said).preferences])
    follows = repair(said).preferences
    n = int((~np.isnan(follows)).sum())  # items of equal rate are tied by the ranking
    assert (found.before.n, found.after.n, found.n_tied) == (n, n, N * (N - 1) - n)
    assert found.before.value == pytest.approx(1 - 2 / n)  # the two questions on the pair that was reversed
    tied = measure_repair_effect([answered(np.full((N, N), 0.5))], [np.full((N, N), np.nan)])
    assert (tied.before.value, tied.gain.value, tied.n_tied) == (None, None, 20)
