"""Hits, their chance, and the errors that are drawn for it."""

from __future__ import annotations

import numpy as np
import pytest

from auditor.probes.memory.recall import chances, compare_with_targets, draw_errors, hits, mixture_statistic


def test_the_chance_of_a_hit_is_that_of_the_errors() -> None:
    errors = 7.5 * np.random.default_rng(1).normal(size=4000)
    rounding, near = chances(errors, np.full(4000, 0.5), np.zeros(4000, dtype=np.int64))[:, 0]
    assert rounding == pytest.approx(np.mean(np.abs(errors) <= 0.5), abs=0.01)
    assert near == pytest.approx(np.mean(np.abs(errors) <= 5.5), abs=0.02)


def test_hits_are_within_half_a_unit_of_the_last_digit() -> None:
    half_unit = np.array([0.5, 0.05, 0.5, 0.5])
    is_hit = hits(np.array([0.4, 0.4, 5.0, np.nan]), half_unit)
    assert is_hit.tolist() == [[True, False, False, False], [True, True, True, False]]


def test_all_cells_of_a_country_count_more_than_as_many_of_several() -> None:
    countries = np.repeat(np.arange(6), 5)
    of_one = np.zeros(30, dtype=bool)
    of_one[:5] = True
    of_all = np.zeros(30, dtype=bool)
    of_all[::6] = True
    first, second = mixture_statistic(np.stack([of_one, of_all]), np.array([0.1]), countries)
    assert first > second + 3


def test_drawn_errors_have_the_variances_of_the_errors() -> None:
    rng = np.random.default_rng(3)
    country, topic = np.repeat(np.arange(40), 10), np.tile(np.arange(10), 40)
    errors = 4 * rng.normal(size=40)[country] + 5 * rng.normal(size=400)
    drawn = draw_errors(errors, country, topic, rng, (200,))
    assert drawn.std(axis=-1).mean() == pytest.approx(errors.std(), rel=0.1)
    between = drawn.reshape(200, 40, 10).mean(axis=-1).std(axis=-1).mean()
    assert between == pytest.approx(errors.reshape(40, 10).mean(axis=-1).std(), rel=0.15)


def test_countries_that_a_model_knows_well_are_not_recited() -> None:
    rng = np.random.default_rng(8)
    country, topic = np.repeat(np.arange(12), 5), np.tile(np.arange(5), 12)
    half_unit, n_audits, n_recited = np.full(60, 0.5), 60, 0
    for seed in range(n_audits):
        published = np.round(rng.uniform(15, 85, 60))
        sd = np.where(rng.random(12) < 0.25, 3.0, 10.0)[country]
        ordinary, recalled = np.round(published + sd * rng.normal(size=(2, 60)))
        names = country.astype(str).tolist(), topic.astype(str).tolist()
        tests = compare_with_targets(ordinary, recalled, published[None], half_unit, *names, seed=seed, n_resamples=500)
        n_recited += min(test.adjusted_p_value for test in tests[0]) <= 0.05
    assert n_recited <= 0.1 * n_audits
