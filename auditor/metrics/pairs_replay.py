"""PairS (COLM 2024) on recorded answers, from many initial orders at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics.pairs_merge import BeamSearch, sort_orders
from auditor.metrics.preference import as_preferences

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class PairsReplay:
    """Rankings from S initial orders of N items, and what they took.

    Attributes:
        orders: shape (S, N), items, best first.
        asked: shape (S,), number of questions asked.
        failed: shape (S,), questions asked that had no answer.
    """

    orders: Ints
    asked: Ints
    failed: Ints


def replay_pairs(
    preferences: ArrayLike,
    initial_orders: ArrayLike,
    *,
    beam: int = 1,
    uncertainty: float = 0.1,
    calibrated: bool = False,
) -> PairsReplay:
    """Rank items by merge sort with recorded answers, as `rank_with_pairs` does from each initial order.

    Args:
        preferences: shape (N, N), see `auditor.metrics.preference`.
        initial_orders: shape (S, N), permutations of the N items.
        beam, uncertainty: see `BeamSearch`.
        calibrated: whether each comparison is asked in both orders and averaged.

    Raises:
        ValueError: the preferences are not valid, an initial order is not a permutation of the items, beam is below 1,
            or uncertainty is not in [0, 0.5].
    """
    values, orders = as_preferences(preferences), np.array(initial_orders, dtype=np.intp)
    n = len(values)
    if orders.ndim != 2 or orders.shape[1] != n or (np.sort(orders, axis=1) != np.arange(n)).any():
        raise ValueError(f"initial orders must have the shape (S, {n}) and be permutations of the items")
    is_missing = np.isnan(values).astype(np.intp)
    probabilities, failed_by_pair, cost = values, is_missing, 1
    if calibrated:
        probabilities, failed_by_pair, cost = _average_orders(values), is_missing + is_missing.T, 2
    asked, failed = np.zeros((2, len(orders)), dtype=np.intp)
    sort = sort_orders(orders, BeamSearch(beam, uncertainty))
    try:
        first, second, row = next(sort)
        while True:
            asked += cost * np.bincount(row, minlength=len(orders))
            np.add.at(failed, row, failed_by_pair[first, second])
            first, second, row = sort.send(probabilities[first, second])
    except StopIteration as stop:
        return PairsReplay(stop.value, asked, failed)


def _average_orders(values: Floats) -> Floats:
    """The mean of the valid answers to both orders, as the probability that the row's item is preferred."""
    swapped = 1 - values.T
    return np.where(np.isnan(values), swapped, np.where(np.isnan(swapped), values, (values + swapped) / 2))
