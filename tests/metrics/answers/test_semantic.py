"""Consistency of answers in meaning: worked cases, the papers' divergence, and the limits."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable
from itertools import combinations
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from auditor.metrics.answers.semantic import (
    DIVERGENCE_WEIGHT,
    MAX_COUNTED_DISTANCE,
    consistency_of,
    consistency_score,
    cosine_similarities,
    edit_distance,
    entropy_of_similarities,
    lexical_divergence,
    pairwise_consistency,
    parascore,
    semantic_graph_entropies,
    semantic_graph_entropy,
    shuffled_null,
)
from tests.support.known import known

Variant = Literal["sage", "sge"]
BLEU: Any = "bleu"
VARIANTS: tuple[Variant, ...] = ("sage", "sge")


def transcription(rows: NDArray[np.float64], variant: str, alpha: float) -> float:
    """The formulas, one symbol at a time."""
    n = len(rows)
    s = [[float(a @ b) / math.sqrt(float(a @ a) * float(b @ b)) for b in rows] for a in rows]
    e = s if variant == "sage" else [[1 - x for x in row] for row in s]
    f = [sum(max(e[i][j], 0) for j in range(n) if j != i) for i in range(n)]
    power = alpha if variant == "sage" else 1.0
    p = [x**power / sum(y**power for y in f) for x in f]
    entropy = -sum(x * math.log(x) for x in p if x > 0)
    mean = sum(e[i][j] for i, j in combinations(range(n), 2)) / (n * (n - 1) / 2)
    value = float(mean * entropy / math.log(n))
    return value if variant == "sage" else 1 - value


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(2, 8), st.sampled_from(VARIANTS), st.sampled_from([1.0, 10.0]))
def test_equals_the_formulas_in_any_order(seed: int, n: int, variant: Variant, alpha: float) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.normal(0.3, 1.0, (n, 6))
    value = semantic_graph_entropy(rows, variant, alpha)
    if (cosine_similarities(rows) > 0).sum() > n:  # else the formulas divide by 0
        assert value == pytest.approx(transcription(rows, variant, alpha), abs=1e-9)
    assert semantic_graph_entropy(rng.permutation(rows), variant, alpha) == pytest.approx(value, abs=1e-9)
    assert semantic_graph_entropy(rows * rng.uniform(0.1, 9, (n, 1)), variant, alpha) == pytest.approx(value, abs=1e-9)


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=9), st.integers(2, 9), st.sampled_from(VARIANTS))
def test_identical_answers_score_one(row: list[float], n: int, variant: Variant) -> None:
    if np.linalg.norm(row) > 1e-6:
        assert semantic_graph_entropy([row] * n, variant) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("n", [2, 3, 5, 8])
def test_orthogonal_answers_score_zero(n: int) -> None:
    assert semantic_graph_entropy(np.eye(n)) == 0.0
    assert semantic_graph_entropy(np.eye(n), "sge") == pytest.approx(0.0, abs=1e-12)


def test_a_worked_case() -> None:
    # Two equal answers and an orthogonal one: s = 1, 0, 0; f = 1, 1, 0; p = 1/2, 1/2, 0; H = log 2; mean 1/3.
    rows = [[1, 0], [1, 0], [0, 1]]
    assert semantic_graph_entropy(rows) == pytest.approx(math.log(2) / math.log(3) / 3)
    # d = 0, 1, 1; f = 1, 1, 2; p = 1/4, 1/4, 1/2; H = 3/2 log 2; mean 2/3.
    assert semantic_graph_entropy(rows, "sge") == pytest.approx(1 - math.log(2) / math.log(3))


@pytest.mark.parametrize(("has_diagonal", "printed", "with_minus"), [(True, 2.25, -0.25), (False, 2.0, 0.0)])
def test_equations_6_and_7_do_not_give_one_to_identical_answers(
    has_diagonal: bool, printed: float, with_minus: float
) -> None:
    """SaGE = 1 - I / log n with I = lambda * sum of p log p, which is printed without a minus."""
    n = 5
    similarities = np.ones((n, n))
    p = similarities.sum(axis=1) / similarities.sum()
    scale = (similarities.sum() - (0 if has_diagonal else n)) / (n * (n - 1))
    entropy = scale * (p * np.log(p)).sum()
    assert (1 - entropy / np.log(n), 1 + entropy / np.log(n)) == pytest.approx((printed, with_minus))
    assert semantic_graph_entropy(np.ones((n, 2)), "sage", 1.0) == pytest.approx(1.0)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("alpha", [1.0, 10.0])
def test_planted_answers_have_the_values_of_the_formulas(variant: Variant, alpha: float) -> None:
    identical, unrelated, halves = np.eye(4)[[0, 0, 0, 0]], np.eye(4), np.eye(4)[[0, 0, 1, 1]]
    assert semantic_graph_entropy(identical, variant, alpha) == pytest.approx(1.0)
    assert semantic_graph_entropy(unrelated, variant, alpha) == pytest.approx(0.0, abs=1e-12)
    # Two pairs of six have cosine 1, the others 0, and all nodes have equal weight: H = log n, and the mean is 1/3.
    assert semantic_graph_entropy(halves, variant, alpha) == pytest.approx(1 / 3)


@given(st.integers(0, 2**32 - 1), st.integers(2, 8))
def test_equals_the_released_program_of_sage(seed: int, n: int) -> None:
    rows = np.random.default_rng(seed).normal(0.3, 1.0, (n, 6))
    cosines = cosine_similarities(rows)
    edges = [(i, j, float(cosines[i, j])) for i, j in combinations(range(n), 2)]
    # The program starts at 1e-20, multiplies by 10 before the power, and divides entropy in bits by its maximum.
    weights = [(10 * (1e-20 + sum(max(s, 0) for i, j, s in edges if node in (i, j)))) ** 10.0 for node in range(n)]
    p = [weight / sum(weights) for weight in weights]
    entropy = -sum(x * math.log2(x) for x in p if x > 0) / math.log2(n)
    expected = sum(s for _, _, s in edges) / len(edges) * entropy
    assert semantic_graph_entropy(rows) == pytest.approx(expected, abs=1e-12)


def test_opposite_answers_score_below_zero() -> None:
    assert semantic_graph_entropy([[1, 0], [-1, 0]]) == -1.0


def test_large_powers_do_not_underflow() -> None:
    rows = np.eye(3) + 1e-40
    assert 0 <= semantic_graph_entropy(rows, alpha=50.0) < 1e-30
    assert entropy_of_similarities([[1, 1e-9], [1e-9, 1]]) == pytest.approx(1e-9)


@pytest.mark.parametrize("variant", VARIANTS)
def test_fewer_than_two_answers_have_no_score(variant: Variant) -> None:
    for rows in (np.empty((0, 4)), np.ones((1, 4)), [[1.0, 0.0], [0.0, 0.0]], [[1.0, 0.0], [np.nan, 0.0]]):
        assert math.isnan(semantic_graph_entropy(rows, variant))


@pytest.mark.parametrize("variant", VARIANTS)
def test_many_at_once_equal_one_at_a_time(variant: Variant) -> None:
    rows = np.random.default_rng(1).normal(0.2, 1, (23, 5, 7))
    rows[3, 1] = np.nan
    rows[4, :4] = np.nan
    one_by_one = [semantic_graph_entropy(group[~np.isnan(group).any(axis=1)], variant) for group in rows]
    np.testing.assert_allclose(semantic_graph_entropies(rows, variant, block=4), one_by_one, atol=1e-12)
    assert math.isnan(one_by_one[4])
    assert semantic_graph_entropies(np.empty((0, 5, 7))).shape == (0,)


def test_a_mix_of_two_kinds_lies_between_them() -> None:
    rots, answers = np.random.default_rng(2).normal(1, 1, (2, 5, 9))
    mixed = 0.2 * cosine_similarities(rots) + 0.8 * cosine_similarities(answers)
    ends = sorted(semantic_graph_entropy(rows) for rows in (rots, answers))
    assert ends[0] < entropy_of_similarities(mixed) < ends[1]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: semantic_graph_entropy([1.0, 2.0]), "shape"),
        (lambda: semantic_graph_entropy(np.eye(2), BLEU), "'bleu'"),
        (lambda: semantic_graph_entropy(np.eye(2), alpha=0), "alpha"),
        (lambda: semantic_graph_entropies(np.eye(2)), "shape"),
        (lambda: entropy_of_similarities(np.ones((2, 3))), "shape"),
    ],
)
def test_wrong_arguments_are_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_ten_thousand_questions_are_scored_as_each_alone() -> None:
    rows = np.random.default_rng(0).random((10_000, 5, 384), dtype=np.float32)
    values = semantic_graph_entropies(rows)
    assert np.isfinite(values).all()
    np.testing.assert_allclose(values[::1000], [semantic_graph_entropy(row) for row in rows[::1000]], atol=1e-6)


def test_null_is_far_below_the_score_of_answers_that_belong_together() -> None:
    rng = np.random.default_rng(3)
    rows = rng.normal(0, 1, (60, 1, 16)) + rng.normal(0, 0.2, (60, 5, 16))
    null = shuffled_null(rows, seed=5)
    assert null == shuffled_null(rows, seed=5)
    assert known(null.low) <= known(null.mean) <= known(null.high) < 0.2 < 0.9 < semantic_graph_entropies(rows).mean()


def test_null_never_puts_two_answers_of_one_question_together() -> None:
    # Each question has a direction of its own, so that any two answers of one question would show.
    rows = np.repeat(np.eye(6)[:, None, :], 5, axis=1)
    assert shuffled_null(rows, seed=1).high == 0.0
    rows[0, :2] = rows[3, 1:] = np.nan
    assert shuffled_null(rows, seed=1).high == 0.0


def test_null_of_questions_that_lack_answers_has_groups_of_their_sizes() -> None:
    """With alpha = 10, two unrelated answers have a higher score than five: a model that refuses is no more alike."""
    rng = np.random.default_rng(0)
    rows = 0.6 * np.eye(32)[0] + 0.8 * rng.normal(size=(200, 5, 32)) / np.sqrt(32)
    for question in rows[::2]:
        question[rng.permutation(5)[:3]] = np.nan
    score = semantic_graph_entropies(rows).mean()
    null = shuffled_null(rows, seed=1)
    assert known(null.mean) == pytest.approx(score, abs=0.02)
    assert known(null.low) <= score <= known(null.high)
    by_length = shuffled_null(rows, seed=1, lengths=np.tile([1.0, 2.0], 100))
    assert known(by_length.mean) == pytest.approx(score, abs=0.02)


def test_null_of_many_questions_with_a_missing_answer_needs_little_memory() -> None:
    rows = np.random.default_rng(0).normal(size=(3_000, 5, 4))
    rows[0, 0] = np.nan
    tracemalloc.start()
    try:
        null = shuffled_null(rows, shuffles=1)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert null.mean is not None
    assert peak < 20e6  # 3,000 x 3,000 random numbers are 72 MB


def test_matched_null_mixes_only_answers_of_like_length() -> None:
    # Short answers all point one way, long ones another: the matched null sees that likeness is due to length.
    lengths = np.repeat([10.0, 90.0], 20)
    rows = np.repeat(np.where(lengths[:, None] < 50, [1.0, 0.0], [0.0, 1.0])[:, None, :], 4, axis=1)
    shuffled = np.random.default_rng(0).permutation(40)
    assert shuffled_null(rows[shuffled], lengths=lengths[shuffled], strata=2).mean == pytest.approx(1.0)
    plain = known(shuffled_null(rows[shuffled]).mean)
    assert plain < 0.6


def test_null_of_too_few_questions_or_of_one_answer_a_question_says_why_it_is_missing() -> None:
    """The mean of no score is not a number that could be published; a question's other answers were not usable."""
    single_answers = np.full((6, 4, 3), np.nan)
    single_answers[:, 0] = 1.0
    for rows, reason in (
        (single_answers, "no group of shuffled answers has two of them"),
        (np.ones((3, 5, 2)), "too few questions to shuffle: 3, with 5 answers each"),
    ):
        null = shuffled_null(rows)
        assert (null.mean, null.low, null.high, null.reason) == (None, None, None, reason)


def test_failed_judgements_stay_out_of_the_consistency_score() -> None:
    decisions = [True, 1, False, None, math.nan]
    assert consistency_score(decisions) == pytest.approx(2 / 3)
    result = consistency_of(decisions)
    assert (result.n, result.lost) == (3, 2)
    assert math.isnan(consistency_score([None, math.nan]))
    with pytest.raises(ValueError, match=r"0\.5"):
        consistency_score([0.5])


def test_pairwise_consistency_is_the_mean_over_pairs_in_order() -> None:
    asked: list[tuple[str, str]] = []

    def same_start(left: str, right: str) -> float:
        asked.append((left, right))
        return float(left[0] == right[0])

    # ab-ac 1, ab-bc 0, ac-bc 0.
    assert pairwise_consistency(["ab", "ac", "bc"], same_start) == pytest.approx(1 / 3)
    assert asked == [("ab", "ac"), ("ab", "bc"), ("ac", "bc")]
    assert math.isnan(pairwise_consistency(["ab"], same_start))


@pytest.mark.parametrize(
    ("left", "right", "distance"),
    [("kitten", "sitting", 3 / 7), ("", "", 0.0), ("", "abc", 1.0), ("May I?", " may  i ", 0.0), ("abc", "xyz", 1.0)],
)
def test_edit_distance_is_levenshteins_over_the_longer_text(left: str, right: str, distance: float) -> None:
    assert edit_distance(left, right) == pytest.approx(distance)


@given(st.text("abé中", max_size=8), st.text("abé中", max_size=8))
def test_edit_distance_is_symmetric_and_zero_only_for_copies(a: str, b: str) -> None:
    assert edit_distance(a, b) == edit_distance(b, a)
    assert 0 <= edit_distance(a, b) <= 1
    assert (edit_distance(a, b) == 0) is (a == b)


def test_divergence_is_the_papers() -> None:
    # gamma = 0.35: -1 for a copy, 0 at gamma / (gamma + 1), gamma from gamma on.
    assert lexical_divergence(0.0) == -1
    assert lexical_divergence(MAX_COUNTED_DISTANCE / (MAX_COUNTED_DISTANCE + 1)) == pytest.approx(0)
    assert lexical_divergence(MAX_COUNTED_DISTANCE) == pytest.approx(MAX_COUNTED_DISTANCE)
    assert lexical_divergence(0.9) == MAX_COUNTED_DISTANCE


def test_more_divergence_of_paraphrases_never_scores_less() -> None:
    scores = [parascore(0.9, d / 100) for d in range(101)]
    assert scores == sorted(scores)
    assert scores[0] == pytest.approx(0.9 - DIVERGENCE_WEIGHT)
    assert scores[-1] == pytest.approx(0.9 + DIVERGENCE_WEIGHT * MAX_COUNTED_DISTANCE)
