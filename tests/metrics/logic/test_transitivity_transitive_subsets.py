"""Which subsets of items have no cycle: against networkx."""

from __future__ import annotations

import math
import tracemalloc
from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from numpy.typing import NDArray

from auditor.metrics.logic.consistency import preference_graph
from auditor.metrics.logic.transitivity import draw_subsets, transitivity
from tests.support.hang_limit import hang_limit

Floats = NDArray[np.float64]
NAN = math.nan


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


def four_cycle() -> Floats:
    """0 > 1 > 2 > 3 > 0 and nothing about 0, 2 and 1, 3."""
    values = np.full((4, 4), NAN)
    for i in range(4):
        values[i, (i + 1) % 4] = 1.0
    return values


def test_a_set_whose_only_cycle_has_four_items() -> None:
    assert transitivity(four_cycle(), k=3).value == 1.0
    assert transitivity(four_cycle(), k=4).value == 0.0
    assert transitivity(four_cycle(), k=4).pairs_answered == 4


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
        assert transitive_share.ci_low is not None
        assert transitive_share.ci_high is not None
        assert transitive_share.ci_low < transitive_share.ci_high


def test_sampled_interval_covers_the_exact_value() -> None:
    values = tournament(14, 3)
    exact = transitivity(values, k=4, max_subsets=10_000).value
    assert exact is not None
    covered = 0
    for seed in range(100):
        transitive_share = transitivity(values, k=4, max_subsets=200, seed=seed)
        assert transitive_share.ci_low is not None
        assert transitive_share.ci_high is not None
        covered += transitive_share.ci_low <= exact <= transitive_share.ci_high
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
        transitivity(four_cycle(), k=2)
    with pytest.raises(ValueError, match="max_subsets at least 1"):
        transitivity(four_cycle(), k=3, max_subsets=0)
    with pytest.raises(ValueError, match=r"\(2, 3\)"):
        transitivity(np.ones((2, 3)))
