"""Lin's concordance, errors of scores, and errors of a place against those of the other places."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from auditor.metrics.intervals.multiple_testing import holm
from auditor.metrics.intervals.two_way import crossed_jackknife, find_influential_unit, paired_jackknife
from auditor.metrics.people.alignment import (
    CONCORDANCE,
    FEW_CELLS_REASON,
    MAE,
    PERFECT_REASON,
    bias,
    compare_place_errors,
    mae,
    rmse,
)
from tests.support.known import known
from tests.support.two_way_tables import World

WRIGHT = [494, 395, 516, 434, 476, 557, 413, 442, 650, 433, 417, 656, 267, 478, 178, 423, 427]
MINI = [512, 430, 520, 428, 500, 600, 364, 380, 658, 445, 432, 626, 260, 477, 259, 350, 451]
"""Peak expiratory flow by two meters (Bland & Altman, Lancet 327, 1986, 307-310)."""
X, Y = [0.5, -0.5, 1.0, 0.0], [0.25, 0.0, 0.25, 1.0]
# Differences 1/4, -1/2, 3/4, -1: MAE 5/8, mean square 30/64, bias -1/8.
COUNTRIES, TOPICS = np.repeat(np.arange(12), 10), np.tile(np.arange(10), 12)
TRUTH = np.zeros(120)


def concordance(x: object, y: object) -> float | None:
    scores, truth = (np.asarray(side, dtype=float) for side in (x, y))
    index = np.arange(len(scores))
    return crossed_jackknife(CONCORDANCE, scores, truth, index, index).value


def test_concordance_of_published_measurements() -> None:
    assert concordance(WRIGHT, MINI) == pytest.approx(0.9427, abs=0.0005)  # R: DescTools::CCC, epiR::epi.ccc


def test_it_is_the_formula_at_any_scale() -> None:
    w = World(0, 9, 7)
    for shift, scale in ((0.0, 1.0), (1e6, 1.0), (-3.0, 1e-6)):
        x, y = shift + scale * w.first, shift + scale * w.truth
        expected = 2 * np.cov(w.first, w.truth, ddof=0)[0, 1]
        expected /= w.first.var() + w.truth.var() + (w.first.mean() - w.truth.mean()) ** 2
        assert concordance(x, y) == pytest.approx(expected, rel=1e-6)


def test_equal_reversed_and_constant_scores() -> None:
    y = np.array([-0.5, 0.1, 0.4])
    assert concordance(y, y) == pytest.approx(1)
    assert concordance(-y, y - y.mean() - y.mean()) == pytest.approx(concordance(y, -(y - 2 * y.mean())))
    assert concordance(y.mean() - (y - y.mean()), y) == pytest.approx(-1)
    assert concordance([0.2, 0.2, 0.2], y) == 0.0
    assert concordance([0.2, 0.2], [0.2, 0.2]) is None


def test_a_compressed_model_orders_well_and_does_not_agree() -> None:
    rng = np.random.default_rng(3)
    people = np.clip(0.3 * rng.normal(size=(12, 1)) + 0.4 * rng.normal(size=(1, 10)) - 0.35, -0.97, 0.9)
    model = 0.62 + 0.12 * people
    countries, topics = (index.ravel() for index in np.indices(people.shape))
    estimate = crossed_jackknife(CONCORDANCE, model.ravel(), people.ravel(), countries, topics)
    assert np.corrcoef(model.ravel(), people.ravel())[0, 1] == pytest.approx(1)
    assert 0 < (estimate.value or 0) < 0.1
    assert (estimate.ci_high or 1) < 0.2


def test_differences_are_recovered_on_fishers_z() -> None:
    w = World(5, 12, 9)
    first, second = (crossed_jackknife(CONCORDANCE, s, w.truth, w.countries, w.topics) for s in (w.first, w.uneven))
    difference = paired_jackknife(CONCORDANCE, w.first, w.uneven, w.truth, w.countries, w.topics)
    assert difference.value == pytest.approx((first.value or 0) - (second.value or 0))
    assert ((difference.p_value or 1) < 0.05) == ((difference.ci_low or 0) > 0 or (difference.ci_high or 0) < 0)
    assert (difference.ci_low or 0) < (difference.value or 0) < (difference.ci_high or 0)


def test_errors_by_hand() -> None:
    assert mae(X, Y).value == 5 / 8
    assert rmse(X, Y).value == pytest.approx(np.sqrt(30 / 64), abs=1e-15)
    assert bias(X, Y).value == -1 / 8


def test_intervals_of_errors_are_students() -> None:
    d = np.array(X) - np.array(Y)
    for error, values in ((mae(X, Y), np.abs(d)), (bias(X, Y), d)):
        want = stats.ttest_1samp(values, 0).confidence_interval()
        assert (error.ci_low, error.ci_high) == pytest.approx((want.low, want.high), abs=1e-12)
    want = stats.ttest_1samp(d**2, 0).confidence_interval()
    error = rmse(X, Y)
    assert (error.ci_low, error.ci_high) == pytest.approx((np.sqrt(max(want.low, 0)), np.sqrt(want.high)), abs=1e-12)


def test_the_interval_of_an_error_does_not_go_below_zero() -> None:
    error = mae([0, 0, 0, 2], [0, 0, 0.1, 0])
    assert error.ci_low == 0
    assert bias([0, 0, 0, 2], [0, 0, 0.1, 0]).ci_low is not None


@pytest.mark.parametrize("metric", [mae, rmse, bias])
def test_degenerate_errors(metric: object) -> None:
    f = {id(m): m for m in (mae, rmse, bias)}[id(metric)]
    none = f([np.nan, 1], [0, np.nan])
    assert (none.value, none.n, none.reason) == (None, 0, "no pairs")
    one = f([1], [0])
    assert (one.value, one.ci_low, one.ci_high) == (1, None, None)
    same = f([1.1, 1.2, 1.3], [0.1, 0.2, 0.3])
    assert same.value == pytest.approx(1)
    assert same.ci_low is None
    assert same.reason == "all differences are equal: no interval"
    assert f([0.5, 0.5], [0.5, 0.5]).value == 0


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
        assert ((ratio.ci_low or 0) > 1 or (ratio.ci_high or 2) < 1) == (known(ratio.p_value) < 0.05)
        assert ratio.resampled == ("topic",)


def test_the_interval_of_a_place_with_fewer_cells_than_the_others_has_its_coverage() -> None:
    """The first of 12 countries has 5 of 20 topics; errors are equally large everywhere."""
    rng, n_runs, n_covered = np.random.default_rng(4), 300, 0
    country, topic = (index.ravel() for index in np.indices((12, 20)))
    for _ in range(n_runs):
        errors = rng.normal(0, 0.15, 240)
        errors[rng.permutation(20)[5:]] = np.nan  # cells of the first country
        ratio = compare_place_errors(errors, np.zeros(240), country, topic, "topic")[0]
        n_covered += known(ratio.ci_low) <= 1 <= known(ratio.ci_high)
    assert n_covered / n_runs > 0.92


def test_two_places_of_which_one_has_fewer_cells_are_one_comparison() -> None:
    errors = 0.2 * np.random.default_rng(1).standard_normal(40)
    errors[6:20] = np.nan
    few, many = compare_place_errors(errors, np.zeros(40), np.arange(40) // 20, np.arange(40) % 20, "topic").values()
    assert (few.n, many.n) == (6, 20)
    assert few.p_value == pytest.approx(many.p_value)
    assert known(few.ci_low) == pytest.approx(1 / known(many.ci_high))


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
