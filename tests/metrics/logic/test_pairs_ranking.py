from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.stats import spearmanr

from auditor.metrics.logic.pairs import PairQuestion, PairsRanking, rank_with_pairs, run_ranking

Judge = Callable[[list[PairQuestion]], list[float]]


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
    for seed in range(12):
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
