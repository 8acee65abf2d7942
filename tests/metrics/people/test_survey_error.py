"""Correction for people's sampling error, few samples and range: published formulas, coverage, degenerate tables."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import ArrayLike
from scipy import stats

from auditor.metrics.intervals.correlation import pearson
from auditor.metrics.intervals.two_way import crossed_jackknife, gap_jackknife
from auditor.metrics.people.alignment import CONCORDANCE, MAE, PEARSON
from auditor.metrics.people.survey_error import (
    CorrectedCorrelation,
    correct_for_survey_error,
    correct_range,
    crossed_corrected,
    extrapolate_absolute,
    range_corrected_gap,
    sampling_floor_of_mae,
)
from tests.support.known import known
from tests.support.two_way_tables import World

COUNTRIES, TOPICS = (index.ravel() for index in np.indices((12, 10)))
TRUE_R = 0.7
COUNTRY_BLOCKS, TOPIC_BLOCKS = np.repeat(np.arange(12), 10), np.tile(np.arange(10), 12)


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


def world(rng: np.random.Generator, cells: int, k: int, noise: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """What people say, shape (cells,), and samples of a model whose own leaning has r = 0.7 with it."""
    truth = rng.normal(size=cells)
    model_scores = TRUE_R * truth + np.sqrt(1 - TRUE_R**2) * rng.normal(size=cells)
    spread = noise * rng.uniform(0.5, 1.5, (cells, 1))
    return truth, model_scores[:, None] + spread * rng.normal(size=(cells, k))


def correct(scores: ArrayLike, truth: ArrayLike, variances: ArrayLike, sizes: ArrayLike) -> CorrectedCorrelation:
    """The correction with cells of one topic in as many countries, for which there is no interval."""
    n_cells = len(np.asarray(scores))
    return crossed_corrected(scores, truth, variances, sizes, np.arange(n_cells), np.zeros(n_cells))


def corrected(truth: np.ndarray, samples: np.ndarray) -> CorrectedCorrelation:
    n = np.full(len(samples), samples.shape[1])
    return correct(samples.mean(axis=1), truth, samples.var(axis=1, ddof=1), n)


def test_reliability_is_that_of_the_analysis_of_variance() -> None:
    truth, samples = world(np.random.default_rng(1), 40, 5)
    corrected_r = corrected(truth, samples)
    f = stats.f_oneway(*samples).statistic
    assert corrected_r.reliability == pytest.approx(1 - 1 / f)
    r = stats.pearsonr(samples.mean(axis=1), truth).statistic
    assert corrected_r.value == pytest.approx(r / np.sqrt(1 - 1 / f))


@pytest.mark.parametrize("k", [3, 10])
def test_attenuation_is_corrected_to_the_true_r(k: int) -> None:
    rng, runs = np.random.default_rng(k), 400
    corrected_rs = [corrected(*world(rng, 250, k, noise=1.0)) for _ in range(runs)]
    raw = [pearson(s.mean(axis=1), t).value or 0 for t, s in (world(rng, 250, k, noise=1.0) for _ in range(50))]
    values = np.array([f.value for f in corrected_rs], dtype=float)
    assert values.mean() == pytest.approx(TRUE_R, abs=0.006)
    assert np.mean(raw) < TRUE_R - 0.02


def test_no_noise_changes_nothing_and_one_sample_has_the_noise_of_the_others() -> None:
    truth, samples = world(np.random.default_rng(2), 60, 4)
    means, zeros = samples.mean(axis=1), np.zeros(60)
    assert correct(means, truth, zeros, np.full(60, 4)).value == pytest.approx(pearson(means, truth).value)
    variances, sizes = np.full(60, 0.2), np.full(60, 4)
    some = np.where(np.arange(60) < 20, np.nan, variances)
    singles = np.where(np.arange(60) < 20, 1, 4)
    by_hand = 1 - (20 * 0.2 + 40 * 0.05) / 60 / means.var(ddof=1)
    assert correct(means, truth, some, singles).reliability == pytest.approx(by_hand)
    assert correct(means, truth, variances, sizes).reliability == pytest.approx(1 - 0.05 / means.var(ddof=1))


@pytest.mark.parametrize(
    ("scores", "variances", "reason"),
    [
        ([0.1, 0.2, 0.3], [0.1] * 3, "fewer than 4 cells"),
        ([0.5] * 5, [0.1] * 5, "x constant"),
        ([0.1, 0.2, 0.4, 0.3, 0.6], [np.nan] * 5, "no cell has two samples"),
        ([0.1, 0.2, 0.4, 0.3, 0.6], [9.0] * 5, "no variance beyond sampling noise"),
        ([0.1, 0.2, 0.3, 0.4, 0.55], [0.05] * 5, "correlation is above 1"),
    ],
)
def test_what_cannot_be_corrected_is_named(scores: list[float], variances: list[float], reason: str) -> None:
    truth = np.arange(len(scores)) / 10
    corrected_r = correct(scores, truth, variances, [3] * len(scores))
    assert (corrected_r.value, corrected_r.n) == (None, len(scores))
    assert reason in (corrected_r.reason or "")
    labels = [str(i) for i in range(len(scores))]
    two_way = crossed_corrected(scores, truth, variances, [3] * len(scores), labels, labels)
    assert (two_way.value, two_way.ci_low) == (None, None)
    assert reason in (two_way.reason or "")


def test_shapes_that_differ_and_infinite_noise_are_refused() -> None:
    with pytest.raises(ValueError, match="variances and samples must have the shape"):
        correct([1, 2, 3, 4], [1, 2, 3, 4], [1, 2], [3] * 4)
    with pytest.raises(ValueError, match="one is infinite"):
        correct([1, 2, 3, 4], [1, 2, 3, 4], [np.inf] * 4, [3] * 4)


def test_over_countries_and_topics_it_is_the_same_figure_with_a_wider_interval_than_fishers() -> None:
    w = World(4, 20, 12)
    noise = np.full(w.truth.size, 0.05)
    sizes = np.full(w.truth.size, 5)
    narrow = pearson(w.first, w.truth)
    wide = crossed_corrected(w.first, w.truth, noise, sizes, w.countries, w.topics)
    assert wide.value == pytest.approx(correct(w.first, w.truth, noise, sizes).value)
    assert known(wide.ci_high) - known(wide.ci_low) > 1.5 * (known(narrow.ci_high) - known(narrow.ci_low))


def draw_unequal_range(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """People's scores vary four times as much in the first six countries; the model's errors are alike everywhere."""
    rng = np.random.default_rng(seed)
    spread = np.r_[np.full(6, 0.45), np.full(6, 0.12)][:, None]
    effects = 0.6 * rng.normal(size=(12, 1)) + 0.6 * rng.normal(size=(1, 10)) + 0.5 * rng.normal(size=(12, 10))
    people = np.clip(spread * effects, -0.95, 0.95)
    return np.clip(people + 0.15 * rng.normal(size=people.shape), -1, 1).ravel(), people.ravel()


def test_range_is_corrected_as_thorndikes_case_2() -> None:
    # The example of R's psych::rangeCorrection: r = 0.33, standard deviations 100.32 and 48.19.
    assert correct_range(0.33, 100.32 / 48.19) == pytest.approx(0.59, abs=0.005)
    assert correct_range([0.5, -0.5, 1.0], 1.0) == pytest.approx([0.5, -0.5, 1.0])
    assert correct_range(0.5, 2.0) == pytest.approx(1 / (1 + 0.25 * 3) ** 0.5)


def test_figures_are_those_of_regressions_by_hand() -> None:
    scores, people = draw_unequal_range(0)
    second = COUNTRY_BLOCKS >= 6
    result = range_corrected_gap(scores, people, COUNTRY_BLOCKS, TOPIC_BLOCKS, second)
    target = (people[second].var() + people[~second].var()) / 2
    for group, mask in ((result.first, ~second), (result.second, second)):
        slope, intercept = np.polyfit(people[mask], scores[mask], 1)
        residual_sd = (scores[mask] - slope * people[mask] - intercept).std()
        assert group.slope.value == pytest.approx(slope)
        assert group.residual_sd.value == pytest.approx(residual_sd)
        assert group.corrected_r.value == pytest.approx((1 + residual_sd**2 / (slope**2 * target)) ** -0.5)
        assert group.corrected_r.n == 60


def test_a_gap_that_is_only_range_disappears() -> None:
    """With equal errors the raw gap in r excludes 0 in nearly all audits, the corrected one and that in MAE rarely."""
    n_runs, raw, corrected, mae = 60, 0, 0, 0
    for seed in range(n_runs):
        scores, people = draw_unequal_range(seed)
        second = COUNTRY_BLOCKS >= 6
        estimates = (
            gap_jackknife(PEARSON, scores, people, COUNTRY_BLOCKS, TOPIC_BLOCKS, second),
            range_corrected_gap(scores, people, COUNTRY_BLOCKS, TOPIC_BLOCKS, second).gap,
            gap_jackknife(MAE, scores, people, COUNTRY_BLOCKS, TOPIC_BLOCKS, second),
        )
        excluded = [(e.ci_low or 0.0) > 0 or (e.ci_high or 0.0) < 0 for e in estimates]
        raw, corrected, mae = raw + excluded[0], corrected + excluded[1], mae + excluded[2]
    assert raw >= 57
    assert corrected <= 6
    assert mae <= 6


def test_groups_without_variation_have_a_reason() -> None:
    scores, people = draw_unequal_range(1)
    result = range_corrected_gap(
        scores, np.where(COUNTRY_BLOCKS >= 6, 0.1, people), COUNTRY_BLOCKS, TOPIC_BLOCKS, COUNTRY_BLOCKS >= 6
    )
    assert result.gap.value is None
    assert result.first.corrected_r.reason
    assert range_corrected_gap([0.1], [0.2], [0], [0], [True]).gap.value is None
    with pytest.raises(ValueError, match="shape"):
        range_corrected_gap(scores, people, COUNTRY_BLOCKS, TOPIC_BLOCKS, [True])
