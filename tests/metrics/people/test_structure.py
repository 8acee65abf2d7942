"""Correlations among topics, and guesses from similar countries: by hand, and how often structure is found."""

from __future__ import annotations

import numpy as np
import pytest

from auditor.metrics.people.structure import Structure, compare_structure, estimate_from_nearest
from auditor.surveys.loader import load_survey

N_COUNTRIES, N_TOPICS = 17, 10


def draw_people(rng: np.random.Generator) -> np.ndarray:
    """People's scores, with three factors among topics and an effect of country."""
    loadings = 0.2 * np.random.default_rng(1).normal(size=(N_TOPICS, 3))
    by_country = 0.15 * rng.normal(size=(N_COUNTRIES, 1))
    noise = 0.12 * rng.normal(size=(N_COUNTRIES, N_TOPICS))
    return np.asarray(by_country + rng.normal(size=(N_COUNTRIES, 3)) @ loadings.T + noise)


def compare(model: np.ndarray, people: np.ndarray) -> Structure:
    countries, topics = (index.ravel() for index in np.indices(people.shape))
    return compare_structure(model.ravel(), people.ravel(), countries, topics)


def square_by_hand(model: np.ndarray, people: np.ndarray) -> float:
    difference = np.corrcoef(model.T) - np.corrcoef(people.T)
    return float((difference[np.triu_indices(len(difference), 1)] ** 2).mean())


def test_the_distance_is_the_jackknife_by_hand() -> None:
    rng = np.random.default_rng(0)
    people = draw_people(rng)
    model = people + 0.2 * rng.normal(size=people.shape)
    result = compare(model, people)
    centred = [side - side.mean(axis=1, keepdims=True) for side in (model, people)]
    for form, (a, b) in ((result.raw, (model, people)), (result.without_country_means, centred)):
        without = np.array([square_by_hand(np.delete(a, i, 0), np.delete(b, i, 0)) for i in range(N_COUNTRIES)])
        corrected = 15 * square_by_hand(a, b) - 14 * without.mean()
        assert form.value == pytest.approx(corrected**0.5)
        assert form.ci_high == pytest.approx(
            (corrected + 2.119905 * (16 / 17 * ((without - without.mean()) ** 2).sum()) ** 0.5) ** 0.5
        )
        assert form.p_value == pytest.approx(0.001)
    assert result.p_value == pytest.approx(0.001)


def test_structure_is_not_found_where_there_is_none() -> None:
    rng = np.random.default_rng(5)
    n_runs, n_found = 10, dict.fromkeys(("shuffled", "country effect", "people and noise"), 0)
    for _ in range(n_runs):
        people = draw_people(rng)
        models = {
            "shuffled": rng.permuted(people, axis=0),
            "country effect": people.mean(axis=1, keepdims=True) + 0.15 * rng.normal(size=people.shape),
            "people and noise": people + 0.15 * rng.normal(size=people.shape),
        }
        for name, model in models.items():
            n_found[name] += compare(model, people).p_value <= 0.05
    assert n_found["shuffled"] <= 2
    assert n_found["country effect"] <= 2
    assert n_found["people and noise"] >= 8


def test_missing_cells_leave_out_countries_by_pair() -> None:
    rng = np.random.default_rng(2)
    people = draw_people(rng)
    model = people + 0.1 * rng.normal(size=people.shape)
    complete = compare(model, people)
    model[0, 0], people[3, 4] = np.nan, np.nan
    incomplete = compare(model, people)
    assert incomplete.p_value == pytest.approx(0.001)
    assert incomplete.raw.value == pytest.approx(complete.raw.value, abs=0.05)


def test_few_countries_and_constant_scores_have_a_reason() -> None:
    rng = np.random.default_rng(3)
    people = draw_people(rng)
    few = compare(people[:11], people[:11])
    assert few.raw.value is None
    assert "at least 12 countries" in (few.raw.reason or "")
    assert np.isnan(few.p_value)
    assert compare(np.full_like(people, 0.3), people).raw.value is None
    perfect = compare(people, people)
    assert perfect.raw.value == 0.0
    assert perfect.p_value == pytest.approx(0.001)


def test_more_permutations_are_made_where_few_are_as_near() -> None:
    rng = np.random.default_rng(0)
    people = draw_people(rng)
    countries, topics = (index.ravel() for index in np.indices(people.shape))
    near, shuffled = (
        compare_structure(model.ravel(), people.ravel(), countries, topics, max_permutations=1999)
        for model in (people + 0.1 * rng.normal(size=people.shape), rng.permuted(people, axis=0))
    )
    assert near.raw.p_value == near.without_country_means.p_value == pytest.approx(1 / 2000)
    assert shuffled.raw.p_value is not None
    assert 1000 * shuffled.raw.p_value == pytest.approx(round(1000 * shuffled.raw.p_value))
    assert shuffled.raw.p_value > 0.01


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
