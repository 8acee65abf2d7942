"""Transitivity over sets: complete and partial graphs, over sets and pooled."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from auditor.metrics.intervals.items import AVERAGINGS
from auditor.metrics.logic.consistency import JudgeAnswers
from auditor.metrics.logic.transitivity import estimate_transitivity, transitivity

N = 12


def answered(preferences: np.ndarray, name: str = "", asked: np.ndarray | None = None) -> JudgeAnswers:
    """Answers of one judge, all asked unless said otherwise."""
    was_asked = np.ones(preferences.shape, dtype=bool) if asked is None else asked
    return JudgeAnswers(
        preferences, 1 - preferences, np.stack([was_asked] * 2), np.empty((0, 0)), preferences, set_name=name
    )


def tournament(wins: list[tuple[int, int]], n: int) -> np.ndarray:
    """Preferences of (winner, loser) in both orders; nan for all other pairs."""
    values = np.full((n, n), np.nan)
    for winner, loser in wins:
        values[winner, loser], values[loser, winner] = 1.0, 0.0
    return values


def random_answers(rng: np.random.Generator, n: int = N) -> np.ndarray:
    upper = np.triu(rng.integers(0, 2, (n, n)).astype(float), 1)
    return np.where(np.tri(n, k=-1) == 1, 1 - upper.T, upper)


def test_a_set_that_is_one_cycle_of_five_has_a_figure() -> None:
    """Figure 2(d) of the paper: only 5 of 10 pairs are compared, and they are a cycle."""
    five_cycle = tournament([(i, (i + 1) % 5) for i in range(5)], 5)
    one = answered(five_cycle, asked=~np.isnan(five_cycle))
    graph = nx.DiGraph([(i, (i + 1) % 5) for i in range(5)])
    for k, is_acyclic in ((5, 0.0), (4, 1.0), (3, 1.0)):
        figures = estimate_transitivity([one], k)
        for partial in figures.partial.values():
            assert (partial.value, partial.pairs_present, partial.answered_subsets) == (is_acyclic, 0.5, 0.0)
        assert figures.complete["pooled"].value is None
        assert "decision on every pair" in str(figures.complete["pooled"].reason)
        assert (figures.n_decided, figures.n_tied, figures.n_lost) == (5, 0, 0)
    assert not nx.is_directed_acyclic_graph(graph)
    assert all(nx.is_directed_acyclic_graph(graph.subgraph(set(range(5)) - {left})) for left in range(5))


def test_the_partial_figure_is_that_of_the_paper_for_one_set() -> None:
    rng = np.random.default_rng(2)
    wins = random_answers(rng, 9)
    wins[np.triu(rng.random((9, 9)) < 0.4, 1)] = np.nan
    wins[np.isnan(wins).T] = np.nan
    for k in (3, 4, 5):
        figure = estimate_transitivity([answered(wins)], k, calibrated=True).partial["pooled"]
        assert figure.value == transitivity(wins, k, calibrated=True).value


def test_instances_are_the_mean_over_sets() -> None:
    small, large = tournament([(0, 1), (1, 2), (2, 0)], 3), random_answers(np.random.default_rng(0))
    figures = estimate_transitivity([answered(small, "small"), answered(large, "large")], 3)
    of_large = transitivity(large, 3)
    assert of_large.value is not None
    assert figures.complete["instances"].value == pytest.approx((0.0 + of_large.value) / 2, abs=1e-12)
    n = of_large.n
    assert figures.complete["pooled"].value == pytest.approx(of_large.value * n / (n + 1), abs=1e-12)
    assert (figures.complete["instances"].n, figures.complete["pooled"].n) == (2, n + 1)


def test_a_tie_makes_a_subset_partial() -> None:
    values = tournament([(0, 1), (1, 2), (2, 3), (3, 0)], 4)
    values[[0, 2, 1, 3], [2, 0, 3, 1]] = 0.5
    of_three, of_four = (estimate_transitivity([answered(values)], k) for k in (3, 4))
    assert (of_four.partial["pooled"].value, of_three.partial["pooled"].value) == (0.0, 1.0)
    assert (of_four.complete["pooled"].value, of_four.complete["pooled"].ties) == (None, 1)
    assert of_four.partial["pooled"].answered_subsets == 1.0
    assert (of_four.n_decided, of_four.n_tied) == (4, 2)


def test_what_was_not_answered_does_not_make_transitive() -> None:
    """Of answers drawn by lot a quarter of the triples go in circles, however few of them came back."""
    rng = np.random.default_rng(3)
    answer_sets = []
    for _ in range(60):
        wins = random_answers(rng)
        lost = np.triu(rng.random((N, N)) < 0.6, 1)
        wins[lost | lost.T] = np.nan
        answer_sets.append(answered(wins))
    figures = estimate_transitivity(answer_sets, 3)
    assert figures.complete["pooled"].value == pytest.approx(0.75, abs=0.03)
    assert figures.complete["pooled"].lost > 0
    partial = figures.partial["pooled"]
    assert partial.value is not None
    assert partial.value > 0.95
    assert partial.pairs_present == pytest.approx(0.4, abs=0.02)


def test_a_judge_that_only_goes_by_place_is_not_transitive() -> None:
    answer_sets = [answered(np.ones((N, N)), f"set {i}") for i in range(10)]
    figures = estimate_transitivity(answer_sets, 3)
    assert figures.complete["pooled"].value == pytest.approx(0.75, abs=0.05)
    averaged = estimate_transitivity(answer_sets, 3, calibrated=True)
    assert averaged.complete["pooled"].value is None
    assert (averaged.n_decided, averaged.n_tied) == (0, 10 * N * (N - 1) // 2)


def test_why_there_is_no_figure() -> None:
    too_small, undecided = answered(np.triu(np.ones((4, 4)), 1)), answered(np.full((6, 6), 0.5))
    unanswered = answered(np.full((6, 6), np.nan))
    for sets, of_complete, of_partial in (
        ([too_small], "the largest set has 4 items, fewer than K = 5", "the largest set has 4 items, fewer than K = 5"),
        ([too_small, unanswered], "no set has 5 items with a decision on every pair", "no pair is decided"),
        ([undecided], "no set has 5 items with a decision on every pair", "no pair is decided"),
    ):
        figures = estimate_transitivity(sets, 5)
        for averaged in AVERAGINGS:
            assert figures.complete[averaged].reason == of_complete
            assert figures.partial[averaged].reason == of_partial


def test_sampled_subsets_have_a_margin() -> None:
    rng = np.random.default_rng(5)
    answer_sets = [answered(random_answers(rng), f"set {i}") for i in range(6)]
    assert estimate_transitivity(answer_sets, 4).margin["pooled"] == 0.0
    sampled = estimate_transitivity(answer_sets, 4, max_subsets=100)
    assert sampled.complete["pooled"].n == 600
    assert 0.03 < sampled.margin["pooled"] < 0.05
    with pytest.raises(ValueError, match="k must be at least 3"):
        estimate_transitivity(answer_sets, 2)


def test_transitivity_under_noise_is_covered_over_items() -> None:
    """One set: three pairs, each reversed with probability 0.1, make a cycle in two of their eight outcomes."""
    rng = np.random.default_rng(0)
    truth = 1 - (0.9**2 * 0.1 + 0.9 * 0.1**2)
    order = (np.arange(N)[:, None] < np.arange(N)[None, :]).astype(float)
    covered = 0
    for _ in range(100):
        upper = np.triu(np.where(rng.random((N, N)) < 0.1, 1 - order, order), 1)
        figure = estimate_transitivity([answered(upper + np.tril(1 - upper.T, -1))], 3).complete["pooled"]
        assert figure.resampled == ("item",)
        assert figure.ci_low is not None
        assert figure.ci_high is not None
        covered += figure.ci_low <= truth <= figure.ci_high
    assert covered >= 92
