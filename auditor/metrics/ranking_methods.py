"""Cost and accuracy of ranking by few comparisons: PairS against all pairs, on one judge's recorded answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics.correlation import spearman
from auditor.metrics.pairs_ranking import PairQuestion, rank_with_pairs, run_ranking
from auditor.metrics.preference import as_preferences
from auditor.metrics.ranking import bradley_terry, comparisons_from_preferences

Floats = NDArray[np.float64]

PAIR_SHARES = (0.1, 0.25, 0.5)
"""Shares of all pairs, drawn at random, that the Bradley–Terry model is also fitted to."""


class RankingMethodStats(NamedTuple):
    """Cost and accuracy of one method of ranking a set's items; means over initial orders or draws of pairs.

    Attributes:
        calls: number of questions asked.
        rho_all: Spearman's rho against the ranking from all pairs in both orders; nan if undefined, as for a judge that
            decides nothing.
        rho_people: Spearman's rho against human scores; nan if undefined.
        failed: calls without an answer.
    """

    method: str
    calls: float
    rho_all: float
    rho_people: float
    failed: float


def compare_ranking_methods(
    preferences: ArrayLike, human_scores: ArrayLike | None = None, n_shuffles: int = 10, seed: int = 0, beam: int = 5
) -> list[RankingMethodStats]:
    """Rank by merge sort (greedy, calibrated, beam) and by the Bradley–Terry model, and compare.

    No model is called: the questions are answered from `preferences`.

    Args:
        preferences: shape (N, N), see `auditor.metrics.preference`.
        human_scores: shape (N,), human scores of the items, larger is better; nan where unknown.
        n_shuffles: number of initial orders of the merge sort, and of draws of pairs.
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
    full_ranking = bradley_terry_strengths(values)
    rng = np.random.default_rng(seed)
    initial_orders = [rng.permutation(n).tolist() for _ in range(n_shuffles)]
    rankers: dict[str, Callable[[list[int]], tuple[Floats, int, int]]] = {
        "PairS, greedy": lambda start: _rank_by_merge_sort(values, start),
        "PairS, greedy, calibrated": lambda start: _rank_by_merge_sort(values, start, calibrated=True),
        f"PairS, beam of {beam}": lambda start: _rank_by_merge_sort(values, start, beam=beam),
    }
    method_stats = [
        _summarize_runs(name, [ranker(start) for start in initial_orders], full_ranking, scores)
        for name, ranker in rankers.items()
    ]
    for share in PAIR_SHARES:
        runs = [_rank_random_pairs(values, share, rng) for _ in initial_orders]
        method_stats.append(_summarize_runs(f"{100 * share:.0f}% of pairs, Bradley–Terry", runs, full_ranking, scores))
    one_order_preferences = np.where(np.triu(np.ones((n, n), dtype=bool)), values, np.nan)
    exhaustive_methods = [
        ("all pairs, one order, Bradley–Terry", one_order_preferences),
        ("all pairs, both orders, Bradley–Terry", values),
    ]
    return [
        *method_stats,
        *(
            _summarize_runs(
                name,
                [_rank_by_strength(method_preferences, _count_questions(method_preferences, values))],
                full_ranking,
                scores,
            )
            for name, method_preferences in exhaustive_methods
        ),
    ]


def bradley_terry_strengths(preferences: Floats) -> Floats:
    """Strength of each item in the Bradley–Terry model, shape (N,); nan where it has no comparison."""
    # Rounded, since estimates of equal items differ by rounding errors.
    return np.round(bradley_terry(comparisons_from_preferences(preferences), len(preferences)).strength, 9)


def _count_questions(asked_preferences: Floats, all_preferences: Floats) -> int:
    """Number of questions for all pairs: in both orders if all preferences are used, else in one."""
    n = len(all_preferences)
    return n * (n - 1) if asked_preferences is all_preferences else n * (n - 1) // 2


def _rank_by_strength(preferences: Floats, n_calls: int) -> tuple[Floats, int, int]:
    """Strengths as scores, the number of questions asked, and of those without an answer."""
    return bradley_terry_strengths(preferences), n_calls, n_calls - int((~np.isnan(preferences)).sum())


def _rank_by_merge_sort(
    preferences: Floats, initial_order: list[int], *, beam: int = 1, calibrated: bool = False
) -> tuple[Floats, int, int]:
    """Ranks as scores, larger is better, the number of questions asked, and of those without an answer."""

    def answer(questions: list[PairQuestion]) -> list[float]:
        """The recorded answers to a batch of questions."""
        return [float(preferences[i, j]) for i, j in questions]

    ranking = run_ranking(rank_with_pairs(initial_order, beam=beam, calibrated=calibrated), answer)
    scores = np.empty(len(preferences))
    scores[list(ranking.order)] = np.arange(len(preferences), 0, -1)
    return scores, ranking.asked, ranking.failed


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


def _summarize_runs(
    method: str, runs: list[tuple[Floats, int, int]], full_ranking: Floats, human_scores: Floats
) -> RankingMethodStats:
    """Means over the runs of one method, each a tuple of scores, calls and failed calls."""
    scores, calls, failed = zip(*runs, strict=True)
    rhos = (
        _mean_of_defined(_spearman_rhos(scores, full_ranking)),
        _mean_of_defined(_spearman_rhos(scores, human_scores)),
    )
    return RankingMethodStats(method, float(np.mean(calls)), *rhos, float(np.mean(failed)))


def _spearman_rhos(scores: tuple[Floats, ...], truth: Floats) -> Iterator[float]:
    """Spearman's rho of each array of scores with the truth; nan if undefined."""
    for ranking_scores in scores:
        r = spearman(ranking_scores, truth).value
        yield np.nan if r is None else r


def _mean_of_defined(values: Iterator[float]) -> float:
    """Mean of the values that are not nan; nan if there is none."""
    defined = [value for value in values if value == value]
    return float(np.mean(defined)) if defined else float("nan")
