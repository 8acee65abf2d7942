"""Cost and accuracy of ranking by few comparisons: PairS against all pairs, on one judge's recorded answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics.intervals.correlation import spearman
from auditor.metrics.intervals.special_functions import average_ranks
from auditor.metrics.logic.consistency import as_preferences, average_answered_orders, decisions
from auditor.metrics.logic.pairs import PairsReplay, replay_pairs
from auditor.metrics.logic.ranking import bradley_terry, comparisons_from_preferences

Floats = NDArray[np.float64]

PAIRS_GREEDY, PAIRS_CALIBRATED = "PairS, greedy", "PairS, greedy, calibrated"
"""Names of the methods that Aligning with Logic reports."""
ALL_PAIRS_ONE_ORDER, ALL_PAIRS = "all pairs, one order, Bradley–Terry", "all pairs, both orders, Bradley–Terry"
"""Names of the rankings from all pairs; the other rankings are compared with the second."""
PAIR_SHARES = {f"{100 * share:.0f}% of pairs, Bradley–Terry": share for share in (0.1, 0.25, 0.5)} | {
    ALL_PAIRS_ONE_ORDER: 1.0
}
"""Shares of all pairs, drawn at random, that the Bradley–Terry model is fitted to, by the name of the method.

One order of each pair is drawn, too: in that of the items, which often are listed by merit, a judge that always names
the item shown first would rank them as people do.
"""


class RankingMethodStats(NamedTuple):
    """Cost and accuracy of one method of ranking a set's items; means over initial orders or draws of pairs.

    Attributes:
        runs: number of initial orders or draws.
        calls: number of questions asked.
        rho_all: Spearman's rho against the ranking from all pairs in both orders; nan if undefined, as for a judge that
            decides nothing.
        rho_people: Spearman's rho against human scores; nan if undefined.
        failed: calls without an answer.
    """

    method: str
    runs: int
    calls: float
    rho_all: float
    rho_people: float
    failed: float


def compare_ranking_methods(
    preferences: ArrayLike,
    human_scores: ArrayLike | None = None,
    n_starts: int = 100,
    n_draws: int = 10,
    seed: int = 0,
    beam: int = 5,
) -> list[RankingMethodStats]:
    """Rank by merge sort (greedy, calibrated, beam) and by the Bradley–Terry model, and compare.

    No model is called: the questions are answered from `preferences`.

    Args:
        preferences: shape (N, N), see `auditor.metrics.logic.consistency`.
        human_scores: shape (N,), human scores of the items, larger is better; nan where unknown.
        n_starts: number of initial orders of the merge sort; Aligning with Logic has 100.
        n_draws: number of draws of pairs.
        seed: of both.
        beam: width of the beam search.

    Raises:
        ValueError: the preferences are not valid (see `as_preferences`), or the human scores are not of shape (N,).
    """
    values = as_preferences(preferences)
    n = len(values)
    scores = np.full(n, np.nan) if human_scores is None else np.asarray(human_scores, dtype=float)
    if scores.shape != (n,):
        raise ValueError(f"people must have the shape ({n},), but got {scores.shape}")
    reference = _Reference(bradley_terry_strengths(values), scores)
    rng = np.random.default_rng(seed)
    initial_orders = np.array([rng.permutation(n) for _ in range(n_starts)])
    return [
        *_replay_merge_sorts(values, initial_orders, beam, reference),
        *_rank_shares_of_pairs(values, n_draws, rng, reference),
        _summarize_runs(ALL_PAIRS, [_rank_by_strength(values, n * (n - 1))], reference),
    ]


class _Reference(NamedTuple):
    """What rankings are compared with, shape (N,) each: strengths from all pairs in both orders, and human scores."""

    full_ranking: Floats
    human_scores: Floats

    @classmethod
    def without(cls, n_items: int) -> _Reference:
        """Nothing to compare with: a merge sort without any decision returns an order that was drawn at random."""
        return cls(np.full(n_items, np.nan), np.full(n_items, np.nan))


def _replay_merge_sorts(
    values: Floats, initial_orders: NDArray[np.intp], beam: int, reference: _Reference
) -> Iterator[RankingMethodStats]:
    """Yield the results of PairS, greedy, calibrated and with a beam."""
    both_orders = average_answered_orders(values)
    replays = {
        PAIRS_GREEDY: (values, replay_pairs(values, initial_orders)),
        PAIRS_CALIBRATED: (both_orders, replay_pairs(values, initial_orders, calibrated=True)),
        f"PairS, beam of {beam}": (values, replay_pairs(values, initial_orders, beam=beam)),
    }
    for name, (answers, replay) in replays.items():
        is_decided = bool((np.abs(decisions(answers)) == 1).any())
        yield _summarize_replay(name, replay, reference if is_decided else _Reference.without(len(values)))


def _rank_shares_of_pairs(
    values: Floats, n_draws: int, rng: np.random.Generator, reference: _Reference
) -> Iterator[RankingMethodStats]:
    """Yield the results of the Bradley–Terry model fitted to random shares of the pairs."""
    for method, share in PAIR_SHARES.items():
        runs = [_rank_random_pairs(values, share, rng) for _ in range(n_draws)]
        yield _summarize_runs(method, runs, reference)


def bradley_terry_strengths(preferences: Floats) -> Floats:
    """Strength of each item in the Bradley–Terry model, shape (N,); nan where it has no comparison."""
    # Rounded, since estimates of equal items differ by rounding errors.
    return np.round(bradley_terry(comparisons_from_preferences(preferences), len(preferences)).strength, 9)


def _rank_by_strength(preferences: Floats, n_calls: int) -> tuple[Floats, int, int]:
    """Strengths as scores, the number of questions asked, and of those without an answer."""
    return bradley_terry_strengths(preferences), n_calls, n_calls - int((~np.isnan(preferences)).sum())


def _rank_random_pairs(preferences: Floats, share: float, rng: np.random.Generator) -> tuple[Floats, int, int]:
    """Rank by the Bradley–Terry model from a random share of the pairs, each in a random order.

    Returns strengths as scores, the number of questions asked, and of those without an answer.
    """
    first, second = np.triu_indices(len(preferences), 1)
    drawn_pairs = rng.permutation(len(first))[: max(1, round(share * len(first)))]
    is_swapped = rng.random(len(drawn_pairs)) < 0.5
    i, j = (
        np.where(is_swapped, second[drawn_pairs], first[drawn_pairs]),
        np.where(is_swapped, first[drawn_pairs], second[drawn_pairs]),
    )
    drawn_preferences = np.full_like(preferences, np.nan)
    drawn_preferences[i, j] = preferences[i, j]
    return _rank_by_strength(drawn_preferences, len(drawn_pairs))


def _summarize_replay(method: str, replay: PairsReplay, reference: _Reference) -> RankingMethodStats:
    """Means over the initial orders of one merge sort."""
    n_starts, n = replay.orders.shape
    places = np.empty((n_starts, n))
    np.put_along_axis(places, replay.orders, np.arange(n, 0.0, -1)[None, :], axis=1)  # larger is better
    return RankingMethodStats(
        method=method,
        runs=n_starts,
        calls=float(replay.asked.mean()),
        rho_all=_mean_rho_of_orders(places, reference.full_ranking),
        rho_people=_mean_rho_of_orders(places, reference.human_scores),
        failed=float(replay.failed.mean()),
    )


def _mean_rho_of_orders(places: Floats, truth: Floats) -> float:
    """Mean of Spearman's rho of rankings without ties with one truth, in one step for all of them; nan if undefined.

    Args:
        places: shape (rankings, N).
        truth: shape (N,), nan where unknown.
    """
    known = ~np.isnan(truth)
    if known.sum() < 3 or np.ptp(truth[known]) == 0:
        return float("nan")
    ranks = np.argsort(np.argsort(places[:, known], axis=1), axis=1).astype(float)
    truth_ranks = average_ranks(truth[known])
    centred, truth_centred = ranks - ranks.mean(axis=1, keepdims=True), truth_ranks - truth_ranks.mean()
    norms = np.sqrt((centred**2).sum(axis=1) * (truth_centred**2).sum())
    return float((centred @ truth_centred / norms).mean())


def _summarize_runs(method: str, runs: Sequence[tuple[Floats, int, int]], reference: _Reference) -> RankingMethodStats:
    """Means over the runs of one method, each a tuple of scores, calls and failed calls."""
    scores, calls, failed = zip(*runs, strict=True)
    rho_all, rho_people = (_mean_of_defined(_spearman_rhos(scores, truth)) for truth in reference)
    return RankingMethodStats(method, len(runs), float(np.mean(calls)), rho_all, rho_people, float(np.mean(failed)))


def _spearman_rhos(scores: tuple[Floats, ...], truth: Floats) -> Iterator[float]:
    """Spearman's rho of each array of scores with the truth; nan if undefined."""
    for ranking_scores in scores:
        r = spearman(ranking_scores, truth).value
        yield np.nan if r is None else r


def _mean_of_defined(values: Iterator[float]) -> float:
    """Mean of the values that are not nan; nan if there is none."""
    defined = [value for value in values if value == value]
    return float(np.mean(defined)) if defined else float("nan")
