"""Subsets of a set that are checked for cycles, with orders of pairs that are drawn for each set and subset."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from auditor.metrics.logic.consistency import pair_probabilities, preference_graph
from auditor.metrics.logic.transitivity import check_subsets
from tests.metrics.logic.test_transitivity_transitive_subsets import NAN, by_networkx, four_cycle, tournament


def test_ties_differ_from_missing_answers() -> None:
    """Items 0, 1, 2 are decided, the pair (0, 3) is tied, (1, 3) was not answered, and (2, 3) not asked."""
    values = np.full((4, 4), NAN)
    for winner, loser in ((0, 1), (1, 2), (0, 2)):
        values[winner, loser], values[loser, winner] = 1.0, 0.0
    values[0, 3] = values[3, 0] = 0.5
    asked = np.ones((4, 4), dtype=bool)
    asked[2, 3] = asked[3, 2] = False
    checked = check_subsets(values, asked, 3, 1000, 0, set_name="s")
    assert checked.subsets.tolist() == [[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3]]
    assert checked.is_asked.tolist() == [True, True, False, False]
    assert checked.is_answered.tolist() == checked.is_decided[:, 0].tolist() == [True, False, False, False]
    assert checked.share_decided[:, 0].tolist() == pytest.approx([1, 1 / 3, 1 / 3, 1 / 3])
    assert checked.pairs == (3, 1, 1)


def test_checked_subsets_match_networkx() -> None:
    values = tournament(8, 5, unknown=0.2, ties=0.1)
    checked = check_subsets(values, np.ones((8, 8), dtype=bool), 4, 1000, 0, set_name="s", calibrated=True)
    assert checked.exhaustive
    assert checked.is_acyclic.mean() == by_networkx(preference_graph(values, calibrated=True), 4)
    answers = pair_probabilities(values, calibrated=True)[np.triu_indices(8, 1)]
    assert (checked.pairs.n_decided, checked.pairs.n_tied) == (
        int((np.abs(answers - 0.5) > 0).sum()),
        int((answers == 0.5).sum()),
    )
    assert checked.pairs.n_lost == int(np.isnan(answers).sum())


def test_orders_and_subsets_are_drawn_for_each_set() -> None:
    """A judge that always names the item shown first: its preferences are the drawn orders."""
    first = np.ones((20, 20))
    asked = np.ones((20, 20), dtype=bool)
    checked = {name: check_subsets(first, asked, 5, 100, 7, set_name=name) for name in ("a", "b", "c")}
    assert len({entry.subsets.tobytes() for entry in checked.values()}) == 3
    all_triples = [check_subsets(first, asked, 3, 2000, 7, set_name=name) for name in ("a", "b", "c")]
    assert len({entry.is_acyclic.tobytes() for entry in all_triples}) == 3
    repeated_draw = check_subsets(first, asked, 5, 100, 7, set_name="a")
    np.testing.assert_array_equal(repeated_draw.subsets, checked["a"].subsets)
    np.testing.assert_array_equal(repeated_draw.is_acyclic, checked["a"].is_acyclic)
    other_seed = check_subsets(first, asked, 5, 100, 8, set_name="a")
    assert other_seed.subsets.tobytes() != repeated_draw.subsets.tobytes()


def test_orders_are_drawn_as_often_as_there_is_room() -> None:
    first, asked = np.ones((6, 6)), np.ones((6, 6), dtype=bool)
    many, few = (check_subsets(first, asked, 5, n, 0, set_name="s") for n in (1000, 7))
    assert (many.is_acyclic.shape, few.is_acyclic.shape) == ((6, 166), (6, 2))
    alike = check_subsets(np.triu(first, 1), asked, 5, 1000, 0, set_name="s")  # both orders agree: nothing to draw
    sampled = check_subsets(np.ones((20, 20)), np.ones((20, 20), dtype=bool), 5, 5, 0, set_name="s")
    assert (alike.is_acyclic.shape, sampled.is_acyclic.shape) == ((6, 1), (5, 1))
    assert (many.all_orders, alike.all_orders, sampled.all_orders) == (False, True, False)


def test_all_subsets_and_orders_are_checked_where_that_is_cheaper_than_drawing() -> None:
    """A set of 13 items has 1,287 subsets of 5: checking them takes a quarter of the time of drawing 1,000."""
    asked = np.ones((13, 13), dtype=bool)
    values = np.triu(tournament(13, 3), 1)
    values += np.tril(1 - values.T, -1)
    assert check_subsets(values, asked, 5, 1000, 0, set_name="s", calibrated=True).exhaustive
    assert not check_subsets(tournament(30, 3), np.ones((30, 30), dtype=bool), 5, 1000, 0, set_name="s").exhaustive
    values[0, 1] = values[1, 0] = 1.0  # the one pair whose decision depends on the order
    checked = [check_subsets(values, asked, 5, 1000, seed, set_name="s") for seed in (0, 1)]
    assert all(entry.all_orders and entry.exhaustive for entry in checked)
    np.testing.assert_array_equal(checked[0].is_acyclic, checked[1].is_acyclic)
    both = [values.copy(), values.copy()]
    both[0][1, 0], both[1][0, 1] = 0.0, 0.0
    shares = [by_networkx(preference_graph(entry, calibrated=True), 5) for entry in both]
    assert checked[0].is_acyclic.mean() == pytest.approx(np.mean(shares))


def test_the_mean_over_draws_is_that_over_all_orders() -> None:
    """One triple with every combination of orders, of which some have no answer and some a tie."""
    rng = np.random.default_rng(4)
    asked = np.ones((3, 3), dtype=bool)
    for _ in range(20):
        values = rng.choice([0.0, 0.5, 1.0, NAN], p=[0.4, 0.1, 0.4, 0.1], size=(3, 3))
        shares = []
        for swaps in product((False, True), repeat=3):
            drawn = np.full((3, 3), NAN)
            for (i, j), is_swapped in zip(combinations(range(3), 2), swaps, strict=True):
                order, other = ((j, i), (i, j)) if is_swapped else ((i, j), (j, i))
                order = other if np.isnan(values[order]) else order
                drawn[order] = values[order]
            shares.append(by_networkx(preference_graph(drawn), 3))
        checked = check_subsets(values, asked, 3, 4000, 0, set_name="s")
        if checked.pairs.n_decided:
            assert checked.all_orders
            assert checked.is_acyclic.mean() == pytest.approx(np.mean(shares))


def test_wrong_sizes_are_named() -> None:
    with pytest.raises(ValueError, match="max_subsets at least 1"):
        check_subsets(four_cycle(), np.ones((4, 4), dtype=bool), 3, 0, 0, set_name="s")


def test_subsets_that_no_set_can_have_need_no_memory() -> None:
    for k in (5, 10**5, 10**25):
        checked = check_subsets(four_cycle(), np.ones((4, 4), dtype=bool), k, 1000, 0, set_name="s")
        assert (len(checked.subsets), len(checked.is_acyclic), checked.pairs.n_decided) == (0, 0, 4)
