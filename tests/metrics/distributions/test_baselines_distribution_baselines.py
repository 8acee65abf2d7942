"""Baselines of shares: hand-computed, and none of them sees the cell that it guesses."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from auditor.metrics import (
    BaselineShares,
    CellShares,
    country_baseline,
    cut_variance,
    nearest_country_baseline,
    region_baseline,
    squared_distance,
    uniform_baseline,
    wasserstein,
    world_baseline,
)
from tests.support.known import known

FILE_NAME = "wvs7_shares.csv"
FILE = next(
    (path for folder in Path(__file__).resolve().parents if (path := folder / "shared" / "data" / FILE_NAME).is_file()),
    None,
)
COUNTRIES = np.array(["A", "A", "B", "B", "C", "C"])
TOPICS = np.array(["x", "y"] * 3)
SHARES = np.array([[1, 0, 0], [0, 1, 0], [0.8, 0.2, 0], [0, 0.8, 0.2], [0, 0, 1], [0.2, 0, 0.8]])
CELLS = CellShares(SHARES, cut_variance(SHARES, 101), COUNTRIES, TOPICS)
POINTS = [0, 1, 2]
REGIONS = np.array(["east"] * 4 + ["west"] * 2)


def test_hand_computed_guesses() -> None:
    assert uniform_baseline(CELLS).shares == pytest.approx(np.full((6, 3), 1 / 3))
    assert (uniform_baseline(CELLS).cut_variances == 0).all()
    assert country_baseline(CELLS).shares[0] == pytest.approx(SHARES[1])
    world = world_baseline(CELLS)
    assert world.shares[0] == pytest.approx((SHARES[2] + SHARES[4]) / 2)
    assert world.cut_variances[0] == pytest.approx((CELLS.cut_variances[2] + CELLS.cut_variances[4]) / 4)
    assert region_baseline(CELLS, REGIONS).shares[0] == pytest.approx(SHARES[2])
    assert nearest_country_baseline(CELLS, POINTS).shares[0] == pytest.approx(SHARES[2])


def test_without_anything_to_guess_from_there_is_no_guess() -> None:
    assert np.isnan(region_baseline(CELLS, REGIONS).shares[4]).all()
    single_country = CellShares(SHARES[:2], CELLS.cut_variances[:2], COUNTRIES[:2], TOPICS[:2])
    for guess in (world_baseline(single_country), nearest_country_baseline(single_country, POINTS)):
        assert np.isnan(guess.shares).all()
        assert np.isnan(guess.cut_variances).all()
    single_topic = CellShares(SHARES[::2], CELLS.cut_variances[::2], COUNTRIES[::2], TOPICS[::2])
    assert np.isnan(nearest_country_baseline(single_topic, POINTS).shares).all()


@pytest.mark.parametrize(
    "guess",
    [
        uniform_baseline, country_baseline, world_baseline,
        lambda cells: region_baseline(cells, np.asarray(cells.countries) > "m"),
        lambda cells: nearest_country_baseline(cells, POINTS),
    ],
)  # fmt: skip
def test_no_baseline_sees_the_cell(guess: Callable[[CellShares], BaselineShares]) -> None:
    rng = np.random.default_rng(0)
    countries, topics = np.repeat([*"abcdmnop"], 5), np.tile([*"vwxyz"], 8)
    shares = rng.dirichlet(np.ones(3), 40)
    for position in (0, 17, 39):
        changed = shares.copy()
        changed[position] = rng.dirichlet(np.ones(3))
        before, after = (
            guess(CellShares(rows, cut_variance(rows, 100), countries, topics)).shares[position]
            for rows in (shares, changed)
        )
        assert before == pytest.approx(after)


@pytest.mark.skipif(FILE is None, reason=f"needs ../shared/data/{FILE_NAME}, which may not be passed on")
def test_baselines_of_the_world_values_survey() -> None:
    """Mean Wasserstein distance and root of the mean squared distance over 860 cells."""
    with known(FILE).open(encoding="utf-8", newline="") as file:
        rows = np.array(list(csv.reader(file))[1:])
    shares = rows[:, 2:].astype(float)
    # As shares without sampling error, which would change these figures by less than 0.001.
    cells = CellShares(shares, np.zeros((len(shares), 9)), rows[:, 0], rows[:, 1])
    points = np.linspace(-1, 1, 10)
    assert len(shares) == 860
    for guess, distance, root in (
        (uniform_baseline(cells), 0.303, 0.361),
        (country_baseline(cells), 0.128, 0.180),
        (world_baseline(cells), 0.109, 0.156),
        # A country that is picked by Wasserstein distance instead is a worse guess: 0.064 and 0.100.
        (nearest_country_baseline(cells, points), 0.0609, 0.0936),
    ):
        assert wasserstein(shares, guess.shares, points).mean() == pytest.approx(distance, abs=0.0006)
        squared = squared_distance(shares, guess.shares, points, 0.0)
        assert squared.mean() ** 0.5 == pytest.approx(root, abs=0.0006)
