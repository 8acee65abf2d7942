"""Components of variance against analysis of variance by hand and by formula, and the power that is planned."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from auditor.metrics.intervals.two_way import paired_jackknife
from auditor.metrics.intervals.variance_components import (
    Design,
    VarianceComponents,
    cheapest_for_half_error,
    detectable_difference,
    estimate_components,
    influence_values,
    language_variance,
    sampling_part,
    sizes_for_half_error,
)
from auditor.metrics.people.alignment import BIAS, MAE, PEARSON, RMSE, Statistic
from tests.support.known import known


def separate(*arguments: Any) -> VarianceComponents:
    """The components of values of which they can be separated."""
    components = known(estimate_components(*arguments))
    return components


def test_a_balanced_table_has_the_components_of_the_analysis_of_variance() -> None:
    rng = np.random.default_rng(0)
    table = rng.normal(size=(7, 1)) + 2 * rng.normal(size=(1, 5)) + 0.5 * rng.normal(size=(7, 5))
    countries, topics = (index.ravel() for index in np.indices(table.shape))
    components = separate(table.ravel(), countries, topics)
    rows, columns, mean = table.mean(1, keepdims=True), table.mean(0, keepdims=True), table.mean()
    mean_squares = (
        5 * ((rows - mean) ** 2).sum() / 6,
        7 * ((columns - mean) ** 2).sum() / 4,
        ((table - rows - columns + mean) ** 2).sum() / 24,
    )
    assert components.cell == pytest.approx(mean_squares[2])
    assert components.country == pytest.approx((mean_squares[0] - mean_squares[2]) / 5)
    assert components.topic == pytest.approx((mean_squares[1] - mean_squares[2]) / 7)
    assert (components.sample, components.negative) == (0.0, ())


def test_two_by_two_by_hand() -> None:
    """Values 0, 2, 4, 10: mean squares 36 of countries, 16 of topics, 4 of the rest."""
    components = separate(np.array([0.0, 2, 4, 10]), [0, 0, 1, 1], [0, 1, 0, 1])
    assert (components.country, components.topic, components.cell) == pytest.approx((16, 6, 4))
    variance = components.variance(Design(2, 2, 1))
    assert variance == pytest.approx(16 / 2 + 6 / 2 + 4 / 4)


def test_the_components_of_samples_and_of_unbalanced_tables_are_recovered() -> None:
    rng = np.random.default_rng(1)
    estimates = []
    for _ in range(150):
        effects = 0.2 * rng.normal(size=(20, 1)) + 0.3 * rng.normal(size=(1, 10)) + 0.2 * rng.normal(size=(20, 10))
        samples = effects[..., None] + 0.25 * rng.normal(size=(20, 10, 4))
        countries, topics = (index.ravel() for index in np.indices((20, 10)))
        has_cell = rng.random(200) < 0.8
        components = separate(
            samples.mean(2).ravel()[has_cell], countries[has_cell], topics[has_cell],
            (samples.var(2, ddof=1) / 4).ravel()[has_cell], 4,
        )  # fmt: skip
        estimates.append((components.country, components.topic, components.cell, components.sample))
    assert np.mean(estimates, axis=0) == pytest.approx([0.04, 0.09, 0.04, 0.0625], rel=0.12)


def test_a_negative_estimate_is_set_to_zero_and_named() -> None:
    table = np.array([[1.0, -1], [-1, 1]])
    components = separate(table.ravel(), [0, 0, 1, 1], [0, 1, 0, 1])
    assert (components.country, components.topic, components.negative) == (0.0, 0.0, ("country", "topic"))


@pytest.mark.parametrize("statistic", [BIAS, MAE, PEARSON])
def test_influence_values_follow_the_figure(statistic: Statistic) -> None:
    rng = np.random.default_rng(2)
    truth = rng.normal(size=300)
    scores = truth + rng.normal(0.2, 0.7, 300)
    values, slopes = influence_values(statistic, scores, truth)
    total = statistic.moments(scores, truth).sum(axis=0)[None]
    assert values.mean() == pytest.approx(statistic.value(total)[0])
    # The jackknife's variance over cells is that of the mean of the influence values.
    without = statistic.value(total - statistic.moments(scores, truth))
    assert values.var(ddof=1) / 300 == pytest.approx(299 / 300 * ((without - without.mean()) ** 2).sum(), rel=0.02)
    step = 1e-5
    for i in (3, 77):
        moved = scores.copy()
        moved[i] += step
        figure = statistic.value(statistic.moments(moved, truth).sum(axis=0)[None])[0]
        assert (figure - values.mean()) / step == pytest.approx(slopes[i] / 300, abs=1e-5)
    with pytest.raises(ValueError, match="influence values"):
        influence_values(RMSE, scores, truth)


def draw_scores(
    rng: np.random.Generator, error: np.ndarray, noise: float, n_samples: int
) -> tuple[np.ndarray, np.ndarray]:
    """Mean scores of cells over samples, and the estimated variances of these means; people's scores are 0."""
    samples = error[:, None] + rng.normal(0, noise * n_samples**0.5, (len(error), n_samples))
    return samples.mean(axis=1), samples.var(axis=1, ddof=1) / n_samples


ERRORS_AND_NOISE = [
    (0.0, 0.15, 0.1),
    (0.0, 0.05, 0.1),
    (0.0, 0.0, 0.3),
    (0.3, 0.05, 0.05),
    (0.1, 0.05, 0.1),
    (0.2, 0.0, 0.1),
]


@pytest.mark.parametrize("n_samples", [2, 5])
@pytest.mark.parametrize(("bias", "spread", "noise"), ERRORS_AND_NOISE)
def test_the_sampling_part_of_a_mean_absolute_error_is_about_what_more_samples_would_remove(
    bias: float, spread: float, noise: float, n_samples: int
) -> None:
    """Around 0, noise also makes absolute errors larger, so that more samples remove less of their variance."""
    rng = np.random.default_rng(3)
    error = rng.normal(bias, spread, 40_000)
    scores, variances = draw_scores(rng, error, noise, n_samples)
    expected = np.abs(scores).var() - np.abs(error).var()
    part = sampling_part(MAE, scores, np.zeros(len(error)), variances).mean()
    assert 0.6 < part / expected < 1.35


@pytest.mark.parametrize(("bias", "spread", "noise"), [(0.0, 0.15, 0.1), (0.0, 0.05, 0.1), (0.3, 0.05, 0.05)])
def test_the_sampling_part_is_exact_for_normal_errors_around_0_and_for_errors_larger_than_noise(
    bias: float, spread: float, noise: float
) -> None:
    rng = np.random.default_rng(3)
    error = rng.normal(bias, spread, 40_000)
    scores = error + rng.normal(0, noise, len(error))
    part = sampling_part(MAE, scores, np.zeros(len(error)), np.full(len(error), noise**2))
    expected = np.abs(scores).var() - np.abs(error).var()
    assert part.mean() == pytest.approx(expected, rel=0.05)


def test_cells_whose_error_is_exactly_0_have_a_sampling_part() -> None:
    """Scores of few values: an error of 0 has no slope, but its noise is as large as that of others."""
    scores = np.tile([-0.5, 0.0, 0.0, 0.5], 10)
    part = sampling_part(MAE, scores, np.zeros(40), np.full(40, 0.125)).mean()
    assert part >= (1 - 2 / np.pi) * 0.125
    assert part <= np.abs(scores).var()


@pytest.mark.parametrize("statistic", [BIAS, MAE, PEARSON])
def test_constant_answers_have_no_sampling_part(statistic: Statistic) -> None:
    truth = np.linspace(-0.5, 0.5, 12)
    assert not sampling_part(statistic, truth**2, truth, np.zeros(12)).any()


def test_the_sampling_part_of_one_cell_is_that_of_its_noise() -> None:
    [part] = sampling_part(MAE, np.array([0.5]), np.array([0.0]), np.array([0.01]))
    assert part == pytest.approx(0.01, rel=1e-4)


def test_the_choice_of_languages_adds_its_variance_over_their_number() -> None:
    rng = np.random.default_rng(5)
    truth = rng.normal(size=200)
    variances = []
    for _ in range(1500):
        shifts = 0.2 * rng.normal(size=(3, 1))
        variances.append(language_variance(BIAS, truth + shifts + 0.3 * rng.normal(size=(3, 200)), truth))
    assert np.mean(variances) == pytest.approx(0.04 / 3, rel=0.1)
    same = [language_variance(BIAS, truth + 0.3 * rng.normal(size=(3, 200)), truth) for _ in range(50)]
    assert np.mean(same) < 0.0002
    components = VarianceComponents(0.0, 0.0, 0.01, 0.0, language=0.5)
    assert set(sizes_for_half_error(components, Design(10, 10, 1)).values()) == {None}


def test_sizes_for_half_the_error_solve_the_equation() -> None:
    components, design = VarianceComponents(0.002, 0.09, 0.01, 0.04), Design(40, 10, 2)
    sizes = sizes_for_half_error(components, design)
    assert sizes["sample"] is None
    assert sizes["country"] is None
    target = components.variance(design) / 4
    assert components.variance(Design(40, known(sizes["topic"]), 2)) <= target
    assert components.variance(Design(40, known(sizes["topic"]) - 1, 2)) > target
    assert cheapest_for_half_error(sizes, design) == "topic"
    noisy = VarianceComponents(0.0001, 0.0001, 0.01, 1.0)
    sizes = sizes_for_half_error(noisy, design)
    assert None not in sizes.values()
    assert cheapest_for_half_error(sizes, design) in ("topic", "country")  # they also average out what is in cells
    both = VarianceComponents(0.04, 0.09, 0.0, 0.0)
    assert cheapest_for_half_error(sizes_for_half_error(both, Design(20, 20, 2)), Design(20, 20, 2)) is None


def test_the_detectable_difference_is_found_with_80_percent_power() -> None:
    rng = np.random.default_rng(3)
    countries, topics = (index.ravel() for index in np.indices((20, 10)))

    def error() -> np.ndarray:
        return np.asarray(
            0.2 * rng.normal(size=(20, 1)) + 0.3 * rng.normal(size=(1, 10)) + 0.2 * rng.normal(size=(20, 10))
        ).ravel()

    components = VarianceComponents(2 * 0.04, 2 * 0.09, 2 * 0.04, 0.0)  # of the difference of two such errors
    difference = detectable_difference(components, Design(20, 10, 1))
    truth = np.zeros(200)
    p_values = [
        paired_jackknife(BIAS, error() + difference, error(), truth, countries, topics).p_value or 0.0
        for _ in range(300)
    ]
    power = float(np.mean(np.array(p_values) < 0.05))
    low, high = (float(stats.binom.ppf(level, 300, 0.8)) / 300 for level in (0.001, 0.999))
    assert low <= power <= high
    assert detectable_difference(components, Design(40, 20, 1)) < 0.8 * difference
    assert detectable_difference(VarianceComponents(0, 0, 0, 0), Design(20, 10, 1)) == 0.0


def test_components_that_cannot_be_separated_are_none() -> None:
    """Each country has one topic only: its effect and that of its cell are the same."""
    values = np.random.default_rng(0).normal(size=12)
    countries = np.arange(12)
    assert estimate_components(values, countries, countries % 6) is None
    assert estimate_components(values, countries % 6, countries) is None
