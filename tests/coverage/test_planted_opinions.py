"""Planted models of opinions: each is recognized by the figure that names its fault, and by no other.

On these audits of 30 countries and 15 topics a model that always answers with the mean has as good a correlation and as
small an error of means as one that samples people perfectly: that is why there are figures of distributions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

from auditor.metrics import (
    MAE,
    PEARSON,
    SKILL,
    VARIANCE_RATIO,
    CellShares,
    crossed_jackknife,
    cut_variance,
    equal_answers,
    mean_of_orders,
    mean_sampling_floor,
    order_effect,
    share_variance,
    squared_distance,
    variance_of_orders,
    wasserstein,
    world_baseline,
)
from auditor.metrics.people.alignment import Statistic, TwoWayEstimate
from benchmarks.coverage.worlds.design import Design
from benchmarks.coverage.worlds.opinion_worlds import (
    N_ANSWERS,
    N_PEOPLE,
    PLANTS,
    POINTS,
    OpinionSample,
    OpinionWorld,
    measure_opinion_truth,
)
from tests.coverage.small_population import small_population  # noqa: F401 - a fixture
from tests.support.known import known

DESIGN = Design(30, 15)


@dataclass(frozen=True, eq=False)
class Audit:
    """One simulated audit of a planted model."""

    sample: OpinionSample
    squared: np.ndarray
    """Squared distances of the model from people."""
    baseline: np.ndarray
    """The same of the other countries' mean shares."""

    @property
    def model(self) -> np.ndarray:
        """The model's shares over both orders."""
        return mean_of_orders(self.sample.up, self.sample.down)[0]

    def estimate(self, statistic: Statistic, first: np.ndarray, second: np.ndarray) -> TwoWayEstimate:
        """A statistic over countries and topics."""
        return crossed_jackknife(statistic, first, second, self.sample.country, self.sample.topic)

    @property
    def skill(self) -> float:
        """Against the mean shares of the other countries."""
        return self.estimate(SKILL, self.squared, self.baseline).value or 0.0

    @property
    def variance_ratio(self) -> float:
        """Of the model's answers and people's."""
        model = variance_of_orders(self.sample.up, self.sample.down, POINTS)
        return self.estimate(VARIANCE_RATIO, model, share_variance(self.sample.people, POINTS, N_PEOPLE)).value or 0.0


@cache
def audit(plant: str) -> Audit:
    """Measure a planted model; "world" draws from the mean shares of the other countries."""
    rng = np.random.default_rng(7)
    sample = OpinionWorld("perfect" if plant == "world" else plant).draw(DESIGN, rng)
    variances = cut_variance(sample.people, N_PEOPLE)
    guess = world_baseline(CellShares(sample.people, variances, sample.country, sample.topic))
    if plant == "world":
        up, down = (rng.multinomial(N_ANSWERS // 2, guess.shares).astype(float) for _ in range(2))
        sample = OpinionSample(sample.country, sample.topic, sample.people, up, down, {})
    model, model_variance = mean_of_orders(sample.up, sample.down)
    return Audit(
        sample,
        squared_distance(sample.people, model, POINTS, variances, model_variance),
        squared_distance(sample.people, guess.shares, POINTS, variances, guess.cut_variances),
    )


def test_a_perfect_model_is_within_its_floor_and_has_a_skill_of_1() -> None:
    perfect = audit("perfect")
    assert abs(perfect.squared.mean()) < 4 * perfect.squared.std() / 450**0.5
    assert perfect.skill == pytest.approx(1, abs=0.05)
    assert perfect.variance_ratio == pytest.approx(1, abs=0.08)
    distance = wasserstein(perfect.sample.people, perfect.model, POINTS).mean()
    floor = mean_sampling_floor(perfect.sample.people, POINTS, N_PEOPLE, N_ANSWERS, perfect.sample.country)
    assert 0.95 * known(floor.ci_low) < distance < 1.05 * known(floor.ci_high)
    assert distance > 0.05, "without the floor a perfect model would seem wrong"


def test_a_model_that_answers_with_the_mean_has_good_means_and_no_diversity() -> None:
    perfect, collapsed = audit("perfect"), audit("collapsed")
    assert collapsed.variance_ratio < 0.01
    assert equal_answers(collapsed.sample.up + collapsed.sample.down).mean() == 1
    assert equal_answers(perfect.sample.up + perfect.sample.down).mean() < 0.2
    assert collapsed.skill < 0.3
    for statistic, better in ((PEARSON, 1), (MAE, -1)):
        figures = [
            statistic_of.estimate(statistic, statistic_of.model @ POINTS, statistic_of.sample.people @ POINTS).value
            for statistic_of in (collapsed, perfect)
        ]
        assert better * ((figures[0] or 0) - (figures[1] or 0)) > 0


@pytest.mark.parametrize("plant", ["sharpened", "uniform", "order-biased", "reversed scale"])
def test_the_variance_ratio_and_the_shift_are_the_planted_ones(plant: str) -> None:
    planted = audit(plant)
    truths = measure_opinion_truth(plant, "gaussian")
    assert planted.variance_ratio == pytest.approx(truths["variance ratio"], abs=0.2 * truths["variance ratio"])
    shift = order_effect(planted.sample.up, planted.sample.down, POINTS).shift
    assert abs(shift.mean() - truths["order shift"]) < 4 * shift.std() / 450**0.5
    assert truths["order shift"] == pytest.approx(0.15 if plant == "order-biased" else 0)


def test_the_world_has_no_skill_against_itself_and_uniform_answers_have_less() -> None:
    assert audit("world").skill == pytest.approx(0, abs=0.1)
    assert audit("uniform").skill < -1
    assert audit("reversed scale").skill < -1
    assert 0 < audit("sharpened").skill < 0.95


def test_a_reversed_scale_is_a_correlation_below_0() -> None:
    reversed_scale = audit("reversed scale")
    r = reversed_scale.estimate(PEARSON, reversed_scale.model @ POINTS, reversed_scale.sample.people @ POINTS)
    assert (r.value or 0) < -0.8
    assert reversed_scale.variance_ratio == pytest.approx(1, abs=0.08)


def test_every_plant_is_tested() -> None:
    assert set(PLANTS) == {"perfect", "collapsed", "sharpened", "uniform", "order-biased", "reversed scale"}
