"""What ranking by few comparisons costs and loses: PairS beside all pairs, on one judge's recorded answers."""

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
"""Shares of all pairs, drawn at random, that Bradley and Terry's model is also given."""


class RankingMethodStats(NamedTuple):
    """One way to rank the items of a set.

    Attributes:
        calls: questions that it asks, the mean over starting orders or draws.
        rho_all: Spearman's rho against the ranking from all pairs in both orders; rho_people: against people's scores.
            Means over starting orders; nan where there is none, as against a judge that decides nothing.
        failed: of the calls, those without an answer.
    """

    method: str
    calls: float
    rho_all: float
    rho_people: float
    failed: float


def compare_ranking_methods(
    preferences: ArrayLike, human_scores: ArrayLike | None = None, n_shuffles: int = 10, seed: int = 0, beam: int = 5
) -> list[RankingMethodStats]:
    """Rank by merge sort (greedy, calibrated, beam) and by Bradley and Terry's model, and compare.

    Nothing is asked: the questions are answered from `preferences`.

    Args:
        preferences: shape (N, N), see `auditor.metrics.preference`.
        people: shape (N,), people's scores of the items, larger is better; nan where unknown.
        shuffles: starting orders of the merge sort, and draws of pairs.
        seed: of both.
        beam: width of the beam search.

    Raises:
        ValueError: the preferences are not as said, or the people's scores are not N.
    """
    values = as_preferences(preferences)
    n = len(values)
    scores = np.full(n, np.nan) if human_scores is None else np.asarray(human_scores, dtype=float)
    if scores.shape != (n,):
        raise ValueError(f"people must have the shape ({n},), but got {scores.shape}")
    whole = bradley_terry_strengths(values)
    rng = np.random.default_rng(seed)
    starts = [rng.permutation(n).tolist() for _ in range(n_shuffles)]
    ways: dict[str, Callable[[list[int]], tuple[Floats, int, int]]] = {
        "PairS, greedy": lambda start: _rank_by_merge_sort(values, start),
        "PairS, greedy, calibrated": lambda start: _rank_by_merge_sort(values, start, calibrated=True),
        f"PairS, beam of {beam}": lambda start: _rank_by_merge_sort(values, start, beam=beam),
    }
    found = [_summarize_runs(name, [way(start) for start in starts], whole, scores) for name, way in ways.items()]
    for share in PAIR_SHARES:
        drawn = [_rank_random_pairs(values, share, rng) for _ in starts]
        found.append(_summarize_runs(f"{100 * share:.0f}% of pairs, Bradley–Terry", drawn, whole, scores))
    one = np.where(np.triu(np.ones((n, n), dtype=bool)), values, np.nan)
    both = [("all pairs, one order, Bradley–Terry", one), ("all pairs, both orders, Bradley–Terry", values)]
    return [
        *found,
        *(
            _summarize_runs(name, [_rank_by_strength(v, _count_questions(v, values))], whole, scores)
            for name, v in both
        ),
    ]


def bradley_terry_strengths(preferences: Floats) -> Floats:
    """Strength of each item by Bradley and Terry's model, shape (N,); nan where it has no comparison."""
    # Rounded, so that equal items stay equal: their estimates differ by rounding errors.
    return np.round(bradley_terry(comparisons_from_preferences(preferences), len(preferences)).strength, 9)


def _count_questions(asked_preferences: Floats, all_preferences: Floats) -> int:
    n = len(all_preferences)
    return n * (n - 1) if asked_preferences is all_preferences else n * (n - 1) // 2


def _rank_by_strength(preferences: Floats, n_calls: int) -> tuple[Floats, int, int]:
    return bradley_terry_strengths(preferences), n_calls, n_calls - int((~np.isnan(preferences)).sum())


def _rank_by_merge_sort(
    preferences: Floats, start: list[int], *, beam: int = 1, calibrated: bool = False
) -> tuple[Floats, int, int]:
    """Places as scores, larger is better, with the questions asked and those without an answer."""

    def answer(questions: list[PairQuestion]) -> list[float]:
        return [float(preferences[i, j]) for i, j in questions]

    found = run_ranking(rank_with_pairs(start, beam=beam, calibrated=calibrated), answer)
    scores = np.empty(len(preferences))
    scores[list(found.order)] = np.arange(len(preferences), 0, -1)
    return scores, found.asked, found.failed


def _rank_random_pairs(preferences: Floats, share: float, rng: np.random.Generator) -> tuple[Floats, int, int]:
    first, second = np.triu_indices(len(preferences), 1)
    kept = rng.permutation(len(first))[: max(1, round(share * len(first)))]
    turned = rng.random(len(kept)) < 0.5
    i, j = np.where(turned, second[kept], first[kept]), np.where(turned, first[kept], second[kept])
    part = np.full_like(preferences, np.nan)
    part[i, j] = preferences[i, j]
    return _rank_by_strength(part, len(kept))


def _summarize_runs(
    method: str, runs: list[tuple[Floats, int, int]], full_ranking: Floats, human_scores: Floats
) -> RankingMethodStats:
    scores, calls, failed = zip(*runs, strict=True)
    against = (
        _mean_of_defined(_spearman_rhos(scores, full_ranking)),
        _mean_of_defined(_spearman_rhos(scores, human_scores)),
    )
    return RankingMethodStats(method, float(np.mean(calls)), *against, float(np.mean(failed)))


def _spearman_rhos(scores: tuple[Floats, ...], truth: Floats) -> Iterator[float]:
    for one in scores:
        r = spearman(one, truth).r
        yield np.nan if r is None else r


def _mean_of_defined(values: Iterator[float]) -> float:
    known = [v for v in values if v == v]
    return float(np.mean(known)) if known else float("nan")
