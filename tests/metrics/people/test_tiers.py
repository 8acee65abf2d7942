"""Tiers: models that differ are told apart, equal ones share a tier, and ranks hold their intervals."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from auditor.metrics.people.alignment import MAE, PEARSON, Statistic
from auditor.metrics.people.tiers import ModelTiers, model_tiers
from tests.support.known import known

Floats = NDArray[np.float64]
COUNTRIES, TOPICS = np.repeat(np.arange(25), 10), np.tile(np.arange(10), 25)


def scores(rng: np.random.Generator, truth: Floats, noise: float) -> Floats:
    return np.asarray(truth + rng.normal(0, noise, truth.size), dtype=np.float64)


def simulate_audit(
    rng: np.random.Generator, n_countries: int, n_topics: int, factors: list[float], heavy_tails: bool = False
) -> tuple[list[Floats], Floats, NDArray[np.intp], NDArray[np.intp]]:
    """Scores of several models, the truth, countries and topics; errors are `factors` times equally distributed ones.

    Errors have effects of country, topic and cell, each model its own, and a smaller part in common.
    """

    def effects(*shape: int) -> Floats:
        return np.asarray(rng.standard_t(3, shape) / 3**0.5 if heavy_tails else rng.normal(size=shape))

    c, t = n_countries, n_topics
    truth = 0.25 * effects(c, 1) + 0.45 * effects(1, t) + 0.15 * effects(c, t)
    shared = 0.1 * effects(c, 1) + 0.15 * effects(1, t)
    models = []
    for factor in factors:
        error = 0.2 * effects(c, 1) + 0.3 * effects(1, t) + 0.2 * effects(c, t) + shared
        models.append((truth + factor * error).ravel())
    countries, topics = (index.ravel() for index in np.indices((c, t)))
    return models, truth.ravel(), countries, topics


def rank(statistic: Statistic, models: list[Floats], *world: NDArray[np.generic]) -> ModelTiers:
    return model_tiers(statistic, models, *world, larger_is_better=statistic is PEARSON)


@pytest.mark.parametrize("statistic", [PEARSON, MAE], ids=["r", "mae"])
def test_clear_differences_are_tiers_of_their_own(statistic: Statistic) -> None:
    rng = np.random.default_rng(0)
    truth = rng.uniform(-1, 1, 250)
    models = [scores(rng, truth, noise) for noise in (0.9, 0.1, 0.4)]
    tiers = rank(statistic, models, truth, COUNTRIES, TOPICS)
    assert known(tiers.tiers).tolist() == known(tiers.rank_low).tolist() == known(tiers.rank_high).tolist() == [3, 1, 2]
    assert known(tiers.may_be_best).tolist() == [False, True, False]


def test_differences_from_the_best_other_are_those_of_the_figures_and_end_at_zero_on_one_side() -> None:
    rng = np.random.default_rng(0)
    truth = rng.uniform(-1, 1, 250)
    models = [scores(rng, truth, noise) for noise in (0.9, 0.1, 0.4)]
    for statistic, figures in (
        (MAE, [np.abs(model - truth).mean() for model in models]),
        (PEARSON, [np.corrcoef(model, truth)[0, 1] for model in models]),
    ):
        tiers = rank(statistic, models, truth, COUNTRIES, TOPICS)
        assert tiers.from_best == pytest.approx(
            [figures[0] - figures[1], figures[1] - figures[2], figures[2] - figures[1]]
        )
        assert (known(tiers.from_best_low) <= known(tiers.from_best)).all()
        assert (known(tiers.from_best) <= known(tiers.from_best_high)).all()
        # The side of 0 towards the worse for the best model, towards the better for the others.
        ends_at_zero = [known(tiers.from_best_low), known(tiers.from_best_high)]
        better = 1 if statistic is PEARSON else 0
        assert [float(ends_at_zero[better if i != 1 else 1 - better][i]) for i in range(3)] == [0, 0, 0]


def test_of_two_models_it_is_the_paired_test_on_the_transformed_scale() -> None:
    rng = np.random.default_rng(2)
    n_apart = 0
    for noise in np.linspace(0.3, 0.4, 12):
        truth = rng.uniform(-1, 1, 250)
        one, other = scores(rng, truth, 0.3), scores(rng, truth, noise)
        errors = np.stack([np.abs(one - truth), np.abs(other - truth)]).reshape(2, 25, 10)
        without_country = np.log([[np.delete(e, i, 0).mean() for i in range(25)] for e in errors])
        without_topic = np.log([[np.delete(e, i, 1).mean() for i in range(10)] for e in errors])
        variance = sum(
            (d.size - 1) ** 2 / d.size * d.var(ddof=1)
            for d in (np.diff(without_country, axis=0), np.diff(without_topic, axis=0))
        )
        t = np.diff(np.log(errors.mean((1, 2))))[0] / variance**0.5
        tiers = rank(MAE, [one, other], truth, COUNTRIES, TOPICS)
        assert (known(tiers.tiers).max() == 2) == (2 * stats.t.sf(abs(t), 9) < 0.05)
        n_apart += known(tiers.tiers).max() == 2
    assert 2 <= n_apart <= 10


def test_models_that_differ_the_same_in_every_cell_are_apart_and_equal_ones_are_not() -> None:
    truth = np.random.default_rng(4).uniform(-0.5, 0.5, 250)
    models = [truth + 0.1, truth + 0.3, truth + 0.1]
    tiers = rank(MAE, models, truth, COUNTRIES, TOPICS)
    assert known(tiers.tiers).tolist() == [1, 2, 1]
    assert (known(tiers.rank_low).tolist(), known(tiers.rank_high).tolist()) == ([1, 3, 1], [2, 3, 2])
    assert known(tiers.may_be_best).tolist() == [True, False, True]
    assert tiers.from_best == pytest.approx([0.0, 0.2, 0.0])


def test_a_perfect_model_is_compared_though_its_logarithm_is_infinite() -> None:
    rng = np.random.default_rng(5)
    truth = rng.uniform(-0.5, 0.5, 250)
    for statistic in (MAE, PEARSON):
        tiers = rank(statistic, [truth, scores(rng, truth, 0.3)], truth, COUNTRIES, TOPICS)
        assert known(tiers.tiers).tolist() == [1, 2]


def test_a_noisy_model_is_not_called_worse_for_standing_behind_one_that_is() -> None:
    rng = np.random.default_rng(6)
    truth = rng.uniform(-0.5, 0.5, 250)
    off = 0.235 + rng.choice([-0.2, 0.2], 25)[COUNTRIES]
    tiers = rank(MAE, [truth + 0.199, truth + 0.219, truth + off], truth, COUNTRIES, TOPICS)
    assert tiers.values[2] > tiers.values[1] > tiers.values[0]
    assert known(tiers.tiers).tolist() == [1, 2, 1]


def test_only_cells_that_all_have_count_and_a_missing_comparison_has_its_reason() -> None:
    rng = np.random.default_rng(1)
    truth = rng.uniform(-1, 1, 250)
    one, other = scores(rng, truth, 0.1), scores(rng, truth, 0.2)
    one[:30] = np.nan
    assert rank(MAE, [one, other], truth, COUNTRIES, TOPICS).n_cells == 220
    none = rank(MAE, [one[:30], other[:30]], truth[:30], COUNTRIES[:30], TOPICS[:30])
    assert none.tiers is None
    assert "no cell" in str(none.reason)
    few = rank(MAE, [one[30:60], other[30:60]], truth[30:60], COUNTRIES[30:60], TOPICS[30:60])
    assert "5 countries" in str(few.reason)
    assert not np.isnan(few.values[0])
    constant = rank(PEARSON, [other, np.zeros(250)], truth, COUNTRIES, TOPICS)
    assert (constant.tiers, constant.reason) == (None, "the figure of a model is undefined")


def test_a_single_model_is_in_the_first_tier_without_a_comparison() -> None:
    truth = np.random.default_rng(1).uniform(-1, 1, 250)
    tiers = rank(MAE, [truth + 0.1], truth, COUNTRIES, TOPICS)
    assert known(tiers.tiers).tolist() == [1]
    assert tiers.from_best is None


def test_no_model_of_the_first_tier_is_called_worse_unless_one_is_the_best() -> None:
    n_contradictions = n_best = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        truth = rng.uniform(-1, 1, 120)
        models = [truth + 0.2 * rng.standard_normal(120) for _ in range(5)]
        tiers = rank(MAE, models, truth, np.repeat(np.arange(12), 10), np.tile(np.arange(10), 12))
        assert tiers.may_be_best is not None
        n_best += tiers.may_be_best.sum() == 1
        n_contradictions += bool(tiers.may_be_best.sum() > 1 and (~tiers.may_be_best[known(tiers.tiers) == 1]).any())
    assert n_contradictions == 0
    assert n_best <= 8


def test_rankings_that_hold_together_have_wider_intervals() -> None:
    models, *world = simulate_audit(np.random.default_rng(1), 12, 10, [0.5, 1.0, 1.0])
    single, together = (
        model_tiers(MAE, models, *world, larger_is_better=False, n_rankings=n_rankings) for n_rankings in (1, 4)
    )
    assert together.from_best == pytest.approx(single.from_best)
    assert known(together.from_best_high)[1] > known(single.from_best_high)[1]
