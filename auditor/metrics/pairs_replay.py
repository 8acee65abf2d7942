"""PairS (COLM 2024) on recorded answers, from many initial orders at once.

The same algorithm as `auditor.metrics.pairs_ranking`, which asks a judge question by question. Here all answers are
known, so the merges of one level are computed together, for all initial orders, as arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics.pairs_ranking import MIN_PROBABILITY
from auditor.metrics.preference import as_preferences

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]


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


class _Answers(NamedTuple):
    """What a comparison of item i with item j gives, shape (N, N) each.

    Attributes:
        probability: that i is preferred; nan without an answer.
        failed: questions of the comparison without an answer.
        cost: questions of one comparison.
    """

    probability: Floats
    failed: Ints
    cost: int


class _Search(NamedTuple):
    """Settings of the beam search; see `replay_pairs`."""

    beam: int
    uncertainty: float


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
        beam: number of partial merges to follow; 1 is greedy.
        uncertainty: with a beam, both outcomes are followed where the probability is closer to 1/2 than this.
        calibrated: whether each comparison is asked in both orders and averaged.

    Raises:
        ValueError: the preferences are not valid, an initial order is not a permutation of the items, beam is below 1,
            or uncertainty is not in [0, 0.5].
    """
    values, orders = as_preferences(preferences), np.array(initial_orders, dtype=np.intp)
    n = len(values)
    if orders.ndim != 2 or orders.shape[1] != n or (np.sort(orders, axis=1) != np.arange(n)).any():
        raise ValueError(f"initial orders must have the shape (S, {n}) and be permutations of the items")
    if beam < 1 or not 0 <= uncertainty <= 0.5:
        raise ValueError(f"beam >= 1, uncertainty in [0, 0.5]; got {beam!r}, {uncertainty!r}")
    answers, search = _combine_orders(values, calibrated=calibrated), _Search(beam, uncertainty)
    asked, failed = np.zeros((2, len(orders)), dtype=np.intp)
    width = 1
    while width < n:
        for start, stop, right_width in _list_merges(n, width):
            block = orders[:, start:stop].reshape(-1, width + right_width)
            merged = _merge_runs(answers, block[:, :width], block[:, width:], search)
            orders[:, start:stop] = merged.orders.reshape(len(orders), -1)
            asked += merged.asked.reshape(len(orders), -1).sum(axis=1)
            failed += merged.failed.reshape(len(orders), -1).sum(axis=1)
        width *= 2
    return PairsReplay(orders, asked, failed)


def _combine_orders(values: Floats, *, calibrated: bool) -> _Answers:
    """The answers in one order, or the mean of the valid ones in both."""
    is_missing = np.isnan(values).astype(np.intp)
    if not calibrated:
        return _Answers(values, is_missing, 1)
    swapped = 1 - values.T
    mean = np.where(np.isnan(values), swapped, np.where(np.isnan(swapped), values, (values + swapped) / 2))
    return _Answers(mean, is_missing + is_missing.T, 2)


def _list_merges(n: int, width: int) -> list[tuple[int, int, int]]:
    """Merges of one level: first and last position of neighbouring merges of one shape, and the width of right runs.

    Runs have `width` items, except the last; it waits for the next level if it has no neighbour.
    """
    n_full, remainder = divmod(n, 2 * width)
    stop = n_full * 2 * width
    merges = [(0, stop, width)] if n_full else []
    return [*merges, (stop, n, remainder - width)] if remainder > width else merges


def _merge_runs(answers: _Answers, left: Ints, right: Ints, search: _Search) -> PairsReplay:
    """Merge B pairs of ranked runs, as `pairs_ranking._merge_runs` does.

    A state is the number k of items taken from the left run; each state holds its most probable path.

    Args:
        left, right: shapes (B, n_left) and (B, n_right), the runs, best first.
    """
    n_left, n_right = left.shape[1], right.shape[1]
    state = np.arange(n_left + 1)
    log_probability = np.full((len(left), n_left + 1), -np.inf)
    log_probability[:, 0] = 0.0
    priority = np.zeros(log_probability.shape, dtype=np.intp)  # among equally probable paths, lower first
    asked, failed = np.zeros((2, len(left)), dtype=np.intp)
    came_from_left = np.empty((n_left + n_right, *log_probability.shape), dtype=bool)
    for step in range(n_left + n_right):
        right_placed = step - state
        is_open = (state < n_left) & (right_placed >= 0) & (right_placed < n_right)
        first = left[:, np.minimum(state, n_left - 1)]
        second = right[:, np.clip(right_placed, 0, n_right - 1)]
        is_asked = is_open & np.isfinite(log_probability)
        asked += answers.cost * is_asked.sum(axis=1)
        failed += (answers.failed[first, second] * is_asked).sum(axis=1)
        balance = (state + 0.5) * n_right <= (right_placed + 0.5) * n_left  # without an answer, no half is favoured
        log_left, log_right = _log_outcomes(answers.probability[first, second], balance, search)
        # Where one run is used up, the other's next item follows.
        log_left = np.where(is_open, log_left, np.where(state < n_left, 0.0, -np.inf))
        log_right = np.where(is_open, log_right, np.where(state < n_left, -np.inf, 0.0))
        log_probability, priority, came_from_left[step] = _extend_paths(
            log_probability, priority, log_left, log_right, search.beam
        )
    return PairsReplay(_trace_back(came_from_left, left, right), asked, failed)


def _log_outcomes(probability: Floats, balance: Bools, search: _Search) -> tuple[Floats, Floats]:
    """Log-probabilities of taking from the left and from the right run; -inf for an outcome that is not followed.

    Args:
        probability: shape (B, states), that the left run's next item is preferred; nan without an answer.
        balance: shape (states,), whether the left run is taken from without an answer.
    """
    is_missing = np.isnan(probability)
    p = np.clip(np.where(is_missing, 0.5, probability), MIN_PROBABILITY, 1 - MIN_PROBABILITY)
    follows_both = ~is_missing & (np.abs(p - 0.5) < search.uncertainty) & (search.beam > 1)
    prefers_left = np.where(is_missing, balance, p >= 0.5)
    return (
        np.where(follows_both | prefers_left, np.log(p), -np.inf),
        np.where(follows_both | ~prefers_left, np.log(1 - p), -np.inf),
    )


def _extend_paths(
    log_probability: Floats, priority: Ints, log_left: Floats, log_right: Floats, beam: int
) -> tuple[Floats, Ints, Bools]:
    """Extend all paths by one item, and keep the `beam` most probable ones.

    Returns:
        Shape (B, states) each: log-probabilities, priorities, and whether a state was reached by taking from the left.
    """
    from_left, from_right = np.full_like(log_probability, -np.inf), log_probability + log_right
    from_left[:, 1:] = (log_probability + log_left)[:, :-1]
    left_priority = np.zeros_like(priority)
    left_priority[:, 1:] = 2 * priority[:, :-1]
    right_priority = 2 * priority + 1
    is_left_first = left_priority < right_priority
    came_from_left = (from_left > from_right) | ((from_left == from_right) & is_left_first)
    extended = np.maximum(from_left, from_right)
    if beam == 1:  # there is one path only
        return extended, priority, came_from_left
    is_from_both = np.isfinite(from_left) & np.isfinite(from_right)
    reached = np.where(
        is_from_both,
        np.minimum(left_priority, right_priority),
        np.where(np.isfinite(from_left), left_priority, right_priority),
    )
    ranking = np.argsort(np.lexsort((reached, -extended), axis=-1), axis=-1)
    return np.where(ranking < beam, extended, -np.inf), ranking, came_from_left


def _trace_back(came_from_left: Bools, left: Ints, right: Ints) -> Ints:
    """The merged runs, shape (B, n_left + n_right), from the steps by which each state was reached."""
    merged = np.empty((len(left), left.shape[1] + right.shape[1]), dtype=np.intp)
    rows, state = np.arange(len(left)), np.full(len(left), left.shape[1], dtype=np.intp)
    for step in reversed(range(merged.shape[1])):
        is_left = came_from_left[step, rows, state]
        state = state - is_left
        from_left = left[rows, np.minimum(state, left.shape[1] - 1)]
        from_right = right[rows, np.clip(step - state, 0, right.shape[1] - 1)]
        merged[:, step] = np.where(is_left, from_left, from_right)
    return merged
