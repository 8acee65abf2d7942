"""Subsets of one item set that are checked for cycles, with the answer to one order of each pair drawn at random.

A judge may answer differently when the two items of a pair are swapped. With the order of the items throughout, one
that always names the item shown first would seem transitive. So the share of acyclic subsets is the mean over all
orders of their pairs where these are few; else one order of each pair is drawn, and drawn anew for each subset, as
often as `max_subsets` allows, which estimates that mean.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from auditor.metrics.preference import Bools, Floats, Ints, as_preferences, decisions, pair_probabilities
from auditor.metrics.transitive_subsets import (
    MAX_CHECKED_PER_DRAWN,
    check_subset_arguments,
    choose_subsets,
    find_acyclic,
    split_into_blocks,
)


class PairCounts(NamedTuple):
    """Pairs with a preference (in an order), other answered pairs, and pairs asked but not answered."""

    n_decided: int
    n_tied: int
    n_lost: int


class CheckedSubsets(NamedTuple):
    """The subsets of one set's items that were checked for cycles.

    Attributes:
        subsets: shape (subsets, k), item numbers; no subsets of 3 if there are none of k items.
        is_acyclic: shape (subsets, draws), whether the preferences among the subset have no cycle.
        is_decided: shape (subsets, draws), whether every pair has a preference.
        share_decided: shape (subsets, draws), share of the subset's pairs with a preference.
        is_asked, is_answered: shape (subsets,), whether every pair was asked about, and has an answer.
        exhaustive: whether all subsets of the items were checked, not a sample.
        all_orders: whether each subset was checked in all orders of its pairs, each equally often, not in drawn ones.
        pairs: of all items.
    """

    subsets: Ints
    is_acyclic: Bools
    is_decided: Bools
    share_decided: Floats
    is_asked: Bools
    is_answered: Bools
    n_items: int
    exhaustive: bool
    all_orders: bool
    pairs: PairCounts


def check_subsets(
    preferences: Floats, asked: Bools, k: int, max_subsets: int, seed: int, *, set_name: str, calibrated: bool = False
) -> CheckedSubsets:
    """Check subsets of one set's items for cycles; no subsets if there are fewer than k items or no preference.

    Args:
        preferences: shape (N, N). Uncalibrated, orders are drawn (see the module); calibrated, the mean of both orders
            of a pair is its answer.
        asked: shape (N, N), the questions that were asked.
        k: items in a subset.
        max_subsets: subsets that are drawn. All subsets, and all orders of their pairs, are checked where that is
            cheaper (`MAX_CHECKED_PER_DRAWN`). If all subsets are checked, but orders are drawn, at least two orders of
            each are, so that their effect is known.
        seed, set_name: determine the draws, which are the same for every judge, and differ between sets.

    Raises:
        ValueError: as `auditor.metrics.transitive_subsets.transitivity`.
    """
    check_subset_arguments(k, max_subsets)
    forward, backward = _decide_orders(preferences, calibrated=calibrated)
    n_items, is_answered = len(forward), ~np.isnan(forward)
    is_asked = asked | asked.T
    counts = _count_pairs(forward, backward, is_asked)
    subsets, exhaustive = np.empty((0, 3), dtype=np.intp), True  # whatever k: the pairs of a huge one fill the memory
    depends_on_order = ~((forward == backward) | (np.isnan(forward) & np.isnan(backward)))
    min_orders = 2 if depends_on_order.any() else 1
    if n_items >= k and counts.n_decided:
        subset_seed = derive_set_seed(seed, set_name, "subsets")
        subsets, exhaustive = choose_subsets(n_items, k, max_subsets, subset_seed, min_orders)
    n_ordered_pairs = int(_pairs_of_subsets(depends_on_order, subsets).sum(axis=1).max(initial=0))
    all_orders = exhaustive and len(subsets) * 2**n_ordered_pairs <= MAX_CHECKED_PER_DRAWN * max_subsets
    if all_orders:
        n_draws = 2**n_ordered_pairs
        choose_orders = _enumerate_orders(_pairs_of_subsets(depends_on_order, subsets), n_draws).__getitem__
    else:
        n_draws = max(min_orders, max_subsets // len(subsets)) if exhaustive else 1
        rng = np.random.default_rng(derive_set_seed(seed, set_name, "orders"))
        choose_orders = partial(_draw_orders, rng, len(subsets) * n_draws, k * (k - 1) // 2)
    is_acyclic, share_decided = _check_graphs(forward, backward, np.repeat(subsets, n_draws, axis=0), choose_orders)
    return CheckedSubsets(
        subsets=subsets,
        is_acyclic=is_acyclic.reshape(-1, n_draws),
        is_decided=(share_decided == 1.0).reshape(-1, n_draws),
        share_decided=share_decided.reshape(-1, n_draws),
        is_asked=np.asarray(_pairs_of_subsets(is_asked, subsets).all(axis=1)),
        is_answered=np.asarray(_pairs_of_subsets(is_answered, subsets).all(axis=1)),
        n_items=n_items,
        exhaustive=exhaustive,
        all_orders=all_orders,
        pairs=counts,
    )


def _count_pairs(forward: Floats, backward: Floats, is_asked: Bools) -> PairCounts:
    """Count the pairs of all items."""
    upper = np.triu_indices(len(forward), 1)
    is_decided = (np.abs(forward[upper]) == 1) | (np.abs(backward[upper]) == 1)
    is_answered = ~np.isnan(forward[upper])
    n_decided = int(is_decided.sum())
    return PairCounts(n_decided, int(is_answered.sum()) - n_decided, int((is_asked[upper] & ~is_answered).sum()))


def _decide_orders(preferences: Floats, *, calibrated: bool) -> tuple[Floats, Floats]:
    """Decisions on (i, j) by the question that shows i first, and by the one that shows j first, shape (N, N) each.

    1 is a preference for i, -1 for j, 0 a tie, nan no answer. Where one order has no answer, it is that to the other.
    """
    if calibrated:
        decided = decisions(pair_probabilities(preferences, calibrated=True))
        return decided, decided
    values = as_preferences(preferences)
    swapped = 1.0 - values.T
    forward = np.where(np.isnan(values), swapped, values)
    backward = np.where(np.isnan(swapped), values, swapped)
    return decisions(forward), decisions(backward)


def _enumerate_orders(depends_on_order: Bools, n_orders: int) -> Bools:
    """All orders of the pairs of each subset, each equally often; shape (subsets * n_orders, pairs).

    Args:
        depends_on_order: shape (subsets, pairs), at most log2(n_orders) true in a row; the other pairs have one order.
    """
    position = np.where(depends_on_order, depends_on_order.cumsum(axis=1) - 1, 0)
    bits = (np.arange(n_orders)[:, None] >> position[:, None, :]) & 1
    orders: Bools = (bits == 0).reshape(-1, depends_on_order.shape[1])
    return orders


def _draw_orders(rng: np.random.Generator, n_rows: int, n_pairs: int, block: slice) -> Bools:
    """Draw an order of each pair for one block of rows, shape (rows of the block, pairs)."""
    return rng.random((len(range(*block.indices(n_rows))), n_pairs), dtype=np.float32) < 0.5


def _check_graphs(
    forward: Floats, backward: Floats, subsets: Ints, choose_orders: Callable[[slice], Bools]
) -> tuple[Bools, Floats]:
    """Check the graph of the decisions of each subset, in one order of each of its pairs.

    Args:
        choose_orders: for a block of the subsets, shape (subsets, pairs), whether a pair's decision is `forward`'s.
            Blocks are asked for in order, once each.

    Returns:
        Shape (subsets,) each: whether the graph has no cycle, and the share of the pairs that are decided.
    """
    k = subsets.shape[1]
    first, second = np.triu_indices(k, 1)
    is_acyclic, share_decided = np.empty(len(subsets), dtype=bool), np.empty(len(subsets))
    for block in split_into_blocks(len(subsets), k):
        i, j = subsets[block][:, first], subsets[block][:, second]
        drawn = np.where(choose_orders(block), forward[i, j], backward[i, j])
        graphs = np.zeros((len(i), k, k), dtype=bool)
        graphs[:, first, second], graphs[:, second, first] = drawn == 1, drawn == -1
        is_acyclic[block] = find_acyclic(graphs)
        share_decided[block] = (np.abs(drawn) == 1).mean(axis=1)
    return is_acyclic, share_decided


def derive_set_seed(seed: int, set_name: str, purpose: str) -> int:
    """Derive a seed for one draw on one item set, so that different sets have different draws."""
    digest = hashlib.sha256(f"{seed}\0{purpose}\0{set_name}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big")


def _pairs_of_subsets(matrix: Bools, subsets: Ints) -> Bools:
    """The entries of a symmetric matrix, shape (N, N), for the pairs of each subset; shape (subsets, pairs)."""
    i, j = np.triu_indices(subsets.shape[1], 1)
    return matrix[subsets[:, i], subsets[:, j]]
