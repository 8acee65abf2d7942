"""Correction for people's sampling error: simulated extrapolation, Spearman's formula, coverage, degenerate tables."""

from __future__ import annotations

import numpy as np
import pytest

from auditor.metrics.intervals.two_way import crossed_jackknife
from auditor.metrics.people.alignment import CONCORDANCE, MAE, PEARSON
from auditor.metrics.people.survey_error import correct_for_survey_error, extrapolate_absolute, sampling_floor_of_mae

COUNTRIES, TOPICS = (index.ravel() for index in np.indices((12, 10)))


def draw_world(rng: np.random.Generator, error_sd: float = 0.15) -> tuple[np.ndarray, ...]:
    """People's population scores, those of a sample of 15 to 1,500 respondents, a model's, and the standard errors."""
    effects = 0.3 * rng.normal(size=(12, 1)) + 0.3 * rng.normal(size=(1, 10)) + 0.15 * rng.normal(size=(12, 10))
    population = np.clip(effects - 0.2, -0.95, 0.95)
    n = np.exp(rng.uniform(np.log(15), np.log(1500), size=(12, 1)))
    error = np.sqrt(0.6 * (1 - population**2) / n)
    sampled = population + error * rng.normal(size=error.shape)
    model = population + error_sd * rng.normal(size=error.shape)
    return tuple(values.ravel() for values in (population, sampled, model, error))


def test_the_extrapolation_is_that_of_simulated_error() -> None:
    """Cook and Stefanski's procedure with 400,000 draws in place of the folded normal."""
    rng = np.random.default_rng(0)
    differences, errors = np.array([0.0, 0.05, -0.2, 0.6]), np.array([0.1, 0.1, 0.05, 0.0])
    multiples = np.array([0.0, 0.5, 1.0, 1.5, 2.0])
    noise = rng.normal(size=(400_000, 1))
    means = np.stack([np.abs(differences + m**0.5 * errors * noise).mean(axis=0) for m in multiples])
    expected = [np.polyval(np.polyfit(multiples, column, 3), -1.0) for column in means.T]
    assert extrapolate_absolute(differences, errors) == pytest.approx(expected, abs=0.004)
    assert extrapolate_absolute([0.3, -0.3], [0.0, 0.0]) == pytest.approx([0.3, 0.3])


def test_correlations_are_corrected_by_spearmans_formula() -> None:
    _, sampled, model, error = draw_world(np.random.default_rng(1))
    result = correct_for_survey_error(model, sampled, error, COUNTRIES, TOPICS)
    reliability = 1 - (error**2).mean() / sampled.var(ddof=1)
    assert result.pearson_r.value == pytest.approx(np.corrcoef(model, sampled)[0, 1] / reliability**0.5)
    covariance = ((model - model.mean()) * (sampled - sampled.mean())).mean()
    denominator = model.var() + reliability * sampled.var() + (model.mean() - sampled.mean()) ** 2
    assert result.concordance.value == pytest.approx(2 * covariance / denominator)
    assert result.rmse.value == pytest.approx(((model - sampled) ** 2 - error**2).mean() ** 0.5)


def test_without_error_the_figures_are_the_raw_ones() -> None:
    _, sampled, model, _ = draw_world(np.random.default_rng(2))
    result = correct_for_survey_error(model, sampled, np.zeros(120), COUNTRIES, TOPICS)
    for figure, statistic in ((result.mae, MAE), (result.pearson_r, PEARSON), (result.concordance, CONCORDANCE)):
        raw = crossed_jackknife(statistic, model, sampled, COUNTRIES, TOPICS)
        assert figure.value == pytest.approx(raw.value)
        assert figure.n == raw.n


def test_corrected_intervals_cover_the_population_and_raw_ones_do_not() -> None:
    rng = np.random.default_rng(3)
    n_runs, raw, corrected = 60, 0, 0
    truth = 0.08 * (2 / np.pi) ** 0.5
    for _ in range(n_runs):
        _, sampled, model, error = draw_world(rng, error_sd=0.08)
        estimate = correct_for_survey_error(model, sampled, error, COUNTRIES, TOPICS).mae
        uncorrected = crossed_jackknife(MAE, model, sampled, COUNTRIES, TOPICS)
        raw += (uncorrected.ci_low or 0.0) <= truth <= (uncorrected.ci_high or 0.0)
        corrected += (estimate.ci_low or 0.0) <= truth <= (estimate.ci_high or 0.0)
    assert raw < 0.6 * n_runs
    assert corrected > 0.9 * n_runs


def test_errors_that_are_unknown_or_too_large_have_a_reason() -> None:
    _, sampled, model, error = draw_world(np.random.default_rng(4))
    unknown = correct_for_survey_error(model, sampled, np.full(120, np.nan), COUNTRIES, TOPICS)
    assert {unknown.mae.value, unknown.rmse.value, unknown.pearson_r.value, unknown.concordance.value} == {None}
    too_large = correct_for_survey_error(model, sampled, np.full(120, 2.0), COUNTRIES, TOPICS)
    assert too_large.rmse.value == 0.0
    assert "larger than the figure" in (too_large.pearson_r.reason or "")
    with pytest.raises(ValueError, match="below 0"):
        correct_for_survey_error(model, sampled, -error, COUNTRIES, TOPICS)


def test_the_floor_is_the_error_of_a_model_that_knows_the_population() -> None:
    rng = np.random.default_rng(5)
    worlds = [draw_world(rng) for _ in range(200)]
    maes = [np.abs(population - sampled).mean() for population, sampled, _, _ in worlds]
    floors = [sampling_floor_of_mae(error) for *_, error in worlds]
    assert np.mean(maes) == pytest.approx(np.mean(floors), rel=0.03)
    assert np.isnan(sampling_floor_of_mae([np.nan]))
