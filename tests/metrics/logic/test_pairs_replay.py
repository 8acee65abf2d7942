"""Rankings from recorded answers are those of asking question by question, and of the published algorithm."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from auditor.metrics.logic.pairs import PairQuestion, rank_with_pairs, replay_pairs, run_ranking

RNG = np.random.default_rng(5)


def make_preferences(kind: str, n: int) -> NDArray[np.float64]:
    """Answers of a judge: probabilities, decisions with ties, or rounded probabilities with missing answers."""
    if kind == "decisions":
        return RNG.choice([0.0, 0.5, 1.0], size=(n, n))
    values = RNG.random((n, n))
    if kind == "missing":
        values = np.round(values, 1)
        values[RNG.random((n, n)) < 0.3] = np.nan
    return values


@pytest.mark.parametrize("kind", ["probabilities", "decisions", "missing"])
@pytest.mark.parametrize(("beam", "uncertainty"), [(1, 0.1), (2, 0.5), (5, 0.1), (5, 0.4)])
@pytest.mark.parametrize("calibrated", [False, True])
def test_order_and_questions_are_those_of_the_algorithm(
    kind: str, beam: int, uncertainty: float, calibrated: bool
) -> None:
    for n in (1, 2, 3, 5, 8, 11, 16):
        values = make_preferences(kind, n)
        starts = np.array([RNG.permutation(n) for _ in range(4)])
        replay = replay_pairs(values, starts, beam=beam, uncertainty=uncertainty, calibrated=calibrated)

        def answer(questions: list[PairQuestion], values: NDArray[np.float64] = values) -> list[float]:
            return [float(values[i, j]) for i, j in questions]

        for start, order, asked, failed in zip(starts, replay.orders, replay.asked, replay.failed, strict=True):
            algorithm = rank_with_pairs(start.tolist(), beam=beam, uncertainty=uncertainty, calibrated=calibrated)
            ranking = run_ranking(algorithm, answer)
            assert (tuple(order), asked, failed) == (ranking.order, ranking.asked, ranking.failed)


def rank_greedily(preferences: NDArray[np.float64], order: list[int], *, calibrated: bool) -> list[int]:
    """PairS-greedy as its authors' program writes it: recursion with the middle at (left + right) // 2."""
    if len(order) < 2:
        return order
    middle = len(order) // 2
    left = rank_greedily(preferences, order[:middle], calibrated=calibrated)
    right = rank_greedily(preferences, order[middle:], calibrated=calibrated)
    merged = []
    while left and right:
        i, j = left[0], right[0]
        p = (preferences[i, j] + 1 - preferences[j, i]) / 2 if calibrated else preferences[i, j]
        merged.append((left if p >= 0.5 else right).pop(0))
    return merged + left + right


@pytest.mark.parametrize("n", [2, 3, 6, 7, 10, 13, 16, 19])
@pytest.mark.parametrize("calibrated", [False, True])
def test_greedy_order_is_that_of_the_published_recursion(n: int, calibrated: bool) -> None:
    values = make_preferences("probabilities", n)
    starts = np.array([RNG.permutation(n) for _ in range(20)])
    expected = [rank_greedily(values, start.tolist(), calibrated=calibrated) for start in starts]
    assert replay_pairs(values, starts, calibrated=calibrated).orders.tolist() == expected


def rank_by_all_paths(preferences: NDArray[np.float64], order: list[int], uncertainty: float) -> list[int]:
    """The order with the most probable path of each merge, found by trying all of them."""
    if len(order) < 2:
        return order
    middle = len(order) // 2
    left = rank_by_all_paths(preferences, order[:middle], uncertainty)
    right = rank_by_all_paths(preferences, order[middle:], uncertainty)

    def extend(i: int, j: int) -> tuple[float, list[int]]:
        """The most probable path from a partial merge, and its items."""
        if i == len(left) or j == len(right):
            return 1.0, left[i:] + right[j:]
        p = preferences[left[i], right[j]]
        paths = []
        for item, probability, position in ((left[i], p, (i + 1, j)), (right[j], 1 - p, (i, j + 1))):
            if probability >= 0.5 or abs(p - 0.5) < uncertainty:
                path_probability, items = extend(*position)
                paths.append((probability * path_probability, [item, *items]))
        return max(paths)

    return extend(0, 0)[1]


@pytest.mark.parametrize("n", [4, 5, 7, 10, 12])
def test_a_wide_beam_finds_the_most_probable_order(n: int) -> None:
    values = make_preferences("probabilities", n)
    starts = np.array([RNG.permutation(n) for _ in range(10)])
    expected = [rank_by_all_paths(values, start.tolist(), 0.3) for start in starts]
    assert replay_pairs(values, starts, beam=50, uncertainty=0.3).orders.tolist() == expected


def test_wrong_arguments_are_refused() -> None:
    values = np.full((3, 3), 0.5)
    for starts in ([0, 1, 2], [[0, 1]], [[0, 1, 1]]):
        with pytest.raises(ValueError, match="permutations"):
            replay_pairs(values, starts)
    with pytest.raises(ValueError, match="beam"):
        replay_pairs(values, [[0, 1, 2]], beam=0)
    with pytest.raises(ValueError, match=r"must be in \[0, 1\]"):
        replay_pairs(values + 1, [[0, 1, 2]])
