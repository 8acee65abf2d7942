"""Guesses from similar countries: each written out by hand, with missing cells and too few topics."""

from __future__ import annotations

import numpy as np
import pytest

from auditor.metrics.people.structure import estimate_from_nearest
from auditor.surveys.loader import load_survey


def guess_by_hand(table: np.ndarray, country: int, topic: int, k: int) -> float:
    """The mean of the k nearest countries by their other topics."""
    others = np.delete(table, topic, axis=1)
    donors = []
    for other in range(len(table)):
        squares = (others[other] - others[country]) ** 2
        if other != country and not np.isnan(table[other, topic]) and (~np.isnan(squares)).sum() >= 5:
            donors.append((float(np.nanmean(squares)), other))
    return float(np.mean([table[other, topic] for _, other in sorted(donors)[:k]])) if len(donors) >= k else np.nan


def test_guesses_are_those_by_hand() -> None:
    rng = np.random.default_rng(0)
    table = rng.uniform(-1, 1, (12, 8))
    table[rng.uniform(size=table.shape) < 0.15] = np.nan
    table[5, 2:] = np.nan  # two topics only: no country can be compared with this one
    for k, guesses in estimate_from_nearest(table).items():
        expected = np.array([[guess_by_hand(table, i, j, k) for j in range(8)] for i in range(12)])
        expected[np.isnan(table)] = np.nan
        np.testing.assert_allclose(guesses, expected)
        assert np.isnan(guesses[5]).all()


def test_a_score_is_not_used_for_its_own_guess() -> None:
    table = np.random.default_rng(1).uniform(-1, 1, (10, 8))
    before = estimate_from_nearest(table)
    table[4, 3] = 0.9
    after = estimate_from_nearest(table)
    assert before[1][4, 3] == after[1][4, 3]
    assert before[3][4, 3] == after[3][4, 3]


def test_the_built_in_sample_is_guessed_better_than_by_the_mean_of_a_topic() -> None:
    survey = load_survey("wvs7-sample")
    table = np.full((len(survey.countries), len(survey.topics)), np.nan)
    for cell, score in survey.scores.items():
        table[survey.countries.index(cell.country), survey.topics.index(cell.topic)] = score
    errors = {k: float(np.nanmean(np.abs(guesses - table))) for k, guesses in estimate_from_nearest(table).items()}
    n = (~np.isnan(table)).sum(axis=0)
    topic_means = (np.nansum(table, axis=0) - table) / (n - 1)
    assert max(errors.values()) < float(np.nanmean(np.abs(topic_means - table)))


def test_one_dimension_is_refused() -> None:
    with pytest.raises(ValueError, match="countries, topics"):
        estimate_from_nearest([0.1, 0.2])
