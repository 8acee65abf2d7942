"""Transitivity of sets and of drawn subsets: against networkx, by hand, and its margin over other draws."""

from __future__ import annotations

import math
import tracemalloc
from itertools import combinations, product
from math import comb

import networkx as nx
import numpy as np
import pytest
from numpy.typing import NDArray

from auditor.metrics.intervals.items import AVERAGINGS, Averaging
from auditor.metrics.logic.consistency import JudgeAnswers, pair_probabilities, preference_graph
from auditor.metrics.logic.transitivity import check_subsets, draw_subsets, estimate_transitivity, transitivity
from tests.support.hang_limit import hang_limit
from tests.support.known import known

Floats = NDArray[np.float64]
NAN = math.nan
N = 12
N_SEEDS = 50


def tournament(n: int, seed: int, unknown: float = 0.0, ties: float = 0.0) -> Floats:
    """Random answers, both orders independent."""
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 2, (n, n)).astype(float)
    values[rng.random((n, n)) < ties] = 0.5
    values[rng.random((n, n)) < unknown] = NAN
    return values


def by_networkx(graph: NDArray[np.bool_], k: int) -> float:
    subsets = list(combinations(range(len(graph)), k))
    digraph = nx.from_numpy_array(graph, create_using=nx.DiGraph)
    acyclic = sum(bool(nx.is_directed_acyclic_graph(digraph.subgraph(s))) for s in subsets)
    return acyclic / len(subsets)


FOUR_CYCLE = np.where(np.roll(np.eye(4), 1, axis=1) == 1, 1.0, NAN)
"""0 > 1 > 2 > 3 > 0 and nothing about 0, 2 and 1, 3."""


def test_a_set_whose_only_cycle_has_four_items() -> None:
    assert transitivity(FOUR_CYCLE, k=3).value == 1.0
    assert transitivity(FOUR_CYCLE, k=4).value == 0.0
    assert transitivity(FOUR_CYCLE, k=4).pairs_answered == 4


@pytest.mark.parametrize("k", [3, 4, 5, 8])
@pytest.mark.parametrize(("unknown", "ties"), [(0, 0), (0.3, 0), (0.6, 0.2), (0, 0.5)])
@pytest.mark.parametrize("calibrated", [False, True])
def test_random_relations_match_networkx(k: int, unknown: float, ties: float, calibrated: bool) -> None:
    for seed in range(3):
        values = tournament(8, seed, unknown, ties)
        transitive_share = transitivity(values, k=k, calibrated=calibrated)
        assert transitive_share.value == by_networkx(preference_graph(values, calibrated), k)
        assert transitive_share.exhaustive
        assert transitive_share.n == math.comb(8, k)
        assert transitive_share.ci_low == transitive_share.ci_high == transitive_share.value


def test_an_order_is_transitive_whatever_the_items_are_called() -> None:
    rank = np.random.default_rng(0).permutation(30)
    values = (rank[:, None] < rank[None, :]).astype(float)
    for k in (3, 5, 29, 30):
        assert transitivity(values, k=k).value == 1.0


def test_a_random_tournament_has_the_known_share() -> None:
    # K! of the 2^(K(K-1)/2) tournaments on K items are orders: 6/8 for 3, 24/64 for 4.
    for k, expected in ((3, 0.75), (4, 0.375)):
        transitive_share = transitivity(tournament(200, 1), k=k, max_subsets=20_000)
        assert transitive_share.value == pytest.approx(expected, abs=0.02)
        assert not transitive_share.exhaustive
        assert known(transitive_share.ci_low) < known(transitive_share.ci_high)


def test_sampled_interval_covers_the_exact_value() -> None:
    values = tournament(14, 3)
    exact = known(transitivity(values, k=4, max_subsets=10_000).value)
    covered = 0
    for seed in range(100):
        transitive_share = transitivity(values, k=4, max_subsets=200, seed=seed)
        covered += known(transitive_share.ci_low) <= exact <= known(transitive_share.ci_high)
    assert covered >= 90
    assert transitivity(values, k=4, max_subsets=200, seed=1) == transitivity(values, k=4, max_subsets=200, seed=1)


def test_drawn_subsets_differ_and_favour_no_item() -> None:
    rng = np.random.default_rng(0)
    rows = draw_subsets(40, 5, 20_000, rng)
    assert len(np.unique(rows, axis=0)) == 20_000
    assert (np.diff(rows, axis=1) > 0).all()
    counts = np.bincount(rows.ravel(), minlength=40)
    assert np.abs(counts - 2500).max() < 5 * math.sqrt(2500)
    assert len(np.unique(draw_subsets(6, 3, 20, rng), axis=0)) == 20


def test_what_cannot_be_measured_says_why() -> None:
    few = transitivity(np.ones((3, 3)), k=4)
    assert (few.value, few.reason) == (None, "3 items have no subset of 4")
    silent = transitivity(np.full((5, 5), NAN), k=3)
    assert (silent.value, silent.reason, silent.pairs) == (None, "no pair has a valid answer", 10)
    assert transitivity(np.empty((0, 0)), k=3).reason == "0 items have no subset of 3"
    assert transitivity(np.full((1, 1), np.nan), k=3).reason == "1 item has no subset of 3"


@pytest.mark.parametrize("k", [5, 100])
def test_a_thousand_items_have_too_many_subsets_to_list_and_take_less_than_500_mb(k: int) -> None:
    values = tournament(1000, 0, unknown=0.1)
    tracemalloc.start()
    with hang_limit():
        transitivity(values, k=k, max_subsets=1000)
    assert tracemalloc.get_traced_memory()[1] < 500e6
    tracemalloc.stop()


def test_wrong_sizes_are_named() -> None:
    with pytest.raises(ValueError, match="k must be at least 3"):
        transitivity(FOUR_CYCLE, k=2)
    with pytest.raises(ValueError, match="max_subsets at least 1"):
        transitivity(FOUR_CYCLE, k=3, max_subsets=0)
    with pytest.raises(ValueError, match=r"\(2, 3\)"):
        transitivity(np.ones((2, 3)))
    with pytest.raises(ValueError, match="k must be at least 3"):
        estimate_transitivity([answered(FOUR_CYCLE)], 2)


def answered(preferences: np.ndarray, name: str = "", asked: np.ndarray | None = None) -> JudgeAnswers:
    """Answers of one judge, all asked unless said otherwise."""
    was_asked = np.ones(preferences.shape, dtype=bool) if asked is None else asked
    return JudgeAnswers(
        preferences, 1 - preferences, np.stack([was_asked] * 2), np.empty((0, 0)), preferences, set_name=name
    )


def preferences_of(wins: list[tuple[int, int]], n: int) -> np.ndarray:
    """Preferences of (winner, loser) in both orders; nan for all other pairs."""
    values = np.full((n, n), np.nan)
    for winner, loser in wins:
        values[winner, loser], values[loser, winner] = 1.0, 0.0
    return values


def random_answers(rng: np.random.Generator, n: int = N) -> np.ndarray:
    upper = np.triu(rng.integers(0, 2, (n, n)).astype(float), 1)
    return np.where(np.tri(n, k=-1) == 1, 1 - upper.T, upper)


def test_a_set_that_is_one_cycle_of_five_has_a_figure() -> None:
    """Figure 2(d) of the paper: only 5 of 10 pairs are compared, and they are a cycle."""
    five_cycle = preferences_of([(i, (i + 1) % 5) for i in range(5)], 5)
    one = answered(five_cycle, asked=~np.isnan(five_cycle))
    graph = nx.DiGraph([(i, (i + 1) % 5) for i in range(5)])
    for k, is_acyclic in ((5, 0.0), (4, 1.0), (3, 1.0)):
        figures = estimate_transitivity([one], k)
        for partial in figures.partial.values():
            assert (partial.value, partial.pairs_present, partial.answered_subsets) == (is_acyclic, 0.5, 0.0)
        assert figures.complete["pooled"].value is None
        assert "decision on every pair" in str(figures.complete["pooled"].reason)
        assert (figures.n_decided, figures.n_tied, figures.n_lost) == (5, 0, 0)
    assert not nx.is_directed_acyclic_graph(graph)
    assert all(nx.is_directed_acyclic_graph(graph.subgraph(set(range(5)) - {left})) for left in range(5))


def test_the_partial_figure_is_that_of_the_paper_for_one_set() -> None:
    rng = np.random.default_rng(2)
    wins = random_answers(rng, 9)
    wins[np.triu(rng.random((9, 9)) < 0.4, 1)] = np.nan
    wins[np.isnan(wins).T] = np.nan
    for k in (3, 4, 5):
        figure = estimate_transitivity([answered(wins)], k, calibrated=True).partial["pooled"]
        assert figure.value == transitivity(wins, k, calibrated=True).value


def test_instances_are_the_mean_over_sets() -> None:
    small, large = preferences_of([(0, 1), (1, 2), (2, 0)], 3), random_answers(np.random.default_rng(0))
    figures = estimate_transitivity([answered(small, "small"), answered(large, "large")], 3)
    of_large = transitivity(large, 3)
    assert figures.complete["instances"].value == pytest.approx((0.0 + known(of_large.value)) / 2, abs=1e-12)
    n = of_large.n
    assert figures.complete["pooled"].value == pytest.approx(known(of_large.value) * n / (n + 1), abs=1e-12)
    assert (figures.complete["instances"].n, figures.complete["pooled"].n) == (2, n + 1)


def test_a_tie_makes_a_subset_partial() -> None:
    values = preferences_of([(0, 1), (1, 2), (2, 3), (3, 0)], 4)
    values[[0, 2, 1, 3], [2, 0, 3, 1]] = 0.5
    of_three, of_four = (estimate_transitivity([answered(values)], k) for k in (3, 4))
    assert (of_four.partial["pooled"].value, of_three.partial["pooled"].value) == (0.0, 1.0)
    assert (of_four.complete["pooled"].value, of_four.complete["pooled"].ties) == (None, 1)
    assert of_four.partial["pooled"].answered_subsets == 1.0
    assert (of_four.n_decided, of_four.n_tied) == (4, 2)


def test_what_was_not_answered_does_not_make_transitive() -> None:
    """Of answers drawn by lot a quarter of the triples go in circles, however few of them came back."""
    rng = np.random.default_rng(3)
    answer_sets = []
    for _ in range(60):
        wins = random_answers(rng)
        lost = np.triu(rng.random((N, N)) < 0.6, 1)
        wins[lost | lost.T] = np.nan
        answer_sets.append(answered(wins))
    figures = estimate_transitivity(answer_sets, 3)
    assert figures.complete["pooled"].value == pytest.approx(0.75, abs=0.03)
    assert figures.complete["pooled"].lost > 0
    partial = figures.partial["pooled"]
    assert known(partial.value) > 0.95
    assert partial.pairs_present == pytest.approx(0.4, abs=0.02)


def test_a_judge_that_only_goes_by_place_is_not_transitive() -> None:
    answer_sets = [answered(np.ones((N, N)), f"set {i}") for i in range(10)]
    figures = estimate_transitivity(answer_sets, 3)
    assert figures.complete["pooled"].value == pytest.approx(0.75, abs=0.05)
    averaged = estimate_transitivity(answer_sets, 3, calibrated=True)
    assert averaged.complete["pooled"].value is None
    assert (averaged.n_decided, averaged.n_tied) == (0, 10 * N * (N - 1) // 2)


def test_why_there_is_no_figure() -> None:
    too_small, undecided = answered(np.triu(np.ones((4, 4)), 1)), answered(np.full((6, 6), 0.5))
    unanswered = answered(np.full((6, 6), np.nan))
    for sets, of_complete, of_partial in (
        ([too_small], "the largest set has 4 items, fewer than K = 5", "the largest set has 4 items, fewer than K = 5"),
        ([too_small, unanswered], "no set has 5 items with a decision on every pair", "no pair is decided"),
        ([undecided], "no set has 5 items with a decision on every pair", "no pair is decided"),
    ):
        figures = estimate_transitivity(sets, 5)
        for averaged in AVERAGINGS:
            assert figures.complete[averaged].reason == of_complete
            assert figures.partial[averaged].reason == of_partial


def test_sampled_subsets_have_a_margin() -> None:
    rng = np.random.default_rng(5)
    answer_sets = [answered(random_answers(rng), f"set {i}") for i in range(6)]
    assert estimate_transitivity(answer_sets, 4).margin["pooled"] == 0.0
    sampled = estimate_transitivity(answer_sets, 4, max_subsets=100)
    assert sampled.complete["pooled"].n == 600
    assert 0.03 < sampled.margin["pooled"] < 0.05


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


def test_wrong_sizes_of_checked_subsets_are_named() -> None:
    with pytest.raises(ValueError, match="max_subsets at least 1"):
        check_subsets(FOUR_CYCLE, np.ones((4, 4), dtype=bool), 3, 0, 0, set_name="s")


def test_subsets_that_no_set_can_have_need_no_memory() -> None:
    for k in (5, 10**5, 10**25):
        checked = check_subsets(FOUR_CYCLE, np.ones((4, 4), dtype=bool), k, 1000, 0, set_name="s")
        assert (len(checked.subsets), len(checked.is_acyclic), checked.pairs.n_decided) == (0, 0, 4)


def biased_answers(rng: np.random.Generator, n: int) -> NDArray[np.float64]:
    """A judge that mostly prefers the item shown first, so that many answers depend on the order."""
    strength = rng.normal(0, 1, n)
    gap = strength[:, None] - strength[None, :] + 1.0 + rng.normal(0, 1, (n, n))
    return (gap > 0).astype(float)


@pytest.mark.parametrize(
    ("sizes", "max_subsets"), [((8,) * 6, 1000), ((12,) * 6, 300), ((6, 6, 7, 9, 14, 14), 300), ((8, 8), 100)]
)
def test_the_margin_holds_for_other_draws(sizes: tuple[int, ...], max_subsets: int) -> None:
    rng = np.random.default_rng(1)
    sets = [answered(biased_answers(rng, n), f"set {i}") for i, n in enumerate(sizes)]
    of_sets = [estimate_transitivity([one], 5, max_subsets=200_000).complete["pooled"].value or 0.0 for one in sets]
    n_checked = [min(comb(n, 5), max_subsets) for n in sizes]
    truth: dict[Averaging, float] = {
        "instances": float(np.mean(of_sets)),
        "pooled": float(np.average(of_sets, weights=n_checked)),
    }
    figures = [estimate_transitivity(sets, 5, max_subsets, seed) for seed in range(N_SEEDS)]
    for averaged in AVERAGINGS:
        values = np.array([figure.complete[averaged].value for figure in figures])
        margins = np.array([figure.margin[averaged] for figure in figures])
        assert values.mean() == pytest.approx(truth[averaged], abs=3 * values.std() / np.sqrt(N_SEEDS) + 0.003)
        assert (np.abs(values - values.mean()) <= margins).mean() >= 0.92
        assert margins.mean() / 1.96 == pytest.approx(values.std(), rel=0.3)  # not far too wide either


def test_wordings_of_one_set_have_the_same_draws() -> None:
    rng = np.random.default_rng(2)
    first, second = biased_answers(rng, 8), biased_answers(rng, 8)
    one = estimate_transitivity([answered(first, "a")], 5).margin
    twice = estimate_transitivity([answered(first, "a"), answered(first, "a")], 5).margin
    assert twice == pytest.approx(one)
    two_sets = estimate_transitivity([answered(first, "a"), answered(second, "b")], 5).margin
    two_wordings = estimate_transitivity([answered(first, "a"), answered(second, "a")], 5).margin
    assert two_sets["instances"] < two_wordings["instances"]


def test_there_is_no_margin_where_nothing_is_drawn() -> None:
    consistent = np.triu(np.ones((16, 16)), 1)
    all_checked = estimate_transitivity([answered(consistent)], 3)
    assert all_checked.margin == {"instances": 0.0, "pooled": 0.0}
    sampled = estimate_transitivity([answered(consistent)], 5)  # all alike, but not all subsets were checked
    assert 0 < sampled.margin["pooled"] == sampled.margin["instances"] < 0.005
    assert estimate_transitivity([answered(np.full((5, 5), np.nan))], 3).margin["instances"] == 0.0
