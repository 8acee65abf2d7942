"""The measures of one item set: by hand, by the equations of Aligning with Logic, and with ties left out."""

from __future__ import annotations

import math
from itertools import combinations, permutations

import numpy as np
import pytest

from auditor.metrics.logic.consistency import (
    commutativity,
    human_agreement,
    negation_invariance,
    pair_probabilities,
    position_consistency,
    preference_graph,
    self_agreement,
)

NAN = math.nan


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


def test_raw_answers_fall_back_on_the_other_order_and_calibrated_ones_average() -> None:
    # 0-1: first order says 0, the other says 1. 0-2: only the other order, says 2. 1-2: both say 1.
    values = [[9, 1, NAN], [1, 9, 1], [1, 0, 9]]
    np.fill_diagonal(array := np.array(values), NAN)
    np.testing.assert_array_equal(pair_probabilities(array), [[NAN, 1, 0], [0, NAN, 1], [1, 0, NAN]])
    np.testing.assert_array_equal(pair_probabilities(array, True), [[NAN, 0.5, 0], [0.5, NAN, 1], [1, 0, NAN]])


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
    assert counts.by_item is not None
    assert counts.by_item.tolist() == [[1, 2], [1, 1], [0, 1], [0, 0]]


def test_position_consistency_counts_ties_as_answers() -> None:
    """The table of the test above: 0-1 and the two ties are equal answers, a tie and a win are not."""
    values = [[0, 1, 1, 0.5], [0, 0, 0.5, NAN], [1, 1, 0, NAN], [0.5, 1, NAN, 0]]
    counts = position_consistency(values)
    assert (counts.value, counts.n, counts.ties, counts.lost) == (0.5, 4, 0, 2)
    assert counts.by_item is not None
    assert counts.by_item.tolist() == [[2, 3], [1, 2], [0, 2], [1, 1]]
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
    # Both orders averaged: pair 0-1 is 0.75 against 0.25, reversed; 0-2 has 1 against 0.5, a tie; 1-2 0.5, a tie.
    calibrated = negation_invariance(values, negated, calibrated=True)
    assert (calibrated.value, calibrated.n, calibrated.ties, calibrated.lost) == (1.0, 1, 2, 0)


def test_a_judge_that_always_ties_is_neither_consistent_nor_inconsistent() -> None:
    ties = np.full((5, 5), 0.5)
    truth = (np.arange(5)[:, None] < np.arange(5)[None, :]).astype(float)
    for counts in (
        commutativity(ties),
        negation_invariance(ties, ties),
        human_agreement(ties, truth),
        self_agreement(ties),
    ):
        assert (counts.value, counts.n, counts.lost) == (None, 0, 0)
        assert counts.ties > 0


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
