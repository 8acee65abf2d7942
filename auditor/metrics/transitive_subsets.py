"""Transitivity of a judge's comparisons of one item set: which subsets of its items have no cycle.

The preferences are those of `auditor.metrics.preference`. A tie or an unanswered pair has no edge. A subset with a
missing edge is a partial graph: it can have a cycle, but fewer edges make one less likely.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics.estimate import Estimate
from auditor.metrics.preference import TIE_TOLERANCE, Bools, Ints, pair_probabilities
from auditor.metrics.proportion import proportion

MAX_CHECKED_PER_DRAWN = 4
"""All subsets are checked where they are at most this many times those to draw: checking them takes less time than
drawing 1,000 different ones for 12 to 40 items (measured for K = 3, 5 and 6)."""
_BLOCK_CELLS = 4_000_000  # entries of the subsets' preference graphs in memory at once, one byte each


@dataclass(frozen=True, slots=True)
class Transitivity(Estimate):
    """Share of the K-item subsets without a cycle; `n` counts the subsets that were checked.

    The 95% Wilson interval is the error from drawing subsets; it has no width when all were checked (`exhaustive`).
    """

    k: int = 0
    """Number of items in a subset."""
    n_items: int = 0
    exhaustive: bool = False
    """Whether all subsets were checked."""
    pairs_answered: int = 0
    """Pairs that have a preference or a tie. The others have no edge, and cannot be part of a cycle."""
    pairs: int = 0


def transitivity(
    preferences: ArrayLike, k: int = 5, max_subsets: int = 1000, seed: int = 0, calibrated: bool = False
) -> Transitivity:
    """Share of K-item subsets whose preference graph has no cycle (s_tran(K) of Aligning with Logic, its Algorithm 1).

    Args:
        preferences: shape (N, N), see the module.
        k: items in a subset, from 3 to N.
        max_subsets: this many distinct subsets are drawn, or all are checked if there are at most four times as many,
            which takes less time than the draw.
        seed: of the draw.
        calibrated: whether both orders are averaged first.

    Raises:
        ValueError: k is below 3, max_subsets below 1, or the preferences are not valid (see `as_preferences`).
    """
    check_subset_arguments(k, max_subsets)
    answers = pair_probabilities(preferences, calibrated)
    n_items, n_answered = len(answers), int((~np.isnan(answers)).sum()) // 2
    n_pairs = n_items * (n_items - 1) // 2
    if n_items < k or n_answered == 0:
        reason = f"{n_items} items have no subset of {k}" if n_items < k else "no pair has a valid answer"
        return Transitivity(
            None, 0, reason=reason,
            k=k, n_items=n_items, exhaustive=n_items >= k, pairs_answered=n_answered, pairs=n_pairs,
        )  # fmt: skip
    subsets, exhaustive = choose_subsets(n_items, k, max_subsets, seed)
    share = proportion(int(acyclic_mask(answers > 0.5 + TIE_TOLERANCE, subsets).sum()), len(subsets))
    low, high = (share.value, share.value) if exhaustive else (share.ci_low, share.ci_high)
    return Transitivity(
        share.value, share.n, low, high,
        k=k, n_items=n_items, exhaustive=exhaustive, pairs_answered=n_answered, pairs=n_pairs,
    )  # fmt: skip


def check_subset_arguments(k: int, max_subsets: int) -> None:
    """Raise ValueError unless subsets have at least 3 items, and at least one is checked."""
    if k < 3 or max_subsets < 1:
        raise ValueError(f"k must be at least 3 and max_subsets at least 1, but got {k!r} and {max_subsets!r}")


def choose_subsets(n: int, k: int, max_subsets: int, seed: int, orders: int = 1) -> tuple[Ints, bool]:
    """Choose subsets of k out of n, shape (m, k): all where checking them is cheaper, else `max_subsets`, drawn.

    Args:
        orders: how often each of all subsets would be checked.

    Returns:
        The subsets, and whether they are all.
    """
    if math.comb(n, k) * orders <= MAX_CHECKED_PER_DRAWN * max_subsets:
        return np.array(list(combinations(range(n), k)), dtype=np.intp).reshape(-1, k), True
    return draw_subsets(n, k, max_subsets, np.random.default_rng(seed)), False


def draw_subsets(n: int, k: int, m: int, rng: np.random.Generator) -> Ints:
    """Draw m different subsets of k out of n numbers, each set of m subsets equally likely.

    Args:
        m: at most the number of all subsets, C(n, k).

    Returns:
        Shape (m, k), each row in ascending order.
    """
    subsets = np.empty((0, k), dtype=np.intp)
    while len(subsets) < m:
        subsets = np.concatenate([subsets, _floyd_sample(n, k, m, rng)])
        # Kept in the order drawn: the first m of the sorted subsets would favour the first items.
        subsets = subsets[np.sort(np.unique(subsets, axis=0, return_index=True)[1])]
    return subsets[:m]


def _floyd_sample(n: int, k: int, m: int, rng: np.random.Generator) -> Ints:
    """Draw m subsets of k out of n, which may be the same; shape (m, k), each row in ascending order.

    By Floyd's sampling (Bentley, CACM 30, 1987), in memory independent of n.
    """
    rows = np.full((m, k), -1, dtype=np.intp)
    for column, last in enumerate(range(n - k, n)):
        picked = rng.integers(0, last + 1, m)
        # A number that the subset has already is replaced by `last`, which it cannot have yet.
        rows[:, column] = np.where((rows == picked[:, None]).any(axis=1), last, picked)
    return np.sort(rows, axis=1)


def acyclic_mask(graph: Bools, subsets: Ints) -> Bools:
    """Which subsets, shape (S, K), of the nodes of a graph, shape (N, N), span a graph without a cycle; shape (S,)."""
    is_acyclic = np.empty(len(subsets), dtype=bool)
    for block in split_into_blocks(*subsets.shape):
        is_acyclic[block] = find_acyclic(graph[subsets[block, :, None], subsets[block, None, :]])
    return is_acyclic


def split_into_blocks(n_subsets: int, k: int) -> Iterator[slice]:
    """Yield slices of the subsets whose graphs are in memory at once."""
    block_size = max(1, _BLOCK_CELLS // (k * k))
    for start in range(0, n_subsets, block_size):
        yield slice(start, start + block_size)


def find_acyclic(graphs: Bools) -> Bools:
    """Which graphs, shape (S, K, K), have no cycle; shape (S,).

    A graph has at most one edge per pair. A tournament is acyclic if and only if its out-degrees are 0 … K-1 (Landau
    1953); a graph with missing edges if removing nodes without incoming edges, repeatedly, removes them all.
    """
    k = graphs.shape[1]
    out_degrees = graphs.sum(axis=2)
    is_acyclic = np.asarray((np.sort(out_degrees, axis=1) == np.arange(k)).all(axis=1))
    has_missing_pair = out_degrees.sum(axis=1) < k * (k - 1) // 2
    if has_missing_pair.any():
        is_acyclic[has_missing_pair] = _has_topological_order(graphs[has_missing_pair])
    return is_acyclic


def _has_topological_order(graphs: Bools) -> Bools:
    """Whether each graph, shape (S, K, K), is acyclic, by removing nodes without incoming edges; shape (S,)."""
    alive = np.ones(graphs.shape[:2], dtype=bool)
    while True:
        # Nodes not removed yet, without an edge from another such node.
        sources = alive & ~(graphs & alive[:, :, None]).any(axis=1)
        if not sources.any():
            return np.asarray(~alive.any(axis=1))
        alive &= ~sources
