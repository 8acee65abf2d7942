"""The Wasserstein distance against scipy, and its sampling floor against simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from auditor.metrics import mean_sampling_floor, sampling_floor, wasserstein

POINTS = np.linspace(-1, 1, 10)


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
    assert floor.ci_low is not None
    assert floor.ci_high is not None
    low, high = np.quantile(simulated, [0.025, 0.975])
    assert floor.ci_high - floor.ci_low == pytest.approx(high - low, rel=0.2)
    independent = mean_sampling_floor(p, POINTS, 300, np.inf, [*range(19)], item_correlation=0)
    assert independent.ci_high is not None
    assert independent.ci_low is not None
    assert floor.ci_high - floor.ci_low > 1.1 * (independent.ci_high - independent.ci_low)


def test_the_mean_floor_of_samples_leaves_out_missing_cells() -> None:
    p = np.array([[0.5, 0.5], [np.nan, 0.5], [0.2, 0.8]])
    floor = mean_sampling_floor(p, [0, 1], [50, 50, 100], 10, ["A", "A", "B"])
    assert floor.n == 2
    assert floor.generalizes_to == "other samples of the same cells"
    assert mean_sampling_floor(p[1:2], [0, 1], 50, 10, ["A"]).reason == "no cell has shares"
    with pytest.raises(ValueError, match="countries must have the shape"):
        mean_sampling_floor(p, [0, 1], 50, 10, ["A"])
