from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from auditor.metrics.resampling import bootstrap_mean, bootstrap_share, paired_difference, ratio_interval


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


@pytest.mark.parametrize(("hits", "least", "most"), [(2, 0.5, 1.0), (0, 0.0, 0.5), (1, 0.1, 0.9)])
def test_a_share_that_is_the_same_in_all_questions_has_wilson_s_width(hits: int, least: float, most: float) -> None:
    share = bootstrap_share([hits] * 5, [2] * 5)
    assert share.ci_low is not None
    assert share.ci_high is not None
    assert least <= share.ci_low <= (share.value or 0) <= share.ci_high <= most
    assert share.ci_high - share.ci_low > 0.4


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


def test_the_paired_test_is_the_exact_one() -> None:
    rng = np.random.default_rng(3)
    a = rng.normal(size=10)
    b = a + rng.normal(0.4, 0.6, 10)
    exact = stats.permutation_test(
        (b - a, np.zeros(10)), lambda x, y: np.mean(x - y), permutation_type="samples", n_resamples=2**10
    )
    assert paired_difference(a, b, flips=40_000).p_value == pytest.approx(exact.pvalue, abs=0.01)


def test_no_difference_is_no_evidence() -> None:
    same = paired_difference([0.1, 0.2, 0.3, 0.4, 0.5], [0.1, 0.2, 0.3, 0.4, 0.5])
    assert (same.value, same.p_value) == (0.0, 1.0)
    assert paired_difference([np.nan], [1.0]).p_value is None


def test_the_paired_test_errs_as_often_as_it_says() -> None:
    rng = np.random.default_rng(4)
    p = [paired_difference(*rng.normal(size=(2, 12)), flips=300, replicates=10, seed=i).p_value for i in range(400)]
    assert np.mean([x is not None and x <= 0.05 for x in p]) == pytest.approx(0.05, abs=0.03)


def test_a_share_over_questions_counts_judgements() -> None:
    share = bootstrap_share([4, 2, 0, 3, 4, 1], [4, 4, 0, 4, 4, 4])
    assert share.value == pytest.approx(14 / 20)
    assert share.n == 20
    assert share.ci_low is not None
    assert share.ci_low < 0.7
    assert bootstrap_share([0], [0]).reason == "no judgement is valid"
    assert bootstrap_share([1], [2]).ci_low is None
    with pytest.raises(ValueError, match="at most"):
        bootstrap_share([3], [2])
