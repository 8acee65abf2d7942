"""The squared distance of cumulative shares: unbiased at any sample size, with hand-computed values."""

from __future__ import annotations

import numpy as np
import pytest

from auditor.metrics import ROOT_MEAN_DISTANCE, SKILL, crossed_jackknife, cut_variance, mean_of_orders, squared_distance

POINTS = np.linspace(-1, 1, 10)


def test_hand_computed_values() -> None:
    assert squared_distance([1, 0, 0], [0, 0, 1], [0, 1, 2], 0.0) == pytest.approx(1)
    assert squared_distance([1, 0, 0], [0.5, 0.5, 0], [0, 1, 4], 0.0) == pytest.approx(0.25 / 4)
    assert cut_variance([0.5, 0.25, 0.25], 5) == pytest.approx([0.25 / 4, 0.1875 / 4])
    shares, variances = mean_of_orders([2, 2], [4, 0])
    assert shares == pytest.approx([0.75, 0.25])
    assert variances == pytest.approx([0.25 / 3 / 4])


def test_the_variance_of_one_answer_is_unknown_and_that_of_stated_shares_0() -> None:
    assert np.isnan(cut_variance([1, 0], 1)).all()
    assert cut_variance([0.4, 0.6], np.inf) == pytest.approx([0])


@pytest.mark.parametrize("m", [4, 10, 40])
def test_samples_of_one_distribution_have_a_mean_distance_of_0(m: int) -> None:
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(10))
    people = rng.multinomial(300, p, 20_000) / 300
    model, variances = mean_of_orders(*(rng.multinomial(m // 2, p, 20_000) for _ in range(2)))
    distances = squared_distance(people, model, POINTS, cut_variance(people, 300), variances)
    assert abs(distances.mean()) < 4 * distances.std() / 20_000**0.5
    assert (distances < 0).any()


def test_samples_of_two_distributions_have_the_distance_of_these_on_average() -> None:
    rng = np.random.default_rng(1)
    p, q = rng.dirichlet(np.ones(10), 2)
    people, model = rng.multinomial(200, p, 20_000) / 200, rng.multinomial(10, q, 20_000) / 10
    distances = squared_distance(people, model, POINTS, cut_variance(people, 200), cut_variance(model, 10))
    expected = squared_distance(p, q, POINTS, 0.0)
    assert abs(distances.mean() - expected) < 4 * distances.std() / 20_000**0.5


def test_skill_and_root_mean_are_those_of_the_sums() -> None:
    country, topic = np.repeat(np.arange(6), 6), np.tile(np.arange(6), 6)
    rng = np.random.default_rng(2)
    baseline = rng.uniform(0.5, 1, 36)
    model = baseline * rng.uniform(0.1, 0.3, 36)
    skill = crossed_jackknife(SKILL, model, baseline, country, topic)
    assert skill.value == pytest.approx(1 - model.sum() / baseline.sum())
    assert skill.ci_low is not None
    root = crossed_jackknife(ROOT_MEAN_DISTANCE, model, np.zeros(36), country, topic)
    assert root.value == pytest.approx(model.mean() ** 0.5)
    assert crossed_jackknife(ROOT_MEAN_DISTANCE, -model, np.zeros(36), country, topic).value == 0
    undefined = crossed_jackknife(SKILL, model, -baseline, country, topic)
    assert (undefined.value, undefined.reason) == (None, "too few cells, or no variation among them")
