"""Transitivity of a judge's comparisons over item sets: which subsets of the items have no cycle, and their share."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics.intervals.estimate import NORMAL_QUANTILE, Estimate, proportion, wilson_interval
from auditor.metrics.intervals.items import (
    AVERAGINGS,
    AveragedEstimate,
    Averaging,
    CaseCounts,
    count_by_item,
    instance_values,
)
from auditor.metrics.logic.consistency import (
    TIE_TOLERANCE,
    Bools,
    JudgeAnswers,
    LogicEstimate,
    as_preferences,
    decisions,
    estimate_over_sets,
    name_sets,
    pair_probabilities,
)

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
        have = "item has" if n_items == 1 else "items have"
        reason = f"{n_items} {have} no subset of {k}" if n_items < k else "no pair has a valid answer"
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
        ValueError: as `transitivity`.
    """
    check_subset_arguments(k, max_subsets)
    forward, backward = _decide_orders(preferences, calibrated=calibrated)
    n_items, is_answered = len(forward), ~np.isnan(forward)
    is_asked = asked & asked.T if calibrated else asked | asked.T
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


Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


class DrawnShares(NamedTuple):
    """The subsets of one set, shape (subsets,) each.

    Attributes:
        acyclic: share of a subset's draws without a cycle; nan without a draw that counts.
        n_draws: number of its draws that count.
    """

    acyclic: Floats
    n_draws: Ints


def estimate_margin(
    checked_sets: Sequence[CheckedSubsets], shares: Sequence[DrawnShares], names: Sequence[str]
) -> dict[Averaging, float]:
    """Half-width of the 95% interval of the mean share over other draws, by how the sets are averaged.

    Sets with one name, which are wordings of one set, have the same draws: their errors are added, not averaged.

    Args:
        checked_sets, shares, names: one entry for each set and wording.
    """
    n_subsets = np.array([int((entry.n_draws > 0).sum()) for entry in shares])
    errors = np.array([_standard_error(*entry) for entry in zip(checked_sets, shares, strict=True)])
    measured = [name for name, n in zip(names, n_subsets, strict=True) if n]
    if not measured:
        return dict.fromkeys(AVERAGINGS, 0.0)
    of_set = np.array([1 / (len(set(measured)) * measured.count(name)) if name in measured else 0.0 for name in names])
    weights: dict[Averaging, Floats] = {"instances": of_set * (n_subsets > 0), "pooled": n_subsets / n_subsets.sum()}
    is_sampled = not all(checked.exhaustive for checked in checked_sets)
    if not errors.any():  # all subsets alike: Wilson's interval has a width if others were not drawn
        low, high = wilson_interval(1.0, float(n_subsets.sum()))
        return dict.fromkeys(AVERAGINGS, (high - low) / 2 if is_sampled else 0.0)
    groups = np.unique(np.asarray(names), return_inverse=True)[1]
    return {
        averaged: NORMAL_QUANTILE * sqrt(float((np.bincount(groups, weights[averaged] * errors) ** 2).sum()))
        for averaged in AVERAGINGS
    }


def _standard_error(checked: CheckedSubsets, shares: DrawnShares) -> float:
    """Standard error of one set's mean share over other draws; 0 without a subset.

    If all subsets are checked, at most their orders are drawn. Else each subset has one draw of orders, and the
    variance between subsets has both parts; that the sample may be a large part of all subsets is left out, which is
    safe.
    """
    values, n_draws = (column[shares.n_draws > 0] for column in shares)
    if not len(values) or checked.all_orders:
        return 0.0
    if checked.exhaustive:
        within = values * (1 - values) / np.maximum(n_draws - 1, 1)
        return sqrt(float(within.sum())) / len(values)
    return sqrt(float(values.var(ddof=1)) / len(values)) if len(values) > 1 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialTransitivity(AveragedEstimate):
    """Share of the subsets of items without a cycle among the comparisons there are."""

    sets: int
    """Item sets with enough items and a preference."""
    pairs_present: float | None
    """Mean share of a subset's pairs that have a preference, averaged as the value is; null without a subset."""
    answered_subsets: float | None
    """Share of the subsets in which every pair has an answer, averaged as the value is; null without a subset."""


class TransitivityEstimates(NamedTuple):
    """Transitivity of one judge for one size of subsets.

    Attributes:
        complete, partial: see the module; by how the sets are averaged.
        n_decided, n_tied, n_lost: pairs with a preference, pairs that are tied, and pairs asked but not answered.
        margin: half-width of the 95% interval of the complete figure over other draws of subsets and orders, by how the
            sets are averaged; 0 where all subsets were checked and no order matters.
        exhaustive: whether all subsets of all sets were checked, not a sample.
    """

    complete: dict[Averaging, LogicEstimate]
    partial: dict[Averaging, PartialTransitivity]
    n_decided: int
    n_tied: int
    n_lost: int
    margin: dict[Averaging, float]
    exhaustive: bool


def estimate_transitivity(
    sets: Sequence[JudgeAnswers], k: int, max_subsets: int = 1000, seed: int = 0, calibrated: bool = False
) -> TransitivityEstimates:
    """Estimate the share of the K-item subsets that have no cycle.

    Args:
        sets: one judge's answers.
        k: items in a subset, at least 3.
        max_subsets: most subsets to check in a set; of more, a sample is drawn for each set.
        seed: of the draws of subsets and orders, which differ between sets.
        calibrated: whether both orders of a pair are averaged; else one of them is drawn as its answer.

    Raises:
        ValueError: k is below 3, or max_subsets below 1.
    """
    names = name_sets(sets)
    checked_sets = [
        check_subsets(answers.preferences, answers.asked[0], k, max_subsets, seed, set_name=name, calibrated=calibrated)
        for answers, name in zip(sets, names, strict=True)
    ]
    complete_shares = [_share_over_draws(checked, checked.is_decided) for checked in checked_sets]
    partial_shares = [_share_over_draws(checked, np.ones_like(checked.is_decided)) for checked in checked_sets]
    complete_counts = list(map(_count_acyclic, checked_sets, complete_shares))
    partial_counts = list(map(_count_acyclic, checked_sets, partial_shares))
    no_complete_reason, no_partial_reason = _explain_missing(checked_sets, k)
    complete = {
        averaged: estimate_over_sets(complete_counts, names, averaged, empty_reason=no_complete_reason)
        for averaged in AVERAGINGS
    }
    return TransitivityEstimates(
        complete=complete,
        partial={
            averaged: _estimate_partial(checked_sets, partial_counts, names, averaged, no_partial_reason)
            for averaged in AVERAGINGS
        },
        n_decided=sum(checked.pairs.n_decided for checked in checked_sets),
        n_tied=sum(checked.pairs.n_tied for checked in checked_sets),
        n_lost=sum(checked.pairs.n_lost for checked in checked_sets),
        margin=estimate_margin(checked_sets, complete_shares, names),
        exhaustive=all(checked.exhaustive for checked in checked_sets),
    )


def _explain_missing(checked_sets: Sequence[CheckedSubsets], k: int) -> tuple[str, str]:
    """Why there is no complete, and no partial figure, where there is none."""
    n_items = max((checked.n_items for checked in checked_sets), default=0)
    if n_items < k:
        return (f"the largest set has {n_items} items, fewer than K = {k}",) * 2
    return f"no set has {k} items with a decision on every pair", "no pair is decided"


def _share_over_draws(checked: CheckedSubsets, is_case: Bools) -> DrawnShares:
    """The share of the draws of each subset that have no cycle.

    Args:
        checked: the subsets of one set.
        is_case: shape (subsets, draws), the draws that count.
    """
    n_draws = is_case.sum(axis=1)
    n_acyclic = (checked.is_acyclic & is_case).sum(axis=1)
    return DrawnShares(np.where(n_draws > 0, n_acyclic / np.maximum(n_draws, 1), np.nan), n_draws)


def _count_acyclic(checked: CheckedSubsets, shares: DrawnShares) -> CaseCounts:
    """Counts of one set's subsets: which have no cycle, of those with a draw that counts."""
    is_case = shares.n_draws > 0
    hits = shares.acyclic[is_case]
    return CaseCounts(
        hits=float(hits.sum()),
        n=len(hits),
        ties=int((checked.is_answered & ~is_case).sum()),
        lost=int((checked.is_asked & ~checked.is_answered & ~is_case).sum()),
        by_item=count_by_item(checked.subsets[is_case], hits, checked.n_items),
        case_size=checked.subsets.shape[1],
    )


def _estimate_partial(
    checked_sets: Sequence[CheckedSubsets],
    counts: Sequence[CaseCounts],
    names: Sequence[str],
    averaged: Averaging,
    empty_reason: str,
) -> PartialTransitivity:
    """Estimate the share of all subsets without a cycle among the comparisons there are."""
    share = estimate_over_sets(counts, names, averaged, empty_reason=empty_reason)
    return PartialTransitivity(
        value=share.value,
        n=share.n,
        ci_low=share.ci_low,
        ci_high=share.ci_high,
        reason=share.reason,
        resampled=share.resampled,
        averaged=averaged,
        sets=share.sets,
        pairs_present=_average_of_subsets(
            [checked.share_decided.mean(axis=1) for checked in checked_sets], names, averaged
        ),
        answered_subsets=_average_of_subsets(
            [checked.is_answered.astype(float) for checked in checked_sets], names, averaged
        ),
    )


def _average_of_subsets(columns: Sequence[Floats], names: Sequence[str], averaged: Averaging) -> float | None:
    """Average over sets, or over all subsets, of one number per subset; None without a subset."""
    totals = [len(column) for column in columns]
    if not sum(totals):
        return None
    sums = [float(column.sum()) for column in columns]
    return sum(sums) / sum(totals) if averaged == "pooled" else float(instance_values(sums, totals, names).mean())
