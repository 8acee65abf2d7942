from __future__ import annotations

from itertools import permutations

import networkx as nx
import numpy as np
import pytest
from numpy.typing import NDArray

from auditor.metrics.logic.cycles import Arc, FeedbackArcs, minimum_feedback_arcs, shortest_cycles
from tests.support.hang_limit import hang_limit

Bools = NDArray[np.bool_]


def random_graph(n: int, seed: int, missing: float = 0.0, noise: float = 0.5) -> Bools:
    """An order 0 > 1 > … with some arcs reversed and some left out."""
    rng = np.random.default_rng(seed)
    upper = np.triu(np.ones((n, n), dtype=bool), 1)
    reverse = np.triu(rng.random((n, n)) < noise, 1)
    present = np.triu(rng.random((n, n)) >= missing, 1)
    present = present | present.T
    return np.asarray(((upper & ~reverse) | reverse.T) & present)


def without(graph: Bools, arcs: tuple[Arc, ...]) -> Bools:
    """The graph with arcs reversed."""
    changed = graph.copy()
    for winner, loser in arcs:
        assert changed[winner, loser]
        changed[winner, loser], changed[loser, winner] = False, True
    return changed


def is_acyclic(graph: Bools) -> bool:
    return bool(nx.is_directed_acyclic_graph(nx.from_numpy_array(graph, create_using=nx.DiGraph)))


def fewest(graph: Bools) -> int:
    """By looking at all orders."""
    orders = np.array(list(permutations(range(len(graph)))))
    place = np.argsort(orders, axis=1)
    winner, loser = np.nonzero(graph)
    return int((place[:, winner] > place[:, loser]).sum(axis=1).min())


def test_a_cycle_is_named_from_its_smallest_item_on() -> None:
    graph = np.zeros((6, 6), dtype=bool)
    for winner, loser in ((3, 1), (1, 5), (5, 2), (2, 3), (0, 3), (4, 0)):
        graph[winner, loser] = True
    assert shortest_cycles(graph) == [(1, 5, 2, 3)]
    feedback_arcs = minimum_feedback_arcs(graph)
    assert (len(feedback_arcs.arcs), feedback_arcs.lower_bound, feedback_arcs.exact) == (1, 1, True)
    assert is_acyclic(without(graph, feedback_arcs.arcs))


@pytest.mark.parametrize("missing", [0.0, 0.4, 0.7])
@pytest.mark.parametrize("seed", range(5))
def test_shortest_cycles_match_networkx(seed: int, missing: float) -> None:
    graph = random_graph(9, seed, missing)
    expected: dict[int, int] = {}
    for cycle in nx.simple_cycles(nx.from_numpy_array(graph, create_using=nx.DiGraph)):
        for item in cycle:
            expected[item] = min(expected.get(item, 99), len(cycle))
    cycles = shortest_cycles(graph)
    for cycle in cycles:
        assert all(graph[a, b] for a, b in zip(cycle, (*cycle[1:], cycle[0]), strict=True))
        assert cycle[0] == min(cycle)
    shortest = {item: min(len(c) for c in cycles if item in c) for item in expected}
    assert shortest == expected
    assert shortest_cycles(graph, limit=1) == cycles[:1]
    assert [len(c) for c in cycles] == sorted(len(c) for c in cycles)


@pytest.mark.parametrize("missing", [0.0, 0.3, 0.6])
@pytest.mark.parametrize("seed", range(6))
def test_fewest_reversals_match_all_orders(seed: int, missing: float) -> None:
    graph = random_graph(7, seed, missing)
    feedback_arcs = minimum_feedback_arcs(graph)
    assert len(feedback_arcs.arcs) == feedback_arcs.lower_bound == fewest(graph)
    assert is_acyclic(without(graph, feedback_arcs.arcs))


def test_fifteen_random_items_are_solved_exactly() -> None:
    graph = random_graph(15, 1)
    with hang_limit():  # there are 15! orders
        feedback_arcs = minimum_feedback_arcs(graph)
    assert feedback_arcs.exact
    assert is_acyclic(without(graph, feedback_arcs.arcs))
    rough = minimum_feedback_arcs(graph, exact_up_to=0)
    assert rough.lower_bound <= len(feedback_arcs.arcs) <= len(rough.arcs)


def test_knots_are_solved_apart() -> None:
    # Three triangles in a row, each ahead of the next: one reversal each.
    graph = np.triu(np.ones((9, 9), dtype=bool), 1)
    for first in (0, 3, 6):
        graph[first, first + 2], graph[first + 2, first] = False, True
    feedback_arcs = minimum_feedback_arcs(graph, exact_up_to=3)
    assert (len(feedback_arcs.arcs), feedback_arcs.exact) == (3, True)


@pytest.mark.parametrize("missing", [0.0, 0.5])
def test_large_graphs_get_a_small_set_and_a_bound(missing: float) -> None:
    graph = random_graph(200, 2, missing, noise=0.1)
    planted = int(np.tril(graph).sum())
    with hang_limit():
        feedback_arcs = minimum_feedback_arcs(graph)
    assert 0 < feedback_arcs.lower_bound <= len(feedback_arcs.arcs) <= planted
    assert is_acyclic(without(graph, feedback_arcs.arcs))


def test_a_graph_without_cycles_needs_no_removal() -> None:
    for graph in (np.zeros((0, 0), dtype=bool), np.zeros((4, 4), dtype=bool), random_graph(8, 0, noise=0.0)):
        assert shortest_cycles(graph) == []
        assert minimum_feedback_arcs(graph) == FeedbackArcs((), 0)
        assert minimum_feedback_arcs(graph).exact


def test_graphs_with_two_answers_a_pair_are_refused() -> None:
    with pytest.raises(ValueError, match="one edge a pair"):
        shortest_cycles(np.ones((2, 2), dtype=bool))
    with pytest.raises(ValueError, match="float64"):
        minimum_feedback_arcs(np.ones((2, 2)))  # type: ignore[arg-type]
