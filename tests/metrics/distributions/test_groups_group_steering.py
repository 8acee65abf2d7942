"""Naming groups: specificity, gain, coherence, and the variance within and between groups."""

from __future__ import annotations

import numpy as np
import pytest

from auditor.metrics import (
    coherence_distance,
    cut_variance,
    group_variances,
    specificity,
    squared_distance,
    steering_gain,
)

POINTS = np.linspace(-1, 1, 10)


def test_specificity_is_half_of_the_distances_to_the_other_group_less_those_to_the_group_itself() -> None:
    first, second, model_first, model_second = np.random.default_rng(0).dirichlet(np.ones(10), 4)

    def distance(people: np.ndarray, model: np.ndarray) -> float:
        variances = cut_variance(people, 50), cut_variance(model, 10)
        return float(squared_distance(people, model, POINTS, *variances))

    to_the_other_group = distance(second, model_first) + distance(first, model_second)
    expected = (to_the_other_group - distance(first, model_first) - distance(second, model_second)) / 2
    assert specificity((first, model_first), (second, model_second), POINTS) == pytest.approx(expected)


@pytest.mark.parametrize("factor", [1.6, 1.0, 0.4, 0.0, -1.0])
def test_the_sign_of_specificity_is_that_of_the_models_gap(factor: float) -> None:
    rng = np.random.default_rng(1)
    base = rng.dirichlet(np.full(10, 20), 300)
    tilt = 0.02 * np.linspace(-1, 1, 10)
    people = base + tilt, base - tilt
    model = base + factor * tilt, base - factor * tilt
    values = specificity((people[0], model[0]), (people[1], model[1]), POINTS)
    assert np.sign(np.round(values.mean(), 12)) == np.sign(factor)


def test_the_gain_is_less_what_an_irrelevant_attribute_gains() -> None:
    assert steering_gain(0.3, 0.1, 0.2, 0.2) == pytest.approx(0.2)
    assert steering_gain(0.3, 0.1, 0.2, 0.05) == pytest.approx(0.05)
    assert np.isnan(steering_gain(np.nan, 0.1, 0.2, 0.2))


def test_groups_that_add_up_to_the_country_are_coherent() -> None:
    groups = np.random.default_rng(2).dirichlet(np.ones(10), 3)
    weights = [30, 50, 20]
    country = np.array([0.3, 0.5, 0.2]) @ groups
    assert coherence_distance(groups, weights, country, POINTS) == pytest.approx(0)
    assert coherence_distance(groups, weights, groups[0], POINTS) > 0.01


def test_variances_within_and_between_groups_add_up_and_are_unbiased() -> None:
    rng = np.random.default_rng(3)
    groups, weights = rng.dirichlet(np.ones(10), 2), np.array([0.4, 0.6])
    within, between = group_variances(groups, weights, POINTS)
    answers = (weights[:, None] * groups).sum(axis=0)
    unit = (POINTS + 1) / 2
    assert within + between == pytest.approx(answers @ unit**2 - (answers @ unit) ** 2)
    sizes = np.array([20, 30])
    samples = np.stack([rng.multinomial(n, p, 20_000) for n, p in zip(sizes, groups, strict=True)], axis=1)
    sampled_within, sampled_between = group_variances(samples, np.tile(weights, (20_000, 1)), POINTS, sizes)
    assert sampled_within.mean() == pytest.approx(within, rel=0.02)
    assert abs(sampled_between.mean() - between) < 4 * sampled_between.std() / 20_000**0.5
