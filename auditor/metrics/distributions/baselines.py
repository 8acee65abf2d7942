"""Simple guesses of a cell's distribution, none of which sees the cell: what a model's skill is measured against."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.metrics.distributions.distances import cumulate, cut_widths, read_shares
from auditor.metrics.intervals.estimate import Floats


class BaselineShares(NamedTuple):
    """Guessed shares of each cell.

    Attributes:
        shares: shape (n, K); nan where there is nothing to guess from.
        cut_variances: shape (n, K - 1), variances of the cumulative shares, as `squared_distance` subtracts them.
    """

    shares: Floats
    cut_variances: Floats


class CellShares(NamedTuple):
    """People's shares by cell.

    Attributes:
        shares: shape (n, K); a row with a nan is missing.
        cut_variances: shape (n, K - 1), variances of the cumulative shares.
        countries, topics: shape (n,), labels of any kind; a cell occurs once.
    """

    shares: Floats
    cut_variances: Floats
    countries: NDArray[Any]
    topics: NDArray[Any]


def uniform_baseline(cells: CellShares) -> BaselineShares:
    """Guess that all answers are equally frequent."""
    shares = read_shares(cells.shares)
    return BaselineShares(np.full_like(shares, 1 / shares.shape[1]), np.zeros((len(shares), shares.shape[1] - 1)))


def country_baseline(cells: CellShares) -> BaselineShares:
    """Guess the mean shares of the country's other topics.

    The same respondents answer all topics, so the guess shares sampling error with the cell. The correction treats both
    as independent; the error is small at the sizes of national samples.
    """
    countries, topics = np.asarray(cells.countries), np.asarray(cells.topics)
    return _mean_of_others(cells, lambda i: (countries == countries[i]) & (topics != topics[i]))


def world_baseline(cells: CellShares) -> BaselineShares:
    """Guess the mean shares of all other countries on the same topic."""
    countries, topics = np.asarray(cells.countries), np.asarray(cells.topics)
    return _mean_of_others(cells, lambda i: (topics == topics[i]) & (countries != countries[i]))


def region_baseline(cells: CellShares, regions: ArrayLike) -> BaselineShares:
    """Guess the mean shares of the other countries of the region on the same topic; nan without another country.

    Args:
        regions: shape (n,), the region of each cell's country.
    """
    countries, topics, names = np.asarray(cells.countries), np.asarray(cells.topics), np.asarray(regions)
    return _mean_of_others(cells, lambda i: (topics == topics[i]) & (countries != countries[i]) & (names == names[i]))


def nearest_country_baseline(cells: CellShares, points: ArrayLike) -> BaselineShares:
    """Guess the shares of the country that is closest on all other topics, the hardest baseline.

    Countries are compared by the mean squared difference of their cumulative shares, over the topics that both have,
    without the topic that is guessed.

    Args:
        points: shape (K,), increasing.
    """
    shares = read_shares(cells.shares)
    grid, rows, columns = _to_grid(cumulate(shares), cells)
    widths = cut_widths(points, shares.shape[1])
    has_cell: NDArray[np.bool_] = np.asarray(~np.isnan(grid).any(axis=2))
    with np.errstate(invalid="ignore"):
        distances = np.nan_to_num(((grid[:, None] - grid[None]) ** 2) @ widths)  # (countries, countries, topics)
    is_common = has_cell[:, None] & has_cell[None]
    position = np.full(has_cell.shape, -1)
    position[rows, columns] = np.arange(len(shares))
    guesses = np.full(len(shares), -1)
    for i, (row, column) in enumerate(zip(rows, columns, strict=True)):
        n_common = is_common[row].sum(axis=1) - is_common[row, :, column]
        candidates = has_cell[:, column] & (n_common > 0)
        candidates[row] = False
        if candidates.any():
            others = distances[row].sum(axis=1) - distances[row, :, column]
            means = np.where(candidates, others / np.maximum(n_common, 1), np.inf)
            guesses[i] = position[int(means.argmin()), column]
    variances = np.asarray(cells.cut_variances, dtype=np.float64)
    missing = guesses[:, None] < 0
    return BaselineShares(np.where(missing, np.nan, shares[guesses]), np.where(missing, np.nan, variances[guesses]))


def _mean_of_others(cells: CellShares, others: Callable[[int], NDArray[np.bool_]]) -> BaselineShares:
    """Mean shares of the cells that `others` selects for each cell, by its position; each of them weighs alike."""
    shares, variances = read_shares(cells.shares), np.asarray(cells.cut_variances, dtype=np.float64)
    present = ~np.isnan(shares).any(axis=1)
    guessed, guessed_variances = np.full_like(shares, np.nan), np.full_like(variances, np.nan)
    for i in range(len(shares)):
        selected = others(i) & present
        n = np.count_nonzero(selected)
        if n:
            guessed[i], guessed_variances[i] = shares[selected].mean(axis=0), variances[selected].sum(axis=0) / n**2
    return BaselineShares(guessed, guessed_variances)


def _to_grid(values: Floats, cells: CellShares) -> tuple[Floats, NDArray[np.intp], NDArray[np.intp]]:
    """Values as (countries, topics, columns), nan for cells that do not exist, and the positions of the cells."""
    country_names, rows = np.unique(np.asarray(cells.countries), return_inverse=True)
    topic_names, columns = np.unique(np.asarray(cells.topics), return_inverse=True)
    grid = np.full((len(country_names), len(topic_names), values.shape[1]), np.nan)
    grid[rows, columns] = values
    return grid, rows, columns
