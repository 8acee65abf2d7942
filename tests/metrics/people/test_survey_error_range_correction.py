"""Correlations corrected for range: the published formula, equal errors in unequal ranges, degenerate groups."""

from __future__ import annotations

import numpy as np
import pytest

from auditor.metrics.intervals.two_way import gap_jackknife
from auditor.metrics.people.alignment import MAE, PEARSON
from auditor.metrics.people.survey_error import correct_range, range_corrected_gap

COUNTRIES, TOPICS = np.repeat(np.arange(12), 10), np.tile(np.arange(10), 12)


def draw_unequal_range(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """People's scores vary four times as much in the first six countries; the model's errors are alike everywhere."""
    rng = np.random.default_rng(seed)
    spread = np.r_[np.full(6, 0.45), np.full(6, 0.12)][:, None]
    effects = 0.6 * rng.normal(size=(12, 1)) + 0.6 * rng.normal(size=(1, 10)) + 0.5 * rng.normal(size=(12, 10))
    people = np.clip(spread * effects, -0.95, 0.95)
    return np.clip(people + 0.15 * rng.normal(size=people.shape), -1, 1).ravel(), people.ravel()


def test_it_is_thorndikes_case_2() -> None:
    # The example of R's psych::rangeCorrection: r = 0.33, standard deviations 100.32 and 48.19.
    assert correct_range(0.33, 100.32 / 48.19) == pytest.approx(0.59, abs=0.005)
    assert correct_range([0.5, -0.5, 1.0], 1.0) == pytest.approx([0.5, -0.5, 1.0])
    assert correct_range(0.5, 2.0) == pytest.approx(1 / (1 + 0.25 * 3) ** 0.5)


def test_figures_are_those_of_regressions_by_hand() -> None:
    scores, people = draw_unequal_range(0)
    second = COUNTRIES >= 6
    result = range_corrected_gap(scores, people, COUNTRIES, TOPICS, second)
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
        second = COUNTRIES >= 6
        estimates = (
            gap_jackknife(PEARSON, scores, people, COUNTRIES, TOPICS, second),
            range_corrected_gap(scores, people, COUNTRIES, TOPICS, second).gap,
            gap_jackknife(MAE, scores, people, COUNTRIES, TOPICS, second),
        )
        excluded = [(e.ci_low or 0.0) > 0 or (e.ci_high or 0.0) < 0 for e in estimates]
        raw, corrected, mae = raw + excluded[0], corrected + excluded[1], mae + excluded[2]
    assert raw >= 57
    assert corrected <= 6
    assert mae <= 6


def test_groups_without_variation_have_a_reason() -> None:
    scores, people = draw_unequal_range(1)
    result = range_corrected_gap(scores, np.where(COUNTRIES >= 6, 0.1, people), COUNTRIES, TOPICS, COUNTRIES >= 6)
    assert result.gap.value is None
    assert result.first.corrected_r.reason
    assert range_corrected_gap([0.1], [0.2], [0], [0], [True]).gap.value is None
    with pytest.raises(ValueError, match="shape"):
        range_corrected_gap(scores, people, COUNTRIES, TOPICS, [True])
