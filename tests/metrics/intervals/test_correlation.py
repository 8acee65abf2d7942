"""Correlations: against scipy, over observations that share questions, and within topics."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from auditor.metrics.intervals.correlation import (
    correlate_over_units,
    correlation_difference_over_units,
    dependent_correlation_difference,
    pearson,
    pearson_by_row,
    spearman,
    within_topic_correlation,
)
from auditor.metrics.intervals.two_way import crossed_jackknife
from auditor.metrics.people.alignment import PEARSON
from tests.support.known import known
from tests.support.two_way_tables import World

NAN = float("nan")


@pytest.fixture(params=range(5))
def data(request: pytest.FixtureRequest) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    rng = np.random.default_rng(request.param)
    x = rng.normal(size=(4, 7, 30, 400, 50)[request.param])
    return x, np.round(0.4 * x + rng.normal(size=x.size), 1)


def test_pearson_is_scipys(data: tuple[NDArray[np.float64], NDArray[np.float64]]) -> None:
    correlation, want = pearson(*data), stats.pearsonr(*data)
    interval = want.confidence_interval()
    assert correlation.value == pytest.approx(want.statistic, abs=1e-12)
    assert correlation.p_value == pytest.approx(want.pvalue, rel=1e-9)
    assert (correlation.ci_low, correlation.ci_high) == pytest.approx((interval.low, interval.high), abs=1e-12)


def test_spearman_is_scipys(data: tuple[NDArray[np.float64], NDArray[np.float64]]) -> None:
    rank_correlation, want = spearman(*data), stats.spearmanr(*data)
    assert rank_correlation.value == pytest.approx(want.statistic, abs=1e-12)
    assert rank_correlation.p_value == pytest.approx(want.pvalue, rel=1e-9)


def test_spearman_interval_by_hand() -> None:
    # Ranks 1..7 against 2 1 4 3 6 5 7: sum d² = 6, rho = 1 - 36 / 336 = 25/28.
    rank_correlation = spearman(np.arange(7), [2, 1, 4, 3, 6, 5, 7])
    rho = 25 / 28
    half = 1.959963985 * np.sqrt((1 + rho**2 / 2) / 4)
    assert rank_correlation.value == pytest.approx(rho, abs=1e-14)
    assert rank_correlation.ci_low == pytest.approx(np.tanh(np.arctanh(rho) - half), abs=1e-9)
    assert rank_correlation.ci_high == pytest.approx(np.tanh(np.arctanh(rho) + half), abs=1e-9)


def test_pairs_with_a_gap_are_left_out() -> None:
    nan = float("nan")
    correlation = pearson([1, 2, nan, 4, 5, 7], [2, nan, 1, 3, 5, 4])
    assert correlation.n == 4
    assert correlation.value == pytest.approx(stats.pearsonr([1, 4, 5, 7], [2, 3, 5, 4]).statistic, abs=1e-12)


@pytest.mark.parametrize("correlate", [pearson, spearman])
def test_degenerate_input_has_a_reason(correlate: object) -> None:
    f = pearson if correlate is pearson else spearman
    assert f([1, 2], [3, 4]).reason == "fewer than 3 pairs (2)"
    assert f([], []).n == 0
    flat = f([0.1 + 0.2, 0.3, 0.3], [1, 2, 3])
    if f is pearson:  # ranks see the rounding error, the values must not
        assert (flat.value, flat.p_value, flat.reason) == (None, None, "x constant")
    assert f([0, 0, 0], [5, 5, 5]).reason == "x and y constant"
    three = f([1, 2, 3], [1, 3, 2])
    assert three.value == pytest.approx(0.5)
    assert (three.ci_low, three.ci_high) == (None, None)
    perfect = f([1, 2, 3, 4], [2, 4, 6, 8])
    assert perfect.value == pytest.approx(1)
    assert perfect.ci_low is None
    assert perfect.reason is not None


def test_tiny_values_are_not_constant() -> None:
    assert pearson(np.array([1, 2, 3, 5]) * 1e-200, [1, 2, 3, 5]).value == pytest.approx(1)


@pytest.mark.parametrize("bad", [([1, 2], [1, 2, 3]), ([1, 2, np.inf], [1, 2, 3]), ([[1, 2]], [[1, 2]])])
def test_malformed_input_raises(bad: tuple[list[float], list[float]]) -> None:
    with pytest.raises(ValueError, match="columns must be"):
        pearson(*bad)


def _with_correlations(r: list[list[float]], n: int) -> NDArray[np.float64]:
    """Columns whose sample correlations are exactly these."""
    raw = np.random.default_rng(0).normal(size=(n, 3))
    q, _ = np.linalg.qr(raw - raw.mean(axis=0))
    columns: NDArray[np.float64] = (q @ np.linalg.cholesky(np.array(r)).T).T
    return columns


def test_williams_known_case() -> None:
    # r12 = .4, r13 = .5, r23 = .1, n = 103: t = -0.89, p = 0.37 in the manual of R's psych::r.test.
    difference = dependent_correlation_difference(
        *_with_correlations([[1, 0.4, 0.5], [0.4, 1, 0.1], [0.5, 0.1, 1]], 103)
    )
    assert difference.value == pytest.approx(-0.1)
    assert difference.p_value == pytest.approx(2 * stats.t.sf(0.89, 100), abs=0.003)
    assert known(difference.ci_low) < -0.1 < known(difference.ci_high)
    assert known(difference.ci_high) > 0


def test_difference_interval_covers_and_test_holds_its_level() -> None:
    rng = np.random.default_rng(3)
    spread = np.linalg.cholesky(np.array([[1, 0.6, 0.4], [0.6, 1, 0.5], [0.4, 0.5, 1]]))
    same = np.linalg.cholesky(np.array([[1, 0.5, 0.5], [0.5, 1, 0.7], [0.5, 0.7, 1]]))
    runs, covered, rejected = 600, 0, 0
    for _ in range(runs):
        difference = dependent_correlation_difference(*(spread @ rng.normal(size=(3, 60))))
        covered += known(difference.ci_low) <= 0.2 <= known(difference.ci_high)
        p = known(dependent_correlation_difference(*(same @ rng.normal(size=(3, 60)))).p_value)
        rejected += p < 0.05
    assert 0.92 < covered / runs < 0.98
    assert 0.02 < rejected / runs < 0.08


def test_difference_degenerate() -> None:
    x = np.arange(6.0)
    assert dependent_correlation_difference(x[:3], x[:3], x[:3]).reason == "fewer than 4 rows (3)"
    assert dependent_correlation_difference(x, np.ones(6), x**2).reason == "a column is constant"
    twice = dependent_correlation_difference(x, [1, 3, 2, 5, 4, 6], [1, 3, 2, 5, 4, 6])
    assert twice.value == pytest.approx(0)
    assert twice.p_value is None
    assert twice.reason is not None


def test_correlations_by_row_are_those_of_each_row() -> None:
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(2, 6, 5, 40))
    x[0, :, 3:30], y[1, 2:, ::2] = NAN, NAN
    x[2], y[3, 1] = 0.1 + 0.2, 7.0  # constant
    x[4, 0, 2:], y[4, 1] = NAN, NAN  # two pairs, and none
    x[5, 0], y[5, 1] = y[5, 0], -x[5, 1]
    x[5, 2] *= 1e-200
    expected = [[pearson(a, b).value for a, b in zip(*rows, strict=True)] for rows in zip(x, y, strict=True)]
    values = pearson_by_row(x, y)
    np.testing.assert_allclose(values, np.array(expected, dtype=np.float64), atol=1e-12)
    assert np.isnan(values).sum() == 8
    np.testing.assert_array_equal(pearson_by_row(x, y[0, 0]), pearson_by_row(x, np.broadcast_to(y[0, 0], x.shape)))
    assert pearson_by_row(np.empty((0, 4)), np.ones(4)).shape == (0,)


def simulate(rng: np.random.Generator, n_questions: int, n_models: int) -> tuple[np.ndarray, ...]:
    """A truth and two scores that share deviations within a question, and the questions' numbers."""
    shape = (n_questions, n_models)
    truth = 0.8 * rng.normal(size=(n_questions, 1)) + 0.6 * rng.normal(size=shape)
    first, second = (truth + 0.7 * rng.normal(size=(n_questions, 1)) + 0.7 * rng.normal(size=shape) for _ in range(2))
    return truth.ravel(), first.ravel(), second.ravel(), np.repeat(np.arange(n_questions), n_models)


def test_each_question_is_left_out_with_all_its_models() -> None:
    truth, first, second, questions = simulate(np.random.default_rng(0), 9, 3)
    result = correlate_over_units(truth, first, {"question": questions})
    left_out = [questions != question for question in range(9)]
    z = np.arctanh([np.corrcoef(truth[others], first[others])[0, 1] for others in left_out])
    error = (8 / 9 * ((z - z.mean()) ** 2).sum()) ** 0.5
    r = np.corrcoef(truth, first)[0, 1]
    expected = np.tanh(np.arctanh(r) + np.array([-1, 1]) * stats.t.ppf(0.975, 8) * error)
    assert result.value == pytest.approx(r, abs=1e-12)
    assert (result.ci_low, result.ci_high) == pytest.approx(tuple(expected), abs=1e-9)
    assert result.p_value == pytest.approx(2 * stats.t.sf(abs(np.arctanh(r)) / error, 8), abs=1e-9)
    assert (result.n, result.resampled) == (27, ("question",))

    difference = correlation_difference_over_units(truth, first, second, {"question": questions})
    gaps = [
        np.corrcoef(truth[others], first[others])[0, 1] - np.corrcoef(truth[others], second[others])[0, 1]
        for others in left_out
    ]
    half_width = stats.t.ppf(0.975, 8) * (8 / 9 * ((np.array(gaps) - np.mean(gaps)) ** 2).sum()) ** 0.5
    value = r - np.corrcoef(truth, second)[0, 1]
    assert difference.value == pytest.approx(value, abs=1e-12)
    assert difference.ci_high == pytest.approx(value + half_width, abs=1e-9)


def test_what_cannot_be_correlated_has_a_reason() -> None:
    questions, sides = {"question": range(8)}, ("the labels", "the measure")
    constant = correlate_over_units([1.0] * 8, np.arange(8.0), questions, sides)
    assert (constant.value, constant.p_value) == (None, None)
    assert constant.reason == "all 8 values of the labels are equal"
    both = correlate_over_units([1.0] * 8, [2.0] * 8, questions, sides)
    assert both.reason == "all 8 values of the labels and of the measure are equal"
    none = correlate_over_units([np.nan] * 8, np.arange(8.0), questions)
    assert none.reason == "a correlation needs at least 3 values on both sides, but there are 0"
    few = correlate_over_units([1.0, 2, 4, np.nan], [2.0, 1, 5, 1], {"question": range(4)})
    assert few.value is not None
    assert few.reason == "an interval needs at least 5 questions, but there are 3 questions"
    assert correlate_over_units([1.0, 2.0], [1.0, 2.0], {"question": range(2)}).value is None


def test_it_is_pearson_s_r_of_what_is_left_when_each_topic_s_mean_is_out() -> None:
    world = World(1, 9, 6)
    scores = world.first.copy()
    scores[[3, 17]] = np.nan
    is_scored = ~np.isnan(scores)
    topics = world.topics[is_scored]
    left = [
        values - np.array([values[topics == t].mean() for t in topics])
        for values in (scores[is_scored], world.truth[is_scored])
    ]
    correlation = within_topic_correlation(scores, world.truth, world.countries, world.topics)
    assert correlation.value == pytest.approx(stats.pearsonr(*left).statistic)
    assert correlation.n == 52
    assert -1 < known(correlation.ci_low) < (correlation.value or 0) < known(correlation.ci_high) < 1


def test_what_topics_are_like_everywhere_adds_nothing() -> None:
    world = World(2, 12, 8)
    moved = world.first + 3.0 * np.sin(world.topics)
    for scores in (world.first, moved):
        correlation = within_topic_correlation(scores, world.truth, world.countries, world.topics)
        assert correlation.value == pytest.approx(
            within_topic_correlation(world.first, world.truth, world.countries, world.topics).value, abs=1e-9
        )


def test_the_same_everywhere_is_no_correlation_but_a_reason() -> None:
    world = World(3, 8, 6)
    constant = np.cos(world.topics) * 0.3
    correlation = within_topic_correlation(constant, world.truth, world.countries, world.topics)
    assert (correlation.value, correlation.ci_low, correlation.p_value) == (None, None, None)
    assert correlation.reason == "scores constant within topics"
    assert within_topic_correlation(constant, constant, world.countries, world.topics).reason == (
        "scores and truth constant within topics"
    )
    assert within_topic_correlation([], [], [], []).reason == "no cell has all its values"


@pytest.mark.parametrize("sign", [1, -1])
def test_p_is_below_5_percent_just_where_the_interval_leaves_out_0(sign: int) -> None:
    sizes = []
    for seed in range(40):
        world = World(seed, 12, 7)
        scores = sign * world.truth * 0.4 + 0.9 * (world.first - world.truth)
        estimate = crossed_jackknife(PEARSON, scores, world.truth, world.countries, world.topics)
        p = known(estimate.p_value)
        assert (p < 0.05) == (known(estimate.ci_low) > 0 or known(estimate.ci_high) < 0)
        sizes.append(p < 0.05)
    assert 0 < sum(sizes) < len(sizes)


def test_without_an_interval_there_is_no_p() -> None:
    world = World(4, 4, 9)
    estimate = crossed_jackknife(PEARSON, world.first, world.truth, world.countries, world.topics)
    assert estimate.value is not None
    assert estimate.p_value is None
