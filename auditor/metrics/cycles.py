"""Where comparisons contradict each other: cycles, and the fewest comparisons to reverse so that none is left.

A graph is a boolean array (N, N), at most one edge a pair, as `auditor.metrics.preference.relation` gives it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

Bools = NDArray[np.bool_]


class Arc(NamedTuple):
    """An edge: `winner` was preferred to `loser`."""

    winner: int
    loser: int


@dataclass(frozen=True, slots=True)
class FeedbackArcs:
    """Arcs whose reversal makes the graph acyclic; no fewer than `lower_bound` can do it, so equality means fewest."""

    arcs: tuple[Arc, ...]
    lower_bound: int

    @property
    def exact(self) -> bool:
        """Whether no smaller set exists, as far as is proved."""
        return len(self.arcs) == self.lower_bound


def shortest_cycles(graph: Bools, limit: int | None = None) -> list[tuple[int, ...]]:
    """For every item in a cycle, one of the shortest through it; each cycle once, the shortest first.

    Args:
        graph: shape (N, N).
        limit: how many to return at most; all when None.

    Returns:
        Cycles as items in order of preference, the smallest item first; the last is preferred to the first.

    Raises:
        ValueError: the graph is not as said.
    """
    _check_graph(graph)
    found = {cycle for start in range(len(graph)) if (cycle := _cycle_through(graph, start))}
    return sorted(found, key=lambda cycle: (len(cycle), cycle))[:limit]


def _check_graph(graph: Bools) -> None:
    if graph.ndim != 2 or graph.shape[0] != graph.shape[1] or graph.dtype != bool:
        raise ValueError(f"a graph must be boolean of the shape (N, N), but got {graph.dtype} of {graph.shape}")
    if (graph & graph.T).any():
        raise ValueError("a graph must have at most one edge a pair and none from an item to itself")


def _cycle_through(graph: Bools, start: int) -> tuple[int, ...] | None:
    """Breadth first from `start` until an item that is preferred to it is reached."""
    parent = np.full(len(graph), -1)
    parent[start] = start
    frontier = np.array([start])
    while len(frontier):
        closing = frontier[graph[frontier, start]]
        if len(closing):
            path = [int(closing[0])]
            while path[-1] != start:
                path.append(int(parent[path[-1]]))
            path.reverse()
            smallest = path.index(min(path))
            return (*path[smallest:], *path[:smallest])
        reached = graph[frontier] & (parent < 0)
        fresh = np.flatnonzero(reached.any(axis=0))
        parent[fresh] = frontier[reached[:, fresh].argmax(axis=0)]
        frontier = fresh
    return None


def minimum_feedback_arcs(graph: Bools, exact_up_to: int = 20, time_limit: float = 10.0) -> FeedbackArcs:
    """The smallest set of comparisons whose reversal makes the graph acyclic, or a small one with a bound.

    Knots (strongly connected components) do not touch each other. Each of up to `exact_up_to` items is solved as the
    linear ordering problem (Grötschel, Jünger, Reinelt 1984) by an integer program; larger ones by moving single items
    in an order until no move helps, with a set of 3-cycles that share no arc as the lower bound.

    Args:
        graph: shape (N, N).
        exact_up_to: items of a knot that is solved exactly; the program has about n^3 / 3 conditions.
        time_limit: seconds a knot, after which the best order so far and the bound proved so far are taken.

    Raises:
        ValueError: the graph is not as said.
    """
    _check_graph(graph)
    if not graph.any():
        return FeedbackArcs((), 0)
    labels = connected_components(graph, directed=True, connection="strong")[1]
    arcs: list[Arc] = []
    bound = 0
    for label in np.flatnonzero(np.bincount(labels) > 2):
        members = np.flatnonzero(labels == label)
        knot = graph[np.ix_(members, members)]
        order, lower = _local_search_order(knot), max(1, _count_disjoint_triangles(knot))
        if len(members) <= exact_up_to and len(_backward_arcs(knot, order)) > lower:
            order, lower = _exact_order(knot, order, lower, time_limit)
        bound += lower
        arcs += [Arc(int(members[i]), int(members[j])) for i, j in _backward_arcs(knot, order)]
    return FeedbackArcs(tuple(sorted(arcs)), bound)


def _backward_arcs(graph: Bools, order: NDArray[np.intp]) -> NDArray[np.intp]:
    """Arcs (m, 2) that lead from a later item of an order to an earlier one."""
    place = np.argsort(order)
    return np.argwhere(graph & (place[:, None] > place[None, :]))


def _local_search_order(graph: Bools) -> NDArray[np.intp]:
    """An order by wins less losses, then improved by moving one item at a time to its best place."""
    margin = graph.astype(np.int64) - graph.T
    order = np.argsort(-margin.sum(axis=1), kind="stable")
    improved = True
    while improved:
        improved = False
        for item in range(len(graph)):
            rest = order[order != item]
            # Passing one more of the rest makes its wins over the item point forward and its losses backward.
            gain = np.concatenate([[0], np.cumsum(margin[rest, item])])
            place, best = int(np.flatnonzero(order == item)[0]), int(gain.argmax())
            if gain[best] > gain[place]:
                order, improved = np.insert(rest, best, item), True
    return order


def _count_disjoint_triangles(graph: Bools) -> int:
    """How many 3-cycles a greedy search finds of which no two share an arc: each needs a reversal of its own."""
    left, count = graph.copy(), 0
    for i, j in np.argwhere(graph):
        if left[i, j]:
            closing = left[j] & left[:, i]
            k = int(closing.argmax())
            if closing[k]:
                left[i, j] = left[j, k] = left[k, i] = False
                count += 1
    return count


def _exact_order(
    graph: Bools, order: NDArray[np.intp], lower_bound: int, time_limit: float
) -> tuple[NDArray[np.intp], int]:
    """The order with the fewest backward arcs, and how few are proved possible; the one given if none is found."""
    n = len(graph)
    column = {pair: c for c, pair in enumerate(combinations(range(n), 2))}
    # A variable a pair, 1 when the lower item comes first; its cost is what that puts backward less what it saves.
    cost = np.array([float(graph[j, i]) - float(graph[i, j]) for i, j in column])
    saved = sum(int(graph[i, j]) for i, j in column)
    # No triple may go round: 0 <= x_ij + x_jk - x_ik <= 1 for i < j < k.
    triples = np.array([(column[i, j], column[j, k], column[i, k]) for i, j, k in combinations(range(n), 3)])
    rows = np.repeat(np.arange(len(triples)), 3)
    matrix = csr_array((np.tile([1.0, 1.0, -1.0], len(triples)), (rows, triples.ravel())), (len(triples), len(cost)))
    found = milp(
        cost,
        integrality=np.ones(len(cost), dtype=int),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(matrix, 0, 1),
        options={"time_limit": time_limit},
    )
    if found.mip_dual_bound is not None and np.isfinite(found.mip_dual_bound):
        lower_bound = max(lower_bound, int(np.ceil(found.mip_dual_bound + saved - 1e-6)))
    if found.x is None:
        return order, lower_bound
    first = np.zeros((n, n))
    first[tuple(np.array(list(column)).T)] = np.round(found.x)
    wins = first.sum(axis=1) + (np.triu(1 - first, 1)).sum(axis=0)
    solved = np.argsort(-wins, kind="stable")
    return (solved if len(_backward_arcs(graph, solved)) < len(_backward_arcs(graph, order)) else order), lower_bound
