"""Errors of a place against those of the other places: planted differences are found, equal places rarely."""

from __future__ import annotations

import numpy as np
import pytest

from auditor.metrics.intervals.multiple_testing import holm
from auditor.metrics.intervals.two_way import find_influential_unit
from auditor.metrics.people.alignment import FEW_CELLS_REASON, MAE, PERFECT_REASON, compare_place_errors

COUNTRIES, TOPICS = np.repeat(np.arange(12), 10), np.tile(np.arange(10), 12)
TRUTH = np.zeros(120)


def test_a_ratio_is_to_the_geometric_mean_of_the_others() -> None:
    errors = np.tile(np.linspace(0.1, 0.2, 10), 12)
    errors[COUNTRIES == 3] *= 4
    ratios = compare_place_errors(errors, TRUTH, COUNTRIES, TOPICS, "topic")
    assert ratios[3].value == pytest.approx(4)
    assert ratios[0].value == pytest.approx(4 ** (-1 / 11))
    assert ratios[0].n == 10


def find_places(errors: np.ndarray) -> set[int]:
    ratios = compare_place_errors(errors, TRUTH, COUNTRIES, TOPICS, "topic")
    adjusted = holm(np.array([ratio.p_value for ratio in ratios.values()], dtype=np.float64))
    return {place for place, p_value in zip(ratios, adjusted, strict=True) if p_value < 0.05}


def test_a_country_that_is_further_is_found_and_equal_ones_are_not() -> None:
    n_found = n_false = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        equal = 0.12 * rng.standard_normal(120) + 0.08 * rng.standard_normal(10)[TOPICS]
        n_false += bool(find_places(equal))
        n_found += 3 in find_places(np.where(COUNTRIES == 3, 0.45 / 0.12, 1.0) * 0.12 * rng.standard_normal(120))
    assert n_false <= 7
    assert n_found >= 80


def test_an_interval_excludes_1_where_the_p_value_is_below_5_percent() -> None:
    errors = 0.2 * np.random.default_rng(0).standard_normal(120)
    for ratio in compare_place_errors(errors, TRUTH, COUNTRIES, TOPICS, "topic").values():
        assert ratio.p_value is not None
        assert ((ratio.ci_low or 0) > 1 or (ratio.ci_high or 2) < 1) == (ratio.p_value < 0.05)
        assert ratio.resampled == ("topic",)


def test_places_of_few_cells_and_perfect_ones_have_a_reason() -> None:
    errors = 0.2 * np.random.default_rng(0).standard_normal(120)
    few = np.where((COUNTRIES == 3) & (TOPICS > 3), np.nan, errors)
    ratios = compare_place_errors(few, TRUTH, COUNTRIES, TOPICS, "topic")
    assert (ratios[3].value, ratios[3].n, ratios[3].reason) == (None, 4, FEW_CELLS_REASON)
    assert ratios[2].p_value is not None
    perfect = compare_place_errors(np.where(COUNTRIES == 3, 0.0, errors), TRUTH, COUNTRIES, TOPICS, "topic")
    assert {ratio.reason for ratio in perfect.values()} == {PERFECT_REASON}
    assert compare_place_errors(np.full(120, np.nan), TRUTH, COUNTRIES, TOPICS, "topic") == {}


def test_one_taboo_topic_is_found_and_none_of_equal_ones() -> None:
    n_found = n_false = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        errors = 0.15 * rng.standard_normal(120)
        n_false += any(find_influential_unit(MAE, errors, TRUTH, units) is not None for units in (COUNTRIES, TOPICS))
        influence = find_influential_unit(MAE, errors * np.where(TOPICS == 4, 5, 1), TRUTH, TOPICS)
        n_found += influence is not None and influence.unit == "4"
        if influence is not None:
            assert influence.share > 0.8
            assert influence.value_without == pytest.approx(np.abs(errors[TOPICS != 4]).mean())
    assert n_false <= 6
    assert n_found >= 90
