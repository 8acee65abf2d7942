"""The slope of gaps between groups: hand-computed, recovered from planted factors, and withheld where it is noise."""

from __future__ import annotations

import numpy as np
import pytest

from auditor.metrics import gap_reliability, gap_slope
from auditor.metrics.intervals.estimate import Estimate

COUNTRY, TOPIC = np.repeat(np.arange(40), 15), np.tile(np.arange(15), 40)
UNITS = {"country": COUNTRY, "topic": TOPIC}
NOISE = 0.05


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


@pytest.mark.parametrize("factor", [1.6, 1.0, 0.4, 0.0, -1.0])
@pytest.mark.parametrize("intercept", [False, True])
def test_planted_factors_are_recovered(factor: float, intercept: bool) -> None:
    slopes = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        gaps = draw_gaps(rng)
        errors = 0.02 * rng.normal(size=40)[COUNTRY] + 0.02 * rng.normal(size=600)
        slopes.append(measure(gaps, factor * gaps + errors, rng, intercept=intercept))
    values = np.array([slope.value for slope in slopes], dtype=float)
    assert abs(values.mean() - factor) < 4 * values.std() / 40**0.5 + 0.01
    covered = [(s.ci_low or 0) <= factor <= (s.ci_high or 0) for s in slopes]
    assert np.mean(covered) >= 0.85


def test_an_ordinary_slope_would_be_too_small() -> None:
    rng = np.random.default_rng(1)
    gaps = draw_gaps(rng, mean=0.0)
    people = gaps + NOISE * rng.normal(size=600)
    ordinary = gap_slope(people, gaps, np.zeros(600), UNITS).value
    corrected = gap_slope(people, gaps, np.full(600, NOISE**2), UNITS).value
    assert ordinary is not None
    assert ordinary < 0.85
    assert corrected == pytest.approx(1, abs=0.1)


def test_a_constant_gap_that_is_doubled_is_found_through_the_origin_only() -> None:
    rng = np.random.default_rng(2)
    constant = np.full(600, 0.2)
    doubled = measure(constant, 2 * constant, rng)
    assert doubled.value == pytest.approx(2, abs=0.05)
    assert doubled.ci_low is not None
    assert doubled.ci_low > 1.9
    withheld = measure(constant, 2 * constant, rng, intercept=True)
    assert withheld.value is None
    assert "below 0.3" in (withheld.reason or "")


def test_gaps_that_are_mostly_sampling_error_give_no_slope() -> None:
    rng = np.random.default_rng(3)
    slope = measure(np.zeros(600), rng.normal(size=600), rng)
    assert slope.value is None
    assert slope.reason is not None
    assert slope.reason.startswith("the reliability of people’s gaps is 0.")
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
