"""What ranking by few comparisons costs and loses: PairS beside all pairs, on one judge's recorded answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics.correlation import spearman
from auditor.metrics.pairs_ranking import Question, drive, pairs
from auditor.metrics.preference import as_preferences
from auditor.metrics.ranking import bradley_terry, comparisons_of

Floats = NDArray[np.float64]

BUDGETS = (0.1, 0.25, 0.5)
"""Shares of all pairs, drawn at random, that Bradley and Terry's model is also given."""


class RankPoint(NamedTuple):
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


def rank_study(
    preferences: ArrayLike, people: ArrayLike | None = None, shuffles: int = 10, seed: int = 0, beam: int = 5
) -> list[RankPoint]:
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
    scores = np.full(n, np.nan) if people is None else np.asarray(people, dtype=float)
    if scores.shape != (n,):
        raise ValueError(f"people must have the shape ({n},), but got {scores.shape}")
    whole = strengths(values)
    rng = np.random.default_rng(seed)
    starts = [rng.permutation(n).tolist() for _ in range(shuffles)]
    ways: dict[str, Callable[[list[int]], tuple[Floats, int, int]]] = {
        "PairS, greedy": lambda start: _sorted(values, start),
        "PairS, greedy, calibrated": lambda start: _sorted(values, start, calibrated=True),
        f"PairS, beam of {beam}": lambda start: _sorted(values, start, beam=beam),
    }
    found = [_point(name, [way(start) for start in starts], whole, scores) for name, way in ways.items()]
    for share in BUDGETS:
        drawn = [_some_pairs(values, share, rng) for _ in starts]
        found.append(_point(f"{100 * share:.0f}% of pairs, Bradley–Terry", drawn, whole, scores))
    one = np.where(np.triu(np.ones((n, n), dtype=bool)), values, np.nan)
    both = [("all pairs, one order, Bradley–Terry", one), ("all pairs, both orders, Bradley–Terry", values)]
    return [*found, *(_point(name, [_ranked(v, _asked(v, values))], whole, scores) for name, v in both)]


def strengths(preferences: Floats) -> Floats:
    """Strength of each item by Bradley and Terry's model, shape (N,); nan where it has no comparison."""
    # Rounded, so that equal items stay equal: their estimates differ by rounding errors.
    return np.round(bradley_terry(comparisons_of(preferences), len(preferences)).strength, 9)


def _asked(part: Floats, whole: Floats) -> int:
    n = len(whole)
    return n * (n - 1) if part is whole else n * (n - 1) // 2


def _ranked(values: Floats, calls: int) -> tuple[Floats, int, int]:
    return strengths(values), calls, calls - int((~np.isnan(values)).sum())


def _sorted(values: Floats, start: list[int], *, beam: int = 1, calibrated: bool = False) -> tuple[Floats, int, int]:
    """Places as scores, larger is better, with the questions asked and those without an answer."""

    def answer(questions: list[Question]) -> list[float]:
        return [float(values[i, j]) for i, j in questions]

    found = drive(pairs(start, beam=beam, calibrated=calibrated), answer)
    scores = np.empty(len(values))
    scores[list(found.order)] = np.arange(len(values), 0, -1)
    return scores, found.asked, found.failed


def _some_pairs(values: Floats, share: float, rng: np.random.Generator) -> tuple[Floats, int, int]:
    first, second = np.triu_indices(len(values), 1)
    kept = rng.permutation(len(first))[: max(1, round(share * len(first)))]
    turned = rng.random(len(kept)) < 0.5
    i, j = np.where(turned, second[kept], first[kept]), np.where(turned, first[kept], second[kept])
    part = np.full_like(values, np.nan)
    part[i, j] = values[i, j]
    return _ranked(part, len(kept))


def _point(name: str, runs: list[tuple[Floats, int, int]], whole: Floats, people: Floats) -> RankPoint:
    scores, calls, failed = zip(*runs, strict=True)
    against = (_mean(_rhos(scores, whole)), _mean(_rhos(scores, people)))
    return RankPoint(name, float(np.mean(calls)), *against, float(np.mean(failed)))


def _rhos(scores: tuple[Floats, ...], truth: Floats) -> Iterator[float]:
    for one in scores:
        r = spearman(one, truth).r
        yield np.nan if r is None else r


def _mean(values: Iterator[float]) -> float:
    known = [v for v in values if v == v]
    return float(np.mean(known)) if known else float("nan")
