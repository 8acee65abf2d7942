"""Distances of answers with and without an order, their sampling floor, and effects of the order of the scale."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.spatial.distance import jensenshannon

from auditor.metrics import (
    ROOT_MEAN_DISTANCE,
    SKILL,
    crossed_jackknife,
    cut_variance,
    jensen_shannon,
    mean_of_orders,
    mean_sampling_floor,
    order_effect,
    sampling_floor,
    squared_distance,
    total_variation,
    wasserstein,
)
from tests.support.known import known

POINTS = np.linspace(-1, 1, 10)


def test_hand_computed_cumulative_distances() -> None:
    assert squared_distance([1, 0, 0], [0, 0, 1], [0, 1, 2], 0.0) == pytest.approx(1)
    assert squared_distance([1, 0, 0], [0.5, 0.5, 0], [0, 1, 4], 0.0) == pytest.approx(0.25 / 4)
    assert cut_variance([0.5, 0.25, 0.25], 5) == pytest.approx([0.25 / 4, 0.1875 / 4])
    shares, variances = mean_of_orders([2, 2], [4, 0])
    assert shares == pytest.approx([0.75, 0.25])
    assert variances == pytest.approx([0.25 / 3 / 4])


def test_the_variance_of_one_answer_is_unknown_and_that_of_stated_shares_0() -> None:
    assert np.isnan(cut_variance([1, 0], 1)).all()
    assert cut_variance([0.4, 0.6], np.inf) == pytest.approx([0])


@pytest.mark.parametrize("m", [4, 10, 40])
def test_samples_of_one_distribution_have_a_mean_distance_of_0(m: int) -> None:
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(10))
    people = rng.multinomial(300, p, 20_000) / 300
    model, variances = mean_of_orders(*(rng.multinomial(m // 2, p, 20_000) for _ in range(2)))
    distances = squared_distance(people, model, POINTS, cut_variance(people, 300), variances)
    assert abs(distances.mean()) < 4 * distances.std() / 20_000**0.5
    assert (distances < 0).any()


def test_samples_of_two_distributions_have_the_distance_of_these_on_average() -> None:
    rng = np.random.default_rng(1)
    p, q = rng.dirichlet(np.ones(10), 2)
    people, model = rng.multinomial(200, p, 20_000) / 200, rng.multinomial(10, q, 20_000) / 10
    distances = squared_distance(people, model, POINTS, cut_variance(people, 200), cut_variance(model, 10))
    expected = squared_distance(p, q, POINTS, 0.0)
    assert abs(distances.mean() - expected) < 4 * distances.std() / 20_000**0.5


def test_skill_and_root_mean_are_those_of_the_sums() -> None:
    country, topic = np.repeat(np.arange(6), 6), np.tile(np.arange(6), 6)
    rng = np.random.default_rng(2)
    baseline = rng.uniform(0.5, 1, 36)
    model = baseline * rng.uniform(0.1, 0.3, 36)
    skill = crossed_jackknife(SKILL, model, baseline, country, topic)
    assert skill.value == pytest.approx(1 - model.sum() / baseline.sum())
    assert skill.ci_low is not None
    root = crossed_jackknife(ROOT_MEAN_DISTANCE, model, np.zeros(36), country, topic)
    assert root.value == pytest.approx(model.mean() ** 0.5)
    assert crossed_jackknife(ROOT_MEAN_DISTANCE, -model, np.zeros(36), country, topic).value == 0
    undefined = crossed_jackknife(SKILL, model, -baseline, country, topic)
    assert (undefined.value, undefined.reason) == (None, "too few cells, or no variation among them")


def test_a_model_that_prefers_what_is_shown_first_has_a_positive_shift() -> None:
    p = np.random.default_rng(0).dirichlet(np.ones(10))
    up, down = 0.8 * p + 0.2 * np.eye(10)[0], 0.8 * p + 0.2 * np.eye(10)[-1]
    effect = order_effect(up, down, POINTS)
    assert effect.shift == pytest.approx(0.1)
    assert effect.distance == pytest.approx(0.2)
    assert effect.floor == 0
    assert order_effect(down, up, POINTS).shift == pytest.approx(-0.1)


def test_the_shift_of_samples_is_unbiased_and_their_distance_has_a_floor() -> None:
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.ones(10))
    up, down = rng.multinomial(40, p, (2, 5000))
    effect = order_effect(up, down, POINTS, 40, 40)
    assert abs(effect.shift.mean()) < 4 * effect.shift.std() / 5000**0.5
    assert effect.distance.mean() == pytest.approx(wasserstein(up, down, POINTS).mean())
    assert effect.floor.mean() == pytest.approx(effect.distance.mean(), rel=0.03)


def test_jensen_shannon_is_scipys_in_bits() -> None:
    p, q = np.random.default_rng(0).dirichlet(np.full(5, 0.4), (2, 40))
    p[0], q[0] = [1, 0, 0, 0, 0], [0, 0.5, 0.5, 0, 0]
    assert jensen_shannon(p, q) == pytest.approx(jensenshannon(p, q, base=2, axis=1))
    assert jensen_shannon(p, q)[0] == 1
    assert jensen_shannon(p, p) == pytest.approx(np.zeros(40))


def test_total_variation_is_the_share_that_has_to_move() -> None:
    assert total_variation([0.5, 0.3, 0.2], [0.2, 0.3, 0.5]) == pytest.approx(0.3)
    assert total_variation([4, 0], [0, 9]) == 1
    assert np.isnan(total_variation([np.nan, 1], [1, 0]))


def test_it_is_scipys_distance_as_a_share_of_the_scale() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        k = int(rng.integers(2, 12))
        points = np.sort(rng.normal(size=k))
        p, q = rng.dirichlet(np.full(k, 0.4), 2)
        expected = stats.wasserstein_distance(points, points, p, q) / (points[-1] - points[0])
        assert float(wasserstein(p, q, points)) == pytest.approx(expected, abs=1e-12)


def test_its_ends_are_equal_shares_and_opposite_ends() -> None:
    first, last = np.eye(10)[0], np.eye(10)[-1]
    assert float(wasserstein(first, first, POINTS)) == 0
    assert float(wasserstein(first, last, POINTS)) == pytest.approx(1)
    assert float(wasserstein([1, 0, 0], [0, 1, 0], [0, 1, 4])) == pytest.approx(0.25)


def test_it_is_symmetric_and_at_least_the_difference_of_the_means() -> None:
    p, q = np.random.default_rng(1).dirichlet(np.ones(10), (2, 200))
    distances = wasserstein(p, q, POINTS)
    assert distances == pytest.approx(wasserstein(q, p, POINTS))
    assert (distances >= np.abs((p - q) @ POINTS) / 2 - 1e-12).all()


def test_counts_are_shares_and_a_missing_row_stays_missing() -> None:
    rows = np.array([[2.0, 2.0], [np.nan, 1.0]])
    distances = wasserstein(rows, [[0.5, 0.5], [0.5, 0.5]], [0, 1])
    assert distances[0] == 0
    assert np.isnan(distances[1])


@pytest.mark.parametrize(
    ("shares", "points", "message"),
    [
        ([0.0, 0.0], [0, 1], "must not all be 0"),
        ([-0.1, 1.1], [0, 1], "at least 0"),
        ([np.inf, 1.0], [0, 1], "finite"),
        ([1.0], [0], "at least two answers"),
        ([0.5, 0.5], [1, 0], "increase"),
        ([0.5, 0.5], [0, 1, 2], "one point for each of the 2 answers"),
    ],
)
def test_invalid_shares_and_points_are_refused(shares: list[float], points: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        wasserstein(shares, shares, points)


@pytest.mark.parametrize(("n", "m"), [(1200, 30), (300, 100), (100, np.inf)])
def test_the_floor_is_the_mean_distance_of_two_samples(n: int, m: float) -> None:
    rng = np.random.default_rng(2)
    p = rng.dirichlet(np.ones(10))
    first = rng.multinomial(n, p, 4000)
    second = rng.multinomial(int(m), p, 4000) if np.isfinite(m) else p
    simulated = wasserstein(first, second, POINTS).mean()
    assert float(sampling_floor(p, POINTS, n, m)) == pytest.approx(simulated, abs=0.001)


def test_exact_shares_have_no_floor_and_a_size_below_1_is_refused() -> None:
    assert float(sampling_floor([0.5, 0.5], [0, 1], np.inf)) == 0
    with pytest.raises(ValueError, match="at least 1"):
        sampling_floor([0.5, 0.5], [0, 1], 0)


def draw_correlated_mean(rng: np.random.Generator, p: np.ndarray, n: int, correlation: float) -> float:
    """Mean distance over the topics of one country, whose respondents answer all of them."""
    latent = correlation**0.5 * rng.normal(size=(n, 1)) + (1 - correlation) ** 0.5 * rng.normal(size=(n, len(p)))
    answers = (stats.norm.cdf(latent)[:, :, None] > np.cumsum(p, axis=1)[:, :-1]).sum(axis=2)
    shares = np.stack([np.bincount(column, minlength=10) for column in answers.T])
    return float(wasserstein(shares, p, POINTS).mean())


def test_the_band_of_the_mean_floor_is_that_of_respondents_who_answer_all_topics() -> None:
    rng = np.random.default_rng(3)
    p = rng.dirichlet(np.ones(10), 19)
    simulated = [draw_correlated_mean(rng, p, 300, 0.3) for _ in range(400)]
    floor = mean_sampling_floor(p, POINTS, 300, np.inf, ["A"] * 19)
    assert floor.value == pytest.approx(np.mean(simulated), rel=0.05)
    low, high = np.quantile(simulated, [0.025, 0.975])
    assert known(floor.ci_high) - known(floor.ci_low) == pytest.approx(high - low, rel=0.2)
    independent = mean_sampling_floor(p, POINTS, 300, np.inf, [*range(19)], item_correlation=0)
    assert known(floor.ci_high) - known(floor.ci_low) > 1.1 * (known(independent.ci_high) - known(independent.ci_low))


def test_the_mean_floor_of_samples_leaves_out_missing_cells() -> None:
    p = np.array([[0.5, 0.5], [np.nan, 0.5], [0.2, 0.8]])
    floor = mean_sampling_floor(p, [0, 1], [50, 50, 100], 10, ["A", "A", "B"])
    assert floor.n == 2
    assert floor.generalizes_to == "other samples of the same cells"
    assert mean_sampling_floor(p[1:2], [0, 1], 50, 10, ["A"]).reason == "no cell has shares"
    with pytest.raises(ValueError, match="countries must have the shape"):
        mean_sampling_floor(p, [0, 1], 50, 10, ["A"])
