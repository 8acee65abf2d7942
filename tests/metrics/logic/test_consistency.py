"""Consistency of item sets: by hand, by the equations of Aligning with Logic, and planted rates."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations, permutations

import numpy as np
import pytest
from scipy import stats

from auditor.metrics.intervals.items import AVERAGINGS, Averaging
from auditor.metrics.logic.consistency import (
    JudgeAnswers,
    LogicEstimate,
    average_answered_orders,
    commutativity,
    estimate_commutativity,
    estimate_first_position,
    estimate_human_agreement,
    estimate_negation_invariance,
    estimate_self_agreement,
    human_agreement,
    negation_invariance,
    pair_probabilities,
    position_consistency,
    preference_graph,
    self_agreement,
)
from auditor.metrics.logic.transitivity import estimate_transitivity
from tests.support.known import known

N = 12
NO_DECISION = "no decision on a pair that was answered in both orders"
SHARES: list[Callable[[list[JudgeAnswers], Averaging], LogicEstimate]] = [
    estimate_commutativity, estimate_negation_invariance, estimate_self_agreement, estimate_human_agreement,
    estimate_first_position,
]  # fmt: skip
NAN = math.nan


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


def test_a_larger_set_counts_for_more_only_where_cases_are_pooled() -> None:
    rng = np.random.default_rng(1)
    small, large = judge(rng, n=5), judge(rng, noise=0.4, n=20)
    of_small, of_large = commutativity(small.preferences), commutativity(large.preferences)
    sets = named([small, large])
    instances, pooled = (estimate_commutativity(sets, averaged) for averaged in AVERAGINGS)
    assert instances.value == pytest.approx((known(of_small.value) + known(of_large.value)) / 2, abs=1e-12)
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
            assert (figure.value, figure.coverage, figure.sets, figure.lost) == (None, 0.0, 0, 0)
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


def test_figures_of_both_orders_say_that_pairs_were_asked_about_in_one_order() -> None:
    one = judge(np.random.default_rng(1))
    is_forward = np.triu(np.ones((N, N), dtype=bool), 1)
    answers = one._replace(asked=one.asked & is_forward, preferences=np.where(is_forward, one.preferences, np.nan))
    for figure in (
        estimate_commutativity([answers], "pooled"),
        estimate_negation_invariance([answers], "pooled", calibrated=True),
        estimate_human_agreement([answers], "pooled", calibrated=True),
    ):
        assert (figure.value, figure.lost, figure.reason) == (None, 0, "no pair was asked about in both orders")


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


@pytest.mark.parametrize("n_sets", [6, 12])
def test_whole_sets_with_all_their_wordings_are_what_the_interval_is_over(n_sets: int) -> None:
    population, n_runs = wordings(np.random.default_rng(1), 1000, 1), 60
    samples = [wordings(np.random.default_rng(100 + seed), n_sets, 3) for seed in range(n_runs)]
    for averaged in AVERAGINGS:
        truth = known(estimate_commutativity(population, averaged).value)
        held, held_by_pairs = 0, 0
        for sample in samples:
            figure = estimate_commutativity(sample, averaged)
            assert figure.value is not None
            held += known(figure.ci_low) <= truth <= known(figure.ci_high)
            n_pairs = 3 * n_sets * N * (N - 1) // 2
            half_width = 1.96 * (figure.value * (1 - figure.value) / n_pairs) ** 0.5
            held_by_pairs += abs(figure.value - truth) <= half_width
        assert stats.beta.ppf(0.999, held + 1, n_runs - held + 1e-9) > 0.92
        assert held / n_runs > 0.88
        assert held_by_pairs / n_runs < 0.85  # an interval over pairs is too short


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(ValueError, match=r"\(2, 3\)"):
        commutativity(np.ones((2, 3)))
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        commutativity([[0, 2], [0, 0]])
    with pytest.raises(ValueError, match="one shape"):
        negation_invariance(np.ones((2, 2)), np.ones((3, 3)))
    with pytest.raises(ValueError, match="one shape"):
        human_agreement(np.ones((2, 2)), np.ones((3, 3)))
    with pytest.raises(ValueError, match="repeats"):
        self_agreement([1.0, 0.0])


def test_raw_answers_fall_back_on_the_other_order_and_calibrated_ones_need_both() -> None:
    # 0-1: first order says 0, the other says 1. 0-2: only the other order, says 2. 1-2: both say 1.
    values = [[9, 1, NAN], [1, 9, 1], [1, 0, 9]]
    np.fill_diagonal(array := np.array(values), NAN)
    np.testing.assert_array_equal(pair_probabilities(array), [[NAN, 1, 0], [0, NAN, 1], [1, 0, NAN]])
    np.testing.assert_array_equal(pair_probabilities(array, True), [[NAN, 0.5, NAN], [0.5, NAN, 1], [NAN, 0, NAN]])
    np.testing.assert_array_equal(average_answered_orders(array), [[NAN, 0.5, 0], [0.5, NAN, 1], [1, 0, NAN]])


def test_a_judge_that_names_the_first_item_decides_nothing_calibrated_though_orders_are_missing() -> None:
    """A single order has the preference for the position, so it is no calibrated answer."""
    rng = np.random.default_rng(3)
    first = np.where(rng.random((6, 6)) < 0.3, NAN, 1.0)
    both = np.triu(~np.isnan(first) & ~np.isnan(first.T), 1)
    assert 0 < both.sum() < 15
    asked = np.stack([np.ones((6, 6), dtype=bool)] * 2)
    by_rank = np.triu(np.ones((6, 6)))
    answers = JudgeAnswers(first, first, asked, np.empty((0, 0)), by_rank)
    for estimate in (estimate_negation_invariance, estimate_human_agreement):
        share = estimate([answers], "pooled", calibrated=True)
        assert (share.value, share.n, share.ties) == (None, 0, both.sum())
        assert share.lost == 15 - both.sum()
    assert estimate_transitivity([answers], 3, calibrated=True).n_decided == 0


def test_probabilities_are_decisions_above_one_half() -> None:
    array = np.array([[0, 0.1 + 0.4, 0.51], [0, 0, 0.2], [0, 0, 0]])
    assert preference_graph(array).tolist() == [[False, False, True], [False, False, False], [False, True, False]]


def test_complete_binary_answers_give_the_papers_equations() -> None:
    """Equations 2 and 3 of Aligning with Logic, and pairwise accuracy, for answers without ties or failures."""
    rng = np.random.default_rng(5)
    n = 9
    asked, negated = rng.integers(0, 2, (2, n, n)).astype(float)
    people = rng.permutation(n)
    by_people = (people[:, None] > people[None, :]).astype(float)
    # F(i, j) names the winner: i where entry (i, j) is 1.
    comm = [(asked[i, j] == 1) == (asked[j, i] == 0) for i, j in combinations(range(n), 2)]
    neg = [asked[i, j] != negated[i, j] for i, j in permutations(range(n), 2)]
    right = [(asked[i, j] == 1) == (people[i] > people[j]) for i, j in combinations(range(n), 2)]
    for counts, expected in (
        (commutativity(asked), comm),
        (negation_invariance(asked, negated), neg),
        (human_agreement(asked, by_people), right),
    ):
        assert counts.value == pytest.approx(np.mean(expected), abs=1e-12)
        assert (counts.n, counts.ties, counts.lost) == (len(expected), 0, 0)


def test_commutativity_leaves_ties_and_failures_out() -> None:
    # 0-1 both 0: kept. 0-2 first shown wins both times: not. 0-3 two ties, 1-2 tie and a win: ties. Rest failed.
    values = [[0, 1, 1, 0.5], [0, 0, 0.5, NAN], [1, 1, 0, NAN], [0.5, 1, NAN, 0]]
    counts = commutativity(values)
    assert (counts.value, counts.n, counts.ties, counts.lost) == (0.5, 2, 2, 2)
    assert known(counts.by_item).tolist() == [[1, 2], [1, 1], [0, 1], [0, 0]]


def test_position_consistency_counts_ties_as_answers() -> None:
    """The table of the test above: 0-1 and the two ties are equal answers, a tie and a win are not."""
    values = [[0, 1, 1, 0.5], [0, 0, 0.5, NAN], [1, 1, 0, NAN], [0.5, 1, NAN, 0]]
    counts = position_consistency(values)
    assert (counts.value, counts.n, counts.ties, counts.lost) == (0.5, 4, 0, 2)
    assert known(counts.by_item).tolist() == [[2, 3], [1, 2], [0, 2], [1, 1]]
    # As in published tables: 235 of 311 decided pairs, 5 double ties, and 39 - 5 pairs with one tie.
    pairs = [(1.0, 0.0)] * 235 + [(1.0, 1.0)] * 76 + [(0.5, 0.5)] * 5 + [(0.5, 1.0)] * 34
    n_hits = [0, 0]
    n_cases = [0, 0]
    for forward, backward in pairs:
        for i, count in enumerate((commutativity, position_consistency)):
            entry = count([[NAN, forward], [backward, NAN]])
            n_hits[i] += int(entry.hits)
            n_cases[i] += entry.n
    assert (n_hits, n_cases) == ([235, 240], [311, 350])


def test_negation_counts_reversed_answers() -> None:
    # (0,1) reversed, (0,2) the same, (1,0) two ties, (1,2) failed, (2,0) reversed, (2,1) tie against a win.
    values = np.array([[0, 1, 1], [0.5, 0, NAN], [0, 0.5, 0]])
    negated = np.array([[0, 0, 1], [0.5, 0, 1], [1, 1, 0]])
    counts = negation_invariance(values, negated)
    assert (counts.value, counts.n, counts.ties, counts.lost) == (2 / 3, 3, 2, 1)
    # Both orders averaged: pair 0-1 is 0.75 against 0.25, reversed; 0-2 has 1 against 0.5, a tie; 1-2 has one order.
    calibrated = negation_invariance(values, negated, calibrated=True)
    assert (calibrated.value, calibrated.n, calibrated.ties, calibrated.lost) == (1.0, 1, 1, 1)


def test_planted_faults_come_back() -> None:
    """A judge that names the first item in 20% of questions, and overlooks the negation in 30%."""
    rng = np.random.default_rng(4)
    n, biased, deaf = 200, 0.2, 0.3
    truth = (np.arange(n)[:, None] < np.arange(n)[None, :]).astype(float)
    asked = np.where(rng.random((n, n)) < biased, 1.0, truth)
    negated = np.where(rng.random((n, n)) < deaf, truth, 1 - truth)
    # In a pair only the order that shows the worse item first can go wrong.
    assert commutativity(asked).value == pytest.approx(1 - biased, abs=0.01)
    assert negation_invariance(truth, negated).value == pytest.approx(1 - deaf, abs=0.01)
    assert commutativity(truth).value == negation_invariance(truth, 1 - truth).value == 1.0


def test_human_agreement_is_over_pairs_that_people_and_the_judge_decided() -> None:
    people = np.array([[NAN, 1, 0.5, 0], [NAN] * 4, [NAN, 1, NAN, 1], [NAN] * 4])
    judge = np.array([[0, 1, 1, 1], [0, 0, 0.5, 0], [0, 0.5, 0, NAN], [0, 0, NAN, 0]])
    counts = human_agreement(judge, people)
    assert (counts.value, counts.n, counts.ties, counts.lost) == (0.5, 2, 1, 1)


def test_self_agreement_is_the_mean_share_of_the_majority_of_decisions() -> None:
    # 3/4, and 2/2 with a tie left out; one valid answer alone is lost, and one decision with a tie is tied.
    samples = np.array([[1, 1, 0, 1], [1, 1, 0.5, NAN], [1, NAN, NAN, NAN], [0.5, 0.5, 0, NAN]])
    counts = self_agreement(samples)
    assert (counts.value, counts.n, counts.ties, counts.lost) == (0.875, 2, 1, 1)
    assert self_agreement(np.full((2, 3), NAN)).value is None
