from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from auditor.metrics.resampling import bootstrap_mean, ratio_interval


def test_the_interval_is_scipys() -> None:
    values = np.random.default_rng(0).normal(0.5, 0.2, 60)
    interval = bootstrap_mean(values, replicates=20_000)
    scipy_interval = stats.bootstrap(
        (values,), np.mean, method="percentile", n_resamples=20_000, rng=1
    ).confidence_interval
    assert interval.value == pytest.approx(values.mean())
    assert (interval.ci_low, interval.ci_high) == pytest.approx((scipy_interval.low, scipy_interval.high), abs=0.003)


def test_nominal_intervals_hold_the_truth() -> None:
    rng = np.random.default_rng(1)
    means = [bootstrap_mean(rng.beta(5, 2, 60), replicates=400, seed=i) for i in range(300)]
    held = np.mean([(m.ci_low or 0) <= 5 / 7 <= (m.ci_high or 0) for m in means])
    assert 0.90 <= held <= 0.98


def test_too_few_questions_say_so() -> None:
    assert bootstrap_mean([]).reason == "no question has a value"
    assert bootstrap_mean([np.nan]).value is None
    few = bootstrap_mean([0.2, np.nan, 0.4])
    assert few.value == pytest.approx(0.3)
    assert (few.n, few.ci_low) == (2, None)
    with pytest.raises(ValueError, match="finite"):
        bootstrap_mean([np.inf])


@pytest.mark.parametrize("n", [5, 12])
def test_few_questions_have_an_interval_that_is_wide_enough(n: int) -> None:
    rng = np.random.default_rng(7)
    simulated_scores = [rng.beta(5, 2, n) for _ in range(600)]
    means = [bootstrap_mean(values, bounds=(0.0, 1.0)) for values in simulated_scores]
    student_interval = stats.t.interval(0.95, n - 1, simulated_scores[0].mean(), stats.sem(simulated_scores[0]))
    assert (means[0].ci_low, means[0].ci_high) == pytest.approx(
        (max(0.0, student_interval[0]), min(1.0, student_interval[1]))
    )
    assert 0.925 <= np.mean([(m.ci_low or 0) <= 5 / 7 <= (m.ci_high or 0) for m in means]) <= 0.98


def test_values_without_spread_have_no_interval_but_a_reason() -> None:
    for n in (5, 40):
        same = bootstrap_mean([0.7] * n)
        assert same.value == pytest.approx(0.7)
        assert same.ci_low is None
        assert same.reason == "all questions have the same value: no interval"


@pytest.mark.parametrize("n", [6, 12, 30])
def test_a_share_over_questions_that_hang_together_is_covered(n: int) -> None:
    rng, held = np.random.default_rng(8), []
    for seed in range(400):
        hits = rng.binomial(12, rng.beta(3, 2, n))
        interval = ratio_interval(hits.astype(float), np.full(n, 12.0), replicates=500, seed=seed)
        held.append(interval[0] <= 0.6 <= interval[1])
    assert 0.91 <= np.mean(held) <= 0.99


def test_blocks_change_nothing() -> None:
    values = np.random.default_rng(2).normal(size=3000)
    assert bootstrap_mean(values, replicates=1500) == bootstrap_mean(values, replicates=1500)
