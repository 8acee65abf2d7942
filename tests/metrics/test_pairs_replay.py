"""Rankings from recorded answers are those of the algorithm that asks question by question."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from auditor.metrics.pairs_ranking import PairQuestion, rank_with_pairs, run_ranking
from auditor.metrics.pairs_replay import replay_pairs

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


def test_wrong_arguments_are_refused() -> None:
    values = np.full((3, 3), 0.5)
    for starts in ([0, 1, 2], [[0, 1]], [[0, 1, 1]]):
        with pytest.raises(ValueError, match="permutations"):
            replay_pairs(values, starts)
    with pytest.raises(ValueError, match="beam"):
        replay_pairs(values, [[0, 1, 2]], beam=0)
    with pytest.raises(ValueError, match=r"must be in \[0, 1\]"):
        replay_pairs(values + 1, [[0, 1, 2]])
