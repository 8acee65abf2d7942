"""Diversity of answers: unbiased variances, equal answers, and entropies of samples of one size."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
import pytest
from scipy import stats

from auditor.metrics import (
    VARIANCE_RATIO,
    answer_entropy,
    crossed_jackknife,
    equal_answers,
    equal_answers_probability,
    rarefied_entropy,
    share_variance,
    variance_of_orders,
)
from auditor.metrics.intervals.jackknife_interval import BOUNDARY_REASON

POINTS = np.linspace(-1, 1, 10)
COUNTRY, TOPIC = np.repeat(np.arange(6), 6), np.tile(np.arange(6), 6)


def test_the_variance_of_counts_is_that_of_the_answers_on_the_unit_scale() -> None:
    answers = np.array([0, 0, 1, 4, 4, 4])
    counts = np.bincount(answers, minlength=5)
    assert share_variance(counts, [0, 1, 2, 3, 4], 6) == pytest.approx(np.var(answers / 4, ddof=1))
    assert share_variance(counts, [0, 1, 2, 3, 4]) == pytest.approx(np.var(answers / 4))
    assert np.isnan(share_variance([1, 0], [0, 1], 1))


def test_the_variance_over_both_orders_is_unbiased() -> None:
    rng = np.random.default_rng(0)
    up, down = rng.dirichlet(np.ones(10), 2)
    expected = share_variance((up + down) / 2, POINTS)
    variances = variance_of_orders(rng.multinomial(4, up, 40_000), rng.multinomial(6, down, 40_000), POINTS)
    assert abs(variances.mean() - expected) < 4 * variances.std() / 40_000**0.5


def test_equal_answers_and_their_probability_among_people() -> None:
    assert equal_answers(np.array([[0, 10], [1, 9], [np.nan, 0]])) == pytest.approx([1, 0, np.nan], nan_ok=True)
    assert equal_answers_probability([0.5, 0.5], 10) == pytest.approx(2 * 0.5**10)


def test_entropies_are_scipys_in_bits() -> None:
    p = np.random.default_rng(1).dirichlet(np.ones(6), 5)
    assert answer_entropy(p) == pytest.approx(stats.entropy(p, base=2, axis=1))
    assert answer_entropy([0, 3, 0]) == 0


def test_the_rarefied_entropy_is_the_mean_over_all_samples_of_this_size() -> None:
    p, m = np.array([0.5, 0.3, 0.2]), 4
    samples = list(product(range(3), repeat=m))
    entropies = answer_entropy([np.bincount(sample, minlength=3) for sample in samples])
    expected = sum(prod(p[list(sample)]) * entropy for sample, entropy in zip(samples, entropies, strict=True))
    assert rarefied_entropy(p, m) == pytest.approx(expected)
    assert rarefied_entropy(p, 1) == pytest.approx(0)
    assert rarefied_entropy(p, 100_000) == pytest.approx(float(answer_entropy(p)), abs=1e-4)


def test_the_variance_ratio_is_one_of_sums_and_a_model_without_variance_has_no_interval() -> None:
    rng = np.random.default_rng(2)
    people, model = rng.uniform(0.05, 0.1, 36), rng.uniform(0.01, 0.05, 36)
    ratio = crossed_jackknife(VARIANCE_RATIO, model, people, COUNTRY, TOPIC)
    assert ratio.value == pytest.approx(model.sum() / people.sum())
    assert ratio.ci_low is not None
    assert ratio.ci_low > 0
    assert ratio.p_value is None
    collapsed = crossed_jackknife(VARIANCE_RATIO, np.zeros(36), people, COUNTRY, TOPIC)
    assert (collapsed.value, collapsed.ci_low, collapsed.reason) == (0, None, BOUNDARY_REASON)
