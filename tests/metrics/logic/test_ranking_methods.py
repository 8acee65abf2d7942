from __future__ import annotations

import math

import numpy as np
import pytest

from auditor.metrics.intervals.correlation import spearman
from auditor.metrics.logic.pairs import rank_with_pairs, run_ranking
from auditor.metrics.logic.ranking_methods import compare_ranking_methods


def answers(n: int, sharpness: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = rng.permutation(n).astype(float)
    p = (1 + np.tanh(sharpness / 2 * (truth[:, None] - truth[None, :]))) / 2
    wins = (rng.random((n, n)) < p).astype(float)
    np.fill_diagonal(wins, np.nan)
    return wins, truth


def test_a_judge_without_faults_is_ranked_right_in_few_calls() -> None:
    n = 100
    wins, truth = answers(n, 1000.0)
    points = {p.method: p for p in compare_ranking_methods(wins, truth, n_starts=1, n_draws=1)}
    for name, point in points.items():
        if "%" not in name:
            assert point.rho_people == pytest.approx(1.0)
            assert point.rho_all == pytest.approx(1.0)
        assert point.failed == 0
    assert points["PairS, greedy"].calls <= 1.1 * n * math.log2(n)
    assert points["PairS, greedy, calibrated"].calls <= 2 * 1.1 * n * math.log2(n)
    assert points["all pairs, both orders, Bradley–Terry"].calls == n * (n - 1)


def test_a_noisy_judge_is_ranked_worse_by_fewer_calls() -> None:
    wins, truth = answers(30, 0.2)
    points = {p.method: p for p in compare_ranking_methods(wins, truth)}
    rho_of_all_pairs = points["all pairs, both orders, Bradley–Terry"].rho_people
    assert rho_of_all_pairs > points["PairS, greedy"].rho_people > 0.5
    assert rho_of_all_pairs > points["10% of pairs, Bradley–Terry"].rho_people


def test_missing_answers_are_counted_and_nothing_is_made_of_nothing() -> None:
    wins, truth = answers(8, 10.0)
    wins[2, :] = np.nan
    assert compare_ranking_methods(wins, truth)[0].failed > 0
    for undecided in (0.5, np.nan):
        for point in compare_ranking_methods(np.full((5, 5), undecided), np.arange(5.0)):
            assert math.isnan(point.rho_all)
            assert math.isnan(point.rho_people)
    with pytest.raises(ValueError, match="shape"):
        compare_ranking_methods(wins, truth[:3])


def test_a_judge_that_names_a_position_is_right_by_no_method() -> None:
    # Items are often listed by their merit: naming the item shown first must not rank them as people do.
    for point in compare_ranking_methods(np.ones((12, 12)), np.arange(12.0)):
        assert math.isnan(point.rho_people) or abs(point.rho_people) < 0.4
    points = {point.method: point for point in compare_ranking_methods(np.ones((12, 12)), np.arange(12.0))}
    assert math.isnan(points["PairS, greedy, calibrated"].rho_people)  # both orders together decide nothing


def test_means_over_starting_orders_are_those_of_single_rankings() -> None:
    wins, truth = answers(9, 0.3, seed=2)
    truth[[1, 4]] = truth[0], np.nan
    stats = {p.method: p for p in compare_ranking_methods(wins, truth, n_starts=30, seed=4)}
    rng = np.random.default_rng(4)
    rhos = []
    for start in [rng.permutation(9).tolist() for _ in range(30)]:
        order = run_ranking(rank_with_pairs(start), lambda questions: [float(wins[i, j]) for i, j in questions]).order
        places = np.empty(9)
        places[list(order)] = np.arange(9, 0, -1)
        rhos.append(spearman(places, truth).value or 0.0)
    assert stats["PairS, greedy"].rho_people == pytest.approx(np.mean(rhos))
    assert (stats["PairS, greedy"].runs, stats["25% of pairs, Bradley–Terry"].runs) == (30, 10)
