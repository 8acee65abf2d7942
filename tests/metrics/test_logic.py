"""Pooled figures: planted rates come back within their intervals, as often as the intervals promise."""

from __future__ import annotations

import numpy as np
import pytest

from auditor.metrics.logic import (
    JudgeAnswers,
    pooled_commutativity,
    pooled_human_agreement,
    pooled_negation_invariance,
    pooled_self_agreement,
    pooled_transitivity,
)
from auditor.metrics.preference import transitivity

N = 12


def judge(rng: np.random.Generator, *, noise: float = 0.0, first: float = 0.0, deaf: float = 0.0) -> JudgeAnswers:
    """A judge of one order: of its answers a share names the item shown first, whatever it is; a share of the rest is
    reversed; and a share of the negated questions is answered as if they were not."""
    order = rng.permutation(N)
    truth = (order[:, None] > order[None, :]).astype(float)

    def answers(preferred: np.ndarray) -> np.ndarray:
        flipped = np.where(rng.random((N, N)) < noise, 1 - preferred, preferred)
        reply = np.where(rng.random((N, N)) < first, 1.0, flipped)
        np.fill_diagonal(reply, np.nan)
        return reply

    negated = answers(np.where(rng.random((N, N)) < deaf, truth, 1 - truth))
    i, j = np.triu_indices(N, 1)
    repeats = np.where(rng.random((len(i), 10)) < noise, 1 - truth[i, j][:, None], truth[i, j][:, None])
    return JudgeAnswers(answers(truth), negated, np.ones((2, N, N), dtype=bool), repeats, truth)


@pytest.mark.parametrize("sets", [1, 8])
def test_planted_rates_are_covered(sets: int) -> None:
    noise, first, deaf, runs = 0.1, 0.3, 0.25, 120
    p = (1 - first) * (1 - noise) + first  # names the better item where it is shown first
    q = (1 - first) * (1 - noise)  # and where it is shown second
    comm = p * q + (1 - p) * (1 - q)
    right = (p + q) / 2
    # Asked which is less so, the answer is the reverse of the plain one on the same question.
    standard = np.array([p, q])  # P(better item named | shown first, second)
    less = (1 - deaf) * np.array([(1 - first) * noise + first, (1 - first) * noise]) + deaf * np.array([p, q])
    neg = float(np.mean(standard * (1 - less) + (1 - standard) * less))
    covered = np.zeros(3)
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        answer_sets = [judge(rng, noise=noise, first=first, deaf=deaf) for _ in range(sets)]
        rates = (
            pooled_commutativity(answer_sets),
            pooled_negation_invariance(answer_sets),
            pooled_human_agreement(answer_sets),
        )
        for k, (figure, truth) in enumerate(zip(rates, (comm, neg, right), strict=True)):
            assert figure.ci_low is not None
            assert figure.ci_high is not None
            covered[k] += figure.ci_low <= truth <= figure.ci_high
    assert (covered / runs > 0.9).all(), covered / runs


def test_transitivity_under_noise_is_covered_and_its_interval_has_a_width() -> None:
    rng = np.random.default_rng(0)
    many = [judge(rng, noise=0.1) for _ in range(400)]
    truth = pooled_transitivity(many, 3).value
    assert truth is not None
    # Three pairs, each reversed with probability 0.1: a circle takes the middle of the order one of two ways.
    assert truth == pytest.approx(1 - (0.9**2 * 0.1 + 0.9 * 0.1**2), abs=0.01)
    covered = 0
    for one in many[:150]:
        figure = pooled_transitivity([one], 3)
        if figure.value == 1.0:
            assert figure.ci_low is not None
            assert figure.ci_low < 0.8
        assert figure.ci_low is not None
        assert figure.ci_high is not None
        covered += figure.ci_low <= truth <= figure.ci_high
    assert covered / 150 > 0.85


def test_a_judge_that_only_goes_by_place_is_not_of_one_mind() -> None:
    answer_sets = [judge(np.random.default_rng(s), first=1.0) for s in range(10)]
    figure = pooled_transitivity(answer_sets, 3)
    assert figure.value == pytest.approx(0.75, abs=0.05)
    assert pooled_commutativity(answer_sets).value == 0.0
    averaged = pooled_transitivity(answer_sets, 3, calibrated=True)
    assert averaged.value is None
    assert "decided" in str(averaged.reason)


def test_four_items_whose_only_circle_has_all_four() -> None:
    wins = np.full((4, 4), np.nan)
    for i, j in ((0, 1), (1, 2), (2, 3), (3, 0)):
        wins[i, j], wins[j, i] = 1.0, 0.0
    wins[[0, 2, 1, 3], [2, 0, 3, 1]] = 0.5  # a tie closes no circle
    asked = np.stack([~np.isnan(wins)] * 2)
    one = JudgeAnswers(wins, wins, asked, np.empty((0, 0)), wins)
    assert pooled_transitivity([one], 3).value == transitivity(wins, k=3).value == 1.0
    assert pooled_transitivity([one], 4).value == transitivity(wins, k=4).value == 0.0


def test_what_was_not_asked_is_not_lost() -> None:
    rng = np.random.default_rng(1)
    one = judge(rng)
    preferences, asked = one.preferences.copy(), one.asked.copy()
    asked[:, 0, 1] = asked[:, 1, 0] = False
    preferences[0, 1] = preferences[1, 0] = np.nan
    preferences[2, 3] = np.nan  # asked, but not answered
    figure = pooled_commutativity([JudgeAnswers(preferences, one.negated, asked, one.samples, one.human_preferences)])
    assert (figure.n, figure.lost, figure.value) == (N * (N - 1) // 2 - 2, 1, 1.0)


def test_nothing_to_count_has_a_reason() -> None:
    none, asked = np.full((4, 4), np.nan), np.zeros((2, 4, 4), dtype=bool)
    empty = JudgeAnswers(none, none, asked, np.empty((0, 0)), np.eye(4))
    for figure in (
        pooled_commutativity([empty]),
        pooled_negation_invariance([empty]),
        pooled_self_agreement([empty]),
        pooled_transitivity([empty], 3),
    ):
        assert figure.value is None
        assert figure.reason


def test_unanimous_sets_still_have_a_width() -> None:
    answer_sets = [judge(np.random.default_rng(s)) for s in range(6)]
    for figure in (
        pooled_transitivity(answer_sets, 3),
        pooled_commutativity(answer_sets),
        pooled_negation_invariance(answer_sets),
    ):
        assert figure.value == figure.ci_high == 1.0
        assert figure.ci_low is not None
        assert 0.5 < figure.ci_low < 0.7  # 1 of 6 sets could well have been otherwise


def test_what_was_not_answered_does_not_make_transitive() -> None:
    """Of answers drawn by lot a quarter of the triples go in circles, however few of them came back."""
    rng = np.random.default_rng(3)
    answer_sets = []
    for _ in range(60):
        upper = np.triu(rng.integers(0, 2, (N, N)).astype(float), 1)
        wins = np.where(np.tri(N, k=-1) == 1, 1 - upper.T, upper)
        lost = np.triu(rng.random((N, N)) < 0.6, 1)
        wins[lost | lost.T] = np.nan
        answer_sets.append(JudgeAnswers(wins, wins, np.ones((2, N, N), dtype=bool), np.empty((0, 0)), wins))
    figure = pooled_transitivity(answer_sets, 3)
    assert figure.value == pytest.approx(0.75, abs=0.03)
    one = np.full((N, N), np.nan)
    one[0, 1] = 1.0  # the only answer of all
    single_set = pooled_transitivity([answer_sets[0]._replace(preferences=one)], 3)
    assert (single_set.value, single_set.n) == (None, 0)
    assert "every pair" in str(single_set.reason)


def wordings(rng: np.random.Generator, sets: int, times: int) -> list[JudgeAnswers]:
    """Sets that differ in how noisy the judge is on them; each in some wordings that it answers alike."""
    return [
        judge(rng, noise=noise)._replace(set_name=f"set {i}")
        for i, noise in enumerate(rng.uniform(0.0, 0.4, sets))
        for _ in range(times)
    ]


def test_wordings_of_a_set_are_no_sets_of_their_own() -> None:
    two = wordings(np.random.default_rng(0), 2, 3)
    figures = [
        f(two)
        for f in (pooled_commutativity, pooled_negation_invariance, pooled_self_agreement, pooled_human_agreement)
    ]
    for figure in (*figures, pooled_transitivity(two, 3)):
        assert figure.sets == 2
        assert "sets" not in figure.over
    assert pooled_commutativity([one._replace(set_name="") for one in two]).over == "6 sets"
    # Pairs in three wordings are worth the pairs of one.
    one, three = pooled_commutativity(two[::3]), pooled_commutativity(two)
    assert three.n == 3 * one.n
    assert (three.ci_high or 0) - (three.ci_low or 0) == pytest.approx((one.ci_high or 0) - (one.ci_low or 0), rel=0.2)
    single_wording, repeated_wording = pooled_transitivity(two[:1], 3), pooled_transitivity([two[0]] * 3, 3)
    assert (repeated_wording.ci_low, repeated_wording.ci_high) == pytest.approx(
        (single_wording.ci_low, single_wording.ci_high)
    )


@pytest.mark.parametrize("sets", [6, 8])
def test_whole_sets_with_all_their_wordings_are_what_the_interval_is_over(sets: int) -> None:
    rng = np.random.default_rng(1)
    truth = pooled_commutativity(wordings(rng, 1500, 1)).value
    assert truth is not None
    held = []
    for seed in range(150):
        commutativity = pooled_commutativity(wordings(np.random.default_rng(100 + seed), sets, 3))
        assert commutativity.ci_low is not None
        assert commutativity.ci_high is not None
        assert commutativity.over == f"{sets} sets"
        held.append(commutativity.ci_low <= truth <= commutativity.ci_high)
    assert 0.9 <= np.mean(held) <= 1.0
