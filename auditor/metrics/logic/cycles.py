"""Contradictions between comparisons: cycles, and the smallest set of comparisons to reverse to remove them all.

A graph is a boolean array (N, N), with at most one edge a pair, as `auditor.metrics.logic.consistency.preference_graph`
returns it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.lazy_imports import import_when_used

if not TYPE_CHECKING:
    optimize = import_when_used("scipy.optimize")
    sparse = import_when_used("scipy.sparse")
    csgraph = import_when_used("scipy.sparse.csgraph")
else:
    from scipy import optimize, sparse
    from scipy.sparse import csgraph

Bools = NDArray[np.bool_]


class Arc(NamedTuple):
    """A directed edge: `winner` was preferred to `loser`."""

    winner: int
    loser: int


@dataclass(frozen=True, slots=True)
class FeedbackArcs:
    """Arcs whose reversal makes the graph acyclic; no smaller set than `lower_bound` exists."""

    arcs: tuple[Arc, ...]
    lower_bound: int

    @property
    def exact(self) -> bool:
        """Whether the set is proved to be the smallest."""
        return len(self.arcs) == self.lower_bound


def shortest_cycles(graph: Bools, limit: int | None = None) -> list[tuple[int, ...]]:
    """For every item in a cycle, one of the shortest cycles through it; each cycle once, shortest first.

    Args:
        graph: shape (N, N).
        limit: most cycles to return; all when None.

    Returns:
        Cycles as items in order of preference, the smallest item first; the last is preferred to the first.

    Raises:
        ValueError: the graph is not boolean (N, N), or has two edges for a pair or one from an item to itself.
    """
    _check_graph(graph)
    cycles = {cycle for start in range(len(graph)) if (cycle := _cycle_through(graph, start))}
    return sorted(cycles, key=lambda cycle: (len(cycle), cycle))[:limit]


def _check_graph(graph: Bools) -> None:
    """Raise ValueError unless the graph is boolean (N, N), with at most one edge a pair and no loop."""
    if graph.ndim != 2 or graph.shape[0] != graph.shape[1] or graph.dtype != bool:
        raise ValueError(f"a graph must be boolean of the shape (N, N), but got {graph.dtype} of {graph.shape}")
    if (graph & graph.T).any():
        raise ValueError("a graph must have at most one edge a pair and none from an item to itself")


def _cycle_through(graph: Bools, start: int) -> tuple[int, ...] | None:
    """One of the shortest cycles through `start`, by breadth-first search; None where it is in no cycle."""
    parent = np.full(len(graph), -1)
    parent[start] = start
    frontier = np.array([start])
    while len(frontier):
        closing_items = frontier[graph[frontier, start]]
        if len(closing_items):
            path = [int(closing_items[0])]
            while path[-1] != start:
                path.append(int(parent[path[-1]]))
            path.reverse()
            smallest = path.index(min(path))
            return (*path[smallest:], *path[:smallest])
        new_edges = graph[frontier] & (parent < 0)
        new_items = np.flatnonzero(new_edges.any(axis=0))
        parent[new_items] = frontier[new_edges[:, new_items].argmax(axis=0)]
        frontier = new_items
    return None


def minimum_feedback_arcs(graph: Bools, exact_up_to: int = 20, time_limit: float = 10.0) -> FeedbackArcs:
    """The smallest set of comparisons whose reversal makes the graph acyclic, or a small set with a lower bound.

    Strongly connected components are solved one by one. One of up to `exact_up_to` items is solved as the linear
    ordering problem (Grötschel, Jünger, Reinelt 1984) by an integer program; a larger one by moving single items in an
    order until no move improves it, with a set of arc-disjoint 3-cycles as the lower bound.

    Args:
        graph: shape (N, N).
        exact_up_to: most items of a component that is solved exactly; the program has about n^3 / 3 constraints.
        time_limit: seconds a component, after which the best order and the best bound up to then are used.

    Raises:
        ValueError: as `shortest_cycles`.
    """
    _check_graph(graph)
    if not graph.any():
        return FeedbackArcs((), 0)
    labels = csgraph.connected_components(graph, directed=True, connection="strong")[1]
    arcs: list[Arc] = []
    total_bound = 0
    for label in np.flatnonzero(np.bincount(labels) > 2):
        members = np.flatnonzero(labels == label)
        component = graph[np.ix_(members, members)]
        order, lower_bound = _local_search_order(component), max(1, _count_disjoint_triangles(component))
        if len(members) <= exact_up_to and len(_backward_arcs(component, order)) > lower_bound:
            order, lower_bound = _exact_order(component, order, lower_bound, time_limit)
        total_bound += lower_bound
        arcs += [Arc(int(members[i]), int(members[j])) for i, j in _backward_arcs(component, order)]
    return FeedbackArcs(tuple(sorted(arcs)), total_bound)


def _backward_arcs(graph: Bools, order: NDArray[np.intp]) -> NDArray[np.intp]:
    """Arcs, shape (m, 2), from a later item of an order to an earlier one."""
    position = np.argsort(order)
    return np.argwhere(graph & (position[:, None] > position[None, :]))


def _local_search_order(graph: Bools) -> NDArray[np.intp]:
    """An order by wins minus losses, improved by moving one item at a time to its best position."""
    margin = graph.astype(np.int64) - graph.T
    order = np.argsort(-margin.sum(axis=1), kind="stable")
    improved = True
    while improved:
        improved = False
        for item in range(len(graph)):
            others = order[order != item]
            # gain[p]: additional forward arcs with the item at position p instead of the first. Placing it behind one
            # more item makes that item's wins over it point forward and its losses backward.
            gain = np.concatenate([[0], np.cumsum(margin[others, item])])
            current_position, best_position = int(np.flatnonzero(order == item)[0]), int(gain.argmax())
            if gain[best_position] > gain[current_position]:
                order, improved = np.insert(others, best_position, item), True
    return order


def _count_disjoint_triangles(graph: Bools) -> int:
    """Count 3-cycles, found by a greedy search, no two of which share an arc: each needs its own reversal."""
    unused_arcs, count = graph.copy(), 0
    for i, j in np.argwhere(graph):
        if unused_arcs[i, j]:
            closes_triangle = unused_arcs[j] & unused_arcs[:, i]
            k = int(closes_triangle.argmax())
            if closes_triangle[k]:
                unused_arcs[i, j] = unused_arcs[j, k] = unused_arcs[k, i] = False
                count += 1
    return count


def _exact_order(
    graph: Bools, order: NDArray[np.intp], lower_bound: int, time_limit: float
) -> tuple[NDArray[np.intp], int]:
    """Find the order with the fewest backward arcs by an integer program.

    Args:
        order: a known order, returned where the program finds none with fewer backward arcs.
        lower_bound: on the number of backward arcs.
        time_limit: in seconds.

    Returns:
        The order, and the best proved lower bound.
    """
    n = len(graph)
    variable_index = {pair: index for index, pair in enumerate(combinations(range(n), 2))}
    # One variable a pair (i, j), i < j: 1 if i comes before j. Its cost is the change in the number of backward arcs.
    cost = np.array([float(graph[j, i]) - float(graph[i, j]) for i, j in variable_index])
    cost_offset = sum(int(graph[i, j]) for i, j in variable_index)
    # No triple may form a cycle: 0 <= x_ij + x_jk - x_ik <= 1 for i < j < k.
    triples = np.array(
        [(variable_index[i, j], variable_index[j, k], variable_index[i, k]) for i, j, k in combinations(range(n), 3)],
        dtype=np.int32,  # scipy before 1.15 takes no other indices
    )
    constraint_index = np.repeat(np.arange(len(triples), dtype=np.int32), 3)
    matrix = sparse.csr_array(
        (np.tile([1.0, 1.0, -1.0], len(triples)), (constraint_index, triples.ravel())), (len(triples), len(cost))
    )
    solution = optimize.milp(
        cost,
        integrality=np.ones(len(cost), dtype=int),
        bounds=optimize.Bounds(0, 1),
        constraints=optimize.LinearConstraint(matrix, 0, 1),
        options={"time_limit": time_limit},
    )
    if solution.mip_dual_bound is not None and np.isfinite(solution.mip_dual_bound):
        lower_bound = max(lower_bound, int(np.ceil(solution.mip_dual_bound + cost_offset - 1e-6)))
    if solution.x is None:
        return order, lower_bound
    precedes = np.zeros((n, n))
    precedes[tuple(np.array(list(variable_index)).T)] = np.round(solution.x)
    wins = precedes.sum(axis=1) + (np.triu(1 - precedes, 1)).sum(axis=0)
    solved_order = np.argsort(-wins, kind="stable")
    return (
        solved_order if len(_backward_arcs(graph, solved_order)) < len(_backward_arcs(graph, order)) else order
    ), lower_bound
