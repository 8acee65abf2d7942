from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import pearsonr

from auditor.metrics.intervals.estimate import Floats
from auditor.metrics.intervals.missing_bounds import extreme_correlation_scores


def _draw_table(rng: np.random.Generator, n: int, n_lost: int, slope: float) -> tuple[Floats, Floats, Floats]:
    """Ranges of scores and the truth; of some cells a share of the samples is lost."""
    truth = rng.uniform(-1, 1, n)
    scores = np.clip(slope * truth + rng.normal(0, rng.uniform(0.1, 0.6), n), -1, 1)
    lost_share = np.zeros(n)
    lost_share[rng.choice(n, n_lost, replace=False)] = rng.choice([0.2, 0.4, 0.6, 1.0], n_lost)
    return scores * (1 - lost_share) - lost_share, scores * (1 - lost_share) + lost_share, truth


def _correlations_of_all_ends(low: Floats, high: Floats, truth: Floats) -> list[float]:
    """r with every combination of the ends of the ranges."""
    lost = np.flatnonzero(high > low)
    correlations = []
    for is_high in itertools.product((False, True), repeat=len(lost)):
        scores = low.copy()
        scores[lost[list(is_high)]] = high[lost[list(is_high)]]
        correlations.append(float(np.corrcoef(scores, truth)[0, 1]))
    return correlations


def _local_minimum(low: Floats, high: Floats, truth: Floats, sign: float, rng: np.random.Generator) -> float:
    """The smallest r (sign 1) or the largest (sign -1) that a general optimizer finds from several starts."""

    def signed_correlation(scores: Floats) -> float:
        return sign * float(np.corrcoef(scores, truth)[0, 1])

    bounds = list(zip(low, high, strict=True))
    results = [minimize(signed_correlation, rng.uniform(low, high), bounds=bounds).fun for _ in range(3)]
    return sign * float(min(results))


def test_extreme_scores_are_those_found_by_trying_all_ends_and_by_a_general_optimizer() -> None:
    rng = np.random.default_rng(0)
    n_at_ends = 0
    for i in range(100):
        low, high, truth = _draw_table(rng, int(rng.integers(6, 26)), int(rng.integers(1, 5)), rng.uniform(-1, 1))
        extreme = extreme_correlation_scores(low, high, truth)
        assert extreme is not None
        at_ends = _correlations_of_all_ends(low, high, truth)
        for scores, sign, best_end in ((extreme.lowest, 1.0, min(at_ends)), (extreme.highest, -1.0, max(at_ends))):
            assert ((low - 1e-12 <= scores) & (scores <= high + 1e-12)).all()
            r = float(pearsonr(scores, truth)[0])
            assert sign * r <= sign * best_end + 1e-9
            if sign * r > 0:  # then some ends are the optimum, so that the search above found it
                assert r == pytest.approx(best_end, abs=1e-9)
                n_at_ends += 1
            elif i < 10:
                assert sign * r <= sign * _local_minimum(low, high, truth, sign, rng) + 1e-7
    assert n_at_ends > 30


def test_no_scores_within_the_ranges_of_a_larger_table_have_a_more_extreme_r() -> None:
    rng = np.random.default_rng(1)
    low, high, truth = _draw_table(rng, 300, 60, 0.8)
    extreme = extreme_correlation_scores(low, high, truth)
    assert extreme is not None
    smallest, largest = (pearsonr(scores, truth)[0] for scores in extreme)
    assert 0 < smallest < largest < 1
    for _ in range(100):
        scores = np.where(rng.random(300) < rng.uniform(0, 1), low, high)
        assert smallest <= pearsonr(scores, truth)[0] <= largest
        assert smallest <= pearsonr(rng.uniform(low, high), truth)[0] <= largest
    # Changing any two scores to their other ends does not lower the smallest r either.
    lost = np.flatnonzero(high > low)
    for i, j in itertools.combinations(lost[:20], 2):
        changed = extreme.lowest.copy()
        changed[[i, j]] = (low + high - changed)[[i, j]]
        assert pearsonr(changed, truth)[0] >= smallest - 1e-6


def test_without_a_loss_both_are_the_scores() -> None:
    scores, truth = np.array([0.1, 0.5, -0.2, 0.9]), np.array([0.0, 0.4, 0.1, 0.7])
    extreme = extreme_correlation_scores(scores, scores, truth)
    assert extreme is not None
    assert extreme.lowest == pytest.approx(scores)
    assert extreme.highest == pytest.approx(scores)


def test_scores_that_could_all_be_equal_have_no_extremes() -> None:
    truth = np.array([0.0, 0.4, 0.1])
    assert extreme_correlation_scores([-1, 0.2, -1], [1, 0.2, 1], truth) is None
    assert extreme_correlation_scores([-1, 0.2, 0.3], [1, 0.2, 0.3], [0.5, 0.5, 0.5]) is None
