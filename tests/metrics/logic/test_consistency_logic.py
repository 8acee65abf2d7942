"""Figures over item sets: planted rates are covered over sets with several wordings, and ties are left out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from auditor.metrics.intervals.items import AVERAGINGS, Averaging
from auditor.metrics.logic.consistency import (
    JudgeAnswers,
    LogicEstimate,
    commutativity,
    estimate_commutativity,
    estimate_first_position,
    estimate_human_agreement,
    estimate_negation_invariance,
    estimate_self_agreement,
)

N = 12
NO_DECISION = "no decision on a pair that was answered in both orders"
SHARES: list[Callable[[list[JudgeAnswers], Averaging], LogicEstimate]] = [
    estimate_commutativity,
    estimate_negation_invariance,
    estimate_self_agreement,
    estimate_human_agreement,
    estimate_first_position,
]


def judge(
    rng: np.random.Generator,
    *,
    noise: float = 0.0,
    first: float = 0.0,
    deaf: float = 0.0,
    ties: float = 0.0,
    n: int = N,
) -> JudgeAnswers:
    """A judge of one order: of its answers a share names the item shown first, whatever it is; a share of the rest is
    reversed; a share of the negated questions is answered as if they were not; and a share is tied."""
    order = rng.permutation(n)
    truth = (order[:, None] > order[None, :]).astype(float)

    def answers(preferred: np.ndarray) -> np.ndarray:
        flipped = np.where(rng.random((n, n)) < noise, 1 - preferred, preferred)
        reply = np.where(rng.random((n, n)) < first, 1.0, flipped)
        reply[rng.random((n, n)) < ties] = 0.5
        np.fill_diagonal(reply, np.nan)
        return reply

    negated = answers(np.where(rng.random((n, n)) < deaf, truth, 1 - truth))
    i, j = np.triu_indices(n, 1)
    repeats = np.where(rng.random((len(i), 10)) < noise, 1 - truth[i, j][:, None], truth[i, j][:, None])
    return JudgeAnswers(answers(truth), negated, np.ones((2, n, n), dtype=bool), repeats, truth)


def named(answer_sets: list[JudgeAnswers]) -> list[JudgeAnswers]:
    return [answers._replace(set_name=f"set {i}") for i, answers in enumerate(answer_sets)]


def test_planted_rates_come_back() -> None:
    noise, first, deaf = 0.1, 0.3, 0.25
    p = (1 - first) * (1 - noise) + first  # names the better item where it is shown first
    q = (1 - first) * (1 - noise)  # and where it is shown second
    # Asked which is less so, the answer is the reverse of the plain one on the same question.
    standard = np.array([p, q])  # P(better item named | shown first, second)
    less = (1 - deaf) * np.array([(1 - first) * noise + first, (1 - first) * noise]) + deaf * np.array([p, q])
    rng = np.random.default_rng(0)
    answer_sets = named([judge(rng, noise=noise, first=first, deaf=deaf, ties=0.2) for _ in range(150)])
    for averaged in AVERAGINGS:
        for figure, truth in (
            (estimate_commutativity(answer_sets, averaged), p * q + (1 - p) * (1 - q)),
            (
                estimate_negation_invariance(answer_sets, averaged),
                np.mean(standard * (1 - less) + (1 - standard) * less),
            ),
            (estimate_human_agreement(answer_sets, averaged), (p + q) / 2),
        ):
            assert figure.value == pytest.approx(truth, abs=0.015)
            assert figure.sets == 150
    comm = estimate_commutativity(answer_sets, "pooled")
    assert comm.coverage == pytest.approx(0.8**2, abs=0.02)
    assert comm.coverage == comm.n / (comm.n + comm.ties)
    # The plain form names the first in half of its unbiased answers; the negated form does, too.
    position = estimate_first_position(answer_sets, "pooled")
    assert position.value == pytest.approx(first + (1 - first) / 2, abs=0.01)


def test_a_larger_set_counts_for_more_only_where_cases_are_pooled() -> None:
    rng = np.random.default_rng(1)
    small, large = judge(rng, n=5), judge(rng, noise=0.4, n=20)
    of_small, of_large = commutativity(small.preferences), commutativity(large.preferences)
    assert of_small.value is not None
    assert of_large.value is not None
    sets = named([small, large])
    instances, pooled = (estimate_commutativity(sets, averaged) for averaged in AVERAGINGS)
    assert instances.value == pytest.approx((of_small.value + of_large.value) / 2, abs=1e-12)
    assert pooled.value == pytest.approx((of_small.hits + of_large.hits) / (of_small.n + of_large.n), abs=1e-12)
    assert (instances.n, pooled.n) == (2, 10 + 190)


def test_a_judge_that_always_ties_has_no_figure_but_a_coverage() -> None:
    sets = [
        answers._replace(preferences=np.full((N, N), 0.5), negated=np.full((N, N), 0.5), samples=np.full((5, 4), 0.5))
        for answers in named([judge(np.random.default_rng(s)) for s in range(6)])
    ]
    for estimate in SHARES:
        for averaged in AVERAGINGS:
            figure = estimate(sets, averaged)
            assert (figure.value, figure.coverage, figure.sets) == (None, 0.0, 0)
            assert figure.ties > 0
            assert figure.reason in (
                "every answered case has a tie",
                "no decision on a pair that was answered in both orders",
            )


def test_what_was_not_asked_is_not_lost() -> None:
    one = judge(np.random.default_rng(1))
    preferences, asked = one.preferences.copy(), one.asked.copy()
    asked[:, 0, 1] = asked[:, 1, 0] = False
    preferences[0, 1] = preferences[1, 0] = np.nan
    preferences[2, 3] = np.nan  # asked, but not answered
    preferences[4, 5] = 0.5
    figure = estimate_commutativity([one._replace(preferences=preferences, asked=asked)], "pooled")
    assert (figure.n, figure.ties, figure.lost, figure.value) == (N * (N - 1) // 2 - 3, 1, 1, 1.0)


def test_nothing_to_count_has_a_reason() -> None:
    none, asked = np.full((4, 4), np.nan), np.zeros((2, 4, 4), dtype=bool)
    empty = JudgeAnswers(none, none, asked, np.empty((0, 0)), np.eye(4))
    for estimate in SHARES:
        figure = estimate([empty], "instances")
        assert (figure.value, figure.coverage, figure.lost) == (None, None, 0)
        assert figure.reason in ("not asked", NO_DECISION)


def test_position_bias_is_measured_on_pairs_answered_in_both_orders() -> None:
    """The better item was shown first in most pairs, and only a few of them were asked in the other order."""
    n = 6
    preferences = np.full((n, n), np.nan)
    preferences[np.triu_indices(n, 1)] = 1.0
    asked = np.stack([~np.isnan(preferences)] * 2)
    one = JudgeAnswers(preferences, np.full((n, n), np.nan), asked, np.empty((0, 0)), preferences)
    assert estimate_first_position([one], "pooled").value is None
    preferences[1, 0], preferences[2, 0], preferences[3, 0] = 0.0, 1.0, 0.5
    figure = estimate_first_position([one._replace(asked=np.ones((2, n, n), dtype=bool))], "pooled")
    # 0-1: once first, once second. 0-2: twice first. 0-3: once first, and a tie.
    assert (figure.value, figure.n, figure.ties) == (4 / 5, 5, 1)


def test_few_sets_have_an_interval_over_their_items() -> None:
    sets = named([judge(np.random.default_rng(s), noise=0.2) for s in range(6)])
    for estimate in (estimate_commutativity, estimate_negation_invariance, estimate_human_agreement):
        over_sets, over_items = estimate(sets, "pooled"), estimate(sets[:4], "pooled")
        assert over_sets.resampled == ("set",)
        assert over_sets.reason is None
        assert over_items.resampled == ("item",)
        assert over_items.generalizes_to == "other items like these"
        assert over_items.reason == (
            "an interval needs at least 5 item sets, but there are 4 item sets: the interval is over other items of "
            "these sets"
        )
    repeats = estimate_self_agreement(sets[:4], "pooled")
    assert (repeats.ci_low, repeats.resampled) == (None, ())


def wordings(rng: np.random.Generator, sets: int, times: int) -> list[JudgeAnswers]:
    """Sets that differ in how noisy the judge is on them; each in some wordings that it answers alike."""
    return [
        judge(rng, noise=noise)._replace(set_name=f"set {i}")
        for i, noise in enumerate(rng.uniform(0.0, 0.4, sets))
        for _ in range(times)
    ]


def test_wordings_of_a_set_are_no_sets_of_their_own() -> None:
    two = wordings(np.random.default_rng(0), 2, 3)
    for estimate in SHARES:
        figure = estimate(two, "instances")
        assert (figure.sets, figure.n) == (2, 2)
        assert figure.resampled != ("set",)
    assert estimate_commutativity([one._replace(set_name="") for one in two], "pooled").resampled == ("set",)


@pytest.mark.parametrize("n_sets", [6, 20])
@pytest.mark.parametrize("averaged", AVERAGINGS)
def test_whole_sets_with_all_their_wordings_are_what_the_interval_is_over(n_sets: int, averaged: Averaging) -> None:
    rng = np.random.default_rng(1)
    truth = estimate_commutativity(wordings(rng, 1500, 1), averaged).value
    assert truth is not None
    n_runs, held, held_by_pairs = 150, 0, 0
    for seed in range(n_runs):
        figure = estimate_commutativity(wordings(np.random.default_rng(100 + seed), n_sets, 3), averaged)
        assert figure.value is not None
        assert figure.ci_low is not None
        assert figure.ci_high is not None
        held += figure.ci_low <= truth <= figure.ci_high
        n_pairs = 3 * n_sets * N * (N - 1) // 2
        half_width = 1.96 * (figure.value * (1 - figure.value) / n_pairs) ** 0.5
        held_by_pairs += abs(figure.value - truth) <= half_width
    assert stats.beta.ppf(0.999, held + 1, n_runs - held + 1e-9) > 0.92
    assert held / n_runs > 0.88
    assert held_by_pairs / n_runs < 0.85  # an interval over pairs is too short
