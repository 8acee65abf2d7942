"""What REPAIR makes of agreement with people, on the same pairs before and after."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from auditor.metrics.logic.consistency import JudgeAnswers
from auditor.metrics.logic.ranking import measure_repair_effect, repair

N = 5
TRUTH = (np.arange(N)[:, None] > np.arange(N)[None, :]).astype(float)
ASKED = np.ones((2, N, N), dtype=bool)


def answered(preferences: np.ndarray) -> JudgeAnswers:
    return JudgeAnswers(preferences, 1 - preferences, ASKED, np.empty((0, 0)), TRUTH)


def test_a_judge_that_draws_lots_gains_nothing() -> None:
    rng = np.random.default_rng(0)
    answer_sets = [answered(rng.choice([0.0, 0.5, 1.0], (N, N))) for _ in range(400)]
    effect = measure_repair_effect(answer_sets, [repair(one.preferences).preferences for one in answer_sets])
    assert effect.before.n == effect.after.n == effect.gain.n
    assert effect.n_tied > 0
    assert effect.before.value == pytest.approx(0.5, abs=0.03)
    assert effect.gain.value == pytest.approx((effect.after.value or 0) - (effect.before.value or 0))
    assert effect.gain.value == pytest.approx(0, abs=0.03)
    assert effect.gain.ci_low is not None
    assert effect.gain.ci_high is not None
    assert effect.gain.ci_low < 0 < effect.gain.ci_high


def test_the_gain_is_over_sets() -> None:
    """By hand: the pooled gain without each set, and Student's quantile."""
    rng = np.random.default_rng(2)
    sets = [answered(np.where(rng.random((N, N)) < 0.3, 1 - TRUTH, TRUTH))._replace(set_name=f"{i}") for i in range(7)]
    repaired = [repair(one.preferences).preferences for one in sets]
    gain = measure_repair_effect(sets, repaired).gain
    counts = []
    for one, ranking in zip(sets, repaired, strict=True):
        decided = ~np.isnan(ranking) & (ranking != 0.5) & ~np.eye(N, dtype=bool)
        before, after = ((values > 0.5) == (TRUTH > 0.5) for values in (one.preferences, ranking))
        counts.append((after[decided].sum() - before[decided].sum(), decided.sum()))
    table = np.array(counts, dtype=float)
    value = table[:, 0].sum() / table[:, 1].sum()
    without = (table[:, 0].sum() - table[:, 0]) / (table[:, 1].sum() - table[:, 1])
    half_width = stats.t.ppf(0.975, 6) * (6 / 7 * ((without - without.mean()) ** 2).sum()) ** 0.5
    assert gain.value == pytest.approx(value, abs=1e-12)
    assert gain.resampled == ("set",)
    assert (gain.ci_low, gain.ci_high) == pytest.approx((value - half_width, value + half_width), abs=1e-9)
    few = measure_repair_effect(sets[:4], repaired[:4]).gain
    assert (few.ci_low, few.reason) == (None, "an interval needs at least 5 item sets, but there are 4 item sets")


def test_one_reversal_is_repaired() -> None:
    preferences = TRUTH.copy()
    preferences[0, 4], preferences[4, 0] = 1.0, 0.0
    effect = measure_repair_effect([answered(preferences)], [repair(preferences).preferences])
    follows = repair(preferences).preferences
    n = int((~np.isnan(follows)).sum())  # items of equal rate are tied by the ranking
    assert (effect.before.n, effect.after.n, effect.n_tied) == (n, n, N * (N - 1) - n)
    assert effect.before.value == pytest.approx(1 - 2 / n)  # the two questions on the pair that was reversed
    tied = measure_repair_effect([answered(np.full((N, N), 0.5))], [np.full((N, N), np.nan)])
    assert (tied.before.value, tied.gain.value, tied.n_tied) == (None, None, 20)
