from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from auditor.metrics.bootstrap import (
    BIAS,
    MAE,
    PEARSON,
    RMSE,
    Statistic,
    TwoWayEstimate,
    crossed_interval,
    gap_interval,
    paired_interval,
)

Floats = NDArray[np.float64]
NAN = float("nan")
SIGMA_COUNTRY, SIGMA_TOPIC, SIGMA_CELL = 0.2, 0.3, 0.3


def _table(seed: int, countries: int = 10, topics: int = 8) -> tuple[Floats, Floats, list[str], list[str]]:
    """Truth, scores, and the labels: both share what a country and what a topic adds."""
    rng = np.random.default_rng(seed)

    def effects() -> Floats:
        row, column, cell = (rng.normal(size=s) for s in ((countries, 1), (1, topics), (countries, topics)))
        sums: Floats = (SIGMA_COUNTRY * row + SIGMA_TOPIC * column + SIGMA_CELL * cell).ravel()
        return sums

    truth = effects()
    names = [f"c{i:02}" for i in range(countries) for _ in range(topics)]
    subjects = [f"t{j:02}" for _ in range(countries) for j in range(topics)]
    return truth, truth + effects(), names, subjects


def _bounds(interval: TwoWayEstimate) -> tuple[float, float]:
    assert interval.low is not None
    assert interval.high is not None
    return interval.low, interval.high


@pytest.mark.parametrize("missing", [0, 20])
def test_estimates_are_the_plain_figures(missing: int) -> None:
    truth, scores, countries, topics = _table(0)
    scores[np.random.default_rng(1).permutation(scores.size)[:missing]] = np.nan
    has = ~np.isnan(scores)
    d = scores[has] - truth[has]
    want = {
        "r": (PEARSON, stats.pearsonr(scores[has], truth[has]).statistic),
        "mae": (MAE, np.abs(d).mean()),
        "rmse": (RMSE, np.sqrt((d**2).mean())),
        "bias": (BIAS, d.mean()),
    }
    for statistic, value in want.values():
        interval = crossed_interval(statistic, scores, truth, countries, topics, replicates=50)
        assert interval.estimate == pytest.approx(value, abs=1e-12)
        assert (interval.n_countries, interval.n_topics, interval.n_cells, interval.replicates) == (
            10,
            8,
            80 - missing,
            50,
        )
        low, high = _bounds(interval)
        assert low < value < high


def test_a_resample_is_the_cells_repeated() -> None:
    # Written out: draw countries and topics in the same order, repeat each cell, and let scipy correlate.
    truth, scores, countries, topics = _table(2)
    rng = np.random.default_rng(5)
    rows, columns = rng.multinomial(10, [0.1] * 10, 300), rng.multinomial(8, [0.125] * 8, 300)
    repeats = [np.outer(r, c).ravel() for r, c in zip(rows, columns, strict=True)]
    values = [stats.pearsonr(np.repeat(scores, n), np.repeat(truth, n)).statistic for n in repeats]
    interval = crossed_interval(PEARSON, scores, truth, countries, topics, replicates=300, seed=5)
    assert _bounds(interval) == pytest.approx(np.quantile(values, (0.025, 0.975)), abs=1e-10)


def test_the_order_of_cells_does_not_matter_and_the_seed_does() -> None:
    truth, scores, countries, topics = _table(3)
    order = np.random.default_rng(0).permutation(truth.size)
    args = (scores[order], truth[order], np.array(countries)[order], np.array(topics)[order])
    one, other = (crossed_interval(MAE, *a, seed=1) for a in ((scores, truth, countries, topics), args))
    assert _bounds(one) == pytest.approx(_bounds(other), abs=1e-12)
    assert one == crossed_interval(MAE, scores, truth, countries, topics, seed=1)
    assert _bounds(one) != _bounds(crossed_interval(MAE, scores, truth, countries, topics, seed=2))


# The scores' error is normal with variance .04 + .09 + .09 = .22, and so is the truth: r = sqrt(1/2).
@pytest.mark.parametrize(
    ("statistic", "target"),
    [(MAE, np.sqrt(0.22 * 2 / np.pi)), (BIAS, 0.0), (PEARSON, np.sqrt(0.5))],
)
def test_coverage(statistic: Statistic, target: float) -> None:
    hits = naive = 0
    for seed in range(200):
        truth, scores, countries, topics = _table(seed, 12, 10)
        interval = crossed_interval(statistic, scores, truth, countries, topics, replicates=300, seed=seed)
        low, high = _bounds(interval)
        hits += low <= target <= high
        half = 1.96 * float(np.std(scores - truth)) / np.sqrt(truth.size)
        naive += abs(float(np.mean(scores - truth))) <= half
    assert 0.90 <= hits / 200 <= 0.995
    assert naive / 200 < 0.75  # cells taken for independent: what this is for


def test_gap_is_between_groups_and_covers() -> None:
    hits, target = 0, -float(np.sqrt(0.22 * 2 / np.pi)) / 2
    for seed in range(200):
        truth, scores, countries, topics = _table(seed, 14, 10)
        west = np.array([c < "c07" for c in countries])
        scores = np.where(west, truth + (scores - truth) / 2, scores)
        gap = gap_interval(MAE, scores, truth, countries, topics, west, replicates=300, seed=seed)
        d = np.abs(scores - truth)
        assert gap.estimate == pytest.approx(d[west].mean() - d[~west].mean(), abs=1e-12)
        low, high = _bounds(gap)
        hits += low <= target <= high
    assert 0.90 <= hits / 200 <= 0.995


def test_paired_difference_uses_the_pairing() -> None:
    truth, scores, countries, topics = _table(4, 20, 12)
    worse = scores + 0.05 * np.sign(scores - truth)  # each error larger by 0.05
    difference = paired_interval(MAE, worse, scores, truth, countries, topics)
    assert difference.estimate == pytest.approx(0.05)
    assert _bounds(difference) == pytest.approx((0.05, 0.05))
    unpaired = crossed_interval(MAE, scores, truth, countries, topics)
    assert _bounds(unpaired)[1] - _bounds(unpaired)[0] > 0.05
    gappy = np.where(np.arange(240) < 30, NAN, worse)
    assert paired_interval(PEARSON, gappy, scores, truth, countries, topics, replicates=20).n_cells == 210


def test_degenerate_input_has_a_reason() -> None:
    truth, scores, countries, topics = _table(6)
    nothing = crossed_interval(MAE, np.full(80, NAN), truth, countries, topics)
    assert (nothing.estimate, nothing.n_cells, nothing.reason) == (None, 0, "no cell has all its values")
    flat = crossed_interval(PEARSON, np.full(80, 0.3), truth, countries, topics)
    assert (flat.estimate, flat.low, flat.reason) == (None, None, "too few cells, or no variation among them")
    four = np.array([c < "c04" for c in countries])
    few = crossed_interval(MAE, scores[four], truth[four], np.array(countries)[four], np.array(topics)[four])
    assert few.estimate is not None
    assert (few.low, few.reason) == (None, "an interval needs 5 countries and topics")
    assert gap_interval(MAE, scores, truth, countries, topics, four).reason == (
        "an interval needs 5 countries a group and topics"
    )
    one_group = gap_interval(MAE, scores, truth, countries, topics, np.ones(80, dtype=bool))
    assert (one_group.estimate, one_group.low) == (None, None)


def test_malformed_input_raises() -> None:
    truth, scores, countries, topics = _table(7)
    with pytest.raises(ValueError, match="countries and topics must have the shape"):
        crossed_interval(MAE, scores, truth, countries[:-1], topics)
    with pytest.raises(ValueError, match="one group only, but c00"):
        gap_interval(MAE, scores, truth, countries, topics, np.arange(80) % 2 == 0)
    with pytest.raises(ValueError, match="group must have the shape"):
        gap_interval(MAE, scores, truth, countries, topics, [True])
