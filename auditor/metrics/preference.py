"""Logical consistency of a judge's comparisons (Aligning with Logic, ICML 2025).

`preferences` is an array (N, N): entry (i, j) is the answer to the question that shows item i first: 1 = i preferred,
0 = j preferred, 0.5 = a tie, a value between them = the probability that i is preferred, nan = no valid answer. The
diagonal is ignored.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics.proportion import proportion
from auditor.metrics.share import Share, mean_share, wilson_share

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.intp]

_BLOCK_CELLS = 4_000_000  # entries of the subsets' preference graphs in memory at once, one byte each
_TIE_TOLERANCE = 1e-9  # probabilities are sums: a rounding error must not turn 0.1 + 0.4 into a preference


@dataclass(frozen=True, slots=True)
class Transitivity:
    """Share of the K-item subsets without a cycle; None with a reason where it is undefined.

    The 95% Wilson interval is the error from sampling `n_subsets`; it has no width when all subsets were checked
    (`exhaustive`). `pairs_answered` of `pairs` have a preference or a tie: the others have no edge, and cannot be part
    of a cycle.
    """

    value: float | None
    k: int
    n_subsets: int
    ci_low: float | None
    ci_high: float | None
    n_items: int
    exhaustive: bool
    pairs_answered: int
    pairs: int
    reason: str | None = None


def as_preferences(preferences: ArrayLike) -> Floats:
    """A copy of the preferences with nan on the diagonal.

    Raises:
        ValueError: the shape is not (N, N) or a value is not in [0, 1].
    """
    values = np.array(preferences, dtype=float)
    if values.ndim != 2 or values.shape[0] != values.shape[1]:
        raise ValueError(f"preferences must have the shape (N, N), but got {values.shape}")
    np.fill_diagonal(values, np.nan)
    if ((values < 0) | (values > 1)).any():
        raise ValueError("preferences must be in [0, 1], or nan where there is no valid answer")
    return values


def pair_probabilities(preferences: ArrayLike, calibrated: bool = False) -> Floats:
    """One probability per pair, with (i, j) and (j, i) adding up to 1; nan where neither order has a valid answer.

    Uncalibrated, it is the answer to the question that shows the lower item first, or the other order's if that one
    failed; calibrated, the mean of the orders with an answer.

    Raises:
        ValueError: as `as_preferences`.
    """
    values = as_preferences(preferences)
    swapped = 1.0 - values.T
    if calibrated:
        mean_of_orders = (values + swapped) / 2
        return np.where(np.isnan(mean_of_orders), np.where(np.isnan(values), swapped, values), mean_of_orders)
    upper = np.triu(np.where(np.isnan(values), swapped, values), 1)
    probabilities = upper + np.tril(1.0 - upper.T, -1)
    np.fill_diagonal(probabilities, np.nan)
    return probabilities


def preference_graph(preferences: ArrayLike, calibrated: bool = False) -> Bools:
    """The graph of preferences, shape (N, N): whether i is preferred to j. Ties and unanswered pairs have no edge.

    Raises:
        ValueError: as `as_preferences`.
    """
    return pair_probabilities(preferences, calibrated) > 0.5 + _TIE_TOLERANCE


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
    if k < 3 or max_subsets < 1:
        raise ValueError(f"k must be at least 3 and max_subsets at least 1, but got {k!r} and {max_subsets!r}")
    answers = pair_probabilities(preferences, calibrated)
    n_items, n_answered = len(answers), int((~np.isnan(answers)).sum()) // 2
    n_pairs = n_items * (n_items - 1) // 2
    if n_items < k or n_answered == 0:
        reason = f"{n_items} items have no subset of {k}" if n_items < k else "no pair has a valid answer"
        return Transitivity(None, k, 0, None, None, n_items, n_items >= k, n_answered, n_pairs, reason)
    subsets, exhaustive = choose_subsets(n_items, k, max_subsets, seed)
    share = proportion(int(acyclic_mask(answers > 0.5 + _TIE_TOLERANCE, subsets).sum()), len(subsets))
    low, high = (share.value, share.value) if exhaustive else (share.ci_low, share.ci_high)
    return Transitivity(share.value, k, len(subsets), low, high, n_items, exhaustive, n_answered, n_pairs)


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


def _decisions(values: Floats) -> Floats:
    """Decisions from preference probabilities: 1 for the first item, -1 for the second, 0 for a tie; nan stays nan."""
    return np.where(np.abs(values - 0.5) <= _TIE_TOLERANCE, 0.0, np.sign(values - 0.5))


def commutativity(preferences: ArrayLike) -> Share:
    """Share of unordered pairs whose decision is the same in both orders shown (Aligning with Logic, s_comm).

    Two ties agree. Pairs in which an order has no valid answer are `lost`.

    Raises:
        ValueError: as `as_preferences`.
    """
    decided = _decisions(as_preferences(preferences))
    upper = np.triu_indices(len(decided), 1)
    return _reversed_share(decided[upper], decided.T[upper])


def negation_invariance(preferences: ArrayLike, negated: ArrayLike, calibrated: bool = False) -> Share:
    """Share of ordered pairs for which "which is less …" is answered with the other item than "which is more …".

    Two ties agree; pairs in which a form has no valid answer are `lost` (Aligning with Logic, s_neg).

    Args:
        preferences, negated: shape (N, N), answers to both forms; 1 = the item shown first was named.
        calibrated: whether both orders are averaged first; then each unordered pair counts once.

    Raises:
        ValueError: the shapes differ, or as `as_preferences`.
    """
    positive, negative = as_preferences(preferences), as_preferences(negated)
    if positive.shape != negative.shape:
        raise ValueError(f"both forms must have one shape, but got {positive.shape} and {negative.shape}")
    compared_pairs = ~np.eye(len(positive), dtype=bool)
    if calibrated:
        positive, negative = pair_probabilities(positive, True), pair_probabilities(negative, True)
        compared_pairs = np.triu(compared_pairs)
    return _reversed_share(_decisions(positive[compared_pairs]), _decisions(negative[compared_pairs]))


def _reversed_share(first: Floats, second: Floats) -> Share:
    """Share of pairs whose decisions are opposite, or both ties, with Wilson's interval; pairs with a nan are `lost`.

    Args:
        first, second: shape (pairs,), decisions 1, 0, -1 or nan (see `_decisions`) to both questions on a pair.
    """
    measured = ~(np.isnan(first) | np.isnan(second))
    n = int(measured.sum())
    return wilson_share(int((first == -second)[measured].sum()), n, lost=len(first) - n)


def human_agreement(preferences: ArrayLike, people: ArrayLike, calibrated: bool = False) -> Share:
    """Share of the pairs with a human preference on which the judge decides the same way; its tie is a miss.

    Args:
        preferences: shape (N, N), the judge's.
        people: shape (N, N), human preferences; if only one order of a pair was asked, the other is nan.
        calibrated: whether the judge's orders are averaged first.

    Raises:
        ValueError: the shapes differ, or as `as_preferences`.
    """
    judge, truth = pair_probabilities(preferences, calibrated), pair_probabilities(people, True)
    if judge.shape != truth.shape:
        raise ValueError(f"judge and people must have one shape, but got {judge.shape} and {truth.shape}")
    upper = np.triu_indices(len(judge), 1)
    judge_decisions, human_decisions = _decisions(judge[upper]), _decisions(truth[upper])
    decided = np.abs(human_decisions) == 1
    measured = decided & ~np.isnan(judge_decisions)
    n = int(measured.sum())
    return wilson_share(int((judge_decisions == human_decisions)[measured].sum()), n, lost=int(decided.sum()) - n)


def self_agreement(samples: ArrayLike) -> Share:
    """Mean, over questions, of the share of repeated answers that agree with the most frequent one.

    Args:
        samples: shape (questions, repeats), decisions 1 / 0.5 / 0 or probabilities, nan where an answer failed.
            Questions with fewer than two valid answers are `lost`.

    Returns:
        The share; chance level is well above 1/2 for few repeats. Its interval is over questions.

    Raises:
        ValueError: the shape is not (questions, repeats).
    """
    values = np.asarray(samples, dtype=float)
    if values.ndim != 2:
        raise ValueError(f"samples must have the shape (questions, repeats), but got {values.shape}")
    decided = _decisions(values)
    # How often each decision was given to each question, shape (3, questions).
    counts = np.stack([(decided == choice).sum(axis=1) for choice in (-1.0, 0.0, 1.0)])
    n_valid = counts.sum(axis=0)
    is_repeated = n_valid >= 2
    shares = counts.max(axis=0)[is_repeated] / n_valid[is_repeated]
    return mean_share(float(shares.sum()), int(is_repeated.sum()), lost=int((~is_repeated).sum()))
