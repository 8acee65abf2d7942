from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from auditor.metrics.intervals.correlation import dependent_correlation_difference, pearson, pearson_by_row, spearman

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
    assert difference.ci_low is not None
    assert difference.ci_high is not None
    assert difference.ci_low < -0.1 < difference.ci_high
    assert difference.ci_high > 0


def test_difference_interval_covers_and_test_holds_its_level() -> None:
    rng = np.random.default_rng(3)
    spread = np.linalg.cholesky(np.array([[1, 0.6, 0.4], [0.6, 1, 0.5], [0.4, 0.5, 1]]))
    same = np.linalg.cholesky(np.array([[1, 0.5, 0.5], [0.5, 1, 0.7], [0.5, 0.7, 1]]))
    runs, covered, rejected = 600, 0, 0
    for _ in range(runs):
        difference = dependent_correlation_difference(*(spread @ rng.normal(size=(3, 60))))
        assert difference.ci_low is not None
        assert difference.ci_high is not None
        covered += difference.ci_low <= 0.2 <= difference.ci_high
        p = dependent_correlation_difference(*(same @ rng.normal(size=(3, 60)))).p_value
        assert p is not None
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
