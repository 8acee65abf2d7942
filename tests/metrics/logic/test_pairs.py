"""Rankings from recorded answers are those of asking question by question, and of the published algorithm."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray
from scipy.stats import spearmanr

from auditor.metrics.logic.pairs import PairQuestion, PairsRanking, rank_with_pairs, replay_pairs, run_ranking

Judge = Callable[[list[PairQuestion]], list[float]]
RNG = np.random.default_rng(5)


def judge_of(strength: Sequence[float], seed: int | None = None, bias: float = 0.0) -> Judge:
    """Prefers the stronger item: always, or, with a seed, as a Bradley-Terry judge that says its probabilities."""
    noise: dict[frozenset[int], float] = {}
    rng = np.random.default_rng(seed)

    def answer(questions: list[PairQuestion]) -> list[float]:
        if seed is None:
            return [float(strength[i] > strength[j]) for i, j in questions]
        shifts = [noise.setdefault(frozenset(q), rng.normal(0, 1.5)) * (1 if q[0] < q[1] else -1) for q in questions]
        gaps = [strength[i] - strength[j] + bias for i, j in questions]
        return [1 / (1 + math.exp(-(gap + shift))) for gap, shift in zip(gaps, shifts, strict=True)]

    return answer


@given(st.permutations(range(23)), st.integers(0, 23), st.sampled_from([1, 4]), st.booleans())
def test_a_sure_judge_gets_its_own_order(items: list[int], n: int, beam: int, calibrated: bool) -> None:
    ranking = run_ranking(rank_with_pairs(items[:n], beam=beam, calibrated=calibrated), judge_of(range(23)))
    assert list(ranking.order) == sorted(items[:n], reverse=True)
    assert ranking.complete


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("calibrated", [False, True])
def test_a_hundred_items_need_few_questions(seed: int, calibrated: bool) -> None:
    strength = np.random.default_rng(seed).permutation(100)
    ranking = run_ranking(rank_with_pairs(range(100), calibrated=calibrated), judge_of(list(strength), seed))
    assert ranking.asked <= 1.1 * 100 * math.log2(100) * (2 if calibrated else 1)


def test_no_question_is_asked_twice_and_batches_are_wide() -> None:
    seen: list[PairQuestion] = []
    sizes: list[int] = []
    judge = judge_of(list(np.random.default_rng(0).normal(0, 1, 62)), seed=1)

    def watch(questions: list[PairQuestion]) -> list[float]:
        assert questions
        seen.extend(questions)
        sizes.append(len(questions))
        return judge(questions)

    ranking = run_ranking(rank_with_pairs(range(62), beam=5, uncertainty=0.5), watch)
    assert len(seen) == ranking.asked == len({frozenset(question) for question in seen})
    assert max(sizes) >= 30


def test_stopped_and_started_again_it_asks_only_what_is_new() -> None:
    judge = judge_of(list(np.random.default_rng(3).normal(0, 1, 30)), seed=2)
    uninterrupted = run_ranking(rank_with_pairs(range(30), beam=3), judge)
    ledger: dict[PairQuestion, float] = {}
    first = rank_with_pairs(range(30), beam=3)
    questions = next(first)
    for _ in range(7):
        ledger.update(zip(questions, answers := judge(questions), strict=True))
        questions = first.send(answers)
    first.close()
    n_new_questions = 0

    def from_ledger(questions: list[PairQuestion]) -> list[float]:
        nonlocal n_new_questions
        new = [question for question in questions if question not in ledger]
        ledger.update(zip(new, judge(new), strict=True))
        n_new_questions += len(new)
        return [ledger[question] for question in questions]

    already = len(ledger)
    assert run_ranking(rank_with_pairs(range(30), beam=3), from_ledger) == uninterrupted
    assert n_new_questions == uninterrupted.asked - already


def test_a_beam_ranks_better_than_greed_with_an_unsure_judge() -> None:
    strength = np.random.default_rng(0).normal(0, 1, 64)
    gains = []
    for seed in range(8):
        rho = []
        for beam in (1, 8):
            judge = judge_of(list(strength), seed)
            order = run_ranking(rank_with_pairs(range(64), beam=beam, uncertainty=0.4), judge).order
            rho.append(spearmanr(np.argsort(order), -strength).statistic)
        gains.append(rho[1] - rho[0])
    assert np.mean(gains) > 0


def test_a_worked_beam() -> None:
    # Runs (0, 1) and (2, 3) and their merges: 2 first (.55), then 3 before 0 (.6) makes 2 3 0 1 = .33, the greedy way;
    # 0 first (.45), then 1 before 2 (.95) makes 0 1 2 3 = .4275, the most probable of all.
    p = {(0, 1): 1.0, (2, 3): 1.0, (0, 2): 0.45, (0, 3): 0.4, (1, 2): 0.95, (1, 3): 0.5}

    def judge(questions: list[PairQuestion]) -> list[float]:
        return [p[question] for question in questions]

    assert run_ranking(rank_with_pairs(range(4)), judge).order == (2, 3, 0, 1)
    assert run_ranking(rank_with_pairs(range(4), beam=4, uncertainty=0.2), judge).order == (0, 1, 2, 3)
    assert run_ranking(rank_with_pairs(range(4), beam=4, uncertainty=0.01), judge).order == (2, 3, 0, 1)


def test_calibration_takes_out_a_preference_for_the_first_place() -> None:
    strength = list(np.random.default_rng(5).permutation(40) / 5)
    gained = []
    for calibrated in (False, True):
        judge = judge_of(strength, bias=3.0, seed=7)
        order = run_ranking(rank_with_pairs(range(40), calibrated=calibrated), judge).order
        gained.append(spearmanr(np.argsort(order), [-s for s in strength]).statistic)
    assert gained[1] > gained[0]


@pytest.mark.parametrize("budget", [0, 1, 37, 100, 10_000])
@pytest.mark.parametrize("calibrated", [False, True])
def test_a_budget_is_kept_and_all_items_are_ranked(budget: int, calibrated: bool) -> None:
    asked = 0
    judge = judge_of(range(50))

    def count(questions: list[PairQuestion]) -> list[float]:
        nonlocal asked
        asked += len(questions)
        return judge(questions)

    ranking = run_ranking(rank_with_pairs(range(50), budget=budget, calibrated=calibrated), count)
    assert asked == ranking.asked <= budget
    assert sorted(ranking.order) == list(range(50))
    assert ranking.complete == (budget == 10_000)


def test_failed_answers_are_counted_and_favour_no_half() -> None:
    ranking = run_ranking(rank_with_pairs(range(4)), lambda questions: [math.nan] * len(questions))
    # Halves (0, 1) and (2, 3), taken in turn.
    assert ranking == PairsRanking((0, 2, 1, 3), asked=5, failed=5, over_budget=0)
    # With both orders asked, one is enough.
    judge = judge_of(range(8))
    half = run_ranking(
        rank_with_pairs(range(8), calibrated=True),
        lambda questions: [p if i < j else math.nan for (i, j), p in zip(questions, judge(questions), strict=True)],
    )
    assert half.order == (7, 6, 5, 4, 3, 2, 1, 0)
    assert half.failed == half.asked // 2
    assert not half.complete


def test_wrong_arguments_and_answers_are_named() -> None:
    with pytest.raises(ValueError, match="distinct"):
        rank_with_pairs([1, 1])
    with pytest.raises(ValueError, match="beam"):
        rank_with_pairs([1, 2], beam=0)
    with pytest.raises(ValueError, match="1 questions need 1 answers, but got 2"):
        run_ranking(rank_with_pairs([1, 2]), lambda questions: [0.5, 0.5])
    with pytest.raises(ValueError, match="probabilities"):
        run_ranking(rank_with_pairs([1, 2]), lambda questions: [7.0])


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
