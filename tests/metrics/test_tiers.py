"""Tiers: models that differ are told apart, equal ones share a tier, and ranks hold their intervals."""

from __future__ import annotations

import numpy as np
import pytest

from auditor.metrics.bootstrap import MAE, PEARSON
from auditor.metrics.jackknife import paired_jackknife
from auditor.metrics.tiers import model_tiers

COUNTRIES, TOPICS = np.repeat(np.arange(25), 10), np.tile(np.arange(10), 25)


def scores(rng: np.random.Generator, truth: np.ndarray, noise: float) -> np.ndarray:
    return np.asarray(truth + rng.normal(0, noise, truth.size), dtype=np.float64)


@pytest.mark.parametrize("statistic", [PEARSON, MAE], ids=["r", "mae"])
def test_clear_differences_are_tiers_of_their_own(statistic: object) -> None:
    rng = np.random.default_rng(0)
    truth = rng.uniform(-1, 1, 250)
    models = [scores(rng, truth, noise) for noise in (0.9, 0.1, 0.4)]
    tiers = model_tiers(
        PEARSON if statistic is PEARSON else MAE,
        models, truth, COUNTRIES, TOPICS, larger_is_better=statistic is PEARSON, replicates=500,
    )  # fmt: skip
    assert tiers.tiers is not None
    assert tiers.tiers.tolist() == [3, 1, 2]
    assert tiers.rank_low is not None
    assert tiers.rank_high is not None
    assert (tiers.rank_low.tolist(), tiers.rank_high.tolist()) == ([3, 1, 2], [3, 1, 2])
    assert tiers.share_best is not None
    assert tiers.share_best[1] == 1.0


def test_equal_models_seldom_get_tiers_of_their_own() -> None:
    split = 0
    for seed in range(25):
        rng = np.random.default_rng(seed)
        truth = rng.uniform(-1, 1, 250)
        models = [scores(rng, truth, 0.3) for _ in range(4)]
        tiers = model_tiers(MAE, models, truth, COUNTRIES, TOPICS, larger_is_better=False, replicates=300, seed=seed)
        assert tiers.tiers is not None
        split += int(tiers.tiers.max() > 1)
        assert tiers.share_best is not None
        assert tiers.share_best.sum() == pytest.approx(1)
    assert split <= 5  # the best of four is picked by luck, so a little above 5% is to be expected


def test_of_two_models_it_is_the_paired_interval() -> None:
    rng = np.random.default_rng(2)
    truth = rng.uniform(-1, 1, 250)
    for noise in (0.3, 0.33, 0.36, 0.45):
        one, other = scores(rng, truth, 0.3), scores(rng, truth, noise)
        p = paired_jackknife(MAE, one, other, truth, COUNTRIES, TOPICS).p_value
        tiers = model_tiers(MAE, [one, other], truth, COUNTRIES, TOPICS, larger_is_better=False, replicates=400, seed=5)
        assert p is not None
        assert tiers.tiers is not None
        assert (tiers.tiers.max() == 2) == (p < 0.05)


def test_the_interval_of_a_rank_holds_the_true_rank_though_the_ranks_are_close() -> None:
    """Five models whose errors grow by little: the true order is known, the found one is often another."""
    held = wrong = 0
    for seed in range(40):
        rng = np.random.default_rng(100 + seed)
        truth = rng.uniform(-1, 1, 250)
        models = [scores(rng, truth, 0.3 + 0.01 * i) for i in range(5)]
        tiers = model_tiers(MAE, models, truth, COUNTRIES, TOPICS, larger_is_better=False, replicates=50)
        assert tiers.rank_low is not None
        assert tiers.rank_high is not None
        wrong += int((np.argsort(tiers.values) != np.arange(5)).any())
        held += int(((tiers.rank_low <= np.arange(1, 6)) & (np.arange(1, 6) <= tiers.rank_high)).sum())
    assert wrong > 20
    assert held >= 0.95 * 200


def test_models_that_differ_the_same_in_every_cell_are_apart_and_equal_ones_are_not() -> None:
    truth = np.random.default_rng(4).uniform(-0.5, 0.5, 250)
    models = [truth + 0.1, truth + 0.3, truth + 0.1]
    tiers = model_tiers(MAE, models, truth, COUNTRIES, TOPICS, larger_is_better=False, replicates=50)
    assert tiers.tiers is not None
    assert tiers.tiers.tolist() == [1, 2, 1]
    assert tiers.share_best is not None
    assert tiers.share_best.tolist() == [0.5, 0.0, 0.5]  # twins share what neither has before the other
    assert tiers.rank_low is not None
    assert tiers.rank_high is not None
    assert (tiers.rank_low.tolist(), tiers.rank_high.tolist()) == ([1, 3, 1], [2, 3, 2])


def test_a_noisy_model_is_not_called_worse_for_standing_behind_one_that_is() -> None:
    rng = np.random.default_rng(6)
    truth = rng.uniform(-0.5, 0.5, 250)
    off = 0.235 + rng.choice([-0.2, 0.2], 25)[COUNTRIES]
    models = [truth + 0.199, truth + 0.219, truth + off]
    tiers = model_tiers(MAE, models, truth, COUNTRIES, TOPICS, larger_is_better=False, replicates=50)
    p = paired_jackknife(MAE, models[0], models[2], truth, COUNTRIES, TOPICS).p_value
    assert tiers.values[2] > tiers.values[1] > tiers.values[0]
    assert p is not None
    assert p > 0.05
    assert tiers.tiers is not None
    assert tiers.tiers.tolist() == [1, 2, 1]


def test_only_cells_that_all_have_count_and_want_is_named() -> None:
    rng = np.random.default_rng(1)
    truth = rng.uniform(-1, 1, 250)
    one, other = scores(rng, truth, 0.1), scores(rng, truth, 0.2)
    one[:30] = np.nan
    tiers = model_tiers(MAE, [one, other], truth, COUNTRIES, TOPICS, larger_is_better=False, replicates=200)
    assert tiers.n_cells == 220
    few = model_tiers(MAE, [one[:30], other[:30]], truth[:30], COUNTRIES[:30], TOPICS[:30], larger_is_better=False)
    assert few.tiers is None
    assert "no cell" in str(few.reason)
    few = model_tiers(MAE, [one[30:60]], truth[30:60], COUNTRIES[30:60], TOPICS[30:60], larger_is_better=False)
    assert "5 countries" in str(few.reason)
    assert not np.isnan(few.values[0])
