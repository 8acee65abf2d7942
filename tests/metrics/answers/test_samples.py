"""Diversity and consistency of samples, and scores from log-probabilities stretched to the whole scale."""

from __future__ import annotations

import math
import statistics
from itertools import combinations, product
from math import prod

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats
from scipy.spatial.distance import pdist

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
from auditor.metrics.answers.samples import (
    MAX_PARTNERS,
    influences,
    min_max_scale,
    score_variance,
    self_consistencies,
    self_consistency,
    sign_agreement,
    similarity_to_other_cells,
    straddles_zero,
)
from auditor.metrics.intervals.jackknife_interval import BOUNDARY_REASON
from tests.support.known import known

POINTS = np.linspace(-1, 1, 10)
COUNTRY, TOPIC = np.repeat(np.arange(6), 6), np.tile(np.arange(6), 6)
NAN = float("nan")


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
    assert known(ratio.ci_low) > 0
    assert ratio.p_value is None
    collapsed = crossed_jackknife(VARIANCE_RATIO, np.zeros(36), people, COUNTRY, TOPIC)
    assert (collapsed.value, collapsed.ci_low, collapsed.reason) == (0, None, BOUNDARY_REASON)


def test_ends_become_the_ends_of_the_scale_and_order_and_r_stay() -> None:
    scaled = min_max_scale(np.array([-3.0, np.nan, 1.0, -1.0])).tolist()
    assert (scaled[0], scaled[2]) == (-1.0, 1.0)
    assert scaled == pytest.approx([-1.0, np.nan, 1.0, 0.0], nan_ok=True)


@pytest.mark.parametrize("raw", [[], [1.0], [2.0, 2.0, np.nan], [np.nan, np.nan]])
def test_what_has_no_range_has_no_score(raw: list[float]) -> None:
    assert np.isnan(min_max_scale(raw)).all()


def test_it_does_not_matter_where_the_scale_lies() -> None:
    raw = np.random.default_rng(0).normal(size=50)
    assert min_max_scale(7 * raw - 3) == pytest.approx(min_max_scale(raw))


@given(st.integers(0, 2**32 - 1), st.integers(2, 9), st.floats(-2, 2))
def test_is_the_mean_over_scipys_cosines(seed: int, k: int, shift: float) -> None:
    rows = np.random.default_rng(seed).normal(shift, 1, (k, 6))
    want = float(np.mean(1 - pdist(rows, "cosine")))
    assert self_consistency(rows) == pytest.approx(want, abs=1e-12)
    assert self_consistency(rows[::-1]) == pytest.approx(want, abs=1e-12)


def test_sample_consistency_by_hand() -> None:
    # Cosines of (1, 0), (3, 4), (0, 2): 3/5, 0, 4/5.
    assert self_consistency([[1, 0], [3, 4], [0, 2]]) == pytest.approx(7 / 15, abs=1e-15)
    assert self_consistency(np.eye(4)) == pytest.approx(0, abs=1e-15)
    assert self_consistency([[1, 0], [-2, 0]]) == -1


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=8), st.integers(2, 9))
def test_equal_samples_score_one(row: list[float], k: int) -> None:
    if any(row):
        value = self_consistency([row] * k)
        assert value <= 1
        assert value == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_the_length_of_vectors_does_not_matter(scale: float) -> None:
    assert self_consistency(np.array([[1, 0], [3, 4]]) * scale) == pytest.approx(0.6, abs=1e-15)


@pytest.mark.parametrize("rows", [np.empty((0, 3)), np.ones((1, 3)), [[1, 2], [0, 0]], [[1, 2], [NAN, 2]]])
def test_fewer_than_two_samples_have_no_score(rows: object) -> None:
    assert math.isnan(self_consistency(rows))  # type: ignore[arg-type]


def test_many_at_once_equal_one_at_a_time() -> None:
    rows = np.random.default_rng(1).normal(0.3, 1, (23, 5, 7)).astype(np.float32)
    rows[3, 1] = np.nan
    rows[4, :4] = 0
    rows[5, 1:, 2] = np.nan
    want = [self_consistency(group[~np.isnan(group).any(axis=1)]) for group in rows]
    np.testing.assert_allclose(self_consistencies(rows, block=4), want, atol=1e-12)
    assert math.isnan(want[4])
    assert self_consistencies(np.empty((0, 5, 7))).shape == (0,)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: self_consistency([1.0, 2.0]), "shape"),
        (lambda: self_consistency([[1.0, math.inf], [1.0, 2.0]]), "infinity"),
        (lambda: self_consistencies(np.eye(2)), "shape"),
        (lambda: score_variance(0.5), "shape"),
        (lambda: sign_agreement([0.5, math.inf]), "finite"),
        (lambda: min_max_scale([1.0, math.inf]), "finite"),
    ],
)
def test_wrong_arguments_are_named(call: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()  # type: ignore[operator]


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=9))
def test_spread_of_scores_against_the_standard_library(scores: list[float]) -> None:
    assert float(score_variance([*scores, NAN])) == pytest.approx(statistics.variance(scores), abs=1e-12)
    signs = [(s > 0) - (s < 0) for s in scores]
    assert float(sign_agreement([NAN, *scores])) == signs.count(statistics.mode(signs)) / len(signs)
    assert bool(straddles_zero(scores)) == any(a * b == -1 for a, b in combinations(signs, 2))


def test_spread_of_many_cells() -> None:
    scores = [[0.5, -0.5, 0.0, NAN], [0.1, 0.2, 0.3, 0.4], [0.3, NAN, NAN, NAN], [NAN] * 4, [-0.2, 0.0, 0.0, 0.0]]
    # Cell 1: mean 0, squares 1/2 over 2. Cell 2: mean 1/4, 1/20 over 3. Cell 5: mean -1/20, 3/100 over 3.
    np.testing.assert_allclose(score_variance(scores), [1 / 4, 1 / 60, NAN, NAN, 1 / 100], atol=1e-15)
    np.testing.assert_allclose(sign_agreement(scores), [1 / 3, 1, NAN, NAN, 3 / 4])
    np.testing.assert_array_equal(straddles_zero(scores), [1, 0, NAN, NAN, 0])


def test_texts_are_compared_with_others_of_about_their_length_about_another_country() -> None:
    """Three countries and two topics; the text of the last cell is too long to be compared."""
    vectors = np.eye(6)[[0, 0, 1, 0, 1, 0]]
    countries, topics = ["A", "A", "B", "B", "C", "C"], ["t", "u", "t", "u", "t", "u"]
    lengths = [100, 100, 109, 100, 95, 200]
    rng = np.random.default_rng(0)
    other = similarity_to_other_cells(vectors, countries, topics, lengths, same_topic=False, rng=rng)
    assert other.tolist() == pytest.approx([1, 0, 0, 0.5, 0, math.nan], nan_ok=True)
    same = similarity_to_other_cells(vectors, countries, topics, lengths, same_topic=True, rng=rng)
    assert same.tolist() == pytest.approx([0, 1, 0, 1, 0, math.nan], nan_ok=True)


def test_influences_have_the_mean_of_the_similarities_and_twice_their_spread() -> None:
    values = [0.2, 0.4, math.nan, 0.9]
    assert np.nanmean(influences(values)) == pytest.approx(0.5)
    assert influences(values)[0] == pytest.approx(2 * 0.2 - 0.5)
    assert influences(values, ["t", "t", "u", "u"])[:2].tolist() == pytest.approx([0.1, 0.5])


def test_the_cost_is_linear_and_draws_are_repeatable() -> None:
    rng = np.random.default_rng(1)
    n = 2_000
    vectors = rng.normal(size=(n, 8))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    countries, topics, lengths = rng.integers(0, 40, n), rng.integers(0, 50, n), np.full(n, 700)
    first, second = (
        similarity_to_other_cells(vectors, countries, topics, lengths, same_topic=False, rng=np.random.default_rng(3))
        for _ in range(2)
    )
    assert first.tolist() == second.tolist()
    # The standard deviation of a mean of ten cosines in eight dimensions: all have MAX_PARTNERS partners.
    assert np.std(first) == pytest.approx((1 / 8 / MAX_PARTNERS) ** 0.5, rel=0.1)
