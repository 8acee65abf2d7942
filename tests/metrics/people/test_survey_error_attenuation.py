"""Correction for few samples: outside references, degenerate input by name, and simulation with known truth."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import ArrayLike
from scipy import stats

from auditor.metrics.intervals.correlation import pearson
from auditor.metrics.people.survey_error import CorrectedCorrelation, crossed_corrected
from tests.support.two_way_tables import World

TRUE_R = 0.7


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


@pytest.mark.parametrize("k", [3, 5, 10])
def test_it_finds_the_true_r(k: int) -> None:
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
    assert wide.ci_low is not None
    assert wide.ci_high is not None
    assert narrow.ci_low is not None
    assert narrow.ci_high is not None
    assert wide.ci_high - wide.ci_low > 1.5 * (narrow.ci_high - narrow.ci_low)
