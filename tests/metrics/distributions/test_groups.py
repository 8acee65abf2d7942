"""Gaps between groups, and what naming a group changes: planted factors are recovered, noise is withheld."""

from __future__ import annotations

import numpy as np
import pytest

from auditor.metrics import (
    coherence_distance,
    cut_variance,
    gap_reliability,
    gap_slope,
    group_variances,
    specificity,
    squared_distance,
    steering_gain,
)
from auditor.metrics.distributions.groups import group_mean_difference
from auditor.metrics.intervals.estimate import Estimate
from tests.support.known import known

COUNTRY, TOPIC = np.repeat(np.arange(40), 15), np.tile(np.arange(15), 40)
UNITS = {"country": COUNTRY, "topic": TOPIC}
NOISE = 0.05
POINTS = np.linspace(-1, 1, 10)


def draw_gaps(rng: np.random.Generator, mean: float = 0.05) -> np.ndarray:
    """True gaps of people in each cell."""
    by_unit = 0.04 * rng.normal(size=40)[COUNTRY] + 0.06 * rng.normal(size=15)[TOPIC]
    gaps: np.ndarray = mean + by_unit + 0.03 * rng.normal(size=600)
    return gaps


def measure(true_gaps: np.ndarray, model: np.ndarray, rng: np.random.Generator, *, intercept: bool = False) -> Estimate:
    """The slope of a model on gaps that are measured with error."""
    people = true_gaps + NOISE * rng.normal(size=600)
    return gap_slope(people, model, np.full(600, NOISE**2), UNITS, intercept=intercept)


def test_without_error_it_is_the_least_squares_slope() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=600), rng.normal(size=600)
    assert gap_slope(x, y, np.zeros(600), UNITS).value == pytest.approx((x * y).sum() / (x**2).sum())
    slope = gap_slope(x, y, np.zeros(600), UNITS, intercept=True)
    assert slope.value == pytest.approx(np.polyfit(x, y, 1)[0])


def test_an_ordinary_slope_would_be_too_small() -> None:
    rng = np.random.default_rng(1)
    gaps = draw_gaps(rng, mean=0.0)
    people = gaps + NOISE * rng.normal(size=600)
    ordinary = gap_slope(people, gaps, np.zeros(600), UNITS).value
    corrected = gap_slope(people, gaps, np.full(600, NOISE**2), UNITS).value
    assert known(ordinary) < 0.85
    assert corrected == pytest.approx(1, abs=0.1)


def test_a_constant_gap_that_is_doubled_is_found_through_the_origin_only() -> None:
    rng = np.random.default_rng(2)
    constant = np.full(600, 0.2)
    doubled = measure(constant, 2 * constant, rng)
    assert doubled.value == pytest.approx(2, abs=0.05)
    assert known(doubled.ci_low) > 1.9
    withheld = measure(constant, 2 * constant, rng, intercept=True)
    assert withheld.value is None
    assert "below 0.3" in (withheld.reason or "")


def test_gaps_that_are_mostly_sampling_error_give_no_slope() -> None:
    rng = np.random.default_rng(3)
    slope = measure(np.zeros(600), rng.normal(size=600), rng)
    assert slope.value is None
    assert known(slope.reason).startswith("the reliability of people’s gaps is 0.")
    people = NOISE * rng.normal(size=600)
    assert gap_reliability(people, np.full(600, NOISE**2)) < 0.3
    assert gap_reliability(people, np.zeros(600)) == 1


def test_a_denominator_that_may_be_0_gives_no_slope() -> None:
    rng = np.random.default_rng(4)
    country, topic = np.repeat(np.arange(5), 5), np.tile(np.arange(5), 5)
    people = np.zeros(25)
    people[0] = 1.0  # one cell has all of the variation
    slope = gap_slope(people, rng.normal(size=25), np.full(25, 0.001), {"country": country, "topic": topic})
    assert slope.value is None
    assert slope.reason == "the interval of people’s gaps holds 0, so a slope is undetermined"


def test_degenerate_gaps_have_named_reasons() -> None:
    zeros = np.zeros(600)
    assert gap_slope(zeros, zeros, zeros, UNITS).reason == "people’s gaps do not vary"
    equal = zeros + 0.2  # around their mean they vary by rounding errors only
    flat = gap_slope(equal, equal, zeros, UNITS, intercept=True)
    assert (flat.value, flat.reason) == (None, "people’s gaps do not vary")
    assert (
        gap_slope(np.full(600, np.nan), zeros, zeros, UNITS).reason == "too few cells have the gaps of people and model"
    )
    assert np.isnan(gap_reliability(zeros, zeros))
    gaps = draw_gaps(np.random.default_rng(5))
    ignoring = gap_slope(gaps, zeros, zeros, UNITS)
    assert (ignoring.value, ignoring.ci_low) == (0, None)
    assert "the same whichever unit is left out" in (ignoring.reason or "")
    few = gap_slope([0.1, 0.2], [0.1, 0.2], [0, 0], {"country": ["A", "B"], "topic": ["x", "y"]})
    assert few.value == pytest.approx(1)
    assert "at least 5 countries and 5 topics" in (few.reason or "")
    with pytest.raises(ValueError, match="at least 0"):
        gap_slope(gaps, gaps, -np.ones(600), UNITS)


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


@pytest.mark.parametrize(
    ("n_first", "resampled"), [(1, ("question",)), (2, ("question",)), (3, ("country", "question"))]
)
def test_a_group_of_fewer_than_three_countries_is_compared_for_these_countries_only(
    n_first: int, resampled: tuple[str, ...]
) -> None:
    country = np.repeat(np.arange(12), 8)
    values = np.random.default_rng(0).normal(0.5, 0.1, 96)
    units = {"country": country, "question": np.arange(96)}
    assert group_mean_difference(values, country >= n_first, units, bounds=(-2, 2)).resampled == resampled
