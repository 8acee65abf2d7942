"""Transitivity of a judge's comparisons of one item set: which subsets of its items have no cycle.

The preferences are those of `auditor.metrics.preference`. A tie or an unanswered pair has no edge. A subset with a
missing edge is a partial graph: it can have a cycle, but fewer edges make one less likely.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from auditor.metrics.estimate import Estimate
from auditor.metrics.preference import TIE_TOLERANCE, Bools, Floats, Ints, pair_probabilities
from auditor.metrics.proportion import proportion

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
        max_subsets: all subsets are checked if there are at most this many, else this many distinct ones, drawn.
        seed: of the draw.
        calibrated: whether both orders are averaged first.

    Raises:
        ValueError: k is below 3, max_subsets below 1, or the preferences are not valid (see `as_preferences`).
    """
    _check_arguments(k, max_subsets)
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


class CheckedSubsets(NamedTuple):
    """The subsets of one set's items that were checked for cycles; arrays have the shape (subsets,).

    Attributes:
        subsets: shape (subsets, k), item numbers.
        is_acyclic: whether the preferences among the subset have no cycle.
        is_asked, is_answered, is_decided: whether every pair was asked about, has an answer, and has a preference.
        share_decided: share of the subset's pairs with a preference.
        exhaustive: whether all subsets of the items were checked, not a sample.
        n_decided, n_tied, n_lost: pairs with a preference, pairs that are tied, and pairs asked but not answered.
    """

    subsets: Ints
    is_acyclic: Bools
    is_asked: Bools
    is_answered: Bools
    is_decided: Bools
    share_decided: Floats
    n_items: int
    exhaustive: bool
    n_decided: int
    n_tied: int
    n_lost: int


def check_subsets(
    preferences: Floats, asked: Bools, k: int, max_subsets: int, seed: int, *, set_name: str, calibrated: bool = False
) -> CheckedSubsets:
    """Check subsets of one set's items for cycles; no subsets if there are fewer than k items or no preference.

    Args:
        preferences: shape (N, N). Uncalibrated, one of a pair's two orders is drawn as its answer; calibrated, the mean
            of both is used.
        asked: shape (N, N), the questions that were asked.
        k, max_subsets: as for `transitivity`.
        seed, set_name: determine the draws, which are the same for every judge, and differ between sets.

    Raises:
        ValueError: as `transitivity`.
    """
    _check_arguments(k, max_subsets)
    chosen = preferences if calibrated else _draw_one_order(preferences, derive_set_seed(seed, set_name, "orders"))
    answers = pair_probabilities(chosen, calibrated)
    n_items, graph, is_answered = len(answers), answers > 0.5 + TIE_TOLERANCE, ~np.isnan(answers)
    is_asked = asked | asked.T
    n_decided, n_answered = int(graph.sum()), int(is_answered.sum()) // 2
    n_lost = int((is_asked & ~is_answered & ~np.eye(n_items, dtype=bool)).sum()) // 2
    subsets, exhaustive = np.empty((0, k), dtype=np.intp), True
    if n_items >= k and n_decided:
        subsets, exhaustive = choose_subsets(n_items, k, max_subsets, derive_set_seed(seed, set_name, "subsets"))
    is_decided = _pairs_of_subsets(graph | graph.T, subsets)
    return CheckedSubsets(
        subsets=subsets,
        is_acyclic=acyclic_mask(graph, subsets),
        is_asked=np.asarray(_pairs_of_subsets(is_asked, subsets).all(axis=1)),
        is_answered=np.asarray(_pairs_of_subsets(is_answered, subsets).all(axis=1)),
        is_decided=np.asarray(is_decided.all(axis=1)),
        share_decided=is_decided.mean(axis=1),
        n_items=n_items,
        exhaustive=exhaustive,
        n_decided=n_decided,
        n_tied=n_answered - n_decided,
        n_lost=n_lost,
    )


def derive_set_seed(seed: int, set_name: str, purpose: str) -> int:
    """Derive a seed for one draw on one item set, so that different sets have different draws."""
    digest = hashlib.sha256(f"{seed}\0{purpose}\0{set_name}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big")


def _draw_one_order(preferences: Floats, seed: int) -> Floats:
    """Of each pair answered in both orders, keep the answer to one order, drawn at random.

    With the order of the items throughout, a judge that always names the item shown first would seem transitive.
    """
    values = np.array(preferences, dtype=float)
    drop_upper = np.triu(np.random.default_rng(seed).random(values.shape) < 0.5, 1)
    dropped = drop_upper | np.tril(~drop_upper.T, -1)
    return np.where(dropped & ~np.isnan(values.T), np.nan, values)


def _pairs_of_subsets(matrix: Bools, subsets: Ints) -> Bools:
    """The entries of a symmetric matrix, shape (N, N), for the pairs of each subset; shape (subsets, pairs)."""
    i, j = np.triu_indices(subsets.shape[1], 1)
    return matrix[subsets[:, i], subsets[:, j]]


def _check_arguments(k: int, max_subsets: int) -> None:
    """Raise ValueError unless subsets have at least 3 items, and at least one is checked."""
    if k < 3 or max_subsets < 1:
        raise ValueError(f"k must be at least 3 and max_subsets at least 1, but got {k!r} and {max_subsets!r}")


def choose_subsets(n: int, k: int, max_subsets: int, seed: int) -> tuple[Ints, bool]:
    """Choose subsets of k out of n, shape (m, k): all if there are at most `max_subsets`, else that many, drawn.

    Returns:
        The subsets, and whether they are all.
    """
    if math.comb(n, k) <= max_subsets:
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
    """Which subsets, shape (S, K), of the nodes of a graph, shape (N, N), span a graph without a cycle; shape (S,).

    The graph has at most one edge per pair. A tournament is acyclic if and only if its out-degrees are 0 … K-1 (Landau
    1953); a graph with missing edges if removing nodes without incoming edges, repeatedly, removes them all.
    """
    k = subsets.shape[1]
    block_size = max(1, _BLOCK_CELLS // (k * k))
    is_acyclic = np.empty(len(subsets), dtype=bool)
    for start in range(0, len(subsets), block_size):
        block_subsets = subsets[start : start + block_size]
        subgraphs = graph[block_subsets[:, :, None], block_subsets[:, None, :]]
        out_degrees = subgraphs.sum(axis=2)
        acyclic_in_block = (np.sort(out_degrees, axis=1) == np.arange(k)).all(axis=1)
        has_missing_pair = out_degrees.sum(axis=1) < k * (k - 1) // 2
        if has_missing_pair.any():
            acyclic_in_block[has_missing_pair] = _has_topological_order(subgraphs[has_missing_pair])
        is_acyclic[start : start + block_size] = acyclic_in_block
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
